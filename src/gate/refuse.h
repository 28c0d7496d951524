/* SPDX-License-Identifier: Apache-2.0 */
/* How a refusal sounds: in HTTP, in TLS, or by silence. The same reason code everywhere. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "gate/target.h"
#include "policy/policy.h"

/* Policy and budgets say no; a name that doesn't resolve or a server that doesn't answer is no denial. */
bool refuse_is_denial(enum reason reason);
/* Status 403 (policy) or 502: a text that says it is policy, why, by which rule, and how to ask. */
int refuse_http(const struct policy *policy, const struct verdict *v, const struct gate_target *t, struct buf *out);
/* A fatal access_denied alert in the clear (RFC 8446 section 6). */
int refuse_tls(struct buf *out);
