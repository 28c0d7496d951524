/* SPDX-License-Identifier: Apache-2.0 */
/* The upstream half as it is shipped: its own process, confined. argv[1] of the test is the program. */
#include "upstream-rig.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/ptrace.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/mem.h"
#include "gate/upstream-link.h"
#include "program/bulkhead-upstream/syscalls.h"
#include "program/common/confine.h"

#ifdef WITH_SANITIZER
enum { SANITIZED = true };
#else
enum { SANITIZED = false };
#endif

#define VALUE "s3cr3t-value-0001"
#define RULES "[{ host: 127.0.0.1, ports: [@0], private: true, ca: rig.pem, secret: { name: key, header: Authorization } }," \
	      " { host: 127.0.0.1, ports: [@1], private: true, ca: rig.pem, secret: { name: minted, header: Authorization } }]"

static const char *program;
static const char *const secrets[] = { "key", "minted", NULL };

static struct urig *start(struct user **ret)
{
	struct urig *r = urig_new();
	*ret = urig_server(r, r->mint, "127.0.0.1", "h2,http/1.1");
	urig_server(r, r->mint, "127.0.0.1", "http/1.1");
	urig_run_program(r, program, RULES, secrets);
	return r;
}

static const char *at(const struct user *s)
{
	static char authority[64];
	snprintf(authority, sizeof(authority), "127.0.0.1:%u", s->port);
	return authority;
}

static void open_flow(struct urig *r, uint64_t flow, const struct user *s)
{
	struct call *c = urig_open(r, flow, "https", at(s), "h2,http/1.1");
	URIG_WAIT(r, c->answered || c->closed);
	if (c->head.status != 200)
		fail_msg("refused: %s %s", call_field(c, LINK_FIELD_REASON), call_field(c, LINK_FIELD_DETAIL));
}

static struct call *ask(struct urig *r, uint64_t flow, const struct user *s, unsigned secret)
{
	char line[256];
	snprintf(line, sizeof(line), "authorization: Bearer %s", r->placeholders[secret]);
	const char *fields[] = { line, NULL };
	return urig_request(r, flow, "GET", "https", at(s), "/", fields, NULL, 0);
}

static int exit_status(struct urig *r)
{
	int status;
	assert_int_equal(waitpid(r->child, &status, 0), r->child);
	r->child = 0;
	return status;
}

/* Everything that it may have to do, it can do confined: files and pipes it is handed, both versions, another policy, revocation. */
static void all_of_it_works_confined(void **state)
{
	struct user *s;
	struct urig *r = start(&s);
	urig_secret(r, "key", VALUE, 1);
	assert_true(r->loaded.ok);
	urig_helper_secret(r, "minted");
	assert_true(r->loaded.ok);
	s->script = (struct script){ .status = 200, .body = "<" VALUE ">", .len = strlen(VALUE) + 2 };
	open_flow(r, 1, s);
	open_flow(r, 2, s->next);
	struct call *c = ask(r, 1, s, 0);
	URIG_WAIT(r, c->closed);
	assert_string_equal(served_field(s->served, "authorization"), "Bearer " VALUE);
	assert_int_equal(c->body.len, strlen(VALUE) + 2);
	assert_false(call_has(c, VALUE));
	c = ask(r, 2, s->next, 1);
	URIG_WAIT(r, r->n_help == 1);
	urig_helped(r, r->help.call, "{\"value\": \"minted-token-1\", \"expires_in\": 600}");
	URIG_WAIT(r, c->closed);
	assert_string_equal(served_field(s->next->served, "authorization"), "Bearer minted-token-1");
	urig_secret(r, "key", "rotated-value-2", 2);
	urig_revoke(r, "minted");
	urig_policy(r, RULES);
	c = ask(r, 1, s, 0);
	URIG_WAIT(r, c->closed);
	assert_string_equal(served_field(s->served, "authorization"), "Bearer rotated-value-2");
	fd_close(&r->control);
	r->control_io = loop_io_remove(r->control_io);
	URIG_WAIT(r, r->link_closed);
	assert_int_equal(exit_status(r), 0);
	urig_free(r);
}

