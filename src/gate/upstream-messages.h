/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The messages of gate/upstream-protocol.h as values, as messages.h does it for the front half. Decoders check every length; strings contain no NUL. All return
 * 0 or -1 + err.
 */
#pragma once

#include "gate/config-message.h"
#include "gate/upstream-protocol.h"

#define UPSTREAM_SENTENCE_MAX 1024u

struct upstream_msg_secret { char name[SECRET_NAME_MAX + 1]; };
struct upstream_msg_revoke { char name[SECRET_NAME_MAX + 1]; };
struct upstream_msg_helped { uint64_t call; bool started; };
struct upstream_msg_help { uint64_t call; char name[SECRET_NAME_MAX + 1]; };
struct upstream_msg_loaded { char name[SECRET_NAME_MAX + 1]; bool ok; char sentence[UPSTREAM_SENTENCE_MAX + 1]; };

/* First u32 of a message. 0 or -1. */
int upstream_msg_type(const void *p, size_t n, uint32_t *ret);

int upstream_msg_config_encode(struct buf *out, const struct gate_msg_config *m);
int upstream_msg_config_decode(const void *p, size_t n, struct gate_msg_config *ret, struct err *err);
int upstream_msg_policy_encode(struct buf *out, const struct gate_msg_policy *m);
int upstream_msg_policy_decode(const void *p, size_t n, struct gate_msg_policy *ret, struct err *err);
int upstream_msg_secret_encode(struct buf *out, const struct upstream_msg_secret *m);
int upstream_msg_secret_decode(const void *p, size_t n, struct upstream_msg_secret *ret, struct err *err);
int upstream_msg_revoke_encode(struct buf *out, const struct upstream_msg_revoke *m);
int upstream_msg_revoke_decode(const void *p, size_t n, struct upstream_msg_revoke *ret, struct err *err);
int upstream_msg_helped_encode(struct buf *out, const struct upstream_msg_helped *m);
int upstream_msg_helped_decode(const void *p, size_t n, struct upstream_msg_helped *ret, struct err *err);
int upstream_msg_ready_encode(struct buf *out);
int upstream_msg_ready_decode(const void *p, size_t n, struct err *err);
int upstream_msg_policy_set_encode(struct buf *out, const struct gate_msg_policy_set *m); /* DONE_POLICY */
int upstream_msg_policy_set_decode(const void *p, size_t n, struct gate_msg_policy_set *ret, struct err *err);
int upstream_msg_help_encode(struct buf *out, const struct upstream_msg_help *m);
int upstream_msg_help_decode(const void *p, size_t n, struct upstream_msg_help *ret, struct err *err);
int upstream_msg_loaded_encode(struct buf *out, const struct upstream_msg_loaded *m);
int upstream_msg_loaded_decode(const void *p, size_t n, struct upstream_msg_loaded *ret, struct err *err);
