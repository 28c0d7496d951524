/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/resolve.h"

#include "base/mem.h"
#include "base/text.h"

/* A sweep later than that at most, which is before the 5 s after which the C library gives up: it gets an answer. */
enum { TIMEOUT_S = 3, SWEEP_S = 1 };

struct waiter {
	void *waiter;
	struct waiter *next;
};

struct pending {
	uint32_t query; /* 0: the slot is free */
	struct hostname host;
	uint64_t asked_ns;
	struct waiter *first;
};

struct resolver {
	struct mux *mux;
	struct egress *egress;
	resolve_fn fn;
	struct loop_timer *sweep;
	uint32_t last_query;
	unsigned n_pending, n_waiters;
	struct pending pending[RESOLVE_PENDING_MAX];
};

/* ---- who waits ---- */

static void answer_all(struct resolver *r, struct pending *p, enum resolve_result result, const struct name *n)
{
	struct waiter *w = p->first;
	*p = (struct pending){ .query = 0 };
	r->n_pending--;
	while (w) {
		struct waiter *next = w->next;
		r->n_waiters--;
		r->fn(w->waiter, result, n);
		mem_free(w);
		w = next;
	}
	if (r->n_pending == 0)
		loop_timer_stop(r->sweep);
}

static void wait_for(struct resolver *r, struct pending *p, void *waiter)
{
	struct waiter *w = mem_alloc(sizeof(*w));
	*w = (struct waiter){ .waiter = waiter, .next = p->first };
	p->first = w;
	r->n_waiters++;
}

static void on_sweep(void *ctx)
{
	struct resolver *r = ctx;
	uint64_t now = time_monotonic_ns();
	for (unsigned i = 0; i < RESOLVE_PENDING_MAX; i++)
		if (r->pending[i].query && now - r->pending[i].asked_ns > TIMEOUT_S * NS_PER_S)
			answer_all(r, &r->pending[i], RESOLVE_FAILED, NULL);
}

/* ---- asking ---- */

static int send_query(struct resolver *r, const struct pending *p)
{
	struct wire_name_query m = { .query = p->query, .name = p->host };
	struct buf body;
	buf_init(&body, MUX_MESSAGE_MAX);
	int result = wire_name_query_encode(&body, &m);
	if (result == 0)
		result = mux_send(r->mux, WIRE_NAME_QUERY, body.data, body.len, NULL);
	buf_free(&body);
	return result;
}

static struct pending *find_pending(struct resolver *r, const struct hostname *host)
{
	for (unsigned i = 0; i < RESOLVE_PENDING_MAX; i++)
		if (r->pending[i].query && hostname_equal(&r->pending[i].host, host))
			return &r->pending[i];
	return NULL;
}

static struct pending *add_pending(struct resolver *r, const struct hostname *host)
{
	struct pending *p = r->pending;
	if (r->n_pending == RESOLVE_PENDING_MAX)
		return NULL;
	while (p->query)
		p++;
	if (++r->last_query == 0)
		r->last_query = 1;
	*p = (struct pending){ .query = r->last_query, .host = *host, .asked_ns = time_monotonic_ns() };
	if (send_query(r, p) < 0) {
		p->query = 0;
		return NULL;
	}
	if (r->n_pending++ == 0)
		loop_timer_set(r->sweep, SWEEP_S * NS_PER_S, SWEEP_S * NS_PER_S);
	return p;
}

void resolver_ask(struct resolver *r, const struct hostname *host, void *waiter)
{
	const struct name *n = names_find(egress_names(r->egress), host);
	if (n && n->listeners && time_monotonic_ns() - n->asked_ns < RESOLVE_TTL_S * NS_PER_S) {
		r->fn(waiter, RESOLVE_ALLOWED, n);
		return;
	}
	struct pending *p = find_pending(r, host);
	if (!p && r->n_waiters < RESOLVE_WAITERS_MAX)
		p = add_pending(r, host);
	if (p && r->n_waiters < RESOLVE_WAITERS_MAX)
		wait_for(r, p, waiter);
	else
		r->fn(waiter, RESOLVE_FAILED, NULL);
}

void resolver_answer(struct resolver *r, const struct wire_name_answer *m)
{
	struct pending *p = r->pending;
	while (p < r->pending + RESOLVE_PENDING_MAX && (p->query == 0 || p->query != m->query))
		p++;
	if (p == r->pending + RESOLVE_PENDING_MAX)
		return;
	if (!m->allowed) {
		egress_withdraw(r->egress, &p->host);
		answer_all(r, p, RESOLVE_DENIED, NULL);
		return;
	}
	const struct name *n = egress_publish(r->egress, &p->host, m->ports, m->n_ports);
	answer_all(r, p, n ? RESOLVE_ALLOWED : RESOLVE_FAILED, n);
}

/* ---- life ---- */

struct resolver *resolver_new(struct loop *loop, struct mux *mux, struct egress *egress, resolve_fn fn)
{
	struct resolver *r = mem_alloc(sizeof(*r));
	r->mux = mux;
	r->egress = egress;
	r->fn = fn;
	r->sweep = loop_timer_new(loop, on_sweep, r);
	return r;
}

struct resolver *resolver_free(struct resolver *r)
{
	if (!r)
		return NULL;
	for (unsigned i = 0; i < RESOLVE_PENDING_MAX; i++)
		if (r->pending[i].query)
			answer_all(r, &r->pending[i], RESOLVE_FAILED, NULL);
	loop_timer_free(r->sweep);
	return mem_free(r);
}
