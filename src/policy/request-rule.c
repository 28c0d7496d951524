/* SPDX-License-Identifier: Apache-2.0 */
#include "policy/request-rule.h"

#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/text.h"
#include "policy/path.h"
#include "policy/rule.h"

#define METHOD_MAX 32u
#define FIELD_MAX 256u
#define PATTERN_MAX 1024u
#define PACKAGE_MAX 214u
#define VARIABLE_MAX 128u
#define SHOWN_MAX 128
#define UPPER "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
#define LOWER "abcdefghijklmnopqrstuvwxyz"
#define DIGITS "0123456789"

/* ---- pieces ---- */

struct request_rule *rule_request(struct network_rule *r)
{
	if (!r->request) {
		r->request = mem_alloc(sizeof(*r->request));
		r->request->registry_base = mem_strdup("");
	}
	return r->request;
}

struct git_rule *rule_git(struct network_rule *r)
{
	struct request_rule *q = rule_request(r);
	if (!q->git)
		q->git = mem_alloc(sizeof(*q->git));
	return q->git;
}

struct secret_binding *rule_secret(struct network_rule *r)
{
	struct request_rule *q = rule_request(r);
	if (!q->secret)
		q->secret = mem_alloc(sizeof(*q->secret));
	return q->secret;
}

static void free_texts(char **texts, size_t n)
{
	for (size_t i = 0; i < n; i++)
		mem_free(texts[i]);
	mem_free(texts);
}

static void free_fields(struct field_rule *fields, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		mem_free(fields[i].name);
		mem_free(fields[i].pattern);
	}
	mem_free(fields);
}

static void free_secret(struct secret_binding *s)
{
	if (!s)
		return;
	mem_free(s->name);
	mem_free(s->field);
	mem_free(s->value);
	mem_free(s->variable);
	mem_free(s);
}

struct request_rule *request_rule_free(struct request_rule *q)
{
	if (!q)
		return NULL;
	free_texts(q->methods, q->n_methods);
	free_texts(q->paths, q->n_paths);
	free_texts(q->packages, q->n_packages);
	free_fields(q->query, q->n_query);
	free_fields(q->headers, q->n_headers);
	for (size_t i = 0; i < q->n_pins; i++)
		mem_free(q->pins[i].path);
	mem_free(q->pins);
	if (q->git)
		free_texts(q->git->repositories, q->git->n_repositories);
	mem_free(q->git);
	free_secret(q->secret);
	mem_free(q->registry_base);
	mem_free(q->lock_file);
	mem_free(q->ca_file);
	mem_free(q->ca);
	return mem_free(q);
}

void rule_done(struct network_rule *r)
{
	r->text = mem_free(r->text);
	r->request = request_rule_free(r->request);
	r->limits = mem_free(r->limits);
}

/* Lists grow by doubling: a lock file may bring many. */
static void *grown(void *list, size_t n, size_t size)
{
	return (n & (n - 1)) == 0 ? mem_grow_array(list, n ? 2 * n : 1, size) : list;
}

static void add_text(char ***list, size_t *n, const char *text)
{
	*list = grown(*list, *n, sizeof(**list));
	(*list)[(*n)++] = mem_strdup(text);
}

static void add_field(struct field_rule **list, size_t *n, const char *name, const char *pattern)
{
	*list = grown(*list, *n, sizeof(**list));
	(*list)[(*n)++] = (struct field_rule){ .name = mem_strdup(name), .pattern = mem_strdup(pattern) };
}

static const char *show(const char *s, char out[SHOWN_MAX])
{
	return text_escape(s, strlen(s), out, SHOWN_MAX);
}

static bool made_of(const char *s, const char *set)
{
	return s[0] != '\0' && strspn(s, set) == strlen(s);
}

static bool is_visible(const char *s, size_t max)
{
	size_t n = strlen(s);
	for (size_t i = 0; i < n; i++)
		if ((unsigned char)s[i] < 0x20 || (unsigned char)s[i] >= 0x7f)
			return false;
	return n > 0 && n <= max && s[0] != ' ' && s[n - 1] != ' ';
}

static void lower(char *s)
{
	for (; *s; s++)
		if (*s >= 'A' && *s <= 'Z')
			*s = (char)(*s - 'A' + 'a');
}

