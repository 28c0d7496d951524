/* SPDX-License-Identifier: Apache-2.0 */
/* Flows through a gate, from every entrance to local servers: what passes, what doesn't, what is recorded, what is counted. */
#include "gate-rig.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <unistd.h>

#include "base/mem.h"

#define LOCAL "[{ host: ok.example, ports: [@], private: true }, { host: \"*.wild.example\", ports: [@], private: true }, " \
	"{ host: 127.0.0.1, ports: [@], private: true }]"

static const struct rig_name local_names[] = { { "ok.example", "127.0.0.1" }, { "a.wild.example", "127.0.0.1" },
	{ "wild.example", "127.0.0.1" }, { "evil.example", "127.0.0.1" }, { NULL, NULL } };

/* A rig with one server; its behaviour may be set before bytes flow. */
static struct rig *local_rig(struct server **ret, const char *limits)
{
	struct rig *r = rig_start();
	*ret = rig_server(r, "127.0.0.1", 0);
	assert_non_null(*ret);
	rig_run(r, LOCAL, limits, local_names);
	return r;
}

static void assert_denied(struct rig *r, const char *reason)
{
	RIG_WAIT(r, r->n_denied > 0);
	assert_string_equal(reason_name(r->denied.reason), reason);
	RIG_WAIT(r, rig_count(r, "egress") > 0);
	const json_t *e = rig_last(r, "egress");
	assert_true(json_is_false(json_object_get(e, "allow")));
	assert_string_equal(rig_text(e, "reason"), reason);
}

/* ---- what passes ---- */

static void raw_bytes_pass_both_ways(void **state)
{
	struct server *s;
	struct rig *r = local_rig(&s, NULL);
	s->echo = true;
	struct client *c = rig_open_name(r, "ok.example", s->port);
	client_send(c, "\0\1binary\n", 9);
	RIG_WAIT(r, c->got.len == 9);
	assert_memory_equal(c->got.data, "\0\1binary\n", 9);
	client_shut(c);
	RIG_WAIT(r, c->eof);
	RIG_WAIT(r, rig_count(r, "egress.end") == 1);
	const json_t *e = rig_last(r, "egress"), *end = rig_last(r, "egress.end");
	assert_true(json_is_true(json_object_get(e, "allow")));
	assert_string_equal(rig_text(e, "host"), "ok.example");
	assert_string_equal(rig_text(e, "entrance"), "name");
	assert_string_equal(rig_text(end, "address"), "127.0.0.1");
	assert_string_equal(rig_text(end, "protocol"), "tcp");
	assert_int_equal(rig_number(end, "bytes_up"), 9);
	assert_int_equal(rig_number(end, "bytes_down"), 9);
	rig_finish(r);
	assert_int_equal(r->totals.allowed, 1);
	assert_int_equal(r->totals.denied, 0);
	assert_int_equal(r->totals.bytes_up, 9);
	rig_free(r);
}

static void names_of_the_hosts_file_and_wildcards_pass(void **state)
{
	struct rig *r = rig_start();
	struct server *s = rig_server(r, "127.0.0.1", 0);
	s->echo = true;
	rig_run(r, "[{ host: hosts.example, ports: [@], private: true }, { host: \"*.wild.example\", ports: [@], private: true }]", NULL, local_names);
	struct client *c = rig_open_name(r, "HOSTS.example.", s->port);
	client_say(c, "x\n");
	RIG_WAIT(r, client_has(c, "x"));
	assert_int_equal(r->dns_questions, 0);
	struct client *w = rig_open_name(r, "a.wild.example", s->port);
	client_say(w, "y\n");
	RIG_WAIT(r, client_has(w, "y"));
	struct client *apex = rig_open_name(r, "wild.example", s->port);
	client_say(apex, "z\n");
	RIG_WAIT(r, apex->eof);
	assert_denied(r, "no_rule");
	rig_free(r);
}

static void servers_may_speak_first(void **state)
{
	struct server *s;
	struct rig *r = local_rig(&s, NULL);
	s->greeting = "220 mail ESMTP\r\n";
	s->reply_after = "EHLO";
	s->reply = "250 ok\r\n";
	struct client *c = rig_open_name(r, "ok.example", s->port);
	RIG_WAIT(r, client_has(c, "220 mail"));
	client_say(c, "EHLO box\r\n");
	RIG_WAIT(r, client_has(c, "250 ok"));
	rig_free(r);
}

static void half_closes_are_kept(void **state)
{
	struct server *s;
	struct rig *r = local_rig(&s, NULL);
	s->reply = "counted";
	struct client *c = rig_open_name(r, "ok.example", s->port);
	client_say(c, "SEND 5\n");
	client_shut(c);
	RIG_WAIT(r, c->eof);
	assert_true(client_has(c, "counted"));
	assert_true(peer_has(s->peers, "SEND 5\n") && s->peers->eof);
	rig_free(r);
}

static void large_transfers_are_exact(void **state)
{
	enum { SIZE = 24 * 1024 * 1024 };
	struct server *s;
	struct rig *r = local_rig(&s, NULL);
	s->echo = true;
	struct client *c = rig_open_name(r, "ok.example", s->port);
	uint8_t *data = mem_alloc(SIZE);
	for (size_t i = 0; i < SIZE; i++)
		data[i] = (uint8_t)(i * 2654435761u >> 13);
	data[0] = 0;
	client_send(c, data, SIZE);
	client_shut(c);
	RIG_WAIT(r, c->eof);
	assert_int_equal(c->got.len, SIZE);
	assert_memory_equal(c->got.data, data, SIZE);
	mem_free(data);
	rig_free(r);
}

/* ---- the record comes first ---- */

static void nothing_moves_before_the_record(void **state)
{
	struct server *s;
	struct rig *r = local_rig(&s, NULL);
	r->audit_hold = true;
	struct client *c = rig_open_name(r, "ok.example", s->port);
	client_say(c, "hello\n");
	RIG_WAIT(r, rig_count(r, "egress") == 1);
	rig_settle(r);
	assert_int_equal(r->dns_questions, 0);
	assert_int_equal(s->n_peers, 0);
	rig_audit_release(r);
	RIG_WAIT(r, peer_has(s->peers, "hello"));
	rig_free(r);
}

