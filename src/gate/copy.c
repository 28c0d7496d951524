/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Moving bytes between a flow's two sockets. Bytes pass through one buffer of the process; only what the other side doesn't
 * take at once is kept in the flow, and the source isn't read until that is gone: bounded memory, back-pressure, and idle flows
 * that hold none.
 *
 * The byte budget is taken where the server's socket is touched, so the server sees not one byte more.
 */
#include "gate/flow.h"

#include <errno.h>
#include <poll.h>
#include <sys/socket.h>

#include "base/text.h"

#define ROUNDS 8            /* chunks before other flows have their turn */
#define EXTRA_QUIET_NS NS_PER_S

static uint8_t scratch[FLOW_CHUNK];

static ssize_t receive(int fd, void *data, size_t len, int flags)
{
	ssize_t n;
	do
		n = recv(fd, data, len, MSG_DONTWAIT | flags);
	while (n < 0 && errno == EINTR);
	return n < 0 ? -errno : n;
}

static ssize_t transmit(int fd, const void *data, size_t len)
{
	ssize_t n;
	do
		n = send(fd, data, len, MSG_DONTWAIT | MSG_NOSIGNAL);
	while (n < 0 && errno == EINTR);
	return n < 0 ? -errno : n;
}

static void keep(struct flow *f, struct buf *b, const void *data, size_t len)
{
	if (len && buf_append(b, data, len) < 0)
		flow_end(f, REASON_ALLOWED); /* beyond a ceiling that the callers keep: never in silence */
}

/* Sends the front of `b`. False when the socket takes no more or is broken (*ret_error). */
static bool drain(int fd, struct buf *b, size_t most, size_t *ret_sent, int *ret_error)
{
	ssize_t n = transmit(fd, b->data, most);
	*ret_sent = n > 0 ? (size_t)n : 0;
	*ret_error = n < 0 && n != -EAGAIN ? (int)-n : 0;
	buf_consume(b, *ret_sent);
	if (b->len == 0)
		buf_free(b);
	return b->len == 0;
}

/* ---- towards the server ---- */

static void spend_up(struct flow *f, size_t n)
{
	budget_spend(&f->gate->budget, f->rule, BUDGET_UP, n);
	f->bytes_up += n;
	f->gate->totals.bytes_up += n;
}

static void budget_is_gone(struct flow *f)
{
	control_limit(f->gate, REASON_BUDGET_BYTES);
	flow_close(f, REASON_BUDGET_BYTES);
}

/* The server takes no more, but may still have said something worth relaying. */
static void server_broken(struct flow *f)
{
	f->up_broken = true;
	buf_free(&f->up);
}

static void pass_end_up(struct flow *f)
{
	if (f->state != FLOW_TUNNEL || !f->client_eof || f->up_shut || f->up.len)
		return;
	f->up_shut = true;
	if (!f->up_broken)
		shutdown(f->server_fd, SHUT_WR);
}

void copy_up(struct flow *f)
{
	if (f->server_fd < 0)
		return;
	if (f->up.len) {
		size_t room = budget_room(&f->gate->budget, f->rule, BUDGET_UP, f->up.len), sent;
		int error;
		if (room == 0) {
			budget_is_gone(f);
			return;
		}
		drain(f->server_fd, &f->up, room, &sent, &error);
		spend_up(f, sent);
		if (error)
			server_broken(f);
		else if (f->up.len && budget_room(&f->gate->budget, f->rule, BUDGET_UP, 1) == 0)
			budget_is_gone(f);
	}
	if (f->server_fd >= 0)
		pass_end_up(f);
}

/* The client's socket is at its end: is anybody left to hear an answer? A peer that only stopped writing keeps its reading
 * side. */
static bool client_is_gone(const struct flow *f)
{
	struct pollfd p = { .fd = f->client_fd };
	return poll(&p, 1, 0) == 1 && (p.revents & (POLLHUP | POLLERR));
}

/* One chunk from the client. False when there is none now; the end sets client_eof. */
static bool take_chunk(struct flow *f, size_t *ret_len)
{
	ssize_t n = receive(f->client_fd, scratch, sizeof(scratch), 0);
	if (n > 0) {
		*ret_len = (size_t)n;
		return true;
	}
	if (n == 0)
		f->client_eof = true;
	else if (n != -EAGAIN)
		flow_end(f, REASON_ALLOWED);
	return false;
}

void copy_tunnel(struct flow *f)
{
	size_t len;
	for (int i = 0; i < ROUNDS && f->state == FLOW_TUNNEL && !f->over && !f->up.len && !f->client_eof; i++) {
		if (!take_chunk(f, &len))
			break;
		if (f->up_broken)
			continue;
		if (f->clear && flow_look(f, scratch, len))
			return;
		size_t room = budget_room(&f->gate->budget, f->rule, BUDGET_UP, len);
		ssize_t n = room ? transmit(f->server_fd, scratch, room) : 0;
		size_t sent = n > 0 ? (size_t)n : 0;
		spend_up(f, sent);
		if (n < 0 && n != -EAGAIN)
			server_broken(f);
		else if (sent < len)
			keep(f, &f->up, scratch + sent, len - sent);
		if (room < len && sent == room) {
			budget_is_gone(f);
			return;
		}
	}
	if (!f->over && f->state == FLOW_TUNNEL)
		pass_end_up(f);
}

/* ---- one HTTP request ---- */

/* More than one request: it isn't forwarded. The answer to the first goes on; when that is quiet, the connection ends. */
static void extra_bytes(struct flow *f)
{
	f->extra = true;
	flow_set_timer(f, EXTRA_QUIET_NS);
}

