/* SPDX-License-Identifier: Apache-2.0 */
/* The upstream half: flows, their connections, requests and answers, over both versions of HTTP. */
#include "upstream-rig.h"

#include <stdio.h>
#include <sys/socket.h>

#include "base/mem.h"
#include "gate/upstream-link.h"

static char authority[64];

static const char *at(const char *host, const struct user *s)
{
	snprintf(authority, sizeof(authority), "%s:%u", host, s->port);
	return authority;
}

/* A verified server that speaks `alpn`, and a flow to it. */
static struct urig *start(const char *alpn, struct user **ret_server)
{
	struct urig *r = urig_new();
	*ret_server = urig_server(r, r->mint, "api.example", alpn);
	urig_run(r, "[{ host: api.example, ports: [@0], private: true, ca: rig.pem, inspect: true }]", NULL);
	return r;
}

static struct call *opened(struct urig *r, struct user *s)
{
	struct call *c = urig_open(r, 1, "https", at("api.example", s), "h2,http/1.1");
	URIG_WAIT(r, c->answered || c->closed);
	assert_int_equal(c->head.status, 200);
	return c;
}

static struct call *get(struct urig *r, struct user *s, const char *path)
{
	return urig_request(r, 1, "GET", "https", at("api.example", s), path, NULL, NULL, 0);
}

static void a_request_goes_there_and_its_answer_comes_back(const char *alpn)
{
	struct user *s;
	struct urig *r = start(alpn, &s);
	s->script = (struct script){ .status = 200, .fields = { "content-type: text/plain", "set-cookie: a=1", "set-cookie: b=2", "alt-svc: h3=\":443\"",
		"bulkhead-reason: allowed" }, .body = "hello", .len = 5, .has_length = true };
	struct call *open = opened(r, s);
	assert_string_equal(call_field(open, LINK_FIELD_ALPN), alpn);
	assert_string_equal(call_field(open, LINK_FIELD_ADDRESS), "127.0.0.1");
	struct call *c = get(r, s, "/a/b?c=d");
	URIG_WAIT(r, c->closed);
	assert_int_equal(c->head.status, 200);
	assert_true(call_body_is(c, "hello"));
	assert_true(c->head.has_length);
	assert_int_equal(http_head_count(&c->head, "set-cookie"), 2);
	assert_int_equal(http_head_count(&c->head, "alt-svc"), 0);
	assert_int_equal(http_head_count(&c->head, LINK_FIELD_REASON), 0);
	assert_true(http_text_equal(s->served->head.path, "/a/b?c=d"));
	assert_true(http_text_equal(s->served->head.authority, at("api.example", s)));
	assert_int_equal(http_head_count(&s->served->head, LINK_FIELD_FLOW), 0);
	assert_int_equal(s->n_connections, 1);
	urig_free(r);
}

static void http1_there_and_back(void **state) { a_request_goes_there_and_its_answer_comes_back("http/1.1"); }
static void http2_there_and_back(void **state) { a_request_goes_there_and_its_answer_comes_back("h2"); }

static const char *const protocols[] = { "http/1.1", "h2" };

/* ---- opening ---- */

static void assert_refused(struct urig *r, struct call *c, unsigned status, const char *reason)
{
	URIG_WAIT(r, c->answered || c->closed);
	if (c->head.status != status || strcmp(call_field(c, LINK_FIELD_REASON), reason) != 0)
		fail_msg("%u %s (%s) instead of %u %s", c->head.status, call_field(c, LINK_FIELD_REASON), call_field(c, LINK_FIELD_DETAIL), status, reason);
	assert_true(c->ended);
	assert_int_equal(c->body.len, 0);
}

static void places_are_judged_again(void **state)
{
	static const struct { const char *scheme, *authority; unsigned status; const char *reason; } cases[] = {
		{ "https", "evil.example:443", 403, "no_rule" },
		{ "https", "api.example:444", 403, "port_not_allowed" },
		{ "https", "api.example", 403, "proxy_malformed" },
		{ "https", "api.example:0", 403, "proxy_malformed" },
		{ "https", "api_example:443", 403, "bad_name" },
		{ "https", "private.example:443", 403, "address_private" },
		{ "https", "unknown.invalid:443", 502, "resolve_failed" },
		{ "https", "127.0.0.1:443", 403, "address_loopback" },
		{ "https", "[::1]:443", 403, "address_loopback" },
		{ "https", "8.8.8.8:443", 403, "address_literal" },
	};
	struct urig *r = urig_new();
	urig_run(r, "[{ host: api.example, private: true }, { host: private.example }, { host: unknown.invalid }]", NULL);
	for (size_t i = 0; i < ARRAY_LEN(cases); i++)
		assert_refused(r, urig_open(r, i + 1, cases[i].scheme, cases[i].authority, "h2"), cases[i].status, cases[i].reason);
	urig_free(r);
}

