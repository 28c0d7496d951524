/* SPDX-License-Identifier: Apache-2.0 */
/* The messages between supervisor and gate: what is encoded is decoded, what is off by anything is refused. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/mem.h"
#include "gate/messages.h"
#include "gate/policy-file.h"
#include "gate/upstream-messages.h"

static struct buf b;

static void fresh(void)
{
	buf_free(&b);
	buf_init(&b, GATE_MESSAGE_MAX);
}

/* Every shorter form, one longer by a byte, and another type must be refused. */
#define ASSERT_EXACT_OF(struct_name, decode)                                            \
	do {                                                                            \
		static struct struct_name m_;                                           \
		struct err err_ = ERR_INIT;                                             \
		for (size_t i_ = 0; i_ < b.len; i_++)                                   \
			assert_int_equal(decode(b.data, i_, &m_, &err_), -1);           \
		assert_int_equal(err_.code, ERR_PROTOCOL);                              \
		buf_put_u8(&b, 0);                                                      \
		assert_int_equal(decode(b.data, b.len, &m_, &err_), -1);                \
		b.len--;                                                                \
		b.data[3] ^= 0x40;                                                      \
		assert_int_equal(decode(b.data, b.len, &m_, &err_), -1);                \
		b.data[3] ^= 0x40;                                                      \
	} while (0)
#define ASSERT_EXACT(kind) ASSERT_EXACT_OF(gate_msg_##kind, gate_msg_##kind##_decode)

static struct gate_msg_config config_in, config_out;

static void fill_config(void)
{
	config_in = (struct gate_msg_config){ .policy_len = 1ull << 24, .n_resolvers = 2, .resolvers = { "127.0.0.1:53", "[::1]:5353" },
		.sandbox = "abcdefghijkl", .n_placeholders = 2,
		.placeholders = { { "github", "bulkhead-github-0123456789" }, { "npm", "bulkhead-npm-0123456789" } } };
}

static void assert_config_came_through(void)
{
	assert_true(config_out.policy_len == config_in.policy_len);
	assert_int_equal(config_out.n_resolvers, 2);
	assert_string_equal(config_out.resolvers[1], "[::1]:5353");
	assert_string_equal(config_out.sandbox, "abcdefghijkl");
	assert_int_equal(config_out.n_placeholders, 2);
	assert_string_equal(config_out.placeholders[1].name, "npm");
	assert_string_equal(config_out.placeholders[0].text, config_in.placeholders[0].text);
}

static void configs_come_through(void **state)
{
	fill_config();
	fresh();
	assert_int_equal(gate_msg_config_encode(&b, &config_in), 0);
	assert_int_equal(gate_msg_config_decode(b.data, b.len, &config_out, NULL), 0);
	assert_config_came_through();
	ASSERT_EXACT(config);
	fresh();
	assert_int_equal(upstream_msg_config_encode(&b, &config_in), 0);
	assert_int_equal(upstream_msg_config_decode(b.data, b.len, &config_out, NULL), 0);
	assert_config_came_through();
	ASSERT_EXACT_OF(gate_msg_config, upstream_msg_config_decode);
}

static int config_refused(void)
{
	fresh();
	gate_msg_config_encode(&b, &config_in);
	return gate_msg_config_decode(b.data, b.len, &config_out, NULL);
}

static void configs_have_ceilings(void **state)
{
	fill_config();
	config_in.policy_len = 0;
	assert_int_equal(config_refused(), -1);
	config_in.policy_len = POLICY_JSON_MAX + 1ull;
	assert_int_equal(config_refused(), -1);
	fill_config();
	config_in.sandbox[0] = 0;
	assert_int_equal(config_refused(), -1);
	fill_config();
	config_in.placeholders[1].name[0] = 0;
	assert_int_equal(config_refused(), -1);
	fill_config();
	strcpy(config_in.placeholders[1].text, "short");
	assert_int_equal(config_refused(), -1);
	fresh();
	buf_put_u32(&b, GATE_CONFIG);
	buf_put_u64(&b, 2);
	buf_put_u32(&b, GATE_RESOLVERS_MAX + 1);
	assert_int_equal(gate_msg_config_decode(b.data, b.len, &config_out, NULL), -1);
	fresh();
	buf_put_u32(&b, GATE_CONFIG);
	buf_put_u64(&b, 2);
	buf_put_u32(&b, 0);
	buf_put_str(&b, "abcdefghijkl");
	buf_put_u32(&b, SECRETS_MAX + 1);
	for (unsigned i = 0; i <= SECRETS_MAX; i++)
		buf_put_str(&b, "name"), buf_put_str(&b, "placeholder");
	assert_int_equal(gate_msg_config_decode(b.data, b.len, &config_out, NULL), -1);
}

