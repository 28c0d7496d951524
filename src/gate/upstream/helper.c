/* SPDX-License-Identifier: Apache-2.0 */
#include "gate/upstream/helper.h"

#include <errno.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/mem.h"
#include "base/text.h"
#include "secrets/secret.h"

struct helper_call {
	struct loop *loop;
	uint64_t id;
	int fd;
	struct loop_io *io;
	struct loop_timer *deadline;
	struct buf output;
	helper_fn fn;
	void *ctx;
};

struct helper_call *helper_call_free(struct helper_call *c)
{
	if (!c)
		return NULL;
	loop_io_remove(c->io);
	fd_close(&c->fd);
	loop_timer_free(c->deadline);
	buf_wipe_free(&c->output);
	return mem_free(c);
}

static void finish(struct helper_call *c, const char *why)
{
	helper_fn fn = c->fn;
	void *ctx = c->ctx;
	struct buf output = c->output;
	buf_init(&c->output, 0);
	helper_call_free(c);
	fn(ctx, why ? NULL : &output, why);
	buf_wipe_free(&output);
}

static void on_deadline(void *ctx) { finish(ctx, "its helper didn't end within 60 s"); }

static void on_output(void *ctx, int fd, int ready)
{
	struct helper_call *c = ctx;
	void *to = buf_reserve(&c->output, 1);
	size_t room = to ? c->output.cap - c->output.len : 0;
	if (!room) {
		finish(c, "its helper wrote more than 64 KiB");
		return;
	}
	ssize_t n = read(fd, to, room);
	if (n > 0)
		buf_commit(&c->output, (size_t)n);
	else if (n == 0)
		finish(c, NULL);
	else if (errno != EAGAIN && errno != EINTR)
		finish(c, "its helper's output can't be read");
}

struct helper_call *helper_call_new(struct loop *loop, uint64_t id, helper_fn fn, void *ctx)
{
	struct helper_call *c = mem_alloc(sizeof(*c));
	*c = (struct helper_call){ .loop = loop, .id = id, .fd = -1, .fn = fn, .ctx = ctx };
	buf_init(&c->output, SECRET_FILE_MAX);
	c->deadline = loop_timer_new(loop, on_deadline, c);
	loop_timer_set(c->deadline, HELPER_DEADLINE_S * NS_PER_S, 0);
	return c;
}

uint64_t helper_call_id(const struct helper_call *c) { return c->id; }

void helper_call_started(struct helper_call *c, int fd)
{
	if (fd < 0) {
		finish(c, "its helper could not be started");
		return;
	}
	if (c->fd >= 0) {
		fd_close(&fd); /* answered twice */
		return;
	}
	c->fd = fd;
	fd_set_nonblock(fd, true);
	c->io = loop_io_add(c->loop, fd, LOOP_READ, on_output, c);
}
