/* SPDX-License-Identifier: Apache-2.0 */
#include "audit/client.h"

#include <errno.h>
#include <poll.h>
#include <string.h>
#include <sys/socket.h>

#include "audit/message.h"
#include "base/buf.h"
#include "base/fd.h"
#include "base/mem.h"
#include "base/text.h"

#define SOCKET_BUFFER (1024 * 1024)
#define GOODBYE_WAIT_MS 1000
#define ANSWERS_AT_ONCE 64u /* datagrams of answers before the loop has its turn */

/* Sent or queued, not yet answered; in order. */
struct pending {
	audit_done_fn done;
	void *ctx;
	size_t bytes;
};

/* Waiting for room in the socket; in order. */
struct queued {
	struct queued *next;
	size_t len;
	uint8_t data[];
};

struct audit_client {
	struct loop *loop;
	struct loop_io *io;
	int fd;
	audit_lost_fn on_lost;
	void *ctx;
	void (*on_room)(void *ctx);
	void *room_ctx;
	struct pending *ring;
	size_t ring_cap, ring_first, ring_n; /* capacity is a power of two */
	size_t pending_bytes;
	struct queued *queue, **queue_end;
	struct buf json;
	bool short_of_room;
	bool lost;
	struct err why;
	bool lose_soon;	  /* lost inside audit_client_send: told from the loop */
	unsigned calling; /* callbacks on the stack */
	bool freed;	  /* by one of them */
};

static void on_ready(void *ctx, int fd, int ready);
static void lose(struct audit_client *c, const struct err *why);

struct audit_client *audit_client_new(struct loop *loop, int fd, audit_lost_fn on_lost, void *ctx)
{
	struct audit_client *c = mem_alloc(sizeof(*c));
	int size = SOCKET_BUFFER;
	/* Only root may go beyond net.core.wmem_max. Smaller buffers cost speed, nothing else. */
	if (setsockopt(fd, SOL_SOCKET, SO_SNDBUFFORCE, &size, sizeof(size)) < 0)
		(void)!setsockopt(fd, SOL_SOCKET, SO_SNDBUF, &size, sizeof(size));
	c->loop = loop;
	c->fd = fd;
	c->on_lost = on_lost;
	c->ctx = ctx;
	c->queue_end = &c->queue;
	buf_init(&c->json, AUDIT_MESSAGE_MAX);
	c->io = loop_io_add(loop, fd, LOOP_READ, on_ready, c);
	return c;
}

static void drop_queue(struct audit_client *c)
{
	for (struct queued *q = c->queue, *next; q; q = next) {
		next = q->next;
		mem_free(q);
	}
	c->queue = NULL;
	c->queue_end = &c->queue;
}

static void release(struct audit_client *c)
{
	drop_queue(c);
	buf_free(&c->json);
	mem_free(c->ring);
	mem_free(c);
}

/* Callbacks run between these two. */
static void enter(struct audit_client *c)
{
	c->calling++;
}

static void leave(struct audit_client *c)
{
	if (--c->calling == 0 && c->freed && !c->lose_soon)
		release(c);
}

/* ---- sending ---- */

static ssize_t send_parts(int fd, struct iovec *iov, size_t n)
{
	struct msghdr msg = { .msg_iov = iov, .msg_iovlen = n };
	ssize_t r;
	do
		r = sendmsg(fd, &msg, MSG_DONTWAIT | MSG_NOSIGNAL);
	while (r < 0 && errno == EINTR);
	return r < 0 ? -errno : r;
}

static void set_gone(struct err *why, int sysno)
{
	err_set(why, ERR_CLOSED, "the auditor is gone (%s), so nothing can be recorded any more",
		sysno ? strerror(sysno) : "it closed its socket");
}

/* Sends what waits. 0, or -1 when the auditor is gone. */
static int flush_queue(struct audit_client *c, struct err *why)
{
	while (c->queue) {
		struct queued *q = c->queue;
		struct iovec iov = { q->data, q->len };
		ssize_t r = send_parts(c->fd, &iov, 1);
		if (r == -EAGAIN)
			break;
		if (r < 0) {
			set_gone(why, (int)-r);
			return -1;
		}
		c->queue = q->next;
		if (!c->queue)
			c->queue_end = &c->queue;
		mem_free(q);
	}
	return 0;
}

static void update_interest(struct audit_client *c)
{
	if (c->io)
		loop_io_set(c->io, LOOP_READ | (c->queue ? LOOP_WRITE : 0));
}

static void enqueue(struct audit_client *c, const struct iovec *iov, size_t n, size_t len)
{
	struct queued *q = mem_alloc(sizeof(*q) + len);
	uint8_t *p = q->data;
	for (size_t i = 0; i < n; i++)
		if (iov[i].iov_len > 0)
			p = mempcpy(p, iov[i].iov_base, iov[i].iov_len);
	q->len = len;
	*c->queue_end = q;
	c->queue_end = &q->next;
	update_interest(c);
}

