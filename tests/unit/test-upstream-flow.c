/* SPDX-License-Identifier: Apache-2.0 */
/* The upstream half: flows, their connections, requests and answers, over both versions of HTTP. */
#include "upstream-rig.h"

#include <stdio.h>

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

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(http1_there_and_back),
		cmocka_unit_test(http2_there_and_back),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
