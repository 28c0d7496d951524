/* SPDX-License-Identifier: Apache-2.0 */
#include "gate/resolve.h"

#include <string.h>
#include <sys/time.h>

#include <ares.h>

#include "base/mem.h"
#include "base/text.h"

enum { CACHE_MAX = 512, TTL_MIN_S = 1, TTL_MAX_S = 60, TIMEOUT_MS = 2000, TRIES = 3 };

struct entry {
	struct resolver *resolver;
	struct hostname name;
	bool pending;   /* c-ares is at work; else `answer` holds until `expires_ns` */
	struct resolver_answer answer;
	uint64_t expires_ns;
	struct resolver_lookup *waiting;
	struct entry *next;
};

struct resolver_lookup {
	struct entry *entry;
	resolver_fn fn;
	void *ctx;
	struct resolver_lookup *prev, *next;
};

/* A socket of c-ares in our loop. */
struct watched {
	struct resolver *resolver;
	int fd;
	struct loop_io *io;
	struct watched *next;
};

struct resolver {
	struct loop *loop;
	struct hosts *hosts;
	ares_channel channel;
	struct loop_timer *timer;
	struct watched *watched;
	struct entry *entries;
	size_t n_entries;
};

/* ---- c-ares in the loop ---- */

static void arm_timer(struct resolver *r)
{
	struct timeval tv;
	if (!ares_timeout(r->channel, NULL, &tv)) {
		loop_timer_stop(r->timer);
		return;
	}
	uint64_t ns = (uint64_t)tv.tv_sec * NS_PER_S + (uint64_t)tv.tv_usec * 1000;
	loop_timer_set(r->timer, ns ? ns : NS_PER_MS, 0);
}

static void on_timer(void *ctx)
{
	struct resolver *r = ctx;
	ares_process_fd(r->channel, ARES_SOCKET_BAD, ARES_SOCKET_BAD);
	arm_timer(r);
}

static void on_socket(void *ctx, int fd, int ready)
{
	struct watched *w = ctx;
	struct resolver *r = w->resolver; /* w may be gone after the next call */
	ares_process_fd(r->channel, ready & LOOP_READ ? fd : ARES_SOCKET_BAD, ready & LOOP_WRITE ? fd : ARES_SOCKET_BAD);
	arm_timer(r);
}

static void on_socket_state(void *ctx, ares_socket_t fd, int readable, int writable)
{
	struct resolver *r = ctx;
	struct watched **link = &r->watched;
	while (*link && (*link)->fd != fd)
		link = &(*link)->next;
	struct watched *w = *link;
	int events = (readable ? LOOP_READ : 0) | (writable ? LOOP_WRITE : 0);
	if (!w && events) {
		w = mem_alloc(sizeof(*w));
		*w = (struct watched){ .resolver = r, .fd = fd, .next = r->watched };
		w->io = loop_io_add(r->loop, fd, events, on_socket, w);
		r->watched = w;
	} else if (w && events) {
		loop_io_set(w->io, events);
	} else if (w) {
		*link = w->next;
		loop_io_remove(w->io);
		mem_free(w);
	}
}

/* ---- answers ---- */

static void entry_drop(struct entry *e)
{
	struct resolver *r = e->resolver;
	struct entry **link = &r->entries;
	while (*link != e)
		link = &(*link)->next;
	*link = e->next;
	r->n_entries--;
	mem_free(e);
}

struct resolver_lookup *resolver_cancel(struct resolver_lookup *l)
{
	if (!l)
		return NULL;
	if (l->prev)
		l->prev->next = l->next;
	else
		l->entry->waiting = l->next;
	if (l->next)
		l->next->prev = l->prev;
	return mem_free(l);
}

static struct resolver_lookup *wait_for(struct entry *e, resolver_fn fn, void *ctx)
{
	struct resolver_lookup *l = mem_alloc(sizeof(*l));
	*l = (struct resolver_lookup){ .entry = e, .fn = fn, .ctx = ctx, .next = e->waiting };
	if (e->waiting)
		e->waiting->prev = l;
	e->waiting = l;
	return l;
}

