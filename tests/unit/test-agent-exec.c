/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "agent-harness.h"
#include "base/mem.h"

static const struct wire_config config = { .exec_max = 64 };
static const struct run_options plain = { .no_stdin = true };

static char folder[] = "/tmp/test-agent-XXXXXX";

static int setup(void **state)
{
	struct harness *h = harness_start();
	harness_configure(h, &config);
	*state = h;
	return 0;
}

static int teardown(void **state)
{
	harness_stop(*state);
	return 0;
}

static void write_file(const char *name, const char *text, mode_t mode)
{
	char path[128];
	snprintf(path, sizeof(path), "%s/%s", folder, name);
	int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
	assert_true(fd >= 0);
	assert_int_equal(write(fd, text, strlen(text)), (ssize_t)strlen(text));
	assert_int_equal(fchmod(fd, mode), 0);
	close(fd);
}

static unsigned count_descriptors(pid_t pid)
{
	char path[64];
	unsigned n = 0;
	snprintf(path, sizeof(path), "/proc/%d/fd", (int)pid);
	DIR *d = opendir(path);
	assert_non_null(d);
	while (readdir(d))
		n++;
	closedir(d);
	return n;
}

/* ---- start and end ---- */

static void test_exit_status(void **state)
{
	struct run r = RUN(*state, &plain, "true");
	assert_int_equal(run_finish(&r), 0);
	r = RUN(*state, &plain, "false");
	int status = run_finish(&r);
	assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 1);
	r = RUN(*state, &plain, "sh", "-c", "exit 77");
	assert_int_equal(WEXITSTATUS(run_finish(&r)), 77);
	r = RUN(*state, &plain, "sh", "-c", "kill -9 $$");
	status = run_finish(&r);
	assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
}

static void test_not_found_and_not_executable(void **state)
{
	char path[128], env[256];
	struct run_options o = plain;
	struct run r = RUN(*state, &plain, "no-such-program-anywhere");
	assert_int_equal(run_finish(&r), -ENOENT);
	r = RUN(*state, &plain, "/no/such/program");
	assert_int_equal(run_finish(&r), -ENOENT);
	r = RUN(*state, &plain, "");
	assert_int_equal(run_finish(&r), -ENOENT);
	r = RUN(*state, &plain, "/etc/passwd/x");
	assert_int_equal(run_finish(&r), -ENOTDIR);
	write_file("plain-file", "text\n", 0644);
	snprintf(path, sizeof(path), "%s/plain-file", folder);
	r = RUN(*state, &plain, path);
	assert_int_equal(run_finish(&r), -EACCES);
	r = RUN(*state, &plain, "/tmp");
	assert_int_equal(run_finish(&r), -EACCES);
	/* seen but not executable is told apart from not there, and a later folder still wins */
	snprintf(env, sizeof(env), "PATH=/no/such:%s", folder);
	o.envp = (const char *const[]){ env, NULL };
	r = RUN(*state, &o, "plain-file");
	assert_int_equal(run_finish(&r), -EACCES);
	write_file("true", "", 0644);
	snprintf(env, sizeof(env), "PATH=%s:/usr/bin:/bin", folder);
	r = RUN(*state, &o, "true");
	assert_int_equal(run_finish(&r), 0);
}

static void test_script_without_header(void **state)
{
	char path[128];
	write_file("script", "echo \"$0 $1 $2\"\n", 0755);
	snprintf(path, sizeof(path), "%s/script", folder);
	struct run r = RUN(*state, &plain, path, "one", "two words");
	assert_int_equal(run_finish(&r), 0);
	char expected[256];
	snprintf(expected, sizeof(expected), "%s one two words\n", path);
	assert_string_equal(run_output(&r), expected);
}

static void test_path_with_empty_element_is_current_folder(void **state)
{
	write_file("here", "#!/bin/sh\necho here\n", 0755);
	struct run_options o = { .no_stdin = true, .cwd = folder, .envp = (const char *const[]){ "PATH=", NULL } };
	struct run r = RUN(*state, &o, "here");
	assert_int_equal(run_finish(&r), 0);
	assert_string_equal(run_output(&r), "here\n");
}

