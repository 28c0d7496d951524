/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What changes in a running sandbox: its policy, the values of its secrets, a secret that is taken away. Done means: both halves of the gate said that they have it,
 * and it is on the record. A half that doesn't say so in time can't be relied on: the sandbox ends.
 */
#include "sandbox/internal.h"

#include <string.h>

#include "base/fd.h"
#include "base/mem.h"
#include "base/text.h"
#include "gate/upstream-messages.h"
#include "policy/request.h"
#include "sandbox/merge.h"

#define CHANGE_NS (10 * NS_PER_S)

/* A secret whose new value is on its way. */
struct secret_change {
	struct secret_change *next;
	struct grant *grant;
	struct control_asker *asker;
};

struct live_changes {
	struct sandbox *sandbox;
	struct loop_timer *deadline; /* runs while something is pending */
	struct policy_change {
		struct policy *next; /* NULL: none is pending */
		struct control_asker *asker;
		uint64_t generation, cut;
		bool gate_done, upstream_done, recording;
	} policy;
	struct secret_change *secrets;
	struct secret_record *records; /* on their way to the auditor */
};

static void on_deadline(void *ctx)
{
	struct live_changes *c = ctx;
	struct err err;
	err_set(&err, ERR_TIMEOUT, "the gate of sandbox %s did not confirm a change within %u s, so the sandbox was ended", c->sandbox->spec.id,
		(unsigned)(CHANGE_NS / NS_PER_S));
	sandbox_fail(c->sandbox, &err);
}

static struct live_changes *live_changes_of(struct sandbox *s)
{
	if (!s->live_changes) {
		s->live_changes = mem_alloc(sizeof(*s->live_changes));
		s->live_changes->sandbox = s;
		s->live_changes->deadline = loop_timer_new(s->loop, on_deadline, s->live_changes);
	}
	return s->live_changes;
}

static void watch(struct live_changes *c)
{
	if (c->policy.next || c->secrets)
		loop_timer_set(c->deadline, CHANGE_NS, 0);
	else
		loop_timer_stop(c->deadline);
}

/* ---- policy ---- */

static bool literal_reachable(const struct policy *start, const struct network_rule *wanted, uint16_t port)
{
	for (size_t i = 0; i < start->n_rules; i++) {
		const struct network_rule *r = &start->rules[i];
		if (!r->is_address || memcmp(&r->address, &wanted->address, sizeof(r->address)) != 0)
			continue;
		for (unsigned p = 0; p < r->n_ports; p++)
			if (r->ports[p] == port)
				return true;
	}
	return false;
}

/* Routes to literal addresses are laid when the box is built. */
static int check_literals(const struct policy *start, const struct policy *wanted, struct err *err)
{
	for (size_t i = 0; i < wanted->n_rules; i++) {
		const struct network_rule *r = &wanted->rules[i];
		for (unsigned p = 0; r->is_address && p < r->n_ports; p++)
			if (!literal_reachable(start, r, r->ports[p]))
				return err_set(err, ERR_UNSUPPORTED, "the sandbox has no route to %s port %u, since the policy it started with didn't name it; start a new sandbox with this policy",
					r->text, r->ports[p]);
	}
	return 0;
}

static int check_possible(const struct sandbox *s, const struct policy *wanted, struct err *err)
{
	if (policy_inspects(wanted) && !s->inspects)
		return err_set(err, ERR_UNSUPPORTED, "the policy has rules that need requests seen, and this sandbox was started without that: it trusts no certificate of its gate. Start a new "
						     "sandbox with this policy; with `inspect: true` on a rule, a sandbox is ready for such a change from the beginning");
	return grants_cover(s->grants, wanted, err) < 0 ? -1 : check_literals(s->start_policy, wanted, err);
}

static int write_policy(struct sandbox *s, const struct policy *p, struct err *err)
{
	cleanup_free char *json = policy_to_json(p);
	return fd_replace_file_at(sandbox_dir_fd(s->dir), SANDBOX_POLICY_FILE, json, strlen(json), 0600, false, err);
}