static int too_many(struct err *err, const char *what, size_t max)
{
	return err_set(err, ERR_LIMIT, "the rule has more than %zu %s; use patterns, or another rule", max, what);
}

/* ---- verbs, paths, fields ---- */

int request_add_method(struct request_rule *q, const char *method, struct err *err)
{
	char shown[SHOWN_MAX];
	if (!made_of(method, UPPER DIGITS "-_") || strlen(method) > METHOD_MAX)
		return err_set(err, ERR_INVALID, "\"%s\" is not a method; write it in capitals, as in [GET, POST]", show(method, shown));
	if (str_eq(method, "CONNECT"))
		return err_set(err, ERR_INVALID, "CONNECT opens tunnels and can't be a method of a rule; a WebSocket counts as GET");
	for (size_t i = 0; i < q->n_methods; i++)
		if (str_eq(q->methods[i], method))
			return err_set(err, ERR_INVALID, "the method %s is listed twice; remove one", method);
	if (q->n_methods >= RULE_METHODS_MAX)
		return too_many(err, "methods", RULE_METHODS_MAX);
	add_text(&q->methods, &q->n_methods, method);
	return 0;
}

int request_add_path(struct request_rule *q, const char *pattern, struct err *err)
{
	if (path_glob_check(pattern, err) < 0)
		return -1;
	if (q->n_paths >= RULE_PATHS_MAX)
		return too_many(err, "paths", RULE_PATHS_MAX);
	add_text(&q->paths, &q->n_paths, pattern);
	return 0;
}

static int check_pattern(const char *pattern, struct err *err)
{
	if (strlen(pattern) > PATTERN_MAX)
		return err_set(err, ERR_INVALID, "a pattern may have at most %u bytes", PATTERN_MAX);
	return 0;
}

static int check_query_key(const char *key, struct err *err)
{
	char shown[SHOWN_MAX];
	if (!made_of(key, UPPER LOWER DIGITS "-_.~:$@") || strlen(key) > FIELD_MAX)
		return err_set(err, ERR_INVALID, "\"%s\" is not a key of a query that can be judged; use letters, digits and - _ . ~ : $ @",
			show(key, shown));
	return 0;
}

int request_add_query(struct request_rule *q, const char *key, const char *pattern, struct err *err)
{
	if (check_query_key(key, err) < 0 || check_pattern(pattern, err) < 0)
		return -1;
	for (size_t i = 0; i < q->n_query; i++)
		if (strcasecmp(q->query[i].name, key) == 0)
			return err_set(err, ERR_INVALID, "the key `%s` is listed twice (in `query`, case is no difference); remove one", key);
	if (q->n_query >= RULE_FIELDS_MAX)
		return too_many(err, "keys in `query`", RULE_FIELDS_MAX);
	add_field(&q->query, &q->n_query, key, pattern);
	return 0;
}

/* Fields that belong to the connection or to the framing: the gate writes them itself, so no rule can speak of them. */
static bool is_framing_field(const char *name)
{
	static const char *const own[] = { "host", "connection", "keep-alive", "proxy-connection", "te", "trailer", "transfer-encoding", "upgrade",
		"content-length", "expect", "proxy-authorization", "proxy-authenticate" };
	for (size_t i = 0; i < ARRAY_LEN(own); i++)
		if (str_eq(own[i], name))
			return true;
	return false;
}

/* A fresh lower-case copy, or NULL. */
static char *header_name(const char *name, struct err *err)
{
	char shown[SHOWN_MAX];
	if (!made_of(name, UPPER LOWER DIGITS "-!#$%&'*+.^_`|~") || strlen(name) > FIELD_MAX) {
		err_set(err, ERR_INVALID, "\"%s\" is not the name of a header", show(name, shown));
		return NULL;
	}
	char *copy = mem_strdup(name);
	lower(copy);
	if (!is_framing_field(copy))
		return copy;
	err_set(err, ERR_INVALID, "the header `%s` is written by Bulkhead itself, so a rule can't speak of it", copy);
	return mem_free(copy);
}

