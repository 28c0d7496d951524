/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The messages of gate/protocol.h as values. One table for the supervisor, the gate and the fuzzer: each side encodes what the
 * other decodes. Decoders check every length and enum; strings contain no NUL. All return 0 or -1 + err.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/addr.h"
#include "base/buf.h"
#include "base/err.h"
#include "gate/config-message.h"
#include "gate/protocol.h"
#include "policy/reason.h"
#include "wire/messages.h"

#define GATE_HOST_TEXT_MAX 256u /* of a host in DENIED and CANARY, escaped */
#define GATE_CA_PEM_MAX (16u * 1024u)

struct gate_msg_name { uint32_t query; char text[HOSTNAME_MAX + 2]; size_t len; }; /* bytes as the box asked for them */

struct gate_msg_open {
	uint64_t flow;
	enum wire_entrance entrance;
	char name[HOSTNAME_MAX + 2];          /* NAME: bytes as claimed, unparsed; else empty */
	size_t name_len;
	struct ip address;                    /* ADDRESS: family is 0 else */
	uint16_t port;                        /* NAME, ADDRESS; else 0 */
};

struct gate_msg_answer { uint32_t query; bool allowed; uint16_t n_ports; uint16_t ports[WIRE_PORTS_MAX]; };
struct gate_msg_denied { char host[GATE_HOST_TEXT_MAX + 1]; uint16_t port; enum reason reason; };
struct gate_msg_limit { enum reason reason; uint64_t value; };
struct gate_msg_done { uint64_t allowed, denied, bytes_up, bytes_down; };
struct gate_msg_ready { char ca_pem[GATE_CA_PEM_MAX + 1]; }; /* "": nothing is intercepted */
struct gate_msg_canary { char name[SECRET_NAME_MAX + 1]; char host[GATE_HOST_TEXT_MAX + 1]; uint16_t port; };

/* First u32 of a message. 0 or -1. */
int gate_msg_type(const void *p, size_t n, uint32_t *ret);

int gate_msg_config_encode(struct buf *out, const struct gate_msg_config *m);
int gate_msg_config_decode(const void *p, size_t n, struct gate_msg_config *ret, struct err *err);
int gate_msg_name_encode(struct buf *out, const struct gate_msg_name *m);
int gate_msg_name_decode(const void *p, size_t n, struct gate_msg_name *ret, struct err *err);
int gate_msg_open_encode(struct buf *out, const struct gate_msg_open *m);
int gate_msg_open_decode(const void *p, size_t n, struct gate_msg_open *ret, struct err *err);
int gate_msg_finish_encode(struct buf *out);
int gate_msg_finish_decode(const void *p, size_t n, struct err *err);
int gate_msg_policy_encode(struct buf *out, const struct gate_msg_policy *m);
int gate_msg_policy_decode(const void *p, size_t n, struct gate_msg_policy *ret, struct err *err);
int gate_msg_ready_encode(struct buf *out, const struct gate_msg_ready *m);
int gate_msg_ready_decode(const void *p, size_t n, struct gate_msg_ready *ret, struct err *err);
int gate_msg_answer_encode(struct buf *out, const struct gate_msg_answer *m);
int gate_msg_answer_decode(const void *p, size_t n, struct gate_msg_answer *ret, struct err *err);
int gate_msg_denied_encode(struct buf *out, const struct gate_msg_denied *m);
int gate_msg_denied_decode(const void *p, size_t n, struct gate_msg_denied *ret, struct err *err);
int gate_msg_limit_encode(struct buf *out, const struct gate_msg_limit *m);
int gate_msg_limit_decode(const void *p, size_t n, struct gate_msg_limit *ret, struct err *err);
int gate_msg_done_encode(struct buf *out, const struct gate_msg_done *m);
int gate_msg_done_decode(const void *p, size_t n, struct gate_msg_done *ret, struct err *err);
int gate_msg_policy_set_encode(struct buf *out, const struct gate_msg_policy_set *m);
int gate_msg_policy_set_decode(const void *p, size_t n, struct gate_msg_policy_set *ret, struct err *err);
int gate_msg_canary_encode(struct buf *out, const struct gate_msg_canary *m);
int gate_msg_canary_decode(const void *p, size_t n, struct gate_msg_canary *ret, struct err *err);
