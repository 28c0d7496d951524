/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The child shares our memory until it has exec'd (vfork: no page table is copied, which is what makes starting cheap), while
 * we are suspended. So everything it needs is computed before; in between it makes system calls only, and tells by a plain
 * variable which one failed.
 */
#include "event/child.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/mem.h"
#include "base/signal.h"
#include "base/text.h"

#define CHILD_FDS_MAX 64

enum stage { STAGE_NONE, STAGE_SIGNALS, STAGE_PARENT_GONE, STAGE_SESSION, STAGE_DESCRIPTORS, STAGE_EXEC, STAGE_MAX };

static const char *const stage_names[STAGE_MAX] = {
	[STAGE_NONE] = "start",
	[STAGE_SIGNALS] = "set the signals of",
	[STAGE_PARENT_GONE] = "outlive the parent of",
	[STAGE_SESSION] = "make a new session for",
	[STAGE_DESCRIPTORS] = "arrange the descriptors of",
	[STAGE_EXEC] = "execute",
};

struct plan {
	const struct child_spec *spec;
	pid_t parent;
	struct child_fd fds[CHILD_FDS_MAX]; /* rising by `as` */
	size_t n_fds;
	int above;                          /* higher than every `as` and every standard descriptor */
	volatile enum stage stage;          /* written by the child */
	volatile int error;
};

static int make_plan(const struct child_spec *spec, struct plan *plan, struct err *err)
{
	*plan = (struct plan){ .spec = spec, .parent = getpid(), .above = 3 };
	if (spec->n_fds > CHILD_FDS_MAX)
		return err_set(err, ERR_LIMIT, "%s is to be given %zu descriptors, but at most %d can be passed on",
			       spec->path, spec->n_fds, CHILD_FDS_MAX);
	for (size_t i = 0; i < spec->n_fds; i++) {
		struct child_fd f = spec->fds[i];
		size_t at = plan->n_fds++;
		for (; at > 0 && plan->fds[at - 1].as >= f.as; at--)
			plan->fds[at] = plan->fds[at - 1];
		plan->fds[at] = f;
		if (f.fd < 0 || f.as < 0 || (at + 1 < plan->n_fds && plan->fds[at + 1].as == f.as))
			return err_set(err, ERR_USAGE, "descriptor number %d of %s is given twice or not at all", f.as,
				       spec->path);
		if (f.as >= plan->above)
			plan->above = f.as + 1;
	}
	return 0;
}

__attribute__((noreturn))
static void child_fail(struct plan *plan, enum stage stage, int error)
{
	plan->error = error;
	plan->stage = stage;
	_exit(127);
}

static void child_signals(struct plan *plan)
{
	/* Caught signals become default by exec, ignored ones would stay ignored. All are blocked now, so no handler of ours
	 * runs here. */
	signal_reset_all();
	if (plan->spec->death_signal && prctl(PR_SET_PDEATHSIG, plan->spec->death_signal) < 0)
		child_fail(plan, STAGE_SIGNALS, errno);
	/* The parent may have died before the line above: then no signal will ever come. 0 is a parent outside of our pid
	 * namespace. */
	pid_t parent = getppid();
	if (plan->spec->death_signal && parent != plan->parent && parent != 0)
		child_fail(plan, STAGE_PARENT_GONE, ESRCH);
}

static bool is_mapped(const struct plan *plan, int number)
{
	for (size_t i = 0; i < plan->n_fds; i++)
		if (plan->fds[i].as == number)
			return true;
	return false;
}

/* 0, 1 and 2 are always open afterwards: a closed one would be taken by the next file that the program opens, and get its
 * messages. */
static void child_stdio(struct plan *plan)
{
	int null = -1;
	for (int fd = 0; fd <= 2; fd++) {
		if (is_mapped(plan, fd))
			continue;
		bool keep = plan->spec->keep_stdio || fd == STDERR_FILENO;
		if (keep && fcntl(fd, F_SETFD, 0) == 0)
			continue;
		if (null < 0 && (null = open("/dev/null", O_RDWR | O_CLOEXEC | O_NOCTTY)) < 0)
			child_fail(plan, STAGE_DESCRIPTORS, errno);
		if (null == fd ? fcntl(fd, F_SETFD, 0) < 0 : dup2(null, fd) < 0)
			child_fail(plan, STAGE_DESCRIPTORS, errno);
	}
}

static void close_between(struct plan *plan, unsigned first, unsigned last)
{
	if (first <= last && syscall(SYS_close_range, first, last, 0) < 0)
		child_fail(plan, STAGE_DESCRIPTORS, errno);
}

static void child_descriptors(struct plan *plan)
{
	/* First out of the way of every target number, so that no dup2 overwrites a source that is still needed. */
	for (size_t i = 0; i < plan->n_fds; i++) {
		int high = fcntl(plan->fds[i].fd, F_DUPFD_CLOEXEC, plan->above);
		if (high < 0)
			child_fail(plan, STAGE_DESCRIPTORS, errno);
		plan->fds[i].fd = high;
	}
	for (size_t i = 0; i < plan->n_fds; i++)
		if (dup2(plan->fds[i].fd, plan->fds[i].as) < 0)
			child_fail(plan, STAGE_DESCRIPTORS, errno);
	child_stdio(plan);
	unsigned next = 3;
	for (size_t i = 0; i < plan->n_fds; i++) {
		unsigned as = (unsigned)plan->fds[i].as;
		if (as < 3)
			continue;
		close_between(plan, next, as - 1);
		next = as + 1;
	}
	close_between(plan, next, UINT_MAX);
}