static void a_lost_record_stops_everything(void **state)
{
	struct server *s;
	struct rig *r = local_rig(&s, NULL);
	s->echo = true;
	struct client *live = rig_open_name(r, "ok.example", s->port);
	client_say(live, "x\n");
	RIG_WAIT(r, client_has(live, "x"));
	rig_audit_fail(r);
	RIG_WAIT(r, live->eof);
	struct client *c = rig_open_proxy(r);
	char text[128];
	snprintf(text, sizeof(text), "CONNECT ok.example:%u HTTP/1.1\r\n\r\n", s->port);
	client_say(c, text);
	RIG_WAIT(r, c->eof);
	assert_true(client_has(c, "Bulkhead-Reason: record_unavailable"));
	rig_ask(r, "ok.example", 10);
	RIG_WAIT(r, r->n_answers == 1);
	assert_false(r->answer.allowed);
	assert_int_equal(s->n_peers, 1);
	rig_free(r);
}

/* ---- names and addresses ---- */

static void denied_names_are_never_resolved(void **state)
{
	static const char *const names[] = { "evil.example", "ok.example.evil.example", "wild.example", "xok.example", "data.in.labels.evil.example",
		"ok.example\0.evil", "ok..example", "ok_example", "0x7f.1", "127.1", "2130706433", "017700000001", "127.0.0.2", "[::1]", "::1", "-a.example" };
	static const size_t lengths[] = { [5] = 16 };
	struct server *s;
	struct rig *r = local_rig(&s, NULL);
	for (size_t i = 0; i < ARRAY_LEN(names); i++) {
		size_t len = i < ARRAY_LEN(lengths) && lengths[i] ? lengths[i] : strlen(names[i]);
		unsigned before = r->n_answers;
		rig_ask(r, names[i], len);
		RIG_WAIT(r, r->n_answers > before);
		assert_false(r->answer.allowed);
		assert_int_equal(r->answer.n_ports, 0);
		unsigned denied = r->n_denied;
		struct client *c = rig_open_bytes(r, names[i], len, s->port);
		client_say(c, "GET / HTTP/1.1\r\nHost: ok.example\r\n\r\n");
		RIG_WAIT(r, c->eof && r->n_denied > denied);
	}
	assert_int_equal(r->dns_questions, 0);
	assert_int_equal(s->n_peers, 0);
	rig_free(r);
}

static void allowed_names_are_answered_with_ports(void **state)
{
	struct server *s;
	struct rig *r = local_rig(&s, NULL);
	rig_ask(r, "OK.Example", 10);
	RIG_WAIT(r, r->n_answers == 1);
	assert_true(r->answer.allowed);
	assert_int_equal(r->answer.n_ports, 1);
	assert_int_equal(r->answer.ports[0], s->port);
	assert_int_equal(r->dns_questions, 0);
	rig_free(r);
}

static void other_ports_are_refused(void **state)
{
	struct server *s;
	struct rig *r = local_rig(&s, NULL);
	struct client *c = rig_open_name(r, "ok.example", (uint16_t)(s->port ^ 1));
	client_say(c, "\0");
	client_shut(c);
	RIG_WAIT(r, c->eof);
	assert_denied(r, "port_not_allowed");
	assert_int_equal(r->dns_questions, 0);
	rig_free(r);
}

static void addresses_need_their_own_rule(void **state)
{
	struct server *s;
	struct rig *r = local_rig(&s, NULL);
	s->echo = true;
	struct client *c = rig_open_address(r, "127.0.0.1", s->port);
	client_say(c, "x\n");
	RIG_WAIT(r, client_has(c, "x"));
	assert_string_equal(rig_text(rig_last(r, "egress"), "address"), "127.0.0.1");
	struct client *d = rig_open_address(r, "93.184.216.35", s->port);
	client_shut(d);
	RIG_WAIT(r, d->eof);
	assert_denied(r, "address_literal");
	rig_free(r);
}

/* Public names that lead inside, in every spelling a resolver can answer with. */
static void the_floor_holds_after_resolution(void **state)
{
	static const struct { const char *address, *reason; } cases[] = {
		{ "127.0.0.1", "address_loopback" }, { "127.8.9.1", "address_loopback" }, { "::1", "address_loopback" },
		{ "0.0.0.0", NULL }, { "::", NULL }, { "10.0.0.1", "address_private" }, { "172.16.0.1", "address_private" },
		{ "192.168.1.1", "address_private" }, { "100.64.0.1", NULL }, { "fd00::1", "address_private" },
		{ "169.254.1.1", "address_link_local" }, { "fe80::1", "address_link_local" }, { "169.254.169.254", "address_metadata" },
		{ "fd00:ec2::254", "address_metadata" }, { "224.0.0.1", "address_multicast" }, { "ff02::1", "address_multicast" },
		{ "255.255.255.255", NULL }, { "240.0.0.1", "address_reserved" }, { "::ffff:127.0.0.1", NULL }, { "64:ff9b::7f00:1", NULL },
		{ "2002:7f00:1::", NULL }, { "::ffff:a9fe:a9fe", NULL }, { "198.18.0.1", NULL }, { "203.0.113.7", NULL },
	};
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		const struct rig_name names[] = { { "trap.example", cases[i].address }, { NULL, NULL } };
		struct rig *r = rig_start();
		struct server *s = rig_server(r, "127.0.0.1", 0);
		rig_run(r, "[{ host: trap.example, ports: [@] }]", NULL, names);
		struct client *c = rig_open_name(r, "trap.example", s->port);
		client_say(c, "GET / HTTP/1.1\r\n\r\n");
		RIG_WAIT(r, c->eof);
		RIG_WAIT(r, r->n_denied == 1);
		if (cases[i].reason)
			assert_string_equal(reason_name(r->denied.reason), cases[i].reason);
		assert_true(client_has(c, "403 Forbidden"));
		assert_true(client_has(c, reason_name(r->denied.reason)));
		RIG_WAIT(r, rig_count(r, "egress") == 2 && rig_count(r, "egress.end") == 1);
		assert_int_equal(s->n_peers, 0);
		rig_free(r);
	}
}

static void the_hosts_own_address_is_refused(void **state)
{
	static const struct rig_name names[] = { { "self.example", "93.184.216.34" }, { NULL, NULL } };
	struct rig *r = rig_start();
	struct server *s = rig_server(r, "127.0.0.1", 0);
	rig_run(r, "[{ host: self.example, ports: [@] }]", NULL, names);
	struct client *c = rig_open_name(r, "self.example", s->port);
	client_shut(c);
	RIG_WAIT(r, r->n_denied == 1);
	assert_int_equal(r->denied.reason, REASON_ADDRESS_HOST);
	rig_free(r);
}

