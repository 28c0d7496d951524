/* SPDX-License-Identifier: Apache-2.0 */
/* The messages of control-protocol.h as values. Decoders check every length; strings contain no NUL. All return 0 or -1 + err. */
#pragma once

#include "base/buf.h"
#include "base/err.h"
#include "gate/config-message.h"
#include "sandbox/control-protocol.h"

struct control_msg_secret { char name[SECRET_NAME_MAX + 1]; };
struct control_msg_ok { uint64_t generation, count; };

int control_msg_type(const void *p, size_t n, uint32_t *ret);

int control_msg_policy_encode(struct buf *out, const struct gate_msg_policy *m);
int control_msg_policy_decode(const void *p, size_t n, struct gate_msg_policy *ret, struct err *err);
/* `type` is CONTROL_SECRET_CHANGED or CONTROL_SECRET_REVOKE. */
int control_msg_secret_encode(struct buf *out, enum control_request type, const struct control_msg_secret *m);
int control_msg_secret_decode(const void *p, size_t n, enum control_request type, struct control_msg_secret *ret, struct err *err);
int control_msg_ok_encode(struct buf *out, const struct control_msg_ok *m);
int control_msg_ok_decode(const void *p, size_t n, struct control_msg_ok *ret, struct err *err);
int control_msg_failed_encode(struct buf *out, const struct err *why);
/* *ret becomes what the other side said. */
int control_msg_failed_decode(const void *p, size_t n, struct err *ret, struct err *err);