static void ring_push(struct audit_client *c, struct pending p)
{
	if (c->ring_n == c->ring_cap) {
		size_t cap = c->ring_cap ? c->ring_cap * 2 : 64;
		struct pending *ring = mem_alloc_array(cap, sizeof(*ring));
		for (size_t i = 0; i < c->ring_n; i++)
			ring[i] = c->ring[(c->ring_first + i) & (c->ring_cap - 1)];
		mem_free(c->ring);
		c->ring = ring;
		c->ring_cap = cap;
		c->ring_first = 0;
	}
	c->ring[(c->ring_first + c->ring_n++) & (c->ring_cap - 1)] = p;
	c->pending_bytes += p.bytes;
}

static struct pending ring_pop(struct audit_client *c)
{
	struct pending p = c->ring[c->ring_first];
	c->ring_first = (c->ring_first + 1) & (c->ring_cap - 1);
	c->ring_n--;
	c->pending_bytes -= p.bytes;
	return p;
}

static int dump_chunk(const char *data, size_t len, void *ctx)
{
	return buf_append(ctx, data, len);
}

static int encode(struct audit_client *c, enum audit_type type, json_t *fields, size_t blob_len, struct err *err)
{
	if (audit_fields_check(type, fields, err) < 0)
		return -1;
	buf_clear(&c->json);
	bool fits = blob_len <= AUDIT_BLOB_MAX && buf_put_u32(&c->json, type) == 0 && buf_put_u32(&c->json, 0) == 0 &&
		    json_dump_callback(fields, dump_chunk, &c->json, JSON_COMPACT) == 0 &&
		    c->json.len + blob_len <= AUDIT_MESSAGE_MAX;
	if (!fits)
		return err_set(err, ERR_LIMIT, "the event %s is larger than the %u bytes that one event may have",
			audit_type_name(type), AUDIT_MESSAGE_MAX);
	uint32_t json_len = (uint32_t)(c->json.len - AUDIT_EVENT_HEAD);
	for (unsigned i = 0; i < 4; i++)
		c->json.data[4 + i] = (uint8_t)(json_len >> (24 - 8 * i));
	return 0;
}

static void lose_now(void *ctx)
{
	struct audit_client *c = ctx;
	struct err why = c->why;
	c->lose_soon = false;
	enter(c);
	if (!c->freed)
		lose(c, &why);
	leave(c);
}

/* Not from inside audit_client_send: its caller isn't ready for callbacks. */
static void lose_later(struct audit_client *c, const struct err *why)
{
	if (c->lose_soon)
		return;
	c->why = *why;
	c->lose_soon = true;
	loop_defer(c->loop, lose_now, c);
}

int audit_client_send(struct audit_client *c, enum audit_type type, json_t *fields, const void *blob, size_t blob_len,
	audit_done_fn done, void *done_ctx, struct err *err)
{
	if (c->lost || c->lose_soon) {
		json_decref(fields);
		return err_set(err, c->why.code, "%s", c->why.text);
	}
	int r = encode(c, type, fields, blob_len, err);
	json_decref(fields);
	if (r < 0)
		return -1;
	size_t len = c->json.len + blob_len;
	if (c->pending_bytes + len > AUDIT_PENDING_HARD)
		return err_set(err, ERR_LIMIT, "more than %u bytes of events wait to be recorded", AUDIT_PENDING_HARD);

	struct iovec iov[2] = { { c->json.data, c->json.len }, { (void *)blob, blob_len } };
	ssize_t sent = c->queue ? -EAGAIN : send_parts(c->fd, iov, 2);
	if (sent < 0 && sent != -EAGAIN) {
		struct err why;
		set_gone(&why, (int)-sent);
		lose_later(c, &why);
		return err_set(err, why.code, "%s", why.text);
	}
	if (sent == -EAGAIN)
		enqueue(c, iov, 2, len);
	ring_push(c, (struct pending){ done, done_ctx, len });
	audit_client_room(c);
	return 0;
}

size_t audit_client_room(struct audit_client *c)
{
	size_t room = c->pending_bytes < AUDIT_PENDING_MAX ? AUDIT_PENDING_MAX - c->pending_bytes : 0;
	if (room < AUDIT_MESSAGE_MAX)
		c->short_of_room = true;
	return room;
}

void audit_client_on_room(struct audit_client *c, void (*fn)(void *ctx), void *ctx)
{
	c->on_room = fn;
	c->room_ctx = ctx;
}

size_t audit_client_pending(const struct audit_client *c)
{
	return c->ring_n;
}

/* ---- answers ---- */

/* Within enter/leave. Everything that waits is told, then the owner. */
static void lose(struct audit_client *c, const struct err *why)
{
	if (c->lost)
		return;
	c->lost = true;
	c->why = *why;
	c->io = loop_io_remove(c->io);
	drop_queue(c);
	while (c->ring_n > 0 && !c->freed) {
		struct pending p = ring_pop(c);
		if (p.done)
			p.done(p.ctx, 0, &c->why);
	}
	if (!c->freed && c->on_lost)
		c->on_lost(c->ctx, &c->why);
}