static void unresolved_and_unreachable_are_no_denials(void **state)
{
	struct rig *r = rig_start();
	struct server *s = rig_server(r, "127.0.0.1", 0);
	rig_run(r, "[{ host: gone.example, ports: [@] }, { host: ok.example, ports: [1, @], private: true }]", NULL, local_names);
	char text[128];
	struct client *c = rig_open_proxy(r);
	snprintf(text, sizeof(text), "CONNECT gone.example:%u HTTP/1.1\r\n\r\n", s->port);
	client_say(c, text);
	RIG_WAIT(r, c->eof);
	assert_true(client_has(c, "502 Bad Gateway") && client_has(c, "Bulkhead-Reason: resolve_failed"));
	struct client *d = rig_open_proxy(r);
	client_say(d, "CONNECT ok.example:1 HTTP/1.1\r\n\r\n");
	RIG_WAIT(r, d->eof);
	assert_true(client_has(d, "502 Bad Gateway") && client_has(d, "Bulkhead-Reason: connect_failed"));
	RIG_WAIT(r, rig_count(r, "egress.end") == 2);
	assert_int_equal(r->n_denied, 0);
	rig_free(r);
}

static void the_next_address_is_tried(void **state)
{
	static const struct rig_name names[] = { { "ok.example", "::1,127.0.0.1" }, { NULL, NULL } };
	struct rig *r = rig_start();
	struct server *s = rig_server(r, "127.0.0.1", 0);
	s->echo = true;
	rig_run(r, "[{ host: ok.example, ports: [@], private: true }]", NULL, names);
	struct client *c = rig_open_name(r, "ok.example", s->port);
	client_say(c, "x\n");
	RIG_WAIT(r, client_has(c, "x"));
	rig_free(r);
}

/* ---- TLS ---- */

static size_t hello(uint8_t *out, const char *name, bool ech)
{
	uint8_t ext[400];
	size_t n = name ? strlen(name) : 0, e = 0, at = 0;
	if (name) {
		const uint8_t head[] = { 0, 0, 0, (uint8_t)(n + 5), 0, (uint8_t)(n + 3), 0, 0, (uint8_t)n };
		memcpy(ext, head, sizeof(head));
		memcpy(ext + sizeof(head), name, n);
		e = sizeof(head) + n;
	}
	if (ech) {
		memcpy(ext + e, "\xfe\x0d\0\2xx", 6);
		e += 6;
	}
	size_t body = 2 + 32 + 1 + 4 + 2 + 2 + e;
	const uint8_t head[] = { 22, 3, 1, (uint8_t)((body + 4) >> 8), (uint8_t)(body + 4), 1, 0, (uint8_t)(body >> 8), (uint8_t)body, 3, 3 };
	memcpy(out, head, sizeof(head));
	at = sizeof(head);
	memset(out + at, 5, 32);
	at += 32;
	const uint8_t rest[] = { 0, 0, 2, 0x13, 1, 1, 0, (uint8_t)(e >> 8), (uint8_t)e };
	memcpy(out + at, rest, sizeof(rest));
	at += sizeof(rest);
	memcpy(out + at, ext, e);
	return at + e;
}

static void tls_with_the_right_name_passes_unchanged(void **state)
{
	struct server *s;
	struct rig *r = local_rig(&s, NULL);
	uint8_t b[1024];
	size_t n = hello(b, "OK.example", false);
	s->reply_after = "after";
	s->reply = "server hello";
	struct client *c = rig_open_name(r, "ok.example", s->port);
	for (size_t i = 0; i < n; i++) { /* one byte at a time */
		client_send(c, b + i, 1);
		loop_run_once(r->loop, false);
	}
	client_say(c, "after");
	RIG_WAIT(r, client_has(c, "server hello"));
	assert_int_equal(s->peers->got.len, n + 5);
	assert_memory_equal(s->peers->got.data, b, n);
	client_shut(c);
	RIG_WAIT(r, rig_count(r, "egress.end") == 1);
	assert_string_equal(rig_text(rig_last(r, "egress.end"), "protocol"), "tls");
	rig_free(r);
}

static void tls_with_another_name_is_refused(void **state)
{
	static const struct { const char *name; bool ech; const char *reason; } cases[] = {
		{ "evil.example", false, "tls_name_mismatch" }, { NULL, false, "tls_name_missing" }, { "evil.example", true, "tls_name_mismatch" },
		{ "ok.example.evil.example", false, "tls_name_mismatch" }, { "a.ok.example", false, "tls_name_mismatch" },
		{ "127.0.0.1", false, "tls_name_mismatch" }, { "ok.example:443", false, "tls_name_mismatch" },
	};
	for (size_t i = 0; i < 2 * ARRAY_LEN(cases); i++) {
		bool tunnel = i >= ARRAY_LEN(cases); /* both entrances */
		struct server *s;
		struct rig *r = local_rig(&s, NULL);
		uint8_t b[1024];
		char text[128];
		size_t n = hello(b, cases[i % ARRAY_LEN(cases)].name, cases[i % ARRAY_LEN(cases)].ech);
		struct client *c = tunnel ? rig_open_proxy(r) : rig_open_name(r, "ok.example", s->port);
		if (tunnel) {
			snprintf(text, sizeof(text), "CONNECT ok.example:%u HTTP/1.1\r\nHost: ok.example:%u\r\n\r\n", s->port, s->port);
			client_say(c, text);
		}
		client_send(c, b, n);
		RIG_WAIT(r, c->eof);
		assert_denied(r, cases[i % ARRAY_LEN(cases)].reason);
		assert_memory_equal(c->got.data + c->got.len - 7, "\x15\3\3\0\2\2\x31", 7);
		RIG_WAIT(r, s->n_peers == 0 || s->peers->eof);
		assert_true(s->n_peers == 0 || s->peers->got.len == 0);
		rig_free(r);
	}
}

static void broken_tls_is_refused(void **state)
{
	struct server *s;
	struct rig *r = local_rig(&s, NULL);
	struct client *c = rig_open_name(r, "ok.example", s->port);
	client_send(c, "\x16\3\1\0\4\2\0\0\0", 9);
	RIG_WAIT(r, c->eof);
	assert_denied(r, "tls_malformed");
	rig_free(r);
}

