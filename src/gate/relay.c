/* SPDX-License-Identifier: Apache-2.0 */
#include "gate/relay.h"

#include "base/mem.h"

#define QUEUE_CREDIT_BELOW (64u * 1024u)        /* with this little waiting, the sender may go on */
#define QUEUE_MAX (4u * HTTP_WINDOW + 65536u)   /* a filter may write more than it read (unpacking); the owner of the filter bounds each call */
#define DISCARD_MAX (1024u * 1024u)             /* of a body that nobody wants any more, before the stream is cut */

/* One direction: what came and was not passed on yet. */
struct lane {
	struct buf queue;       /* filtered, on its way */
	size_t uncredited;      /* raw bytes whose sender still waits for their credit */
	bool waiting;           /* the filter may hold more than the queue had room for */
	bool ended;             /* the sender is done */
	bool drained;           /* … and the filter gave its rest */
	bool told;              /* … and the receiver knows */
	bool has_trailers;
	struct http_head trailers;
};

struct relay {
	struct relay_ops ops;
	void *ctx;
	struct http_stream *near, *far; /* NULL once gone */
	struct buf raw;         /* came before the far stream was there: not filtered yet */
	struct lane up, down;
	bool connected, answered, discard;
	enum reason reason;     /* of a refusal; REASON_NONE else */
	unsigned status;
	uint64_t bytes_up, bytes_down, discarded;
	void (*kick_near)(void *), (*kick_far)(void *);
	void *kick_ctx;
};

static void lane_init(struct lane *l)
{
	buf_init(&l->queue, QUEUE_MAX);
	http_head_init(&l->trailers);
}

static void lane_free(struct lane *l)
{
	buf_wipe_free(&l->queue);
	http_head_free(&l->trailers);
}

struct relay *relay_new(struct http_stream *near, bool end, const struct relay_ops *ops, void *ctx)
{
	struct relay *r = mem_alloc(sizeof(*r));
	*r = (struct relay){ .ops = *ops, .ctx = ctx, .near = near };
	lane_init(&r->up);
	lane_init(&r->down);
	buf_init(&r->raw, HTTP_WINDOW + 65536u);
	r->up.ended = r->up.drained = r->up.told = end;
	http_stream_set_ctx(near, r);
	return r;
}

bool relay_connected(const struct relay *r) { return r->connected; }
void *relay_ctx(const struct relay *r) { return r->ctx; }

void relay_disconnect(struct relay *r)
{
	r->far = NULL;
	r->connected = false;
}

bool relay_answered(const struct relay *r) { return r->answered; }
enum reason relay_reason(const struct relay *r) { return r->reason; }
unsigned relay_status(const struct relay *r) { return r->status; }
uint64_t relay_bytes_up(const struct relay *r) { return r->bytes_up; }
uint64_t relay_bytes_down(const struct relay *r) { return r->bytes_down; }

static void kick_near(struct relay *r)
{
	if (r->kick_near)
		r->kick_near(r->kick_ctx);
}

static void kick_far(struct relay *r)
{
	if (r->kick_far)
		r->kick_far(r->kick_ctx);
}

/* Both streams are gone: the one place where a relay ends. */
static void over_if_gone(struct relay *r)
{
	if (r->near || r->far)
		return;
	lane_free(&r->up);
	lane_free(&r->down);
	buf_wipe_free(&r->raw);
	if (r->ops.on_over)
		r->ops.on_over(r->ctx, r->reason);
	mem_free(r);
}

static void credit(struct http_stream *from, struct lane *l)
{
	size_t n = l->uncredited;
	l->uncredited = 0;
	if (n && from)
		http_stream_credit(from, n);
}

static void moved(struct relay *r, bool up, size_t n)
{
	if (up)
		r->bytes_up += n;
	else
		r->bytes_down += n;
	if (n && r->ops.on_moved)
		r->ops.on_moved(r->ctx, up ? n : 0, up ? 0 : n);
}

/* ---- refusing ---- */

static void drop_up(struct relay *r)
{
	r->discard = true;
	buf_wipe_free(&r->raw);
	buf_wipe_free(&r->up.queue);
	credit(r->near, &r->up);
}

static void say_refusal(struct relay *r)
{
	struct http_head head;
	struct buf body;
	struct err err;
	http_head_init(&head);
	buf_init(&body, 16384);
	r->ops.on_refused(r->ctx, r->reason, &head, &body);
	r->status = head.status;
	r->answered = true;
	if (http_stream_send_head(r->near, &head, body.len == 0, &err) < 0 ||
		(body.len && (http_stream_send_data(r->near, body.data, body.len) != body.len || http_stream_send_end(r->near, NULL) < 0)))
		http_stream_reset(r->near, HTTP_CANCELLED);
	r->down.ended = r->down.drained = r->down.told = true;
	http_head_free(&head);
	buf_free(&body);
}

