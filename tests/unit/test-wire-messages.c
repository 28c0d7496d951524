/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "wire/messages.h"

static struct buf out;
static struct err err;

static int setup(void **state)
{
	buf_init(&out, 1 << 20);
	err = ERR_INIT;
	return 0;
}

static int teardown(void **state)
{
	buf_free(&out);
	return 0;
}

typedef int (*decode_fn)(const void *p, size_t n, void *ret, struct err *err);

/* Every shorter and one longer input must be refused, whatever it is; each in its own allocation, for the sanitizer. */
static void check_lengths(decode_fn decode, void *ret, size_t ret_size)
{
	uint8_t *untouched = mem_alloc(ret_size);
	memcpy(untouched, ret, ret_size);
	for (size_t n = 0; n <= out.len + 1; n++) {
		if (n == out.len)
			continue;
		uint8_t *copy = malloc(n ? n : 1);
		memset(copy, 0, n);
		memcpy(copy, out.data, n < out.len ? n : out.len);
		err = ERR_INIT;
		assert_int_equal(decode(copy, n, ret, &err), -1);
		assert_int_equal(err.code, ERR_PROTOCOL);
		assert_memory_equal(ret, untouched, ret_size); /* written on success only */
		free(copy);
	}
	mem_free(untouched);
}

#define CHECK_LENGTHS(type) do { \
		struct wire_##type kept; \
		memset(&kept, 0x5a, sizeof(kept)); \
		check_lengths((decode_fn)(void (*)(void))wire_##type##_decode, &kept, sizeof(kept)); \
	} while (0)

static int decode_bytes(decode_fn decode, const char *bytes, size_t n, void *ret)
{
	err = ERR_INIT;
	return decode(bytes, n, ret, &err);
}
#define DECODE(type, bytes, ret) decode_bytes((decode_fn)(void (*)(void))wire_##type##_decode, bytes, sizeof(bytes) - 1, ret)

static void hello(void **state)
{
	struct wire_hello m = { .version = WIRE_VERSION, .pid_in_box = 1 }, got;
	assert_int_equal(wire_hello_encode(&out, &m), 0);
	assert_memory_equal(out.data, "\0\0\0\1\0\0\0\1", 8);
	assert_int_equal(wire_hello_decode(out.data, out.len, &got, &err), 0);
	assert_memory_equal(&m, &got, sizeof(m));
	CHECK_LENGTHS(hello);
}

static void config(void **state)
{
	struct wire_config m = { .egress = true, .proxy_port = 3128, .exec_max = 64 }, got;
	assert_int_equal(wire_config_encode(&out, &m), 0);
	assert_int_equal(wire_config_decode(out.data, out.len, &got, &err), 0);
	assert_true(got.egress);
	assert_int_equal(got.proxy_port, 3128);
	assert_int_equal(got.exec_max, 64);
	assert_int_equal(got.n_literals, 0);
	CHECK_LENGTHS(config);
	assert_int_equal(DECODE(config, "\2\0\1\0\0\0\1\0\0", &got), -1); /* a bool is 0 or 1 */
	assert_int_equal(DECODE(config, "\1\0\1\0\0\0\1\0\0", &got), 0);
}