static void a_literal_target_needs_no_server_name(void **state)
{
	struct server *s;
	struct rig *r = local_rig(&s, NULL);
	s->echo = true;
	uint8_t b[1024];
	size_t n = hello(b, NULL, false);
	struct client *c = rig_open_address(r, "127.0.0.1", s->port);
	client_send(c, b, n);
	RIG_WAIT(r, c->got.len == n);
	struct client *d = rig_open_address(r, "127.0.0.1", s->port);
	n = hello(b, "evil.example", false);
	client_send(d, b, n);
	RIG_WAIT(r, d->eof);
	assert_denied(r, "tls_name_mismatch");
	rig_free(r);
}

static void encrypted_hellos_are_on_the_record(void **state)
{
	struct server *s;
	struct rig *r = local_rig(&s, NULL);
	s->echo = true;
	uint8_t b[1024];
	size_t n = hello(b, "ok.example", true);
	struct client *c = rig_open_name(r, "ok.example", s->port);
	client_send(c, b, n);
	client_shut(c);
	RIG_WAIT(r, rig_count(r, "egress.end") == 1);
	assert_true(json_is_true(json_object_get(rig_last(r, "egress.end"), "encrypted_hello")));
	rig_free(r);
}

/* ---- HTTP ---- */

enum entrance { BY_NAME, BY_ADDRESS, BY_PROXY, BY_TUNNEL, N_ENTRANCES };

/* Opens a flow to the server and sends "METHOD TARGET HTTP/1.1" with `rest` (from the Host line on); %u and "@" have no place here: the port is
 * appended to `host` by the caller's text through PORT. */
static struct client *request(struct rig *r, struct server *s, enum entrance by, const char *method, const char *path, const char *rest)
{
	char text[4096], tunnel[256];
	const char *host = by == BY_ADDRESS ? "127.0.0.1" : "ok.example";
	struct client *c = by == BY_NAME ? rig_open_name(r, host, s->port) : by == BY_ADDRESS ? rig_open_address(r, host, s->port) : rig_open_proxy(r);
	if (by == BY_TUNNEL) {
		snprintf(tunnel, sizeof(tunnel), "CONNECT %s:%u HTTP/1.1\r\n\r\n", host, s->port);
		client_say(c, tunnel);
	}
	if (by == BY_PROXY)
		snprintf(text, sizeof(text), "%s http://%s:%u%s HTTP/1.1\r\n%s", method, host, s->port, path, rest);
	else
		snprintf(text, sizeof(text), "%s %s HTTP/1.1\r\n%s", method, path, rest);
	client_say(c, text);
	return c;
}

static void requests_pass_by_every_entrance(void **state)
{
	for (enum entrance by = 0; by < N_ENTRANCES; by++) {
		struct server *s;
		struct rig *r = local_rig(&s, NULL);
		char rest[256], want[256];
		const char *host = by == BY_ADDRESS ? "127.0.0.1" : "ok.example";
		s->reply_after = "\r\n\r\nhello";
		s->reply = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nhi";
		snprintf(rest, sizeof(rest), "Host: %s:%u\r\nProxy-Connection: keep-alive\r\nA: b\r\nContent-Length: 5\r\n\r\nhello", host, s->port);
		struct client *c = request(r, s, by, "POST", "/p?q", rest);
		RIG_WAIT(r, c->eof);
		snprintf(want, sizeof(want), "POST /p?q HTTP/1.1\r\nHost: %s:%u\r\nA: b\r\nContent-Length: 5\r\nConnection: close\r\n\r\nhello", host, s->port);
		assert_true(peer_has(s->peers, want));
		assert_int_equal(s->peers->got.len, strlen(want));
		assert_true(client_has(c, "200 OK\r\nContent-Length: 2\r\n\r\nhi"));
		RIG_WAIT(r, rig_count(r, "egress.end") == 1);
		assert_string_equal(rig_text(rig_last(r, "egress.end"), "protocol"), "http");
		rig_free(r);
	}
}

/* The same requests by every entrance; the answer is a 403 with the same reason, and the server sees not one byte. */
static void bad_requests_are_refused_by_every_entrance(void **state)
{
	static const struct { const char *method, *path, *rest, *reason; } cases[] = {
		{ "GET", "/", "Host: evil.example\r\n\r\n", "http_host_mismatch" },
		{ "GET", "/", "Host: ok.example:1\r\n\r\n", "http_host_mismatch" },
		{ "GET", "/", "Host: ok.example.evil.example\r\n\r\n", "http_host_mismatch" },
		{ "GET", "/", "Host: ok.example@evil.example\r\n\r\n", "http_host_mismatch" },
		{ "GET", "/", "Host:\r\n\r\n", "http_host_mismatch" },
		{ "GET", "/", "Accept: */*\r\n\r\n", "http_host_missing" },
		{ "GET", "/", "Host: ok.example\r\nHost: ok.example\r\n\r\n", "malformed" },
		{ "GET", "/", "Host : ok.example\r\n\r\n", "malformed" },
		{ "GET", "/", "Host: ok.example\r\n folded\r\n\r\n", "malformed" },
		{ "GET", "/", "Host: ok.example\nX: y\r\n\r\n", "malformed" },
		{ "POST", "/", "Host: ok.example\r\nContent-Length: 5\r\nContent-Length: 6\r\n\r\nhello", "malformed" },
		{ "POST", "/", "Host: ok.example\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", "malformed" },
		{ "POST", "/", "Host: ok.example\r\nTransfer-Encoding : chunked\r\n\r\n0\r\n\r\n", "malformed" },
		{ "POST", "/", "Host: ok.example\r\nTransfer-Encoding: xchunked\r\n\r\n0\r\n\r\n", "malformed" },
	};
	for (size_t i = 0; i < ARRAY_LEN(cases); i++)
		for (enum entrance by = 0; by < N_ENTRANCES; by++) {
			struct server *s;
			struct rig *r = local_rig(&s, NULL);
			struct client *c = request(r, s, by, cases[i].method, cases[i].path, cases[i].rest);
			RIG_WAIT(r, c->eof);
			RIG_WAIT(r, r->n_denied == 1);
			const char *reason = reason_name(r->denied.reason);
			if (str_eq(cases[i].reason, "malformed"))
				assert_true(str_eq(reason, "http_malformed") || str_eq(reason, "proxy_malformed"));
			else if (by != BY_ADDRESS || str_eq(cases[i].reason, "http_host_missing"))
				assert_string_equal(reason, cases[i].reason);
			assert_true(client_has(c, "403 Forbidden") && client_has(c, reason) && client_has(c, "policy"));
			RIG_WAIT(r, s->n_peers == 0 || s->peers->eof);
			assert_true(s->n_peers == 0 || s->peers->got.len == 0);
			rig_free(r);
		}
}

