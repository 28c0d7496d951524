/* SPDX-License-Identifier: Apache-2.0 */
/* The files that a policy names: authorities and lock files, read through the caller. */
#include <string.h>

#include "base/mem.h"
#include "base/text.h"
#include "policy/request-rule.h"

#define SHOWN_MAX 256
#define PEM_BEGIN "-----BEGIN CERTIFICATE-----"
#define PEM_END "-----END CERTIFICATE-----"

static const char *next_line(const char *p)
{
	size_t n = strcspn(p, "\n");
	return p[n] ? p + n + 1 : p + n;
}

static bool is_line(const char *p, const char *text)
{
	size_t n = strlen(text);
	if (strncmp(p, text, n) != 0)
		return false;
	p += n + strspn(p + n, " \t\r");
	return *p == '\0' || *p == '\n';
}

/* Blocks of certificates, whatever prose between them; nothing else in PEM, least of all a key. */
static int check_pem(const char *text, struct err *err)
{
	unsigned blocks = 0;
	bool inside = false;
	for (const char *p = text; *p; p = next_line(p)) {
		if (strncmp(p, "-----", 5) != 0)
			continue;
		if (!is_line(p, inside ? PEM_END : PEM_BEGIN))
			return err_set(err, ERR_INVALID, strstr(p, "PRIVATE KEY") ? "it holds a private key; name a file with certificates only"
										  : "it is not a file of PEM certificates");
		blocks += inside;
		inside = !inside;
	}
	if (inside || blocks == 0)
		return err_set(err, ERR_INVALID, "it has no whole certificate in PEM (%s … %s)", PEM_BEGIN, PEM_END);
	return 0;
}

int request_rule_set_ca(struct network_rule *r, const char *text, size_t len, struct err *err)
{
	if (!r->request || !r->request->ca_file)
		return err_set(err, ERR_INVALID, "the rule has no `ca`");
	if (len > RULE_CA_MAX)
		return err_set(err, ERR_LIMIT, "it is longer than %u KiB", RULE_CA_MAX / 1024);
	if (memchr(text, '\0', len) || !text_is_utf8(text, len))
		return err_set(err, ERR_INVALID, "it is not text; write the certificates as PEM");
	cleanup_free char *own = mem_strndup(text, len);
	if (check_pem(own, err) < 0)
		return -1;
	mem_free(r->request->ca);
	r->request->ca = mem_steal(&own);
	return 0;
}

typedef int take_fn(struct network_rule *r, const char *text, size_t len, struct err *err);

struct loader { policy_read_fn read; void *ctx; };

static int load(const struct loader *l, struct network_rule *r, const char *key, const char *file, size_t max, take_fn *take, struct err *err)
{
	cleanup_free char *text = NULL;
	char shown[SHOWN_MAX];
	size_t len;
	if (!file)
		return 0;
	if (l->read(l->ctx, file, max, &text, &len, err) < 0 || take(r, text, len, err) < 0)
		return err_wrap(err, "`%s: %s` of the rule for %s in line %u", key, text_escape(file, strlen(file), shown, sizeof(shown)), r->text,
			r->line);
	return 0;
}

int policy_load_files(struct policy *p, policy_read_fn read, void *ctx, struct err *err)
{
	const struct loader l = { read, ctx };
	bool any = false;
	for (size_t i = 0; i < p->n_rules; i++) {
		struct network_rule *r = &p->rules[i];
		const struct request_rule *q = r->request;
		if (!q || (!q->ca_file && !q->lock_file))
			continue;
		any = true;
		if (load(&l, r, "ca", q->ca_file, RULE_CA_MAX, request_rule_set_ca, err) < 0 ||
			load(&l, r, "lock", q->lock_file, RULE_LOCK_MAX, request_rule_lock, err) < 0)
			return -1;
	}
	if (!any)
		return 0;
	cleanup_free char *json = policy_to_json(p);
	if (strlen(json) > POLICY_CANONICAL_MAX)
		return err_set(err, ERR_LIMIT, "the policy with its lock files is longer than %u MiB; pin less in one policy",
			POLICY_CANONICAL_MAX / (1024 * 1024));
	policy_seal(p);
	return 0;
}