void relay_refuse(struct relay *r, enum reason reason)
{
	if (r->reason != REASON_NONE)
		return;
	r->reason = reason;
	if (r->ops.on_reason)
		r->ops.on_reason(r->ctx, reason);
	buf_wipe_free(&r->down.queue);
	if (r->far)
		http_stream_reset(r->far, HTTP_CANCELLED);
	if (r->near) {
		drop_up(r);
		if (!r->answered && r->ops.on_refused)
			say_refusal(r);
		else if (!r->down.told)
			http_stream_reset(r->near, HTTP_CANCELLED);
	}
	kick_near(r);
	kick_far(r);
}

/* ---- moving ---- */

/* Sends what waits. True when nothing waits any more. */
static bool flush(struct relay *r, bool up)
{
	struct lane *l = up ? &r->up : &r->down;
	struct http_stream *from = up ? r->near : r->far, *to = up ? r->far : r->near;
	size_t n = l->queue.len ? http_stream_send_data(to, l->queue.data, l->queue.len) : 0;
	if (n == l->queue.len)
		buf_free(&l->queue);
	else if (n)
		buf_consume(&l->queue, n);
	moved(r, up, n);
	if (l->queue.len <= QUEUE_CREDIT_BELOW && !l->waiting)
		credit(from, l);
	return l->queue.len == 0;
}

static enum reason drain_filter(struct relay *r, bool up)
{
	struct lane *l = up ? &r->up : &r->down;
	enum reason (*filter)(void *, struct buf *, struct http_head *) = up ? r->ops.up_end : r->ops.down_end;
	l->drained = true;
	return filter ? filter(r->ctx, &l->queue, l->has_trailers ? &l->trailers : NULL) : REASON_NONE;
}

/* The response is whole, the request isn't: nobody reads the rest of it. */
static void answered_early(struct relay *r)
{
	if (r->far)
		http_stream_reset(r->far, HTTP_CANCELLED);
	drop_up(r);
}

static void tell_end(struct relay *r, bool up)
{
	struct lane *l = up ? &r->up : &r->down;
	const struct http_head *trailers = l->has_trailers && l->trailers.n_fields ? &l->trailers : NULL;
	l->told = true;
	if (http_stream_send_end(up ? r->far : r->near, trailers) < 0)
		relay_refuse(r, REASON_UPSTREAM_PROTOCOL);
	else if (!up && !r->up.ended)
		answered_early(r);
}

/* What the filter held back for want of room, as long as there is room. */
static enum reason take_more(struct relay *r, struct lane *l, bool *empty)
{
	while (*empty && l->waiting) {
		enum reason reason = r->ops.down_more(r->ctx, &l->queue, &l->waiting);
		if (reason != REASON_NONE)
			return reason;
		*empty = flush(r, false);
	}
	return REASON_NONE;
}

/* Moves one direction as far as it goes. */
static void advance(struct relay *r, bool up)
{
	struct lane *l = up ? &r->up : &r->down;
	if (!(up ? r->far : r->near) || l->told || r->reason != REASON_NONE)
		return;
	bool empty = flush(r, up);
	enum reason reason = up ? REASON_NONE : take_more(r, l, &empty);
	if (reason == REASON_NONE && empty && l->ended && !l->drained) {
		reason = drain_filter(r, up);
		empty = reason == REASON_NONE && flush(r, up);
	}
	if (reason != REASON_NONE) {
		relay_refuse(r, reason);
		return;
	}
	if (empty && l->drained)
		tell_end(r, up);
}

/* Bytes into a lane: through its filter, then on as far as they go. */
static void take(struct relay *r, bool up, const uint8_t *p, size_t len)
{
	struct lane *l = up ? &r->up : &r->down;
	struct http_stream *to = up ? r->far : r->near;
	enum reason (*filter)(void *, const uint8_t *, size_t, struct buf *) = up ? r->ops.up_data : r->ops.down_data;
	enum reason reason = REASON_NONE;
	l->uncredited += len;
	if (filter) {
		reason = filter(r->ctx, p, len, &l->queue);
		l->waiting = !up && r->ops.down_more;
	} else {
		size_t n = l->queue.len ? 0 : http_stream_send_data(to, p, len);
		moved(r, up, n);
		if (n < len && buf_append(&l->queue, p + n, len - n) < 0)
			reason = REASON_UPSTREAM_PROTOCOL; /* more than any window allows */
	}
	if (reason != REASON_NONE)
		relay_refuse(r, reason);
	else
		advance(r, up);
}

static void keep_trailers(struct lane *l, const struct http_head *trailers)
{
	l->ended = true;
	l->has_trailers = trailers && http_head_copy(&l->trailers, trailers) == 0;
}

