/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/mem.h"
#include "base/text.h"
#include "event/child.h"

/* This program is its own child: `report` makes it print what it was started with on descriptor 1. */
static char self[PATH_MAX];

static int child_report(void)
{
	char line[4096];
	size_t at = 0;
	sigset_t mask;
	int death = 0;
	sigprocmask(SIG_SETMASK, NULL, &mask);
	at += (size_t)snprintf(line + at, sizeof(line) - at, "fds");
	for (int fd = 0; fd < 1024; fd++)
		if (fcntl(fd, F_GETFD) >= 0)
			at += (size_t)snprintf(line + at, sizeof(line) - at, " %d", fd);
	at += (size_t)snprintf(line + at, sizeof(line) - at, "; blocked");
	for (int s = 1; s < NSIG; s++)
		if (sigismember(&mask, s) == 1)
			at += (size_t)snprintf(line + at, sizeof(line) - at, " %d", s);
	at += (size_t)snprintf(line + at, sizeof(line) - at, "; ignored");
	for (int s = 1; s < NSIG; s++) {
		struct sigaction sa;
		if (sigaction(s, NULL, &sa) == 0 && sa.sa_handler == SIG_IGN)
			at += (size_t)snprintf(line + at, sizeof(line) - at, " %d", s);
	}
	prctl(PR_GET_PDEATHSIG, &death);
	at += (size_t)snprintf(line + at, sizeof(line) - at, "; death %d; leader %d; env %s\n", death, getsid(0) == getpid(),
			       getenv("ONLY") ? getenv("ONLY") : "-");
	return fd_write_full(1, line, at) == 0 ? 42 : 1;
}

static char *const environment[] = { (char *)"ONLY=this", NULL };

/* A pipe out of the way of every number that the tests play with. */
static void make_high_pipe(int p[2])
{
	int low[2];
	assert_int_equal(pipe2(low, O_CLOEXEC), 0);
	for (int i = 0; i < 2; i++) {
		p[i] = fcntl(low[i], F_DUPFD_CLOEXEC, 200);
		close(low[i]);
	}
}

static int run(struct child_spec *spec, char *out, size_t out_len, int *ret_status)
{
	int p[2], pidfd;
	pid_t pid;
	struct err err = ERR_INIT;
	make_high_pipe(p);
	struct child_fd fds[8] = { { .fd = p[1], .as = 1 } };
	assert_true(spec->n_fds < 8);
	for (size_t i = 0; i < spec->n_fds; i++)
		fds[i + 1] = spec->fds[i];
	struct child_spec full = *spec;
	full.fds = fds;
	full.n_fds++;
	int r = child_start(&full, &pid, &pidfd, &err);
	close(p[1]);
	assert_int_equal(r, 0);
	assert_true(fcntl(pidfd, F_GETFD) & FD_CLOEXEC);
	ssize_t n = 0, got;
	while ((got = read(p[0], out + n, out_len - 1 - (size_t)n)) > 0)
		n += got;
	out[n] = '\0';
	close(p[0]);
	assert_int_equal(child_wait(pidfd, ret_status), 0);
	assert_int_equal(child_wait(pidfd, ret_status), -ECHILD); /* reaped */
	close(pidfd);
	return r;
}

static char *const report_args[] = { self, (char *)"report", NULL };

