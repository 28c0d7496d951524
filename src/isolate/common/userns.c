/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/mem.h"
#include "isolate/common/userns.h"

#define INSIDE_ID 1000u
#define MAP_SIZE 65536u

static void add_range(struct id_map *m, uint32_t inside, uint32_t outside, uint32_t count)
{
	if (count > 0)
		m->ranges[m->n++] = (struct id_range){ inside, outside, count };
}

/* Adds [lo, hi) as k → base+k, with holes at the two exchanged ids. */
static void add_plain(struct id_map *m, uint32_t lo, uint32_t hi, uint32_t base)
{
	if (hi > lo)
		add_range(m, lo, base + lo, hi - lo);
}

void id_map_for_owner(struct id_map *ret, uint32_t owner, uint32_t base)
{
	struct id_map m = { 0 };
	if (owner == INSIDE_ID) {
		add_range(&m, 0, base, MAP_SIZE);
	} else if (owner < MAP_SIZE) {
		uint32_t first = owner < INSIDE_ID ? owner : INSIDE_ID, second = owner < INSIDE_ID ? INSIDE_ID : owner;
		add_plain(&m, 0, first, base);
		add_range(&m, first, base + second, 1);
		add_plain(&m, first + 1, second, base);
		add_range(&m, second, base + first, 1);
		add_plain(&m, second + 1, MAP_SIZE, base);
	} else {
		add_plain(&m, 0, INSIDE_ID, base);
		add_range(&m, INSIDE_ID, base + MAP_SIZE - 1, 1);
		add_plain(&m, INSIDE_ID + 1, MAP_SIZE - 1, base);
		add_range(&m, owner, base + INSIDE_ID, 1);
	}
	*ret = m;
}

static int write_map(int proc_fd, const char *file, const struct id_map *map, struct err *err)
{
	char text[ID_MAP_MAX * 36] = "";
	size_t len = 0;
	for (size_t i = 0; i < map->n; i++)
		len += (size_t)snprintf(text + len, sizeof(text) - len, "%u %u %u\n", map->ranges[i].inside,
			map->ranges[i].outside, map->ranges[i].count);
	return fd_write_file_at(proc_fd, file, text, err);
}

/* Must not outlive a launcher that is killed at this line; one that was killed before prctl(2) is no longer our parent. */
static int __attribute__((noreturn)) helper_main(void *arg)
{
	const pid_t *parent = arg;
	if (prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0) < 0 || getppid() != *parent)
		_exit(0);
	for (;;)
		pause();
}

static int take_namespace(pid_t pid, const struct id_map *uids, const struct id_map *gids, struct err *err)
{
	char path[32];
	snprintf(path, sizeof(path), "/proc/%d", (int)pid);
	cleanup_fd int proc_fd = open(path, O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (proc_fd < 0)
		return err_sys(err, errno, "can't open %s (is /proc mounted?)", path);
	if (write_map(proc_fd, "uid_map", uids, err) < 0 || write_map(proc_fd, "gid_map", gids, err) < 0)
		return err_wrap(err, "can't map user ids of the box");
	int fd = openat(proc_fd, "ns/user", O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return err_sys(err, errno, "can't open a fresh user namespace");
	return fd;
}

/* Helpers that were killed and not yet collected. Each shares our memory (nothing to copy) but needs a stack of its own until it
 * is dead; all it does is wait for its end. */
static struct helper {
	_Alignas(16) char stack[4096];
	pid_t parent;
	pid_t pid; /* 0: none */
} helpers[4];

static void collect(struct helper *h)
{
	while (h->pid > 0 && waitpid(h->pid, NULL, 0) < 0 && errno == EINTR)
		;
	h->pid = 0;
}

void userns_collect(void)
{
	for (size_t i = 0; i < ARRAY_LEN(helpers); i++)
		collect(&helpers[i]);
}

int userns_create(const struct id_map *uids, const struct id_map *gids, struct err *err)
{
	static size_t next;
	struct helper *h = &helpers[next++ % ARRAY_LEN(helpers)];
	collect(h);
	h->parent = getpid();
	pid_t pid = clone(helper_main, h->stack + sizeof(h->stack), CLONE_NEWUSER | CLONE_VM | CLONE_FILES | SIGCHLD, &h->parent);
	if (pid < 0)
		return err_sys(err, errno, "can't create a user namespace (see `bulkhead doctor`)");
	h->pid = pid;
	int fd = take_namespace(pid, uids, gids, err);
	kill(pid, SIGKILL);
	return fd;
}

/* The smallest fix, by cause: the kernel's errno alone tells nobody anything. */
static int explain_refusal(int sys, struct err *err)
{
	cleanup_free char *text = NULL;
	size_t len;
	if (fd_read_file_at(AT_FDCWD, "/proc/sys/kernel/unprivileged_userns_clone", 16, &text, &len, NULL) == 0 &&
		text[0] == '0')
		return err_set(err, ERR_UNSUPPORTED,
			"ordinary users may not create user namespaces here (kernel.unprivileged_userns_clone=0); "
			"as root: sysctl kernel.unprivileged_userns_clone=1, or run bulkhead as root");
	text = mem_free(text);
	if (fd_read_file_at(AT_FDCWD, "/proc/sys/kernel/apparmor_restrict_unprivileged_userns", 16, &text, &len, NULL) == 0 &&
		text[0] == '1')
		return err_set(err, ERR_UNSUPPORTED,
			"AppArmor restricts user namespaces here (kernel.apparmor_restrict_unprivileged_userns=1) and no "
			"profile names this program; as root: copy bulkhead's profile "
			"(/usr/share/bulkhead/apparmor/bulkhead) to /etc/apparmor.d and run "
			"`apparmor_parser -r /etc/apparmor.d/bulkhead`");
	text = mem_free(text);
	if (fd_read_file_at(AT_FDCWD, "/proc/sys/user/max_user_namespaces", 16, &text, &len, NULL) == 0 && atoi(text) == 0)
		return err_set(err, ERR_UNSUPPORTED,
			"no user namespaces are to be had here (user.max_user_namespaces=0); as root: sysctl "
			"user.max_user_namespaces=10000");
	if (sys == EPERM)
		return err_set(err, ERR_UNSUPPORTED,
			"the kernel refuses a user namespace (%s): a container manager's seccomp profile or a chroot forbids "
			"it; "
			"run bulkhead outside of it, or allow unshare and clone with CLONE_NEWUSER in that profile",
			strerror(sys));
	return err_sys(err, sys, "can't create a user namespace");
}

int userns_enter_single(uint32_t id, struct err *err)
{
	const struct id_map uids = { .ranges = { { id, geteuid(), 1 } }, .n = 1 };
	const struct id_map gids = { .ranges = { { id, getegid(), 1 } }, .n = 1 };
	if (unshare(CLONE_NEWUSER) < 0)
		return explain_refusal(errno, err);
	cleanup_fd int proc_fd = open("/proc/self", O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (proc_fd < 0)
		return err_sys(err, errno, "can't open /proc/self (is /proc mounted?)");
	/* Under Ubuntu's restriction the namespace comes into being, but without any capability: it shows here. */
	if (fd_write_file_at(proc_fd, "setgroups", "deny", NULL) < 0 || write_map(proc_fd, "uid_map", &uids, NULL) < 0 ||
		write_map(proc_fd, "gid_map", &gids, NULL) < 0)
		return explain_refusal(errno, err);
	return 0;
}
