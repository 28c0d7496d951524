/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The bytes are taken as a policy file and as the canonical JSON. What is accepted must survive the way to JSON and back unchanged, and
 * its decisions must agree with themselves.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "policy/policy.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require(bool fact)
{
	if (!fact)
		abort();
}

static void check_decisions(const struct policy *p)
{
	static const char *const names[] = { "example.com", "a.example.com", "evilexample.com", "localhost" };
	for (size_t i = 0; i < ARRAY_LEN(names); i++) {
		struct hostname name;
		uint16_t ports[8];
		require(hostname_parse(names[i], strlen(names[i]), &name, NULL) == 0);
		struct verdict v = policy_decide_name(p, &name, 0);
		require(v.allow == (policy_ports_of(p, &name, ports, 8) > 0));
		require(!v.allow || (v.rule >= 0 && (size_t)v.rule < p->n_rules && p->rules[v.rule].n_ports > 0));
		mem_free(policy_explain_verdict(p, &v, names[i], 443));
	}
	/* No rule may open these, whatever it says. */
	static const char *const closed[] = { "0.0.0.0", "255.255.255.255", "224.0.0.1", "::", "ff02::1", "2002:7f00:1::1" };
	for (size_t i = 0; i < ARRAY_LEN(closed); i++) {
		struct ip ip;
		require(ip_parse(closed[i], strlen(closed[i]), &ip) == 0);
		require(!policy_decide_address(p, &ip, 0).allow);
		for (size_t r = 0; r < p->n_rules && r < 16; r++)
			require(!policy_decide_dial(p, (int)r, &ip, NULL, 0).allow);
	}
}

static void check_round_trip(const struct policy *p)
{
	char *text = policy_to_json(p);
	struct policy *q = policy_from_json(text, strlen(text), NULL);
	require(q && memcmp(p->hash, q->hash, sizeof(p->hash)) == 0);
	mem_free(text);
	policy_free(q);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct policy *p = NULL;
	char *warning = NULL;
	struct err err = ERR_INIT;
	if (policy_parse((const char *)data, size, "fuzz", "2026-11-30", &p, &warning, &err) == 0) {
		check_round_trip(p);
		check_decisions(p);
		policy_free(p);
		mem_free(warning);
	} else {
		require(err.code != ERR_NONE && err.text[0] != '\0');
	}
	p = policy_from_json((const char *)data, size, &err);
	if (p)
		check_round_trip(p);
	policy_free(p);
	return 0;
}