static void config_literals(void **state)
{
	struct wire_config m = { .egress = true, .n_literals = 2 }, got;
	ip_parse("192.0.2.1", 9, &m.literals[0].address);
	ip_parse("2001:db8::1", 11, &m.literals[1].address);
	m.literals[0].port = 22;
	assert_int_equal(wire_config_encode(&out, &m), -1); /* port 0 */
	assert_int_equal(out.len, 0);
	m.literals[1].port = 443;
	assert_int_equal(wire_config_encode(&out, &m), 0);
	assert_int_equal(wire_config_decode(out.data, out.len, &got, &err), 0);
	assert_int_equal(got.n_literals, 2);
	for (int i = 0; i < 2; i++) {
		assert_true(ip_equal(&got.literals[i].address, &m.literals[i].address));
		assert_int_equal(got.literals[i].port, m.literals[i].port);
	}
	CHECK_LENGTHS(config);
	m.n_literals = WIRE_LITERALS_MAX + 1;
	buf_clear(&out);
	assert_int_equal(wire_config_encode(&out, &m), -1);
	assert_int_equal(DECODE(config, "\1\0\1\0\0\0\1\0\x41", &got), -1);
	assert_int_equal(DECODE(config, "\1\0\1\0\0\0\1\0\1\4\1\2\3\4\0\0", &got), -1); /* port 0 */
	assert_int_equal(DECODE(config, "\1\0\1\0\0\0\1\0\1\7\1\2\3\4\0\1", &got), -1); /* family 7 */
}

static void failed(void **state)
{
	struct wire_failed m = { .code = ERR_UNSUPPORTED, .text = (char *)"no loopback" }, got;
	assert_int_equal(wire_failed_encode(&out, &m), 0);
	assert_int_equal(wire_failed_decode(out.data, out.len, &got, &err), 0);
	assert_int_equal(got.code, ERR_UNSUPPORTED);
	assert_string_equal(got.text, "no loopback");
	mem_free(got.text);
	CHECK_LENGTHS(failed);
	assert_int_equal(DECODE(failed, "\0\0\0\0\1x", &got), -1);   /* "no error" is no failure */
	assert_int_equal(DECODE(failed, "\x63\0\0\0\1x", &got), -1);
	assert_int_equal(DECODE(failed, "\1\0\0\0\2x\0", &got), -1);
	m.code = ERR_NONE;
	assert_int_equal(wire_failed_encode(&out, &m), -1);
}

static char *args[] = { (char *)"sh", (char *)"-c", (char *)"echo \xff", (char *)"", NULL };
static char *env[] = { (char *)"A=b", NULL };
static char *none[] = { NULL };

static struct wire_exec sample_exec(void)
{
	return (struct wire_exec){ .execution = 7, .stdin_stream = 1, .stdout_stream = 3, .stderr_stream = 5, .rows = 24, .columns = 80,
		.nofile = 1024, .cwd = (char *)"/workspace", .argv = args, .envp = env };
}

static void exec(void **state)
{
	struct wire_exec m = sample_exec(), got;
	assert_int_equal(wire_exec_encode(&out, &m), 0);
	assert_int_equal(wire_exec_decode(out.data, out.len, &got, &err), 0);
	assert_int_equal(got.execution, 7);
	assert_int_equal(got.stdin_stream, 1);
	assert_int_equal(got.stdout_stream, 3);
	assert_int_equal(got.stderr_stream, 5);
	assert_false(got.tty);
	assert_int_equal(got.rows, 24);
	assert_int_equal(got.columns, 80);
	assert_true(got.nofile == 1024);
	assert_string_equal(got.cwd, "/workspace");
	for (int i = 0; i < 4; i++)
		assert_string_equal(got.argv[i], args[i]);
	assert_null(got.argv[4]);
	assert_string_equal(got.envp[0], "A=b");
	assert_null(got.envp[1]);
	wire_exec_done(&got);
	assert_null(got.argv);
	wire_exec_done(&got); /* twice is fine */
	CHECK_LENGTHS(exec);
}

static void exec_rules(void **state)
{
	struct wire_exec m, got;
	m = sample_exec();
	m.argv = none;
	assert_int_equal(wire_exec_encode(&out, &m), -1);
	m = sample_exec();
	m.cwd = (char *)"";
	assert_int_equal(wire_exec_encode(&out, &m), -1);
	m = sample_exec();
	m.tty = true; /* with a stream for stderr */
	assert_int_equal(wire_exec_encode(&out, &m), -1);
	m = sample_exec();
	m.stdout_stream = 0;
	assert_int_equal(wire_exec_encode(&out, &m), -1);
	assert_int_equal(out.len, 0); /* a failure leaves nothing behind */
	m = sample_exec();
	m.tty = true;
	m.stderr_stream = 0;
	m.envp = NULL;
	assert_int_equal(wire_exec_encode(&out, &m), 0);
	assert_int_equal(wire_exec_decode(out.data, out.len, &got, &err), 0);
	assert_true(got.tty);
	assert_null(got.envp[0]);
	wire_exec_done(&got);
}

