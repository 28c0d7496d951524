/* SPDX-License-Identifier: Apache-2.0 */
/* Builds the part of a rule that judges requests: one way in for the policy file, the canonical form and the command line, so that
 * each value is checked by the same words. Inside policy/ only. Sentences have no place in a file yet. */
#pragma once

#include "policy/request.h"

/* The rule's request part, made when there is none. */
struct request_rule *rule_request(struct network_rule *r);
struct git_rule *rule_git(struct network_rule *r);
struct secret_binding *rule_secret(struct network_rule *r);

/* Frees what the rule holds, and leaves it empty. */
void rule_done(struct network_rule *r);
struct request_rule *request_rule_free(struct request_rule *q);

int request_add_method(struct request_rule *q, const char *method, struct err *err);
int request_add_path(struct request_rule *q, const char *pattern, struct err *err);
int request_add_query(struct request_rule *q, const char *key, const char *pattern, struct err *err);
int request_add_header(struct request_rule *q, const char *name, const char *pattern, struct err *err);
int request_set_registry(struct request_rule *q, const char *protocol, struct err *err);
int request_set_base(struct request_rule *q, const char *base, struct err *err);
/* After the protocol is known. `max`: RULE_NAMES_MAX for written ones, RULE_PINS_MAX for those of a lock file. */
int request_add_package(struct request_rule *q, const char *pattern, size_t max, struct err *err);
int request_add_pin(struct request_rule *q, const char *path, const struct pin *digest, struct err *err);
void request_sort_pins(struct request_rule *q);
int git_add_repository(struct git_rule *g, const char *pattern, struct err *err);

int secret_set_name(struct secret_binding *s, const char *name, struct err *err);
int secret_set_header(struct secret_binding *s, const char *name, struct err *err);
int secret_set_query(struct secret_binding *s, const char *key, struct err *err);
int secret_set_value(struct secret_binding *s, const char *value, struct err *err);
int secret_set_variable(struct secret_binding *s, const char *name, struct err *err);

/* Do the parts of the rule go together? And with the secrets of the rules that are there already? */
int rule_check(const struct policy *p, const struct network_rule *r, struct err *err);

/* PEP 503: lower case, runs of "-", "_" and "." as one "-"; stars stay. In place. */
void pypi_normalise(char *name);

/* Does the rule judge the path, so that it has to be normalised? */
static inline bool request_judges_path(const struct request_rule *q)
{
	return q && (q->n_paths > 0 || q->registry != REGISTRY_NONE || q->git);
}
