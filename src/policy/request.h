/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Rules by verb and path: what of an HTTP request is judged, and by what. Pure. The gate asks it for each request on an inspected
 * connection, the upstream half asks the same question again before it puts a secret in.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "crypto/digest.h"
#include "policy/policy.h"

#define REQUEST_PATH_MAX (16u * 1024u)
#define RULE_METHODS_MAX 32u
#define RULE_PATHS_MAX 256u
#define RULE_FIELDS_MAX 32u           /* of query and of headers, each */
#define RULE_NAMES_MAX 4096u          /* packages, repositories, as written; a lock file may bring RULE_PINS_MAX packages */
#define RULE_PINS_MAX 50000u          /* of a lock file */
#define RULE_LOCK_MAX (16u * 1024u * 1024u)
#define RULE_CA_MAX (256u * 1024u)
#define RULE_SECRETS_MAX 64u          /* different ones in one policy */
#define SECRET_NAME_BYTES_MAX 64u     /* [A-Za-z][A-Za-z0-9_.-]*, as secrets/secret.h has it */

/* ---- paths ---- */

struct request_path {
	char path[REQUEST_PATH_MAX + 1];    /* normalised, without query; "*" for OPTIONS * */
	char query[REQUEST_PATH_MAX + 1];   /* as sent, without "?"; "" */
	bool has_query;
};

/*
 * The path in the one spelling that every server reads alike; what servers could read differently is refused with
 * REASON_PATH_AMBIGUOUS (then *ret is empty), not guessed:
 *   - percent-encodings of unreserved bytes are decoded, all others upper-cased; raw UTF-8 and " < > [ ] ^ ` { | } are encoded;
 *   - refused: a target that doesn't begin with "/" ("*" alone passes); empty segments ("//"); an encoded "/" (but with
 *     `encoded_slash`, which then counts as a separator for the checks here); "\" and ";", raw or encoded; control bytes, NUL, DEL,
 *     raw blanks, "#"; "%" without two hex digits (also "%u002e"); double encoding ("%25" and two hex digits, in whatever
 *     spelling); bytes that decode to no valid UTF-8 (overlong forms too); C1 controls and characters that a compatibility form or a
 *     code page turns into / \ % ;; segments of nothing but dots, blanks, "+" and what looks like them (".", "..", "...", "..%20",
 *     fullwidth dots, zero-width characters);
 *   - letter case, trailing slashes and dots behind a name are kept: they can't lead out of what a pattern allows.
 * The query is kept as sent (bytes ≥ 0x80 encoded), "?" in it too; "#", blanks and controls in it are refused.
 * Normalising twice gives the same. A normalised path has no dot segment however often it is decoded.
 */
enum reason request_path_parse(const char *target, size_t len, bool encoded_slash, struct request_path *ret);
/* For rules that don't judge the path: as sent, cut at the "?", bytes ≥ 0x80 encoded. Only what no request line can carry is refused. */
enum reason request_path_raw(const char *target, size_t len, struct request_path *ret);

/* Globs on the normalised path: "*" within a segment (at least one byte when it is all of it), "**" as a whole segment any number of
 * segments (also none: "/a" and a segment of two asterisks match "/a"); anything else exact, where "%40" and "@" are the same. A path with "%3F" or "%23" must
 * match with and without what stands behind it. The pattern is checked when the policy is read. */
int path_glob_check(const char *pattern, struct err *err);
bool path_glob_match(const char *pattern, const char *path);
/* "*" any bytes. For query values, header values, package and repository names. */
bool text_glob_match(const char *pattern, const char *text, size_t len);

/* ---- the rest of a rule ---- */

/* Every listed one must be there exactly once and match. Header names are lower case. Spellings that servers may take for the same
 * (x_team for x-team; "key[]", "KEY" for key) count too, and only the exact one matches. */
struct field_rule { char *name, *pattern; };

enum secret_place { SECRET_IN_HEADER, SECRET_IN_QUERY, SECRET_IN_BODY, SECRET_PLACES };
struct secret_binding {
	char *name;                       /* of the secret */
	enum secret_place place;
	char *field;                      /* header (lower case) or query key; NULL for a body */
	char *value;                      /* "Bearer {}": the field is always set to exactly this; NULL: the placeholder is replaced where
	                                     it stands in the field, also inside Basic; a field that holds something else instead is
	                                     refused (foreign_credential) */
	char *variable;                   /* environment variable that holds the placeholder in the box; NULL: the default of the name */
};

enum registry_kind { REGISTRY_NONE = 0, REGISTRY_NPM, REGISTRY_PYPI, REGISTRY_APT, REGISTRY_KINDS };
const char *registry_kind_name(enum registry_kind kind);