static void policies_and_revocations_come_through(void **state)
{
	struct gate_msg_policy p = { 3, 77 }, p_out;
	fresh();
	gate_msg_policy_encode(&b, &p);
	assert_int_equal(gate_msg_policy_decode(b.data, b.len, &p_out, NULL), 0);
	assert_memory_equal(&p, &p_out, sizeof(p));
	ASSERT_EXACT(policy);
	p.policy_len = POLICY_JSON_MAX + 1ull;
	fresh();
	gate_msg_policy_encode(&b, &p);
	assert_int_equal(gate_msg_policy_decode(b.data, b.len, &p_out, NULL), -1);

	struct gate_msg_policy_set set = { 3, 9 }, set_out;
	fresh();
	gate_msg_policy_set_encode(&b, &set);
	assert_int_equal(gate_msg_policy_set_decode(b.data, b.len, &set_out, NULL), 0);
	assert_memory_equal(&set, &set_out, sizeof(set));
	ASSERT_EXACT(policy_set);
	fresh();
	upstream_msg_policy_set_encode(&b, &set);
	assert_int_equal(upstream_msg_policy_set_decode(b.data, b.len, &set_out, NULL), 0);
	ASSERT_EXACT_OF(gate_msg_policy_set, upstream_msg_policy_set_decode);
}

static void certificates_and_canaries_come_through(void **state)
{
	static struct gate_msg_ready ready, ready_out;
	fresh();
	gate_msg_ready_encode(&b, &ready);
	assert_int_equal(gate_msg_ready_decode(b.data, b.len, &ready_out, NULL), 0);
	assert_string_equal(ready_out.ca_pem, "");
	memset(ready.ca_pem, 'A', GATE_CA_PEM_MAX);
	fresh();
	gate_msg_ready_encode(&b, &ready);
	assert_int_equal(gate_msg_ready_decode(b.data, b.len, &ready_out, NULL), 0);
	assert_int_equal(strlen(ready_out.ca_pem), GATE_CA_PEM_MAX);
	b.data[100] = 0; /* a NUL inside */
	assert_int_equal(gate_msg_ready_decode(b.data, b.len, &ready_out, NULL), -1);

	struct gate_msg_canary c = { "npm", "evil.example", 443 }, c_out;
	fresh();
	gate_msg_canary_encode(&b, &c);
	assert_int_equal(gate_msg_canary_decode(b.data, b.len, &c_out, NULL), 0);
	assert_string_equal(c_out.name, "npm");
	assert_string_equal(c_out.host, "evil.example");
	assert_int_equal(c_out.port, 443);
	ASSERT_EXACT(canary);
}

