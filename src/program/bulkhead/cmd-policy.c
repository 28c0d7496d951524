/* SPDX-License-Identifier: Apache-2.0 */
/* bulkhead policy check | explain: what a policy says, before anything runs under it. */
#include <string.h>

#include "base/mem.h"
#include "base/text.h"
#include "policy/request.h"
#include "program/bulkhead/command.h"
#include "program/bulkhead/policy-file.h"
#include "program/bulkhead/policy-set.h"

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

/* Plain tunnels need no line of their own. */
static void print_rule(const struct network_rule *r)
{
	cleanup_free char *text = policy_describe_rule(r);
	if (text[0] != '\0')
		printf("line %u: %s: %s\n", r->line, r->text, text);
}

static int print_checked(const struct policy *p, const char *warning)
{
	char hex[2 * POLICY_HASH_SIZE + 1];
	text_hex(p->hash, sizeof(p->hash), hex);
	printf("OK %s %s: %zu network rule%s, %zu mount%s, isolation %s or stronger\n", p->name, hex, p->n_rules,
		p->n_rules == 1 ? "" : "s", p->n_mounts, p->n_mounts == 1 ? "" : "s", isolation_level_name(p->minimum));
	for (size_t i = 0; i < p->n_rules; i++)
		print_rule(&p->rules[i]);
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
	const char *method, *path; /* NULL: only the host is asked about */
	struct request_path forward; /* of an allowed request */
	bool inspected;
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
	if (scheme_end && !ret->path) {
		const char *path = scheme_end + 3 + strcspn(scheme_end + 3, "/?#\\");
		ret->path = *path == '/' ? path : NULL;
	}
	return 0;
}

static void replace(char **text, const char *with)
{
	mem_free(*text);
	*text = mem_strdup(with);
}

struct place { struct hostname name; struct ip ip; bool is_name; };

static struct verdict decide_place(const struct policy *p, struct question *q, struct place *ret)
{
	char text[IP_TEXT_MAX];
	if (ip_parse(q->host, strlen(q->host), &ret->ip) == 0) {
		replace(&q->host, ip_format(&ret->ip, text));
		return policy_decide_address(p, &ret->ip, q->port);
	}
	if (hostname_parse(q->host, strlen(q->host), &ret->name, NULL) < 0)
		return (struct verdict){ .allow = false, .reason = REASON_BAD_NAME, .rule = -1 };
	ret->is_name = true;
	replace(&q->host, ret->name.text);
	return policy_decide_name(p, &ret->name, q->port);
}

/* Without headers: a command line has none to show. */
static void decide_request(const struct policy *p, struct question *q, const struct place *place, struct request_verdict *ret)
{
	struct request_facts facts = {
		.name = place->is_name ? &place->name : NULL,
		.ip = &place->ip,
		.port = q->port,
		.tls = q->port != 80,
		.method = q->method,
		.method_len = strlen(q->method),
		.target = q->path,
		.target_len = strlen(q->path),
	};
	policy_decide_request(p, &facts, ret);
}