/* IPv6 first, then by turns: a family without a route must not hold up the other. */
static void merge(struct resolver_answer *out, const struct ip *v6, size_t n6, const struct ip *v4, size_t n4)
{
	size_t i = 0, j = 0;
	out->n = 0;
	while (out->n < RESOLVE_ADDRESSES_MAX && (i < n6 || j < n4)) {
		if (i < n6)
			out->addresses[out->n++] = v6[i++];
		if (j < n4 && out->n < RESOLVE_ADDRESSES_MAX)
			out->addresses[out->n++] = v4[j++];
	}
}

/* Sorts a mixed list into alternating families. */
static void alternate(struct resolver_answer *a)
{
	struct ip v6[RESOLVE_ADDRESSES_MAX], v4[RESOLVE_ADDRESSES_MAX];
	size_t n6 = 0, n4 = 0;
	for (size_t i = 0; i < a->n; i++) {
		if (a->addresses[i].family == AF_INET6)
			v6[n6++] = a->addresses[i];
		else
			v4[n4++] = a->addresses[i];
	}
	merge(a, v6, n6, v4, n4);
}

static void take_answer(struct entry *e, const struct ares_addrinfo *info)
{
	int ttl = TTL_MAX_S;
	e->answer.n = 0;
	for (const struct ares_addrinfo_node *n = info ? info->nodes : NULL; n; n = n->ai_next) {
		struct ip ip;
		if (e->answer.n == RESOLVE_ADDRESSES_MAX || ip_from_sockaddr(n->ai_addr, &ip, NULL) < 0)
			continue;
		e->answer.addresses[e->answer.n++] = ip;
		if (n->ai_ttl < ttl)
			ttl = n->ai_ttl;
	}
	alternate(&e->answer);
	if (ttl < TTL_MIN_S)
		ttl = TTL_MIN_S;
	e->expires_ns = e->answer.n ? time_monotonic_ns() + (uint64_t)ttl * NS_PER_S : 0;
}

static void on_answer(void *ctx, int status, int timeouts, struct ares_addrinfo *info)
{
	struct entry *e = ctx;
	if (status == ARES_EDESTRUCTION || status == ARES_ECANCELLED)
		return; /* resolver_free: entries and lookups go there */
	take_answer(e, status == ARES_SUCCESS ? info : NULL);
	if (info)
		ares_freeaddrinfo(info);
	e->pending = false;
	struct resolver_answer answer = e->answer;
	/* A callback may cancel other lookups, or ask again: take from the front until none is left. */
	while (!e->pending && e->waiting) {
		struct resolver_lookup *l = e->waiting;
		resolver_fn fn = l->fn;
		void *fn_ctx = l->ctx;
		resolver_cancel(l);
		fn(fn_ctx, &answer);
	}
}

/* ---- asking ---- */

static struct entry *entry_find(struct resolver *r, const struct hostname *name)
{
	for (struct entry *e = r->entries; e; e = e->next)
		if (hostname_equal(&e->name, name))
			return e;
	return NULL;
}

/* Makes room by the entry that expires first; none can go while all are pending. */
static bool make_room(struct resolver *r)
{
	if (r->n_entries < CACHE_MAX)
		return true;
	struct entry *oldest = NULL;
	for (struct entry *e = r->entries; e; e = e->next)
		if (!e->pending && !e->waiting && (!oldest || e->expires_ns < oldest->expires_ns))
			oldest = e;
	if (oldest)
		entry_drop(oldest);
	return oldest != NULL;
}

static struct entry *entry_new(struct resolver *r, const struct hostname *name)
{
	if (!make_room(r))
		return NULL;
	struct entry *e = mem_alloc(sizeof(*e));
	e->resolver = r;
	e->name = *name;
	e->next = r->entries;
	r->entries = e;
	r->n_entries++;
	return e;
}

