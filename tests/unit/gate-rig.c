/* SPDX-License-Identifier: Apache-2.0 */
#include "gate-rig.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "audit/event.h"
#include "audit/message.h"
#include "base/fd.h"
#include "base/mem.h"
#include "base/text.h"
#include "event/child.h"
#include "gate/gate.h"
#include "gate/policy-file.h"
#include "policy/policy.h"

#define PATIENCE_NS (20 * NS_PER_S)
#define TICK_NS (5 * NS_PER_MS)

static void answer_audit(struct rig *r);

static void on_tick(void *ctx)
{
	struct rig *r = ctx;
	if (r->audit >= 0)
		answer_audit(r);
}

/* ---- supervisor ---- */

static void take_message(struct rig *r, const uint8_t *p, size_t n)
{
	uint32_t type = 0;
	assert_int_equal(gate_msg_type(p, n, &type), 0);
	if (type == GATE_READY) {
		static struct gate_msg_ready m;
		assert_int_equal(gate_msg_ready_decode(p, n, &m, NULL), 0);
		assert_string_equal(m.ca_pem, "");
		r->ready = true;
	} else if (type == GATE_ANSWER) {
		assert_int_equal(gate_msg_answer_decode(p, n, &r->answer, NULL), 0);
		r->n_answers++;
	} else if (type == GATE_DENIED) {
		assert_int_equal(gate_msg_denied_decode(p, n, &r->denied, NULL), 0);
		r->n_denied++;
	} else if (type == GATE_LIMIT) {
		assert_int_equal(gate_msg_limit_decode(p, n, &r->limit, NULL), 0);
		r->n_limits++;
	} else {
		assert_int_equal(gate_msg_done_decode(p, n, &r->totals, NULL), 0);
		r->done = true;
	}
}

static void on_control(void *ctx, int fd, int ready)
{
	struct rig *r = ctx;
	uint8_t message[8192];
	ssize_t n;
	while ((n = recv(fd, message, sizeof(message), MSG_DONTWAIT)) > 0)
		take_message(r, message, (size_t)n);
	if (n == 0 || (errno != EAGAIN && errno != EINTR)) {
		r->control_eof = true;
		r->control_io = loop_io_remove(r->control_io);
	}
}

void rig_send_raw(struct rig *r, const void *p, size_t len)
{
	while (send(r->control, p, len, MSG_DONTWAIT | MSG_NOSIGNAL) < 0) {
		assert_int_equal(errno, EAGAIN);
		rig_step(r, "room in the control socket");
	}
}

static void send_buf(struct rig *r, struct buf *b, const int *fd)
{
	while (fd_send(r->control, b->data, b->len, fd, fd ? 1 : 0) < 0)
		rig_step(r, "room in the control socket");
	buf_free(b);
}

static struct policy *make_policy(struct rig *r, const char *network, const char *limits)
{
	char yaml[8192], rules[4096], *warning = NULL;
	size_t n = 0;
	for (const char *p = network ? network : "[]"; *p; p++)
		n += (size_t)snprintf(rules + n, sizeof(rules) - n, *p == '@' ? "%u" : "%c",
			*p == '@' ? r->servers->port : (unsigned)*p);
	snprintf(yaml, sizeof(yaml), "version: 1\nname: rig\nowner: o@example.com\nreview_by: 2099-01-01\nnetwork: %s\n%s%s\n",
		rules, limits ? "limits: " : "", limits ? limits : "");
	struct policy *p = NULL;
	struct err err = ERR_INIT;
	if (policy_parse(yaml, strlen(yaml), "rig.yaml", "2026-11-30", &p, &warning, &err) < 0)
		fail_msg("%s\n%s", err.text, yaml);
	mem_free(warning);
	policy_seal(p);
	return p;
}

static void send_config(struct rig *r, const char *network, const char *limits)
{
	static struct gate_msg_config m;
	struct policy *p = make_policy(r, network, limits);
	struct err err = ERR_INIT;
	m = (struct gate_msg_config){ .n_resolvers = 1, .sandbox = "rigrigrigrig" };
	int fd = policy_fd_make(p, &m.policy_len, &err);
	if (fd < 0)
		fail_msg("%s", err.text);
	policy_free(p);
	snprintf(m.resolvers[0], sizeof(m.resolvers[0]), "127.0.0.1:%u", r->dns_port);
	struct buf b;
	buf_init(&b, GATE_MESSAGE_MAX);
	assert_int_equal(gate_msg_config_encode(&b, &m), 0);
	send_buf(r, &b, &fd);
	fd_close(&fd);
}

