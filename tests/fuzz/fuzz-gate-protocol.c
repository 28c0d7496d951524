/* SPDX-License-Identifier: Apache-2.0 */
/* Messages between supervisor and both halves of the gate, and (first byte 0xff) what the box says first on a flow: both entrances. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "gate/inspect.h"
#include "gate/messages.h"
#include "gate/proxy.h"
#include "gate/upstream-messages.h"
#include "gate/verdict.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check(int good)
{
	if (!good)
		abort();
}

/* What decodes must encode to the same bytes: one form for each message. */
#define ROUND_TRIP(kind)                                                                    \
	do {                                                                                \
		static struct kind m;                                                       \
		if (kind##_decode(data, size, &m, NULL) == 0) {                             \
			struct buf out;                                                     \
			buf_init(&out, size);                                               \
			check(kind##_encode(&out, &m) == 0);                                \
			check(out.len == size && memcmp(out.data, data, size) == 0);        \
			buf_free(&out);                                                     \
		}                                                                           \
	} while (0)

/* CONFIG, POLICY and POLICY_SET have the form that the front half's have, under another number. */
static void upstream_messages(const uint8_t *data, size_t size)
{
	static struct gate_msg_config config;
	struct gate_msg_policy policy;
	struct gate_msg_policy_set set;
	upstream_msg_config_decode(data, size, &config, NULL);
	upstream_msg_policy_decode(data, size, &policy, NULL);
	upstream_msg_policy_set_decode(data, size, &set, NULL);
	upstream_msg_ready_decode(data, size, NULL);
	ROUND_TRIP(upstream_msg_secret);
	ROUND_TRIP(upstream_msg_revoke);
	ROUND_TRIP(upstream_msg_helped);
	ROUND_TRIP(upstream_msg_help);
	ROUND_TRIP(upstream_msg_loaded);
}

static void messages(const uint8_t *data, size_t size)
{
	uint32_t type;
	struct gate_msg_open open;
	if (gate_msg_type(data, size, &type) < 0)
		return;
	if (gate_msg_open_decode(data, size, &open, NULL) == 0)
		check(open.name_len < sizeof(open.name));
	gate_msg_finish_decode(data, size, NULL);
	ROUND_TRIP(gate_msg_config);
	ROUND_TRIP(gate_msg_policy);
	ROUND_TRIP(gate_msg_ready);
	ROUND_TRIP(gate_msg_name);
	ROUND_TRIP(gate_msg_answer);
	ROUND_TRIP(gate_msg_denied);
	ROUND_TRIP(gate_msg_limit);
	ROUND_TRIP(gate_msg_done);
	ROUND_TRIP(gate_msg_policy_set);
	ROUND_TRIP(gate_msg_canary);
}

/* Nothing is raw on a port that has its protocol; nothing judged later contradicts what was judged before. */
static void first_bytes(const uint8_t *data, size_t size)
{
	static const uint16_t ports[] = { 80, 443, 22 };
	static struct inspection in, half;
	struct gate_target t;
	target_from_name("good.example", 12, 22, &t);
	for (size_t i = 0; i < 3; i++) {
		enum inspect_result r = inspect_first_bytes(data, size, false, ports[i], &in);
		check(r != INSPECT_RAW || ports[i] == 22);
		check(r != INSPECT_TLS || ports[i] != 80);
		check(r != INSPECT_HTTP || (ports[i] != 443 && in.head_len <= size));
		check((r == INSPECT_REFUSE) == (in.reason != REASON_NONE));
		check(r != INSPECT_MORE || size < INSPECT_MAX);
		if (r == INSPECT_HTTP)
			verdict_request(&t, &in.request);
		enum inspect_result before = inspect_first_bytes(data, size / 2, false, ports[i], &half);
		check(before == INSPECT_MORE || before == r);
		check(inspect_first_bytes(data, size, true, ports[i], &in) != INSPECT_MORE);
	}
	struct proxy_head head;
	enum proxy_result p = proxy_head_parse(data, size, false, &head);
	check((p == PROXY_REFUSE) == (head.reason != REASON_NONE));
	check((p != PROXY_CONNECT && p != PROXY_FORWARD) || (head.target.port != 0 && head.head_len <= size));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	if (size > 0 && data[0] == 0xff)
		first_bytes(data + 1, size - 1);
	else
		messages(data, size), upstream_messages(data, size);
	return 0;
}