static void test_folder_and_environment(void **state)
{
	struct run_options o = { .no_stdin = true, .cwd = folder, .envp = (const char *const[]){ "A=1", "PATH=/usr/bin:/bin", NULL } };
	struct run r = RUN(*state, &o, "env");
	assert_int_equal(run_finish(&r), 0);
	assert_string_equal(run_output(&r), "A=1\nPATH=/usr/bin:/bin\n");
	r = RUN(*state, &o, "pwd");
	assert_int_equal(run_finish(&r), 0);
	assert_memory_equal(run_output(&r), folder, strlen(folder));
	o.cwd = "/no/such/folder";
	r = RUN(*state, &o, "true");
	assert_int_equal(run_finish(&r), -ENOENT);
}

/* What a program finds: its own session, default signals, nothing blocked, no descriptor but 0, 1, 2. */
static void test_clean_surroundings(void **state)
{
	struct run_options o = { .no_stdin = true, .nofile = 123 };
	struct run r = RUN(*state, &o, "sh", "-c", "grep -E '^Sig(Blk|Ign)' /proc/self/status; ls /proc/self/fd; ulimit -Sn; ulimit -Hn");
	assert_int_equal(run_finish(&r), 0);
	/* 3 is what ls has opened itself */
	assert_string_equal(run_output(&r), "SigBlk:\t0000000000000000\nSigIgn:\t0000000000000000\n0\n1\n2\n3\n123\n123\n");
	r = RUN(*state, &plain, "sh", "-c", "set -- $(cat /proc/self/stat); [ $$ = $5 ] && [ $$ = $6 ] && echo own");
	run_finish(&r);
	assert_string_equal(run_output(&r), "own\n");
}

static void test_ceiling_of_descriptors_that_cannot_be_had(void **state)
{
	struct run_options o = { .no_stdin = true, .nofile = UINT64_MAX - 1 };
	struct run r = RUN(*state, &o, "true");
	assert_int_equal(run_finish(&r), -EPERM);
}

/* ---- streams ---- */

static void test_streams_are_apart(void **state)
{
	struct run r = RUN(*state, &plain, "sh", "-c", "echo out; echo err >&2; cat; echo done");
	assert_int_equal(run_finish(&r), 0);
	assert_string_equal(run_output(&r), "out\ndone\n");
	assert_int_equal(r.err->got.len, 4);
	assert_memory_equal(r.err->got.data, "err\n", 4);
}

static void test_input_and_its_end(void **state)
{
	struct run_options o = { 0 };
	struct run r = RUN(*state, &o, "sh", "-c", "cat; echo end");
	run_feed(&r, "abc\n", 4);
	run_feed_eof(&r);
	assert_int_equal(run_finish(&r), 0);
	assert_string_equal(run_output(&r), "abc\nend\n");
}

static void test_input_closed_by_the_program(void **state)
{
	struct run_options o = { 0 };
	struct harness *h = *state;
	struct run r = RUN(h, &o, "sh", "-c", "exec <&-; echo closed; sleep 0.1; echo still");
	harness_until(h, r.out->received >= 7);
	uint8_t block[4096] = { 0 };
	while (r.in->s && !h->is_exited[r.number]) {
		mux_stream_write(r.in->s, block, sizeof(block));
		harness_step(h, "reset of a stream that nobody reads");
	}
	assert_int_equal(run_finish(&r), 0);
	assert_string_equal(run_output(&r), "closed\nstill\n");
}

/* Not only the number of bytes: their order and content. */
static uint64_t checksum(uint64_t sum, const uint8_t *p, size_t n)
{
	for (size_t i = 0; i < n; i++)
		sum = (sum ^ p[i]) * 1099511628211ull;
	return sum;
}

static void test_50_megabytes_both_ways(void **state)
{
	enum { BLOCK = 100 * 1000, TOTAL = 50 * 1000 * 1000 };
	struct run_options o = { 0 };
	struct run r = RUN(*state, &o, "cat");
	uint8_t *block = mem_alloc(BLOCK);
	uint64_t sent = 14695981039346656037ull, x = 88172645463325252ull;
	for (size_t done = 0; done < TOTAL; done += BLOCK) {
		for (size_t i = 0; i < BLOCK; i++) {
			x ^= x << 13;
			x ^= x >> 7;
			x ^= x << 17;
			block[i] = (uint8_t)x;
		}
		sent = checksum(sent, block, BLOCK);
		run_feed(&r, block, BLOCK);
	}
	run_feed_eof(&r);
	assert_int_equal(run_finish(&r), 0);
	assert_int_equal(r.out->received, TOTAL);
	assert_true(checksum(14695981039346656037ull, r.out->got.data, r.out->got.len) == sent);
	mem_free(block);
}

