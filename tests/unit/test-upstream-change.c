/* SPDX-License-Identifier: Apache-2.0 */
/* The upstream half while things change: helpers, rotation, revocation, a newer policy, and everyone who may go away. */
#include "upstream-rig.h"

#include <stdio.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/mem.h"
#include "gate/upstream-link.h"
#include "gate/upstream/vault.h"

#define VALUE "s3cr3t-value-0001"
#define RULE "{ host: api.example, ports: [@0], private: true, ca: rig.pem, methods: [GET, POST], secret: { name: key, header: Authorization } }"
#define OTHER "{ host: other.example, ports: [@1], private: true, ca: rig.pem, inspect: true }"

static const char *const secrets[] = { "key", NULL };

static const char *at(const char *host, const struct user *s)
{
	static char authority[4][64];
	static unsigned turn;
	char *out = authority[turn++ % 4];
	snprintf(out, sizeof(authority[0]), "%s:%u", host, s->port);
	return out;
}

static struct call *open_flow(struct urig *r, uint64_t flow, const char *host, const struct user *s)
{
	struct call *c = urig_open(r, flow, "https", at(host, s), "h2,http/1.1");
	URIG_WAIT(r, c->answered || c->closed);
	assert_int_equal(c->head.status, 200);
	return c;
}

static struct urig *start(struct user **ret)
{
	struct urig *r = urig_new();
	*ret = urig_server(r, r->mint, "api.example", "h2,http/1.1");
	urig_server(r, r->mint, "other.example", "h2,http/1.1");
	urig_run(r, "[" RULE ", " OTHER "]", secrets);
	return r;
}

static struct call *ask(struct urig *r, uint64_t flow, const struct user *s)
{
	char line[256];
	snprintf(line, sizeof(line), "authorization: Bearer %s", r->placeholders[0]);
	const char *fields[] = { line, NULL };
	return urig_request(r, flow, "GET", "https", at("api.example", s), "/", fields, NULL, 0);
}

static void assert_refused(struct call *c, const char *reason)
{
	URIG_WAIT(c->rig, c->answered || c->closed);
	assert_int_equal(c->head.status, 502);
	assert_string_equal(call_field(c, LINK_FIELD_REASON), reason);
}

/* ---- helpers ---- */

static void a_helper_is_called_once_for_all_who_wait(void **state)
{
	enum { N = 20 };
	struct user *s;
	struct urig *r = start(&s);
	struct call *calls[N];
	urig_helper_secret(r, "key");
	assert_true(r->loaded.ok);
	open_flow(r, 1, "api.example", s);
	assert_int_equal(r->n_help, 0); /* nobody needs it yet */
	for (size_t i = 0; i < N; i++)
		calls[i] = ask(r, 1, s);
	URIG_WAIT(r, r->n_help == 1);
	assert_string_equal(r->help.name, "key");
	urig_settle(r);
	assert_int_equal(s->n_served, 0);
	urig_helped(r, r->help.call, "{\"value\": \"minted-token-1\", \"expires_in\": 3600}");
	for (size_t i = 0; i < N; i++) {
		URIG_WAIT(r, calls[i]->closed);
		assert_int_equal(calls[i]->head.status, 200);
	}
	assert_string_equal(served_field(s->served, "authorization"), "Bearer minted-token-1");
	assert_int_equal(urig_count(r, "secret.use"), N);
	/* kept for the next */
	struct call *c = ask(r, 1, s);
	URIG_WAIT(r, c->closed);
	assert_int_equal(r->n_help, 1);
	/* and taken out of answers */
	s->script = (struct script){ .status = 200, .body = "minted-token-1", .len = 14 };
	c = ask(r, 1, s);
	URIG_WAIT(r, c->closed);
	assert_int_equal(c->body.len, 14);
	assert_false(call_has(c, "minted-token-1"));
	urig_free(r);
}

