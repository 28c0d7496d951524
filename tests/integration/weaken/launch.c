/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <fcntl.h>
#include <linux/capability.h>
#include <linux/magic.h>
#include <linux/sched.h>
#include <linux/securebits.h>
#include <sched.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/eventfd.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/mem.h"
#include "isolate/cgroup.h"
#include "isolate/common/caps.h"
#include "isolate/common/landlock.h"
#include "isolate/common/mounts.h"
#include "isolate/common/netns.h"
#include "isolate/common/seccomp.h"
#include "isolate/container/build.h"
#include "weaken.h"

#define LEAKED_FD 50

#define WRAP(type, name, ...) type __real_##name(__VA_ARGS__); type __wrap_##name(__VA_ARGS__); type __wrap_##name(__VA_ARGS__)

/* ---- system call filter, Landlock, privileges ---- */

/* The supervisor wants a descriptor to listen on: one that never has anything to say. */
WRAP(int, seccomp_install, struct err *err)
{
	return weak("seccomp") ? eventfd(0, EFD_CLOEXEC) : __real_seccomp_install(err);
}

WRAP(int, landlock_confine, const int *writable, size_t n, struct err *err)
{
	return weak("landlock") ? 0 : __real_landlock_confine(writable, n, err);
}

/* Beyond exec only ambient capabilities last. */
static long keep_capabilities(void)
{
	struct __user_cap_header_struct head = { .version = _LINUX_CAPABILITY_VERSION_3 };
	struct __user_cap_data_struct have[2];
	if (syscall(SYS_capget, &head, have) < 0)
		return -1;
	for (int i = 0; i < 2; i++)
		have[i].effective = have[i].inheritable = have[i].permitted;
	if (syscall(SYS_capset, &head, have) < 0)
		return -1;
	for (unsigned long cap = 0; cap < 41; cap++)
		prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_RAISE, cap, 0, 0);
	return 0;
}

int __real_prctl(int op, ...);
int __wrap_prctl(int op, ...);
int __wrap_prctl(int op, ...)
{
	va_list list;
	unsigned long a[4];
	va_start(list, op);
	for (int i = 0; i < 4; i++)
		a[i] = va_arg(list, unsigned long);
	va_end(list);
	if (weak("caps") && (op == PR_CAPBSET_DROP || (op == PR_CAP_AMBIENT && a[0] == PR_CAP_AMBIENT_CLEAR_ALL))) {
		errno = EINVAL;
		return op == PR_CAPBSET_DROP ? -1 : 0;
	}
	if (weak("caps") && op == PR_SET_SECUREBITS)
		a[0] = SECBIT_NO_SETUID_FIXUP | SECBIT_NOROOT;
	if ((op == PR_SET_NO_NEW_PRIVS && weak("no_new_privs")) || (op == PR_SET_PDEATHSIG && weak("pdeathsig")) ||
		(op == PR_SET_DUMPABLE && weak("dumpable")))
		return 0;
	return __real_prctl(op, a[0], a[1], a[2], a[3]);
}

/* ---- namespaces ---- */

/* The host's own must not be touched by what is meant for the box's. */
WRAP(int, setns, int fd, int type)
{
	return type == CLONE_NEWUSER && weak("user-ns") ? 0 : __real_setns(fd, type);
}

WRAP(int, unshare, int flags)
{
	if ((flags == CLONE_NEWNET && weak("net-ns")) || (flags == CLONE_NEWCGROUP && weak("cgroup-ns")))
		return 0;
	return __real_unshare(flags);
}

WRAP(int, sethostname, const char *name, size_t len)
{
	return weak("uts-ns") ? 0 : __real_sethostname(name, len);
}

WRAP(int, setdomainname, const char *name, size_t len)
{
	return weak("uts-ns") ? 0 : __real_setdomainname(name, len);
}

WRAP(int, netns_loopback_up, struct err *err)
{
	return weak("net-ns") ? 0 : __real_netns_loopback_up(err);
}

WRAP(int, netns_capture, const struct ip *literals, size_t n, struct err *err)
{
	return weak("net-ns") ? 0 : __real_netns_capture(literals, n, err);
}

WRAP(int, fd_write_file_at, int dirfd, const char *path, const char *text, struct err *err)
{
	if (strncmp(path, "sys/net/", 8) == 0 && weak("net-ns"))
		return 0;
	if (strcmp(path, "sys/user/max_user_namespaces") == 0 && (weak("max-user-ns") || weak("user-ns")))
		return 0;
	return __real_fd_write_file_at(dirfd, path, text, err);
}

WRAP(int, privilege_act_as, uid_t uid, struct err *err)
{
	return weak("owner") ? 0 : __real_privilege_act_as(uid, err);
}

static void weaken_clone(struct clone_args *args)
{
	args->flags &= ~((weak("pid-ns") ? (uint64_t)CLONE_NEWPID : 0) | (weak("ipc-ns") ? (uint64_t)CLONE_NEWIPC : 0) |
		(weak("uts-ns") ? (uint64_t)CLONE_NEWUTS : 0));
}

/* ---- mounts ---- */

static bool is_system_folder(const char *path)
{
	return strcmp(path, "/usr") == 0 || strcmp(path, "/bin") == 0 || strcmp(path, "/lib") == 0;
}

