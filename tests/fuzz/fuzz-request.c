/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The bytes are a request: one that chooses the policy, then method, target and fields, each line ended by a newline. Whatever they are: the
 * normalised path is a normal one, judging it twice is the same, and nothing outside of what the policy names is allowed.
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "policy/request.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define HEAD "version: 1\nname: t\nowner: o\nnetwork:\n"
#define FIELDS 8

static const char *const policies[] = {
	HEAD "  - { host: h.org, methods: [GET, POST], paths: [\"/repos/acme/**\", \"/a/*/b\", \"/*.js\"], query: { key: \"v*\" }, headers: { x-team: \"r*\" } }\n",
	HEAD "  - { host: h.org, registry: { protocol: npm, base: /npm, packages: [left-pad, \"@acme/*\"] } }\n",
	HEAD "  - { host: h.org, registry: { protocol: pypi, packages: [foo, \"acme-*\"] } }\n",
	HEAD "  - { host: h.org, registry: { protocol: apt, packages: [hello] } }\n",
	HEAD "  - { host: h.org, git: { repositories: [acme/tools, \"open/*\"] } }\n",
	HEAD "  - { host: h.org, paths: [\"/pub/**\"] }\n  - { host: h.org, methods: [GET], paths: [\"/in/**\"], secret: { name: s, header: authorization } }\n",
	HEAD "  - { host: h.org, inspect: true }\n",
};

static void require(bool fact)
{
	if (!fact)
		abort();
}

static struct policy *policy_number(unsigned i)
{
	static struct policy *parsed[ARRAY_LEN(policies)];
	if (!parsed[i])
		require(policy_parse(policies[i], strlen(policies[i]), "fuzz", NULL, &parsed[i], NULL, NULL) == 0);
	return parsed[i];
}

static struct request_field take_line(const char **p, const char *end)
{
	const char *newline = memchr(*p, '\n', (size_t)(end - *p));
	struct request_field line = { .value = *p, .value_len = (size_t)((newline ? newline : end) - *p) };
	*p = newline ? newline + 1 : end;
	return line;
}

static size_t take_fields(const char **p, const char *end, struct request_field fields[FIELDS])
{
	size_t n = 0;
	for (; *p < end && n < FIELDS; n++) {
		fields[n] = take_line(p, end);
		const char *colon = memchr(fields[n].value, ':', fields[n].value_len);
		fields[n].name = fields[n].value;
		fields[n].name_len = colon ? (size_t)(colon - fields[n].value) : fields[n].value_len;
		fields[n].value += fields[n].name_len + (colon ? 1 : 0);
		fields[n].value_len -= fields[n].name_len + (colon ? 1 : 0);
	}
	return n;
}

static void check_normal(const char *target, size_t len)
{
	static struct request_path first, second;
	static char again[2 * REQUEST_PATH_MAX + 4];
	if (request_path_parse(target, len, false, &first) != REASON_NONE) {
		require(first.path[0] == '\0' && first.query[0] == '\0');
		return;
	}
	if (str_eq(first.path, "*"))
		return;
	require(first.path[0] == '/' && !strstr(first.path, "//") && !strstr(first.path, "/../") && !strstr(first.path, "/./"));
	require(!strstr(first.path, "%2F") && !strstr(first.path, "%5C") && !strstr(first.path, "%2E") && !strchr(first.path, ';') && !strchr(first.path, '?'));
	for (const char *p = first.path; *p; p++)
		require((unsigned char)*p > 0x20 && (unsigned char)*p < 0x7f);
	int n = snprintf(again, sizeof(again), "%s%s%s", first.path, first.has_query ? "?" : "", first.query);
	if ((size_t)n <= REQUEST_PATH_MAX) {
		require(request_path_parse(again, (size_t)n, false, &second) == REASON_NONE);
		require(str_eq(first.path, second.path) && str_eq(first.query, second.query));
	}
	require(path_glob_match("/**", first.path));
}

/* What each policy can never let through, said once more in other words. */
static void check_allowed(unsigned which, const struct request_facts *f, const struct request_verdict *v)
{
	const char *path = v->path->path;
	bool post = f->method_len == 4 && memcmp(f->method, "POST", 4) == 0;
	require(path[0] == '/' || str_eq(path, "*"));
	if (which == 0)
		require(str_starts(path, "/repos/acme") || str_starts(path, "/a/") || str_ends(path, ".js"));
	if (which == 1)
		require(!post && (str_starts(path, "/npm/left-pad") || str_starts(path, "/npm/@acme") || str_starts(path, "/npm/%40acme") || str_starts(path, "/npm/-/")));
	if (which == 2)
		require(!post && (str_starts(path, "/simple/") || str_starts(path, "/packages/") || str_starts(path, "/pypi/")));
	if (which == 3)
		require(!post && (str_starts(path, "/dists/") || (str_starts(path, "/pool/") && strstr(path, "/hello_"))));
	if (which == 4)
		require((str_starts(path, "/acme/tools") || str_starts(path, "/open/")) && !strstr(path, "receive-pack") && !strstr(v->path->query, "receive-pack"));
	if (which == 5)
		require(v->verdict.rule == 0 ? str_starts(path, "/pub") : str_starts(path, "/in") && f->tls);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static struct request_path path, path2;
	struct request_field fields[FIELDS];
	struct hostname name;
	if (size < 2 || hostname_parse("h.org", 5, &name, NULL) < 0)
		return 0;
	unsigned which = data[0] % ARRAY_LEN(policies);
	const char *p = (const char *)data + 2, *end = (const char *)data + size;
	struct request_field method = take_line(&p, end), target = take_line(&p, end);
	struct request_facts facts = { .name = &name, .port = 443, .tls = data[1] & 1, .upgrade = data[1] & 2, .method = method.value, .method_len = method.value_len,
		.target = target.value, .target_len = target.value_len, .fields = fields, .n_fields = take_fields(&p, end, fields) };
	struct request_verdict v = { .path = &path }, w = { .path = &path2 };
	policy_decide_request(policy_number(which), &facts, &v);
	policy_decide_request(policy_number(which), &facts, &w);
	require(v.verdict.allow == w.verdict.allow && v.verdict.reason == w.verdict.reason && v.verdict.rule == w.verdict.rule && str_eq(path.path, path2.path));
	if (v.verdict.allow && which < 5)
		require(policy_number(which)->rules[0].request->n_methods == 0 || facts.upgrade || method.value_len <= 4);
	if (v.verdict.allow && !facts.upgrade)
		check_allowed(which, &facts, &v);
	check_normal(target.value, target.value_len);
	return 0;
}