int relay_connect(struct relay *r, struct http_conn *far, const struct http_head *head, void (*kick_near_fn)(void *), void (*kick_far_fn)(void *),
	void *kick_ctx, struct err *err)
{
	r->kick_near = kick_near_fn;
	r->kick_far = kick_far_fn;
	r->kick_ctx = kick_ctx;
	r->far = http_stream_open(far, head, r->up.told, err);
	if (!r->far)
		return -1;
	http_stream_set_ctx(r->far, r);
	r->connected = true;
	struct buf raw = r->raw;
	buf_init(&r->raw, raw.max);
	if (raw.len) {
		r->up.uncredited -= raw.len; /* take() counts them again */
		take(r, true, raw.data, raw.len);
	} else {
		advance(r, true);
	}
	buf_wipe_free(&raw);
	kick_far(r);
	return 0;
}

/* ---- the near connection ---- */

void relay_near_data(void *ctx, struct http_stream *s, const uint8_t *p, size_t len)
{
	struct relay *r = http_stream_ctx(s);
	if (!r || r->discard || (r->connected && !r->far)) {
		http_stream_credit(s, len);
		if (r && (r->discarded += len) > DISCARD_MAX)
			http_stream_reset(s, HTTP_CANCELLED);
		return;
	}
	if (r->connected) {
		take(r, true, p, len);
		kick_far(r);
		return;
	}
	r->up.uncredited += len;
	if (buf_append(&r->raw, p, len) < 0)
		relay_refuse(r, REASON_HTTP_MALFORMED); /* more than any window allows */
}

void relay_near_end(void *ctx, struct http_stream *s, const struct http_head *trailers)
{
	struct relay *r = http_stream_ctx(s);
	if (!r || r->up.ended)
		return;
	keep_trailers(&r->up, trailers);
	if (r->connected && !r->discard) {
		advance(r, true);
		kick_far(r);
	}
}

void relay_near_drain(void *ctx, struct http_stream *s)
{
	struct relay *r = http_stream_ctx(s);
	if (!r || !r->connected)
		return;
	advance(r, false);
	kick_far(r);
}

void relay_near_close(void *ctx, struct http_stream *s, enum http_fault fault)
{
	struct relay *r = http_stream_ctx(s);
	if (!r)
		return;
	r->near = NULL;
	if (r->reason == REASON_NONE && !(fault == HTTP_FAULT_NONE && r->down.told))
		r->reason = fault == HTTP_ABUSE ? REASON_HTTP_ABUSE : REASON_CLIENT_CLOSED;
	if (r->far) {
		http_stream_reset(r->far, HTTP_CANCELLED);
		kick_far(r);
	}
	over_if_gone(r);
}

/* ---- the far connection ---- */

void relay_far_head(void *ctx, struct http_stream *s, const struct http_head *head, bool end)
{
	struct relay *r = http_stream_ctx(s);
	if (!r || !r->near || r->reason != REASON_NONE)
		return;
	struct http_head copy;
	struct err err;
	http_head_init(&copy);
	enum reason reason = http_head_copy(&copy, head) < 0 ? REASON_UPSTREAM_PROTOCOL : REASON_NONE;
	if (reason == REASON_NONE && r->ops.down_head)
		reason = r->ops.down_head(r->ctx, &copy);
	if (reason == REASON_NONE && http_stream_send_head(r->near, &copy, end, &err) < 0)
		reason = REASON_UPSTREAM_PROTOCOL;
	if (reason != REASON_NONE) {
		relay_refuse(r, reason);
	} else if (copy.status >= 200) {
		r->answered = true;
		r->status = copy.status;
		if (end) {
			r->down.ended = r->down.drained = r->down.told = true;
			if (!r->up.ended)
				answered_early(r);
		}
	}
	http_head_free(&copy);
	kick_near(r);
}

void relay_far_data(void *ctx, struct http_stream *s, const uint8_t *p, size_t len)
{
	struct relay *r = http_stream_ctx(s);
	if (!r || !r->near || r->reason != REASON_NONE) {
		http_stream_credit(s, len);
		return;
	}
	take(r, false, p, len);
	kick_near(r);
}

void relay_far_end(void *ctx, struct http_stream *s, const struct http_head *trailers)
{
	struct relay *r = http_stream_ctx(s);
	if (!r || r->down.ended)
		return;
	keep_trailers(&r->down, trailers);
	advance(r, false);
	kick_near(r);
}

void relay_far_drain(void *ctx, struct http_stream *s)
{
	struct relay *r = http_stream_ctx(s);
	if (!r)
		return;
	advance(r, true);
	kick_near(r);
}

static enum reason far_fault(enum http_fault fault)
{
	return fault == HTTP_REFUSED || fault == HTTP_TRUNCATED || fault == HTTP_CANCELLED ? REASON_SERVER_CLOSED : REASON_UPSTREAM_PROTOCOL;
}

void relay_far_close(void *ctx, struct http_stream *s, enum http_fault fault)
{
	struct relay *r = http_stream_ctx(s);
	if (!r)
		return;
	r->far = NULL;
	/* Cut before the end of its answer: that must never look like the end. */
	if (r->near && r->reason == REASON_NONE && !r->down.ended)
		relay_refuse(r, far_fault(fault));
	else if (r->near && !r->up.told)
		drop_up(r);
	over_if_gone(r);
}