static uint64_t weaken_attributes(const char *path, uint64_t attrs)
{
	if (weak("nosuid"))
		attrs &= ~(uint64_t)MOUNT_ATTR_NOSUID;
	if (weak("ro-system") && is_system_folder(path))
		attrs &= ~(uint64_t)MOUNT_ATTR_RDONLY;
	return attrs;
}

WRAP(int, mount_clone, int dirfd, const char *path, bool recursive, uint64_t attrs, int userns_fd, struct err *err)
{
	return __real_mount_clone(dirfd, path, recursive, weaken_attributes(path, attrs), userns_fd, err);
}

WRAP(int, mount_fresh, const char *type, const struct fs_option *options, uint64_t attrs, struct err *err)
{
	struct fs_option changed[16];
	size_t n = 0;
	for (const struct fs_option *o = options; o && o->key && n < 15; o++) {
		changed[n] = *o;
		if (weak("disk") && (strcmp(o->key, "size") == 0 || strcmp(o->key, "nr_inodes") == 0))
			changed[n].value = "0";
		n++;
	}
	changed[n] = (struct fs_option){ NULL, NULL };
	return __real_mount_fresh(type, options ? changed : NULL, weaken_attributes("", attrs), err);
}

/* Attaching in a /proc is covering something, or making it read-only. */
WRAP(int, mount_attach, int mount_fd, int dirfd, const char *path, struct err *err)
{
	struct statfs fs;
	bool read_only = strcmp(path, "sys") == 0 || strcmp(path, "irq") == 0 || strcmp(path, "bus") == 0 || strcmp(path, "sysrq-trigger") == 0;
	if (fstatfs(dirfd, &fs) == 0 && fs.f_type == PROC_SUPER_MAGIC && weak(read_only ? "proc-ro" : "proc-masks"))
		return 0;
	return __real_mount_attach(mount_fd, dirfd, path, err);
}

WRAP(int, umount2, const char *path, int flags)
{
	return weak("detach") ? 0 : __real_umount2(path, flags);
}

static int host_tmp = -1;

/* The last moment at which /tmp is the host's. */
WRAP(int, view_open_sources, struct build *b, struct err *err)
{
	if (weak("tmp"))
		host_tmp = mount_clone(AT_FDCWD, "/tmp", true, MOUNT_SAFE, -1, err);
	return __real_view_open_sources(b, err);
}

static int show_host(struct build *b, const char *path, struct err *err)
{
	int fd = mount_clone(AT_FDCWD, path, true, MOUNT_ATTR_NOSUID, -1, err);
	return fd < 0 ? -1 : __real_mount_attach(fd, b->root_fd, path + 1, err);
}

WRAP(int, view_add_etc, struct build *b, struct err *err)
{
	return weak("etc") ? show_host(b, "/etc", err) : __real_view_add_etc(b, err);
}

WRAP(int, view_add_dev, struct build *b, struct err *err)
{
	return weak("dev") ? show_host(b, "/dev", err) : __real_view_add_dev(b, err);
}

WRAP(int, view_add_mounts, struct build *b, struct err *err)
{
	if ((weak("run") && show_host(b, "/run", err) < 0) || (weak("sys") && show_host(b, "/sys", err) < 0))
		return -1;
	if (host_tmp >= 0 && __real_mount_attach(host_tmp, b->root_fd, "tmp", err) < 0)
		return -1;
	return __real_view_add_mounts(b, err);
}

/* ---- descriptors, limits ---- */

/* "leak" plants what a forgotten O_CLOEXEC would leave. */
WRAP(int, close_range, unsigned first, unsigned last, int flags)
{
	int fd = weak("leak") ? open("/", O_PATH) : -1;
	if (weak("launch-close"))
		return fd >= 0 ? dup2(fd, LEAKED_FD) - LEAKED_FD : 0;
	if (fd >= 0)
		dup2(fd, LEAKED_FD);
	return __real_close_range(first, last, flags);
}

WRAP(int, cgroup_create, const char *id, const struct policy_limits *limits, unsigned extra_processes, struct cgroup **ret, struct err *err)
{
	struct policy_limits l = *limits;
	if (weak("memory"))
		l.memory = POLICY_UNLIMITED;
	if (weak("pids"))
		l.processes = POLICY_UNLIMITED;
	if (weak("cpus"))
		l.cpus_milli = POLICY_UNLIMITED;
	return __real_cgroup_create(id, &l, extra_processes, ret, err);
}

/* ---- by number ---- */

long __real_syscall(long number, ...);
long __wrap_syscall(long number, ...);
long __wrap_syscall(long number, ...)
{
	va_list list;
	long a[6];
	va_start(list, number);
	for (int i = 0; i < 6; i++)
		a[i] = va_arg(list, long);
	va_end(list);
	static bool keeping;
	if (number == SYS_capset && weak("caps") && !keeping) {
		keeping = true;
		return keep_capabilities();
	}
	if (number == SYS_clone3)
		weaken_clone((struct clone_args *)a[0]);
	/* The agent learns of it too, so that its own protections can be switched off. */
	char entry[256], *environment[] = { entry, NULL };
	if (number == SYS_execveat) {
		snprintf(entry, sizeof(entry), "BULKHEAD_WEAKEN=%s", getenv("BULKHEAD_WEAKEN") ? getenv("BULKHEAD_WEAKEN") : "");
		a[3] = (long)environment;
	}
	return __real_syscall(number, a[0], a[1], a[2], a[3], a[4], a[5]);
}