/* The last bytes of a program that ends at once, many times: nothing is lost between its write and its exit. */
static void test_last_bytes_arrive(void **state)
{
	for (int i = 0; i < 50; i++) {
		struct run_options o = { .no_stdin = true, .drop = true };
		struct run r = RUN(*state, &o, "head", "-c", "60000", "/dev/zero");
		assert_int_equal(run_finish(&r), 0);
		assert_int_equal(r.out->received, 60000);
	}
}

/* The host isn't reading: the program waits, the agent doesn't grow, other executions go on. */
static void test_slow_reader_holds_up_only_its_own(void **state)
{
	struct harness *h = *state;
	struct run_options o = { .no_stdin = true, .drop = true };
	struct run flood = RUN(h, &o, "head", "-c", "5000000", "/dev/zero");
	flood.out->hold = true;
	harness_until(h, flood.out->received == MUX_WINDOW);
	struct run r = RUN(h, &plain, "echo", "meanwhile");
	assert_int_equal(run_finish(&r), 0);
	assert_string_equal(run_output(&r), "meanwhile\n");
	assert_int_equal(flood.out->received, MUX_WINDOW);
	assert_false(h->is_exited[flood.number]);
	flood.out->hold = false;
	mux_stream_consumed(flood.out->s, MUX_WINDOW);
	assert_int_equal(run_finish(&flood), 0);
	assert_int_equal(flood.out->received, 5000000);
}

/* ---- background children ---- */

static void test_run_ends_with_its_command(void **state)
{
	struct run r = RUN(*state, &plain, "sh", "-c", "sleep 1000 & echo $!");
	assert_int_equal(run_finish(&r), 0);
	assert_true(r.out->eof);
	pid_t background = (pid_t)strtol(run_output(&r), NULL, 10);
	assert_int_equal(kill(background, 0), 0); /* it lives on, with the pipe open */
	kill(background, SIGKILL);
}

/* The pipe is never found empty: what counts is what lay in it when the command ended. */
static void test_background_flood_does_not_hold_the_end(void **state)
{
	struct run_options o = { .no_stdin = true, .drop = true };
	struct run r = RUN(*state, &o, "sh", "-c", "yes & echo $! >&2; sleep 0.05");
	assert_int_equal(run_finish(&r), 0);
	assert_int_equal(buf_append(&r.err->got, "", 1), 0);
	pid_t background = (pid_t)strtol((const char *)r.err->got.data, NULL, 10);
	assert_true(background > 1);
	kill(background, SIGKILL);
}

/* ---- many ---- */

static void test_100_in_turn_leak_nothing(void **state)
{
	struct harness *h = *state;
	struct run_options o = { 0 };
	struct run warm = RUN(h, &o, "true");
	run_finish(&warm);
	unsigned before = count_descriptors(h->agent);
	for (int i = 0; i < 100; i++) {
		o.tty = i % 2;
		struct run r = RUN(h, &o, "sh", "-c", "echo $((6*7))");
		run_feed_eof(&r);
		assert_int_equal(run_finish(&r), 0);
		assert_string_equal(run_output(&r), i % 2 ? "42\r\n" : "42\n");
		struct run bad = RUN(h, &o, "no-such-program");
		assert_int_equal(run_finish(&bad), -ENOENT);
		harness_until(h, bad.out->eof || bad.out->reset);
	}
	harness_until(h, count_descriptors(h->agent) <= before);
}

static void test_many_at_once_and_one_too_many(void **state)
{
	struct harness *h = *state;
	struct run runs[64];
	struct run_options o = { .drop = true };
	for (unsigned i = 0; i < 64; i++)
		runs[i] = RUN(h, &o, "cat");
	struct run more = RUN(h, &o, "cat");
	assert_int_equal(run_finish(&more), -EAGAIN);
	harness_until(h, more.out->reset && more.err->reset && more.in->reset);
	for (unsigned i = 0; i < 64; i++) {
		run_feed(&runs[i], "x", 1);
		run_feed_eof(&runs[i]);
		assert_int_equal(run_finish(&runs[i]), 0);
		assert_int_equal(runs[i].out->received, 1);
	}
	struct run again = RUN(h, &plain, "true");
	assert_int_equal(run_finish(&again), 0);
}

/* ---- signals ---- */

