/* SPDX-License-Identifier: Apache-2.0 */
/* bulkhead policy check | explain: what a policy says, before anything runs under it. */
#include <string.h>

#include "base/mem.h"
#include "base/text.h"
#include "program/bulkhead/command.h"
#include "program/bulkhead/policy-file.h"

struct options {
	const char *policy; /* --policy FILE */
};

static int set_policy(void *ctx, const char *value, struct err *err)
{
	((struct options *)ctx)->policy = value;
	return 0;
}

static const struct option_spec specs[] = {
	{ 'p', "policy", "FILE", set_policy },
	{ 0 },
};

static int usage_error(const char *text)
{
	struct err err;
	err_set(&err, ERR_USAGE, "%s", text);
	return command_fail(&command_policy, &err);
}

/* ---- check ---- */

static json_t *hash_json(const struct policy *p)
{
	char hex[2 * POLICY_HASH_SIZE + 1];
	text_hex(p->hash, sizeof(p->hash), hex);
	return json_string(hex);
}

static json_t *canonical_json(const struct policy *p)
{
	cleanup_free char *text = policy_to_json(p);
	return json_loads(text, 0, NULL);
}

static int print_checked_json(const char *file, const struct policy *p, const char *warning)
{
	json_t *warnings = warning ? json_pack("[s]", warning) : json_array();
	return command_print_json(&command_policy,
		json_pack("{s:b, s:s, s:s, s:s, s:o, s:o, s:o}", "ok", 1, "file", file, "name", p->name, "owner", p->owner,
			"hash", hash_json(p), "warnings", warnings, "policy", canonical_json(p)));
}

static int print_checked(const struct policy *p, const char *warning)
{
	char hex[2 * POLICY_HASH_SIZE + 1];
	text_hex(p->hash, sizeof(p->hash), hex);
	printf("OK %s %s: %zu network rule%s, %zu mount%s, isolation %s or stronger\n", p->name, hex, p->n_rules,
		p->n_rules == 1 ? "" : "s", p->n_mounts, p->n_mounts == 1 ? "" : "s", isolation_level_name(p->minimum));
	if (warning)
		printf("warning: %s\n", warning);
	return command_finish(&command_policy, 0);
}

/* A policy that is refused is the answer "no"; one that can't be read is no answer at all. */
static int report_refused(const struct globals *g, const char *file, const struct err *err)
{
	char text[4 * sizeof(err->text)]; /* may quote a path, which need not be UTF-8 */
	text_escape(err->text, strlen(err->text), text, sizeof(text));
	bool answer = err->code != ERR_SYSTEM && err->code != ERR_NOT_FOUND && err->code != ERR_MEMORY;
	if (g->json && command_print_json(&command_policy, json_pack("{s:b, s:s, s:{s:s, s:s}}", "ok", 0, "file", file, "error",
								   "code", err_code_name(err->code), "text", text)) != 0)
		return EXIT_FAILED;
	command_fail(&command_policy, err);
	return answer ? EXIT_NO : EXIT_FAILED;
}

static int check_file(const struct globals *g, const char *file, const char *shown)
{
	cleanup_free char *warning = NULL;
	struct policy *p;
	struct err err = ERR_INIT;
	if (policy_file_read(file, &p, &warning, &err) < 0)
		return report_refused(g, shown, &err);
	int status = g->json ? print_checked_json(shown, p, warning) : print_checked(p, warning);
	policy_free(p);
	return status;
}

static int check(const struct globals *g, const struct options *o, char **operands, int n)
{
	char shown[1024]; /* a path need not be UTF-8; JSON must */
	if (o->policy || n != 1)
		return usage_error("check needs one file: bulkhead policy check FILE");
	return check_file(g, operands[0], text_escape(operands[0], strlen(operands[0]), shown, sizeof(shown)));
}

/* ---- explain ---- */

struct question {
	char *host;     /* as asked; canonical when it is a name or an address */
	uint16_t port;  /* 0: none given */
};

static uint16_t scheme_port(const char *scheme, size_t len)
{
	static const struct { const char *name; uint16_t port; } schemes[] = {
		{ "https", 443 }, { "http", 80 }, { "wss", 443 }, { "ws", 80 }, { "ssh", 22 }, { "git", 9418 }, { "ftp", 21 },
	};
	for (size_t i = 0; i < ARRAY_LEN(schemes); i++)
		if (strlen(schemes[i].name) == len && strncasecmp(schemes[i].name, scheme, len) == 0)
			return schemes[i].port;
	return 0;
}

/* The part of a URL that says where it leads: behind the last @, up to the first / ? or #. */
static const char *url_authority(const char *s, size_t *ret_len)
{
	size_t n = strcspn(s, "/?#\\");
	const char *at = memrchr(s, '@', n);
	*ret_len = at ? n - (size_t)(at + 1 - s) : n;
	return at ? at + 1 : s;
}

static int parse_question(const char *s, struct question *ret, struct err *err)
{
	const char *scheme_end = strstr(s, "://"), *where = s, *host;
	size_t len = strlen(s), host_len;
	uint16_t port = 0, usual = 0;
	struct ip bare;
	char shown[128];
	if (scheme_end) {
		usual = scheme_port(s, (size_t)(scheme_end - s));
		where = url_authority(scheme_end + 3, &len);
	}
	if (ip_parse(where, len, &bare) == 0) {
		host = where;
		host_len = len;
	} else if (hostport_split(where, len, &host, &host_len, &port) < 0) {
		return err_set(err, ERR_USAGE, "\"%s\" is not HOST, HOST:PORT or a URL",
			text_escape(s, strlen(s), shown, sizeof(shown)));
	}
	ret->host = mem_strndup(host, host_len);
	ret->port = port ? port : usual;
	return 0;
}

