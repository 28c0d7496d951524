/* SPDX-License-Identifier: Apache-2.0 */
/* bulkhead-audit as it is started: what it has given up by the time it answers, and that nothing but its sources ends it. */
#include "unit/audit-fixture.h"

#include <dirent.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>

#include "audit/client.h"
#include "audit/start.h"
#include "event/child.h"

#define WAIT_NS (20 * NS_PER_S)

struct running {
	struct audit_process p;
	struct loop *loop;
	struct audit_client *supervisor, *gate, *upstream;
};

static void start(struct running *r, int dirfd)
{
	struct err err = ERR_INIT;
	if (audit_start(dirfd, true, true, &r->p, &err) < 0)
		fail_msg("%s", err.text);
	r->loop = loop_new();
	r->supervisor = audit_client_new(r->loop, r->p.supervisor_fd, NULL, NULL);
	r->gate = audit_client_new(r->loop, r->p.gate_fd, NULL, NULL);
	r->upstream = audit_client_new(r->loop, r->p.upstream_fd, NULL, NULL);
	assert_int_equal(audit_client_send(r->supervisor, AUDIT_SANDBOX_START, fields_start(), NULL, 0, NULL, NULL, &err), 0);
	if (audit_client_drain(r->supervisor, WAIT_NS, &err) < 0)
		fail_msg("%s", err.text);
}

static void record_end(struct running *r)
{
	struct err err = ERR_INIT;
	assert_int_equal(audit_client_send(r->supervisor, AUDIT_SANDBOX_END, fields_end(), NULL, 0, NULL, NULL, &err), 0);
	if (audit_client_drain(r->supervisor, WAIT_NS, &err) < 0)
		fail_msg("%s", err.text);
}

static int end(struct running *r)
{
	int status;
	audit_client_free(r->upstream);
	audit_client_free(r->gate);
	audit_client_free(r->supervisor);
	assert_int_equal(child_wait(r->p.pidfd, &status), 0);
	close(r->p.pidfd);
	loop_free(r->loop);
	return status;
}

static void read_proc(pid_t pid, const char *name, char *out, size_t len)
{
	char path[64];
	snprintf(path, sizeof(path), "/proc/%d/%s", (int)pid, name);
	cleanup_fd int fd = open(path, O_RDONLY | O_CLOEXEC);
	ssize_t n = read(fd, out, len - 1);
	assert_true(n > 0);
	out[n] = '\0';
}

static void expect_line(const char *text, const char *line)
{
	if (!strstr(text, line))
		fail_msg("there is no \"%s\" in:\n%s", line, text);
}

static void test_confined(void **state)
{
	struct folder *f = *state;
	struct running r;
	char text[8192];
	start(&r, f->fd);
	read_proc(r.p.pid, "status", text, sizeof(text));
	expect_line(text, "\nNoNewPrivs:\t1\n");
	expect_line(text, "\nCapInh:\t0000000000000000\n");
	expect_line(text, "\nCapPrm:\t0000000000000000\n");
	expect_line(text, "\nCapEff:\t0000000000000000\n");
	expect_line(text, "\nCapAmb:\t0000000000000000\n");
#ifndef WITH_SANITIZER
	expect_line(text, "\nSeccomp:\t2\n");
#endif
	if (geteuid() == 0) {
		expect_line(text, "\nUid:\t65534\t65534\t65534\t65534\n");
		expect_line(text, "\nGid:\t65534\t65534\t65534\t65534\n");
		expect_line(text, "\nGroups:\t \n");
	}
	read_proc(r.p.pid, "limits", text, sizeof(text));
	expect_line(text, "Max open files            16                   16 ");
	expect_line(text, "Max core file size        0                    0 ");
	record_end(&r);
	assert_int_equal(end(&r), 0);
}