static void send_signal(struct run *r, unsigned sig)
{
	struct wire_signal m = { .execution = r->number, .signal = sig };
	struct buf b;
	buf_init(&b, MUX_MESSAGE_MAX);
	assert_int_equal(wire_signal_encode(&b, &m), 0);
	harness_send(r->h, WIRE_SIGNAL, b.data, b.len);
	buf_free(&b);
}

static void test_signals_reach_the_group(void **state)
{
	struct harness *h = *state;
	struct run r = RUN(h, &plain, "sh", "-c", "trap 'echo caught' TERM; sh -c 'echo ready; exec sleep 1000'; exit 3"); /* the shell waits for the other */
	harness_until(h, r.out->received >= 6);
	send_signal(&r, SIGTERM);
	assert_int_equal(WEXITSTATUS(run_finish(&r)), 3);
	assert_string_equal(run_output(&r), "ready\ncaught\n");
	send_signal(&r, SIGTERM); /* crossed on the way with its end */
	struct run next = RUN(h, &plain, "sleep", "1000");
	harness_until(h, h->is_started[next.number]);
	send_signal(&next, SIGKILL);
	int status = run_finish(&next);
	assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
}

/* ---- terminals ---- */

static void test_terminal(void **state)
{
	struct harness *h = *state;
	struct run_options o = { .tty = true, .one_stream = true, .rows = 33, .columns = 101 };
	struct run r = RUN(h, &o, "sh", "-c", "tty; stty size; stty -echo; read line; echo got $line; stty size; ps -o tty= -p $$ | grep -c pts");
	harness_until(h, r.out->received > 10 && strstr(run_output(&r), "101"));
	assert_memory_equal(run_output(&r), "/dev/pts/", 9);
	assert_non_null(strstr(run_output(&r), "33 101\r\n"));
	struct wire_resize m = { .execution = r.number, .rows = 50, .columns = 132 };
	struct buf b;
	buf_init(&b, MUX_MESSAGE_MAX);
	assert_int_equal(wire_resize_encode(&b, &m), 0);
	harness_send(h, WIRE_RESIZE, b.data, b.len);
	buf_free(&b);
	run_feed(&r, "hello\n", 6);
	assert_int_equal(run_finish(&r), 0);
	assert_non_null(strstr(run_output(&r), "got hello\r\n50 132\r\n1\r\n"));
}

static void test_end_of_terminal_input(void **state)
{
	static const char *const inputs[] = { "whole line\n", "begun", "" };
	for (size_t i = 0; i < ARRAY_LEN(inputs); i++) {
		struct run_options o = { .tty = true, .one_stream = i % 2, .rows = 24, .columns = 80 };
		struct run r = RUN(*state, &o, "sh", "-c", "stty -echo; cat; echo .");
		run_feed(&r, inputs[i], strlen(inputs[i]));
		run_feed_eof(&r);
		assert_int_equal(run_finish(&r), 0);
		char expected[64];
		bool line = str_ends(inputs[i], "\n");
		snprintf(expected, sizeof(expected), "%.*s%s.\r\n", (int)(strlen(inputs[i]) - line), inputs[i], line ? "\r\n" : "");
		assert_true(str_ends(run_output(&r), expected));
	}
}

static void test_interrupt_key(void **state)
{
	struct harness *h = *state;
	struct run_options o = { .tty = true, .one_stream = true };
	struct run r = RUN(h, &o, "sh", "-c", "echo ready; exec sleep 1000");
	harness_until(h, r.out->received >= 6);
	run_feed(&r, "\3", 1);
	int status = run_finish(&r);
	assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGINT);
}

static void test_terminal_with_background_child(void **state)
{
	struct run_options o = { .tty = true, .one_stream = true };
	struct run r = RUN(*state, &o, "sh", "-c", "trap '' HUP; (setsid sleep 1000 & echo $!); echo over");
	assert_int_equal(run_finish(&r), 0);
	assert_true(str_ends(run_output(&r), "over\r\n"));
	pid_t background = (pid_t)strtol(run_output(&r), NULL, 10);
	assert_true(background > 1);
	kill(background, SIGKILL);
}

static void test_all_output_of_a_terminal_arrives(void **state)
{
	for (int i = 0; i < 20; i++) {
		struct run_options o = { .tty = true, .one_stream = true, .drop = true };
		struct run r = RUN(*state, &o, "sh", "-c", "stty -opost; head -c 100000 /dev/zero");
		assert_int_equal(run_finish(&r), 0);
		assert_int_equal(r.out->received, 100000);
	}
}

