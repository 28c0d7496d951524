/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <linux/landlock.h>
#include <stdint.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/fd.h"
#include "isolate/common/landlock.h"

/* Newer than the headers of Debian 12. */
#define ACCESS_REFER (1ULL << 13)
#define ACCESS_TRUNCATE (1ULL << 14)
#define SCOPE_ABSTRACT_UNIX_SOCKET (1ULL << 0)
#define SCOPE_SIGNAL (1ULL << 1)

#define ON_FILES (LANDLOCK_ACCESS_FS_WRITE_FILE | ACCESS_TRUNCATE)
#define ON_FOLDERS                                                                                                             \
	(ON_FILES | LANDLOCK_ACCESS_FS_REMOVE_DIR | LANDLOCK_ACCESS_FS_REMOVE_FILE | LANDLOCK_ACCESS_FS_MAKE_CHAR |            \
		LANDLOCK_ACCESS_FS_MAKE_DIR | LANDLOCK_ACCESS_FS_MAKE_REG | LANDLOCK_ACCESS_FS_MAKE_SOCK |                     \
		LANDLOCK_ACCESS_FS_MAKE_FIFO | LANDLOCK_ACCESS_FS_MAKE_BLOCK | LANDLOCK_ACCESS_FS_MAKE_SYM | ACCESS_REFER)

struct ruleset_attr {
	uint64_t fs, net, scoped;
};

int landlock_abi(void)
{
	long abi = syscall(SYS_landlock_create_ruleset, NULL, 0, LANDLOCK_CREATE_RULESET_VERSION);
	return abi < 0 ? 0 : (int)abi;
}

static int create_ruleset(int abi)
{
	struct ruleset_attr attr = { .fs = ON_FOLDERS & (abi < 3 ? ~ACCESS_TRUNCATE : ~0ULL) };
	size_t size = sizeof(attr.fs);
	if (abi >= 6) {
		attr.scoped = SCOPE_ABSTRACT_UNIX_SOCKET | SCOPE_SIGNAL;
		size = sizeof(attr);
	}
	return (int)syscall(SYS_landlock_create_ruleset, &attr, size, 0);
}

static int add_writable(int ruleset, int abi, int fd)
{
	struct stat st;
	if (fstat(fd, &st) < 0)
		return -1;
	struct landlock_path_beneath_attr attr = {
		.allowed_access = (S_ISDIR(st.st_mode) ? ON_FOLDERS : ON_FILES) & (abi < 3 ? ~ACCESS_TRUNCATE : ~0ULL),
		.parent_fd = fd,
	};
	return (int)syscall(SYS_landlock_add_rule, ruleset, LANDLOCK_RULE_PATH_BENEATH, &attr, 0);
}

int landlock_confine(const int *writable, size_t n, struct err *err)
{
	int abi = landlock_abi();
	if (abi < 2)
		return 0;
	cleanup_fd int ruleset = create_ruleset(abi);
	if (ruleset < 0)
		return err_sys(err, errno, "can't create a Landlock ruleset (version %d)", abi);
	for (size_t i = 0; i < n; i++)
		if (add_writable(ruleset, abi, writable[i]) < 0)
			return err_sys(err, errno, "can't add rule %zu to the Landlock ruleset", i);
	if (syscall(SYS_landlock_restrict_self, ruleset, 0) < 0)
		return err_sys(err, errno, "can't enter the Landlock ruleset");
	return 0;
}
