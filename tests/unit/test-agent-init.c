/* SPDX-License-Identifier: Apache-2.0 */
/* The agent as pid 1 of a pid namespace. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "agent-harness.h"
#include "base/mem.h"

static const struct run_options plain = { .no_stdin = true };

static int setup(void **state)
{
	static const struct wire_config config = { .exec_max = 8 };
	struct harness *h = harness_start_as_init();
	if (!h)
		return -1;
	harness_configure(h, &config);
	*state = h;
	return 0;
}

static int teardown(void **state)
{
	if (*state)
		harness_stop(*state);
	return 0;
}

/* The children of the stand-in's only child, as the kernel lists them. */
static bool has_children(struct harness *h)
{
	char path[64], text[256] = "";
	pid_t pid = h->agent;
	for (int level = 0; level < 2; level++) {
		snprintf(path, sizeof(path), "/proc/%d/task/%d/children", (int)pid, (int)pid);
		int fd = open(path, O_RDONLY | O_CLOEXEC);
		assert_true(fd >= 0);
		ssize_t n = read(fd, text, sizeof(text) - 1);
		close(fd);
		assert_true(n >= 0);
		text[n] = '\0';
		pid = (pid_t)strtol(text, NULL, 10);
	}
	return pid > 0;
}

static void test_it_is_pid_1(void **state)
{
	struct run r = RUN(*state, &plain, "sh", "-c", "echo $PPID");
	assert_int_equal(run_finish(&r), 0);
	assert_string_equal(run_output(&r), "1\n");
}

static void test_orphans_are_collected(void **state)
{
	struct harness *h = *state;
	struct run flood = RUN(h, &plain, "sh", "-c", "i=0; while [ $i -lt 1000 ]; do (true & true &); i=$((i+1)); done");
	struct run r = RUN(h, &plain, "echo", "meanwhile");
	assert_int_equal(run_finish(&r), 0);
	assert_int_equal(run_finish(&flood), 0);
	harness_until(h, !has_children(h));
}

static void test_signals_from_inside_do_nothing(void **state)
{
	struct run r = RUN(*state, &plain, "sh", "-c", "for s in KILL STOP TERM INT HUP SEGV PIPE CHLD USR1 ALRM ABRT; do kill -$s 1; done; kill -USR1 -1; echo sent");
	run_finish(&r);
	r = RUN(*state, &plain, "echo", "alive");
	assert_int_equal(run_finish(&r), 0);
	assert_string_equal(run_output(&r), "alive\n");
}

/* A process that has left its session, ignores what can be ignored and holds the write end of a named pipe of ours. */
static int start_survivor(struct harness *h, char fifo[64])
{
	snprintf(fifo, 64, "/tmp/test-agent-init-%d", (int)getpid());
	assert_int_equal(mkfifo(fifo, 0666), 0);
	assert_int_equal(chmod(fifo, 0666), 0);
	int fd = open(fifo, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
	assert_true(fd >= 0);
	struct run r = RUN(h, &plain, "sh", "-c", "trap '' TERM HUP INT; exec >$0; setsid sh -c 'trap \"\" TERM; while :; do sleep 1000; done' & exit 0", fifo);
	assert_int_equal(run_finish(&r), 0);
	unlink(fifo);
	struct pollfd p = { .fd = fd, .events = POLLIN };
	assert_int_equal(poll(&p, 1, 0), 0); /* open, and nothing written */
	return fd;
}

static void wait_for_its_end(int fd)
{
	struct pollfd p = { .fd = fd, .events = POLLIN };
	assert_int_equal(poll(&p, 1, 60000), 1);
	assert_true(p.revents & POLLHUP);
	close(fd);
}

static void test_shutdown_ends_everything(void **state)
{
	char fifo[64];
	struct harness *h = *state;
	int fd = start_survivor(h, fifo);
	harness_stop(h);
	*state = NULL;
	wait_for_its_end(fd);
}

static void test_lost_pipe_ends_everything(void **state)
{
	char fifo[64];
	struct harness *h = *state;
	int fd = start_survivor(h, fifo);
	assert_int_equal(harness_abandon(h), 0);
	*state = NULL;
	wait_for_its_end(fd);
}

#define WITH_AGENT(test) cmocka_unit_test_setup_teardown(test, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		WITH_AGENT(test_it_is_pid_1), WITH_AGENT(test_orphans_are_collected), WITH_AGENT(test_signals_from_inside_do_nothing),
		WITH_AGENT(test_shutdown_ends_everything), WITH_AGENT(test_lost_pipe_ends_everything),
	};
	void *probe = NULL;
	if (setup(&probe) < 0) {
		fprintf(stderr, "skipped: no pid namespace of our own to be had here\n");
		return HARNESS_SKIPPED;
	}
	teardown(&probe);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
