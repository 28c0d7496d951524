/* SPDX-License-Identifier: Apache-2.0 */
#include "program/bulkhead/policy-file.h"

#include <fcntl.h>

#include "base/fd.h"
#include "base/mem.h"
#include "base/text.h"

#define DATE_LEN 10 /* YYYY-MM-DD of an RFC 3339 time */

int policy_file_read(const char *file, struct policy **ret, char **ret_warning, struct err *err)
{
	cleanup_free char *text = NULL;
	char today[TEXT_SIZE_MAX];
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
	return policy_parse(text, len, file, today, ret, ret_warning, err);
}