int request_add_header(struct request_rule *q, const char *name, const char *pattern, struct err *err)
{
	cleanup_free char *own = header_name(name, err);
	if (!own || check_pattern(pattern, err) < 0)
		return -1;
	for (size_t i = 0; i < q->n_headers; i++)
		if (str_eq(q->headers[i].name, own))
			return err_set(err, ERR_INVALID, "the header `%s` is listed twice; remove one", own);
	if (q->n_headers >= RULE_FIELDS_MAX)
		return too_many(err, "headers", RULE_FIELDS_MAX);
	add_field(&q->headers, &q->n_headers, own, pattern);
	return 0;
}

/* ---- registries ---- */

static const char *const kinds[] = { [REGISTRY_NONE] = "none", [REGISTRY_NPM] = "npm", [REGISTRY_PYPI] = "pypi", [REGISTRY_APT] = "apt" };
_Static_assert(ARRAY_LEN(kinds) == REGISTRY_KINDS, "each kind has a name");

const char *registry_kind_name(enum registry_kind kind)
{
	return (unsigned)kind < REGISTRY_KINDS ? kinds[kind] : "unknown";
}

int request_set_registry(struct request_rule *q, const char *protocol, struct err *err)
{
	char shown[SHOWN_MAX];
	for (unsigned i = REGISTRY_NONE + 1; i < REGISTRY_KINDS; i++)
		if (str_eq(kinds[i], protocol)) {
			q->registry = (enum registry_kind)i;
			return 0;
		}
	return err_set(err, ERR_INVALID, "the `protocol` of a registry must be npm, pypi or apt, and is \"%s\"", show(protocol, shown));
}

int request_set_base(struct request_rule *q, const char *base, struct err *err)
{
	size_t n = strlen(base);
	if (n == 0 || base[n - 1] == '/' || strchr(base, '*') || strchr(base, '%') || path_glob_check(base, err) < 0)
		return err_set(err, ERR_INVALID, "`base` must be a plain path without a slash at the end, as in /npm");
	mem_free(q->registry_base);
	q->registry_base = mem_strdup(base);
	return 0;
}

void pypi_normalise(char *name)
{
	char *out = name;
	lower(name);
	for (const char *p = name; *p;) {
		size_t n = strspn(p, "-_.");
		*out++ = n ? '-' : *p;
		p += n ? n : 1;
	}
	*out = '\0';
}

int request_add_package(struct request_rule *q, const char *pattern, size_t max, struct err *err)
{
	char shown[SHOWN_MAX];
	if (!made_of(pattern, UPPER LOWER DIGITS "-_.~+@/*") || strlen(pattern) > PACKAGE_MAX)
		return err_set(err, ERR_INVALID, "\"%s\" is not the name of a package (a * stands for any characters)", show(pattern, shown));
	if (q->n_packages >= max)
		return too_many(err, "packages", max);
	cleanup_free char *own = mem_strdup(pattern);
	if (q->registry == REGISTRY_PYPI)
		pypi_normalise(own);
	add_text(&q->packages, &q->n_packages, own);
	return 0;
}

size_t pin_digest_size(uint8_t kind)
{
	static const uint8_t sizes[DIGEST_KINDS] = { [DIGEST_SHA256] = 32, [DIGEST_SHA384] = 48, [DIGEST_SHA512] = 64, [DIGEST_SHA1] = 20,
		[DIGEST_MD5] = 16 };
	return kind < DIGEST_KINDS ? sizes[kind] : 0;
}

int request_add_pin(struct request_rule *q, const char *path, const struct pin *digest, struct err *err)
{
	if (q->n_pins >= RULE_PINS_MAX)
		return err_set(err, ERR_LIMIT, "the lock file pins more than %u files; split it, with a rule for each part", RULE_PINS_MAX);
	q->pins = grown(q->pins, q->n_pins, sizeof(*q->pins));
	q->pins[q->n_pins] = *digest;
	q->pins[q->n_pins++].path = mem_strdup(path);
	return 0;
}

static int compare_pins(const void *a, const void *b)
{
	const struct pin *x = a, *y = b;
	int r = strcmp(x->path ? x->path : "", y->path ? y->path : "");
	if (r == 0)
		r = (int)x->kind - (int)y->kind;
	return r ? r : memcmp(x->digest, y->digest, sizeof(x->digest));
}

