/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The clone's way from a copy of the launcher to the agent. Stages:
 *   1 view      the new root folder, from descriptors; mount namespace only
 *   2 join      cgroup, network namespace: made by the launcher meanwhile
 *   3 leave     pivot: the host's tree is gone
 *   4 shed      user namespace, ids, capabilities, no_new_privs: nothing can be mounted or changed any more
 *   5 lock      Landlock, limits, descriptors, system call filter: only sendmsg and execveat are still needed
 *   6 become    the agent
 * No byte of the workload's is read before stage 6.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/keyctl.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/mem.h"
#include "isolate/common/caps.h"
#include "isolate/common/landlock.h"
#include "isolate/common/mount-api.h"
#include "isolate/common/seccomp.h"
#include "isolate/container/build.h"
#include "isolate/launch.h"

#define EXIT_INSIDE_FAILED 125
#define INOTIFY_INSTANCES "64"
/* Not 0: the kernel starts a core handler (core_pattern with a pipe) in spite of 0, as the host's root. With 1 it doesn't, and
 * writes no file either. */
#define CORE_OFF 1
/* When the host runs out of memory, boxes go before the host's own programs. */
#define OOM_SCORE "500"

static int stage_view(struct build *b, struct err *err)
{
	if (sethostname(b->spec.hostname, strlen(b->spec.hostname)) < 0 || setdomainname("", 0) < 0)
		return err_sys(err, errno, "can't set the box's host name");
	/* As root the copy of the mount namespace is still a peer of the host's: nothing may travel from here to there. */
	if (mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0)
		return err_sys(err, errno, "can't make the box's mounts private");
	if (view_open_sources(b, err) < 0 || view_begin(b, err) < 0 || view_add_files(b, err) < 0)
		return -1;
	if (view_add_etc(b, err) < 0 || view_add_dev(b, err) < 0)
		return -1;
	return view_add_mounts(b, err) < 0 ? -1 : view_add_proc(b, err);
}

static int take_prepared(struct build *b, struct err *err)
{
	struct launch_message m;
	int r;
	launch_message_init(&m);
	while ((r = launch_receive(b->report_fd, &m, err)) == 0)
		;
	struct cursor c = cursor_make(m.body.data, m.body.len);
	if (r > 0 && (cursor_u32(&c) != LAUNCH_PREPARED || m.n_fds < 2 || m.n_fds > 2 + CGROUP_PARTS_MAX))
		r = err_set(err, ERR_PROTOCOL, "the launcher's message to the box's first process can't be read");
	if (r > 0) {
		b->box_userns = fd_steal(&m.fds[0]);
		b->box_netns = fd_steal(&m.fds[1]);
		for (b->n_tasks = 0; b->n_tasks < m.n_fds - 2; b->n_tasks++)
			b->tasks_fd[b->n_tasks] = fd_steal(&m.fds[2 + b->n_tasks]);
	}
	launch_message_done(&m);
	return r < 0 ? -1 : 0;
}

/* Knobs of the box's own network: the agent listens on low ports without any privilege, and on addresses that are only routed
 * to loopback. */
static int set_network_knobs(int proc_fd, struct err *err)
{
	if (fd_write_file_at(proc_fd, "sys/net/ipv4/ip_unprivileged_port_start", "0", err) < 0)
		return -1;
	if (faccessat(proc_fd, "sys/net/ipv6/ip_nonlocal_bind", F_OK, 0) < 0)
		return 0;
	return fd_write_file_at(proc_fd, "sys/net/ipv6/ip_nonlocal_bind", "1", err);
}