static void status_of(pid_t pid, const char *key, char out[128])
{
	char path[64], line[256];
	snprintf(path, sizeof(path), "/proc/%d/status", pid);
	FILE *f = fopen(path, "re");
	assert_non_null(f);
	out[0] = 0;
	while (fgets(line, sizeof(line), f))
		if (strncmp(line, key, strlen(key)) == 0 && line[strlen(key)] == ':')
			snprintf(out, 128, "%.*s", (int)strcspn(line + strlen(key) + 2, "\n"), line + strlen(key) + 2);
	fclose(f);
}

static void it_is_confined_before_it_says_ready(void **state)
{
	struct user *s;
	struct urig *r = start(&s);
	char value[128];
	status_of(r->child, "NoNewPrivs", value);
	assert_string_equal(value, "1");
	status_of(r->child, "CapEff", value);
	assert_string_equal(value, "0000000000000000");
	status_of(r->child, "Seccomp", value);
	assert_string_equal(value, SANITIZED ? "0" : "2");
	if (geteuid() == 0) {
		status_of(r->child, "Uid", value);
		assert_string_equal(value, "65534\t65534\t65534\t65534");
	}
	urig_free(r);
}

/* How often the text stands in the program's memory. */
static size_t copies_in_memory(pid_t pid, const char *text)
{
	char path[64], line[512];
	size_t n = 0;
	snprintf(path, sizeof(path), "/proc/%d/mem", pid);
	int mem = open(path, O_RDONLY | O_CLOEXEC);
	snprintf(path, sizeof(path), "/proc/%d/maps", pid);
	FILE *maps = fopen(path, "re");
	assert_non_null(maps);
	assert_true(mem >= 0);
	while (fgets(line, sizeof(line), maps)) {
		unsigned long from, to;
		char mode[8];
		assert_int_equal(sscanf(line, "%lx-%lx %7s", &from, &to, mode), 3);
		char *bytes = mode[0] == 'r' ? mem_alloc(to - from) : NULL;
		ssize_t got = bytes ? pread(mem, bytes, to - from, (off_t)from) : 0;
		for (char *p = bytes, *end = bytes + (got > 0 ? got : 0); p && (p = memmem(p, (size_t)(end - p), text, strlen(text))); p++)
			n++;
		mem_free(bytes);
	}
	fclose(maps);
	fd_close(&mem);
	return n;
}

/* Sent over both versions, and then revoked: no copy is left, in freed memory neither. */
static void a_revoked_secret_leaves_no_copy(void **state)
{
	if (SANITIZED || geteuid() != 0)
		skip(); /* freed memory is kept in quarantine there; others' memory can be read by root alone */
	for (size_t http1 = 0; http1 < 2; http1++) {
		struct user *s;
		struct urig *r = start(&s);
		s->alpn = http1 ? "http/1.1" : "h2,http/1.1";
		urig_secret(r, "key", VALUE, 1);
		assert_true(copies_in_memory(r->child, VALUE) > 0); /* the test can see it */
		open_flow(r, 1, s);
		struct call *c = ask(r, 1, s, 0);
		URIG_WAIT(r, c->closed);
		assert_string_equal(served_field(s->served, "authorization"), "Bearer " VALUE);
		urig_settle(r);
		urig_revoke(r, "key");
		c = ask(r, 1, s, 0);
		URIG_WAIT(r, c->answered);
		urig_settle(r);
		assert_int_equal(copies_in_memory(r->child, VALUE), 0);
		urig_free(r);
	}
}

static void broken_messages_end_it(void **state)
{
	static const struct { const void *p; size_t len; } cases[] = {
		{ "\0\0\0\4\0\0\0\3key", 11 }, /* REVOKE before CONFIG */
		{ "\0\0\0\1", 4 }, { "x", 1 }, { "\0\0\0\x63", 4 },
	};
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		struct urig *r = urig_new();
		struct buf b;
		urig_run_program(r, program, NULL, NULL);
		buf_init(&b, 64);
		buf_append(&b, cases[i].p, cases[i].len);
		urig_send(r, &b, NULL, 0);
		int status = exit_status(r);
		assert_true(WIFEXITED(status));
		assert_int_equal(WEXITSTATUS(status), 125);
		urig_free(r);
	}
}

