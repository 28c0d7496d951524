/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/egress.h"

#include <errno.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "base/mem.h"
#include "base/text.h"
#include "wire/pump.h"

enum { FLOWS_CEILING = 512, LISTENERS_CEILING = 8192, DESCRIPTORS_WANTED = 16384 };

/* One port of one name. */
struct name_port {
	struct egress *egress;
	struct name *name;
	uint16_t port;
	struct listener *v4, *v6;
};

struct name_ports {
	unsigned n;
	struct name_port ports[];
};

struct literal {
	struct egress *egress;
	struct ip address;
	uint16_t port;
	struct listener *listener;
};

/* One connection of a program, joined with a stream. */
struct flow {
	struct egress *egress;
	struct flow *prev, *next;
	struct name *name; /* NULL for the other entrances */
	int fd;            /* the pump's */
	struct pump *pump;
};

struct egress {
	struct loop *loop;
	struct mux *mux;
	struct listeners *listeners;
	struct names *names;
	struct flow *first;
	unsigned n_flows, flows_max;
	unsigned n_listeners, listeners_max;
	struct listener *proxy_v4, *proxy_v6;
	struct literal *literals;
	unsigned n_literals;
	bool v6;
};

static const struct ip loopback_v4 = { .family = AF_INET, .bytes = { 127, 0, 0, 1 } };
static const struct ip loopback_v6 = { .family = AF_INET6, .bytes = { [15] = 1 } };

/* ---- flows ---- */

static void flow_remove(struct flow *f)
{
	struct egress *e = f->egress;
	*(f->prev ? &f->prev->next : &e->first) = f->next;
	if (f->next)
		f->next->prev = f->prev;
	e->n_flows--;
	if (f->name)
		f->name->connections--;
	if (f->pump)
		pump_free(f->pump);
	mem_free(f);
}

static void on_flow_done(void *ctx, const struct err *err)
{
	struct flow *f = ctx;
	if (err)
		listener_make_reset(f->fd);
	flow_remove(f);
}

static const struct pump_ops flow_ops = { .on_done = on_flow_done };

static int announce(struct egress *e, const struct wire_egress_open *m)
{
	struct buf body;
	buf_init(&body, MUX_MESSAGE_MAX);
	int r = wire_egress_open_encode(&body, m);
	if (r == 0)
		r = mux_send(e->mux, WIRE_EGRESS_OPEN, body.data, body.len, NULL);
	buf_free(&body);
	return r;
}

/* The ceiling is checked before the host hears of the stream: a stream that it knows and we don't would end the pipe. */
static void flow_open(struct egress *e, int fd, struct wire_egress_open *m, struct name *name)
{
	if (e->n_flows >= e->flows_max) {
		listener_reset(fd);
		return;
	}
	m->stream = mux_stream_allocate(e->mux);
	if (announce(e, m) < 0) {
		listener_reset(fd);
		return;
	}
	struct flow *f = mem_alloc(sizeof(*f));
	*f = (struct flow){ .egress = e, .next = e->first, .name = name, .fd = fd };
	if (f->next)
		f->next->prev = f;
	e->first = f;
	e->n_flows++;
	if (name)
		name->connections++;
	f->pump = pump_new(e->loop, e->mux, m->stream, fd, fd, &flow_ops, f, NULL);
	if (f->pump)
		return;
	listener_reset(fd);
	flow_remove(f);
}

static void on_name_connection(void *ctx, int fd)
{
	struct name_port *p = ctx;
	struct wire_egress_open m = { .entrance = WIRE_ENTRANCE_NAME, .name = p->name->host, .port = p->port };
	flow_open(p->egress, fd, &m, p->name);
}

static void on_literal_connection(void *ctx, int fd)
{
	struct literal *l = ctx;
	struct wire_egress_open m = { .entrance = WIRE_ENTRANCE_ADDRESS, .address = l->address, .port = l->port };
	flow_open(l->egress, fd, &m, NULL);
}

static void on_proxy_connection(void *ctx, int fd)
{
	struct wire_egress_open m = { .entrance = WIRE_ENTRANCE_PROXY };
	flow_open(ctx, fd, &m, NULL);
}

/* ---- listening ---- */

static void close_counted(struct egress *e, struct listener **l)
{
	if (*l)
		e->n_listeners--;
	*l = listener_close(*l);
}

static int open_counted(struct egress *e, const struct ip *ip, uint16_t port, listener_fn fn, void *ctx, struct listener **ret)
{
	if (e->n_listeners >= e->listeners_max)
		return -EMFILE;
	int r = listener_open(e->listeners, ip, port, fn, ctx, ret);
	if (r == 0)
		e->n_listeners++;
	return r;
}

static void on_name_removed(void *ctx, struct name *n)
{
	struct egress *e = ctx;
	struct name_ports *all = n->listeners;
	for (unsigned i = 0; all && i < all->n; i++) {
		close_counted(e, &all->ports[i].v4);
		close_counted(e, &all->ports[i].v6);
	}
	n->listeners = mem_free(all);
}

static bool same_ports(const struct name_ports *all, const uint16_t *ports, unsigned n)
{
	if (!all || all->n != n)
		return false;
	for (unsigned i = 0; i < n; i++)
		if (all->ports[i].port != ports[i])
			return false;
	return true;
}