void rig_ask(struct rig *r, const void *name, size_t len)
{
	struct gate_msg_name m = { .query = (uint32_t)++r->flow, .len = len };
	memcpy(m.text, name, len);
	struct buf b;
	buf_init(&b, 1024);
	gate_msg_name_encode(&b, &m);
	send_buf(r, &b, NULL);
}

void rig_finish(struct rig *r)
{
	struct buf b;
	buf_init(&b, 16);
	gate_msg_finish_encode(&b);
	send_buf(r, &b, NULL);
	RIG_WAIT(r, r->done);
}

/* ---- auditor ---- */

static void answer_audit(struct rig *r)
{
	while (r->audit_owed && !r->audit_hold) {
		struct buf b;
		buf_init(&b, 16);
		buf_put_u32(&b, AUDIT_WRITTEN);
		buf_put_u64(&b, ++r->audit_seq);
		ssize_t n = send(r->audit, b.data, b.len, MSG_DONTWAIT | MSG_NOSIGNAL);
		buf_free(&b);
		if (n < 0) { /* no room: the gate is in this very thread, so later */
			r->audit_seq--;
			break;
		}
		r->audit_owed--;
	}
}

static void take_event(struct rig *r, const uint8_t *p, size_t n)
{
	struct cursor c = cursor_make(p, n);
	uint32_t type = cursor_u32(&c);
	if (type == AUDIT_BYE)
		return;
	size_t len = cursor_u32(&c);
	json_t *fields = json_loadb((const char *)cursor_take(&c, len), len, 0, NULL);
	struct err err = ERR_INIT;
	assert_non_null(fields);
	assert_true(audit_type_allowed((enum audit_type)type, AUDIT_FROM_GATE));
	if (audit_fields_check((enum audit_type)type, fields, &err) < 0)
		fail_msg("the auditor would refuse it: %s", err.text);
	json_object_set_new(fields, "type", json_string(audit_type_name((enum audit_type)type)));
	json_array_append_new(r->events, fields);
	r->audit_owed++;
}

static void on_audit(void *ctx, int fd, int ready)
{
	struct rig *r = ctx;
	static uint8_t message[256 * 1024];
	ssize_t n;
	while ((n = recv(fd, message, sizeof(message), MSG_DONTWAIT)) > 0)
		take_event(r, message, (size_t)n);
	if (n == 0 || errno != EAGAIN) {
		r->audit_eof = true;
		r->audit_io = loop_io_remove(r->audit_io);
		return;
	}
	answer_audit(r);
}

void rig_audit_release(struct rig *r)
{
	r->audit_hold = false;
	answer_audit(r);
}

void rig_audit_fail(struct rig *r)
{
	r->audit_io = loop_io_remove(r->audit_io);
	fd_close(&r->audit);
}

size_t rig_count(const struct rig *r, const char *type)
{
	size_t n = 0, i;
	json_t *e;
	json_array_foreach(r->events, i, e)
		n += str_eq(rig_text(e, "type"), type);
	return n;
}

const json_t *rig_last(const struct rig *r, const char *type)
{
	for (size_t i = json_array_size(r->events); i-- > 0;)
		if (str_eq(rig_text(json_array_get(r->events, i), "type"), type))
			return json_array_get(r->events, i);
	fail_msg("no %s was recorded", type);
	return NULL;
}

const char *rig_text(const json_t *event, const char *key)
{
	const char *s = json_string_value(json_object_get(event, key));
	return s ? s : "";
}

int64_t rig_number(const json_t *event, const char *key)
{
	const json_t *v = json_object_get(event, key);
	return json_is_integer(v) ? json_integer_value(v) : -1;
}

/* ---- resolver ---- */

/* The name of a question as text; returns the length of the question. */
static size_t question_name(const uint8_t *p, size_t n, char *out)
{
	size_t at = 12, len = 0;
	while (at < n && p[at]) {
		if (len)
			out[len++] = '.';
		memcpy(out + len, p + at + 1, p[at]);
		len += p[at];
		at += 1u + p[at];
	}
	out[len] = 0;
	return at + 1 + 4;
}

static void put_answer(struct buf *b, int family, const void *address)
{
	buf_put_u16(b, 0xc00c);
	buf_put_u16(b, family == AF_INET ? 1 : 28);
	buf_put_u16(b, 1);
	buf_put_u32(b, 5);
	buf_put_u16(b, family == AF_INET ? 4 : 16);
	buf_append(b, address, family == AF_INET ? 4 : 16);
}

