/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/dns_server.h"

#include <errno.h>
#include <string.h>
#include <sys/socket.h>

#include "agent/dns_tcp.h"
#include "agent/listener.h"
#include "agent/resolve.h"
#include "base/fd.h"
#include "base/mem.h"
#include "net/dns.h"

enum { UDP_BATCH = 32, N_FAMILIES = 2 };

/* UDP and TCP of one address family. */
struct face {
	struct dns_server *server;
	int fd;
	struct loop_io *io;
	struct listener *listener;
};

struct dns_server {
	struct egress *egress;
	struct resolver *resolver;
	struct dns_tcp *tcp;
	struct face faces[N_FAMILIES];
};

/* Where an answer goes: a datagram's sender, or a connection. */
struct client {
	int udp; /* -1: TCP */
	struct sockaddr_storage peer;
	socklen_t peer_len;
	struct dns_tcp_conn *conn;
	uint64_t serial;
};

/* A question on its way. */
struct request {
	struct dns_server *server;
	struct client client;
	struct dns_query query;
};

static const struct ip loopbacks[N_FAMILIES] = {
	{ .family = AF_INET, .bytes = { 127, 0, 0, 1 } },
	{ .family = AF_INET6, .bytes = { [15] = 1 } },
};

/* ---- answers ---- */

static void reply(struct dns_server *s, const struct client *client, const struct dns_query *q, const struct dns_reply *r)
{
	uint8_t out[DNS_REPLY_MAX];
	if (client->udp < 0) {
		size_t len = dns_reply_build(q, r, out, sizeof(out));
		dns_tcp_reply(s->tcp, client->conn, client->serial, out, len);
		return;
	}
	size_t len = dns_reply_build(q, r, out, dns_reply_room_udp(q));
	/* a sender that doesn't read loses its answer, as UDP may */
	sendto(client->udp, out, len, MSG_DONTWAIT | MSG_NOSIGNAL, (const struct sockaddr *)&client->peer, client->peer_len);
}

static void reply_rcode(struct dns_server *s, const struct client *client, const struct dns_query *q, enum dns_rcode rcode)
{
	struct dns_reply r = { .rcode = rcode };
	reply(s, client, q, &r);
}

/* ANY is answered with one kind of record, as RFC 8482 section 4.1 allows. */
static void reply_addresses(struct dns_server *s, const struct client *client, const struct dns_query *q, const struct ip *v4,
	const struct ip *v6)
{
	bool want_v4 = q->qtype == DNS_TYPE_A || q->qtype == DNS_TYPE_ANY;
	bool want_v6 = q->qtype == DNS_TYPE_AAAA && egress_has_v6(s->egress);
	struct dns_reply r = {
		.addresses = want_v6 ? v6 : v4, .n_addresses = want_v4 || want_v6, .ttl = RESOLVE_TTL_S,
	};
	reply(s, client, q, &r);
}

static void on_resolved(void *waiter, enum resolve_result result, const struct name *n)
{
	struct request *r = waiter;
	if (result == RESOLVE_ALLOWED)
		reply_addresses(r->server, &r->client, &r->query, &n->v4, &n->v6);
	else
		reply_rcode(r->server, &r->client, &r->query, result == RESOLVE_DENIED ? DNS_NXDOMAIN : DNS_SERVFAIL);
	mem_free(r);
}

/* ---- questions ---- */

static bool is_localhost(const struct hostname *host)
{
	return str_eq(host->text, "localhost") || str_ends(host->text, ".localhost");
}

static void answer_reverse(struct dns_server *s, const struct client *client, const struct dns_query *q, const struct ip *ip)
{
	struct hostname localhost;
	hostname_parse("localhost", strlen("localhost"), &localhost, NULL);
	const struct name *n = names_find_ip(egress_names(s->egress), ip);
	bool loopback = ip_equal(ip, &loopbacks[0]) || ip_equal(ip, &loopbacks[1]);
	if (!n && !loopback) {
		reply_rcode(s, client, q, DNS_NXDOMAIN);
		return;
	}
	struct dns_reply r = { .ttl = RESOLVE_TTL_S };
	if (q->qtype == DNS_TYPE_PTR || q->qtype == DNS_TYPE_ANY)
		r.ptr = n ? &n->host : &localhost;
	reply(s, client, q, &r);
}

