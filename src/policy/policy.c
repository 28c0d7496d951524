/* SPDX-License-Identifier: Apache-2.0 */
/* The model: the built-in default, its end, and what the command line adds. */
#include "policy/policy.h"

#include <string.h>

#include "base/mem.h"
#include "base/text.h"
#include "policy/request-rule.h"
#include "policy/rule.h"
#include "policy/target.h"

#define GIB (1024ULL * 1024 * 1024)

struct policy *policy_builtin(void)
{
	struct policy *p = mem_alloc(sizeof(*p));
	p->name = mem_strdup("default");
	p->template_name = mem_strdup("host");
	p->version = 1;
	p->minimum = ISOLATION_CONTAINER;
	p->record_output = true;
	p->builtin = true;
	p->limits = (struct policy_limits){
		.cpus_milli = 2000,
		.memory = 2 * GIB,
		.processes = 512,
		.disk = GIB,
		.open_files = 4096,
		.output = GIB,
		.egress_requests = 10000,
		.egress_bytes = GIB,
		.connections = 256,
		.timeout_ns = 15 * 60 * NS_PER_S,
		.idle_ns = POLICY_UNLIMITED,
	};
	policy_seal(p);
	return p;
}

struct policy *policy_free(struct policy *p)
{
	if (!p)
		return NULL;
	for (size_t i = 0; i < p->n_mounts; i++) {
		mem_free(p->mounts[i].source);
		mem_free(p->mounts[i].target);
	}
	for (size_t i = 0; i < p->n_rules; i++)
		rule_done(&p->rules[i]);
	mem_free(p->mounts);
	mem_free(p->rules);
	mem_free(p->name);
	mem_free(p->owner);
	mem_free(p->review_by);
	mem_free(p->region);
	mem_free(p->template_name);
	mem_free(p->budget);
	return mem_free(p);
}

static int check_source(const char *source, struct err *err)
{
	size_t n = strlen(source);
	if (n == 0 || n >= TARGET_MAX)
		return err_set(err, ERR_INVALID, "the source of a mount must be a path of 1 to %u bytes", TARGET_MAX - 1);
	if (!text_is_utf8(source, n)) {
		char shown[200];
		return err_set(err, ERR_UNSUPPORTED,
			"the path \"%s\" is not UTF-8, and the record can only hold such paths; rename the folder",
			text_escape(source, n, shown, sizeof(shown)));
	}
	return 0;
}

/* Where `target` goes so that parents stand before their children: in front of the first mount that lies below it. */
static size_t mount_place(const struct policy *p, const char *target)
{
	size_t i = 0;
	while (i < p->n_mounts && !path_is_within(p->mounts[i].target, target))
		i++;
	return i;
}

int policy_add_mount(struct policy *p, const char *source, const char *target, enum mount_mode mode, struct err *err)
{
	if (check_source(source, err) < 0 || target_check(target, err) < 0)
		return -1;
	if (!text_is_utf8(target, strlen(target)))
		return err_set(err, ERR_UNSUPPORTED, "the target of a mount must be UTF-8; choose another name");
	if ((unsigned)mode >= MOUNT_MODE_MAX)
		return err_set(err, ERR_INVALID, "the mode of a mount must be copy, ro or rw");
	if (p->n_mounts >= POLICY_MOUNTS_MAX)
		return err_set(err, ERR_LIMIT, "there are more than %u mounts; mount a folder above several of them instead",
			POLICY_MOUNTS_MAX);
	for (size_t i = 0; i < p->n_mounts; i++)
		if (str_eq(p->mounts[i].target, target)) {
			char shown[200];
			return err_set(err, ERR_INVALID, "two mounts have the target \"%s\"; give each its own",
				text_escape(target, strlen(target), shown, sizeof(shown)));
		}
	size_t at = mount_place(p, target);
	p->mounts = mem_grow_array(p->mounts, p->n_mounts + 1, sizeof(*p->mounts));
	memmove(&p->mounts[at + 1], &p->mounts[at], (p->n_mounts - at) * sizeof(*p->mounts));
	p->mounts[at] = (struct policy_mount){ .source = mem_strdup(source), .target = mem_strdup(target), .mode = mode };
	p->n_mounts++;
	return 0;
}

int policy_add_allow(struct policy *p, const char *spec, struct err *err)
{
	struct network_rule rule;
	uint16_t port;
	if (rule_parse_spec(spec, &rule, &port, err) < 0)
		return -1;
	rule.ports[0] = port ? port : RULE_PORT_DEFAULT;
	rule.n_ports = 1;
	return policy_add_rule(p, &rule, err);
}

/* Where a rule for these requests has to stand to be asked at all: in front of the first that lets everything to the host through. */
static size_t secret_place(const struct policy *p, const struct network_rule *rule)
{
	size_t i = 0;
	while (i < p->n_rules && (p->rules[i].request || !rule_opens(&p->rules[i], &rule->name, NULL, RULE_PORT_DEFAULT)))
		i++;
	return i;
}

static int secret_rule(const char *spec, struct network_rule *rule, struct err *err)
{
	const char *at = strchr(spec, '@'), *colon = at ? strchr(at, ':') : NULL;
	if (!at || at == spec)
		return err_set(err, ERR_INVALID, "a secret is given as NAME@HOST or NAME@HOST:HEADER");
	size_t host_len = colon ? (size_t)(colon - at - 1) : strlen(at + 1);
	if (rule_parse_host(at + 1, host_len, rule, err) < 0)
		return -1;
	rule->ports[rule->n_ports++] = RULE_PORT_DEFAULT;
	if (colon && colon[1 + strspn(colon + 1, "0123456789")] == '\0')
		return err_set(err, ERR_INVALID, "behind the host of a secret stands a header, not a port; for another port write a rule in a policy file");
	cleanup_free char *name = mem_strndup(spec, (size_t)(at - spec));
	struct secret_binding *s = rule_secret(rule);
	return secret_set_name(s, name, err) < 0 || secret_set_header(s, colon ? colon + 1 : "authorization", err) < 0 ? -1 : 0;
}

int policy_add_secret(struct policy *p, const char *spec, struct err *err)
{
	struct network_rule rule = { 0 };
	if (secret_rule(spec, &rule, err) < 0) {
		rule_done(&rule);
		return -1;
	}
	size_t at = secret_place(p, &rule);
	if (policy_add_rule(p, &rule, err) < 0)
		return -1;
	rule = p->rules[p->n_rules - 1];
	memmove(&p->rules[at + 1], &p->rules[at], (p->n_rules - 1 - at) * sizeof(*p->rules));
	p->rules[at] = rule;
	return 0;
}
