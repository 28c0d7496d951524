/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The bytes are taken as a policy file, as the canonical JSON, and as each kind of lock file and authority. What is accepted must survive
 * the way to JSON and back unchanged, and its decisions must agree with themselves.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "policy/request.h"

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

/* A secret leaves over TLS only, whatever the rule; what is forwarded is a path or nothing. */
static void check_requests(const struct policy *p)
{
	static const char *const targets[] = { "/", "/a/b?c=d", "/@a%2fb", "/a/-/a-1.0.0.tgz", "/a/b.git/info/refs?service=git-upload-pack", "/a/../b", "*" };
	struct hostname name;
	struct request_path path;
	struct request_verdict v = { .path = &path };
	require(hostname_parse("example.com", 11, &name, NULL) == 0);
	for (size_t i = 0; i < ARRAY_LEN(targets); i++) {
		struct request_facts facts = { .name = &name, .port = 443, .method = "GET", .method_len = 3, .target = targets[i], .target_len = strlen(targets[i]) };
		policy_decide_request(p, &facts, &v);
		const struct request_rule *q = v.verdict.allow ? p->rules[v.verdict.rule].request : NULL;
		require(!q || !q->secret);
		require(v.verdict.allow == (path.path[0] != '\0'));
		require(v.n_pins == 0 || (q && q->lock_file));
		require(v.verdict.allow || policy_needs_inspection(p, &name, NULL, 443) || !policy_decide_name(p, &name, 443).allow);
		mem_free(policy_explain_request(p, &v, "example.com", 443, "GET", targets[i]));
	}
	for (size_t i = 0; i < p->n_rules && i < 16; i++)
		mem_free(policy_describe_rule(&p->rules[i]));
}

static void check_round_trip(const struct policy *p)
{
	char *text = policy_to_json(p);
	struct policy *q = policy_from_json(text, strlen(text), NULL);
	require(q && memcmp(p->hash, q->hash, sizeof(p->hash)) == 0);
	mem_free(text);
	policy_free(q);
}

struct input { const uint8_t *data; size_t size; };

static int read_bytes(void *ctx, const char *path, size_t max, char **ret_text, size_t *ret_len, struct err *err)
{
	const struct input *input = ctx;
	if (input->size > max)
		return err_set(err, ERR_LIMIT, "too long");
	*ret_text = mem_alloc(input->size + 1);
	if (input->size > 0)
		memcpy(*ret_text, input->data, input->size);
	*ret_len = input->size;
	return 0;
}

static void try_files(const uint8_t *data, size_t size)
{
	static const char *const rules[] = { "registry: { protocol: npm, lock: x }", "registry: { protocol: pypi, lock: x }", "registry: { protocol: apt, base: /d, lock: x }",
		"ca: x" };
	struct input input = { data, size };
	for (size_t i = 0; i < ARRAY_LEN(rules); i++) {
		char *text = mem_printf("version: 1\nname: t\nowner: o\nnetwork:\n  - { host: example.com, %s }\n", rules[i]);
		struct policy *p = NULL;
		require(policy_parse(text, strlen(text), "fuzz", NULL, &p, NULL, NULL) == 0);
		if (policy_load_files(p, read_bytes, &input, NULL) == 0) {
			check_round_trip(p);
			check_requests(p);
		}
		policy_free(p);
		mem_free(text);
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct policy *p = NULL;
	char *warning = NULL;
	struct err err = ERR_INIT;
	if (policy_parse((const char *)data, size, "fuzz", "2026-11-30", &p, &warning, &err) == 0) {
		check_round_trip(p);
		check_decisions(p);
		check_requests(p);
		policy_free(p);
		mem_free(warning);
	} else {
		require(err.code != ERR_NONE && err.text[0] != '\0');
	}
	p = policy_from_json((const char *)data, size, &err);
	if (p) {
		check_round_trip(p);
		check_requests(p);
	}
	policy_free(p);
	try_files(data, size);
	return 0;
}