void request_sort_pins(struct request_rule *q)
{
	if (q->n_pins == 0)
		return;
	qsort(q->pins, q->n_pins, sizeof(*q->pins), compare_pins);
	size_t kept = 1;
	for (size_t i = 1; i < q->n_pins; i++) {
		if (compare_pins(&q->pins[i], &q->pins[kept - 1]) == 0)
			mem_free(q->pins[i].path);
		else
			q->pins[kept++] = q->pins[i];
	}
	q->n_pins = kept;
}

int git_add_repository(struct git_rule *g, const char *pattern, struct err *err)
{
	char shown[SHOWN_MAX];
	size_t n = strlen(pattern);
	if (!made_of(pattern, UPPER LOWER DIGITS "-_.~+/*") || n > FIELD_MAX || pattern[0] == '/' || pattern[n - 1] == '/' || strstr(pattern, "//"))
		return err_set(err, ERR_INVALID, "\"%s\" is not a repository; write its path on the host, as in acme/tools or \"acme/*\"",
			show(pattern, shown));
	if (str_ends(pattern, ".git"))
		return err_set(err, ERR_INVALID, "write the repository \"%s\" without .git; requests match with and without it", pattern);
	if (g->n_repositories >= RULE_NAMES_MAX)
		return too_many(err, "repositories", RULE_NAMES_MAX);
	add_text(&g->repositories, &g->n_repositories, pattern);
	return 0;
}

/* ---- secrets ---- */

int secret_set_name(struct secret_binding *s, const char *name, struct err *err)
{
	char shown[SHOWN_MAX];
	if (!made_of(name, UPPER LOWER DIGITS "_.-") || !strchr(UPPER LOWER, name[0]) || strlen(name) > SECRET_NAME_BYTES_MAX)
		return err_set(err, ERR_INVALID,
			"\"%s\" is not the name of a secret; it has 1 to %u letters, digits and _ . -, and begins with a letter", show(name, shown),
			SECRET_NAME_BYTES_MAX);
	mem_free(s->name);
	s->name = mem_strdup(name);
	return 0;
}

static void secret_put(struct secret_binding *s, enum secret_place place, char *field)
{
	s->place = place;
	mem_free(s->field);
	s->field = field;
}

/* What servers like to repeat in pages and logs, or need for themselves, is no place for a secret. */
static bool is_reflected(const char *name)
{
	static const char *const names[] = { "user-agent", "origin", "referer", "accept", "accept-encoding", "accept-language", "content-type",
		"content-encoding", "range", "if-range" };
	for (size_t i = 0; i < ARRAY_LEN(names); i++)
		if (str_eq(names[i], name))
			return true;
	return false;
}

int secret_set_header(struct secret_binding *s, const char *name, struct err *err)
{
	char *own = header_name(name, err);
	if (!own)
		return -1;
	if (is_reflected(own)) {
		err_set(err, ERR_INVALID, "a secret can't stand in the header `%s`, which servers repeat or read for themselves; use authorization or one made for it",
			own);
		mem_free(own);
		return -1;
	}
	secret_put(s, SECRET_IN_HEADER, own);
	return 0;
}

int secret_set_query(struct secret_binding *s, const char *key, struct err *err)
{
	if (check_query_key(key, err) < 0)
		return -1;
	secret_put(s, SECRET_IN_QUERY, mem_strdup(key));
	return 0;
}

int secret_set_value(struct secret_binding *s, const char *value, struct err *err)
{
	const char *braces = strstr(value, "{}");
	if (!is_visible(value, FIELD_MAX) || !braces || strstr(braces + 2, "{}"))
		return err_set(err, ERR_INVALID, "the `value` of a secret must be one line of ASCII in which {} stands once for the secret, as in \"Bearer {}\"");
	mem_free(s->value);
	s->value = mem_strdup(value);
	return 0;
}

int secret_set_variable(struct secret_binding *s, const char *name, struct err *err)
{
	char shown[SHOWN_MAX];
	if (!made_of(name, UPPER LOWER DIGITS "_") || strchr(DIGITS, name[0]) || strlen(name) > VARIABLE_MAX)
		return err_set(err, ERR_INVALID, "\"%s\" is not the name of an environment variable", show(name, shown));
	if (str_eq(name, "PATH") || str_eq(name, "HOME") || str_starts(name, "LD_"))
		return err_set(err, ERR_INVALID, "the variable %s steers the programs in the box and can't hold a placeholder; choose another", name);
	mem_free(s->variable);
	s->variable = mem_strdup(name);
	return 0;
}

