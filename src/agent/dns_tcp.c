/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/dns_tcp.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "agent/listener.h"
#include "base/fd.h"
#include "base/mem.h"
#include "base/text.h"
#include "net/dns.h"

enum { LENGTH_SIZE = 2, IDLE_S = 10, SWEEP_S = 2 };

struct dns_tcp_conn {
	struct dns_tcp *tcp;
	uint64_t serial;       /* 0: the slot is free */
	int fd;
	struct loop_io *io;
	uint64_t active_ns;
	bool busy;             /* a question is with the server */
	uint8_t in[LENGTH_SIZE + DNS_QUERY_MAX];
	size_t in_len;
	uint8_t out[LENGTH_SIZE + DNS_REPLY_MAX];
	size_t out_len, out_done;
};

struct dns_tcp {
	struct loop *loop;
	dns_tcp_fn fn;
	void *ctx;
	struct loop_timer *sweep;
	uint64_t last_serial;
	struct dns_tcp_conn *conns[DNS_TCP_MAX]; /* made when first needed, then kept: handles stay readable */
};

static void conn_close(struct dns_tcp_conn *c, bool reset)
{
	c->io = loop_io_remove(c->io);
	if (reset)
		listener_make_reset(c->fd);
	fd_close(&c->fd);
	c->serial = 0;
}

/* Bytes for one side are waited for at a time: a client that doesn't read its answers isn't read from either. */
static void conn_wait(struct dns_tcp_conn *c)
{
	loop_io_set(c->io, c->out_len > 0 ? LOOP_WRITE : c->busy ? 0 : LOOP_READ);
}

static void conn_flush(struct dns_tcp_conn *c)
{
	ssize_t n = write(c->fd, c->out + c->out_done, c->out_len - c->out_done);
	if (n < 0 && errno != EAGAIN && errno != EINTR) {
		conn_close(c, true);
		return;
	}
	c->out_done += n > 0 ? (size_t)n : 0;
	if (c->out_done == c->out_len)
		c->out_len = c->out_done = 0;
}

static size_t message_len(const struct dns_tcp_conn *c)
{
	return (size_t)c->in[0] << 8 | c->in[1];
}

/* Hands over the next whole message, if there is one and nothing else is under way. */
static void conn_advance(struct dns_tcp_conn *c)
{
	if (c->busy || c->out_len > 0 || c->in_len < LENGTH_SIZE)
		return;
	size_t len = message_len(c);
	if (len > DNS_QUERY_MAX) {
		conn_close(c, true);
		return;
	}
	if (c->in_len < LENGTH_SIZE + len)
		return;
	uint8_t message[DNS_QUERY_MAX];
	memcpy(message, c->in + LENGTH_SIZE, len);
	c->in_len -= LENGTH_SIZE + len;
	memmove(c->in, c->in + LENGTH_SIZE + len, c->in_len);
	c->busy = true;
	c->tcp->fn(c->tcp->ctx, c, c->serial, message, len);
}

static void conn_read(struct dns_tcp_conn *c)
{
	ssize_t n = read(c->fd, c->in + c->in_len, sizeof(c->in) - c->in_len);
	if (n == 0 || (n < 0 && errno != EAGAIN && errno != EINTR))
		conn_close(c, false);
	else if (n > 0)
		c->in_len += (size_t)n;
}

static void on_conn(void *ctx, int fd, int ready)
{
	struct dns_tcp_conn *c = ctx;
	uint64_t serial = c->serial;
	c->active_ns = time_monotonic_ns();
	if (c->out_len > 0)
		conn_flush(c);
	else
		conn_read(c);
	if (c->serial == serial)
		conn_advance(c);
	if (c->serial == serial)
		conn_wait(c);
}

void dns_tcp_reply(struct dns_tcp *t, struct dns_tcp_conn *c, uint64_t serial, const uint8_t *data, size_t len)
{
	if (c->serial != serial)
		return;
	if (len == 0 || len > DNS_REPLY_MAX) {
		conn_close(c, true);
		return;
	}
	c->busy = false;
	c->out[0] = (uint8_t)(len >> 8);
	c->out[1] = (uint8_t)len;
	memcpy(c->out + LENGTH_SIZE, data, len);
	c->out_len = LENGTH_SIZE + len;
	/* written when the loop says so: that also takes up the next question, without recursion */
	conn_wait(c);
}

/* ---- the table ---- */

static struct dns_tcp_conn *free_slot(struct dns_tcp *t)
{
	struct dns_tcp_conn *oldest = NULL;
	for (unsigned i = 0; i < DNS_TCP_MAX; i++) {
		if (!t->conns[i])
			t->conns[i] = mem_alloc(sizeof(*t->conns[i]));
		if (t->conns[i]->serial == 0)
			return t->conns[i];
		if (!oldest || t->conns[i]->active_ns < oldest->active_ns)
			oldest = t->conns[i];
	}
	conn_close(oldest, true);
	return oldest;
}

void dns_tcp_accepted(void *dns_tcp, int fd)
{
	struct dns_tcp *t = dns_tcp;
	struct dns_tcp_conn *c = free_slot(t);
	c->tcp = t;
	c->serial = ++t->last_serial;
	c->fd = fd;
	c->active_ns = time_monotonic_ns();
	c->busy = false;
	c->in_len = c->out_len = c->out_done = 0;
	c->io = loop_io_add(t->loop, fd, LOOP_READ, on_conn, c);
	loop_timer_set(t->sweep, SWEEP_S * NS_PER_S, SWEEP_S * NS_PER_S);
}

static void on_sweep(void *ctx)
{
	struct dns_tcp *t = ctx;
	uint64_t now = time_monotonic_ns();
	unsigned left = 0;
	for (unsigned i = 0; i < DNS_TCP_MAX; i++) {
		struct dns_tcp_conn *c = t->conns[i];
		if (c && c->serial && now - c->active_ns > IDLE_S * NS_PER_S)
			conn_close(c, true);
		left += c && c->serial;
	}
	if (left == 0)
		loop_timer_stop(t->sweep);
}

struct dns_tcp *dns_tcp_new(struct loop *loop, dns_tcp_fn fn, void *ctx)
{
	struct dns_tcp *t = mem_alloc(sizeof(*t));
	*t = (struct dns_tcp){ .loop = loop, .fn = fn, .ctx = ctx };
	t->sweep = loop_timer_new(loop, on_sweep, t);
	return t;
}

struct dns_tcp *dns_tcp_free(struct dns_tcp *t)
{
	if (!t)
		return NULL;
	for (unsigned i = 0; i < DNS_TCP_MAX; i++) {
		if (t->conns[i] && t->conns[i]->serial)
			conn_close(t->conns[i], true);
		mem_free(t->conns[i]);
	}
	loop_timer_free(t->sweep);
	return mem_free(t);
}