static void exec_ceilings(void **state)
{
	struct wire_exec m = sample_exec(), got;
	char **many = mem_alloc_array(WIRE_ARGS_MAX + 2, sizeof(*many));
	for (unsigned i = 0; i < WIRE_ARGS_MAX + 1; i++)
		many[i] = (char *)"";
	m.argv = many;
	assert_int_equal(wire_exec_encode(&out, &m), -1);
	many[WIRE_ARGS_MAX] = NULL;
	assert_int_equal(wire_exec_encode(&out, &m), 0);
	assert_int_equal(wire_exec_decode(out.data, out.len, &got, &err), 0);
	wire_exec_done(&got);
	char *longest = mem_alloc(WIRE_STRING_MAX + 2);
	memset(longest, 'x', WIRE_STRING_MAX + 1);
	many[0] = longest;
	assert_int_equal(wire_exec_encode(&out, &m), -1);
	longest[WIRE_STRING_MAX] = '\0';
	buf_clear(&out);
	assert_int_equal(wire_exec_encode(&out, &m), 0);
	assert_int_equal(wire_exec_decode(out.data, out.len, &got, &err), 0);
	wire_exec_done(&got);
	struct buf small;
	buf_init(&small, 100);
	assert_int_equal(wire_exec_encode(&small, &m), -1);
	assert_int_equal(small.len, 0);
	buf_free(&small);
	mem_free(longest);
	mem_free(many);
}

static void exec_hostile(void **state)
{
	struct wire_exec got;
#define EXEC_HEAD "\0\0\0\1" "\0\0\0\1" "\0\0\0\3" "\0\0\0\5" "\0" "\0\0" "\0\0" "\0\0\0\0\0\0\0\0" "\0\0\0\1/"
	/* 4 billion arguments announced; a NUL inside an argument; a count that the message can't hold. */
	assert_int_equal(DECODE(exec, EXEC_HEAD "\xff\xff\xff\xff", &got), -1);
	assert_int_equal(DECODE(exec, EXEC_HEAD "\0\0\0\1" "\0\0\0\2a\0" "\0\0\0\0", &got), -1);
	assert_int_equal(DECODE(exec, EXEC_HEAD "\0\0\x0f\xff" "\0\0\0\1a" "\0\0\0\0", &got), -1);
	assert_int_equal(DECODE(exec, EXEC_HEAD "\0\0\0\1" "\0\0\0\1a" "\0\0\0\0", &got), 0);
	wire_exec_done(&got);
}