static void a_value_that_is_not_kept_is_fetched_anew(void **state)
{
	struct user *s;
	struct urig *r = start(&s);
	urig_helper_secret(r, "key");
	open_flow(r, 1, "api.example", s);
	for (unsigned i = 1; i <= 3; i++) {
		char output[64], want[64];
		struct call *c = ask(r, 1, s);
		URIG_WAIT(r, r->n_help == i);
		snprintf(output, sizeof(output), "{\"value\": \"one-time-%u\"}", i);
		urig_helped(r, r->help.call, output);
		URIG_WAIT(r, c->closed);
		snprintf(want, sizeof(want), "Bearer one-time-%u", i);
		assert_string_equal(served_field(s->served, "authorization"), want);
	}
	/* all of them are still known in answers */
	s->script = (struct script){ .status = 200, .body = "one-time-1 one-time-2 one-time-3", .len = 32 };
	struct call *c = urig_request(r, 1, "GET", "https", at("api.example", s), "/", NULL, NULL, 0);
	URIG_WAIT(r, c->closed);
	assert_int_equal(c->body.len, 32);
	assert_false(call_has(c, "one-time"));
	urig_free(r);
}

static void a_helper_that_fails_is_said_so_to_all_who_wait(void **state)
{
	static const char *const outputs[] = { NULL, "", "no json", "{\"value\": \"short\"}", "{\"expires_in\": 3}", "{\"value\": \"with\\nnewline-in-it\"}" };
	for (size_t i = 0; i < ARRAY_LEN(outputs); i++) {
		struct user *s;
		struct urig *r = start(&s);
		urig_helper_secret(r, "key");
		open_flow(r, 1, "api.example", s);
		struct call *a = ask(r, 1, s), *b = ask(r, 1, s);
		URIG_WAIT(r, r->n_help == 1);
		urig_helped(r, r->help.call, outputs[i]);
		assert_refused(a, "secret_unavailable");
		assert_refused(b, "secret_unavailable");
		assert_non_null(strstr(call_field(a, LINK_FIELD_DETAIL), "the secret key can't be had"));
		/* not asked again at once: a box could make it run all the time */
		assert_refused(ask(r, 1, s), "secret_unavailable");
		assert_int_equal(r->n_help, 1);
		assert_int_equal(s->n_served, 0);
		assert_int_equal(urig_count(r, "secret.use"), 0);
		urig_free(r);
	}
}

static void what_a_helper_writes_too_much_is_not_taken(void **state)
{
	struct user *s;
	struct urig *r = start(&s);
	urig_helper_secret(r, "key");
	open_flow(r, 1, "api.example", s);
	struct call *c = ask(r, 1, s);
	URIG_WAIT(r, r->n_help == 1);
	int fd = urig_helped_pipe(r, r->help.call);
	char junk[4096];
	memset(junk, ' ', sizeof(junk));
	for (size_t i = 0; i < SECRET_FILE_MAX / sizeof(junk) + 1; i++) {
		fd_set_nonblock(fd, true);
		while (write(fd, junk, sizeof(junk)) < 0 && !c->answered)
			urig_step(r, "room in the pipe");
	}
	assert_refused(c, "secret_unavailable");
	fd_close(&fd);
	urig_free(r);
}

/* An answer to a call that nobody waits for any more is nobody's. */
static void a_late_answer_counts_for_nothing(void **state)
{
	struct user *s;
	struct urig *r = start(&s);
	urig_helper_secret(r, "key");
	open_flow(r, 1, "api.example", s);
	struct call *c = ask(r, 1, s);
	URIG_WAIT(r, r->n_help == 1);
	uint64_t old = r->help.call;
	urig_secret(r, "key", VALUE, 2); /* a fixed value in its place: the waiting get it */
	URIG_WAIT(r, c->closed);
	assert_string_equal(served_field(s->served, "authorization"), "Bearer " VALUE);
	urig_helped(r, old, "{\"value\": \"minted-token-1\", \"expires_in\": 3600}");
	urig_helped(r, 999, NULL);
	urig_settle(r);
	c = ask(r, 1, s);
	URIG_WAIT(r, c->closed);
	assert_string_equal(served_field(s->served, "authorization"), "Bearer " VALUE);
	urig_free(r);
}