static void other_http_is_refused(void **state)
{
	static const struct { const char *text, *reason; } cases[] = {
		{ "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", "http_version" }, { "GET /\r\n", "http_version" }, { "GET / HTTP/2.0\r\nHost: ok.example\r\n\r\n", "http_version" },
		{ "\r\nGET / HTTP/1.1\r\nHost: evil.example\r\n\r\n", "http_malformed" }, { " GET / HTTP/1.1\r\nHost: evil.example\r\n\r\n", "http_malformed" },
		{ "GET / HTTP/1.1\nHost: evil.example\n\n", "http_malformed" }, { "get\t/\thttp/1.1\r\nHost: evil.example\r\n\r\n", "http_malformed" },
		{ "CONNECT evil.example:443 HTTP/1.1\r\nHost: ok.example\r\n\r\n", "http_malformed" },
		{ "GET http://evil.example/ HTTP/1.1\r\nHost: ok.example\r\n\r\n", "http_host_mismatch" },
	};
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		struct server *s;
		struct rig *r = local_rig(&s, NULL);
		struct client *c = rig_open_name(r, "ok.example", s->port);
		for (const char *p = cases[i].text; *p && !c->eof; p++) { /* in pieces: a part must not pass as something else */
			client_send(c, p, 1);
			loop_run_once(r->loop, false);
		}
		RIG_WAIT(r, c->eof);
		assert_denied(r, cases[i].reason);
		assert_true(s->n_peers == 0 || s->peers->got.len == 0);
		rig_free(r);
	}
}

static void a_second_request_is_never_forwarded(void **state)
{
	struct server *s;
	struct rig *r = local_rig(&s, NULL);
	s->reply_after = "/one";
	s->reply = "HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\none";
	s->stay = true; /* a server that ignores Connection: close */
	struct client *c = rig_open_name(r, "ok.example", s->port);
	client_say(c, "GET /one HTTP/1.1\r\nHost: ok.example\r\n\r\nGET /two HTTP/1.1\r\nHost: evil.example\r\n\r\n");
	RIG_WAIT(r, c->eof);
	assert_true(client_has(c, "one"));
	assert_false(peer_has(s->peers, "/two"));
	assert_false(peer_has(s->peers, "evil"));
	rig_free(r);
}

static void chunked_bodies_are_framed_anew(void **state)
{
	struct server *s;
	struct rig *r = local_rig(&s, NULL);
	s->reply_after = "\r\n0\r\n\r\n";
	s->reply = "HTTP/1.1 200 OK\r\n\r\n";
	struct client *c = rig_open_name(r, "ok.example", s->port);
	client_say(c, "POST / HTTP/1.1\r\nHost: ok.example\r\nTransfer-Encoding: chunked\r\n\r\n0005\r\nhello\r\n");
	RIG_WAIT(r, peer_has(s->peers, "5\r\nhello\r\n"));
	assert_false(peer_has(s->peers, "0005"));
	client_say(c, "0\r\nX-Trailer: y\r\n\r\nGET /evil HTTP/1.1\r\n\r\n");
	RIG_WAIT(r, c->eof);
	assert_true(client_has(c, "200 OK"));
	assert_false(peer_has(s->peers, "X-Trailer"));
	assert_false(peer_has(s->peers, "/evil"));
	rig_free(r);
}

static void a_broken_chunk_ends_the_request(void **state)
{
	struct server *s;
	struct rig *r = local_rig(&s, NULL);
	struct client *c = rig_open_name(r, "ok.example", s->port);
	client_say(c, "POST / HTTP/1.1\r\nHost: ok.example\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n");
	RIG_WAIT(r, peer_has(s->peers, "hello"));
	client_say(c, "5;x\r\nworld\r\n");
	RIG_WAIT(r, c->eof && s->peers->eof);
	assert_denied(r, "http_malformed");
	assert_true(client_has(c, "403 Forbidden"));
	assert_false(peer_has(s->peers, "world"));
	rig_free(r);
}

static void continue_comes_through(void **state)
{
	struct server *s;
	struct rig *r = local_rig(&s, NULL);
	s->reply_after = "\r\n\r\n";
	s->reply = "HTTP/1.1 100 Continue\r\n\r\n";
	s->stay = true;
	struct client *c = rig_open_name(r, "ok.example", s->port);
	client_say(c, "PUT /x HTTP/1.1\r\nHost: ok.example\r\nExpect: 100-continue\r\nContent-Length: 4\r\n\r\n");
	RIG_WAIT(r, client_has(c, "100 Continue"));
	client_say(c, "body");
	RIG_WAIT(r, peer_has(s->peers, "\r\n\r\nbody"));
	rig_free(r);
}

#define WEBSOCKET "GET /ws HTTP/1.1\r\nHost: ok.example\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n"

static void websockets_pass_after_101_only(void **state)
{
	struct server *s;
	struct rig *r = local_rig(&s, NULL);
	struct client *c = rig_open_name(r, "ok.example", s->port);
	client_say(c, WEBSOCKET "early");
	RIG_WAIT(r, peer_has(s->peers, "Upgrade: websocket\r\n\r\n"));
	rig_settle(r);
	assert_false(peer_has(s->peers, "early"));
	s->reply = "HTTP/1.1 101 Switching Protocols\r\n\r\n\x81\1x";
	s->reply_after = "websocket";
	s->stay = true;
	loop_io_set(s->peers->io, LOOP_READ | LOOP_WRITE);
	RIG_WAIT(r, peer_has(s->peers, "early"));
	client_say(c, "GET / HTTP/1.1\r\n\r\n");
	RIG_WAIT(r, peer_has(s->peers, "earlyGET / HTTP/1.1\r\n\r\n"));
	assert_true(client_has(c, "\x81\1x"));
	rig_free(r);
}

static void a_refused_upgrade_stays_http(void **state)
{
	struct server *s;
	struct rig *r = local_rig(&s, NULL);
	s->reply_after = "websocket";
	s->reply = "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n";
	s->stay = true;
	struct client *c = rig_open_name(r, "ok.example", s->port);
	client_say(c, WEBSOCKET "GET /evil HTTP/1.1\r\nHost: evil.example\r\n\r\n");
	RIG_WAIT(r, client_has(c, "200 OK"));
	client_say(c, "GET /evil HTTP/1.1\r\nHost: evil.example\r\n\r\n");
	rig_settle(r);
	assert_false(peer_has(s->peers, "evil"));
	rig_free(r);
}