static void started_and_exited(void **state)
{
	struct wire_exec_started s = { .execution = 1, .pid = 2, .error = 13 }, s2;
	assert_int_equal(wire_exec_started_encode(&out, &s), 0);
	assert_int_equal(wire_exec_started_decode(out.data, out.len, &s2, &err), 0);
	assert_memory_equal(&s, &s2, sizeof(s));
	CHECK_LENGTHS(exec_started);
	s.error = -1;
	assert_int_equal(wire_exec_started_encode(&out, &s), -1);
	assert_int_equal(DECODE(exec_started, "\0\0\0\1\0\0\0\1\xff\xff\xff\xff", &s2), -1);
	assert_int_equal(DECODE(exec_started, "\0\0\0\1\0\0\0\1\0\0\x10\0", &s2), -1);

	static const struct { int status; bool valid; } statuses[] = { { 0, true }, { 1 << 8, true }, { 255 << 8, true }, { SIGKILL, true },
		{ SIGSEGV | 0x80, true }, { 0x7f, false }, { 0x137f, false }, { 0xffff, false }, { 0x10000, false }, { -1, false }, { 0x80, false },
		{ 0x109, false } };
	for (size_t i = 0; i < ARRAY_LEN(statuses); i++) {
		struct wire_exec_exited e = { .execution = 9, .wait_status = statuses[i].status }, e2;
		buf_clear(&out);
		assert_int_equal(wire_exec_exited_encode(&out, &e), statuses[i].valid ? 0 : -1);
		buf_clear(&out);
		buf_put_u32(&out, 9);
		buf_put_u32(&out, (uint32_t)statuses[i].status);
		assert_int_equal(wire_exec_exited_decode(out.data, out.len, &e2, &err), statuses[i].valid ? 0 : -1);
		if (statuses[i].valid)
			assert_int_equal(e2.wait_status, statuses[i].status);
	}
	CHECK_LENGTHS(exec_exited);
}

static void signal_and_resize(void **state)
{
	struct wire_signal s = { .execution = 1, .signal = SIGINT }, s2;
	assert_int_equal(wire_signal_encode(&out, &s), 0);
	assert_int_equal(wire_signal_decode(out.data, out.len, &s2, &err), 0);
	assert_memory_equal(&s, &s2, sizeof(s));
	CHECK_LENGTHS(signal);
	assert_int_equal(DECODE(signal, "\0\0\0\1\0\0\0\0", &s2), -1);
	assert_int_equal(DECODE(signal, "\0\0\0\1\0\0\0\x41", &s2), -1);
	buf_clear(&out);
	struct wire_resize r = { .execution = 1, .rows = 50, .columns = 132 }, r2;
	assert_int_equal(wire_resize_encode(&out, &r), 0);
	assert_int_equal(wire_resize_decode(out.data, out.len, &r2, &err), 0);
	assert_memory_equal(&r, &r2, sizeof(r));
	CHECK_LENGTHS(resize);
}

static void names(void **state)
{
	struct wire_name_query q = { .query = 3 }, q2;
	assert_int_equal(hostname_parse("example.com", 11, &q.name, NULL), 0);
	assert_int_equal(wire_name_query_encode(&out, &q), 0);
	assert_int_equal(wire_name_query_decode(out.data, out.len, &q2, &err), 0);
	assert_true(hostname_equal(&q.name, &q2.name));
	CHECK_LENGTHS(name_query);
	/* Only the canonical spelling travels. */
	assert_int_equal(DECODE(name_query, "\0\0\0\1\0\0\0\3A.b", &q2), -1);
	assert_int_equal(DECODE(name_query, "\0\0\0\1\0\0\0\4a.b.", &q2), -1);
	assert_int_equal(DECODE(name_query, "\0\0\0\1\0\0\0\5a\0.bc", &q2), -1);
	assert_int_equal(DECODE(name_query, "\0\0\0\1\0\0\0\0", &q2), -1);
	assert_int_equal(DECODE(name_query, "\0\0\0\1\0\0\0\3a.b", &q2), 0);
	buf_clear(&out);

	struct wire_name_answer a = { .query = 3, .allowed = true, .n_ports = 2, .ports = { 443, 80 } }, a2;
	assert_int_equal(wire_name_answer_encode(&out, &a), 0);
	assert_int_equal(wire_name_answer_decode(out.data, out.len, &a2, &err), 0);
	assert_int_equal(a2.n_ports, 2);
	assert_int_equal(a2.ports[0], 443);
	assert_int_equal(a2.ports[1], 80);
	CHECK_LENGTHS(name_answer);
	a.allowed = false; /* a refusal has no ports */
	assert_int_equal(wire_name_answer_encode(&out, &a), -1);
	a = (struct wire_name_answer){ .allowed = true, .n_ports = WIRE_PORTS_MAX + 1 };
	assert_int_equal(wire_name_answer_encode(&out, &a), -1);
	assert_int_equal(DECODE(name_answer, "\0\0\0\1\0\0\1\0\1", &a2), -1);
	assert_int_equal(DECODE(name_answer, "\0\0\0\1\1\0\1\0\0", &a2), -1); /* port 0 */
	assert_int_equal(DECODE(name_answer, "\0\0\0\1\1\0\x41", &a2), -1);
	assert_int_equal(DECODE(name_answer, "\0\0\0\1\0\0\0", &a2), 0);
}