static void those_who_stop_waiting_are_forgotten(void **state)
{
	struct user *s;
	struct urig *r = start(&s);
	urig_helper_secret(r, "key");
	struct call *open = open_flow(r, 1, "api.example", s);
	struct call *a = ask(r, 1, s), *b = ask(r, 1, s);
	URIG_WAIT(r, r->n_help == 1);
	call_reset(a);
	URIG_WAIT(r, a->closed);
	urig_settle(r);
	call_reset(open);
	URIG_WAIT(r, open->closed);
	urig_helped(r, r->help.call, "{\"value\": \"minted-token-1\", \"expires_in\": 3600}");
	URIG_WAIT(r, b->closed || b->answered);
	urig_settle(r);
	assert_int_equal(s->n_served, 0);
	urig_free(r);
}

/* ---- rotation and revocation ---- */

static void the_new_value_goes_out_from_then_on(void **state)
{
	struct user *s;
	struct urig *r = start(&s);
	urig_secret(r, "key", VALUE, 1);
	open_flow(r, 1, "api.example", s);
	struct call *c = ask(r, 1, s);
	URIG_WAIT(r, c->closed);
	urig_secret(r, "key", "rotated-value-2", 2);
	c = ask(r, 1, s);
	URIG_WAIT(r, c->closed);
	assert_string_equal(served_field(s->served, "authorization"), "Bearer rotated-value-2");
	assert_int_equal(urig_number(urig_last(r, "secret.use"), "generation"), 2);
	urig_free(r);
}

/* The server may have kept the value, and nobody would know it any more in an answer: nothing goes to its place until there is a new one. */
static void revoking_cuts_what_may_have_used_it_and_nothing_else(void **state)
{
	struct user *s;
	struct urig *r = start(&s);
	urig_secret(r, "key", VALUE, 1);
	struct call *used = open_flow(r, 1, "api.example", s), *unused = open_flow(r, 2, "api.example", s);
	struct call *other = open_flow(r, 3, "other.example", s->next);
	s->script = (struct script){ .status = 0 };
	struct call *running = ask(r, 1, s);
	URIG_WAIT(r, s->n_served == 1);
	urig_revoke(r, "key");
	URIG_WAIT(r, used->closed && running->answered);
	assert_string_equal(call_field(running, LINK_FIELD_REASON), "secret_revoked");
	assert_int_equal(used->fault, HTTP_CANCELLED);
	URIG_WAIT(r, !s->served->stream && unused->closed);
	assert_false(other->closed);
	open_flow(r, 4, "api.example", s);
	assert_refused(ask(r, 4, s), "secret_unavailable");
	assert_refused(urig_request(r, 4, "GET", "https", at("api.example", s), "/", NULL, NULL, 0), "secret_unavailable");
	assert_int_equal(s->n_served, 1);
	/* granted anew it works again */
	s->script = (struct script){ .status = 200 };
	urig_secret(r, "key", "fresh-value-3", 3);
	struct call *c = ask(r, 4, s);
	URIG_WAIT(r, c->closed);
	assert_string_equal(served_field(s->served, "authorization"), "Bearer fresh-value-3");
	urig_free(r);
}

static void a_revoked_helper_is_not_asked_again(void **state)
{
	struct user *s;
	struct urig *r = start(&s);
	urig_helper_secret(r, "key");
	open_flow(r, 1, "api.example", s);
	struct call *waiting = ask(r, 1, s);
	URIG_WAIT(r, r->n_help == 1);
	urig_revoke(r, "key");
	assert_refused(waiting, "secret_unavailable");
	urig_helped(r, r->help.call, "{\"value\": \"minted-token-1\", \"expires_in\": 3600}");
	urig_settle(r);
	open_flow(r, 2, "api.example", s);
	assert_refused(ask(r, 2, s), "secret_unavailable");
	assert_int_equal(r->n_help, 1);
	assert_int_equal(s->n_served, 0);
	urig_free(r);
}

