/* SPDX-License-Identifier: Apache-2.0 */
/* The upstream half: a secret goes into the bound place of a request to the bound, verified host, when the auditor has written it; and nowhere else. */
#include "upstream-rig.h"

#include <stdio.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/mem.h"
#include "base/text.h"
#include "gate/upstream-link.h"

#define VALUE "s3cr3t-value-0001"
#define RULE(place) "[{ host: api.example, ports: [@0], private: true, ca: rig.pem, methods: [GET, POST], paths: [\"/**\"], secret: { name: key, " place " } }," \
		    " { host: other.example, ports: [@0, @1], private: true, ca: rig.pem, inspect: true }," \
		    " { host: api.example, ports: [@1], private: true, inspect: true }]"

static const char *const secrets[] = { "key", NULL };

static const char *at(const char *host, const struct user *s)
{
	static char authority[4][64];
	static unsigned turn;
	char *out = authority[turn++ % 4];
	snprintf(out, sizeof(authority[0]), "%s:%u", host, s->port);
	return out;
}

/* Server 0: TLS for both names by wildcard-free leaves of one host; server 1: plain. */
static struct urig *start_as(const char *place, const char *alpn, const char *leaf, struct user **ret)
{
	struct urig *r = urig_new();
	*ret = urig_server(r, r->mint, leaf, alpn);
	urig_server(r, NULL, NULL, NULL);
	urig_run(r, place, secrets);
	return r;
}

static struct urig *start(const char *place, struct user **ret) { return start_as(place, "h2,http/1.1", "api.example", ret); }

static void open_flow(struct urig *r, uint64_t flow, const char *scheme, const char *authority)
{
	struct call *c = urig_open(r, flow, scheme, authority, "h2,http/1.1");
	URIG_WAIT(r, c->answered || c->closed);
	if (c->head.status != 200)
		fail_msg("the flow was refused: %s (%s)", call_field(c, LINK_FIELD_REASON), call_field(c, LINK_FIELD_DETAIL));
}

static struct call *ask(struct urig *r, uint64_t flow, const char *authority, const char *path, const char *field)
{
	const char *fields[] = { field, NULL };
	return urig_request(r, flow, "GET", "https", authority, path, field ? fields : NULL, NULL, 0);
}

static void assert_refused(struct urig *r, struct call *c, unsigned status, const char *reason)
{
	URIG_WAIT(r, c->answered || c->closed);
	assert_int_equal(c->head.status, status);
	assert_string_equal(call_field(c, LINK_FIELD_REASON), reason);
}

/* Did the value reach any server in any form that we could see? */
static bool reached(const struct urig *r, const char *value)
{
	for (struct user *u = r->servers; u; u = u->next) {
		for (struct served *s = u->served; s; s = s->next) {
			if (memmem(s->head.path.p, s->head.path.len, value, strlen(value)) ||
				(s->body.len && memmem(s->body.data, s->body.len, value, strlen(value))))
				return true;
			for (size_t i = 0; i < s->head.n_fields; i++)
				if (s->head.fields[i].value.len && memmem(s->head.fields[i].value.p, s->head.fields[i].value.len, value, strlen(value)))
					return true;
		}
	}
	return false;
}

static const char *field_with(const struct urig *r, const char *format)
{
	static char texts[4][256];
	static unsigned turn;
	char *text = texts[turn++ % 4];
	const char *mark = strchr(format, '@');
	snprintf(text, sizeof(texts[0]), "%.*s%s%s", (int)(mark - format), format, r->placeholders[0], mark + 1);
	return text;
}

/* ---- good ways ---- */

