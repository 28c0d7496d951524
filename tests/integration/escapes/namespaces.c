/* SPDX-License-Identifier: Apache-2.0 */
/* New namespaces, namespaces of others, and ways to the ones above. */
#include <errno.h>
#include <fcntl.h>
#include <linux/nsfs.h>
#include <linux/sched.h>
#include <sched.h>
#include <signal.h>
#include <stdint.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "probe.h"

#define HIGH_BIT (1L << 32)

static void clone_user(void)
{
	long pid = syscall(SYS_clone, CLONE_NEWUSER | SIGCHLD, 0, 0, 0, 0);
	if (pid == 0)
		_exit(0);
	conclude(pid, "a child in its own user namespace");
}

static void clone_mount(void)
{
	long pid = syscall(SYS_clone, CLONE_NEWUSER | CLONE_NEWNS | CLONE_NEWPID | SIGCHLD, 0, 0, 0, 0);
	if (pid == 0)
		_exit(0);
	conclude(pid, "a child in its own namespaces");
}

static void clone3_user(void)
{
	struct clone_args args = { .flags = CLONE_NEWUSER, .exit_signal = SIGCHLD };
	long pid = syscall(SYS_clone3, &args, sizeof(args));
	if (pid == 0)
		_exit(0);
	conclude(pid, "clone3 made a user namespace");
}

/* clone3 with CLONE_INTO_CGROUP would leave the cgroup's limits behind. */
static void clone3_cgroup(void)
{
	struct clone_args args = { .flags = CLONE_INTO_CGROUP, .exit_signal = SIGCHLD, .cgroup = (uint64_t)open("/", O_PATH) };
	long pid = syscall(SYS_clone3, &args, sizeof(args));
	if (pid == 0)
		_exit(0);
	conclude(pid, "clone3 went through");
}

static void setns_user(void)
{
	int fd = open("/proc/self/ns/user", O_RDONLY);
	if (fd < 0)
		broken("/proc/self/ns/user can't be opened");
	conclude(setns(fd, CLONE_NEWUSER), "entered a user namespace");
}

static void setns_pidfd(void)
{
	int fd = (int)syscall(SYS_pidfd_open, 1, 0);
	if (fd < 0)
		broken("no pidfd of the agent");
	conclude(setns(fd, CLONE_NEWNS | CLONE_NEWNET), "entered the agent's namespaces");
}

static void ask_above(const char *path, unsigned long request)
{
	int fd = open(path, O_RDONLY);
	if (fd < 0)
		broken("%s can't be opened", path);
	conclude(ioctl(fd, request), "a descriptor of a namespace above");
}

static void net_owner(void) { ask_above("/proc/self/ns/net", NS_GET_USERNS); }
static void mount_owner(void) { ask_above("/proc/self/ns/mnt", NS_GET_USERNS); }
static void user_parent(void) { ask_above("/proc/self/ns/user", NS_GET_PARENT); }
static void pid_parent(void) { ask_above("/proc/self/ns/pid", NS_GET_PARENT); }

static void agent_namespace(void)
{
	conclude(open("/proc/1/ns/mnt", O_RDONLY), "the agent's mount namespace is open");
}

static const struct attempt rows[] = {
	{ "unshare-user", "unshare", "EPERM", NULL, SYS_unshare, { CLONE_NEWUSER } },
	{ "unshare-mount", "unshare", "EPERM", NULL, SYS_unshare, { CLONE_NEWNS } },
	{ "unshare-user-mt", "unshare", "EPERM", NULL, SYS_unshare, { CLONE_NEWUSER | CLONE_NEWNS } },
	{ "unshare-pid", "unshare", "EPERM", NULL, SYS_unshare, { CLONE_NEWPID } },
	{ "unshare-net", "unshare", "EPERM", NULL, SYS_unshare, { CLONE_NEWNET } },
	{ "unshare-ipc", "unshare", "EPERM", NULL, SYS_unshare, { CLONE_NEWIPC } },
	{ "unshare-uts", "unshare", "EPERM", NULL, SYS_unshare, { CLONE_NEWUTS } },
	{ "unshare-cgroup", "unshare", "EPERM", NULL, SYS_unshare, { CLONE_NEWCGROUP } },
	{ "unshare-time", "unshare", "EPERM", NULL, SYS_unshare, { CLONE_NEWTIME } },
	{ "unshare-highbit", "unshare", "EPERM", NULL, SYS_unshare, { HIGH_BIT | CLONE_NEWUSER } },
	{ "clone-user", "clone", "EPERM", clone_user },
	{ "clone-several", "clone", "EPERM", clone_mount },
	{ "clone3-user", NULL, "ENOSYS", clone3_user },
	{ "clone3-cgroup", NULL, "ENOSYS", clone3_cgroup },
	{ "setns-user", "setns", "EPERM", setns_user },
	{ "setns-pidfd", "setns", "EPERM", setns_pidfd },
	{ "ns-net-owner", NULL, "EPERM", net_owner },
	{ "ns-mount-owner", NULL, "EPERM", mount_owner },
	{ "ns-user-parent", NULL, "EPERM", user_parent },
	{ "ns-pid-parent", NULL, "EPERM", pid_parent },
	{ "ns-of-agent", NULL, "EACCES|EPERM", agent_namespace },
	{ "sethostname", "sethostname", "EPERM", NULL, SYS_sethostname, { (long)"escaped", 7 } },
	{ "setdomainname", "setdomainname", "EPERM", NULL, SYS_setdomainname, { (long)"escaped", 7 } },
};
ATTEMPT_GROUP(namespace_attempts, "namespaces", rows);
