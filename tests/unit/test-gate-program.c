/* SPDX-License-Identifier: Apache-2.0 */
/* The gate as it is shipped: its own process, confined. argv[1] of the test is the program. */
#include "gate-rig.h"

#include <errno.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/mem.h"
#include "program/bulkhead-gate/syscalls.h"
#include "program/common/confine.h"

#ifdef WITH_SANITIZER
enum { SANITIZED = true };
#else
enum { SANITIZED = false };
#endif

static const char *program;
static const struct rig_name names[] = { { "ok.example", "127.0.0.1" }, { "evil.example", "127.0.0.1" }, { NULL, NULL } };

#define SPARE_DESCRIPTORS 200u
#define RULES "[{ host: ok.example, ports: [@], private: true }]"

static struct rig *start(struct server **ret)
{
	struct rig *r = rig_start();
	*ret = rig_server(r, "127.0.0.1", 0);
	rig_run_program(r, program, RULES, NULL, names);
	return r;
}

/* The value of a line of /proc/PID/status. */
static void status_of(pid_t pid, const char *key, char out[128])
{
	char path[64], line[256];
	snprintf(path, sizeof(path), "/proc/%d/status", pid);
	FILE *f = fopen(path, "re");
	assert_non_null(f);
	out[0] = 0;
	while (fgets(line, sizeof(line), f))
		if (strncmp(line, key, strlen(key)) == 0 && line[strlen(key)] == ':')
			snprintf(out, 128, "%s", line + strlen(key) + 2);
	fclose(f);
	for (size_t n = strlen(out); n && strchr(" \n", out[n - 1]); n--)
		out[n - 1] = 0;
}

static int exit_status(struct rig *r)
{
	int status;
	assert_int_equal(waitpid(r->child, &status, 0), r->child);
	r->child = 0;
	return status;
}

static void flows_pass_through_the_confined_program(void **state)
{
	struct server *s;
	struct rig *r = start(&s);
	char text[256];
	s->reply_after = "\r\n\r\n";
	s->reply = "HTTP/1.1 200 OK\r\n\r\nhi";
	struct client *c = rig_open_proxy(r);
	snprintf(text, sizeof(text), "GET http://ok.example:%u/ HTTP/1.1\r\nHost: ok.example:%u\r\n\r\n", s->port, s->port);
	client_say(c, text);
	RIG_WAIT(r, c->eof);
	assert_true(client_has(c, "200 OK"));
	assert_true(r->dns_questions > 0);
	unsigned questions = r->dns_questions;
	struct client *d = rig_open_proxy(r);
	client_say(d, "CONNECT evil.example:443 HTTP/1.1\r\n\r\n");
	RIG_WAIT(r, d->eof);
	assert_true(client_has(d, "Bulkhead-Reason: no_rule"));
	assert_int_equal(r->dns_questions, questions);
	rig_finish(r);
	assert_int_equal(r->totals.allowed, 1);
	assert_int_equal(r->totals.denied, 1);
	rig_hang_up(r);
	assert_int_equal(exit_status(r), 0);
	rig_free(r);
}

static void it_is_confined_before_it_says_ready(void **state)
{
	struct server *s;
	struct rig *r = start(&s);
	char value[128];
	status_of(r->child, "NoNewPrivs", value);
	assert_string_equal(value, "1");
	status_of(r->child, "CapEff", value);
	assert_string_equal(value, "0000000000000000");
	status_of(r->child, "CapPrm", value);
	assert_string_equal(value, "0000000000000000");
	status_of(r->child, "Seccomp", value);
	assert_string_equal(value, SANITIZED ? "0" : "2");
	if (geteuid() == 0) {
		status_of(r->child, "Uid", value);
		assert_string_equal(value, "65534\t65534\t65534\t65534");
		status_of(r->child, "Groups", value);
		assert_string_equal(value, "");
	}
	rig_free(r);
}

static long resident_kib(pid_t pid)
{
	char value[128];
	status_of(pid, "VmRSS", value);
	return atol(value);
}

/* How many flows may stand at once: the gate needs two descriptors for each, and so does this process, which has both ends. */
static unsigned flows_possible(unsigned wanted)
{
	struct rlimit r;
	assert_int_equal(getrlimit(RLIMIT_NOFILE, &r), 0);
	rlim_t enough = 2 * wanted + SPARE_DESCRIPTORS;
	struct rlimit more = { .rlim_cur = enough, .rlim_max = r.rlim_max < enough ? enough : r.rlim_max };
	if (setrlimit(RLIMIT_NOFILE, &more) == 0)
		return wanted;
	r.rlim_cur = r.rlim_max;
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &r), 0);
	return r.rlim_max < SPARE_DESCRIPTORS ? 0 : (unsigned)(r.rlim_max - SPARE_DESCRIPTORS) / 2;
}