static void in_the_header(const char *alpn)
{
	struct user *s;
	struct urig *r = start_as(RULE("header: Authorization"), alpn, "api.example", &s);
	urig_secret(r, "key", VALUE, 3);
	assert_true(r->loaded.ok);
	open_flow(r, 7, "https", at("api.example", s));
	struct call *c = ask(r, 7, at("api.example", s), "/", field_with(r, "authorization: Bearer @"));
	URIG_WAIT(r, c->closed);
	assert_int_equal(c->head.status, 200);
	assert_string_equal(served_field(s->served, "authorization"), "Bearer " VALUE);
	assert_int_equal(urig_count(r, "secret.use"), 1);
	const json_t *use = urig_last(r, "secret.use");
	assert_string_equal(urig_text(use, "secret"), "key");
	assert_string_equal(urig_text(use, "host"), "api.example");
	assert_string_equal(urig_text(use, "place"), "header:authorization");
	assert_int_equal(urig_number(use, "generation"), 3);
	assert_int_equal(urig_number(use, "flow"), 7);
	urig_free(r);
}

static void in_the_header_over_http1(void **state) { in_the_header("http/1.1"); }
static void in_the_header_over_http2(void **state) { in_the_header("h2"); }

static void in_basic_a_query_and_by_template(void **state)
{
	struct user *s;
	struct urig *r = start(RULE("header: Authorization"), &s);
	char plain[256], coded[512], line[600], want[128];
	urig_secret(r, "key", VALUE, 1);
	open_flow(r, 1, "https", at("api.example", s));
	snprintf(plain, sizeof(plain), "git:%s", r->placeholders[0]);
	text_base64(plain, strlen(plain), coded);
	snprintf(line, sizeof(line), "authorization: Basic %s", coded);
	struct call *c = ask(r, 1, at("api.example", s), "/", line);
	URIG_WAIT(r, c->closed);
	text_base64("git:" VALUE, strlen("git:" VALUE), coded);
	snprintf(want, sizeof(want), "Basic %.100s", coded);
	assert_string_equal(served_field(s->served, "authorization"), want);
	urig_free(r);

	r = start(RULE("query: key"), &s);
	urig_secret(r, "key", "a+b/c=d&e f%", 1);
	open_flow(r, 1, "https", at("api.example", s));
	c = ask(r, 1, at("api.example", s), field_with(r, "/q?x=1&key=@&z"), NULL);
	URIG_WAIT(r, c->closed);
	assert_true(http_text_equal(s->served->head.path, "/q?x=1&key=a%2Bb%2Fc%3Dd%26e%20f%25&z"));
	assert_string_equal(urig_text(urig_last(r, "secret.use"), "place"), "query:key");
	urig_free(r);

	r = start(RULE("header: X-Api-Key, value: \"k={}\""), &s);
	urig_secret(r, "key", VALUE, 1);
	open_flow(r, 1, "https", at("api.example", s));
	c = ask(r, 1, at("api.example", s), "/", "x-api-key: theirs");
	URIG_WAIT(r, c->closed);
	assert_string_equal(served_field(s->served, "x-api-key"), "k=" VALUE);
	assert_int_equal(http_head_count(&s->served->head, "x-api-key"), 1);
	urig_free(r);
}

static void in_a_body_whose_length_is_said(void **state)
{
	struct user *s;
	struct urig *r = start(RULE("body: true"), &s);
	char body[256];
	static const char *const fields[] = { "content-type: application/x-www-form-urlencoded", "expect: 100-continue", NULL };
	urig_secret(r, "key", VALUE, 1);
	open_flow(r, 1, "https", at("api.example", s));
	snprintf(body, sizeof(body), "a=1&client_secret=%s&b=2", r->placeholders[0]);
	struct call *c = urig_request(r, 1, "POST", "https", at("api.example", s), "/token", fields, body, strlen(body));
	URIG_WAIT(r, c->closed);
	assert_int_equal(c->interim, 1);
	assert_int_equal(c->head.status, 200);
	static const char want[] = "a=1&client_secret=" VALUE "&b=2";
	assert_int_equal(s->served->body.len, strlen(want));
	assert_memory_equal(s->served->body.data, want, strlen(want));
	assert_true(s->served->head.has_length);
	assert_int_equal(s->served->head.length, strlen(want));
	assert_string_equal(urig_text(urig_last(r, "secret.use"), "place"), "body");
	/* a body without the placeholder is sent as it is, and is no use */
	c = urig_request(r, 1, "POST", "https", at("api.example", s), "/token", fields, "nothing", 7);
	URIG_WAIT(r, c->closed);
	assert_int_equal(s->served->body.len, 7);
	assert_int_equal(urig_count(r, "secret.use"), 1);
	urig_free(r);
}

