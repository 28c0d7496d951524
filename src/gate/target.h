/* SPDX-License-Identifier: Apache-2.0 */
/* Where a flow wants to go: parsed once from exact bytes. What is judged here is what is resolved, dialled and compared with
 * SNI and Host. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/addr.h"
#include "gate/messages.h"
#include "policy/reason.h"

struct gate_target {
	bool literal;                       /* an address; else a name */
	struct hostname name;
	struct ip ip;
	uint16_t port;
	char text[GATE_HOST_TEXT_MAX + 1];  /* canonical; of what can't be parsed the bytes, escaped. For people and the record */
};

/* REASON_NONE, or REASON_BAD_NAME with only text and port set. */
enum reason target_from_name(const void *data, size_t len, uint16_t port, struct gate_target *ret);
void target_from_ip(const struct ip *ip, uint16_t port, struct gate_target *ret);
/* "host[:port]" of a CONNECT line or an absolute URL; `fallback` is the port when none is written, 0: one must be. REASON_NONE,
 * REASON_PROXY_MALFORMED or REASON_BAD_NAME. */
enum reason target_from_authority(const void *data, size_t len, uint16_t fallback, struct gate_target *ret);
/* Does "host[:port]" name this target? A port that is not written is the target's. */
bool target_matches_authority(const struct gate_target *t, const void *data, size_t len);
/* Does a bare host name (SNI) name this target? */
bool target_matches_host(const struct gate_target *t, const void *data, size_t len);

#define TARGET_HOST_MAX (GATE_HOST_TEXT_MAX + 10)
/* The value of a Host header: brackets around IPv6, no port when it is the protocol's own (80). Returns out. */
const char *target_host_header(const struct gate_target *t, char out[TARGET_HOST_MAX]);