/* ---- the pipe ---- */

static void test_host_gone_ends_everything(void **state)
{
	struct harness *h = harness_start();
	harness_configure(h, &config);
	struct run r = RUN(h, &plain, "sh", "-c", "echo $$; exec sleep 1000");
	harness_until(h, r.out->received > 0 && memchr(r.out->got.data, '\n', r.out->got.len));
	pid_t pid = (pid_t)strtol(run_output(&r), NULL, 10);
	assert_int_equal(harness_abandon(h), 0);
	for (int i = 0; i < 1000 && kill(pid, 0) == 0; i++)
		usleep(10000); /* until whoever inherited it has collected it */
	assert_int_equal(kill(pid, 0), -1);
}

static void test_shutdown_delivers_what_was_written(void **state)
{
	struct harness *h = harness_start();
	harness_configure(h, &config);
	struct run r = RUN(h, &plain, "sh", "-c", "head -c 50000 /dev/zero; echo >&2; exec sleep 1000");
	harness_until(h, r.err->received == 1);
	harness_send(h, WIRE_SHUTDOWN, NULL, 0);
	int status = run_finish(&r);
	assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
	assert_int_equal(r.out->received, 50000);
	harness_until(h, h->closed);
	assert_int_equal(harness_abandon(h), 0);
}

static void expect_protocol_error(uint16_t type, const void *body, size_t len, bool configured)
{
	struct harness *h = harness_start();
	if (configured)
		harness_configure(h, &config);
	harness_send(h, type, body, len);
	harness_until(h, h->closed);
	int status = harness_abandon(h);
	assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 1);
}

static void test_protocol_errors_end_the_agent(void **state)
{
	expect_protocol_error(WIRE_EXEC, "", 0, true);
	expect_protocol_error(WIRE_SIGNAL, "\0\0\0\1\0\0\0\1", 8, false); /* before CONFIG */
	expect_protocol_error(WIRE_HELLO, "\0\0\0\1\0\0\0\1", 8, true);
	expect_protocol_error(999, "", 0, true);
	expect_protocol_error(WIRE_SHUTDOWN, "x", 1, true);
	expect_protocol_error(WIRE_CONFIG, "\0\0\0\0\0\0\1\0\0", 9, true); /* twice */
}

static int make_folder(void **state)
{
	return mkdtemp(folder) ? 0 : -1;
}

static int remove_folder(void **state)
{
	static const char *const names[] = { "plain-file", "true", "script", "here" };
	char path[128];
	for (size_t i = 0; i < ARRAY_LEN(names); i++) {
		snprintf(path, sizeof(path), "%s/%s", folder, names[i]);
		unlink(path);
	}
	return rmdir(folder);
}

#define WITH_AGENT(test) cmocka_unit_test_setup_teardown(test, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		WITH_AGENT(test_exit_status), WITH_AGENT(test_not_found_and_not_executable), WITH_AGENT(test_script_without_header),
		WITH_AGENT(test_path_with_empty_element_is_current_folder), WITH_AGENT(test_folder_and_environment),
		WITH_AGENT(test_clean_surroundings), WITH_AGENT(test_ceiling_of_descriptors_that_cannot_be_had),
		WITH_AGENT(test_streams_are_apart), WITH_AGENT(test_input_and_its_end), WITH_AGENT(test_input_closed_by_the_program),
		WITH_AGENT(test_50_megabytes_both_ways), WITH_AGENT(test_last_bytes_arrive),
		WITH_AGENT(test_slow_reader_holds_up_only_its_own), WITH_AGENT(test_run_ends_with_its_command),
		WITH_AGENT(test_background_flood_does_not_hold_the_end), WITH_AGENT(test_100_in_turn_leak_nothing),
		WITH_AGENT(test_many_at_once_and_one_too_many), WITH_AGENT(test_signals_reach_the_group), WITH_AGENT(test_terminal),
		WITH_AGENT(test_end_of_terminal_input), WITH_AGENT(test_interrupt_key), WITH_AGENT(test_terminal_with_background_child),
		WITH_AGENT(test_all_output_of_a_terminal_arrives), cmocka_unit_test(test_host_gone_ends_everything),
		cmocka_unit_test(test_shutdown_delivers_what_was_written), cmocka_unit_test(test_protocol_errors_end_the_agent),
	};
	return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
