/* SPDX-License-Identifier: Apache-2.0 */
#include "program/bulkhead-audit/confine.h"

#include <errno.h>
#include <grp.h>
#include <linux/capability.h>
#include <linux/landlock.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "audit/client.h"
#include "base/fd.h"
#include "program/bulkhead-audit/syscalls.h"

#define NOBODY 65534u
/* Two sockets, the folder (closed by then), two files. */
#define FILES_MAX 16u

int confine_begin(struct err *err)
{
	struct rlimit none = { 0 };
	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0)
		return err_sys(err, errno, "cannot give up gaining privileges");
	if (prctl(PR_SET_DUMPABLE, 0, 0, 0, 0) < 0 || setrlimit(RLIMIT_CORE, &none) < 0)
		return err_sys(err, errno, "cannot switch off core files");
	return 0;
}

/* In a user namespace that maps root only there is no other user to become: then the capabilities still go, below. */
static int drop_user(struct err *err)
{
	if (geteuid() != 0)
		return 0;
	if (setgroups(0, NULL) < 0 && errno != EPERM)
		return err_sys(err, errno, "cannot drop supplementary groups");
	if (setresgid(NOBODY, NOBODY, NOBODY) == 0 && setresuid(NOBODY, NOBODY, NOBODY) == 0)
		return 0;
	return errno == EINVAL ? 0 : err_sys(err, errno, "cannot become an unprivileged user");
}

static int drop_capabilities(struct err *err)
{
	struct __user_cap_header_struct head = { .version = _LINUX_CAPABILITY_VERSION_3 };
	struct __user_cap_data_struct none[_LINUX_CAPABILITY_U32S_3] = { 0 };
	if (syscall(SYS_capset, &head, none) < 0)
		return err_sys(err, errno, "cannot drop capabilities");
	return 0;
}

static int drop_files(struct err *err)
{
	struct rlimit none = { 0 };
	struct landlock_ruleset_attr attr = {
		.handled_access_fs = LANDLOCK_ACCESS_FS_EXECUTE | LANDLOCK_ACCESS_FS_WRITE_FILE | LANDLOCK_ACCESS_FS_READ_FILE |
				     LANDLOCK_ACCESS_FS_READ_DIR | LANDLOCK_ACCESS_FS_REMOVE_DIR |
				     LANDLOCK_ACCESS_FS_REMOVE_FILE | LANDLOCK_ACCESS_FS_MAKE_CHAR |
				     LANDLOCK_ACCESS_FS_MAKE_DIR | LANDLOCK_ACCESS_FS_MAKE_REG | LANDLOCK_ACCESS_FS_MAKE_SOCK |
				     LANDLOCK_ACCESS_FS_MAKE_FIFO | LANDLOCK_ACCESS_FS_MAKE_BLOCK | LANDLOCK_ACCESS_FS_MAKE_SYM,
	};
	cleanup_fd int ruleset = (int)syscall(SYS_landlock_create_ruleset, &attr, sizeof(attr), 0);
	if (ruleset < 0 && errno != ENOSYS && errno != EOPNOTSUPP)
		return err_sys(err, errno, "cannot close the file system (Landlock)");
	if (ruleset >= 0 && syscall(SYS_landlock_restrict_self, ruleset, 0) < 0)
		return err_sys(err, errno, "cannot close the file system (Landlock)");
	/* poll(2) wants a limit that is not below the number of its entries. */
	none.rlim_cur = none.rlim_max = FILES_MAX;
	if (setrlimit(RLIMIT_NOFILE, &none) < 0)
		return err_sys(err, errno, "cannot limit descriptors");
	return 0;
}

int confine_finish(struct err *err)
{
	if (drop_user(err) < 0 || drop_capabilities(err) < 0 || drop_files(err) < 0)
		return -1;
	return syscalls_restrict(err);
}