__attribute__((noreturn, noinline))
static void child_main(struct plan *plan)
{
	child_signals(plan);
	if (plan->spec->new_session && setsid() < 0)
		child_fail(plan, STAGE_SESSION, errno);
	child_descriptors(plan);
	sigset_t none;
	sigemptyset(&none);
	if (sigprocmask(SIG_SETMASK, &none, NULL) < 0)
		child_fail(plan, STAGE_SIGNALS, errno);
	execve(plan->spec->path, plan->spec->argv, plan->spec->envp);
	child_fail(plan, STAGE_EXEC, errno);
}

/* In a function of its own, so that no local of the caller lives across vfork in a register that the child could change. */
__attribute__((noinline))
static pid_t start(struct plan *plan)
{
	pid_t pid = vfork();
	if (pid == 0)
		child_main(plan);
	return pid;
}

/* A caller that ignores SIGCHLD would have our children reaped by the kernel: their status lost, their pid free for others. */
static void keep_zombies(void)
{
	struct sigaction sa;
	if (sigaction(SIGCHLD, NULL, &sa) == 0 && (sa.sa_handler == SIG_IGN || (sa.sa_flags & SA_NOCLDWAIT)))
		signal(SIGCHLD, SIG_DFL);
}

static void reap(pid_t pid)
{
	while (waitpid(pid, NULL, 0) < 0 && errno == EINTR)
		;
}

int child_start(const struct child_spec *spec, pid_t *ret_pid, int *ret_pidfd, struct err *err)
{
	struct plan plan;
	if (make_plan(spec, &plan, err) < 0)
		return -1;
	keep_zombies();
	sigset_t all, before;
	sigfillset(&all);
	sigprocmask(SIG_SETMASK, &all, &before);
	pid_t pid = start(&plan);
	int error = errno;
	sigprocmask(SIG_SETMASK, &before, NULL);
	if (pid < 0)
		return err_sys(err, error, "cannot create a process for %s", spec->path);
	if (plan.stage != STAGE_NONE) {
		reap(pid);
		return err_sys(err, plan.error, "cannot %s %s", stage_names[plan.stage], spec->path);
	}
	/* Not yet reaped, so the number can't have been given to another process. */
	int pidfd = (int)syscall(SYS_pidfd_open, pid, 0);
	if (pidfd < 0) {
		error = errno;
		kill(pid, SIGKILL);
		reap(pid);
		return err_sys(err, error, "cannot get a handle on the process of %s", spec->path);
	}
	*ret_pid = pid;
	*ret_pidfd = pidfd;
	return 0;
}

int child_wait(int pidfd, int *ret_status)
{
	siginfo_t info;
	while (waitid(P_PIDFD, (id_t)pidfd, &info, WEXITED) < 0)
		if (errno != EINTR)
			return -errno;
	if (info.si_code == CLD_EXITED)
		*ret_status = (info.si_status & 0xff) << 8;
	else
		*ret_status = info.si_status | (info.si_code == CLD_DUMPED ? 0x80 : 0);
	return 0;
}

bool child_wait_bounded(int pidfd, uint64_t timeout_ns, int *ret_status)
{
	uint64_t deadline = time_monotonic_ns() + timeout_ns;
	for (;;) {
		uint64_t now = time_monotonic_ns();
		uint64_t left = now < deadline ? deadline - now : 0;
		struct timespec ts = { .tv_sec = (time_t)(left / NS_PER_S), .tv_nsec = (long)(left % NS_PER_S) };
		struct pollfd p = { .fd = pidfd, .events = POLLIN };
		int n = ppoll(&p, 1, &ts, NULL);
		if (n > 0)
			return child_wait(pidfd, ret_status) == 0;
		if (n == 0 || errno != EINTR)
			return false;
	}
}

static bool is_program(const char *path)
{
	struct stat st;
	return stat(path, &st) == 0 && S_ISREG(st.st_mode) && access(path, X_OK) == 0;
}

/* The folder that this very program was started from; NULL when /proc isn't there. */
static char *own_folder(void)
{
	char path[PATH_MAX];
	ssize_t n = readlink("/proc/self/exe", path, sizeof(path) - 1);
	if (n <= 0)
		return NULL;
	path[n] = '\0';
	char *slash = strrchr(path, '/');
	return slash ? mem_strndup(path, (size_t)(slash - path)) : NULL;
}

char *child_find_program(const char *name, struct err *err)
{
	const char *chosen = secure_getenv("BULKHEAD_LIBEXEC");
	if (chosen) {
		/* Named on purpose, so there is no looking elsewhere. */
		cleanup_free char *path = path_join(chosen, name);
		if (chosen[0] == '/' && is_program(path))
			return mem_steal(&path);
		err_set(err, ERR_NOT_FOUND, "%s is not a program; BULKHEAD_LIBEXEC must name the folder (absolute) that holds it",
			path);
		return NULL;
	}
	cleanup_free char *folder = own_folder();
	cleanup_free char *beside = path_join(folder ? folder : BULKHEAD_LIBEXEC_DIR, name);
	if (is_program(beside))
		return mem_steal(&beside);
	cleanup_free char *installed = path_join(BULKHEAD_LIBEXEC_DIR, name);
	if (is_program(installed))
		return mem_steal(&installed);
	err_set(err, ERR_NOT_FOUND,
		"the program %s is neither beside this one (%s) nor in %s; reinstall, or set BULKHEAD_LIBEXEC to its folder",
		name, beside, BULKHEAD_LIBEXEC_DIR);
	return NULL;
}