static unsigned put_answers(struct rig *r, struct buf *b, const char *name, unsigned qtype, bool *known)
{
	unsigned n = 0;
	for (const struct rig_name *e = r->names; e && e->name; e++) {
		char list[512], *save = NULL;
		if (!str_eq(e->name, name))
			continue;
		*known = true;
		snprintf(list, sizeof(list), "%s", e->addresses);
		for (char *a = strtok_r(list, ",", &save); a; a = strtok_r(NULL, ",", &save)) {
			uint8_t raw[16];
			int family = strchr(a, ':') ? AF_INET6 : AF_INET;
			assert_int_equal(inet_pton(family, a, raw), 1);
			if (qtype == (family == AF_INET ? 1u : 28u)) {
				put_answer(b, family, raw);
				n++;
			}
		}
	}
	return n;
}

static void on_dns(void *ctx, int fd, int ready)
{
	struct rig *r = ctx;
	uint8_t q[512];
	char name[300];
	struct sockaddr_storage from;
	socklen_t from_len = sizeof(from);
	ssize_t n = recvfrom(fd, q, sizeof(q), MSG_DONTWAIT, (struct sockaddr *)&from, &from_len);
	if (n < 17)
		return;
	r->dns_questions++;
	size_t end = question_name(q, (size_t)n, name);
	struct buf b;
	bool known = false;
	buf_init(&b, 2048);
	buf_append(&b, q, end);
	unsigned answers = put_answers(r, &b, name, (unsigned)q[end - 4] << 8 | q[end - 3], &known);
	b.data[2] = 0x81, b.data[3] = known ? 0x80 : 0x83;
	b.data[6] = 0, b.data[7] = (uint8_t)answers;
	b.data[8] = b.data[9] = b.data[10] = b.data[11] = 0;
	sendto(fd, b.data, b.len, 0, (struct sockaddr *)&from, from_len);
	buf_free(&b);
}

/* ---- servers ---- */

static void flush_out(int fd, struct buf *out)
{
	ssize_t n = out->len ? send(fd, out->data, out->len, MSG_DONTWAIT | MSG_NOSIGNAL) : 0;
	if (n > 0)
		buf_consume(out, (size_t)n);
	else if (n < 0 && errno != EAGAIN)
		buf_clear(out); /* the other side is gone; the test will see what it got */
}

static void peer_react(struct peer *p)
{
	struct server *s = p->server;
	if (s->reply && !p->replied && (s->reply_after ? peer_has(p, s->reply_after) : p->eof)) {
		p->replied = true;
		buf_append(&p->out, s->reply, strlen(s->reply));
	}
	flush_out(p->fd, &p->out);
	bool end = (p->replied && !s->stay) || (s->echo && p->eof);
	if (end && !p->out.len)
		shutdown(p->fd, SHUT_WR);
	loop_io_set(p->io, (p->eof || p->out.len > (1u << 20) ? 0 : LOOP_READ) | (p->out.len ? LOOP_WRITE : 0));
}

static void on_peer(void *ctx, int fd, int ready)
{
	struct peer *p = ctx;
	static uint8_t bytes[65536];
	ssize_t n = ready & LOOP_READ ? recv(fd, bytes, sizeof(bytes), MSG_DONTWAIT) : -1;
	if (n > 0) {
		buf_append(&p->got, bytes, (size_t)n);
		if (p->server->echo)
			buf_append(&p->out, bytes, (size_t)n);
	} else if (ready & LOOP_READ && (n == 0 || errno != EAGAIN)) {
		p->eof = true;
	}
	peer_react(p);
}

static void on_accept(void *ctx, int fd, int ready)
{
	struct server *s = ctx;
	int conn = accept4(fd, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
	if (conn < 0)
		return;
	struct peer *p = mem_alloc(sizeof(*p));
	*p = (struct peer){ .server = s, .fd = conn, .next = s->peers };
	buf_init(&p->got, RIG_BYTES_MAX);
	buf_init(&p->out, RIG_BYTES_MAX);
	p->io = loop_io_add(s->rig->loop, conn, LOOP_READ, on_peer, p);
	s->peers = p;
	s->n_peers++;
	if (s->greeting)
		buf_append(&p->out, s->greeting, strlen(s->greeting));
	peer_react(p);
}

struct server *rig_server(struct rig *r, const char *address, uint16_t port)
{
	struct ip ip;
	struct sockaddr_storage sa;
	socklen_t len;
	assert_int_equal(ip_parse(address, strlen(address), &ip), 0);
	ip_to_sockaddr(&ip, port, &sa, &len);
	int one = 1, fd = socket(ip.family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one));
	if (fd < 0 || bind(fd, (struct sockaddr *)&sa, len) < 0 || listen(fd, 4096) < 0) {
		fd_close(&fd);
		return NULL;
	}
	getsockname(fd, (struct sockaddr *)&sa, &len);
	struct server *s = mem_alloc(sizeof(*s));
	*s = (struct server){ .rig = r, .fd = fd, .next = NULL };
	ip_from_sockaddr((struct sockaddr *)&sa, &ip, &s->port);
	s->io = loop_io_add(r->loop, fd, LOOP_READ, on_accept, s);
	struct server **end = &r->servers;
	while (*end)
		end = &(*end)->next;
	*end = s;
	return s;
}