/* ---- the proxy entrance ---- */

static void the_proxy_speaks_nothing_else(void **state)
{
	static const struct { const char *text; size_t len; const char *reason; } cases[] = {
		{ "\5\1\0", 3, "proxy_malformed" }, { "\4\1\0\x50\x7f\0\0\1\0", 9, "proxy_malformed" },
		{ "GET / HTTP/1.1\r\nHost: ok.example\r\n\r\n", 0, "proxy_malformed" },
		{ "GET https://ok.example/ HTTP/1.1\r\nHost: ok.example\r\n\r\n", 0, "proxy_malformed" },
		{ "GET http://u:p@ok.example/ HTTP/1.1\r\nHost: ok.example\r\n\r\n", 0, "proxy_malformed" },
		{ "CONNECT ok.example HTTP/1.1\r\n\r\n", 0, "proxy_malformed" }, { "CONNECT ok.example:0 HTTP/1.1\r\n\r\n", 0, "proxy_malformed" },
		{ "CONNECT ok.example:99999 HTTP/1.1\r\n\r\n", 0, "proxy_malformed" }, { "CONNECT :443 HTTP/1.1\r\n\r\n", 0, NULL },
		{ "CONNECT ok.example:443 HTTP/1.1\r\nContent-Length: 3\r\n\r\nabc", 0, "proxy_malformed" },
		{ "CONNECT ok.example:443 HTTP/1.1\r\nHost: evil.example:443\r\n\r\n", 0, "http_host_mismatch" },
		{ "CONNECT ok.example:443 HTTP/2.0\r\n\r\n", 0, "http_version" }, { "CONNECT evil.example:443 HTTP/1.1\r\n\r\n", 0, "no_rule" },
		{ "CONNECT ok.example\0.evil:443 HTTP/1.1\r\n\r\n", 41, "proxy_malformed" }, { "CONNECT 0x7f000001:443 HTTP/1.1\r\n\r\n", 0, "bad_name" },
		{ "CONNECT [::ffff:127.0.0.1]:443 HTTP/1.1\r\n\r\n", 0, NULL }, { "CONNECT 169.254.169.254:80 HTTP/1.1\r\n\r\n", 0, NULL },
		{ "GET http://evil.example/ HTTP/1.1\r\nHost: evil.example\r\n\r\n", 0, "no_rule" },
		{ "GET http://ok.example/ HTTP/1.1\r\nHost: ok.example\r\n\r\n", 0, "port_not_allowed" },
	};
	struct server *s;
	struct rig *r = local_rig(&s, NULL);
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		unsigned before = r->n_denied;
		struct client *c = rig_open_proxy(r);
		client_send(c, cases[i].text, cases[i].len ? cases[i].len : strlen(cases[i].text));
		RIG_WAIT(r, c->eof && r->n_denied > before);
		if (cases[i].reason && !str_eq(reason_name(r->denied.reason), cases[i].reason))
			fail_msg("%s gave %s, not %s", cases[i].text, reason_name(r->denied.reason), cases[i].reason);
		assert_true(client_has(c, "HTTP/1.1 403 Forbidden\r\n"));
		assert_true(client_has(c, reason_name(r->denied.reason)));
	}
	assert_int_equal(r->dns_questions, 0);
	assert_int_equal(s->n_peers, 0);
	rig_free(r);
}

static void a_denial_says_how_to_ask(void **state)
{
	struct server *s;
	struct rig *r = local_rig(&s, NULL);
	struct client *c = rig_open_proxy(r);
	client_say(c, "CONNECT api.evil.example:8443 HTTP/1.1\r\n\r\n");
	RIG_WAIT(r, c->eof);
	assert_true(client_has(c, "Bulkhead-Reason: no_rule\r\n"));
	assert_true(client_has(c, "policy"));
	assert_true(client_has(c, "--allow api.evil.example:8443"));
	assert_true(client_has(c, "{ host: \"api.evil.example\", ports: [8443] }"));
	rig_free(r);
}

static void connect_is_answered_after_dialling(void **state)
{
	struct server *s;
	struct rig *r = local_rig(&s, NULL);
	char text[256];
	s->greeting = "220 hi\r\n";
	r->audit_hold = true;
	struct client *c = rig_open_proxy(r);
	snprintf(text, sizeof(text), "CONNECT ok.example:%u HTTP/1.0\r\nProxy-Authorization: x\r\n\r\nQUIT\r\n", s->port);
	client_say(c, text);
	rig_settle(r);
	assert_int_equal(c->got.len, 0);
	rig_audit_release(r);
	RIG_WAIT(r, client_has(c, "220 hi"));
	assert_true(client_has(c, "HTTP/1.1 200 Connection established\r\n\r\n220 hi"));
	RIG_WAIT(r, peer_has(s->peers, "QUIT\r\n"));
	assert_int_equal(s->peers->got.len, 6);
	rig_free(r);
}

/* ---- ports that have their protocol ---- */

static void ports_80_and_443_have_their_protocol(void **state)
{
	static const struct { uint16_t port; const char *text; const char *reason; } cases[] = {
		{ 443, "GET / HTTP/1.1\r\nHost: ok.example\r\n\r\n", "protocol_mismatch" }, { 443, "SSH-2.0-x\r\n", "protocol_mismatch" },
		{ 80, "SSH-2.0-x\r\n", "protocol_mismatch" }, { 80, "\x16\3\1\0\5\1", "protocol_mismatch" }, { 80, "GET /\r\n", "http_version" },
	};
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		struct rig *r = rig_start();
		struct server *s = rig_server(r, "127.113.7.9", cases[i].port);
		if (!s) { /* without the privilege to listen there; test-gate-parts judges the same bytes */
			rig_free(r);
			skip();
		}
		static const struct rig_name names[] = { { "ok.example", "127.113.7.9" }, { NULL, NULL } };
		rig_run(r, "[{ host: ok.example, ports: [80, 443], private: true }]", NULL, names);
		struct client *c = rig_open_name(r, "ok.example", cases[i].port);
		client_say(c, cases[i].text);
		RIG_WAIT(r, c->eof);
		assert_denied(r, cases[i].reason);
		assert_true(s->n_peers == 0 || s->peers->got.len == 0);
		rig_free(r);
	}
}

/* ---- budgets ---- */