static struct call *ask_helped(struct urig *r, struct user *s, const char *output)
{
	unsigned before = r->n_help;
	struct call *c = ask(r, 1, s);
	URIG_WAIT(r, r->n_help == before + 1);
	urig_helped(r, r->help.call, output);
	URIG_WAIT(r, c->closed);
	assert_int_equal(c->head.status, 200);
	return c;
}

/* A server may have kept any of them, and answers with it when the box has made it be forgotten. */
static void a_helper_makes_no_more_values_than_are_looked_for(void **state)
{
	struct user *s;
	struct urig *r = start(&s);
	urig_helper_secret(r, "key");
	open_flow(r, 1, "api.example", s);
	s->script = (struct script){ .status = 200, .body = "minted-token-0.", .len = 15 };
	for (unsigned i = 0; i <= VAULT_OLD_MAX; i++) {
		char output[64];
		snprintf(output, sizeof(output), "{\"value\": \"minted-token-%u.\"}", i);
		assert_false(call_has(ask_helped(r, s, output), "minted-token-0."));
	}
	unsigned asked = r->n_help;
	assert_refused(ask(r, 1, s), "secret_unavailable");
	assert_int_equal(r->n_help, asked);
	urig_free(r);
}

/* Between the auditor's word and the sending lies a moment; what was revoked in it isn't sent. */
static void what_is_revoked_while_it_waits_is_not_sent(void **state)
{
	struct user *s;
	struct urig *r = start(&s);
	urig_secret(r, "key", VALUE, 1);
	open_flow(r, 1, "api.example", s);
	r->audit_hold = true;
	struct call *c = ask(r, 1, s);
	URIG_WAIT(r, urig_count(r, "secret.use") == 1);
	urig_revoke(r, "key");
	urig_settle(r);
	urig_audit_release(r);
	URIG_WAIT(r, c->answered);
	assert_string_equal(call_field(c, LINK_FIELD_REASON), "secret_revoked");
	assert_int_equal(s->n_served, 0);
	urig_free(r);
}

/* ---- a newer policy ---- */

static void a_tighter_policy_cuts_flows_and_requests(void **state)
{
	struct user *s;
	struct urig *r = start(&s);
	urig_secret(r, "key", VALUE, 1);
	struct call *api = open_flow(r, 1, "api.example", s), *other = open_flow(r, 2, "other.example", s->next);
	s->script = s->next->script = (struct script){ .status = 0 };
	struct call *get = ask(r, 1, s);
	struct call *post = urig_request(r, 1, "POST", "https", at("api.example", s), "/", NULL, "x", 1);
	struct call *there = urig_request(r, 2, "GET", "https", at("other.example", s->next), "/", NULL, NULL, 0);
	URIG_WAIT(r, s->n_served == 2 && s->next->n_served == 1);
	/* the same again cuts nothing */
	urig_policy(r, "[" RULE ", " OTHER "]");
	assert_int_equal(r->cut, 0);
	/* without POST, and without the other host */
	urig_policy(r, "[{ host: api.example, ports: [@0], private: true, ca: rig.pem, methods: [GET], secret: { name: key, header: Authorization } }]");
	assert_int_equal(r->cut, 2);
	URIG_WAIT(r, other->closed && post->answered && there->answered);
	assert_string_equal(call_field(post, LINK_FIELD_REASON), "policy_changed");
	assert_string_equal(call_field(there, LINK_FIELD_REASON), "policy_changed");
	assert_false(get->answered);
	assert_false(api->closed);
	/* the address may not be private any more */
	urig_policy(r, "[{ host: api.example, ports: [@0], ca: rig.pem, methods: [GET], secret: { name: key, header: Authorization } }]");
	assert_int_equal(r->cut, 1);
	URIG_WAIT(r, api->closed && get->answered);
	struct call *again = urig_open(r, 5, "https", at("other.example", s->next), "h2");
	URIG_WAIT(r, again->answered);
	assert_int_equal(again->head.status, 403);
	assert_string_equal(call_field(again, LINK_FIELD_REASON), "no_rule");
	urig_free(r);
}

