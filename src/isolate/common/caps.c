/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <grp.h>
#include <linux/capability.h>
#include <linux/securebits.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "isolate/common/caps.h"

/* Nothing that root's uid could mean to the kernel is left, nor can it be turned on again. */
#define SECUREBITS                                                                                                             \
	(SECBIT_KEEP_CAPS_LOCKED | SECBIT_NO_SETUID_FIXUP | SECBIT_NO_SETUID_FIXUP_LOCKED | SECBIT_NOROOT |                    \
		SECBIT_NOROOT_LOCKED | SECBIT_NO_CAP_AMBIENT_RAISE | SECBIT_NO_CAP_AMBIENT_RAISE_LOCKED)

static int drop_bounding_set(struct err *err)
{
	for (unsigned cap = 0; cap < 64; cap++)
		if (prctl(PR_CAPBSET_DROP, cap, 0, 0, 0) < 0) {
			if (errno == EINVAL) /* one past the kernel's last */
				return 0;
			return err_sys(err, errno, "can't drop capability %u from the bounding set", cap);
		}
	return 0;
}

static int change_ids(uid_t uid, gid_t gid, bool set_groups, struct err *err)
{
	/* By system call: libc's wrappers would signal other threads. */
	if (set_groups && syscall(SYS_setgroups, 0, NULL) < 0)
		return err_sys(err, errno, "can't empty the supplementary groups");
	if (syscall(SYS_setresgid, gid, gid, gid) < 0)
		return err_sys(err, errno, "can't change to group id %u of the box", gid);
	if (syscall(SYS_setresuid, uid, uid, uid) < 0)
		return err_sys(err, errno, "can't change to user id %u of the box", uid);
	return 0;
}

int privilege_drop(uid_t uid, gid_t gid, bool set_groups, struct err *err)
{
	struct __user_cap_header_struct head = { .version = _LINUX_CAPABILITY_VERSION_3 };
	struct __user_cap_data_struct none[_LINUX_CAPABILITY_U32S_3] = { 0 };
	if (drop_bounding_set(err) < 0)
		return -1;
	if (prctl(PR_SET_SECUREBITS, SECUREBITS, 0, 0, 0) < 0)
		return err_sys(err, errno, "can't lock the securebits");
	if (change_ids(uid, gid, set_groups, err) < 0)
		return -1;
	if (syscall(SYS_capset, &head, none) < 0)
		return err_sys(err, errno, "can't empty the capability sets");
	if (prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0) < 0)
		return err_sys(err, errno, "can't empty the ambient capabilities");
	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0)
		return err_sys(err, errno, "can't set no_new_privs");
	return 0;
}

int privilege_act_as(uid_t uid, struct err *err)
{
	struct __user_cap_header_struct head = { .version = _LINUX_CAPABILITY_VERSION_3 };
	struct __user_cap_data_struct caps[_LINUX_CAPABILITY_U32S_3] = { 0 };
	if (syscall(SYS_capget, &head, caps) < 0 || syscall(SYS_setresuid, -1, uid, -1) < 0) {
		if (errno == EINVAL)
			return err_set(err, ERR_UNSUPPORTED, "user id %u, which this sandbox needs, doesn't exist here: this root is the root of a user "
				"namespace with fewer ids (a container's); run bulkhead as an ordinary user there, or give the namespace these ids", uid);
		return err_sys(err, errno, "can't act as user %u", uid);
	}
	for (size_t i = 0; i < _LINUX_CAPABILITY_U32S_3; i++)
		caps[i].effective = caps[i].permitted;
	if (syscall(SYS_capset, &head, caps) < 0)
		return err_sys(err, errno, "can't keep the capabilities of user %u", uid);
	/* The kernel forgets it when credentials change. A supervisor that died just now shows when the answer is sent. */
	if (prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0) < 0)
		return err_sys(err, errno, "can't tie the launcher to its supervisor");
	return 0;
}
