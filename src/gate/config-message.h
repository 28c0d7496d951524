/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What both halves of the gate are told about their sandbox, in the same form: how long the policy is that comes beside the message, which resolvers, whose
 * sandbox, and which placeholder stands for which secret. And what both are told when the policy changes.
 */
#pragma once

#include "gate/message-parts.h"
#include "secrets/placeholder.h"
#include "spec/spec.h"

#define GATE_RESOLVERS_MAX 8u
#define GATE_RESOLVER_TEXT_MAX 64u

struct gate_placeholder {
	char name[SECRET_NAME_MAX + 1]; /* of the secret */
	char text[PLACEHOLDER_MAX];     /* what the box holds instead */
};

struct gate_msg_config {
	uint64_t policy_len;                  /* of the JSON in the descriptor: policy-file.h */
	unsigned n_resolvers;                 /* 0: the system's */
	char resolvers[GATE_RESOLVERS_MAX][GATE_RESOLVER_TEXT_MAX + 1]; /* "IP:PORT" */
	char sandbox[SANDBOX_ID_LEN + 1];
	unsigned n_placeholders;
	struct gate_placeholder placeholders[SECRETS_MAX];
};

struct gate_msg_policy { uint64_t generation, policy_len; };
struct gate_msg_policy_set { uint64_t generation, cut; };

int config_message_encode(struct buf *out, uint32_t type, const struct gate_msg_config *m);
int config_message_decode(const void *p, size_t n, uint32_t type, const char *between, struct gate_msg_config *ret, struct err *err);
int policy_message_encode(struct buf *out, uint32_t type, const struct gate_msg_policy *m);
int policy_message_decode(const void *p, size_t n, uint32_t type, const char *between, struct gate_msg_policy *ret, struct err *err);
int policy_set_message_encode(struct buf *out, uint32_t type, const struct gate_msg_policy_set *m);
int policy_set_message_decode(const void *p, size_t n, uint32_t type, const char *between, struct gate_msg_policy_set *ret, struct err *err);
