/* SPDX-License-Identifier: Apache-2.0 */
#include "gate/dial.h"

#include <errno.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

#include "base/fd.h"
#include "base/mem.h"
#include "base/text.h"

#define STAGGER_NS (250 * NS_PER_MS)
#define TIMEOUT_NS (15 * NS_PER_S)

struct attempt {
	struct dial *dial;
	struct ip ip;
	int fd;
	struct loop_io *io;
};

struct dial {
	struct loop *loop;
	struct attempt attempts[DIAL_ADDRESSES_MAX];
	size_t n, started, running;
	uint16_t port;
	int last_error;
	struct loop_timer *stagger, *deadline;
	dial_fn fn;
	void *ctx;
};

static void attempt_end(struct attempt *a)
{
	if (a->fd >= 0)
		a->dial->running--;
	a->io = loop_io_remove(a->io);
	fd_close(&a->fd);
}

struct dial *dial_cancel(struct dial *d)
{
	if (!d)
		return NULL;
	for (size_t i = 0; i < d->n; i++)
		attempt_end(&d->attempts[i]);
	loop_timer_free(d->stagger);
	loop_timer_free(d->deadline);
	return mem_free(d);
}

static void finish(struct dial *d, int fd, const struct ip *ip, int sysno)
{
	dial_fn fn = d->fn;
	void *ctx = d->ctx;
	struct ip reached = ip ? *ip : (struct ip){ 0 };
	dial_cancel(d);
	fn(ctx, fd, fd >= 0 ? &reached : NULL, sysno);
}

static void won(struct attempt *a)
{
	int one = 1, fd = fd_steal(&a->fd);
	a->dial->running--;
	a->io = loop_io_remove(a->io);
	setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
	setsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &one, sizeof(one));
	finish(a->dial, fd, &a->ip, 0);
}

static void start_next(struct dial *d);

static void on_connected(void *ctx, int fd, int ready)
{
	struct attempt *a = ctx;
	struct dial *d = a->dial;
	int error = 0;
	socklen_t len = sizeof(error);
	if (getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &len) < 0)
		error = errno;
	if (error == 0) {
		won(a);
		return;
	}
	d->last_error = error;
	attempt_end(a);
	start_next(d);
}

/* 0, or an errno. */
static int attempt_start(struct dial *d, struct attempt *a)
{
	struct sockaddr_storage to;
	socklen_t len;
	ip_to_sockaddr(&a->ip, d->port, &to, &len);
	a->fd = socket(a->ip.family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	if (a->fd < 0)
		return errno;
	d->running++;
	if (connect(a->fd, (struct sockaddr *)&to, len) < 0 && errno != EINPROGRESS) {
		int e = errno;
		attempt_end(a);
		return e;
	}
	a->io = loop_io_add(d->loop, a->fd, LOOP_WRITE, on_connected, a);
	return 0;
}

/* From the loop only: it may end the dial. */
static void start_next(struct dial *d)
{
	while (d->started < d->n) {
		int e = attempt_start(d, &d->attempts[d->started++]);
		if (e == 0) {
			loop_timer_set(d->stagger, STAGGER_NS, 0);
			return;
		}
		d->last_error = e;
	}
	if (d->running == 0)
		finish(d, -1, NULL, d->last_error ? d->last_error : EHOSTUNREACH);
}

static void on_stagger(void *ctx) { start_next(ctx); }

static void on_deadline(void *ctx) { finish(ctx, -1, NULL, ETIMEDOUT); }

struct dial *dial_start(struct loop *loop, const struct ip *addresses, size_t n, uint16_t port, dial_fn fn, void *ctx)
{
	struct dial *d = mem_alloc(sizeof(*d));
	d->loop = loop;
	d->port = port;
	d->fn = fn;
	d->ctx = ctx;
	d->n = n < DIAL_ADDRESSES_MAX ? n : DIAL_ADDRESSES_MAX;
	for (size_t i = 0; i < d->n; i++)
		d->attempts[i] = (struct attempt){ .dial = d, .ip = addresses[i], .fd = -1 };
	d->stagger = loop_timer_new(loop, on_stagger, d);
	d->deadline = loop_timer_new(loop, on_deadline, d);
	loop_timer_set(d->deadline, TIMEOUT_NS, 0);
	/* The first attempt right here; if it fails at once, the rest of the story is told from the loop. */
	int e = d->n ? attempt_start(d, &d->attempts[d->started++]) : EHOSTUNREACH;
	if (e)
		d->last_error = e;
	loop_timer_set(d->stagger, e ? 1 : STAGGER_NS, 0);
	return d;
}