/* The verdict, and *ret_text. Where no rule looks into requests, that is said instead. */
static struct request_verdict decide(const struct policy *p, struct question *q, char **ret_text)
{
	bool asked = q->method || q->path;
	struct place place = { 0 };
	struct request_verdict v = { .path = &q->forward };
	if (asked && !q->port)
		q->port = 443;
	v.verdict = decide_place(p, q, &place);
	q->inspected = v.verdict.allow && policy_needs_inspection(p, place.is_name ? &place.name : NULL, &place.ip, q->port ? q->port : 443);
	if (!asked || !q->inspected) {
		cleanup_free char *text = policy_explain_verdict(p, &v.verdict, q->host, q->port);
		*ret_text = mem_printf("%s%s", text, asked && v.verdict.allow ? "\nnot inspected: a tunnel, in which every request is allowed and none is seen." : "");
		return v;
	}
	q->method = q->method ? q->method : "GET";
	q->path = q->path ? q->path : "/";
	decide_request(p, q, &place, &v);
	*ret_text = policy_explain_request(p, &v, q->host, q->port, q->method, q->path);
	return v;
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

/* From the command line, so not of necessity UTF-8. */
static json_t *word_json(const char *text)
{
	char shown[1024];
	return text ? json_string(text_escape(text, strlen(text), shown, sizeof(shown))) : json_null();
}

static json_t *secret_json(const struct policy *p, const struct request_verdict *v)
{
	const struct request_rule *r = v->verdict.allow && v->verdict.rule >= 0 ? p->rules[v->verdict.rule].request : NULL;
	return r && r->secret ? json_string(r->secret->name) : json_null();
}

static int print_verdict_json(const struct policy *p, const struct question *q, const struct request_verdict *v, const char *text)
{
	json_t *o = json_pack("{s:o, s:o, s:b, s:s, s:o, s:{s:s, s:b, s:o}, s:s}", "host", word_json(q->host), "port",
		q->port ? json_integer(q->port) : json_null(), "allowed", (int)v->verdict.allow, "reason", reason_name(v->verdict.reason), "rule",
		rule_json(p, v->verdict.rule), "policy", "name", p->name, "builtin", (int)p->builtin, "hash", hash_json(p), "text", text);
	json_object_set_new(o, "inspected", json_boolean(q->inspected));
	json_object_set_new(o, "method", word_json(q->inspected ? q->method : NULL));
	json_object_set_new(o, "path", word_json(q->inspected && q->method ? q->path : NULL));
	json_object_set_new(o, "secret", secret_json(p, v));
	return command_print_json(&command_policy, o);
}

static int print_verdict(const struct globals *g, const struct policy *p, struct question *q)
{
	cleanup_free char *text = NULL;
	struct request_verdict v = decide(p, q, &text);
	int status;
	if (g->json) {
		status = print_verdict_json(p, q, &v, text);
	} else {
		puts(text);
		status = command_finish(&command_policy, 0);
	}
	return status != 0 ? status : v.verdict.allow ? 0 : EXIT_NO;
}

static bool is_path(const char *word)
{
	return word[0] == '/' || str_eq(word, "*");
}

static bool is_method(const char *word)
{
	return word[0] != '\0' && word[strspn(word, "ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_")] == '\0';
}

/* [FILE] HOST [METHOD] [PATH]: without --policy, the first of several is the file. */
static int take_operands(const struct options *o, char **operands, int n, const char **ret_file, const char **ret_host, struct question *q)
{
	int i = 0;
	*ret_file = o->policy ? o->policy : n > 1 ? operands[i++] : NULL;
	if (i >= n)
		return -1;
	*ret_host = operands[i++];
	if (i < n && is_method(operands[i]))
		q->method = operands[i++];
	if (i < n && is_path(operands[i]))
		q->path = operands[i++];
	return i == n ? 0 : -1;
}

static int explain(const struct globals *g, const struct options *o, char **operands, int n)
{
	cleanup_free char *warning = NULL;
	const char *file, *host;
	struct question q = { 0 };
	struct policy *p;
	struct err err = ERR_INIT;
	if (take_operands(o, operands, n, &file, &host, &q) < 0)
		return usage_error("explain needs a host, and may have a policy in front, a method (GET) and a path (/...) behind: "
			"bulkhead policy explain [--policy FILE] HOST[:PORT] [METHOD] [PATH]");
	if (policy_file_read(file, &p, &warning, &err) < 0)
		return command_fail(&command_policy, &err);
	if (warning)
		fprintf(stderr, "bulkhead policy: warning: %s\n", warning);
	int status = parse_question(host, &q, &err) < 0 ? command_fail(&command_policy, &err) : print_verdict(g, p, &q);
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
#ifdef HAVE_POLICY_SET
	if (n == 3 && !o.policy && str_eq(operands[0], "set"))
		return policy_set(g, operands[1], operands[2]);
#endif
	return usage_error(
		"say what to do: bulkhead policy check FILE, bulkhead policy set ID FILE, or bulkhead policy explain [--policy FILE] HOST[:PORT] [METHOD] [PATH]");
}

const struct command command_policy = {
	.name = "policy",
	.summary = "check a policy file; explain what it says; change that of a running sandbox",
	.usage =
		"usage: bulkhead policy check FILE\n"
		"       bulkhead policy explain [--policy FILE] HOST[:PORT] [METHOD] [PATH]\n"
		"       bulkhead policy explain FILE HOST[:PORT] [METHOD] [PATH]\n"
		"       bulkhead policy set ID FILE\n\n"
		"check reads a policy file and the files that it names, and prints OK, its name and its hash and what its rules look at, or\n"
		"the first mistake with its line and column.\n"
		"explain says whether a host (a name, an address or a URL) may be reached, which rule says so, what happens after\n"
		"the name was resolved, and how to ask for what is denied; with a method (else GET) or a path (else /) whether that request,\n"
		"without further headers, is allowed, and which secret it gets. Without a file it speaks of the built-in default.\n"
		"set gives a running sandbox another policy: connections and requests that it doesn't allow are cut at once. `network`,\n"
		"`detect` and the budgets of egress can change, and nothing else; what the file leaves out of the rest stays as it is.\n\n"
		"  -p, --policy FILE  the policy to explain\n"
		"      --json         print one JSON document\n"
		"  -h, --help         print this\n\n"
		"exit status: check: 0 valid, 1 refused; explain: 0 allowed, 1 denied; set: 0 it holds, 1 refused; 125 Bulkhead failed\n",
	.run = run,
};
