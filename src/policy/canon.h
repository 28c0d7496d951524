/* SPDX-License-Identifier: Apache-2.0 */
/* Writing and reading the canonical JSON. Inside policy/ only. */
#pragma once

#include <jansson.h>

#include "policy/request.h"

/* Writing. None can fail: without memory the process ends, since a policy with a part missing must never be written. References are taken. */
json_t *canon_whole(json_t *value);
void canon_put(json_t *object, const char *key, json_t *value);
void canon_append(json_t *array, json_t *value);
void canon_put_text(json_t *object, const char *key, const char *text); /* NULL: null */

/* Reading: 0, or -1 with a sentence that names the key. */
int canon_bad(struct err *err, const char *key);
int canon_take_bool(const json_t *o, const char *key, bool *ret, struct err *err);
int canon_take_integer(const json_t *v, const char *key, json_int_t min, json_int_t max, json_int_t *ret, struct err *err);

/* request-json.c. What is empty isn't written. `o` NULL: nothing to take. */
json_t *canon_request(const struct request_rule *q);
json_t *canon_rule_limits(const struct rule_limits *l);
int canon_take_request(const json_t *o, struct network_rule *r, struct err *err);
int canon_take_rule_limits(const json_t *o, struct network_rule *r, struct err *err);
