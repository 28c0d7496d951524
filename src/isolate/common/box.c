/* SPDX-License-Identifier: Apache-2.0 */
/* The end of a box, whatever built it. */
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/mem.h"
#include "base/text.h"
#include "isolate/cgroup.h"
#include "isolate/isolate.h"

#define REAP_TIMEOUT_NS (5 * NS_PER_S)

const struct isolate_backend *isolate_find(enum isolation_level level)
{
	return level == isolate_container.level ? &isolate_container : NULL;
}

/* A pidfd is readable when the process is dead; the kernel has by then killed the pid namespace below it. */
static int wait_dead(int pidfd, uint64_t timeout_ns)
{
	struct pollfd p = { .fd = pidfd, .events = POLLIN };
	int r;
	do
		r = poll(&p, 1, (int)(timeout_ns / NS_PER_MS));
	while (r < 0 && errno == EINTR);
	return r;
}

int box_kill(struct box *box, uint64_t timeout_ns, struct err *err)
{
	uint64_t end = time_monotonic_ns() + timeout_ns;
	if (box->pidfd >= 0) {
		/* Pid 1's death is the death of its namespace: the kernel kills every process in it, and pid 1 isn't dead
		 * before all are. */
		if (syscall(SYS_pidfd_send_signal, box->pidfd, SIGKILL, NULL, 0) < 0 && errno != ESRCH)
			return err_sys(err, errno, "can't kill sandbox %s", box->id);
		if (wait_dead(box->pidfd, timeout_ns) == 0)
			return err_set(err, ERR_TIMEOUT, "sandbox %s (process %d) doesn't die", box->id, (int)box->pid);
		/* Ours to collect; not everybody's pid 1 does it for others (containers). */
		siginfo_t info;
		waitid(P_PIDFD, (id_t)box->pidfd, &info, WEXITED | WNOHANG);
	}
	if (!box->cgroup)
		return 0;
	uint64_t now = time_monotonic_ns();
	return cgroup_kill(box->cgroup, now < end ? end - now : 0, err);
}

int box_teardown(struct box *box, struct err *err)
{
	int r = 0;
	if (box->cgroup) {
		r = cgroup_remove(box->cgroup, err);
		box->cgroup = cgroup_free(box->cgroup);
	}
	fd_close(&box->notify_fd);
	fd_close(&box->upper_fd);
	for (size_t i = 0; i < box->n_lower; i++)
		fd_close(&box->lower_fd[i]);
	box->n_lower = 0;
	fd_close(&box->pidfd);
	return r;
}

int isolate_reap(const char *id, bool dry_run, unsigned *ret_removed, struct err *err)
{
	struct err open_err = ERR_INIT;
	struct cgroup *cg = cgroup_open(id, &open_err);
	*ret_removed = 0;
	if (!cg)
		return 0;
	int r = 0;
	*ret_removed = 1;
	if (!dry_run)
		r = cgroup_kill(cg, REAP_TIMEOUT_NS, err) < 0 ? -1 : cgroup_remove(cg, err);
	cgroup_free(cg);
	return r;
}
