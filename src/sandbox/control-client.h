/* SPDX-License-Identifier: Apache-2.0 */
/* The command's side of control-protocol.h: asks the supervisor of one live sandbox, and waits for its answer (bounded). */
#pragma once

#include "base/err.h"
#include "policy/policy.h"
#include "sandbox/control-messages.h"

/* `dirfd` is the sandbox's folder. ERR_NOT_FOUND: nobody serves it (it has ended, or its supervisor was killed). Other failures are the supervisor's own, in its words. */
int control_ask_policy(int dirfd, uint64_t generation, const struct policy *p, struct control_msg_ok *ret, struct err *err);
int control_ask_secret(int dirfd, enum control_request request, const char *name, struct control_msg_ok *ret, struct err *err);
