/* SPDX-License-Identifier: Apache-2.0 */
/* One function for each section of the policy file, in the form that a table of keys wants; `into` is the struct policy. */
#pragma once

#include "policy/policy.h"
#include "policy/node.h"

#define TEXT_FIELD_MAX 254u

/* parse-identity.c */
int parse_version(const struct node *key, const struct node *value, void *into, struct err *err);
int parse_name(const struct node *key, const struct node *value, void *into, struct err *err);
int parse_owner(const struct node *key, const struct node *value, void *into, struct err *err);
int parse_review_by(const struct node *key, const struct node *value, void *into, struct err *err);
int parse_strict(const struct node *key, const struct node *value, void *into, struct err *err);
int parse_template(const struct node *key, const struct node *value, void *into, struct err *err);
int parse_region(const struct node *key, const struct node *value, void *into, struct err *err);
/* parse-isolation.c */
int parse_isolation(const struct node *key, const struct node *value, void *into, struct err *err);
/* parse-limits.c */
int parse_lifetime(const struct node *key, const struct node *value, void *into, struct err *err);
int parse_limits(const struct node *key, const struct node *value, void *into, struct err *err);
/* parse-files.c */
int parse_files(const struct node *key, const struct node *value, void *into, struct err *err);
/* parse-network.c */
int parse_network(const struct node *key, const struct node *value, void *into, struct err *err);
/* parse-request.c; `into` is the struct network_rule */
int parse_methods(const struct node *key, const struct node *value, void *into, struct err *err);
int parse_paths(const struct node *key, const struct node *value, void *into, struct err *err);
int parse_query(const struct node *key, const struct node *value, void *into, struct err *err);
int parse_headers(const struct node *key, const struct node *value, void *into, struct err *err);
int parse_inspect(const struct node *key, const struct node *value, void *into, struct err *err);
int parse_secret(const struct node *key, const struct node *value, void *into, struct err *err);
int parse_ca(const struct node *key, const struct node *value, void *into, struct err *err);
int parse_registry(const struct node *key, const struct node *value, void *into, struct err *err);
int parse_git(const struct node *key, const struct node *value, void *into, struct err *err);
int parse_rule_limits(const struct node *key, const struct node *value, void *into, struct err *err);
/* parse-detect.c */
int parse_detect(const struct node *key, const struct node *value, void *into, struct err *err);
/* parse-record.c */
int parse_record(const struct node *key, const struct node *value, void *into, struct err *err);

/* Judges review_by against today. *ret_warning is a sentence, or stays as it is. */
int review_check(const struct policy *p, const struct node *root, const char *now_date, char **ret_warning, struct err *err);
