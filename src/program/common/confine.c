/* SPDX-License-Identifier: Apache-2.0 */
#include "program/common/confine.h"

#include <errno.h>
#include <grp.h>
#include <linux/capability.h>
#include <linux/landlock.h>
#include <stdint.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/fd.h"
#include "program/common/syscall-list.h"

#define NOBODY 65534u

int confine_begin(struct err *err)
{
	struct rlimit none = { 0 };
	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0)
		return err_sys(err, errno, "cannot give up gaining privileges");
	if (prctl(PR_SET_DUMPABLE, 0, 0, 0, 0) < 0 || setrlimit(RLIMIT_CORE, &none) < 0)
		return err_sys(err, errno, "cannot switch off core files");
	return 0;
}

/* In a user namespace that maps root only there is no other user to become: then the capabilities still go. */
static int become_nobody(struct err *err)
{
	if (setgroups(0, NULL) < 0 && errno != EPERM)
		return err_sys(err, errno, "cannot drop supplementary groups");
	if (setresgid(NOBODY, NOBODY, NOBODY) == 0 && setresuid(NOBODY, NOBODY, NOBODY) == 0)
		return 0;
	return errno == EINVAL ? 0 : err_sys(err, errno, "cannot become an unprivileged user");
}

int confine_drop_user(struct err *err)
{
	int death = 0;
	if (geteuid() != 0)
		return 0;
	if (prctl(PR_GET_PDEATHSIG, &death, 0, 0, 0) < 0 || become_nobody(err) < 0)
		return -1;
	/* A change of user resets both. Should the parent have died in between, our sockets are at their end. */
	if (prctl(PR_SET_PDEATHSIG, death, 0, 0, 0) < 0 || prctl(PR_SET_DUMPABLE, 0, 0, 0, 0) < 0)
		return err_sys(err, errno, "cannot keep the order to end with the parent");
	return 0;
}

int confine_drop_capabilities(struct err *err)
{
	struct __user_cap_header_struct head = { .version = _LINUX_CAPABILITY_VERSION_3 };
	struct __user_cap_data_struct none[_LINUX_CAPABILITY_U32S_3] = { 0 };
	if (syscall(SYS_capset, &head, none) < 0)
		return err_sys(err, errno, "cannot drop capabilities");
	return 0;
}

/* Newer than the headers of Debian 12. */
#define ACCESS_FS_ALL_ABI1 ((1ULL << 13) - 1)
#define ACCESS_FS_REFER (1ULL << 13)
#define ACCESS_FS_TRUNCATE (1ULL << 14)
#define ACCESS_FS_IOCTL (1ULL << 15)
#define ACCESS_NET_BIND_TCP (1ULL << 0)
#define SCOPE_ABSTRACT_UNIX_SOCKET (1ULL << 0)
#define SCOPE_SIGNAL (1ULL << 1)

struct ruleset_attr { uint64_t fs, net, scoped; };

static int close_all(long abi, struct err *err)
{
	struct ruleset_attr attr = { .fs = ACCESS_FS_ALL_ABI1 };
	size_t size = sizeof(attr.fs);
	attr.fs |= (abi >= 2 ? ACCESS_FS_REFER : 0) | (abi >= 3 ? ACCESS_FS_TRUNCATE : 0) | (abi >= 5 ? ACCESS_FS_IOCTL : 0);
	if (abi >= 4) {
		attr.net = ACCESS_NET_BIND_TCP;
		size += sizeof(attr.net);
	}
	if (abi >= 6) {
		attr.scoped = SCOPE_ABSTRACT_UNIX_SOCKET | SCOPE_SIGNAL;
		size += sizeof(attr.scoped);
	}
	cleanup_fd int ruleset = (int)syscall(SYS_landlock_create_ruleset, &attr, size, 0);
	if (ruleset < 0 || syscall(SYS_landlock_restrict_self, ruleset, 0) < 0)
		return err_sys(err, errno, "cannot close the file system (Landlock version %ld)", abi);
	return 0;
}

int confine_close_paths(struct err *err)
{
	long abi = syscall(SYS_landlock_create_ruleset, NULL, 0, LANDLOCK_CREATE_RULESET_VERSION);
	return abi > 0 ? close_all(abi, err) : 0;
}

int syscall_list_install_n(struct sock_filter *list, size_t n, struct err *err)
{
#ifdef WITH_SANITIZER
	(void)list;
	(void)n;
	(void)err;
	return 0;
#else
	struct sock_fprog program = { .len = (unsigned short)n, .filter = list };
	if (prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program, 0, 0) < 0)
		return err_sys(err, errno, "cannot restrict system calls (seccomp); the kernel needs CONFIG_SECCOMP_FILTER");
	return 0;
#endif
}
