/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/init.h"

#include <errno.h>
#include <signal.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/mem.h"

/* A fork bomb may die faster than it can be collected: after so many the loop gets its turn, so that the streams go on. */
enum { REAP_BATCH = 64 };

struct reaper {
	int fd;
	struct loop_io *io;
	struct loop_timer *again;
	reaper_fn fn;
	void *ctx;
};

bool reaper_collect(struct reaper *r)
{
	for (int i = 0; i < REAP_BATCH; i++) {
		int status;
		pid_t pid = waitpid(-1, &status, WNOHANG);
		if (pid <= 0)
			return pid < 0 && errno == ECHILD;
		r->fn(r->ctx, pid, status);
	}
	loop_timer_set(r->again, 0, 0);
	return false;
}

static void on_again(void *ctx)
{
	reaper_collect(ctx);
}

static void on_signal(void *ctx, int fd, int ready)
{
	struct signalfd_siginfo info;
	while (read(fd, &info, sizeof(info)) == sizeof(info))
		; /* SIGCHLD doesn't queue: one entry stands for any number of children */
	reaper_collect(ctx);
}

struct reaper *reaper_new(struct loop *loop, reaper_fn fn, void *ctx, struct err *err)
{
	int fd = loop_signalfd(err, SIGCHLD, 0);
	if (fd < 0)
		return NULL;
	struct reaper *r = mem_alloc(sizeof(*r));
	*r = (struct reaper){ .fd = fd, .fn = fn, .ctx = ctx };
	r->io = loop_io_add(loop, fd, LOOP_READ, on_signal, r);
	r->again = loop_timer_new(loop, on_again, r);
	return r;
}

struct reaper *reaper_free(struct reaper *r)
{
	if (!r)
		return NULL;
	loop_io_remove(r->io);
	loop_timer_free(r->again);
	fd_close(&r->fd);
	return mem_free(r);
}

void init_ignore_signals(void)
{
	signal(SIGPIPE, SIG_IGN);
}

void init_kill_all(void)
{
	if (getpid() == 1)
		kill(-1, SIGKILL);
}