static void nobody_answers(void **state)
{
	struct urig *r = urig_new();
	struct user *s = urig_server(r, r->mint, "api.example", "h2");
	urig_run(r, "[{ host: api.example, ports: [@0], private: true, inspect: true }]", NULL);
	loop_io_set(s->io, 0);
	shutdown(s->fd, SHUT_RD);
	struct call *c = urig_open(r, 1, "https", at("api.example", s), "h2");
	assert_refused(r, c, 502, "connect_failed");
	assert_non_null(strstr(call_field(c, LINK_FIELD_DETAIL), "api.example"));
	urig_free(r);
}

static void only_a_server_that_proves_its_name_is_used(void **state)
{
	struct err err;
	struct urig *r = urig_new();
	struct mint *stranger = mint_new("stranger", &err);
	struct user *good = urig_server(r, r->mint, "api.example", "h2"), *misnamed = urig_server(r, r->mint, "other.example", "h2");
	struct user *unknown = urig_server(r, stranger, "api.example", "h2"), *plain = urig_server(r, NULL, NULL, NULL);
	struct user *untrusted = urig_server(r, r->mint, "b.example", "h2");
	urig_run(r, "[{ host: api.example, ports: [@0, @1, @2, @3], private: true, methods: [GET] }, { host: api.example, ports: [@0, @1, @2, @3], private: true, ca: rig.pem, methods: [POST] },"
		" { host: b.example, ports: [@4], private: true, inspect: true }]", NULL);
	/* the `ca` of a later rule for the same place counts too */
	struct call *c = urig_open(r, 1, "https", at("api.example", good), "h2");
	URIG_WAIT(r, c->answered);
	assert_int_equal(c->head.status, 200);
	c = urig_open(r, 2, "https", at("api.example", misnamed), "h2");
	assert_refused(r, c, 502, "upstream_certificate");
	assert_non_null(strstr(call_field(c, LINK_FIELD_DETAIL), "api.example"));
	assert_refused(r, urig_open(r, 3, "https", at("api.example", unknown), "h2"), 502, "upstream_certificate");
	assert_refused(r, urig_open(r, 4, "https", at("api.example", plain), "h2"), 502, "upstream_protocol");
	/* … but not for another place */
	assert_refused(r, urig_open(r, 5, "https", at("b.example", untrusted), "h2"), 502, "upstream_certificate");
	assert_int_equal(misnamed->n_served + unknown->n_served + plain->n_served + untrusted->n_served, 0);
	urig_free(r);
	mint_free(stranger);
}

static void http2_only_where_the_guest_speaks_it(void **state)
{
	static const struct { const char *guest, *server, *want; } cases[] = {
		{ "http/1.1", "h2,http/1.1", "http/1.1" }, { "h2,http/1.1", "h2,http/1.1", "h2" }, { "h2", "http/1.1", "http/1.1" }, { "h2", "", "http/1.1" }, { "", "h2,http/1.1", "http/1.1" },
	};
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		struct user *s;
		struct urig *r = start(cases[i].server, &s);
		struct call *c = urig_open(r, 1, "https", at("api.example", s), cases[i].guest);
		URIG_WAIT(r, c->answered);
		assert_int_equal(c->head.status, 200);
		assert_string_equal(call_field(c, LINK_FIELD_ALPN), cases[i].want);
		urig_free(r);
	}
}

static void plain_http_works_without_secrets(void **state)
{
	struct urig *r = urig_new();
	struct user *s = urig_server(r, NULL, NULL, NULL);
	urig_run(r, "[{ host: api.example, ports: [@0], private: true, inspect: true }]", NULL);
	struct call *c = urig_open(r, 1, "http", at("api.example", s), "");
	URIG_WAIT(r, c->answered);
	assert_int_equal(c->head.status, 200);
	s->script = (struct script){ .status = 200, .body = "plain", .len = 5 };
	c = urig_request(r, 1, "GET", "http", at("api.example", s), "/", NULL, NULL, 0);
	URIG_WAIT(r, c->closed);
	assert_true(call_body_is(c, "plain"));
	urig_free(r);
}