static void the_upstream_half_is_understood(void **state)
{
	struct upstream_msg_secret secret = { "github" }, secret_out;
	fresh();
	upstream_msg_secret_encode(&b, &secret);
	assert_int_equal(upstream_msg_secret_decode(b.data, b.len, &secret_out, NULL), 0);
	assert_string_equal(secret_out.name, "github");
	ASSERT_EXACT_OF(upstream_msg_secret, upstream_msg_secret_decode);

	struct upstream_msg_revoke revoke = { "github" }, revoke_out;
	fresh();
	upstream_msg_revoke_encode(&b, &revoke);
	assert_int_equal(upstream_msg_revoke_decode(b.data, b.len, &revoke_out, NULL), 0);
	ASSERT_EXACT_OF(upstream_msg_revoke, upstream_msg_revoke_decode);

	struct upstream_msg_help help = { 1ull << 40, "github" }, help_out;
	fresh();
	upstream_msg_help_encode(&b, &help);
	assert_int_equal(upstream_msg_help_decode(b.data, b.len, &help_out, NULL), 0);
	assert_true(help_out.call == help.call);
	ASSERT_EXACT_OF(upstream_msg_help, upstream_msg_help_decode);

	struct upstream_msg_helped helped = { 1ull << 40, true }, helped_out;
	fresh();
	upstream_msg_helped_encode(&b, &helped);
	assert_int_equal(upstream_msg_helped_decode(b.data, b.len, &helped_out, NULL), 0);
	assert_true(helped_out.call == helped.call && helped_out.started);
	ASSERT_EXACT_OF(upstream_msg_helped, upstream_msg_helped_decode);
	b.data[b.len - 1] = 2; /* neither true nor false */
	assert_int_equal(upstream_msg_helped_decode(b.data, b.len, &helped_out, NULL), -1);

	struct upstream_msg_loaded loaded = { "github", false, "it can't be opened" }, loaded_out;
	fresh();
	upstream_msg_loaded_encode(&b, &loaded);
	assert_int_equal(upstream_msg_loaded_decode(b.data, b.len, &loaded_out, NULL), 0);
	assert_string_equal(loaded_out.sentence, loaded.sentence);
	assert_false(loaded_out.ok);
	ASSERT_EXACT_OF(upstream_msg_loaded, upstream_msg_loaded_decode);

	fresh();
	upstream_msg_ready_encode(&b);
	assert_int_equal(upstream_msg_ready_decode(b.data, b.len, NULL), 0);
	assert_int_equal(upstream_msg_ready_decode(b.data, b.len - 1, NULL), -1);
}

/* A policy travels in a memory file that nobody can change any more. */
static void policies_travel_sealed(void **state)
{
	struct policy *p = policy_builtin(), *read_back;
	struct err err = ERR_INIT;
	uint64_t len;
	policy_seal(p);
	int fd = policy_fd_make(p, &len, &err);
	assert_true(fd >= 0);
	assert_int_equal(write(fd, "x", 1), -1);
	assert_int_equal(ftruncate(fd, 0), -1);
	read_back = policy_fd_read(fd, len, &err);
	if (!read_back)
		fail_msg("%s", err.text);
	assert_memory_equal(read_back->hash, p->hash, sizeof(p->hash));
	policy_free(read_back);

	assert_int_equal(lseek(fd, 0, SEEK_SET), 0);
	assert_null(policy_fd_read(fd, len - 1, &err)); /* longer than was said */
	assert_int_equal(err.code, ERR_PROTOCOL);
	assert_int_equal(lseek(fd, 0, SEEK_SET), 0);
	assert_null(policy_fd_read(fd, len + 1, &err)); /* shorter */
	assert_int_equal(err.code, ERR_PROTOCOL);
	assert_int_equal(lseek(fd, 0, SEEK_SET), 0);
	assert_null(policy_fd_read(fd, POLICY_JSON_MAX + 1ull, &err));
	close(fd);

	char *json = policy_to_json(p);
	fd = memfd_create("unsealed", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	assert_int_equal(write(fd, json, len), (ssize_t)len);
	assert_int_equal(lseek(fd, 0, SEEK_SET), 0);
	assert_null(policy_fd_read(fd, len, &err));
	assert_non_null(strstr(err.text, "sealed"));
	assert_null(policy_fd_read(STDIN_FILENO, len, &err)); /* no memory file at all */
	close(fd);
	mem_free(json);
	policy_free(p);
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
		cmocka_unit_test(configs_have_ceilings),
		cmocka_unit_test(policies_and_revocations_come_through),
		cmocka_unit_test(certificates_and_canaries_come_through),
		cmocka_unit_test(the_upstream_half_is_understood),
		cmocka_unit_test(policies_travel_sealed),
		cmocka_unit_test(names_keep_their_bytes),
		cmocka_unit_test(entrances_bring_what_they_must),
		cmocka_unit_test(answers_come_through),
		cmocka_unit_test(denials_limits_and_totals_come_through),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