static void starts_with_an_exact_table(void **state)
{
	char out[4096];
	int status, high[2];
	/* Disturbances: inheritable descriptors, ignored and blocked signals. */
	int leak1 = dup(0), leak2 = fcntl(0, F_DUPFD, 500);
	sigset_t block, before;
	sigemptyset(&block);
	sigaddset(&block, SIGTERM);
	sigprocmask(SIG_BLOCK, &block, &before);
	signal(SIGPIPE, SIG_IGN);
	signal(SIGHUP, SIG_IGN);
	assert_int_equal(pipe2(high, O_CLOEXEC), 0);
	struct child_fd fds[] = { { high[0], 3 }, { high[1], 7 } };
	struct child_spec spec = { .path = self, .argv = report_args, .envp = environment, .fds = fds, .n_fds = 2,
		.death_signal = SIGKILL, .new_session = true };
	run(&spec, out, sizeof(out), &status);
	assert_string_equal(out, "fds 0 1 2 3 7; blocked; ignored; death 9; leader 1; env this\n");
	assert_true(WIFEXITED(status));
	assert_int_equal(WEXITSTATUS(status), 42);
	sigset_t now;
	sigprocmask(SIG_SETMASK, &before, &now);
	assert_int_equal(sigismember(&now, SIGTERM), 1); /* ours are as they were */
	assert_int_equal(sigismember(&now, SIGINT), 0);
	struct sigaction sa;
	sigaction(SIGHUP, NULL, &sa);
	assert_ptr_equal(sa.sa_handler, SIG_IGN);
	signal(SIGHUP, SIG_DFL);
	close(leak1);
	close(leak2);
	close(high[0]);
	close(high[1]);
}

static void plain_start_has_no_session_and_no_death_signal(void **state)
{
	char out[4096];
	int status;
	struct child_spec spec = { .path = self, .argv = report_args, .envp = environment };
	run(&spec, out, sizeof(out), &status);
	assert_string_equal(out, "fds 0 1 2; blocked; ignored; death 0; leader 0; env this\n");
}

static char *const swap_args[] = { (char *)"sh", (char *)"-c", (char *)"cat <&4; cat <&3; cat <&5", NULL };

static int pipe_with(const char *text)
{
	int p[2];
	assert_int_equal(pipe2(p, O_CLOEXEC), 0);
	assert_int_equal(fd_write_full(p[1], text, strlen(text)), 0);
	close(p[1]);
	return p[0];
}

static void sources_and_targets_may_overlap(void **state)
{
	/* Our 3 shall be its 4, our 4 its 5, our 5 its 3: each dup2 done in place would destroy the source of another. */
	char out[64];
	int status, saved[3], sources[3];
	for (int i = 0; i < 3; i++) {
		saved[i] = fcntl(3 + i, F_DUPFD_CLOEXEC, 100);
		sources[i] = pipe_with(i == 0 ? "three " : i == 1 ? "four " : "five ");
	}
	for (int i = 0; i < 3; i++)
		sources[i] = fcntl(sources[i], F_DUPFD_CLOEXEC, 50);
	for (int i = 0; i < 3; i++)
		dup2(sources[i], 3 + i);
	struct child_fd fds[] = { { 3, 4 }, { 4, 5 }, { 5, 3 } };
	struct child_spec spec = { .path = "/bin/sh", .argv = swap_args, .envp = environment, .fds = fds, .n_fds = 3 };
	run(&spec, out, sizeof(out), &status);
	assert_string_equal(out, "three five four ");
	for (int i = 0; i < 3; i++) {
		close(sources[i]);
		if (saved[i] >= 0)
			dup2(saved[i], 3 + i);
		else
			close(3 + i);
	}
}

static void one_source_may_get_several_numbers(void **state)
{
	char out[4096];
	int status, null = open("/dev/null", O_RDONLY | O_CLOEXEC);
	struct child_fd fds[] = { { null, 3 }, { null, 4 }, { null, 900 } };
	struct child_spec spec = { .path = self, .argv = report_args, .envp = environment, .fds = fds, .n_fds = 3 };
	run(&spec, out, sizeof(out), &status);
	assert_true(str_starts(out, "fds 0 1 2 3 4 900;"));
	close(null);
}

static char *const stdio_args[] = { (char *)"sh", (char *)"-c", (char *)"readlink /proc/self/fd/0", NULL };

static void stdin_is_null_unless_kept(void **state)
{
	char out[256];
	int status, saved = dup(0), p[2];
	assert_int_equal(pipe2(p, O_CLOEXEC), 0);
	dup2(p[0], 0);
	struct child_spec spec = { .path = "/bin/sh", .argv = stdio_args, .envp = environment };
	run(&spec, out, sizeof(out), &status);
	assert_string_equal(out, "/dev/null\n");
	spec.keep_stdio = true;
	run(&spec, out, sizeof(out), &status);
	assert_true(str_starts(out, "pipe:"));
	/* A closed standard descriptor is filled, else the program's first file would become its stdin. */
	close(0);
	run(&spec, out, sizeof(out), &status);
	assert_string_equal(out, "/dev/null\n");
	dup2(saved, 0);
	close(saved);
	close(p[0]);
	close(p[1]);
}