static bool contains(const struct buf *b, const char *text) { return b->len && memmem(b->data, b->len, text, strlen(text)); }
bool peer_has(const struct peer *p, const char *text) { return p && contains(&p->got, text); }

/* ---- clients ---- */

static void on_client(void *ctx, int fd, int ready)
{
	struct client *c = ctx;
	static uint8_t bytes[65536];
	if (ready & LOOP_READ) {
		ssize_t n = recv(fd, bytes, sizeof(bytes), MSG_DONTWAIT);
		if (n > 0)
			buf_append(&c->got, bytes, (size_t)n);
		else if (n == 0 || errno != EAGAIN)
			c->eof = true;
	}
	flush_out(fd, &c->out);
	if (c->shut && !c->out.len)
		shutdown(fd, SHUT_WR);
	loop_io_set(c->io, (c->eof ? 0 : LOOP_READ) | (c->out.len ? LOOP_WRITE : 0));
}

static struct client *open_flow(struct rig *r, struct gate_msg_open *m)
{
	int pair[2];
	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair), 0);
	m->flow = ++r->flow;
	struct buf b;
	buf_init(&b, 1024);
	assert_int_equal(gate_msg_open_encode(&b, m), 0);
	send_buf(r, &b, &pair[1]);
	fd_close(&pair[1]);
	struct client *c = mem_alloc(sizeof(*c));
	*c = (struct client){ .rig = r, .fd = pair[0], .next = r->clients };
	buf_init(&c->got, RIG_BYTES_MAX);
	buf_init(&c->out, RIG_BYTES_MAX);
	c->io = loop_io_add(r->loop, c->fd, LOOP_READ, on_client, c);
	r->clients = c;
	return c;
}

struct client *rig_open_bytes(struct rig *r, const void *name, size_t len, uint16_t port)
{
	struct gate_msg_open m = { .entrance = WIRE_ENTRANCE_NAME, .name_len = len, .port = port };
	memcpy(m.name, name, len);
	return open_flow(r, &m);
}

struct client *rig_open_name(struct rig *r, const char *name, uint16_t port)
{
	return rig_open_bytes(r, name, strlen(name), port);
}

struct client *rig_open_address(struct rig *r, const char *ip, uint16_t port)
{
	struct gate_msg_open m = { .entrance = WIRE_ENTRANCE_ADDRESS, .port = port };
	assert_int_equal(ip_parse(ip, strlen(ip), &m.address), 0);
	return open_flow(r, &m);
}

struct client *rig_open_proxy(struct rig *r)
{
	struct gate_msg_open m = { .entrance = WIRE_ENTRANCE_PROXY };
	return open_flow(r, &m);
}

void client_send(struct client *c, const void *p, size_t len)
{
	buf_append(&c->out, p, len);
	on_client(c, c->fd, LOOP_WRITE);
}

void client_say(struct client *c, const char *text) { client_send(c, text, strlen(text)); }

void client_shut(struct client *c)
{
	c->shut = true;
	on_client(c, c->fd, LOOP_WRITE);
}

void client_close(struct client *c)
{
	c->io = loop_io_remove(c->io);
	fd_close(&c->fd);
}

bool client_has(const struct client *c, const char *text) { return contains(&c->got, text); }

/* ---- the rig itself ---- */

static uint64_t deadline;

void rig_deadline(struct rig *r, bool reset)
{
	if (reset)
		deadline = time_monotonic_ns() + PATIENCE_NS;
}

void rig_step(struct rig *r, const char *what)
{
	if (deadline == 0)
		rig_deadline(r, true);
	if (time_monotonic_ns() > deadline)
		fail_msg("waited in vain for: %s", what);
	loop_run_once(r->loop, true);
}

void rig_settle(struct rig *r)
{
	rig_deadline(r, true);
	for (int i = 0; i < 20; i++)
		rig_step(r, "quiet");
}