static int take_written(struct audit_client *c, struct cursor *cur, struct err *why)
{
	if (cur->left % 8 != 0 || cur->left / 8 > c->ring_n)
		return err_set(why, ERR_PROTOCOL, "the auditor answered what was not asked");
	while (cur->left > 0 && !c->freed) {
		uint64_t seq = cursor_u64(cur);
		/* A done callback may have freed or lost the client. */
		if (c->ring_n == 0)
			break;
		struct pending p = ring_pop(c);
		if (p.done)
			p.done(p.ctx, seq, NULL);
	}
	return 0;
}

static int take_failed(struct cursor *cur, struct err *why)
{
	uint32_t code = cursor_u32(cur), sysno = cursor_u32(cur);
	if (cur->bad || code == ERR_NONE || code >= ERR_CODE_MAX)
		return err_set(why, ERR_PROTOCOL, "the auditor sent what is no answer");
	char text[sizeof(why->text)];
	text_escape(cur->p, cur->left, text, sizeof(text));
	err_set(why, (enum err_code)code, "%s", text);
	why->sys = (int)sysno;
	return -1;
}

static int take_answer(struct audit_client *c, const uint8_t *data, size_t len, struct err *why)
{
	struct cursor cur = cursor_make(data, len);
	switch (cursor_u32(&cur)) {
	case AUDIT_WRITTEN:
		return take_written(c, &cur, why);
	case AUDIT_FAILED:
		return take_failed(&cur, why);
	default:
		return err_set(why, ERR_PROTOCOL, "the auditor sent what is no answer");
	}
}

/* 0, or -1 when the auditor is lost. */
static int read_answers(struct audit_client *c, struct err *why)
{
	uint8_t data[AUDIT_ANSWER_MAX];
	for (unsigned i = 0; i < ANSWERS_AT_ONCE && !c->freed && !c->lost; i++) {
		ssize_t n = recv(c->fd, data, sizeof(data), MSG_DONTWAIT);
		/* Reported before what the auditor still had to say, when it went without reading all of ours. */
		if (n < 0 && errno == ECONNRESET)
			continue;
		if (n < 0 && (errno == EAGAIN || errno == EINTR))
			return 0;
		if (n <= 0) {
			set_gone(why, n < 0 ? errno : 0);
			return -1;
		}
		if (take_answer(c, data, (size_t)n, why) < 0)
			return -1;
	}
	return 0;
}

static void check_room(struct audit_client *c)
{
	if (c->freed || c->lost || !c->short_of_room || c->pending_bytes > AUDIT_PENDING_MAX / 2)
		return;
	c->short_of_room = false;
	if (c->on_room)
		c->on_room(c->room_ctx);
}

/* One step in both directions. Within enter/leave. */
static void work(struct audit_client *c)
{
	struct err why = ERR_INIT;
	/* Answers first: when the auditor said why it failed, that is the better reason than a broken pipe. */
	if (read_answers(c, &why) < 0 || (!c->freed && !c->lost && flush_queue(c, &why) < 0)) {
		if (!c->freed)
			lose(c, &why);
		return;
	}
	if (!c->freed && !c->lost)
		update_interest(c);
	check_room(c);
}

static void on_ready(void *ctx, int fd, int ready)
{
	struct audit_client *c = ctx;
	enter(c);
	work(c);
	leave(c);
}

int audit_client_drain(struct audit_client *c, uint64_t timeout_ns, struct err *err)
{
	uint64_t end = time_monotonic_ns() + timeout_ns;
	enter(c);
	while (c->ring_n > 0 && !c->lost && !c->freed) {
		uint64_t now = time_monotonic_ns();
		if (now >= end)
			break;
		struct pollfd p = { .fd = c->fd, .events = (short)(POLLIN | (c->queue ? POLLOUT : 0)) };
		poll(&p, 1, (int)((end - now) / NS_PER_MS) + 1);
		work(c);
	}
	int r = 0;
	if (c->lost)
		r = err_set(err, c->why.code, "%s", c->why.text);
	else if (!c->freed && c->ring_n > 0)
		r = err_set(err, ERR_TIMEOUT, "the auditor did not answer %zu events in time", c->ring_n);
	leave(c);
	return r;
}

/* ---- the end ---- */

/* What is queued goes first: it was promised to be recorded. */
static void say_goodbye(struct audit_client *c)
{
	uint8_t bye[4] = { 0xff, 0xff, 0xff, 0xff };
	struct err why;
	uint64_t end = time_monotonic_ns() + GOODBYE_WAIT_MS * NS_PER_MS;
	enqueue(c, &(struct iovec){ bye, sizeof(bye) }, 1, sizeof(bye));
	while (flush_queue(c, &why) == 0 && c->queue && time_monotonic_ns() < end)
		poll(&(struct pollfd){ .fd = c->fd, .events = POLLOUT }, 1, GOODBYE_WAIT_MS);
}

void audit_client_free(struct audit_client *c)
{
	if (!c)
		return;
	c->io = loop_io_remove(c->io);
	if (!c->lost && !c->lose_soon)
		say_goodbye(c);
	fd_close(&c->fd);
	c->freed = true;
	if (c->calling == 0 && !c->lose_soon)
		release(c);
}
