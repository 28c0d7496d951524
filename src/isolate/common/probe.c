/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <linux/sched.h>
#include <linux/seccomp.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/utsname.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/mem.h"
#include "base/text.h"
#include "isolate/cgroup.h"
#include "isolate/common/landlock.h"
#include "isolate/common/mounts.h"
#include "isolate/common/probe-internal.h"
#include "isolate/common/seccomp.h"
#include "isolate/common/userns.h"
#include "isolate/probe.h"

#define TIMEOUT_NS (5 * NS_PER_S)
#define STAGE "/tmp"

int probe_in_child(int (*what)(struct err *err), uint64_t timeout_ns, struct err *err)
{
	int pair[2];
	struct err result = ERR_INIT;
	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) < 0)
		return err_sys(err, errno, "can't create a socket for a probe");
	pid_t pid = fork();
	if (pid == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0);
		if (what(&result) == 0)
			result.code = ERR_NONE;
		_exit(fd_send(pair[1], &result, sizeof(result), NULL, 0) == sizeof(result) ? 0 : 1);
	}
	fd_close(&pair[1]);
	struct pollfd p = { .fd = pair[0], .events = POLLIN };
	int r = pid < 0 ? -1 : poll(&p, 1, (int)(timeout_ns / NS_PER_MS));
	if (pid < 0)
		err_set(&result, ERR_SYSTEM, "can't start a process for a probe");
	else if (r == 0)
		err_set(&result, ERR_TIMEOUT, "no answer after %llu s", (unsigned long long)(timeout_ns / NS_PER_S));
	else if (fd_recv(pair[0], &result, sizeof(result), NULL, NULL) != sizeof(result))
		err_set(&result, ERR_SYSTEM, "the probe's process was killed (a container manager's filter?)");
	if (pid > 0) {
		kill(pid, SIGKILL);
		while (waitpid(pid, NULL, 0) < 0 && errno == EINTR)
			;
	}
	fd_close(&pair[0]);
	if (err)
		*err = result;
	return result.code == ERR_NONE ? 0 : -1;
}

/* As root nothing needs to be entered; an ordinary user's mounts need a user namespace first. */
static int enter_mount_namespace(struct err *err)
{
	if (geteuid() != 0 && userns_enter_single(1000, err) < 0)
		return -1;
	if (unshare(CLONE_NEWNS) < 0)
		return err_sys(err, errno, "can't create a mount namespace");
	return mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0 ? err_sys(err, errno, "can't make mounts private") : 0;
}

static int do_userns(struct err *err)
{
	return userns_enter_single(1000, err);
}

static int do_namespaces(struct err *err)
{
	if (geteuid() != 0 && userns_enter_single(1000, err) < 0)
		return -1;
	if (unshare(CLONE_NEWNS | CLONE_NEWNET | CLONE_NEWIPC | CLONE_NEWUTS | CLONE_NEWCGROUP | CLONE_NEWPID) < 0)
		return err_sys(err, errno, "can't create mount, network, ipc, uts, cgroup and pid namespaces");
	return 0;
}

static int do_mount_api(struct err *err)
{
	const struct fs_option options[] = { { "size", "65536" }, { NULL, NULL } };
	if (enter_mount_namespace(err) < 0)
		return -1;
	cleanup_fd int disk = mount_fresh("tmpfs", options, MOUNT_SAFE, err);
	if (disk < 0 || mount_attach(disk, AT_FDCWD, STAGE, err) < 0)
		return -1;
	cleanup_fd int usr = mount_clone(AT_FDCWD, "/usr", true, MOUNT_SAFE_RO, -1, err);
	return usr < 0 ? -1 : 0;
}

static int do_proc(struct err *err)
{
	if (enter_mount_namespace(err) < 0)
		return -1;
	if (unshare(CLONE_NEWPID) < 0)
		return err_sys(err, errno, "can't create a pid namespace");
	/* Only a process inside the new pid namespace may mount its /proc. */
	pid_t pid = fork();
	if (pid == 0) {
		int fd = mount_fresh("proc", NULL, MOUNT_SAFE, NULL);
		_exit(fd < 0 ? 1 : 0);
	}
	int status = 1;
	while (pid > 0 && waitpid(pid, &status, 0) < 0 && errno == EINTR)
		;
	return status == 0 ? 0
			   : err_set(err, ERR_UNSUPPORTED,
				     "a fresh /proc is refused: parts of this one are covered, as container managers do it; "
				     "run outside "
				     "of that container, or with an unmasked /proc (docker: --security-opt "
				     "systempaths=unconfined)");
}