static void connections_at_once_are_counted(void **state)
{
	struct server *s;
	struct rig *r = local_rig(&s, "{ connections: 2 }");
	s->echo = true;
	struct client *a = rig_open_name(r, "ok.example", s->port), *b = rig_open_name(r, "ok.example", s->port);
	client_say(a, "a\n");
	client_say(b, "b\n");
	RIG_WAIT(r, client_has(a, "a") && client_has(b, "b"));
	struct client *c = rig_open_name(r, "ok.example", s->port);
	client_say(c, "c\n");
	RIG_WAIT(r, c->eof);
	assert_denied(r, "budget_connections");
	RIG_WAIT(r, r->n_limits == 1);
	assert_int_equal(r->limit.value, 2);
	client_shut(a);
	RIG_WAIT(r, a->eof);
	struct client *d = rig_open_name(r, "ok.example", s->port);
	client_say(d, "d\n");
	RIG_WAIT(r, client_has(d, "d"));
	rig_free(r);
}

static void requests_are_counted(void **state)
{
	struct server *s;
	struct rig *r = local_rig(&s, "{ egress_requests: 3 }");
	s->reply_after = "\r\n\r\n";
	s->reply = "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n";
	for (int i = 0; i < 3; i++) {
		struct client *c = rig_open_name(r, "ok.example", s->port);
		client_say(c, "GET / HTTP/1.1\r\nHost: ok.example\r\n\r\n");
		RIG_WAIT(r, c->eof);
		assert_true(client_has(c, "200 OK"));
	}
	struct client *denied = rig_open_name(r, "evil.example", s->port); /* uses nothing up */
	client_shut(denied);
	struct client *c = rig_open_name(r, "ok.example", s->port);
	client_say(c, "GET / HTTP/1.1\r\nHost: ok.example\r\n\r\n");
	RIG_WAIT(r, c->eof && r->n_limits == 1);
	assert_true(client_has(c, "Bulkhead-Reason: budget_requests"));
	assert_int_equal(r->limit.reason, REASON_BUDGET_REQUESTS);
	assert_int_equal(s->n_peers, 3);
	rig_free(r);
}

static void bytes_up_end_at_the_last_one(void **state)
{
	struct server *s;
	struct rig *r = local_rig(&s, "{ egress_bytes: 100000B }");
	struct client *c = rig_open_name(r, "ok.example", s->port);
	uint8_t *data = mem_alloc(300000);
	client_send(c, data, 300000);
	RIG_WAIT(r, c->eof && s->n_peers == 1 && s->peers->eof);
	assert_int_equal(s->peers->got.len, 100000);
	RIG_WAIT(r, r->n_limits == 1 && rig_count(r, "egress.end") == 1);
	assert_int_equal(r->limit.value, 100000);
	assert_string_equal(rig_text(rig_last(r, "egress.end"), "reason"), "budget_bytes");
	assert_int_equal(rig_number(rig_last(r, "egress.end"), "bytes_up"), 100000);
	struct client *d = rig_open_name(r, "ok.example", s->port);
	client_shut(d);
	RIG_WAIT(r, d->eof);
	assert_denied(r, "budget_bytes");
	mem_free(data);
	rig_free(r);
}

static void bytes_down_end_at_the_last_one(void **state)
{
	struct server *s;
	struct rig *r = local_rig(&s, "{ egress_bytes: 1000B }");
	char greeting[2001];
	memset(greeting, 'g', 2000);
	greeting[2000] = 0;
	s->greeting = greeting;
	s->stay = true;
	struct client *c = rig_open_name(r, "ok.example", s->port);
	RIG_WAIT(r, c->eof);
	assert_int_equal(c->got.len, 1000);
	RIG_WAIT(r, r->n_limits == 1 && rig_count(r, "egress.end") == 1);
	assert_string_equal(rig_text(rig_last(r, "egress.end"), "reason"), "budget_bytes");
	rig_free(r);
}

static void a_budget_used_exactly_is_no_violation(void **state)
{
	struct server *s;
	struct rig *r = local_rig(&s, "{ egress_bytes: 1000B }");
	char greeting[1001];
	memset(greeting, 'g', 1000);
	greeting[1000] = 0;
	s->greeting = greeting;
	s->reply = "";
	struct client *c = rig_open_name(r, "ok.example", s->port);
	RIG_WAIT(r, c->got.len == 1000);
	client_shut(c);
	RIG_WAIT(r, c->eof);
	RIG_WAIT(r, rig_count(r, "egress.end") == 1);
	assert_int_equal(r->n_limits, 0);
	assert_string_equal(rig_text(rig_last(r, "egress.end"), "reason"), "allowed");
	rig_free(r);
}

/* ---- many ---- */

static void names_are_counted_not_lost(void **state)
{
	struct server *s;
	struct rig *r = local_rig(&s, NULL);
	char name[128];
	for (unsigned i = 0; i < 1500; i++) {
		int n = snprintf(name, sizeof(name), "x%06u.tunnel.example", i);
		rig_ask(r, name, (size_t)n);
		if (i % 100 == 99)
			RIG_WAIT(r, r->n_answers == i + 1);
	}
	for (unsigned i = 0; i < 7; i++)
		rig_ask(r, "ok.example", 10);
	RIG_WAIT(r, r->n_answers == 1507);
	rig_finish(r);
	int64_t total = 0, summed = 0;
	size_t i;
	json_t *e;
	json_array_foreach(r->events, i, e) {
		assert_string_equal(rig_text(e, "type"), "name");
		total += rig_number(e, "count");
		if (str_eq(rig_text(e, "name"), "*.tunnel.example"))
			summed += rig_number(e, "count");
	}
	assert_int_equal(total, 1507);
	assert_int_equal(summed, 500);
	assert_true(json_array_size(r->events) < 1100);
	assert_int_equal(r->dns_questions, 0);
	rig_free(r);
}

static void denials_are_counted_not_lost(void **state)
{
	struct server *s;
	struct rig *r = local_rig(&s, NULL);
	for (unsigned i = 0; i < 2500; i++) {
		struct client *c = rig_open_name(r, "evil.example", s->port);
		client_close(c);
		if (i % 50 == 49)
			RIG_WAIT(r, r->n_denied == i + 1);
	}
	RIG_WAIT(r, r->n_denied == 2500);
	rig_finish(r);
	int64_t total = 0;
	size_t i;
	json_t *e;
	json_array_foreach(r->events, i, e)
		total += str_eq(rig_text(e, "type"), "egress") ? rig_number(e, "count") > 0 ? rig_number(e, "count") : 1 : 0;
	assert_int_equal(total, 2500);
	assert_int_equal(r->totals.denied, 2500);
	assert_true(json_array_size(r->events) < 2100);
	rig_free(r);
}