static void idle_tunnels_take_little(void **state)
{
	enum { TUNNELS = 10000, AT_LEAST = 1000, AT_ONCE = 100, BYTES_EACH = 2048 };
	unsigned tunnels = SANITIZED ? 0 : flows_possible(TUNNELS) / AT_ONCE * AT_ONCE;
	if (tunnels < AT_LEAST) {
		print_message("skipped: %s\n", SANITIZED ? "memory under sanitizers says nothing" : "the limit of open files (ulimit -Hn) is too low");
		skip();
	}
	struct rig *r = rig_start();
	struct server *s = rig_server(r, "127.0.0.1", 0);
	s->echo = true;
	rig_run_program(r, program, RULES, "{ connections: 65536, egress_requests: unlimited }", names);
	long start_kib = resident_kib(r->child);
	struct client *first = NULL, *last = NULL;
	for (unsigned i = 0; i < tunnels; i += AT_ONCE) {
		struct client *batch[AT_ONCE];
		for (unsigned k = 0; k < AT_ONCE; k++) {
			batch[k] = rig_open_name(r, "ok.example", s->port);
			client_say(batch[k], "x\n");
		}
		for (unsigned k = 0; k < AT_ONCE; k++)
			RIG_WAIT(r, client_has(batch[k], "x\n"));
		first = first ? first : batch[0];
		last = batch[AT_ONCE - 1];
	}
	assert_int_equal(s->n_peers, tunnels);
	long grown = resident_kib(r->child) - start_kib;
	print_message("%u idle tunnels: %ld KiB, %ld bytes each\n", tunnels, grown, grown * 1024 / tunnels);
	assert_true(grown * 1024 < (long)tunnels * BYTES_EACH);
	client_say(first, "still\n");
	client_say(last, "there\n");
	RIG_WAIT(r, client_has(first, "still") && client_has(last, "there"));
	rig_free(r);
}

static void it_ends_with_its_supervisor(void **state)
{
	struct server *s;
	struct rig *r = start(&s);
	s->echo = true;
	struct client *c = rig_open_name(r, "ok.example", s->port);
	client_say(c, "x\n");
	RIG_WAIT(r, client_has(c, "x"));
	rig_hang_up(r);
	RIG_WAIT(r, c->eof && s->peers->eof);
	assert_int_equal(exit_status(r), 0);
	RIG_WAIT(r, rig_count(r, "egress.end") == 1);
	rig_free(r);
}

static void broken_messages_end_it(void **state)
{
	static const struct { const void *p; size_t len; } cases[] = {
		{ "\0\0\0\4", 4 },                  /* FINISH before CONFIG */
		{ "\0\0\0\1" "\0\0\0\0\0\0\0\2" "\0\0\0\0" "\0\0\0\x0c" "abcdefghijkl" "\0\0\0\0", 36 }, /* no policy beside it */
		{ "\0\0\0\1", 4 }, { "x", 1 }, { "\0\0\0\x63", 4 },
	};
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		struct rig *r = rig_start();
		rig_server(r, "127.0.0.1", 0);
		rig_run_program(r, program, NULL, NULL, names);
		rig_send_raw(r, cases[i].p, cases[i].len);
		int status = exit_status(r);
		assert_true(WIFEXITED(status));
		assert_int_equal(WEXITSTATUS(status), 125);
		rig_free(r);
	}
	/* after CONFIG: an OPEN without its socket, a second CONFIG */
	struct server *s;
	struct rig *r = start(&s);
	rig_send_raw(r, "\0\0\0\3\0\0\0\0\0\0\0\1\3\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0", 36);
	int status = exit_status(r);
	assert_int_equal(WEXITSTATUS(status), 125);
	rig_free(r);
}

/* ---- each protection by itself, in a child that has put only it on ---- */

enum outcome { REFUSED, KILLED };

/* Runs `attempt` behind `protect`; it returns 0 or an errno. */
static void assert_outcome(int (*protect)(struct err *err), int (*attempt)(void), enum outcome want, const char *what)
{
	fflush(NULL);
	pid_t pid = fork();
	if (pid == 0) {
		struct err err;
		_exit(confine_begin(&err) < 0 || protect(&err) < 0 ? 99 : attempt() == 0 ? 0 : 1);
	}
	int status;
	assert_int_equal(waitpid(pid, &status, 0), pid);
	bool killed = WIFSIGNALED(status) && WTERMSIG(status) == SIGSYS, refused = WIFEXITED(status) && WEXITSTATUS(status) == 1;
	if (want == KILLED ? !killed : !refused)
		fail_msg("%s was not stopped (status %#x)", what, (unsigned)status);
}