static int make_stage(const char *const folders[], struct err *err)
{
	const struct fs_option options[] = { { "size", "1m" }, { "mode", "0755" }, { NULL, NULL } };
	cleanup_fd int disk = mount_fresh("tmpfs", options, MOUNT_SAFE, err);
	if (disk < 0 || mount_attach(disk, AT_FDCWD, STAGE, err) < 0)
		return -1;
	for (size_t i = 0; folders[i]; i++)
		if (mkdirat(disk, folders[i], 0755) < 0)
			return err_sys(err, errno, "can't create a folder");
	return 0;
}

static int mount_overlay(struct err *err)
{
	static const char *const folders[] = { "lower", "lower/d", "up", "work", "at", NULL };
	const struct fs_option options[] = { { "lowerdir", STAGE "/lower" }, { "upperdir", STAGE "/up" },
		{ "workdir", STAGE "/work" }, { "redirect_dir", "nofollow" }, { geteuid() == 0 ? NULL : "userxattr", NULL },
		{ NULL, NULL } };
	if (enter_mount_namespace(err) < 0 || make_stage(folders, err) < 0)
		return -1;
	cleanup_fd int fd = mount_fresh("overlay", options, MOUNT_SAFE, err);
	return fd < 0 ? -1 : mount_attach(fd, AT_FDCWD, STAGE "/at", err);
}

/* A folder that was deleted and made anew needs a mark on the upper one: the step that kernels before 6.6 can't do for ordinary
 * users on tmpfs. */
static int do_overlay_marks(struct err *err)
{
	if (mount_overlay(err) < 0)
		return -1;
	if (rmdir(STAGE "/at/d") < 0 || mkdir(STAGE "/at/d", 0755) < 0)
		return err_sys(err, errno, "overlay works, but not its marks on deleted folders");
	return 0;
}

static int do_idmap(struct err *err)
{
	const struct id_map map = { .ranges = { { 0, 100000, 1000 } }, .n = 1 };
	static const char *const folders[] = { NULL };
	if (enter_mount_namespace(err) < 0)
		return -1;
	cleanup_fd int userns = userns_create(&map, &map, err);
	userns_collect();
	if (userns < 0)
		return -1;
	cleanup_fd int root = mount_clone(AT_FDCWD, "/", false, MOUNT_SAFE_RO, userns, err);
	return root < 0 ? -1 : make_stage(folders, err);
}

static int do_tmpfs_limit(struct err *err)
{
	static const char *const folders[] = { NULL };
	static char block[65536];
	if (enter_mount_namespace(err) < 0 || make_stage(folders, err) < 0)
		return -1;
	cleanup_fd int fd = open(STAGE "/full", O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
	for (int i = 0; fd >= 0 && i < 32; i++)
		if (write(fd, block, sizeof(block)) < 0)
			return errno == ENOSPC ? 0 : err_sys(err, errno, "writing to tmpfs fails");
	return err_set(err, ERR_UNSUPPORTED, "tmpfs doesn't keep its size limit");
}

static int do_seccomp(struct err *err)
{
	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0)
		return err_sys(err, errno, "can't set no_new_privs");
	cleanup_fd int fd = seccomp_install(err);
	return fd < 0 ? -1 : 0;
}

static int do_openat2(struct err *err)
{
	cleanup_fd int root = open("/", O_PATH | O_DIRECTORY | O_CLOEXEC);
	int fd = path_open_beneath(root, "usr", O_PATH | O_DIRECTORY, 0);
	if (fd < 0)
		return err_sys(err, -fd, "openat2 (Linux 5.6)");
	fd_close(&fd);
	return 0;
}

static int do_clone3(struct err *err)
{
	int pidfd = -1;
	struct clone_args args = { .flags = CLONE_PIDFD, .pidfd = (uint64_t)(uintptr_t)&pidfd, .exit_signal = SIGCHLD };
	long pid = syscall(SYS_clone3, &args, sizeof(args));
	if (pid == 0)
		_exit(0);
	if (pid < 0)
		return err_sys(err, errno, "clone3 with a pidfd (Linux 5.3)");
	siginfo_t info;
	int r = waitid(P_PIDFD, (id_t)pidfd, &info, WEXITED) < 0 ? err_sys(err, errno, "waiting by pidfd (Linux 5.4)") : 0;
	fd_close(&pidfd);
	return r;
}