/* A file that a lock file pins: what comes from this path must have this content. */
struct pin {
	char *path;                       /* in the form of comparison, with the registry's base; NULL: any artefact of the rule */
	uint8_t kind;                     /* enum digest_kind */
	uint8_t digest[DIGEST_SIZE_MAX];
};
size_t pin_digest_size(uint8_t kind); /* 0: no such kind */

struct git_rule { char **repositories; size_t n_repositories; bool push; }; /* globs as "acme/tools", without ".git" */

struct rule_limits {                   /* POLICY_UNLIMITED when not said */
	uint64_t requests, bytes_up, bytes_down, connections;
	uint64_t rate_count, rate_ns;     /* at most count requests within any ns; count unlimited: no rate (ns is 0 then) */
};

/* Everything of a rule that needs its requests seen. NULL in network_rule: the rule is a tunnel's. All members empty: `inspect: true`. */
struct request_rule {
	char **methods; size_t n_methods; /* upper case; 0: any */
	char **paths; size_t n_paths;     /* 0: any */
	struct field_rule *query; size_t n_query;
	struct field_rule *headers; size_t n_headers;
	enum registry_kind registry;      /* read only, in that protocol's own paths */
	char *registry_base;              /* path below which the registry lives, "/npm"; "" */
	char **packages; size_t n_packages; /* globs of normalised names; 0: any. With a lock file and none written: those of the lock file */
	char *lock_file;                  /* as written; once it is set, artefacts must be pinned, also while there are no pins yet */
	struct pin *pins; size_t n_pins;  /* of the lock file, sorted by path */
	struct git_rule *git;
	struct secret_binding *secret;    /* NULL: none */
	char *ca_file, *ca;               /* as written; PEM text */
};

/* ---- files that a policy names ---- */

/* Reads the file as the policy writes it (relative: to the policy's folder): at most `max` bytes, NUL-terminated, mem_free. */
typedef int (*policy_read_fn)(void *ctx, const char *path, size_t max, char **ret_text, size_t *ret_len, struct err *err);
/* Reads every `ca` and lock file of the policy through `read` and seals it again. To be called once after policy_parse, and before
 * the policy is used; a policy whose files were not read refuses what they would allow. Sentences name the file and the rule's line. */
int policy_load_files(struct policy *p, policy_read_fn read, void *ctx, struct err *err);
/* Takes a lock file's text into pins and packages: package-lock.json of lockfileVersion 2 or 3, requirements.txt with --hash, or for apt
 * lines "SHA256  PATH". */
int request_rule_lock(struct network_rule *r, const char *text, size_t len, struct err *err);
/* Takes the PEM text of a `ca` file: at least one certificate block, and nothing but such blocks and comments between them. */
int request_rule_set_ca(struct network_rule *r, const char *text, size_t len, struct err *err);

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
	struct request_path *path;        /* caller's memory, never NULL. Allowed: what is to be forwarded: normalised when the rule that won
	                                     judges the path, else as sent. Denied: empty */
	const struct pin *pins;           /* n_pins > 0: the response body must have one of these digests, whole (so neither a part, nor */
	size_t n_pins;                    /* "not modified"; a response to HEAD has no body to check) */
};
/* Does a connection to this place have to be looked into? True when any rule that allows it has a request_rule. */
bool policy_needs_inspection(const struct policy *p, const struct hostname *name, const struct ip *ip, uint16_t port);
bool policy_inspects(const struct policy *p); /* any rule at all */
/* The first rule that allows the request wins; rules without request_rule allow every request. Else the reason of the rule that came
 * nearest: path_ambiguous, method_not_allowed, path_not_allowed, package_not_allowed, repository_not_allowed, push_not_allowed, not_pinned,
 * query_not_allowed, header_not_allowed, secret_needs_tls, in this order. Where no rule names the place, the reason of
 * policy_decide_name or policy_decide_address. Refused as well: headers that make a server take another method or path than those of
 * the request line, where the rule judges them. */
void policy_decide_request(const struct policy *p, const struct request_facts *facts, struct request_verdict *ret);

/* One or more lines for people, as policy_explain_verdict. Free with mem_free. */
char *policy_explain_request(const struct policy *p, const struct request_verdict *v, const char *host, uint16_t port, const char *method,
	const char *target);
/* What a rule looks at and does, for people: "inspected: GET, HEAD; 2 paths; secret github in authorization"; "" for a tunnel without
 * limits of its own. Free with mem_free. */
char *policy_describe_rule(const struct network_rule *r);