static void in_a_body_that_streams(void **state)
{
	struct user *s;
	struct urig *r = start(RULE("body: true"), &s);
	enum { HALF = 700000 };
	char *half = mem_alloc(HALF);
	memset(half, 'x', HALF);
	urig_secret(r, "key", VALUE, 1);
	open_flow(r, 1, "https", at("api.example", s));
	struct call *c = urig_request(r, 1, "POST", "https", at("api.example", s), "/upload", NULL, "", 0);
	URIG_WAIT(r, c->closed);
	struct http_head head;
	http_head_init(&head);
	const char *authority = at("api.example", s);
	http_head_set(&head, &head.method, "POST", 4);
	http_head_set(&head, &head.scheme, "https", 5);
	http_head_set(&head, &head.authority, authority, strlen(authority));
	http_head_set(&head, &head.path, "/upload", 7);
	http_head_add(&head, LINK_FIELD_FLOW, "1", 1);
	c = urig_send_head(r, &head, false);
	call_send(c, half, HALF, false);
	call_send(c, r->placeholders[0], 20, false);
	urig_settle(r);
	call_send(c, r->placeholders[0] + 20, strlen(r->placeholders[0]) - 20, false);
	call_send(c, half, HALF, true);
	URIG_WAIT(r, c->closed);
	assert_int_equal(c->head.status, 200);
	assert_int_equal(s->served->body.len, 2 * HALF + strlen(VALUE));
	assert_memory_equal(s->served->body.data + HALF, VALUE, strlen(VALUE));
	assert_false(s->served->head.has_length);
	mem_free(half);
	urig_free(r);
}

static void a_request_without_the_place_passes_as_it_is(void **state)
{
	struct user *s;
	struct urig *r = start(RULE("header: Authorization"), &s);
	open_flow(r, 1, "https", at("api.example", s));
	/* … also when the secret isn't there at all */
	struct call *c = ask(r, 1, at("api.example", s), "/public", NULL);
	URIG_WAIT(r, c->closed);
	assert_int_equal(c->head.status, 200);
	assert_int_equal(urig_count(r, "secret.use"), 0);
	urig_free(r);
}

/* ---- never elsewhere ---- */

static void a_foreign_credential_is_refused(void **state)
{
	struct user *s;
	struct urig *r = start(RULE("header: Authorization"), &s);
	urig_secret(r, "key", VALUE, 1);
	open_flow(r, 1, "https", at("api.example", s));
	assert_refused(r, ask(r, 1, at("api.example", s), "/", "authorization: Bearer attackers-own"), 403, "foreign_credential");
	assert_int_equal(s->n_served, 0);
	urig_free(r);
}

static void the_placeholder_is_left_alone_in_any_other_place(void **state)
{
	struct user *s;
	struct urig *r = start(RULE("header: Authorization"), &s);
	urig_secret(r, "key", VALUE, 1);
	open_flow(r, 1, "https", at("api.example", s));
	struct call *c = ask(r, 1, at("api.example", s), field_with(r, "/?key=@"), field_with(r, "x-other: @"));
	URIG_WAIT(r, c->closed);
	assert_string_equal(served_field(s->served, "x-other"), r->placeholders[0]);
	assert_false(reached(r, VALUE));
	assert_int_equal(urig_count(r, "secret.use"), 0);
	urig_free(r);
}

static void another_host_never_gets_it(void **state)
{
	struct user *s;
	struct urig *r = start_as(RULE("header: Authorization"), "h2,http/1.1", "other.example", &s);
	urig_secret(r, "key", VALUE, 1);
	open_flow(r, 1, "https", at("other.example", s));
	struct call *c = ask(r, 1, at("other.example", s), "/", field_with(r, "authorization: Bearer @"));
	URIG_WAIT(r, c->closed);
	assert_int_equal(c->head.status, 200);
	assert_false(reached(r, VALUE));
	urig_free(r);
}