/*
 * The file goes first: what can fail without harm comes before what can't be taken back. The upstream half gets the policy when the front half has
 * confirmed it, so that what is cut is cut, and counted, once. A half that has it while the other doesn't is the end of the sandbox.
 */
static int begin_policy(struct sandbox *s, struct policy *next, uint64_t generation, struct err *err)
{
	if (write_policy(s, next, err) < 0)
		return err_wrap(err, "the policy can't be kept, so it was not changed");
	if (gate_link_policy(s->gate, generation, next, err) == 0)
		return 0;
	write_policy(s, s->policy, NULL);
	return -1;
}

int change_policy(struct sandbox *s, struct control_asker *asker, uint64_t expected, struct policy *wanted, struct err *err)
{
	struct live_changes *c = live_changes_of(s);
	struct policy *next = NULL;
	int r = 0;
	if (c->policy.next || c->policy.recording)
		r = err_set(err, ERR_CONFLICT, "the policy of sandbox %s is just being changed; try again", s->spec.id);
	else if (expected && expected != s->generation)
		r = err_set(err, ERR_CONFLICT, "the policy of sandbox %s is of generation %llu by now, not %llu", s->spec.id, (unsigned long long)s->generation,
			(unsigned long long)expected);
	else if (check_possible(s, wanted, err) < 0 || !(next = policy_merge_running(s->policy, wanted, err)))
		r = -1;
	policy_free(wanted);
	if (r < 0)
		return -1;
	c->policy = (struct policy_change){ .next = next, .asker = asker, .generation = s->generation + 1, .upstream_done = !s->upstream };
	watch(c);
	if (begin_policy(s, next, c->policy.generation, err) == 0)
		return 0;
	c->policy.next = policy_free(next);
	watch(c);
	return -1;
}

static void on_policy_recorded(void *ctx, uint64_t seq, const struct err *err)
{
	struct sandbox *s = ctx;
	if (err || !s->live_changes)
		return; /* the sandbox ends, and its control socket with it */
	struct policy_change *p = &s->live_changes->policy;
	struct control_asker *asker = p->asker;
	p->recording = false;
	control_answer_ok(s, asker, s->generation, p->cut);
}

static void policy_maybe_done(struct live_changes *c)
{
	struct policy_change *p = &c->policy;
	struct sandbox *s = c->sandbox;
	if (!p->next || !p->gate_done || !p->upstream_done)
		return;
	policy_free(s->own_policy);
	s->policy = s->own_policy = p->next;
	s->generation = s->result.policy_generation = p->generation;
	p->next = NULL;
	p->recording = true;
	watch(c);
	if (s->ops.on_policy)
		s->ops.on_policy(s->ctx, s->policy);
	events_policy(s, p->cut, p->asker, on_policy_recorded);
}

static int half_done(struct sandbox *s, const struct gate_msg_policy_set *m, bool upstream, struct err *err)
{
	struct policy_change *p = s->live_changes ? &s->live_changes->policy : NULL;
	bool *done = p && p->next ? upstream ? &p->upstream_done : &p->gate_done : NULL;
	if (!done || *done || (upstream && !p->gate_done) || m->generation != p->generation)
		return err_set(err, ERR_PROTOCOL, "the gate confirmed a policy that it wasn't given");
	*done = true;
	if (!upstream) {
		p->cut = m->cut;
		if (s->upstream && upstream_link_policy(s->upstream, p->generation, p->next, err) < 0)
			return -1;
	}
	policy_maybe_done(s->live_changes);
	return 0;
}

int change_gate_done(struct sandbox *s, const struct gate_msg_policy_set *m, struct err *err) { return half_done(s, m, false, err); }
int change_upstream_done(struct sandbox *s, const struct gate_msg_policy_set *m, struct err *err) { return half_done(s, m, true, err); }

/* ---- secrets ---- */

/* Rotated as often as one likes; each is one record, and one answer. */
struct secret_record {
	struct secret_record *next;
	struct sandbox *sandbox;
	struct control_asker *asker;
	uint64_t generation;
};