/* A request that waits for its value goes by the rule of now, or not at all. */
static void a_waiting_request_must_still_be_bound_alike(void **state)
{
	struct user *s;
	struct urig *r = start(&s);
	urig_secret(r, "key", VALUE, 1);
	open_flow(r, 1, "api.example", s);
	r->audit_hold = true;
	struct call *c = ask(r, 1, s);
	URIG_WAIT(r, urig_count(r, "secret.use") == 1);
	urig_policy(r, "[{ host: api.example, ports: [@0], private: true, ca: rig.pem, methods: [GET] }]");
	assert_int_equal(r->cut, 1);
	urig_audit_release(r);
	URIG_WAIT(r, c->answered);
	assert_string_equal(call_field(c, LINK_FIELD_REASON), "policy_changed");
	assert_int_equal(s->n_served, 0);
	urig_free(r);
}

/* ---- who may go away ---- */

static void without_its_front_half_it_ends(void **state)
{
	struct user *s;
	struct urig *r = start(&s);
	open_flow(r, 1, "api.example", s);
	URIG_WAIT(r, s->connections && s->connections->channel);
	channel_finish(r->link, 1);
	URIG_WAIT(r, r->link_closed);
	urig_settle(r);
	upstream_free(r->upstream);
	r->upstream = NULL;
	URIG_WAIT(r, !s->connections->channel);
	urig_free(r);
}

static void broken_messages_end_it(void **state)
{
	static const struct { const void *p; size_t len; } cases[] = {
		{ "\0\0\0\1", 4 }, { "x", 1 }, { "\0\0\0\x63", 4 }, { "\0\0\0\3\0\0\0\3key", 11 }, { "\0\0\0\5\0\0\0\0\0\0\0\1\1", 13 },
		{ "\0\0\0\2\0\0\0\0\0\0\0\1\0\0\0\0\0\0\0\1", 20 },
	};
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		struct user *s;
		struct urig *r = start(&s);
		struct buf b;
		buf_init(&b, 64);
		buf_append(&b, cases[i].p, cases[i].len);
		urig_send(r, &b, NULL, 0);
		URIG_WAIT(r, upstream_failure(r->upstream)->code != ERR_NONE);
		urig_free(r);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_helper_is_called_once_for_all_who_wait),
		cmocka_unit_test(a_value_that_is_not_kept_is_fetched_anew),
		cmocka_unit_test(a_helper_that_fails_is_said_so_to_all_who_wait),
		cmocka_unit_test(what_a_helper_writes_too_much_is_not_taken),
		cmocka_unit_test(a_late_answer_counts_for_nothing),
		cmocka_unit_test(those_who_stop_waiting_are_forgotten),
		cmocka_unit_test(the_new_value_goes_out_from_then_on),
		cmocka_unit_test(revoking_cuts_what_may_have_used_it_and_nothing_else),
		cmocka_unit_test(a_revoked_helper_is_not_asked_again),
		cmocka_unit_test(a_helper_makes_no_more_values_than_are_looked_for),
		cmocka_unit_test(what_is_revoked_while_it_waits_is_not_sent),
		cmocka_unit_test(a_tighter_policy_cuts_flows_and_requests),
		cmocka_unit_test(a_waiting_request_must_still_be_bound_alike),
		cmocka_unit_test(without_its_front_half_it_ends),
		cmocka_unit_test(broken_messages_end_it),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