static int stage_join(struct build *b, struct err *err)
{
	if (take_prepared(b, err) < 0)
		return -1;
	/* A real-time caller's box is no real-time box, and the cpu cgroup wouldn't take it. */
	const struct sched_param ordinary = { 0 };
	/* Directly: musl's function refuses, for what it means to a single thread. */
	if (syscall(SYS_sched_setscheduler, 0, SCHED_OTHER, &ordinary) < 0)
		return err_sys(err, errno, "can't leave real-time scheduling");
	for (size_t i = 0; i < b->n_tasks; i++) {
		int r = fd_write_full(b->tasks_fd[i], "0", 1);
		if (r < 0)
			return err_sys(err, -r, "can't join the box's cgroup");
		fd_close(&b->tasks_fd[i]);
	}
	/* After the cgroup is joined: the box sees that one as the root. */
	if (unshare(CLONE_NEWCGROUP) < 0)
		return err_sys(err, errno, "can't create the box's cgroup namespace");
	if (setns(b->box_netns, CLONE_NEWNET) < 0)
		return err_sys(err, errno, "can't enter the box's network namespace");
	fd_close(&b->box_netns);
	return set_network_knobs(b->proc_fd, err);
}

static int stage_leave(struct build *b, struct err *err)
{
	return view_finish(b, err);
}

static int stage_shed(struct build *b, struct err *err)
{
	if (setns(b->box_userns, CLONE_NEWUSER) < 0)
		return err_sys(err, errno, "can't enter the box's user namespace");
	if (fd_write_file_at(b->proc_fd, "self/oom_score_adj", OOM_SCORE, err) < 0)
		return -1;
	/* Two second locks besides the system call filter's: no keys of the supervisor's session (as far as the user's quota of
	 * keyrings goes), and no user namespaces. */
	syscall(SYS_keyctl, KEYCTL_JOIN_SESSION_KEYRING, NULL);
	if (fd_write_file_at(b->proc_fd, "sys/user/max_user_namespaces", "0", err) < 0)
		return err_wrap(err, "can't close user namespaces inside the box");
	/* An ordinary user's box draws on that user's own number (128 as a rule), which the desktop needs too. As root each box has its own. */
	if (!b->spec.privileged && fd_write_file_at(b->proc_fd, "sys/user/max_inotify_instances", INOTIFY_INSTANCES, err) < 0)
		return err_wrap(err, "can't limit inotify instances inside the box");
	fd_close(&b->proc_fd);
	return privilege_drop(SPEC_INSIDE_ID, SPEC_INSIDE_ID, b->spec.privileged, err);
}

static int open_writable(struct build *b, int fds[], size_t *n, struct err *err)
{
	static const char *const places[] = { "/tmp", "/var/tmp", "/run", "/home/agent", "/dev", "/proc" };
	for (size_t i = 0; i < ARRAY_LEN(places) + b->spec.n_mounts; i++) {
		bool own = i < ARRAY_LEN(places);
		const struct spec_mount *m = own ? NULL : &b->spec.mounts[i - ARRAY_LEN(places)];
		if (m && m->mode == MOUNT_RO)
			continue;
		const char *path = m ? m->target : places[i];
		fds[*n] = open(path, O_PATH | O_NOFOLLOW | O_CLOEXEC);
		if (fds[*n] < 0)
			return err_sys(err, errno, "can't open %s inside the box", path);
		(*n)++;
	}
	return 0;
}

static int lock_files(struct build *b, struct err *err)
{
	int fds[SPEC_MOUNTS_MAX + 8] = { 0 };
	size_t n = 0;
	int r = open_writable(b, fds, &n, err);
	if (r == 0)
		r = landlock_confine(fds, n, err);
	while (n > 0)
		fd_close(&fds[--n]);
	return r;
}

static int limit(int resource, rlim_t value, const char *name, struct err *err)
{
	const struct rlimit l = { value, value };
	return setrlimit(resource, &l) < 0 ? err_sys(err, errno, "can't set the box's %s", name) : 0;
}

/* The kernel forgets PDEATHSIG when credentials change, so it is asked for now; whoever died before that moment left a closed
 * pipe. */