static void on_secret_recorded(void *ctx, uint64_t seq, const struct err *err)
{
	struct secret_record *r = ctx;
	if (!err)
		control_answer_ok(r->sandbox, r->asker, r->generation, 1);
	for (struct secret_record **p = &r->sandbox->live_changes->records; *p; p = &(*p)->next)
		if (*p == r) {
			*p = r->next;
			break;
		}
	mem_free(r);
}

static void record_secret(struct sandbox *s, const struct grant *grant, const char *action, struct control_asker *asker)
{
	struct live_changes *c = live_changes_of(s);
	struct secret_record *r = mem_alloc(sizeof(*r));
	*r = (struct secret_record){ c->records, s, asker, grant->about.generation };
	c->records = r;
	events_secret(s, grant, action, true, NULL, on_secret_recorded, r);
}

static struct secret_change *pending(const struct sandbox *s, const struct grant *grant)
{
	for (struct secret_change *c = s->live_changes ? s->live_changes->secrets : NULL; c; c = c->next)
		if (c->grant == grant)
			return c;
	return NULL;
}

/* Not granted, or taken away before: nothing to do here. */
static struct grant *used(struct sandbox *s, struct control_asker *asker, const char *name)
{
	struct grant *grant = grants_find(s->grants, name);
	if (grant && !grant->revoked && s->upstream)
		return grant;
	control_answer_ok(s, asker, 0, 0);
	return NULL;
}

int change_secret(struct sandbox *s, struct control_asker *asker, const char *name, struct err *err)
{
	struct grant *grant = used(s, asker, name);
	if (!grant)
		return 0;
	if (pending(s, grant))
		return err_set(err, ERR_CONFLICT, "the secret \"%s\" is just being replaced in sandbox %s; try again", name, s->spec.id);
	if (grant_open(s->grants, grant, err) < 0 || upstream_link_secret(s->upstream, grant, err) < 0)
		return -1;
	struct live_changes *c = live_changes_of(s);
	struct secret_change *one = mem_alloc(sizeof(*one));
	*one = (struct secret_change){ c->secrets, grant, asker };
	c->secrets = one;
	watch(c);
	return 0;
}

static void forget(struct live_changes *c, struct secret_change *one)
{
	for (struct secret_change **p = &c->secrets; *p; p = &(*p)->next)
		if (*p == one) {
			*p = one->next;
			break;
		}
	mem_free(one);
	watch(c);
}

/* A value that can't be used leaves the one before in its place. */
int change_secret_done(struct sandbox *s, struct grant *grant, const struct upstream_msg_loaded *m, struct err *err)
{
	struct secret_change *one = pending(s, grant);
	char sentence[512];
	if (!one)
		return err_set(err, ERR_PROTOCOL, "the upstream half answered for a secret that it wasn't given");
	struct control_asker *asker = one->asker;
	forget(s->live_changes, one);
	if (m->ok) {
		record_secret(s, grant, "rotated", asker);
		return 0;
	}
	struct err why;
	err_set(&why, ERR_INVALID, "the new value of the secret \"%s\" can't be used: %s", grant->name,
		text_escape(m->sentence, strlen(m->sentence), sentence, sizeof(sentence)));
	events_secret(s, grant, "rotated", false, NULL, NULL, NULL);
	control_answer_failed(s, asker, &why);
	return 0;
}

/* First of all it is taken away; then that is put down. */
int change_revoke(struct sandbox *s, struct control_asker *asker, const char *name, struct err *err)
{
	struct grant *grant = used(s, asker, name);
	if (!grant)
		return 0;
	grant->revoked = true;
	helpers_stop(s, name);
	/* What can't be revoked by itself is revoked with the sandbox. */
	if (upstream_link_revoke(s->upstream, name, err) < 0) {
		sandbox_fail(s, err);
		return -1;
	}
	record_secret(s, grant, "revoked", asker);
	return 0;
}

struct live_changes *live_changes_free(struct live_changes *c)
{
	if (!c)
		return NULL;
	while (c->secrets)
		forget(c, c->secrets);
	while (c->records) {
		struct secret_record *r = c->records;
		c->records = r->next;
		mem_free(r);
	}
	policy_free(c->policy.next);
	loop_timer_free(c->deadline);
	return mem_free(c);
}