/* ---- each call by itself, behind the list alone ---- */

static int errno_of(long r) { return r < 0 ? errno : 0; }
static int try_open(void) { return errno_of(open("/etc/passwd", O_RDONLY | O_CLOEXEC)); }
static int try_unix(void) { return errno_of(socket(AF_UNIX, SOCK_STREAM, 0)); }
static int try_netlink(void) { return errno_of(socket(AF_NETLINK, SOCK_RAW, 0)); }
static int try_raw(void) { return errno_of(socket(AF_INET, SOCK_RAW, 1)); }
static int try_exec(void) { return errno_of(execl("/bin/true", "true", (char *)NULL)); }
static int try_fork(void) { return errno_of(syscall(SYS_clone, SIGCHLD, 0, 0, 0, 0)); }
static int try_kill(void) { return errno_of(kill(getppid(), 0)); }
static int try_ptrace(void) { return errno_of(ptrace(PTRACE_TRACEME, 0, 0, 0)); }
static int try_code(void) { return mmap(NULL, 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0) == MAP_FAILED ? errno : 0; }
static int try_make_code(void) { return errno_of(mprotect((void *)((uintptr_t)&program & ~4095ul), 4096, PROT_READ | PROT_EXEC)); }
static int try_listen(void) { return errno_of(listen(socket(AF_INET, SOCK_STREAM, 0), 1)); }
static int try_memfd(void) { return errno_of(memfd_create("x", 0)); }
static int try_peek(void) { return errno_of(syscall(SYS_process_vm_readv, getppid(), NULL, 0, NULL, 0, 0)); }

static void assert_stopped(int (*attempt)(void), bool killed, const char *what)
{
	fflush(NULL);
	pid_t pid = fork();
	if (pid == 0) {
		struct err err;
		_exit(confine_begin(&err) < 0 || syscalls_restrict(&err) < 0 ? 99 : attempt() == 0 ? 0 : 1);
	}
	int status;
	assert_int_equal(waitpid(pid, &status, 0), pid);
	if (killed ? !(WIFSIGNALED(status) && WTERMSIG(status) == SIGSYS) : !(WIFEXITED(status) && WEXITSTATUS(status) == 1))
		fail_msg("%s was not stopped (status %#x)", what, (unsigned)status);
}

static void system_calls_outside_the_list_are_stopped(void **state)
{
	if (SANITIZED)
		skip(); /* such a build has no list */
	static const struct { const char *what; int (*attempt)(void); bool killed; } cases[] = {
		{ "open", try_open, false }, { "a unix socket", try_unix, false }, { "a netlink socket", try_netlink, false }, { "a raw socket", try_raw, false },
		{ "exec", try_exec, true }, { "fork", try_fork, true }, { "kill", try_kill, true }, { "ptrace", try_ptrace, true },
		{ "executable memory", try_code, true }, { "memory made executable", try_make_code, true }, { "listen", try_listen, true },
		{ "a memory file", try_memfd, true }, { "another's memory", try_peek, true },
	};
	for (size_t i = 0; i < ARRAY_LEN(cases); i++)
		assert_stopped(cases[i].attempt, cases[i].killed, cases[i].what);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(all_of_it_works_confined),
		cmocka_unit_test(it_is_confined_before_it_says_ready),
		cmocka_unit_test(a_revoked_secret_leaves_no_copy),
		cmocka_unit_test(broken_messages_end_it),
		cmocka_unit_test(system_calls_outside_the_list_are_stopped),
	};
	if (argc != 2) {
		fprintf(stderr, "usage: %s UPSTREAM-PROGRAM\n", argv[0]);
		return 2;
	}
	program = argv[1];
	return cmocka_run_group_tests(tests, NULL, NULL);
}
