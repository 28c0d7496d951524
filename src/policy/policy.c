/* SPDX-License-Identifier: Apache-2.0 */
/* The model: the built-in default, its end, and what the command line adds. */
#include "policy/policy.h"

#include <string.h>

#include "base/mem.h"
#include "base/text.h"
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
		mem_free(p->rules[i].text);
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
