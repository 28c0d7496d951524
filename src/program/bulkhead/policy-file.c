/* SPDX-License-Identifier: Apache-2.0 */
#include "program/bulkhead/policy-file.h"

#include <fcntl.h>
#include <string.h>

#include "base/fd.h"
#include "base/mem.h"
#include "base/text.h"
#include "policy/request.h"

#define DATE_LEN 10 /* YYYY-MM-DD of an RFC 3339 time */

/* A file that the policy names: relative to the policy's own folder, so that the two can be moved together. */
static int read_named(void *ctx, const char *path, size_t max, char **ret_text, size_t *ret_len, struct err *err)
{
	const char *policy = ctx, *slash = strrchr(policy, '/');
	cleanup_free char *folder = slash ? mem_strndup(policy, (size_t)(slash - policy)) : mem_strdup(".");
	cleanup_free char *whole = path[0] == '/' ? mem_strdup(path) : path_join(slash == policy ? "/" : folder, path);
	return fd_read_file_at(AT_FDCWD, whole, max, ret_text, ret_len, err);
}

static int load_files(struct policy *p, const char *file, struct err *err)
{
	char shown[256];
	cleanup_free char *ctx = mem_strdup(file);
	if (policy_load_files(p, read_named, ctx, err) < 0)
		return err_wrap(err, "%s", text_escape(file, strlen(file), shown, sizeof(shown)));
	return 0;
}

int policy_file_read(const char *file, struct policy **ret, char **ret_warning, struct err *err)
{
	cleanup_free char *text = NULL;
	char today[TEXT_SIZE_MAX];
	struct policy *p;
	size_t len;
	*ret_warning = NULL;
	if (!file) {
		*ret = policy_builtin();
		return 0;
	}
	if (fd_read_file_at(AT_FDCWD, file, POLICY_TEXT_MAX, &text, &len, err) < 0)
		return err_wrap(err, "cannot read the policy");
	text_format_time(time_realtime_ns(), today);
	today[DATE_LEN] = '\0';
	if (policy_parse(text, len, file, today, &p, ret_warning, err) < 0)
		return -1;
	if (load_files(p, file, err) < 0) {
		*ret_warning = mem_free(*ret_warning);
		policy_free(p);
		return -1;
	}
	*ret = p;
	return 0;
}