/* ---- connections ---- */

static void a_connection_is_used_again(void **state)
{
	for (size_t p = 0; p < 2; p++) {
		struct user *s;
		struct urig *r = start(protocols[p], &s);
		opened(r, s);
		for (unsigned i = 1; i <= 5; i++) {
			struct call *c = get(r, s, "/");
			URIG_WAIT(r, c->closed);
			assert_int_equal(c->head.status, 200);
		}
		assert_int_equal(s->n_connections, 1);
		assert_int_equal(s->n_served, 5);
		urig_free(r);
	}
}

/* HTTP/1: up to eight at once, the rest wait their turn; HTTP/2: one for all. */
static void many_requests_at_once(void **state)
{
	enum { N = 30 };
	for (size_t p = 0; p < 2; p++) {
		struct user *s;
		struct urig *r = start(protocols[p], &s);
		struct call *calls[N];
		opened(r, s);
		s->script = (struct script){ .status = 0 };
		for (size_t i = 0; i < N; i++)
			calls[i] = get(r, s, "/");
		URIG_WAIT(r, s->n_served == (p ? N : 8));
		urig_settle(r);
		assert_int_equal(s->n_connections, p ? 1 : 8);
		assert_int_equal(s->n_served, p ? N : 8);
		s->script = (struct script){ .status = 200, .body = "x", .len = 1, .has_length = true };
		for (struct served *one = s->served; one; one = one->next)
			served_answer(one, &s->script);
		for (size_t i = 0; i < N; i++) {
			URIG_WAIT(r, calls[i]->closed);
			assert_true(call_body_is(calls[i], "x"));
		}
		assert_int_equal(s->n_connections, p ? 1 : 8);
		urig_free(r);
	}
}

static void an_idle_connection_that_ended_is_replaced(void **state)
{
	for (size_t p = 0; p < 2; p++) {
		struct user *s;
		struct urig *r = start(protocols[p], &s);
		struct call *open = opened(r, s);
		for (unsigned i = 1; i <= 3; i++) {
			server_hang_up(s);
			urig_settle(r);
			struct call *c = get(r, s, "/");
			URIG_WAIT(r, c->closed);
			assert_int_equal(c->head.status, 200);
			assert_int_equal(s->n_connections, i + 1);
		}
		assert_false(open->closed);
		urig_free(r);
	}
}

/* The server ends the kept-alive connection in the very moment in which we use it. */
static unsigned hang_ups;

static void hang_up_at_first(struct served *s)
{
	static const struct script away = { .hang_up = true }, there = { .status = 200 };
	served_answer(s, hang_ups && hang_ups-- ? &away : &there);
}

static void a_safe_request_is_sent_once_more_and_no_other(void **state)
{
	for (size_t p = 0; p < 2; p++) {
		struct user *s;
		struct urig *r = start(protocols[p], &s);
		opened(r, s);
		s->on_request = hang_up_at_first;
		hang_ups = 0;
		struct call *c = get(r, s, "/");
		URIG_WAIT(r, c->closed);
		hang_ups = 1;
		c = get(r, s, "/again");
		URIG_WAIT(r, c->closed);
		assert_int_equal(c->head.status, 200);
		assert_int_equal(s->n_served, 3);
		/* twice is enough */
		hang_ups = 2;
		c = get(r, s, "/again");
		assert_refused(r, c, 502, "server_closed");
		/* what isn't safe is sent once only */
		hang_ups = 0;
		c = get(r, s, "/");
		URIG_WAIT(r, c->closed);
		unsigned before = s->n_served;
		hang_ups = 1;
		c = urig_request(r, 1, "POST", "https", at("api.example", s), "/", NULL, NULL, 0);
		assert_refused(r, c, 502, "server_closed");
		c = get(r, s, "/");
		URIG_WAIT(r, c->closed);
		hang_ups = 1;
		c = urig_request(r, 1, "GET", "https", at("api.example", s), "/", NULL, "body", 4);
		assert_refused(r, c, 502, "server_closed");
		assert_int_equal(s->n_served, before + 3);
		urig_free(r);
	}
}

static void refuse_stream(struct served *s)
{
	http_stream_reset(s->stream, HTTP_REFUSED);
	channel_kick(s->connection->channel);
}