/* A front half in other hands says of a flow to one place that its request is for another. */
static void a_forged_authority_or_flow_gets_nothing(void **state)
{
	struct user *s;
	struct urig *r = start_as(RULE("header: Authorization"), "h2,http/1.1", "other.example", &s);
	urig_secret(r, "key", VALUE, 1);
	open_flow(r, 1, "https", at("other.example", s));
	const char *field = field_with(r, "authorization: Bearer @");
	assert_refused(r, ask(r, 1, at("api.example", s), "/", field), 403, "http_host_mismatch");
	assert_refused(r, ask(r, 1, "api.example", "/", field), 403, "http_host_mismatch");
	assert_refused(r, ask(r, 2, at("api.example", s), "/", field), 502, "connect_failed");
	assert_refused(r, urig_request(r, 1, "GET", "http", at("other.example", s), "/", NULL, NULL, 0), 403, "http_host_mismatch");
	/* a second OPEN under the number of the first, to turn it round */
	struct call *c = urig_open(r, 1, "https", at("api.example", s), "h2");
	assert_refused(r, c, 403, "proxy_malformed");
	assert_refused(r, ask(r, 1, at("api.example", s), "/", field), 403, "http_host_mismatch");
	/* a request with two flows, or none that is a number */
	const char *two[] = { "bulkhead-flow: 1", field, NULL };
	assert_refused(r, urig_request(r, 1, "GET", "https", at("other.example", s), "/", two, NULL, 0), 502, "connect_failed");
	assert_int_equal(s->n_served, 0);
	assert_int_equal(urig_count(r, "secret.use"), 0);
	urig_free(r);
}

/* The host that the rule names, but its certificate is another's: nothing is sent at all. */
static void an_impostor_gets_nothing(void **state)
{
	struct user *s;
	struct urig *r = start_as(RULE("header: Authorization"), "h2,http/1.1", "other.example", &s);
	urig_secret(r, "key", VALUE, 1);
	struct call *c = urig_open(r, 1, "https", at("api.example", s), "h2,http/1.1");
	assert_refused(r, c, 502, "upstream_certificate");
	assert_refused(r, ask(r, 1, at("api.example", s), "/", field_with(r, "authorization: Bearer @")), 502, "connect_failed");
	assert_int_equal(s->n_served, 0);
	urig_free(r);
}

static void plain_http_never_gets_it(void **state)
{
	struct user *s;
	struct urig *r = urig_new();
	urig_server(r, r->mint, "api.example", "h2");
	s = urig_server(r, NULL, NULL, NULL);
	urig_run(r, "[{ host: api.example, ports: [@1], private: true, secret: { name: key, header: Authorization } }]", secrets);
	urig_secret(r, "key", VALUE, 1);
	open_flow(r, 1, "http", at("api.example", s));
	const char *fields[] = { field_with(r, "authorization: Bearer @"), NULL };
	struct call *c = urig_request(r, 1, "GET", "http", at("api.example", s), "/", fields, NULL, 0);
	assert_refused(r, c, 403, "secret_needs_tls");
	assert_false(reached(r, VALUE));
	urig_free(r);
}

static void a_method_or_path_beside_the_rule_gets_nothing(void **state)
{
	struct user *s;
	struct urig *r = start(RULE("header: Authorization"), &s);
	urig_secret(r, "key", VALUE, 1);
	open_flow(r, 1, "https", at("api.example", s));
	const char *fields[] = { field_with(r, "authorization: Bearer @"), NULL };
	assert_refused(r, urig_request(r, 1, "DELETE", "https", at("api.example", s), "/", fields, NULL, 0), 403, "method_not_allowed");
	assert_refused(r, urig_request(r, 1, "GET", "https", at("api.example", s), "/a/%2e%2e/b", fields, NULL, 0), 403, "path_ambiguous");
	assert_int_equal(s->n_served, 0);
	urig_free(r);
}

