/* SPDX-License-Identifier: Apache-2.0 */
/* What of a new policy a running sandbox takes. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "base/mem.h"
#include "sandbox/merge.h"

#define HEAD "version: 1\nname: %s\nowner: o@example.com\nreview_by: 2099-01-01\n"

static struct policy *parse(const char *name, const char *rest)
{
	char text[4096], *warning = NULL;
	struct policy *p = NULL;
	struct err err = ERR_INIT;
	snprintf(text, sizeof(text), HEAD "%s", name, rest);
	if (policy_parse(text, strlen(text), "test.yaml", "2026-11-30", &p, &warning, &err) < 0)
		fail_msg("%s\n%s", err.text, text);
	mem_free(warning);
	policy_seal(p);
	return p;
}

static const char running_text[] =
	"network:\n  - { host: a.example }\n  - { host: b.example }\n"
	"limits: { memory: 512MiB, processes: 64, egress_bytes: 1MiB }\nlifetime: { timeout: 5m }\n"
	"files: [ { source: ., target: /workspace, mode: copy }, { source: /data, target: /data, mode: ro } ]\nrecord: { output: false }\n";

static void network_detect_and_budgets_are_taken(void **state)
{
	struct policy *running = parse("before", running_text);
	struct policy *wanted = parse("after", "network: [ { host: b.example, ports: [8443] } ]\nlimits: { egress_bytes: 2MiB, connections: 3 }\ndetect: { canary: kill }\n");
	struct err err = ERR_INIT;
	struct policy *next = policy_merge_running(running, wanted, &err);
	if (!next)
		fail_msg("%s", err.text);
	assert_string_equal(next->name, "after");
	assert_int_equal(next->n_rules, 1);
	assert_int_equal(next->rules[0].ports[0], 8443);
	assert_int_equal(next->canary, CANARY_KILL);
	assert_int_equal(next->limits.egress_bytes, 2u << 20);
	assert_int_equal(next->limits.connections, 3);
	/* what the file leaves out stays */
	assert_int_equal(next->limits.memory, 512u << 20);
	assert_int_equal(next->limits.processes, 64);
	assert_int_equal(next->n_mounts, 2);
	assert_false(next->record_output);
	/* and it is sealed as a policy of its own, that the gate can read */
	assert_memory_not_equal(next->hash, running->hash, sizeof(next->hash));
	char *json = policy_to_json(next);
	struct policy *back = policy_from_json(json, strlen(json), &err);
	assert_non_null(back);
	assert_memory_equal(back->hash, next->hash, sizeof(next->hash));
	mem_free(json);
	policy_free(back);
	policy_free(next);
	policy_free(wanted);
	policy_free(running);
}

static void the_same_policy_may_be_given_again(void **state)
{
	struct policy *running = parse("same", running_text), *wanted = parse("same", running_text);
	struct err err = ERR_INIT;
	struct policy *next = policy_merge_running(running, wanted, &err);
	assert_non_null(next);
	assert_memory_equal(next->hash, running->hash, sizeof(next->hash));
	policy_free(next);
	policy_free(wanted);
	policy_free(running);
}

static void other_keys_are_refused_by_name(void **state)
{
	static const struct { const char *text, *key; } cases[] = {
		{ "limits: { memory: 1GiB }\n", "`limits.memory`" },
		{ "limits: { processes: 65 }\n", "`limits.processes`" },
		{ "limits: { disk: 2GiB }\n", "`limits.disk`" },
		{ "lifetime: { timeout: 6m }\n", "`lifetime.timeout`" },
		{ "lifetime: { idle: 1m }\n", "`lifetime.idle`" },
		{ "isolation: { minimum: gvisor }\n", "`isolation.minimum`" },
		{ "files: [ { source: ., target: /workspace, mode: rw } ]\n", "`files`" },
		{ "files: [ { source: /elsewhere, target: /data, mode: ro } ]\n", "`files`" },
	};
	struct policy *running = parse("before", running_text);
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct policy *wanted = parse("after", cases[i].text);
		struct err err = ERR_INIT;
		assert_null(policy_merge_running(running, wanted, &err));
		assert_int_equal(err.code, ERR_UNSUPPORTED);
		if (!strstr(err.text, cases[i].key))
			fail_msg("%s is not named: %s", cases[i].key, err.text);
		policy_free(wanted);
	}
	policy_free(running);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(network_detect_and_budgets_are_taken),
		cmocka_unit_test(the_same_policy_may_be_given_again),
		cmocka_unit_test(other_keys_are_refused_by_name),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
