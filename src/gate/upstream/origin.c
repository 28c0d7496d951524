/* SPDX-License-Identifier: Apache-2.0 */
#include "gate/upstream/internal.h"

#include <stdio.h>

#include "base/fd.h"
#include "base/mem.h"

enum origin_state { ORIGIN_DIALLING, ORIGIN_SECURING, ORIGIN_OPEN };

struct origin {
	struct upflow *flow;
	struct origin *prev, *next;
	enum origin_state state;
	bool http1_only, h2, used, upgraded;
	struct ip address;
	struct trust *trust;         /* its own reference: the flow's may change */
	struct dial *dial;
	struct loop_timer *deadline; /* until it is open */
	struct channel *channel;     /* NULL before it is dialled */
};

struct origin *origin_next(const struct origin *o) { return o->next; }
const struct ip *origin_address(const struct origin *o) { return &o->address; }
bool origin_is_h2(const struct origin *o) { return o->h2; }
bool origin_connecting(const struct origin *o) { return o->state != ORIGIN_OPEN; }
bool origin_used(const struct origin *o) { return o->used; }
struct http_conn *origin_http(const struct origin *o) { return o->channel ? channel_http(o->channel) : NULL; }

bool origin_ready(const struct origin *o, bool upgrade)
{
	return o->state == ORIGIN_OPEN && !o->upgraded && !(upgrade && o->h2) && http_conn_can_open(channel_http(o->channel));
}

void origin_begin(struct origin *o, bool upgrade)
{
	o->used = true;
	o->upgraded |= upgrade;
	if (upgrade)
		channel_set_idle(o->channel, 0); /* both sides may be silent for as long as they like */
}

void origin_kick(struct origin *o)
{
	if (o->channel)
		channel_kick(o->channel);
}

struct origin *origin_free(struct origin *o)
{
	if (!o)
		return NULL;
	struct upflow *f = o->flow;
	if (o->prev)
		o->prev->next = o->next;
	else
		f->origins = o->next;
	if (o->next)
		o->next->prev = o->prev;
	f->n_origins--;
	dial_cancel(o->dial);
	loop_timer_free(o->deadline);
	channel_free(o->channel); /* exchanges on it hear of it by their streams' on_close */
	trust_release(o->trust);
	return mem_free(o);
}

/* ---- HTTP ---- */

/* A stream that a relay has: the exchange lets go of us, and may take another connection. */
static void on_close(void *ctx, struct http_stream *s, enum http_fault fault)
{
	struct origin *o = ctx;
	struct relay *r = http_stream_ctx(s);
	if (!r)
		return;
	struct exchange *x = relay_ctx(r);
	upflow_pump_later(o->flow);
	exchange_detach(x);
	if (exchange_may_retry(x, fault)) {
		relay_disconnect(r);
		exchange_retry(x);
	} else {
		relay_far_close(ctx, s, fault);
	}
}

static void open_http(struct origin *o)
{
	static const struct http_conn_ops ops = { relay_far_head, relay_far_data, relay_far_end, relay_far_drain, on_close };
	struct http_conn_config config = { .version = o->h2 ? HTTP_2 : HTTP_1, .role = HTTP_CLIENT, .scheme = o->flow->tls ? "https" : "http" };
	o->state = ORIGIN_OPEN;
	o->deadline = loop_timer_free(o->deadline);
	channel_set_idle(o->channel, UPSTREAM_IDLE_NS);
	channel_start(o->channel, http_conn_new(&config, &ops, o));
	upflow_connected(o->flow, o);
}

/* ---- the way to a connection ---- */

static void on_secure(void *ctx)
{
	struct origin *o = ctx;
	o->h2 = str_eq(tls_alpn(channel_tls(o->channel)), "h2");
	open_http(o);
}

/* Why a handshake came to nothing. */
static void handshake_failed(struct origin *o, const struct err *err)
{
	const struct tls *tls = channel_tls(o->channel);
	bool told = tls && tls_state(tls) == TLS_FAILED;
	char detail[sizeof(err->text)];
	snprintf(detail, sizeof(detail), "%s", told ? tls_error(tls)->text : err->text);
	enum reason why = tls && tls_error_is_certificate(tls) ? REASON_UPSTREAM_CERTIFICATE : REASON_UPSTREAM_PROTOCOL;
	upflow_origin_lost(o->flow, o, why, detail);
}

static void on_closed(void *ctx, const struct err *err)
{
	struct origin *o = ctx;
	if (o->state == ORIGIN_OPEN)
		upflow_origin_lost(o->flow, o, REASON_NONE, NULL);
	else
		handshake_failed(o, err);
}

static void begin_tls(struct origin *o, int fd)
{
	static const struct channel_ops ops = { .on_secure = on_secure, .on_closed = on_closed };
	struct upflow *f = o->flow;
	struct err err = ERR_INIT;
	const char *alpn = f->h2 && !o->http1_only ? "h2,http/1.1" : "http/1.1";
	struct tls *tls = tls_client_new(trust_roots(o->trust), f->target.text, alpn, &err);
	if (!tls) {
		fd_close(&fd);
		upflow_origin_lost(f, o, REASON_UPSTREAM_CERTIFICATE, err.text);
		return;
	}
	o->state = ORIGIN_SECURING;
	o->channel = channel_new(f->u->loop, fd, tls, NULL, 0, &ops, o);
}

static void begin_plain(struct origin *o, int fd)
{
	static const struct channel_ops ops = { .on_closed = on_closed };
	o->channel = channel_new(o->flow->u->loop, fd, NULL, NULL, 0, &ops, o);
	open_http(o);
}

static void on_dialled(void *ctx, int fd, const struct ip *ip, int sysno)
{
	struct origin *o = ctx;
	o->dial = NULL;
	if (fd < 0) {
		struct err err = ERR_INIT;
		err_sys(&err, sysno, "%s can't be reached at port %u", o->flow->target.text, o->flow->target.port);
		upflow_origin_lost(o->flow, o, REASON_CONNECT_FAILED, err.text);
		return;
	}
	o->address = *ip;
	if (o->flow->tls)
		begin_tls(o, fd);
	else
		begin_plain(o, fd);
}

static void on_deadline(void *ctx)
{
	struct origin *o = ctx;
	upflow_origin_lost(o->flow, o, REASON_CONNECT_FAILED, "the server did not finish the TLS handshake in 30 s");
}

struct origin *origin_new(struct upflow *f, bool http1_only)
{
	struct origin *o = mem_alloc(sizeof(*o));
	*o = (struct origin){ .flow = f, .http1_only = http1_only, .next = f->origins, .trust = trust_ref(f->trust) };
	if (o->next)
		o->next->prev = o;
	f->origins = o;
	f->n_origins++;
	o->deadline = loop_timer_new(f->u->loop, on_deadline, o);
	loop_timer_set(o->deadline, UPSTREAM_CONNECT_NS, 0);
	o->dial = dial_start(f->u->loop, f->addresses, f->n_addresses, f->target.port, on_dialled, o);
	return o;
}