static int tie_to_supervisor(const struct build *b, struct err *err)
{
	struct pollfd p = { .fd = b->pipe_fd, .events = POLLIN };
	if (prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0) < 0)
		return err_sys(err, errno, "can't tie the box to its supervisor");
	if (poll(&p, 1, 0) > 0 && (p.revents & POLLHUP))
		return err_set(err, ERR_CLOSED, "the supervisor is gone");
	return 0;
}

/* 0, 1, 2 are the box's own null device, AGENT_PIPE_FD the pipe; everything else ends with exec. */
static int arrange_descriptors(struct build *b, struct err *err)
{
	cleanup_fd int null = open("/dev/null", O_RDWR | O_CLOEXEC);
	if (null < 0)
		return err_sys(err, errno, "can't open the box's /dev/null");
	for (int fd = 0; fd <= 2; fd++)
		if (dup2(null, fd) < 0)
			return err_sys(err, errno, "can't redirect descriptor %d of the agent", fd);
	if (dup2(b->pipe_fd, AGENT_PIPE_FD) < 0)
		return err_sys(err, errno, "can't place the agent's pipe");
	if (close_range(AGENT_PIPE_FD + 1, ~0U, CLOSE_RANGE_CLOEXEC) < 0)
		return err_sys(err, errno, "can't mark descriptors close-on-exec (close_range, Linux 5.11)");
	return 0;
}

static int stage_lock(struct build *b, struct err *err)
{
	if (lock_files(b, err) < 0 || limit(RLIMIT_CORE, CORE_OFF, "core file limit", err) < 0)
		return -1;
	if (b->nproc > 0 && limit(RLIMIT_NPROC, b->nproc, "process limit", err) < 0)
		return -1;
	if (tie_to_supervisor(b, err) < 0 || arrange_descriptors(b, err) < 0)
		return -1;
	umask(022);
	if (prctl(PR_SET_DUMPABLE, 0, 0, 0, 0) < 0)
		return err_sys(err, errno, "can't make the agent unreadable");
	return 0;
}

static int report_built(struct build *b, int listener, struct err *err)
{
	int fds[LAUNCH_FDS_MAX];
	size_t n = 0;
	struct buf body;
	fds[n++] = listener;
	fds[n++] = b->disk_fd;
	for (size_t i = 0; i < b->n_lower; i++)
		fds[n++] = b->lower_fd[i];
	buf_init(&body, 64);
	buf_put_u32(&body, LAUNCH_ANSWER_BUILT);
	buf_put_u32(&body, 0);
	buf_put_u32(&body, (uint32_t)b->n_lower);
	int r = launch_send(b->report_fd, &body, fds, n, err);
	buf_free(&body);
	return r;
}

static int stage_become(struct build *b, struct err *err)
{
	static char *argv[] = { (char *)(uintptr_t) "bulkhead-agent", NULL };
	static char *envp[] = { NULL };
	cleanup_fd int listener = seccomp_install(err);
	if (listener < 0 || report_built(b, listener, err) < 0)
		return -1;
	fd_close(&listener);
	syscall(SYS_execveat, b->agent_fd, "", argv, envp, AT_EMPTY_PATH);
	return err_sys(err, errno, "can't start the agent (%s)", b->agent_path);
}

static void __attribute__((noreturn)) report_failure(struct build *b, const struct err *failure)
{
	struct buf body;
	buf_init(&body, LAUNCH_MESSAGE_MAX);
	if (launch_failed_encode(&body, failure) == 0)
		launch_send(b->report_fd, &body, NULL, 0, NULL);
	_exit(EXIT_INSIDE_FAILED);
}

void inside_main(struct build *b)
{
	static int (*const stages[])(
		struct build *, struct err *) = { stage_view, stage_join, stage_leave, stage_shed, stage_lock, stage_become };
	struct err err = ERR_INIT;
	prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0);
	setsid();
	umask(0);
	for (size_t i = 0; i < ARRAY_LEN(stages); i++)
		if (stages[i](b, &err) < 0)
			break;
	report_failure(b, &err);
}