/* ---- the whole ---- */

static int check_binding(const struct network_rule *r, struct err *err)
{
	const struct secret_binding *s = r->request->secret;
	if (!s->name)
		return err_set(err, ERR_INVALID, "a `secret` needs `name`, as in { name: github, header: Authorization, value: \"Bearer {}\" }");
	if (!s->field && s->place != SECRET_IN_BODY)
		return err_set(err, ERR_INVALID, "the secret \"%s\" needs its place: `header`, `query` or `body: true`", s->name);
	if (s->value && s->place != SECRET_IN_HEADER)
		return err_set(err, ERR_INVALID, "`value` belongs to a `header`; elsewhere the placeholder is replaced where it stands");
	if (r->wildcard)
		return err_set(err, ERR_INVALID, "the secret \"%s\" would go to every host of \"%s\"; a secret needs rules that name each host", s->name,
			r->text);
	if (rule_has_port(r, 80))
		return err_set(err, ERR_INVALID, "a secret travels only over TLS, and port 80 has none; remove 80 from `ports`, or give it a rule of its own");
	if (r->is_address && !r->request->ca_file)
		return err_set(err, ERR_INVALID, "the secret \"%s\" is bound to the address %s, which nobody certifies; name the host, or its certificate's authority with `ca`",
			s->name, r->text);
	return 0;
}

static int check_protocols(const struct request_rule *q, struct err *err)
{
	if (q->git && q->registry != REGISTRY_NONE)
		return err_set(err, ERR_INVALID, "a rule is for a `registry` or for `git`; write two rules");
	if (q->git && q->git->n_repositories == 0)
		return err_set(err, ERR_INVALID, "`git` needs `repositories`, as in { repositories: [\"acme/*\"], push: false }");
	return 0;
}

/* The variable that a placeholder is found in, as the box gets it: given, or made from the name. */
static void variable_of(const struct secret_binding *s, char out[VARIABLE_MAX + 1])
{
	const char *from = s->variable ? s->variable : s->name;
	size_t n = 0;
	for (; from[n] && n < VARIABLE_MAX; n++) {
		char c = from[n];
		if (!s->variable)
			c = c >= 'a' && c <= 'z' ? (char)(c - 'a' + 'A') : strchr(UPPER DIGITS, c) ? c : '_';
		out[n] = c;
	}
	out[n] = '\0';
}

static bool is_among(const char *const *names, size_t n, const char *name)
{
	for (size_t i = 0; i < n; i++)
		if (str_eq(names[i], name))
			return true;
	return false;
}

static int check_among_secrets(const struct policy *p, const struct secret_binding *s, struct err *err)
{
	const char *names[RULE_SECRETS_MAX];
	char mine[VARIABLE_MAX + 1], theirs[VARIABLE_MAX + 1];
	size_t n = 0;
	variable_of(s, mine);
	for (size_t i = 0; i < p->n_rules; i++) {
		const struct secret_binding *other = p->rules[i].request ? p->rules[i].request->secret : NULL;
		if (!other)
			continue;
		if (n < RULE_SECRETS_MAX && !is_among(names, n, other->name))
			names[n++] = other->name;
		variable_of(other, theirs);
		if (!str_eq(other->name, s->name) && str_eq(mine, theirs))
			return err_set(err, ERR_INVALID, "the secrets \"%s\" and \"%s\" would both be found in the variable %s; give one of them another `env`",
				other->name, s->name, mine);
	}
	if (n == RULE_SECRETS_MAX && !is_among(names, n, s->name))
		return err_set(err, ERR_LIMIT, "the policy names more than %u secrets", RULE_SECRETS_MAX);
	return 0;
}

int rule_check(const struct policy *p, const struct network_rule *r, struct err *err)
{
	const struct request_rule *q = r->request;
	if (!q)
		return 0;
	if (check_protocols(q, err) < 0)
		return -1;
	if (q->secret && (check_binding(r, err) < 0 || check_among_secrets(p, q->secret, err) < 0))
		return -1;
	return 0;
}