static void egress(void **state)
{
	struct wire_egress_open m = { .stream = 2, .entrance = WIRE_ENTRANCE_NAME, .port = 443 }, got;
	assert_int_equal(hostname_parse("example.com", 11, &m.name, NULL), 0);
	assert_int_equal(wire_egress_open_encode(&out, &m), 0);
	assert_int_equal(wire_egress_open_decode(out.data, out.len, &got, &err), 0);
	assert_int_equal(got.entrance, WIRE_ENTRANCE_NAME);
	assert_true(hostname_equal(&m.name, &got.name));
	assert_int_equal(got.port, 443);
	CHECK_LENGTHS(egress_open);
	static const char *const addresses[] = { "192.0.2.1", "2001:db8::1" };
	for (size_t i = 0; i < ARRAY_LEN(addresses); i++) {
		buf_clear(&out);
		m = (struct wire_egress_open){ .stream = 4, .entrance = WIRE_ENTRANCE_ADDRESS, .port = 22 };
		ip_parse(addresses[i], strlen(addresses[i]), &m.address);
		assert_int_equal(wire_egress_open_encode(&out, &m), 0);
		assert_int_equal(wire_egress_open_decode(out.data, out.len, &got, &err), 0);
		assert_true(ip_equal(&m.address, &got.address));
		CHECK_LENGTHS(egress_open);
	}
	buf_clear(&out);
	m = (struct wire_egress_open){ .stream = 6, .entrance = WIRE_ENTRANCE_PROXY };
	assert_int_equal(wire_egress_open_encode(&out, &m), 0);
	assert_int_equal(wire_egress_open_decode(out.data, out.len, &got, &err), 0);
	assert_int_equal(got.entrance, WIRE_ENTRANCE_PROXY);
	CHECK_LENGTHS(egress_open);
	buf_clear(&out);
	m.entrance = (enum wire_entrance)9;
	assert_int_equal(wire_egress_open_encode(&out, &m), -1);
	m = (struct wire_egress_open){ .stream = 2, .entrance = WIRE_ENTRANCE_ADDRESS, .port = 1, .address = { .family = 99 } };
	assert_int_equal(wire_egress_open_encode(&out, &m), -1);
	assert_int_equal(out.len, 0);
	assert_int_equal(DECODE(egress_open, "\0\0\0\0\3", &got), -1);                        /* stream 0 */
	assert_int_equal(DECODE(egress_open, "\0\0\0\2\0", &got), -1);
	assert_int_equal(DECODE(egress_open, "\0\0\0\2\4", &got), -1);
	assert_int_equal(DECODE(egress_open, "\0\0\0\2\2\5\1\2\3\4\0\1", &got), -1);          /* family 5 */
	assert_int_equal(DECODE(egress_open, "\0\0\0\2\2\4\1\2\3\4\0\0", &got), -1);          /* port 0 */
	assert_int_equal(DECODE(egress_open, "\0\0\0\2\1\0\0\0\011" "127.0.0.1\0\120", &got), -1); /* an address as a name */
}

#define T(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		T(hello), T(config), T(config_literals), T(failed), T(exec), T(exec_rules), T(exec_ceilings), T(exec_hostile), T(started_and_exited), T(signal_and_resize),
		T(names), T(egress),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