static void failing_exec_is_an_error_here(void **state)
{
	struct err err = ERR_INIT;
	pid_t pid = -5;
	int pidfd = -5;
	char *const args[] = { (char *)"x", NULL };
	static const struct { const char *path; int error; } cases[] = { { "/nonexistent/program", ENOENT }, { "/etc/passwd", EACCES },
		{ "/", EACCES } };
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		struct child_spec spec = { .path = cases[i].path, .argv = args, .envp = environment };
		assert_int_equal(child_start(&spec, &pid, &pidfd, &err), -1);
		assert_int_equal(err.sys, cases[i].error);
		assert_non_null(strstr(err.text, cases[i].path));
	}
	assert_int_equal(pid, -5);
	assert_int_equal(pidfd, -5);
	assert_int_equal(waitpid(-1, NULL, WNOHANG), -1); /* nothing left to reap */
	assert_int_equal(errno, ECHILD);
}

static void bad_descriptor_lists_are_refused(void **state)
{
	struct err err = ERR_INIT;
	pid_t pid;
	int pidfd;
	char *const args[] = { (char *)"true", NULL };
	struct child_fd twice[] = { { 0, 5 }, { 1, 6 }, { 2, 5 } }, closed[] = { { 999, 3 } }, none[] = { { -1, 3 } }, many[65];
	struct child_spec spec = { .path = "/bin/true", .argv = args, .envp = environment, .fds = twice, .n_fds = 3 };
	assert_int_equal(child_start(&spec, &pid, &pidfd, &err), -1);
	assert_int_equal(err.code, ERR_USAGE);
	spec.fds = none;
	spec.n_fds = 1;
	assert_int_equal(child_start(&spec, &pid, &pidfd, &err), -1);
	assert_int_equal(err.code, ERR_USAGE);
	spec.fds = closed;
	assert_int_equal(child_start(&spec, &pid, &pidfd, &err), -1);
	assert_int_equal(err.sys, EBADF);
	for (int i = 0; i < 65; i++)
		many[i] = (struct child_fd){ 0, 3 + i };
	spec.fds = many;
	spec.n_fds = 65;
	assert_int_equal(child_start(&spec, &pid, &pidfd, &err), -1);
	assert_int_equal(err.code, ERR_LIMIT);
}

static void wait_tells_signals_and_codes(void **state)
{
	struct err err;
	pid_t pid;
	int pidfd, status;
	char *const killed[] = { (char *)"sh", (char *)"-c", (char *)"kill -TERM $$", NULL };
	struct child_spec spec = { .path = "/bin/sh", .argv = killed, .envp = environment };
	assert_int_equal(child_start(&spec, &pid, &pidfd, &err), 0);
	assert_int_equal(child_wait(pidfd, &status), 0);
	assert_true(WIFSIGNALED(status));
	assert_int_equal(WTERMSIG(status), SIGTERM);
	close(pidfd);
	char *const code[] = { (char *)"sh", (char *)"-c", (char *)"exit 200", NULL };
	spec.argv = code;
	assert_int_equal(child_start(&spec, &pid, &pidfd, &err), 0);
	assert_int_equal(child_wait(pidfd, &status), 0);
	assert_true(WIFEXITED(status));
	assert_int_equal(WEXITSTATUS(status), 200);
	close(pidfd);
	assert_true(child_wait(-1, &status) < 0);
}

static void bounded_wait_gives_up_and_finds(void **state)
{
	struct err err;
	pid_t pid;
	int pidfd, status = 0;
	char *const args[] = { (char *)"sleep", (char *)"600", NULL };
	struct child_spec spec = { .path = "/bin/sleep", .argv = args, .envp = environment, .death_signal = SIGKILL };
	assert_int_equal(child_start(&spec, &pid, &pidfd, &err), 0);
	assert_false(child_wait_bounded(pidfd, 5 * NS_PER_MS, &status));
	assert_int_equal(kill(pid, SIGKILL), 0);
	assert_true(child_wait_bounded(pidfd, 60 * NS_PER_S, &status));
	assert_int_equal(WTERMSIG(status), SIGKILL);
	close(pidfd);
}