static void after_request(struct flow *f, const uint8_t *p, size_t len)
{
	if (len == 0)
		return;
	if (f->websocket)
		keep(f, &f->head, p, len);
	else
		extra_bytes(f);
}

void copy_body(struct flow *f, const uint8_t *p, size_t len)
{
	size_t used = 0;
	if (!f->body.done && http1_body_feed(&f->body, p, len, &used, &f->up) < 0) {
		struct verdict v = { .reason = REASON_HTTP_MALFORMED, .rule = f->verdict.rule };
		flow_deny(f, v, NULL);
		return;
	}
	after_request(f, p + used, len - used);
}

static void request_cut_off(struct flow *f)
{
	if (!f->body.done || client_is_gone(f))
		flow_end(f, REASON_ALLOWED);
}

void copy_request(struct flow *f)
{
	size_t len;
	for (int i = 0; i < ROUNDS && f->state == FLOW_HTTP && !f->over && !f->up.len && !f->extra && !f->client_eof; i++) {
		if (f->head.len >= FLOW_CHUNK || !take_chunk(f, &len))
			break;
		if (f->up_broken)
			continue;
		if (flow_look(f, scratch, len))
			return;
		copy_body(f, scratch, len);
		if (f->state == FLOW_HTTP && !f->over)
			copy_up(f);
	}
	if (f->state == FLOW_HTTP && !f->over && f->client_eof)
		request_cut_off(f);
}

void copy_discard(struct flow *f)
{
	size_t len;
	for (int i = 0; i < ROUNDS && !f->over && !f->client_eof; i++)
		if (!take_chunk(f, &len))
			break;
}

bool copy_hold(struct flow *f, size_t max)
{
	size_t room = max > f->head.len ? max - f->head.len : 0;
	if (room > FLOW_CHUNK)
		room = FLOW_CHUNK;
	if (room == 0) { /* inspection decides before its ceiling; should it not, nothing passes */
		flow_end(f, REASON_ALLOWED);
		return false;
	}
	ssize_t n = receive(f->client_fd, scratch, room, 0);
	if (n > 0)
		keep(f, &f->head, scratch, (size_t)n);
	else if (n == 0)
		f->client_eof = true;
	else if (n != -EAGAIN)
		flow_end(f, REASON_ALLOWED);
	return n >= 0 && !f->over;
}

/* ---- towards the client ---- */

/* What is held for the client. False when it doesn't take all of it. */
static bool flush_down(struct flow *f)
{
	if (!f->down.len)
		return true;
	size_t sent;
	int error;
	bool all = drain(f->client_fd, &f->down, f->down.len, &sent, &error);
	if (error)
		flow_end(f, REASON_ALLOWED);
	return all && !error;
}

void copy_flush(struct flow *f) { flush_down(f); }

static void server_bytes(struct flow *f, size_t len)
{
	budget_spend(&f->gate->budget, f->rule, BUDGET_DOWN, len);
	f->bytes_down += len;
	f->gate->totals.bytes_down += len;
	if (f->websocket) {
		enum http1_upgrade u = http1_watch_feed(&f->watch, scratch, len);
		if (u != HTTP1_UPGRADE_WAITING)
			flow_upgraded(f, u == HTTP1_UPGRADE_YES);
	}
	if (f->extra)
		flow_set_timer(f, EXTRA_QUIET_NS);
	ssize_t n = transmit(f->client_fd, scratch, len);
	if (n < 0 && n != -EAGAIN)
		flow_end(f, REASON_ALLOWED);
	else if ((size_t)(n > 0 ? n : 0) < len)
		keep(f, &f->down, scratch + (n > 0 ? n : 0), len - (size_t)(n > 0 ? n : 0));
}

/* Nothing may be read any more: is there anything to read? */
static void server_beyond_budget(struct flow *f)
{
	ssize_t n = receive(f->server_fd, scratch, 1, MSG_PEEK);
	if (n == 0)
		f->server_eof = true;
	else if (n > 0)
		budget_is_gone(f);
	else if (n != -EAGAIN)
		flow_end(f, REASON_ALLOWED);
}

/* One chunk. False when there is none now. */
static bool server_chunk(struct flow *f)
{
	size_t room = budget_room(&f->gate->budget, f->rule, BUDGET_DOWN, sizeof(scratch));
	if (room == 0) {
		server_beyond_budget(f);
		return false;
	}
	ssize_t n = receive(f->server_fd, scratch, room, 0);
	if (n > 0)
		server_bytes(f, (size_t)n);
	else if (n == 0)
		f->server_eof = true;
	else if (n != -EAGAIN)
		flow_end(f, REASON_ALLOWED);
	return n > 0;
}

static void pass_end_down(struct flow *f)
{
	if (!f->server_eof || f->down.len || f->down_shut)
		return;
	if (f->state == FLOW_HTTP) {
		flow_close(f, REASON_ALLOWED);
		return;
	}
	f->down_shut = true;
	shutdown(f->client_fd, SHUT_WR);
}

void copy_down(struct flow *f)
{
	for (int i = 0; i < ROUNDS && !f->over && f->server_fd >= 0; i++)
		if (!flush_down(f) || f->server_eof || !server_chunk(f))
			break;
	if (!f->over && f->server_fd >= 0)
		pass_end_down(f);
}

void copy_last(struct flow *f)
{
	if (!flush_down(f) || f->over)
		return;
	if (!f->down_shut) {
		f->down_shut = true;
		shutdown(f->client_fd, SHUT_WR);
	}
	if (f->client_eof)
		f->over = true;
}