static void test_descriptors(void **state)
{
	struct folder *f = *state;
	struct running r;
	char path[64];
	unsigned sockets = 0, files = 0, others = 0;
	start(&r, f->fd);
	snprintf(path, sizeof(path), "/proc/%d/fd", (int)r.p.pid);
	DIR *d = opendir(path);
	/* Not dumpable: only root can look. */
	if (!d) {
		record_end(&r);
		end(&r);
		skip();
	}
	for (struct dirent *e; (e = readdir(d));) {
		char target[256] = "";
		if (e->d_name[0] == '.' || atoi(e->d_name) <= 2)
			continue;
		if (readlinkat(dirfd(d), e->d_name, target, sizeof(target) - 1) < 0)
			continue;
		if (str_starts(target, "socket:"))
			sockets++;
		else if (str_ends(target, "/" RECORD_FILE) || str_ends(target, "/" RECORD_BLOB_FILE))
			files++;
		else
			others++;
	}
	closedir(d);
	assert_int_equal(sockets, 3);
	assert_int_equal(files, 2);
	assert_int_equal(others, 0);
	record_end(&r);
	assert_int_equal(end(&r), 0);
}

static void test_signals_dont_end_it(void **state)
{
	static const int signals[] = { SIGTERM, SIGINT, SIGHUP, SIGQUIT, SIGPIPE };
	struct folder *f = *state;
	struct running r;
	start(&r, f->fd);
	/* As root the auditor is another user by now, as an ordinary one it is ours. */
	for (size_t i = 0; i < ARRAY_LEN(signals); i++)
		assert_int_equal(kill(r.p.pid, signals[i]), 0);
	record_end(&r);
	assert_int_equal(end(&r), 0);
	struct record_verdict v = verdict_of(f->fd);
	assert_true(v.intact && v.complete && !v.lost);
}

/* Killed itself: what it had answered is there, the next one goes on behind it. */
static void test_killed(void **state)
{
	struct folder *f = *state;
	struct running r;
	struct err err = ERR_INIT;
	start(&r, f->fd);
	assert_int_equal(kill(r.p.pid, SIGKILL), 0);
	assert_int_equal(audit_client_drain(r.supervisor, WAIT_NS, &err), 0);
	end(&r);
	struct record_verdict v = verdict_of(f->fd);
	assert_true(v.intact && !v.complete);
	assert_int_equal(v.records, 1);
	start(&r, f->fd);
	record_end(&r);
	assert_int_equal(end(&r), 0);
	v = verdict_of(f->fd);
	assert_true(v.intact && v.complete);
	assert_int_equal(v.records, 3);
}

/* A torn end is cut off, and the record says so. */
static void test_says_what_it_cut(void **state)
{
	struct folder *f = *state;
	struct running r;
	put_file(f->fd, RECORD_FILE, "{\"data\":", 8);
	start(&r, f->fd);
	record_end(&r);
	assert_int_equal(end(&r), 0);
	expect_lost(f->fd, "auditor", "torn", 1);
}

/* A damaged record isn't built on, and its user is told at once and why. */
static void test_refuses_damaged(void **state)
{
	struct folder *f = *state;
	struct err err = ERR_INIT;
	struct running r;
	put_file(f->fd, RECORD_FILE, "{}\n", 3);
	assert_int_equal(audit_start(f->fd, false, false, &r.p, &err), 0);
	r.loop = loop_new();
	r.gate = r.upstream = NULL;
	r.supervisor = audit_client_new(r.loop, r.p.supervisor_fd, NULL, NULL);
	if (audit_client_send(r.supervisor, AUDIT_SANDBOX_START, fields_start(), NULL, 0, NULL, NULL, &err) == 0)
		assert_int_equal(audit_client_drain(r.supervisor, WAIT_NS, &err), -1);
	assert_int_not_equal(end(&r), 0);
	size_t len;
	char *text = slurp(f->fd, RECORD_FILE, &len);
	assert_string_equal(text, "{}\n");
	mem_free(text);
}

int main(void)
{
	signal(SIGPIPE, SIG_IGN);
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_confined, folder_make, folder_remove),
		cmocka_unit_test_setup_teardown(test_descriptors, folder_make, folder_remove),
		cmocka_unit_test_setup_teardown(test_signals_dont_end_it, folder_make, folder_remove),
		cmocka_unit_test_setup_teardown(test_killed, folder_make, folder_remove),
		cmocka_unit_test_setup_teardown(test_says_what_it_cut, folder_make, folder_remove),
		cmocka_unit_test_setup_teardown(test_refuses_damaged, folder_make, folder_remove),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