static int do_close_range(struct err *err)
{
	return close_range(64, ~0U, CLOSE_RANGE_CLOEXEC) < 0 ? err_sys(err, errno, "close_range with CLOEXEC (Linux 5.11)") : 0;
}

static void do_row(
	struct probe_row *row, const char *name, enum probe_need need, int (*what)(struct err *err), const char *good)
{
	struct err err = ERR_INIT;
	*row = (struct probe_row){ .name = name, .need = need };
	row->ok = probe_in_child(what, TIMEOUT_NS, &err) == 0;
	snprintf(row->detail, sizeof(row->detail), "%s", row->ok ? good : err.text);
}

/* An ordinary user's folders are copied whole where overlay has no place for its marks (container/mounts.c). */
static void overlay_row(struct probe_row *row, bool root)
{
	do_row(row, root ? "overlay" : "overlay in a user namespace", PROBE_REQUIRED, do_overlay_marks,
		"with marks on deleted folders");
	if (row->ok || root || probe_in_child(mount_overlay, TIMEOUT_NS, NULL) < 0)
		return;
	row->ok = true;
	snprintf(row->detail, sizeof(row->detail),
		"without marks on deleted folders (ordinary users need Linux 6.6 for them): folders in mode copy are copied whole, which "
		"takes time and disk limit; as root they aren't");
}

static void landlock_row(struct probe_row *row)
{
	int abi = landlock_abi();
	*row = (struct probe_row){ .name = "landlock", .need = PROBE_WANTED, .ok = abi >= 2 };
	if (abi >= 2)
		snprintf(row->detail, sizeof(row->detail), "version %d%s", abi,
			abi >= 6 ? ", with scopes for sockets and signals" : "");
	else
		snprintf(row->detail, sizeof(row->detail),
			"version %d; a second lock on files needs 2 (Linux 5.19 with CONFIG_SECURITY_LANDLOCK, and landlock in "
			"the lsm= list)",
			abi);
}

static void cgroup_row(struct probe_row *row)
{
	static const char *const names[] = { [CGROUP_NONE] = "none", [CGROUP_V1] = "version 1", [CGROUP_V2] = "version 2" };
	const struct cgroup_support *s = cgroup_support_get();
	*row = (struct probe_row){ .name = "cgroup", .need = PROBE_WANTED, .ok = s->version != CGROUP_NONE };
	snprintf(row->detail, sizeof(row->detail), "%s%s%s", names[s->version], s->version == CGROUP_NONE ? ": " : "",
		s->version == CGROUP_NONE ? s->why : "");
}

static void kernel_row(struct probe_row *row)
{
	struct utsname u = { 0 };
	uname(&u);
	*row = (struct probe_row){ .name = "kernel", .need = PROBE_WANTED, .ok = true };
	snprintf(row->detail, sizeof(row->detail), "%.64s %.64s on %.64s", u.sysname, u.release, u.machine);
}

size_t probe_features(struct probe_row rows[PROBE_ROWS_MAX])
{
	bool root = geteuid() == 0;
	size_t n = 0;
	kernel_row(&rows[n++]);
	do_row(&rows[n++], "user namespaces", PROBE_REQUIRED, do_userns, "usable");
	do_row(&rows[n++], "other namespaces", PROBE_REQUIRED, do_namespaces, "mount, pid, network, ipc, uts, cgroup");
	do_row(&rows[n++], "mounts by descriptor", PROBE_REQUIRED, do_mount_api, "open_tree, move_mount, mount_setattr");
	do_row(&rows[n++], "fresh /proc", PROBE_REQUIRED, do_proc, "mountable in a pid namespace");
	overlay_row(&rows[n++], root);
	if (root)
		do_row(&rows[n++], "id-mapped mounts", PROBE_WANTED, do_idmap, "on the file system of /");
	do_row(&rows[n++], "system call filter", PROBE_REQUIRED, do_seccomp, "with notifications");
	do_row(&rows[n++], "openat2", PROBE_REQUIRED, do_openat2, "usable");
	do_row(&rows[n++], "clone3 and pidfd", PROBE_REQUIRED, do_clone3, "usable");
	do_row(&rows[n++], "close_range", PROBE_REQUIRED, do_close_range, "usable");
	landlock_row(&rows[n++]);
	cgroup_row(&rows[n++]);
	return n;
}