/* ---- the record ---- */

static void nothing_is_sent_before_it_is_recorded(void **state)
{
	struct user *s;
	struct urig *r = start(RULE("header: Authorization"), &s);
	urig_secret(r, "key", VALUE, 1);
	open_flow(r, 1, "https", at("api.example", s));
	r->audit_hold = true;
	struct call *c = ask(r, 1, at("api.example", s), "/", field_with(r, "authorization: @"));
	URIG_WAIT(r, urig_count(r, "secret.use") == 1);
	urig_settle(r);
	assert_int_equal(s->n_served, 0);
	assert_false(c->answered);
	urig_audit_release(r);
	URIG_WAIT(r, c->closed);
	assert_int_equal(s->n_served, 1);
	urig_free(r);
}

static void without_a_record_nothing_goes(void **state)
{
	struct user *s;
	struct urig *r = start(RULE("header: Authorization"), &s);
	urig_secret(r, "key", VALUE, 1);
	open_flow(r, 1, "https", at("api.example", s));
	r->audit_hold = true;
	ask(r, 1, at("api.example", s), "/", field_with(r, "authorization: @"));
	URIG_WAIT(r, urig_count(r, "secret.use") == 1);
	urig_audit_fail(r);
	URIG_WAIT(r, upstream_failure(r->upstream)->code != ERR_NONE);
	urig_settle(r);
	assert_int_equal(s->n_served, 0);
	urig_free(r);
}

/* ---- secrets that aren't there ---- */

static void a_secret_that_is_not_set_is_said_so(void **state)
{
	struct user *s;
	struct urig *r = start(RULE("header: Authorization"), &s);
	open_flow(r, 1, "https", at("api.example", s));
	struct call *c = ask(r, 1, at("api.example", s), "/", field_with(r, "authorization: @"));
	assert_refused(r, c, 502, "secret_unavailable");
	assert_non_null(strstr(call_field(c, LINK_FIELD_DETAIL), "key"));
	assert_int_equal(s->n_served, 0);
	urig_free(r);
}

static void broken_files_are_refused(void **state)
{
	struct user *s;
	struct urig *r = start(RULE("header: Authorization"), &s);
	urig_secret(r, "other", VALUE, 1);
	assert_false(r->loaded.ok);
	assert_non_null(strstr(r->loaded.sentence, "not granted"));
	r->key[5] ^= 1;
	urig_secret(r, "key", VALUE, 1);
	assert_false(r->loaded.ok);
	assert_null(strstr(r->loaded.sentence, VALUE));
	r->key[5] ^= 1;
	urig_secret_in(r, "key", "other", VALUE, 1);
	assert_false(r->loaded.ok);
	assert_non_null(strstr(r->loaded.sentence, "other"));
	urig_secret(r, "key", VALUE, 1);
	assert_true(r->loaded.ok);
	urig_free(r);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(in_the_header_over_http1),
		cmocka_unit_test(in_the_header_over_http2),
		cmocka_unit_test(in_basic_a_query_and_by_template),
		cmocka_unit_test(in_a_body_whose_length_is_said),
		cmocka_unit_test(in_a_body_that_streams),
		cmocka_unit_test(a_request_without_the_place_passes_as_it_is),
		cmocka_unit_test(a_foreign_credential_is_refused),
		cmocka_unit_test(the_placeholder_is_left_alone_in_any_other_place),
		cmocka_unit_test(another_host_never_gets_it),
		cmocka_unit_test(a_forged_authority_or_flow_gets_nothing),
		cmocka_unit_test(an_impostor_gets_nothing),
		cmocka_unit_test(plain_http_never_gets_it),
		cmocka_unit_test(a_method_or_path_beside_the_rule_gets_nothing),
		cmocka_unit_test(nothing_is_sent_before_it_is_recorded),
		cmocka_unit_test(without_a_record_nothing_goes),
		cmocka_unit_test(a_secret_that_is_not_set_is_said_so),
		cmocka_unit_test(broken_files_are_refused),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