struct rig *rig_start(void)
{
	struct rig *r = mem_alloc(sizeof(*r));
	struct sockaddr_in sa = { .sin_family = AF_INET, .sin_addr = { htonl(INADDR_LOOPBACK) } };
	socklen_t len = sizeof(sa);
	r->loop = loop_new();
	r->tick = loop_timer_new(r->loop, on_tick, r);
	loop_timer_set(r->tick, TICK_NS, TICK_NS);
	r->events = json_array();
	r->control = r->audit = -1;
	r->dns = socket(AF_INET, SOCK_DGRAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	assert_int_equal(bind(r->dns, (struct sockaddr *)&sa, sizeof(sa)), 0);
	getsockname(r->dns, (struct sockaddr *)&sa, &len);
	r->dns_port = ntohs(sa.sin_port);
	r->dns_io = loop_io_add(r->loop, r->dns, LOOP_READ, on_dns, r);
	return r;
}

/* Sockets to a gate; its ends are returned. */
static void connect_gate(struct rig *r, int ret[2], const struct rig_name *names)
{
	int control[2], audit[2];
	assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, control), 0);
	assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, audit), 0);
	r->control = control[0];
	fd_set_nonblock(r->control, true); /* the gate may be in this very thread */
	r->audit = audit[0];
	r->names = names;
	r->control_io = loop_io_add(r->loop, r->control, LOOP_READ, on_control, r);
	r->audit_io = loop_io_add(r->loop, r->audit, LOOP_READ, on_audit, r);
	ret[0] = control[1];
	ret[1] = audit[1];
}

void rig_run(struct rig *r, const char *network, const char *limits, const struct rig_name *names)
{
	static const char hosts[] = "127.0.0.1 hosts.example # by file\n";
	static const char own[] = "93.184.216.34";
	int fds[2];
	struct err err = ERR_INIT;
	connect_gate(r, fds, names);
	struct gate_system system = { .hosts = hosts_parse(hosts, strlen(hosts)), .n_host_addresses = 1 };
	system.host_addresses = mem_alloc(sizeof(struct ip));
	assert_int_equal(ip_parse(own, strlen(own), system.host_addresses), 0);
	r->gate = gate_new(r->loop, fds[0], fds[1], &system, NULL, &err);
	if (!r->gate)
		fail_msg("%s", err.text);
	send_config(r, network, limits);
	RIG_WAIT(r, r->ready);
}

void rig_run_program(struct rig *r, const char *path, const char *network, const char *limits, const struct rig_name *names)
{
	int fds[2], pidfd;
	/* Confined, a sanitizer's search for leaks at the end can't see its own threads. */
	char *argv[] = { (char *)path, NULL };
	char no_leak_check[] = "ASAN_OPTIONS=detect_leaks=0", *envp[] = { no_leak_check, NULL };
	struct err err = ERR_INIT;
	connect_gate(r, fds, names);
	struct child_fd table[] = { { fds[0], GATE_CONTROL_FD }, { fds[1], GATE_AUDIT_FD } };
	struct child_spec spec = { .path = path, .argv = argv, .envp = envp, .fds = table, .n_fds = 2, .death_signal = 9 };
	if (child_start(&spec, &r->child, &pidfd, &err) < 0)
		fail_msg("%s", err.text);
	fd_close(&pidfd);
	fd_close(&fds[0]);
	fd_close(&fds[1]);
	if (network) {
		send_config(r, network, limits);
		RIG_WAIT(r, r->ready);
	}
}

void rig_hang_up(struct rig *r)
{
	r->control_io = loop_io_remove(r->control_io);
	fd_close(&r->control);
}

static void free_server(struct server *s)
{
	for (struct peer *p = s->peers, *next; p; p = next) {
		next = p->next;
		loop_io_remove(p->io);
		fd_close(&p->fd);
		buf_free(&p->got);
		buf_free(&p->out);
		mem_free(p);
	}
	loop_io_remove(s->io);
	fd_close(&s->fd);
	mem_free(s);
}

void rig_free(struct rig *r)
{
	gate_free(r->gate);
	for (struct client *c = r->clients, *next; c; c = next) {
		next = c->next;
		client_close(c);
		buf_free(&c->got);
		buf_free(&c->out);
		mem_free(c);
	}
	for (struct server *s = r->servers, *next; s; s = next) {
		next = s->next;
		free_server(s);
	}
	loop_io_remove(r->control_io);
	loop_io_remove(r->audit_io);
	loop_io_remove(r->dns_io);
	fd_close(&r->control);
	fd_close(&r->audit);
	fd_close(&r->dns);
	loop_timer_free(r->tick);
	json_decref(r->events);
	loop_free(r->loop);
	if (r->child)
		waitpid(r->child, NULL, 0);
	mem_free(r);
}
