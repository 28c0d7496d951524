/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Rules by verb and path: what of an HTTP request is judged, and by what. Pure. The gate asks it for each request on an inspected connection, the upstream
 * half asks the same question again before it puts a secret in.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "policy/policy.h"

#define REQUEST_PATH_MAX (16u * 1024u)
#define RULE_METHODS_MAX 32u
#define RULE_PATHS_MAX 256u
#define RULE_FIELDS_MAX 32u
#define RULE_NAMES_MAX 4096u          /* packages, repositories */
#define RULE_PINS_MAX 50000u          /* of a lock file */
#define RULE_CA_MAX (256u * 1024u)

/* ---- paths ---- */

/*
 * The path as every server would at most understand it, decided once: percent-encodings of unreserved bytes are decoded and others upper-cased; what is left ambiguous
 * is refused, not guessed. Refused (path_ambiguous): dot segments in any spelling after decoding up to three times ("..", "%2e%2e", "%252e"), "//", encoded "/" or "\",
 * a raw "\", ";" parameters, control bytes, NUL, a "%" without two hex digits, bytes ≥ 0x80 that are no UTF-8, a second "?" is fine, "#" is not. Letter case is kept: patterns are
 * matched exactly. A registry rule set may allow what its protocol needs (npm: "@scope%2fname") by `encoded_slash`.
 * The request is forwarded with the normalised path, so that what was judged is what the server sees. */
struct request_path {
	char path[REQUEST_PATH_MAX + 1];    /* normalised, without query; "*" for OPTIONS * */
	char query[REQUEST_PATH_MAX + 1];   /* as sent, without "?"; "" */
	bool has_query;
};
enum reason request_path_parse(const char *target, size_t len, bool encoded_slash, struct request_path *ret);

/* Globs on the normalised path: "*" within a segment, "**" as a whole segment any number of segments (also none), "?" is itself; anything else exact. The pattern
 * is checked when the policy is read. */
int path_glob_check(const char *pattern, struct err *err);
bool path_glob_match(const char *pattern, const char *path);
/* "*" any bytes. For query values, header values, package and repository names. */
bool text_glob_match(const char *pattern, const char *text, size_t len);

/* ---- the rest of a rule ---- */

struct field_rule { char *name, *pattern; };  /* header: name lower case. Every listed one must be there exactly once and match */

enum secret_place { SECRET_IN_HEADER, SECRET_IN_QUERY, SECRET_IN_BODY };
struct secret_binding {
	char *name;                       /* of the secret */
	enum secret_place place;
	char *field;                      /* header (lower case) or query key; NULL for a body */
	char *value;                      /* "Bearer {}": the field is always set to exactly this; NULL: the placeholder is replaced where it stands in the field, also inside
	                                     Basic; a field that holds something else instead is refused (foreign_credential) */
	char *variable;                   /* environment variable that holds the placeholder in the box; NULL: the default of the name */
};

enum registry_kind { REGISTRY_NONE = 0, REGISTRY_NPM, REGISTRY_PYPI, REGISTRY_APT, REGISTRY_KINDS };
const char *registry_kind_name(enum registry_kind kind);
/* A file that a lock file pins: at this path of the host with this content. */
struct pin { char *path; uint8_t kind; /* enum digest_kind */ uint8_t digest[64]; };

struct git_rule { char **repositories; size_t n_repositories; bool push; }; /* "acme/tools", "acme/*": without ".git" */

struct rule_limits {                   /* POLICY_UNLIMITED when not said */
	uint64_t requests, bytes_up, bytes_down, connections;
	uint64_t rate_count, rate_ns;     /* at most count requests within any ns; count unlimited: no rate */
};

/* Everything of a rule that needs its requests seen. NULL in network_rule: the rule is a tunnel's. */
struct request_rule {
	char **methods; size_t n_methods; /* upper case; 0: any */
	char **paths; size_t n_paths;     /* 0: any */
	struct field_rule *query; size_t n_query;
	struct field_rule *headers; size_t n_headers;
	enum registry_kind registry;      /* read only, in that protocol's own paths */
	char *registry_base;              /* path below which the registry lives; "" */
	char **packages; size_t n_packages; /* globs of normalised names; 0: any */
	char *lock_file;                  /* as written; the caller reads it and hands the text to request_rule_lock */
	struct pin *pins; size_t n_pins;  /* of the lock file: artefacts must be one of these */
	struct git_rule *git;
	struct secret_binding *secret;    /* NULL: none */
	char *ca_file, *ca;               /* as written; PEM text, read by the caller (policy_set_ca) */
};

/* Reads a lock file (package-lock.json v2/v3, requirements.txt with --hash, or lines "SHA256  PATH" for apt) into pins and, for npm and pypi, packages. */
int request_rule_lock(struct network_rule *r, const char *text, size_t len, struct err *err);

/* ---- the decision ---- */

struct request_field { const char *name; size_t name_len; const char *value; size_t value_len; };
struct request_facts {
	const struct hostname *name;      /* or NULL */
	const struct ip *ip;              /* when name is NULL */
	uint16_t port;
	bool tls;
	const char *method; size_t method_len;
	const char *target; size_t target_len;  /* path and query as sent */
	const struct request_field *fields; size_t n_fields;
	bool upgrade;                     /* WebSocket: judged as GET */
};
struct request_verdict {
	struct verdict verdict;           /* rule: the one that won, or that came nearest */
	struct request_path *path;        /* caller's memory, filled when parsed */
	const struct pin *pin;            /* the response must have this digest; or NULL */
};
/* Does a connection to this place have to be looked into? True when any rule that allows it has a request_rule. */
bool policy_needs_inspection(const struct policy *p, const struct hostname *name, const struct ip *ip, uint16_t port);
bool policy_inspects(const struct policy *p); /* any rule at all */
/* The first rule that allows the request wins; rules without request_rule allow every request. Else the reason that came nearest: method_not_allowed, path_not_allowed,
 * path_ambiguous, query_not_allowed, header_not_allowed, package_not_allowed, repository_not_allowed, push_not_allowed, not_pinned, secret_needs_tls. */
void policy_decide_request(const struct policy *p, const struct request_facts *facts, struct request_verdict *ret);
