/* SPDX-License-Identifier: Apache-2.0 */
/* Between the gate's words and policy's: a request as facts, a target as the authority of the link. For both halves. */
#pragma once

#include "gate/target.h"
#include "net/http.h"
#include "policy/request.h"

/* What policy judges of a head, by reference. `fields` has room for HTTP_FIELDS_MAX. */
void facts_fill(struct request_facts *ret, struct request_field *fields, const struct gate_target *t, const struct http_head *head, bool tls);
/* The authority of a target on the link: "host:port", IPv6 in brackets. */
const char *facts_authority(const struct gate_target *t, char out[TARGET_HOST_MAX]);
/* The binding of the secret that a request may carry which `rule` allowed; or NULL. */
const struct secret_binding *facts_binding(const struct policy *p, int rule);
