/* SPDX-License-Identifier: Apache-2.0 */
/* The messages between supervisor and gate: what is encoded is decoded, what is off by anything is refused. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/mem.h"
#include "gate/messages.h"

static struct buf b;

static void fresh(void)
{
	buf_free(&b);
	buf_init(&b, GATE_MESSAGE_MAX);
}

/* Every shorter form and one longer by a byte must be refused. */
#define ASSERT_EXACT(kind)                                                                    \
	do {                                                                                  \
		struct gate_msg_##kind m_;                                                    \
		struct err err_ = ERR_INIT;                                                   \
		for (size_t i_ = 0; i_ < b.len; i_++)                                         \
			assert_int_equal(gate_msg_##kind##_decode(b.data, i_, &m_, &err_), -1); \
		assert_int_equal(err_.code, ERR_PROTOCOL);                                    \
		buf_put_u8(&b, 0);                                                            \
		assert_int_equal(gate_msg_##kind##_decode(b.data, b.len, &m_, &err_), -1);    \
		b.len--;                                                                      \
		b.data[3] ^= 0x40;                                                            \
		assert_int_equal(gate_msg_##kind##_decode(b.data, b.len, &m_, &err_), -1);    \
		b.data[3] ^= 0x40;                                                            \
	} while (0)

static void configs_come_through(void **state)
{
	struct gate_msg_config in = { .policy = mem_strdup("{\"a\":1}"), .policy_len = 7, .n_resolvers = 2, .resolvers = { "127.0.0.1:53", "[::1]:5353" } }, out;
	fresh();
	assert_int_equal(gate_msg_config_encode(&b, &in), 0);
	assert_int_equal(gate_msg_config_decode(b.data, b.len, &out, NULL), 0);
	assert_string_equal(out.policy, in.policy);
	assert_int_equal(out.policy_len, 7);
	assert_int_equal(out.n_resolvers, 2);
	assert_string_equal(out.resolvers[1], "[::1]:5353");
	gate_msg_config_done(&out);
	ASSERT_EXACT(config);
	gate_msg_config_done(&in);
	fresh();
	buf_put_u32(&b, GATE_CONFIG);
	buf_put_str(&b, "{}");
	buf_put_u32(&b, GATE_RESOLVERS_MAX + 1);
	assert_int_equal(gate_msg_config_decode(b.data, b.len, &out, NULL), -1);
	fresh();
	buf_put_u32(&b, GATE_CONFIG);
	buf_put_bytes(&b, "{}\0", 3);
	buf_put_u32(&b, 0);
	assert_int_equal(gate_msg_config_decode(b.data, b.len, &out, NULL), -1);
}

static void names_keep_their_bytes(void **state)
{
	struct gate_msg_name in = { .query = 77, .len = 9 }, out;
	memcpy(in.text, "a\0b.c\xff..", 9);
	fresh();
	gate_msg_name_encode(&b, &in);
	assert_int_equal(gate_msg_name_decode(b.data, b.len, &out, NULL), 0);
	assert_int_equal(out.query, 77);
	assert_int_equal(out.len, 9);
	assert_memory_equal(out.text, in.text, 9);
	ASSERT_EXACT(name);
}

static int open_decode(const struct gate_msg_open *in, struct gate_msg_open *out)
{
	fresh();
	gate_msg_open_encode(&b, in);
	return gate_msg_open_decode(b.data, b.len, out, NULL);
}

static void entrances_bring_what_they_must(void **state)
{
	struct gate_msg_open out;
	struct gate_msg_open name = { .flow = 1ull << 40, .entrance = WIRE_ENTRANCE_NAME, .name = "a.example", .name_len = 9, .port = 443 };
	assert_int_equal(open_decode(&name, &out), 0);
	assert_true(out.flow == name.flow && out.port == 443);
	assert_string_equal(out.name, "a.example");
	ASSERT_EXACT(open);
	struct gate_msg_open address = { .entrance = WIRE_ENTRANCE_ADDRESS, .address = { .family = AF_INET6, .bytes = { 0xfd, 1 } }, .port = 22 };
	assert_int_equal(open_decode(&address, &out), 0);
	assert_int_equal(out.address.family, AF_INET6);
	assert_memory_equal(out.address.bytes, address.address.bytes, 16);
	struct gate_msg_open proxy = { .entrance = WIRE_ENTRANCE_PROXY };
	assert_int_equal(open_decode(&proxy, &out), 0);

	struct gate_msg_open bad = name;
	bad.port = 0;
	assert_int_equal(open_decode(&bad, &out), -1);
	bad = name;
	bad.name_len = 0;
	assert_int_equal(open_decode(&bad, &out), -1);
	bad = name;
	bad.address.family = AF_INET;
	assert_int_equal(open_decode(&bad, &out), -1);
	bad = address;
	bad.address.family = 0;
	assert_int_equal(open_decode(&bad, &out), -1);
	bad = proxy;
	bad.port = 80;
	assert_int_equal(open_decode(&bad, &out), -1);
	bad = proxy;
	bad.entrance = (enum wire_entrance)9;
	assert_int_equal(open_decode(&bad, &out), -1);
}

static void answers_come_through(void **state)
{
	struct gate_msg_answer in = { .query = 5, .allowed = true, .n_ports = 2, .ports = { 80, 65535 } }, out;
	fresh();
	gate_msg_answer_encode(&b, &in);
	assert_int_equal(gate_msg_answer_decode(b.data, b.len, &out, NULL), 0);
	assert_memory_equal(&in, &out, sizeof(in));
	ASSERT_EXACT(answer);
	b.data[8] = 2; /* neither true nor false */
	assert_int_equal(gate_msg_answer_decode(b.data, b.len, &out, NULL), -1);
}

static void denials_limits_and_totals_come_through(void **state)
{
	struct gate_msg_denied denied = { .host = "evil.example", .port = 443, .reason = REASON_NO_RULE }, denied_out;
	fresh();
	gate_msg_denied_encode(&b, &denied);
	assert_int_equal(gate_msg_denied_decode(b.data, b.len, &denied_out, NULL), 0);
	assert_string_equal(denied_out.host, "evil.example");
	assert_true(denied_out.port == 443 && denied_out.reason == REASON_NO_RULE);
	ASSERT_EXACT(denied);
	b.data[b.len - 1] = REASON_MAX;
	assert_int_equal(gate_msg_denied_decode(b.data, b.len, &denied_out, NULL), -1);

	struct gate_msg_limit limit = { REASON_BUDGET_BYTES, 1ull << 33 }, limit_out;
	fresh();
	gate_msg_limit_encode(&b, &limit);
	assert_int_equal(gate_msg_limit_decode(b.data, b.len, &limit_out, NULL), 0);
	assert_true(limit_out.reason == limit.reason && limit_out.value == limit.value);
	ASSERT_EXACT(limit);

	struct gate_msg_done done = { 1, 2, 3, UINT64_MAX }, done_out;
	fresh();
	gate_msg_done_encode(&b, &done);
	assert_int_equal(gate_msg_done_decode(b.data, b.len, &done_out, NULL), 0);
	assert_memory_equal(&done, &done_out, sizeof(done));
	ASSERT_EXACT(done);
	buf_free(&b);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(configs_come_through),
		cmocka_unit_test(names_keep_their_bytes),
		cmocka_unit_test(entrances_bring_what_they_must),
		cmocka_unit_test(answers_come_through),
		cmocka_unit_test(denials_limits_and_totals_come_through),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