/* A ceiling was hit: an old name makes room once, then the same is tried again. */
static int open_making_room(struct egress *e, const struct ip *ip, struct name_port *p, struct listener **ret)
{
	int r = open_counted(e, ip, p->port, on_name_connection, p, ret);
	if (r == -EMFILE && names_recycle(e->names, time_monotonic_ns()) == 0)
		r = open_counted(e, ip, p->port, on_name_connection, p, ret);
	return r;
}

static int listen_name(struct egress *e, struct name *n, const uint16_t *ports, unsigned n_ports)
{
	struct name_ports *all = mem_alloc(sizeof(*all) + n_ports * sizeof(all->ports[0]));
	n->listeners = all;
	for (; all->n < n_ports; all->n++) {
		struct name_port *p = &all->ports[all->n];
		*p = (struct name_port){ .egress = e, .name = n, .port = ports[all->n] };
		int r = open_making_room(e, &n->v4, p, &p->v4);
		if (r == 0 && e->v6)
			r = open_making_room(e, &n->v6, p, &p->v6);
		if (r < 0) {
			close_counted(e, &p->v4);
			return r;
		}
	}
	return 0;
}

const struct name *egress_publish(struct egress *e, const struct hostname *host, const uint16_t *ports, unsigned n_ports)
{
	uint64_t now = time_monotonic_ns();
	struct name *n = names_get(e->names, host, now);
	if (!n)
		return NULL;
	n->asked_ns = now;
	if (same_ports(n->listeners, ports, n_ports))
		return n;
	on_name_removed(e, n);
	if (listen_name(e, n, ports, n_ports) == 0)
		return n;
	egress_withdraw(e, host);
	return NULL;
}

void egress_withdraw(struct egress *e, const struct hostname *host)
{
	struct name *n = names_find(e->names, host);
	if (!n)
		return;
	on_name_removed(e, n);
	if (n->connections == 0)
		names_remove(e->names, n);
}

const struct names *egress_names(const struct egress *e)
{
	return e->names;
}

bool egress_has_v6(const struct egress *e)
{
	return e->v6;
}

/* ---- life ---- */

/* As many descriptors as the box's limits give; exec.c sets the programs' own limit from what the agent was started with. */
static void size_to_descriptors(struct egress *e)
{
	struct rlimit limit = { .rlim_cur = 1024, .rlim_max = 1024 };
	getrlimit(RLIMIT_NOFILE, &limit);
	struct rlimit wanted = limit;
	wanted.rlim_cur = limit.rlim_max < DESCRIPTORS_WANTED ? limit.rlim_max : DESCRIPTORS_WANTED;
	if (wanted.rlim_cur > limit.rlim_cur && setrlimit(RLIMIT_NOFILE, &wanted) == 0)
		limit = wanted;
	e->flows_max = limit.rlim_cur / 4 < FLOWS_CEILING ? (unsigned)limit.rlim_cur / 4 : FLOWS_CEILING;
	e->listeners_max = limit.rlim_cur / 2 < LISTENERS_CEILING ? (unsigned)limit.rlim_cur / 2 : LISTENERS_CEILING;
}

static bool probe_v6(void)
{
	int fd = listener_bind(&loopback_v6, 0, SOCK_DGRAM);
	if (fd >= 0)
		close(fd);
	return fd >= 0;
}

struct egress *egress_new(struct loop *loop, struct mux *mux, struct listeners *listeners)
{
	struct egress *e = mem_alloc(sizeof(*e));
	*e = (struct egress){ .loop = loop, .mux = mux, .listeners = listeners, .v6 = probe_v6() };
	e->names = names_new(on_name_removed, e);
	size_to_descriptors(e);
	return e;
}

struct egress *egress_free(struct egress *e)
{
	if (!e)
		return NULL;
	while (e->first) {
		listener_make_reset(e->first->fd);
		flow_remove(e->first);
	}
	close_counted(e, &e->proxy_v4);
	close_counted(e, &e->proxy_v6);
	for (unsigned i = 0; i < e->n_literals; i++)
		close_counted(e, &e->literals[i].listener);
	mem_free(e->literals);
	names_free(e->names);
	return mem_free(e);
}

static int start_proxy(struct egress *e, uint16_t port, struct err *err)
{
	int r = open_counted(e, &loopback_v4, port, on_proxy_connection, e, &e->proxy_v4);
	if (r == 0 && e->v6)
		r = open_counted(e, &loopback_v6, port, on_proxy_connection, e, &e->proxy_v6);
	return r < 0 ? err_sys(err, -r, "cannot listen on the proxy port %u inside the box", port) : 0;
}

static int start_literals(struct egress *e, const struct wire_config *config, struct err *err)
{
	e->literals = mem_alloc_array(config->n_literals, sizeof(*e->literals));
	for (; e->n_literals < config->n_literals; e->n_literals++) {
		struct literal *l = &e->literals[e->n_literals];
		*l = (struct literal){ .egress = e, .address = config->literals[e->n_literals].address,
			.port = config->literals[e->n_literals].port };
		int r = open_counted(e, &l->address, l->port, on_literal_connection, l, &l->listener);
		char text[IP_TEXT_MAX];
		if (r < 0)
			return err_sys(err, -r, "cannot listen on address %s port %u inside the box", ip_format(&l->address, text), l->port);
	}
	return 0;
}

int egress_start(struct egress *e, const struct wire_config *config, struct err *err)
{
	if (config->proxy_port && start_proxy(e, config->proxy_port, err) < 0)
		return -1;
	return start_literals(e, config, err);
}
