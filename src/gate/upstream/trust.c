/* SPDX-License-Identifier: Apache-2.0 */
/* By what a place's servers are verified: the host's roots, and the `ca` of every rule that leads there. Made once for each such set; flows keep theirs over a
 * change of the policy. */
#include "gate/upstream/internal.h"

#include "base/mem.h"

#define PEM_MAX (16u * RULE_CA_MAX)

struct trust {
	unsigned refs;
	struct trust *next;             /* of those kept for others */
	struct buf pem;                 /* what is trusted besides; empty: nothing */
	struct tls_roots *own;          /* NULL: the host's alone */
	const struct tls_roots *roots;
};

const struct tls_roots *trust_roots(const struct trust *t) { return t->roots; }

struct trust *trust_ref(struct trust *t)
{
	t->refs++;
	return t;
}

struct trust *trust_release(struct trust *t)
{
	if (t && --t->refs == 0) {
		tls_roots_free(t->own);
		buf_free(&t->pem);
		mem_free(t);
	}
	return NULL;
}

/* Rules for one place often name one and the same file. */
static int collect(const struct policy *p, const struct gate_target *t, struct buf *pem)
{
	int r = 0;
	for (size_t i = 0; r == 0 && i < p->n_rules; i++) {
		const struct network_rule *rule = &p->rules[i];
		const char *ca = rule->request ? rule->request->ca : NULL;
		if (!ca || !rule_opens(rule, t->literal ? NULL : &t->name, t->literal ? &t->ip : NULL, t->port))
			continue;
		if (!pem->len || !memmem(pem->data, pem->len, ca, strlen(ca)))
			r = buf_append(pem, ca, strlen(ca)) | buf_append(pem, "\n", 1);
	}
	return r;
}

static struct trust *find(struct upstream *u, const struct buf *pem)
{
	struct trust *t = u->trust;
	while (t && (t->pem.len != pem->len || (pem->len && memcmp(t->pem.data, pem->data, pem->len) != 0)))
		t = t->next;
	return t;
}

/* Takes pem. */
static struct trust *make(struct upstream *u, struct buf *pem, struct err *err)
{
	struct trust *t = mem_alloc(sizeof(*t));
	*t = (struct trust){ .refs = 1, .pem = *pem, .roots = u->roots };
	if (t->pem.len && !(t->roots = t->own = tls_roots_with(u->roots, (const char *)t->pem.data, t->pem.len, err)))
		return trust_release(t);
	t->next = u->trust;
	return u->trust = t;
}

struct trust *trust_for(struct upstream *u, const struct gate_target *target, struct err *err)
{
	struct buf pem;
	buf_init(&pem, PEM_MAX);
	if (collect(u->policy, target, &pem) < 0) {
		buf_free(&pem);
		err_set(err, ERR_LIMIT, "the rules for %s name more certificates than can be held", target->text);
		return NULL;
	}
	struct trust *t = find(u, &pem);
	if (t)
		buf_free(&pem);
	else
		t = make(u, &pem, err);
	return t ? trust_ref(t) : NULL;
}

void trust_forget(struct upstream *u)
{
	while (u->trust) {
		struct trust *t = u->trust;
		u->trust = t->next;
		trust_release(t);
	}
}