/* A server that says it didn't look at the request is asked once more, whatever the request is; not for ever. */
static void a_refused_stream_is_tried_once_more(void **state)
{
	struct user *s;
	struct urig *r = start("h2", &s);
	opened(r, s);
	s->on_request = refuse_stream;
	struct call *c = urig_request(r, 1, "DELETE", "https", at("api.example", s), "/", NULL, NULL, 0);
	assert_refused(r, c, 502, "server_closed");
	assert_int_equal(s->n_served, 2);
	urig_free(r);
}

static void a_server_that_came_back_as_another_is_not_used(void **state)
{
	for (size_t p = 0; p < 2; p++) {
		struct user *s;
		struct urig *r = start(protocols[p], &s);
		opened(r, s);
		server_hang_up(s);
		urig_settle(r);
		s->leaf = "other.example";
		assert_refused(r, get(r, s, "/"), 502, "upstream_certificate");
		assert_int_equal(s->n_served, 0);
		urig_free(r);
	}
}

static void with_its_flow_a_connection_ends(void **state)
{
	for (size_t p = 0; p < 2; p++) {
		struct user *s;
		struct urig *r = start(protocols[p], &s);
		struct call *open = opened(r, s);
		s->script = (struct script){ .status = 0 };
		struct call *c = get(r, s, "/");
		URIG_WAIT(r, s->n_served == 1);
		call_reset(open);
		URIG_WAIT(r, !s->connections->channel);
		URIG_WAIT(r, c->closed || c->answered);
		assert_refused(r, get(r, s, "/"), 502, "connect_failed");
		urig_free(r);
	}
}

static void a_request_that_is_given_up_ends_at_the_server(void **state)
{
	for (size_t p = 0; p < 2; p++) {
		struct user *s;
		struct urig *r = start(protocols[p], &s);
		opened(r, s);
		s->script = (struct script){ .status = 0 };
		struct call *c = get(r, s, "/");
		URIG_WAIT(r, s->n_served == 1);
		call_reset(c);
		URIG_WAIT(r, !s->served->stream);
		s->script = (struct script){ .status = 200 };
		c = get(r, s, "/");
		URIG_WAIT(r, c->closed);
		assert_int_equal(c->head.status, 200);
		urig_free(r);
	}
}

/* ---- bodies ---- */

static void a_cut_answer_is_never_a_whole_one(void **state)
{
	static char body[100000];
	memset(body, 'x', sizeof(body));
	for (size_t p = 0; p < 2; p++) {
		for (size_t with_length = 0; with_length < 2; with_length++) {
			struct user *s;
			struct urig *r = start(protocols[p], &s);
			opened(r, s);
			s->script = (struct script){ .status = 200, .body = body, .len = sizeof(body), .has_length = with_length, .cut = 5000 };
			struct call *c = get(r, s, "/");
			URIG_WAIT(r, c->closed);
			assert_false(c->ended && c->head.status == 200);
			assert_true(c->fault != HTTP_FAULT_NONE || c->head.status == 502);
			urig_free(r);
		}
	}
}

static void large_bodies_go_both_ways(void **state)
{
	enum { LEN = 8 * 1024 * 1024 };
	char *body = mem_alloc(LEN);
	for (size_t i = 0; i < LEN; i++)
		body[i] = (char)(i * 2654435761u >> 13);
	for (size_t p = 0; p < 2; p++) {
		struct user *s;
		struct urig *r = start(protocols[p], &s);
		opened(r, s);
		s->script = (struct script){ .status = 200, .echo = true, .has_length = true };
		struct call *c = urig_request(r, 1, "POST", "https", at("api.example", s), "/", NULL, body, LEN);
		URIG_WAIT(r, c->closed);
		assert_true(c->ended);
		assert_int_equal(s->served->body.len, LEN);
		assert_int_equal(c->body.len, LEN);
		assert_memory_equal(c->body.data, body, LEN);
		urig_free(r);
	}
	mem_free(body);
}