static void answer_name(struct dns_server *s, const struct client *client, const struct dns_query *q)
{
	char text[HOSTNAME_MAX + 1];
	size_t len;
	struct hostname host;
	if (dns_name_text(q, text, &len) < 0 || len == 0) {
		reply_rcode(s, client, q, DNS_REFUSED);
	} else if (hostname_parse(text, len, &host, NULL) < 0) {
		reply_rcode(s, client, q, memchr(text, '_', len) ? DNS_NXDOMAIN : DNS_REFUSED);
	} else if (is_localhost(&host)) {
		reply_addresses(s, client, q, &loopbacks[0], &loopbacks[1]);
	} else {
		struct request *r = mem_alloc(sizeof(*r));
		*r = (struct request){ .server = s, .client = *client, .query = *q };
		resolver_ask(s->resolver, &host, r);
	}
}

static void handle(struct dns_server *s, const struct client *client, const uint8_t *data, size_t len)
{
	struct dns_query q;
	enum dns_rcode rcode;
	struct ip ip;
	switch (dns_query_parse(data, len, &q, &rcode)) {
	case DNS_PARSE_DROP:
		if (client->udp < 0)
			dns_tcp_reply(s->tcp, client->conn, client->serial, NULL, 0);
		return;
	case DNS_PARSE_ERROR:
		reply_rcode(s, client, &q, rcode);
		return;
	case DNS_PARSE_OK:
		break;
	}
	if (dns_name_reverse(&q, &ip) == 0)
		answer_reverse(s, client, &q, &ip);
	else
		answer_name(s, client, &q);
}

static void on_tcp_message(void *ctx, struct dns_tcp_conn *conn, uint64_t serial, const uint8_t *data, size_t len)
{
	struct client client = { .udp = -1, .conn = conn, .serial = serial };
	handle(ctx, &client, data, len);
}

/* In batches, so that a flood of questions leaves the streams their turn. */
static void on_datagrams(void *ctx, int fd, int ready)
{
	struct face *f = ctx;
	for (int i = 0; i < UDP_BATCH; i++) {
		uint8_t data[DNS_QUERY_MAX];
		struct client client = { .udp = fd, .peer_len = sizeof(client.peer) };
		/* MSG_TRUNC: the length that it had, so that a longer one is seen as such */
		ssize_t n = recvfrom(fd, data, sizeof(data), MSG_DONTWAIT | MSG_TRUNC, (struct sockaddr *)&client.peer, &client.peer_len);
		if (n < 0)
			return;
		if ((size_t)n <= sizeof(data))
			handle(f->server, &client, data, (size_t)n);
	}
}

/* ---- life ---- */

static int face_open(struct face *f, struct loop *loop, struct listeners *listeners, const struct ip *ip, uint16_t port,
	struct err *err)
{
	char text[IP_TEXT_MAX];
	int fd = listener_bind(ip, port, SOCK_DGRAM);
	if (fd < 0)
		return err_sys(err, -fd, "cannot bind DNS to %s port %u (UDP) inside the box", ip_format(ip, text), port);
	f->fd = fd;
	f->io = loop_io_add(loop, fd, LOOP_READ, on_datagrams, f);
	int r = listener_open(listeners, ip, port, dns_tcp_accepted, f->server->tcp, &f->listener);
	if (r < 0)
		return err_sys(err, -r, "cannot bind DNS to %s port %u (TCP) inside the box", ip_format(ip, text), port);
	return 0;
}

struct dns_server *dns_server_new(struct loop *loop, struct mux *mux, struct egress *egress, struct listeners *listeners,
	uint16_t port, struct err *err)
{
	struct dns_server *s = mem_alloc(sizeof(*s));
	s->egress = egress;
	s->tcp = dns_tcp_new(loop, on_tcp_message, s);
	s->resolver = resolver_new(loop, mux, egress, on_resolved);
	for (unsigned i = 0; i < N_FAMILIES; i++)
		s->faces[i] = (struct face){ .server = s, .fd = -1 };
	unsigned families = egress_has_v6(egress) ? 2 : 1;
	for (unsigned i = 0; i < families; i++)
		if (face_open(&s->faces[i], loop, listeners, &loopbacks[i], port, err) < 0)
			return dns_server_free(s);
	return s;
}

struct dns_server *dns_server_free(struct dns_server *s)
{
	if (!s)
		return NULL;
	resolver_free(s->resolver); /* first: answers those who wait */
	for (unsigned i = 0; i < N_FAMILIES; i++) {
		loop_io_remove(s->faces[i].io);
		fd_close(&s->faces[i].fd);
		listener_close(s->faces[i].listener);
	}
	dns_tcp_free(s->tcp);
	return mem_free(s);
}

void dns_server_answer(struct dns_server *s, const struct wire_name_answer *m)
{
	resolver_answer(s->resolver, m);
}