static void thousands_of_flows_live_at_once(void **state)
{
	enum { WANT = 10000, FDS_EACH = 4 };
	struct rlimit limit;
	assert_int_equal(getrlimit(RLIMIT_NOFILE, &limit), 0);
	limit.rlim_cur = limit.rlim_max;
	setrlimit(RLIMIT_NOFILE, &limit);
	unsigned n = limit.rlim_max > WANT * FDS_EACH + 100 ? WANT : (unsigned)(limit.rlim_max / FDS_EACH / 2);
	struct server *s;
	struct rig *r = local_rig(&s, "{ connections: 20000, egress_requests: 20000 }");
	s->echo = true;
	struct client **c = mem_alloc_array(n, sizeof(struct client *));
	for (unsigned i = 0; i < n; i++) {
		c[i] = rig_open_name(r, "ok.example", s->port);
		client_send(c[i], "\0hello", 6);
		if (i % 200 == 199)
			RIG_WAIT(r, c[i]->got.len == 6);
	}
	for (unsigned i = 0; i < n; i++)
		RIG_WAIT(r, c[i]->got.len == 6);
	assert_int_equal(s->n_peers, n);
	rig_finish(r);
	assert_int_equal(r->totals.allowed, n);
	for (unsigned i = 0; i < n; i++)
		RIG_WAIT(r, c[i]->eof);
	mem_free(c);
	rig_free(r);
}

static void finishing_cuts_and_records(void **state)
{
	struct server *s;
	struct rig *r = local_rig(&s, NULL);
	s->echo = true;
	struct client *c = rig_open_name(r, "ok.example", s->port);
	client_say(c, "x\n");
	RIG_WAIT(r, client_has(c, "x"));
	rig_finish(r);
	RIG_WAIT(r, c->eof && s->peers->eof);
	assert_int_equal(rig_count(r, "egress.end"), 1);
	assert_string_equal(rig_text(rig_last(r, "egress.end"), "reason"), "killed");
	struct client *late = rig_open_name(r, "ok.example", s->port);
	RIG_WAIT(r, late->eof);
	assert_int_equal(s->n_peers, 1);
	rig_free(r);
}

static void done_waits_for_the_record(void **state)
{
	struct server *s;
	struct rig *r = local_rig(&s, NULL);
	rig_ask(r, "evil.example", 12);
	RIG_WAIT(r, rig_count(r, "name") == 1);
	r->audit_hold = true;
	rig_ask(r, "evil2.example", 13);
	RIG_WAIT(r, rig_count(r, "name") == 2);
	uint8_t finish[] = { 0, 0, 0, GATE_FINISH };
	rig_send_raw(r, finish, sizeof(finish));
	rig_settle(r);
	assert_false(r->done);
	rig_audit_release(r);
	RIG_WAIT(r, r->done);
	rig_free(r);
}

static void clients_that_vanish_leave_nothing(void **state)
{
	struct server *s;
	struct rig *r = local_rig(&s, "{ connections: 1 }");
	s->stay = true;
	s->reply_after = "\r\n\r\n";
	s->reply = "HTTP/1.1 200 OK\r\n\r\npart";
	for (int i = 0; i < 5; i++) {
		struct client *c = rig_open_name(r, "ok.example", s->port);
		client_say(c, "GET / HTTP/1.1\r\nHost: ok.example\r\n\r\n");
		RIG_WAIT(r, client_has(c, "part"));
		client_close(c);
		RIG_WAIT(r, rig_count(r, "egress.end") == (size_t)i + 1);
		RIG_WAIT(r, s->peers->eof);
	}
	rig_free(r);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(raw_bytes_pass_both_ways),
		cmocka_unit_test(names_of_the_hosts_file_and_wildcards_pass),
		cmocka_unit_test(servers_may_speak_first),
		cmocka_unit_test(half_closes_are_kept),
		cmocka_unit_test(large_transfers_are_exact),
		cmocka_unit_test(nothing_moves_before_the_record),
		cmocka_unit_test(a_lost_record_stops_everything),
		cmocka_unit_test(denied_names_are_never_resolved),
		cmocka_unit_test(allowed_names_are_answered_with_ports),
		cmocka_unit_test(other_ports_are_refused),
		cmocka_unit_test(addresses_need_their_own_rule),
		cmocka_unit_test(the_floor_holds_after_resolution),
		cmocka_unit_test(the_hosts_own_address_is_refused),
		cmocka_unit_test(unresolved_and_unreachable_are_no_denials),
		cmocka_unit_test(the_next_address_is_tried),
		cmocka_unit_test(tls_with_the_right_name_passes_unchanged),
		cmocka_unit_test(tls_with_another_name_is_refused),
		cmocka_unit_test(broken_tls_is_refused),
		cmocka_unit_test(a_literal_target_needs_no_server_name),
		cmocka_unit_test(encrypted_hellos_are_on_the_record),
		cmocka_unit_test(requests_pass_by_every_entrance),
		cmocka_unit_test(bad_requests_are_refused_by_every_entrance),
		cmocka_unit_test(other_http_is_refused),
		cmocka_unit_test(a_second_request_is_never_forwarded),
		cmocka_unit_test(chunked_bodies_are_framed_anew),
		cmocka_unit_test(a_broken_chunk_ends_the_request),
		cmocka_unit_test(continue_comes_through),
		cmocka_unit_test(websockets_pass_after_101_only),
		cmocka_unit_test(a_refused_upgrade_stays_http),
		cmocka_unit_test(the_proxy_speaks_nothing_else),
		cmocka_unit_test(a_denial_says_how_to_ask),
		cmocka_unit_test(connect_is_answered_after_dialling),
		cmocka_unit_test(ports_80_and_443_have_their_protocol),
		cmocka_unit_test(connections_at_once_are_counted),
		cmocka_unit_test(requests_are_counted),
		cmocka_unit_test(bytes_up_end_at_the_last_one),
		cmocka_unit_test(bytes_down_end_at_the_last_one),
		cmocka_unit_test(a_budget_used_exactly_is_no_violation),
		cmocka_unit_test(names_are_counted_not_lost),
		cmocka_unit_test(denials_are_counted_not_lost),
		cmocka_unit_test(thousands_of_flows_live_at_once),
		cmocka_unit_test(finishing_cuts_and_records),
		cmocka_unit_test(done_waits_for_the_record),
		cmocka_unit_test(clients_that_vanish_leave_nothing),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