static void entry_start(struct entry *e)
{
	static const struct ares_addrinfo_hints hints = {
		.ai_family = AF_UNSPEC,
		.ai_socktype = SOCK_STREAM,
		.ai_flags = ARES_AI_NOSORT,
	};
	e->pending = true;
	ares_getaddrinfo(e->resolver->channel, e->name.text, NULL, &hints, on_answer, e);
	arm_timer(e->resolver);
}

int resolver_lookup(struct resolver *r, const struct hostname *name, resolver_fn fn, void *ctx,
	struct resolver_answer *ret_answer, struct resolver_lookup **ret_lookup)
{
	struct resolver_answer answer = { .n = 0 };
	answer.n = hosts_lookup(r->hosts, name, answer.addresses, RESOLVE_ADDRESSES_MAX);
	struct entry *e = answer.n ? NULL : entry_find(r, name);
	if (!answer.n && !e)
		e = entry_new(r, name);
	if (e && !e->pending && e->expires_ns <= time_monotonic_ns())
		entry_start(e);
	if (e && e->pending) {
		*ret_lookup = wait_for(e, fn, ctx);
		return 0;
	}
	if (e)
		answer = e->answer;
	else
		alternate(&answer);
	*ret_answer = answer;
	return 1;
}

/* ---- life ---- */

int resolver_set_servers(struct resolver *r, const char *csv, struct err *err)
{
	int status = ares_set_servers_ports_csv(r->channel, csv);
	if (status != ARES_SUCCESS)
		return err_set(err, ERR_INVALID, "the resolvers \"%s\" can't be used: %s; give IP:PORT", csv,
			ares_strerror(status));
	return 0;
}

struct resolver *resolver_new(struct loop *loop, struct hosts *hosts, struct err *err)
{
	struct resolver *r = mem_alloc(sizeof(*r));
	r->loop = loop;
	r->hosts = hosts;
	/* The very name, never a search list or $HOSTALIASES; "b": never files. What is left of resolv.conf is read right here.
	 * Sockets aren't kept open: a fresh source port for each burst of questions is what makes forged answers hard. */
	char lookups[] = "b";
	struct ares_options options = {
		.flags = ARES_FLAG_NOSEARCH | ARES_FLAG_NOALIASES,
		.timeout = TIMEOUT_MS,
		.tries = TRIES,
		.ndots = 1,
		.ndomains = 0,
		.lookups = lookups,
		.sock_state_cb = on_socket_state,
		.sock_state_cb_data = r,
	};
	int mask = ARES_OPT_FLAGS | ARES_OPT_TIMEOUTMS | ARES_OPT_TRIES | ARES_OPT_NDOTS | ARES_OPT_LOOKUPS |
		ARES_OPT_SOCK_STATE_CB | ARES_OPT_DOMAINS;
	int status = ares_library_init(ARES_LIB_INIT_ALL);
	if (status == ARES_SUCCESS)
		status = ares_init_options(&r->channel, &options, mask);
	if (status != ARES_SUCCESS) {
		err_set(err, ERR_SYSTEM, "the resolver can't start: %s; look at /etc/resolv.conf", ares_strerror(status));
		hosts_free(r->hosts);
		mem_free(r);
		return NULL;
	}
	r->timer = loop_timer_new(loop, on_timer, r);
	return r;
}

struct resolver *resolver_free(struct resolver *r)
{
	if (!r)
		return NULL;
	ares_destroy(r->channel);
	for (struct entry *e = r->entries, *next; e; e = next) {
		next = e->next;
		while (e->waiting)
			resolver_cancel(e->waiting);
		mem_free(e);
	}
	while (r->watched)
		on_socket_state(r, r->watched->fd, 0, 0);
	loop_timer_free(r->timer);
	hosts_free(r->hosts);
	ares_library_cleanup();
	return mem_free(r);
}
