/* SPDX-License-Identifier: Apache-2.0 */
/* At other processes: the agent inside, anybody outside. */
#include <errno.h>
#include <fcntl.h>
#include <linux/ioprio.h>
#include <linux/kcmp.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

#include "probe.h"

static char buffer[64];
static const struct iovec here = { buffer, sizeof(buffer) }, there = { (void *)0x400000, sizeof(buffer) };

static char agent_state(void)
{
	char text[256] = "";
	int fd = open("/proc/1/stat", O_RDONLY);
	ssize_t n = fd < 0 ? -1 : read(fd, text, sizeof(text) - 1);
	char *paren = n > 0 ? strrchr(text, ')') : NULL;
	if (fd >= 0)
		close(fd);
	return paren ? paren[2] : '?';
}

/* The agent's end would be ours too, so whoever gets as far as the answer has shown that it lives. */
static void strike(int first, int last)
{
	for (int sig = first; sig <= last; sig++)
		kill(1, sig);
	usleep(50000);
	char state = agent_state();
	if (state == 'T' || state == 'Z' || state == '?')
		succeeded("the agent is in state %c", state);
	refused_by("the agent goes on");
}

static void kill_agent(void) { strike(SIGKILL, SIGKILL); }
static void stop_agent(void) { strike(SIGSTOP, SIGSTOP); }
static void signal_agent(void) { strike(1, 64); }

static void kill_outside(void) { conclude(kill((pid_t)number_argument("pid"), SIGKILL), "a process outside was signalled"); }
static void queue_outside(void)
{
	siginfo_t info = { .si_code = SI_QUEUE };
	conclude(syscall(SYS_rt_sigqueueinfo, number_argument("pid"), SIGKILL, &info), "a process outside was signalled");
}
static void pidfd_outside(void) { conclude(syscall(SYS_pidfd_open, number_argument("pid"), 0), "a pidfd of a process outside"); }
static void group_outside(void) { conclude(kill((pid_t)-number_argument("pid"), SIGKILL), "a process group outside was signalled"); }
static void affinity_outside(void)
{
	cpu_set_t set;
	CPU_ZERO(&set);
	CPU_SET(0, &set);
	conclude(sched_setaffinity((pid_t)number_argument("pid"), sizeof(set), &set), "a process outside was moved to another cpu");
}
static void limits_outside(void)
{
	struct rlimit limit;
	conclude(prlimit((pid_t)number_argument("pid"), RLIMIT_NOFILE, NULL, &limit), "the limits of a process outside");
}
static void see_outside(void)
{
	char path[64];
	snprintf(path, sizeof(path), "/proc/%ld/cmdline", number_argument("pid"));
	conclude(open(path, O_RDONLY), "a process outside is visible");
}

static void take_descriptor(void)
{
	int pidfd = (int)syscall(SYS_pidfd_open, 1, 0);
	if (pidfd < 0)
		broken("no pidfd of the agent");
	conclude(syscall(SYS_pidfd_getfd, pidfd, 3, 0), "the agent's pipe");
}

static void limit_agent(void)
{
	const struct rlimit none = { 0, 0 };
	conclude(prlimit(1, RLIMIT_CPU, &none, NULL), "the agent's limits were changed");
}

/* Even a child of one's own: the tracer of a set-up process sees and changes its system calls. */
static void trace_child(void)
{
	pid_t pid = fork();
	if (pid == 0) {
		pause();
		_exit(0);
	}
	long r = ptrace(PTRACE_SEIZE, pid, 0, 0);
	int saved = errno;
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
	errno = saved;
	conclude(r, "tracing a child");
}

static void raise_nice(void) { conclude(setpriority(PRIO_PROCESS, 0, -10), "more than its share of the processor"); }
static void realtime(void)
{
	const struct sched_param p = { .sched_priority = 10 };
	conclude(sched_setscheduler(0, SCHED_FIFO, &p), "real-time priority");
}
static void deadline(void)
{
	struct { unsigned size, policy; unsigned long flags; int nice; unsigned priority; unsigned long runtime, deadline, period; } attr = {
		.size = 48, .policy = 6, .runtime = 1000000, .deadline = 10000000, .period = 10000000 };
	conclude(syscall(SYS_sched_setattr, 0, &attr, 0), "deadline scheduling");
}
static void io_realtime(void)
{
	conclude(syscall(SYS_ioprio_set, IOPRIO_WHO_PROCESS, 0, IOPRIO_PRIO_VALUE(IOPRIO_CLASS_RT, 0)), "real-time priority for disks");
}

static const struct attempt rows[] = {
	{ "ptrace-attach", "ptrace", "EPERM", NULL, SYS_ptrace, { PTRACE_ATTACH, 1, 0, 0 } },
	{ "ptrace-seize", "ptrace", "EPERM", NULL, SYS_ptrace, { PTRACE_SEIZE, 1, 0, 0 } },
	{ "ptrace-traceme", "ptrace", "EPERM", NULL, SYS_ptrace, { PTRACE_TRACEME, 0, 0, 0 } },
	{ "ptrace-child", "ptrace", "EPERM", trace_child },
	{ "vm-read-agent", "process_vm_readv", "EPERM", NULL, SYS_process_vm_readv, { 1, (long)&here, 1, (long)&there, 1, 0 } },
	{ "vm-write-agent", "process_vm_writev", "EPERM", NULL, SYS_process_vm_writev, { 1, (long)&here, 1, (long)&there, 1, 0 } },
	{ "kcmp-agent", "kcmp", "EPERM", NULL, SYS_kcmp, { 1, 1, KCMP_FILE, 0, 3 } },
	{ "pidfd-getfd", "pidfd_getfd", "EPERM", take_descriptor },
	{ "madvise-agent", "process_madvise", "EPERM", NULL, SYS_process_madvise, { 0, (long)&there, 1, 21, 0 } },
	{ "kill-agent", NULL, "ok", kill_agent },
	{ "stop-agent", NULL, "ok", stop_agent },
	{ "signal-agent", NULL, "ok", signal_agent },
	{ "limit-agent", "prlimit64", "EPERM", limit_agent },
	{ "kill-outside", NULL, "ESRCH", kill_outside },
	{ "queue-outside", NULL, "ESRCH", queue_outside },
	{ "pidfd-outside", NULL, "ESRCH|EINVAL", pidfd_outside },
	{ "killpg-outside", NULL, "ESRCH", group_outside },
	{ "affinity-out", NULL, "ESRCH", affinity_outside },
	{ "limits-outside", NULL, "ESRCH", limits_outside },
	{ "see-outside", NULL, "ENOENT", see_outside },
	{ "nice-negative", NULL, "EACCES|EPERM", raise_nice },
	{ "sched-fifo", NULL, "EPERM", realtime },
	{ "sched-deadline", NULL, "EPERM", deadline },
	{ "ioprio-realtime", NULL, "EPERM", io_realtime },
};
ATTEMPT_GROUP(process_attempts, "processes", rows);