static void a_slow_receiver_holds_the_server_up(void **state)
{
	enum { LEN = 32 * 1024 * 1024 }; /* sockets hold some ten of it */
	char *body = mem_alloc(LEN);
	for (size_t p = 0; p < 2; p++) {
		struct user *s;
		struct urig *r = start(protocols[p], &s);
		opened(r, s);
		s->script = (struct script){ .status = 200, .body = body, .len = LEN, .has_length = true };
		struct call *c = get(r, s, "/");
		c->hold = true;
		URIG_WAIT(r, c->body.len >= 60000);
		urig_settle(r);
		assert_true(c->body.len <= HTTP_WINDOW);
		assert_true(s->served->out.len > LEN / 4);
		call_credit(c);
		URIG_WAIT(r, c->closed);
		assert_int_equal(c->body.len, LEN);
		urig_free(r);
	}
	mem_free(body);
}

static void trailers_and_interim_answers_pass(void **state)
{
	for (size_t p = 0; p < 2; p++) {
		struct user *s;
		struct urig *r = start(protocols[p], &s);
		opened(r, s);
		s->script = (struct script){ .status = 200, .body = "x", .len = 1, .trailer = "grpc-status: 0" };
		static const char *const fields[] = { "te: trailers", NULL };
		struct call *c = urig_request(r, 1, "GET", "https", at("api.example", s), "/", fields, NULL, 0);
		URIG_WAIT(r, c->closed);
		assert_true(c->has_trailers);
		assert_int_equal(http_head_count(&c->trailers, "grpc-status"), 1);
		urig_free(r);
	}
}

static void fields_of_ours_never_reach_a_server(void **state)
{
	struct user *s;
	struct urig *r = start("h2", &s);
	opened(r, s);
	static const char *const fields[] = { "bulkhead-reason: x", "bulkhead-anything: y", "x-mine: z", NULL };
	struct call *c = urig_request(r, 1, "GET", "https", at("api.example", s), "/", fields, NULL, 0);
	URIG_WAIT(r, c->closed);
	for (size_t i = 0; i < s->served->head.n_fields; i++)
		assert_false(s->served->head.fields[i].name.len >= 8 && memcmp(s->served->head.fields[i].name.p, "bulkhead", 8) == 0);
	assert_string_equal(served_field(s->served, "x-mine"), "z");
	urig_free(r);
}

static void many_idle_flows_cost_little(void **state)
{
	enum { N = 300 };
	struct user *s;
	struct urig *r = start("http/1.1", &s);
	struct call *calls[N];
	for (unsigned i = 0; i < N; i++)
		calls[i] = urig_open(r, i + 1, "https", at("api.example", s), "http/1.1");
	for (unsigned i = 0; i < N; i++) {
		URIG_WAIT(r, calls[i]->answered);
		assert_int_equal(calls[i]->head.status, 200);
	}
	for (unsigned i = 0; i < N; i += 50) {
		struct call *c = urig_request(r, i + 1, "GET", "https", at("api.example", s), "/", NULL, NULL, 0);
		URIG_WAIT(r, c->closed);
		assert_int_equal(c->head.status, 200);
	}
	for (unsigned i = 0; i < N; i++)
		call_reset(calls[i]);
	for (struct connection *c = s->connections; c; c = c->next)
		URIG_WAIT(r, !c->channel);
	urig_free(r);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(http1_there_and_back),
		cmocka_unit_test(http2_there_and_back),
		cmocka_unit_test(places_are_judged_again),
		cmocka_unit_test(nobody_answers),
		cmocka_unit_test(only_a_server_that_proves_its_name_is_used),
		cmocka_unit_test(http2_only_where_the_guest_speaks_it),
		cmocka_unit_test(plain_http_works_without_secrets),
		cmocka_unit_test(a_connection_is_used_again),
		cmocka_unit_test(many_requests_at_once),
		cmocka_unit_test(an_idle_connection_that_ended_is_replaced),
		cmocka_unit_test(a_safe_request_is_sent_once_more_and_no_other),
		cmocka_unit_test(a_refused_stream_is_tried_once_more),
		cmocka_unit_test(a_server_that_came_back_as_another_is_not_used),
		cmocka_unit_test(with_its_flow_a_connection_ends),
		cmocka_unit_test(a_request_that_is_given_up_ends_at_the_server),
		cmocka_unit_test(a_cut_answer_is_never_a_whole_one),
		cmocka_unit_test(large_bodies_go_both_ways),
		cmocka_unit_test(a_slow_receiver_holds_the_server_up),
		cmocka_unit_test(trailers_and_interim_answers_pass),
		cmocka_unit_test(fields_of_ours_never_reach_a_server),
		cmocka_unit_test(many_idle_flows_cost_little),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