static void replace(char **text, const char *with)
{
	mem_free(*text);
	*text = mem_strdup(with);
}

static struct verdict decide(const struct policy *p, struct question *q)
{
	struct hostname name;
	struct ip ip;
	char text[IP_TEXT_MAX];
	if (ip_parse(q->host, strlen(q->host), &ip) == 0) {
		replace(&q->host, ip_format(&ip, text));
		return policy_decide_address(p, &ip, q->port);
	}
	if (hostname_parse(q->host, strlen(q->host), &name, NULL) < 0)
		return (struct verdict){ .allow = false, .reason = REASON_BAD_NAME, .rule = -1 };
	replace(&q->host, name.text);
	return policy_decide_name(p, &name, q->port);
}

static json_t *rule_json(const struct policy *p, int index)
{
	if (index < 0)
		return json_null();
	const struct network_rule *r = &p->rules[index];
	json_t *ports = json_array();
	for (unsigned i = 0; i < r->n_ports; i++)
		json_array_append_new(ports, json_integer(r->ports[i]));
	return json_pack("{s:i, s:i, s:s, s:o, s:b}", "number", index + 1, "line", (int)r->line, "host", r->text, "ports",
		ports, "private", (int)r->private_ok);
}

static int print_verdict_json(const struct policy *p, const struct question *q, const struct verdict *v, const char *text)
{
	char host[512];
	text_escape(q->host, strlen(q->host), host, sizeof(host));
	return command_print_json(
		&command_policy, json_pack("{s:s, s:o, s:b, s:s, s:o, s:{s:s, s:b, s:o}, s:s}", "host", host, "port",
					 q->port ? json_integer(q->port) : json_null(), "allowed", (int)v->allow, "reason",
					 reason_name(v->reason), "rule", rule_json(p, v->rule), "policy", "name", p->name,
					 "builtin", (int)p->builtin, "hash", hash_json(p), "text", text));
}

static int print_verdict(const struct globals *g, const struct policy *p, struct question *q)
{
	struct verdict v = decide(p, q);
	cleanup_free char *text = policy_explain_verdict(p, &v, q->host, q->port);
	int status;
	if (g->json) {
		status = print_verdict_json(p, q, &v, text);
	} else {
		puts(text);
		status = command_finish(&command_policy, 0);
	}
	return status != 0 ? status : v.allow ? 0 : EXIT_NO;
}

static int explain(const struct globals *g, const struct options *o, char **operands, int n)
{
	cleanup_free char *warning = NULL;
	const char *file = n == 2 ? operands[0] : o->policy;
	struct question q = { 0 };
	struct policy *p;
	struct err err = ERR_INIT;
	if (n < 1 || n > 2 || (n == 2 && o->policy))
		return usage_error(
			"explain needs a host, and at most one policy: bulkhead policy explain [--policy FILE] HOST[:PORT]");
	if (policy_file_read(file, &p, &warning, &err) < 0)
		return command_fail(&command_policy, &err);
	if (warning)
		fprintf(stderr, "bulkhead policy: warning: %s\n", warning);
	int status =
		parse_question(operands[n - 1], &q, &err) < 0 ? command_fail(&command_policy, &err) : print_verdict(g, p, &q);
	mem_free(q.host);
	policy_free(p);
	return status;
}

/* ---- */

static int run(struct globals *g, int argc, char **argv)
{
	struct options o = { 0 };
	struct err err = ERR_INIT;
	char **operands;
	int n;
	bool help;
	if (command_options(&command_policy, g, specs, &o, false, argc, argv, &operands, &n, &help, &err) < 0)
		return command_fail(&command_policy, &err);
	if (help)
		return command_finish(&command_policy, 0);
	if (n > 0 && str_eq(operands[0], "check"))
		return check(g, &o, operands + 1, n - 1);
	if (n > 0 && str_eq(operands[0], "explain"))
		return explain(g, &o, operands + 1, n - 1);
	return usage_error(
		"say what to do: bulkhead policy check FILE, or bulkhead policy explain [--policy FILE] HOST[:PORT]");
}

const struct command command_policy = {
	.name = "policy",
	.summary = "check a policy file; explain what it says about a host",
	.usage =
		"usage: bulkhead policy check FILE\n"
		"       bulkhead policy explain [--policy FILE] HOST[:PORT]\n"
		"       bulkhead policy explain FILE HOST[:PORT]\n\n"
		"check reads a policy file and prints OK, its name and its hash, or the first mistake with its line and column.\n"
		"explain says whether a host (a name, an address or a URL) may be reached, which rule says so, what happens after\n"
		"the name was resolved, and how to ask for what is denied. Without a file it speaks of the built-in default.\n\n"
		"  -p, --policy FILE  the policy to explain\n"
		"      --json         print one JSON document\n"
		"  -h, --help         print this\n\n"
		"exit status: check: 0 valid, 1 refused; explain: 0 allowed, 1 denied; 125 Bulkhead failed\n",
	.run = run,
};