/* A row only where the sysctl exists. */
static size_t sysctl_row(struct probe_row *row, const char *name, const char *path, bool bad_when_zero, const char *fix)
{
	cleanup_free char *text = NULL;
	size_t len;
	uint64_t value;
	if (fd_read_file_at(AT_FDCWD, path, 32, &text, &len, NULL) < 0)
		return 0;
	text[strcspn(text, "\n")] = '\0';
	if (text_parse_u64(text, 0, UINT64_MAX, &value) < 0)
		return 0;
	bool bad = (value == 0) == bad_when_zero;
	*row = (struct probe_row){ .name = name, .need = PROBE_WANTED, .ok = !bad };
	snprintf(row->detail, sizeof(row->detail), "%llu%s%s", (unsigned long long)value, bad ? ": " : "", bad ? fix : "");
	return 1;
}

size_t probe_restrictions(struct probe_row rows[PROBE_ROWS_MAX])
{
	size_t n = 0;
	n += sysctl_row(&rows[n], "kernel.unprivileged_userns_clone", "/proc/sys/kernel/unprivileged_userns_clone", true,
		"ordinary users get no user namespace; as root: sysctl kernel.unprivileged_userns_clone=1");
	n += sysctl_row(&rows[n], "user.max_user_namespaces", "/proc/sys/user/max_user_namespaces", true,
		"nobody gets a user namespace; as root: sysctl user.max_user_namespaces=10000");
	n += sysctl_row(&rows[n], "kernel.apparmor_restrict_unprivileged_userns",
		"/proc/sys/kernel/apparmor_restrict_unprivileged_userns", false,
		"programs without an AppArmor profile get a crippled user namespace; as root: copy bulkhead's profile "
		"(/usr/share/bulkhead/apparmor/bulkhead) to /etc/apparmor.d and run "
		"apparmor_parser -r /etc/apparmor.d/bulkhead");
	n += sysctl_row(&rows[n], "kernel.apparmor_restrict_unprivileged_unconfined",
		"/proc/sys/kernel/apparmor_restrict_unprivileged_unconfined", false,
		"profiles with flags=(unconfined) no longer lift the restriction; bulkhead's own profile is of another kind "
		"and does");
	return n;
}

static void limit_row(struct probe_row *row, const char *name, bool ok, const char *by, const char *why)
{
	*row = (struct probe_row){ .name = name, .need = PROBE_WANTED, .ok = ok };
	snprintf(row->detail, sizeof(row->detail), "%s%s", ok ? "by " : "", ok ? by : why);
}

size_t probe_limits(struct probe_row rows[PROBE_ROWS_MAX])
{
	struct cgroup_support s;
	struct err err = ERR_INIT;
	size_t n = 0;
	cgroup_support_probe(&s);
	bool v2 = s.version == CGROUP_V2;
	limit_row(&rows[n++], "cpus", s.cpu, v2 ? "cgroup v2 cpu.max" : "cgroup v1 cpu.cfs_quota_us", s.why);
	limit_row(&rows[n++], "memory", s.memory,
		v2 ? "cgroup v2 memory.max, swap 0" : "cgroup v1 memory.limit_in_bytes, swap 0", s.why);
	limit_row(&rows[n++], "processes", s.pids || s.pids_rlimit,
		s.pids ? (v2 ? "cgroup v2 pids.max" : "cgroup v1 pids.max")
		       : "RLIMIT_NPROC, counted in the box's own user namespace (hits can't be counted)",
		s.why);
	bool disk = probe_in_child(do_tmpfs_limit, TIMEOUT_NS, &err) == 0;
	limit_row(&rows[n++], "disk", disk, "the size of the one file system behind every writable place", err.text);
	limit_row(&rows[n++], "open files", true, "RLIMIT_NOFILE", "");
	limit_row(&rows[n++], "timeout, idle, output, egress", true, "the supervisor and the gate", "");
	return n;
}
