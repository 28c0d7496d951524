/* SPDX-License-Identifier: Apache-2.0 */
#include "gate/policy-file.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/mem.h"

#define SEALS (F_SEAL_SEAL | F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE)

static int write_sealed(int fd, const char *json, size_t len, struct err *err)
{
	int r = fd_write_full(fd, json, len);
	if (r < 0)
		return err_sys(err, -r, "cannot write the policy to a memory file");
	if (lseek(fd, 0, SEEK_SET) < 0 || fcntl(fd, F_ADD_SEALS, SEALS) < 0)
		return err_sys(err, errno, "cannot seal the memory file of the policy");
	return 0;
}

int policy_fd_make(const struct policy *p, uint64_t *ret_len, struct err *err)
{
	cleanup_free char *json = policy_to_json(p);
	size_t len = strlen(json);
	if (len > POLICY_JSON_MAX)
		return err_set(err, ERR_LIMIT, "the policy is %zu bytes long with its lock files and certificates, and may be %u: name smaller lock files", len,
			POLICY_JSON_MAX);
	cleanup_fd int fd = memfd_create("bulkhead-policy", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	if (fd < 0)
		return err_sys(err, errno, "cannot make a memory file for the policy");
	if (write_sealed(fd, json, len, err) < 0)
		return -1;
	*ret_len = len;
	return fd_steal(&fd);
}

/* One byte more than was said shows a file that is longer. */
static int read_exactly(int fd, char *out, uint64_t len, struct err *err)
{
	int r = fd_read_full(fd, out, len);
	char more;
	ssize_t n = r < 0 ? 0 : read(fd, &more, 1);
	if (r < 0 && r != -ENODATA)
		return err_sys(err, -r, "cannot read the policy's memory file");
	if (r < 0 || n != 0)
		return err_set(err, ERR_PROTOCOL, "the policy's memory file is not as long as was said");
	return 0;
}

struct policy *policy_fd_read(int fd, uint64_t len, struct err *err)
{
	if (len == 0 || len > POLICY_JSON_MAX) {
		err_set(err, ERR_PROTOCOL, "a policy of %llu bytes can't be: 1 to %u are possible", (unsigned long long)len, POLICY_JSON_MAX);
		return NULL;
	}
	int seals = fcntl(fd, F_GET_SEALS);
	if (seals < 0 || (seals & SEALS) != SEALS) {
		err_set(err, ERR_PROTOCOL, "the policy did not come in a sealed memory file");
		return NULL;
	}
	cleanup_free char *json = mem_alloc((size_t)len + 1);
	if (read_exactly(fd, json, len, err) < 0)
		return NULL;
	return policy_from_json(json, (size_t)len, err);
}