static void children_survive_an_ignored_sigchld(void **state)
{
	/* Whoever started us may ignore SIGCHLD; then the kernel would throw our children's status away. */
	char out[4096];
	int status;
	signal(SIGCHLD, SIG_IGN);
	struct child_spec spec = { .path = self, .argv = report_args, .envp = environment };
	run(&spec, out, sizeof(out), &status);
	assert_int_equal(WEXITSTATUS(status), 42);
	signal(SIGCHLD, SIG_DFL);
}

static void death_signal_follows_the_parent(void **state)
{
	int p[2], status;
	assert_int_equal(pipe2(p, O_CLOEXEC), 0);
	pid_t middle = fork();
	if (middle == 0) {
		struct err err;
		pid_t pid;
		int pidfd;
		char *const args[] = { (char *)"sleep", (char *)"600", NULL };
		struct child_fd fds[] = { { p[1], 3 } };
		struct child_spec spec = { .path = "/bin/sleep", .argv = args, .envp = environment, .fds = fds, .n_fds = 1,
			.death_signal = SIGKILL };
		_exit(child_start(&spec, &pid, &pidfd, &err) == 0 ? 0 : 1);
	}
	close(p[1]);
	waitpid(middle, &status, 0);
	assert_int_equal(status, 0);
	struct pollfd hup = { .fd = p[0], .events = POLLIN };
	assert_int_equal(poll(&hup, 1, 60000), 1); /* the pipe's last writer is gone */
	assert_true(hup.revents & POLLHUP);
	close(p[0]);
}

static void finds_programs(void **state)
{
	struct err err = ERR_INIT;
	char folder[] = "/tmp/test-event-child-XXXXXX";
	assert_non_null(mkdtemp(folder));
	cleanup_free char *path = path_join(folder, "prog");
	int fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0755);
	close(fd);
	setenv("BULKHEAD_LIBEXEC", folder, 1);
	cleanup_free char *found = child_find_program("prog", &err);
	assert_string_equal(found, path);
	chmod(path, 0644);
	assert_null(child_find_program("prog", &err)); /* not executable */
	assert_int_equal(err.code, ERR_NOT_FOUND);
	assert_null(child_find_program("test-event-child", &err)); /* named on purpose: no looking beside this program */
	setenv("BULKHEAD_LIBEXEC", ".", 1);
	assert_null(child_find_program("prog", &err)); /* a relative folder would depend on where we stand */
	unsetenv("BULKHEAD_LIBEXEC");
	cleanup_free char *sibling = child_find_program(strrchr(self, '/') + 1, &err);
	assert_string_equal(sibling, self);
	assert_null(child_find_program("no-such-program", &err));
	assert_int_equal(err.code, ERR_NOT_FOUND);
	unlink(path);
	rmdir(folder);
}

int main(int argc, char **argv)
{
	if (argc == 2 && str_eq(argv[1], "report"))
		return child_report();
	ssize_t n = readlink("/proc/self/exe", self, sizeof(self) - 1);
	if (n < 0)
		return 1;
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(starts_with_an_exact_table), cmocka_unit_test(plain_start_has_no_session_and_no_death_signal),
		cmocka_unit_test(sources_and_targets_may_overlap), cmocka_unit_test(one_source_may_get_several_numbers),
		cmocka_unit_test(stdin_is_null_unless_kept), cmocka_unit_test(failing_exec_is_an_error_here),
		cmocka_unit_test(bad_descriptor_lists_are_refused), cmocka_unit_test(wait_tells_signals_and_codes),
		cmocka_unit_test(bounded_wait_gives_up_and_finds), cmocka_unit_test(children_survive_an_ignored_sigchld),
		cmocka_unit_test(death_signal_follows_the_parent), cmocka_unit_test(finds_programs),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
