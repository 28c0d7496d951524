/* SPDX-License-Identifier: Apache-2.0 */
/* The connection to the front half, and what its streams are: flows, or requests. */
#include "gate/upstream/internal.h"

#include <errno.h>

#include "base/fd.h"
#include "base/mem.h"
#include "base/text.h"

#define DETAIL_MAX 600u
#define LINK_WINDOW (16u * 1024u * 1024u)

/* ---- words ---- */

bool link_flow_id(const struct http_head *head, uint64_t *ret)
{
	char text[24];
	const struct http_field *f = http_head_get(head, LINK_FIELD_FLOW);
	if (!f || http_head_count(head, LINK_FIELD_FLOW) != 1 || f->value.len == 0 || f->value.len >= sizeof(text))
		return false;
	memcpy(text, f->value.p, f->value.len);
	text[f->value.len] = 0;
	return text_parse_u64(text, 0, UINT64_MAX, ret) == 0;
}

/* What policy says no to; anything else is the server's or the network's failure. */
static bool is_denial(enum reason reason)
{
	switch ((int)reason) {
	case REASON_RESOLVE_FAILED:
	case REASON_CONNECT_FAILED:
	case REASON_UPSTREAM_CERTIFICATE:
	case REASON_UPSTREAM_PROTOCOL:
	case REASON_SERVER_CLOSED:
	case REASON_SECRET_UNAVAILABLE:
	case REASON_RESPONSE_UNREADABLE:
	case REASON_RECORD_UNAVAILABLE:
		return false;
	default:
		return true;
	}
}

void link_refusal(struct http_head *head, enum reason reason, const char *detail)
{
	char text[DETAIL_MAX];
	head->status = is_denial(reason) ? 403 : 502;
	http_head_put(head, LINK_FIELD_REASON, reason_name(reason), strlen(reason_name(reason)));
	if (!detail || !*detail)
		return;
	text_escape(detail, strlen(detail), text, sizeof(text));
	/* Typographic quotes and the like have no place in a field: it is ASCII from here on. */
	for (char *p = text; *p; p++)
		if ((unsigned char)*p >= 0x80)
			*p = '?';
	http_head_put(head, LINK_FIELD_DETAIL, text, strlen(text));
}

/* ---- streams ---- */

void link_enter(struct upstream *u, struct link_entry *e, enum link_kind kind, struct http_stream *s)
{
	e->kind = kind;
	e->stream = s;
	table_put(&u->streams, &e->node, http_stream_id(s));
}

void link_leave(struct upstream *u, struct link_entry *e)
{
	if (e->stream)
		table_remove(&u->streams, &e->node);
	e->stream = NULL;
}

static struct link_entry *entry_of(struct upstream *u, struct http_stream *s)
{
	if (http_stream_ctx(s))
		return NULL; /* a relay has it */
	struct table_node *node = table_get(&u->streams, http_stream_id(s));
	return node ? CONTAINER_OF(node, struct link_entry, node) : NULL;
}

static void on_head(void *ctx, struct http_stream *s, const struct http_head *head, bool end)
{
	struct upstream *u = ctx;
	if (http_text_equal(head->method, LINK_METHOD_OPEN))
		upflow_open(u, s, head);
	else
		exchange_begin(u, s, head, end);
}

static void on_data(void *ctx, struct http_stream *s, const uint8_t *p, size_t len)
{
	struct link_entry *e = entry_of(ctx, s);
	if (e && e->kind == LINK_EXCHANGE)
		exchange_gather_data(exchange_of_entry(e), p, len);
	else
		relay_near_data(ctx, s, p, len);
}

static void on_end(void *ctx, struct http_stream *s, const struct http_head *trailers)
{
	struct link_entry *e = entry_of(ctx, s);
	if (!e)
		relay_near_end(ctx, s, trailers);
	else if (e->kind == LINK_EXCHANGE)
		exchange_gather_end(exchange_of_entry(e), trailers);
	else
		http_stream_reset(s, HTTP_CANCELLED); /* the guest is gone */
}

static void on_drain(void *ctx, struct http_stream *s) { relay_near_drain(ctx, s); }

static void on_close(void *ctx, struct http_stream *s, enum http_fault fault)
{
	struct link_entry *e = entry_of(ctx, s);
	if (!e)
		relay_near_close(ctx, s, fault);
	else if (e->kind == LINK_EXCHANGE)
		exchange_gather_close(exchange_of_entry(e));
	else
		upflow_gone(upflow_of_entry(e));
}

static void on_closed(void *ctx, const struct err *err)
{
	struct upstream *u = ctx;
	bool gone = err->code == ERR_NONE || err->code == ERR_CLOSED || err->sys == ECONNRESET || err->sys == EPIPE;
	if (gone)
		loop_quit(u->loop, u->failure.code == ERR_NONE ? 0 : 1); /* the front half is gone: so is every flow */
	else
		upstream_fail(u, err);
}

int link_start(struct upstream *u)
{
	static const struct channel_ops channel_ops = { .on_closed = on_closed };
	static const struct http_conn_ops http_ops = { on_head, on_data, on_end, on_drain, on_close };
	static const struct http_conn_config config = { .version = HTTP_2, .role = HTTP_SERVER, .scheme = "", .max_streams = LINK_STREAMS_MAX,
		.connection_window = LINK_WINDOW, .max_resets = UINT64_MAX };
	fd_set_nonblock(u->link_fd, true);
	u->link = channel_new(u->loop, fd_steal(&u->link_fd), NULL, NULL, 0, &channel_ops, u);
	channel_start(u->link, http_conn_new(&config, &http_ops, u));
	return 0;
}