static int errno_of(long r) { return r < 0 ? errno : 0; }
static int try_open(void) { return errno_of(open("/etc/passwd", O_RDONLY | O_CLOEXEC)); }
static int try_folder(void) { return errno_of(open("/", O_RDONLY | O_DIRECTORY | O_CLOEXEC)); }
static int try_unix(void) { return errno_of(socket(AF_UNIX, SOCK_STREAM, 0)); }
static int try_netlink(void) { return errno_of(socket(AF_NETLINK, SOCK_RAW, 0)); }
static int try_raw(void) { return errno_of(socket(AF_INET, SOCK_RAW, 1)); }
static int try_packet(void) { return errno_of(socket(AF_PACKET, SOCK_RAW, 0)); }
static int try_vsock(void) { return errno_of(socket(AF_VSOCK, SOCK_STREAM, 0)); }
static int try_alg(void) { return errno_of(socket(AF_ALG, SOCK_SEQPACKET, 0)); }
static int try_exec(void) { return errno_of(execl("/bin/true", "true", (char *)NULL)); }
static int try_fork(void) { return errno_of(syscall(SYS_clone, SIGCHLD, 0, 0, 0, 0)); }
static int try_kill(void) { return errno_of(kill(getppid(), 0)); }
static int try_ptrace(void) { return errno_of(ptrace(PTRACE_TRACEME, 0, 0, 0)); }
static int try_code(void) { return mmap(NULL, 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0) == MAP_FAILED ? errno : 0; }
static int try_protect(void) { return errno_of(mprotect((void *)((uintptr_t)&program & ~4095ul), 4096, PROT_READ | PROT_EXEC)); }
static int try_listen(void) { return errno_of(listen(socket(AF_INET, SOCK_STREAM, 0), 1)); }
static int try_unshare(void) { return errno_of(unshare(CLONE_NEWUSER)); }
static int try_uring(void) { return errno_of(syscall(SYS_io_uring_setup, 1, NULL)); }

static void system_calls_outside_the_list_are_stopped(void **state)
{
	if (SANITIZED)
		skip(); /* the sanitizers' runtimes need other calls: such a build has no list */
	static const struct { const char *what; int (*attempt)(void); enum outcome want; } cases[] = {
		{ "open", try_open, REFUSED }, { "a unix socket", try_unix, REFUSED }, { "a netlink socket", try_netlink, REFUSED },
		{ "a raw socket", try_raw, REFUSED }, { "a packet socket", try_packet, REFUSED }, { "a vsock socket", try_vsock, REFUSED },
		{ "an algorithm socket", try_alg, REFUSED }, { "exec", try_exec, KILLED }, { "fork", try_fork, KILLED }, { "kill", try_kill, KILLED },
		{ "ptrace", try_ptrace, KILLED }, { "executable memory", try_code, KILLED }, { "mprotect", try_protect, KILLED },
		{ "listen", try_listen, KILLED }, { "unshare", try_unshare, KILLED }, { "io_uring", try_uring, KILLED },
	};
	for (size_t i = 0; i < ARRAY_LEN(cases); i++)
		assert_outcome(syscalls_restrict, cases[i].attempt, cases[i].want, cases[i].what);
}

static void paths_are_closed_without_the_list_too(void **state)
{
	if (syscall(SYS_landlock_create_ruleset, NULL, 0, 1) <= 0)
		skip(); /* a kernel without Landlock */
	assert_outcome(confine_close_paths, try_open, REFUSED, "opening a file");
	assert_outcome(confine_close_paths, try_folder, REFUSED, "opening a folder");
	assert_outcome(confine_close_paths, try_exec, REFUSED, "executing");
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(flows_pass_through_the_confined_program),
		cmocka_unit_test(it_is_confined_before_it_says_ready),
		cmocka_unit_test(idle_tunnels_take_little),
		cmocka_unit_test(it_ends_with_its_supervisor),
		cmocka_unit_test(broken_messages_end_it),
		cmocka_unit_test(system_calls_outside_the_list_are_stopped),
		cmocka_unit_test(paths_are_closed_without_the_list_too),
	};
	if (argc != 2) {
		fprintf(stderr, "usage: %s GATE-PROGRAM\n", argv[0]);
		return 2;
	}
	program = argv[1];
	return cmocka_run_group_tests(tests, NULL, NULL);
}
