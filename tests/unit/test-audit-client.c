/* SPDX-License-Identifier: Apache-2.0 */
/* The client against the auditor's own loop in a child process, and against a made-up auditor that misbehaves. */
#include "unit/audit-fixture.h"

#include <errno.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>

#include "audit/client.h"
#include "audit/message.h"
#include "audit/serve.h"

#define WAIT_NS (20 * NS_PER_S)

struct seen {
	struct audit_client *client;
	unsigned done, failed, lost, room;
	unsigned done_when_lost; /* callbacks made before on_lost */
	uint64_t last_seq;
	struct err why;
	bool free_in_done;
};

static void on_done(void *ctx, uint64_t seq, const struct err *err)
{
	struct seen *s = ctx;
	if (err) {
		s->failed++;
		assert_int_equal(seq, 0);
	} else {
		s->done++;
		assert_true(seq > s->last_seq);
		s->last_seq = seq;
	}
	if (s->free_in_done) {
		s->free_in_done = false;
		audit_client_free(s->client);
		s->client = NULL;
	}
}

static void on_lost(void *ctx, const struct err *err)
{
	struct seen *s = ctx;
	s->lost++;
	s->done_when_lost = s->done + s->failed;
	s->why = *err;
}

static void on_room(void *ctx)
{
	((struct seen *)ctx)->room++;
}

static void make_pair(int pair[2])
{
	assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair), 0);
}

static int send_signal_event(struct seen *s, struct err *err)
{
	return audit_client_send(s->client, AUDIT_SIGNAL, fields_signal(1), NULL, 0, on_done, s, err);
}

static int send_output(struct seen *s, size_t len, struct err *err)
{
	static char blob[AUDIT_BLOB_MAX + 1];
	return audit_client_send(s->client, AUDIT_OUTPUT, fields_output(len), blob, len, on_done, s, err);
}

/* ---- a real auditor ---- */

struct auditor {
	pid_t pid;
	int supervisor, gate, upstream; /* upstream: -1 without one */
};

static int serve_in_child(int dirfd, const struct audit_sockets *sockets, uint64_t file_limit)
{
	struct rlimit limit = { file_limit, RLIM_INFINITY };
	struct record_writer *w = NULL;
	struct err err;
	uint64_t cut;
	signal(SIGXFSZ, SIG_IGN);
	if (record_writer_open(dirfd, &w, &cut, &err) < 0 || (file_limit && setrlimit(RLIMIT_FSIZE, &limit) < 0))
		return 2;
	int r = audit_serve(w, sockets, cut, &err);
	record_writer_free(w);
	return r < 0 ? 1 : 0;
}

static struct auditor start_auditor_with(int dirfd, uint64_t file_limit, bool with_upstream)
{
	int supervisor[2], gate[2], upstream[2] = { -1, -1 };
	make_pair(supervisor);
	make_pair(gate);
	if (with_upstream)
		make_pair(upstream);
	pid_t pid = fork();
	if (pid == 0) {
		close(supervisor[0]);
		close(gate[0]);
		fd_close(&upstream[0]);
		struct audit_sockets sockets = { supervisor[1], gate[1], upstream[1] };
		_exit(serve_in_child(dirfd, &sockets, file_limit));
	}
	close(supervisor[1]);
	close(gate[1]);
	fd_close(&upstream[1]);
	return (struct auditor){ pid, supervisor[0], gate[0], upstream[0] };
}

static struct auditor start_auditor(int dirfd, uint64_t file_limit)
{
	return start_auditor_with(dirfd, file_limit, false);
}

static int auditor_status(const struct auditor *a)
{
	int status;
	assert_int_equal(waitpid(a->pid, &status, 0), a->pid);
	assert_true(WIFEXITED(status));
	return WEXITSTATUS(status);
}

static void test_two_sources(void **state)
{
	struct folder *f = *state;
	struct auditor a = start_auditor(f->fd, 0);
	struct loop *loop = loop_new();
	struct seen sup = { 0 }, gate = { 0 };
	struct err err = ERR_INIT;
	sup.client = audit_client_new(loop, a.supervisor, on_lost, &sup);
	gate.client = audit_client_new(loop, a.gate, on_lost, &gate);
	for (unsigned i = 0; i < 100; i++) {
		assert_int_equal(
			audit_client_send(sup.client, AUDIT_SANDBOX_START, fields_start(), NULL, 0, on_done, &sup, &err), 0);
		assert_int_equal(
			audit_client_send(gate.client, AUDIT_EGRESS, fields_egress(), NULL, 0, on_done, &gate, &err), 0);
	}
	assert_int_equal(audit_client_drain(gate.client, WAIT_NS, &err), 0);
	audit_client_free(gate.client);
	assert_int_equal(audit_client_send(sup.client, AUDIT_SANDBOX_END, fields_end(), NULL, 0, on_done, &sup, &err), 0);
	while (audit_client_pending(sup.client) > 0)
		loop_run_once(loop, true);
	audit_client_free(sup.client);
	assert_int_equal(auditor_status(&a), 0);
	assert_int_equal(sup.done, 101);
	assert_int_equal(gate.done, 100);
	assert_int_equal(sup.lost + gate.lost, 0);
	struct record_verdict v = verdict_of(f->fd);
	assert_true(v.intact);
	assert_int_equal(v.records, 201);
	expect_lost(f->fd, "", "", 0);
	loop_free(loop);
}

static json_t *fields_use(void)
{
	return json_pack("{s:s, s:i, s:i, s:s, s:s}", "secret", "github", "generation", 1, "flow", 7, "host", "a.example", "place",
		"header:authorization");
}

/* The upstream half has its own socket, and is its own source; the record waits for it as for the others. */
static void test_three_sources(void **state)
{
	struct folder *f = *state;
	struct auditor a = start_auditor_with(f->fd, 0, true);
	struct loop *loop = loop_new();
	struct seen upstream = { 0 };
	struct err err = ERR_INIT;
	struct audit_client *sup = audit_client_new(loop, a.supervisor, NULL, NULL);
	assert_int_equal(audit_client_send(sup, AUDIT_SANDBOX_END, fields_end(), NULL, 0, NULL, NULL, &err), 0);
	audit_client_free(sup);
	audit_client_free(audit_client_new(loop, a.gate, NULL, NULL));
	upstream.client = audit_client_new(loop, a.upstream, on_lost, &upstream);
	for (unsigned i = 0; i < 50; i++)
		assert_int_equal(audit_client_send(upstream.client, AUDIT_SECRET_USE, fields_use(), NULL, 0, on_done, &upstream, &err), 0);
	assert_int_equal(audit_client_drain(upstream.client, WAIT_NS, &err), 0);
	audit_client_free(upstream.client);
	assert_int_equal(auditor_status(&a), 0);
	assert_int_equal(upstream.done, 50);
	struct record_verdict v = verdict_of(f->fd);
	assert_true(v.intact && v.complete && !v.lost);
	assert_int_equal(v.records, 51);
	loop_free(loop);
}

/* It can say what it did with secrets, and nothing of what the gate decides; gone without goodbye, it is lost under its own name. */
static void test_upstream_is_held_to_its_types(void **state)
{
	struct folder *f = *state;
	struct auditor a = start_auditor_with(f->fd, 0, true);
	struct loop *loop = loop_new();
	struct seen upstream = { 0 };
	struct err err = ERR_INIT;
	upstream.client = audit_client_new(loop, a.upstream, on_lost, &upstream);
	assert_int_equal(audit_client_send(upstream.client, AUDIT_EGRESS, fields_egress(), NULL, 0, on_done, &upstream, &err), 0);
	assert_int_equal(audit_client_drain(upstream.client, WAIT_NS, &err), -1);
	assert_int_equal(upstream.lost, 1);
	audit_client_free(upstream.client);
	close(a.gate);
	close(a.supervisor);
	assert_int_equal(auditor_status(&a), 0);
	expect_lost(f->fd, "upstream", "protocol", 3);

	a = start_auditor_with(f->fd, 0, true);
	close(a.upstream);
	close(a.gate);
	close(a.supervisor);
	assert_int_equal(auditor_status(&a), 0);
	expect_lost(f->fd, "upstream", "died", 5);
	loop_free(loop);
}

/* More than the ceiling, with on_room as the only brake: everything arrives, in order, byte for byte. */
static void test_back_pressure(void **state)
{
	struct folder *f = *state;
	struct auditor a = start_auditor(f->fd, 0);
	struct loop *loop = loop_new();
	struct seen s = { 0 };
	struct err err = ERR_INIT;
	const unsigned total = 300;
	unsigned sent = 0;
	s.client = audit_client_new(loop, a.supervisor, on_lost, &s);
	audit_client_on_room(s.client, on_room, &s);
	while (s.done < total) {
		while (sent < total && audit_client_room(s.client) >= AUDIT_MESSAGE_MAX) {
			assert_int_equal(send_output(&s, AUDIT_BLOB_MAX, &err), 0);
			sent++;
		}
		unsigned before = s.room;
		while (s.done < total && (sent == total || s.room == before))
			loop_run_once(loop, true);
	}
	close(a.gate);
	assert_true(s.room > 0);
	assert_int_equal(audit_client_send(s.client, AUDIT_SANDBOX_END, fields_end(), NULL, 0, NULL, NULL, &err), 0);
	audit_client_free(s.client);
	assert_int_equal(auditor_status(&a), 0);
	struct record_verdict v = verdict_of(f->fd);
	assert_true(v.intact);
	assert_int_equal(v.output_bytes, (uint64_t)total * AUDIT_BLOB_MAX);
	loop_free(loop);
}

/* What was sent before the goodbye is recorded even if nobody waited. (Closing with unread answers makes the kernel report a
 * reset first.) */
static void test_free_flushes(void **state)
{
	struct folder *f = *state;
	struct auditor a = start_auditor(f->fd, 0);
	struct loop *loop = loop_new();
	struct seen s = { 0 };
	struct err err = ERR_INIT;
	s.client = audit_client_new(loop, a.supervisor, on_lost, &s);
	for (unsigned i = 0; i < 100; i++)
		assert_int_equal(send_output(&s, AUDIT_BLOB_MAX / 2, &err), 0);
	assert_int_equal(audit_client_send(s.client, AUDIT_SANDBOX_END, fields_end(), NULL, 0, NULL, NULL, &err), 0);
	audit_client_free(s.client);
	close(a.gate);
	assert_int_equal(auditor_status(&a), 0);
	struct record_verdict v = verdict_of(f->fd);
	assert_int_equal(v.output_bytes, 50ull * AUDIT_BLOB_MAX);
	assert_int_equal(s.done + s.failed + s.lost, 0);
	expect_lost(f->fd, "gate", "died", 1);
	loop_free(loop);
}

static void test_supervisor_dies(void **state)
{
	struct folder *f = *state;
	struct auditor a = start_auditor(f->fd, 0);
	close(a.gate);
	pid_t pid = fork();
	if (pid == 0) {
		struct loop *loop = loop_new();
		struct seen s = { .client = audit_client_new(loop, a.supervisor, NULL, NULL) };
		struct err err;
		send_signal_event(&s, &err);
		kill(getpid(), SIGKILL);
	}
	close(a.supervisor);
	int status;
	waitpid(pid, &status, 0);
	assert_int_equal(auditor_status(&a), 0);
	struct lost_search l = { .source = "supervisor", .reason = "died" };
	struct record_verdict v;
	struct err err;
	assert_int_equal(record_read(f->fd, true, search_lost, &l, &v, &err), 0);
	assert_int_equal(l.found, 1);
	assert_true(v.intact && v.lost && !v.complete);
	assert_int_equal(v.records, 3); /* the signal, gate lost, supervisor lost */

	/* A second auditor, as `gc` starts it, has nothing to add. */
	a = start_auditor(f->fd, 0);
	close(a.supervisor);
	struct loop *loop = loop_new();
	audit_client_free(audit_client_new(loop, a.gate, NULL, NULL));
	assert_int_equal(auditor_status(&a), 0);
	assert_int_equal(verdict_of(f->fd).records, 3);
	loop_free(loop);
}

static void test_ends_early(void **state)
{
	struct folder *f = *state;
	struct auditor a = start_auditor(f->fd, 0);
	struct loop *loop = loop_new();
	audit_client_free(audit_client_new(loop, a.gate, NULL, NULL));
	audit_client_free(audit_client_new(loop, a.supervisor, NULL, NULL));
	assert_int_equal(auditor_status(&a), 0);
	expect_lost(f->fd, "supervisor", "ended early", 1);
	loop_free(loop);
}

/* The gate is the part that reads the most hostile bytes: taken over, it can lie about itself, and only about itself. */
static void test_gate_breaks_protocol(void **state)
{
	struct folder *f = *state;
	static const struct {
		const char *bytes;
		size_t len;
	} cases[] = {
#define WIRE(s) { s, sizeof(s) - 1 }
		WIRE("x"),
		WIRE("\0\0\0\x0d\0\0\0\x02{}"), /* sandbox.end is not the gate's */
		WIRE("\0\0\0\x0e\0\0\0\x02{}"), /* audit.lost is nobody's */
		WIRE("\0\0\0\x05\0\0\0\x02{}"), /* egress without its fields */
		WIRE("\0\0\0\x05\0\0\0\x20{}"), /* longer than it is */
		WIRE("\0\0\0\x05\0\0\0\x02[]"),
		WIRE("\0\0\0\x05\0\0\0\x03nul"),
		WIRE("\0\0\x01\0\0\0\0\x02{}"),
		WIRE("\xff\xff\xff\xff\0"), /* no goodbye with something behind it */
		WIRE("\0\0\0\x07\0\0\0\x3b{\"name\":\"a\",\"allow\":true,\"reason\":\"no\",\"count\":1,\"count\":2}"),
#undef WIRE
	};
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		uint8_t answer[AUDIT_ANSWER_MAX];
		char name[16];
		snprintf(name, sizeof(name), "%zu", i);
		assert_int_equal(mkdirat(f->fd, name, 0700), 0);
		cleanup_fd int dirfd = openat(f->fd, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
		struct auditor a = start_auditor(dirfd, 0);
		assert_int_equal(send(a.gate, cases[i].bytes, cases[i].len, 0), cases[i].len);
		ssize_t n = recv(a.gate, answer, sizeof(answer), 0);
		assert_true(n > 12);
		assert_int_equal(answer[3], AUDIT_FAILED);
		assert_int_equal(recv(a.gate, answer, sizeof(answer), 0), 0);
		close(a.gate);

		/* The supervisor goes on. */
		struct loop *loop = loop_new();
		struct seen s = { 0 };
		struct err err;
		s.client = audit_client_new(loop, a.supervisor, on_lost, &s);
		assert_int_equal(audit_client_send(s.client, AUDIT_SANDBOX_END, fields_end(), NULL, 0, on_done, &s, &err), 0);
		assert_int_equal(audit_client_drain(s.client, WAIT_NS, &err), 0);
		audit_client_free(s.client);
		assert_int_equal(auditor_status(&a), 0);
		assert_int_equal(s.lost, 0);
		expect_lost(dirfd, "gate", "protocol", 1);
		loop_free(loop);
	}
}

static void test_too_large_a_datagram(void **state)
{
	struct folder *f = *state;
	struct auditor a = start_auditor(f->fd, 0);
	int size = 1024 * 1024;
	char *big = mem_alloc(AUDIT_MESSAGE_MAX + 1);
	setsockopt(a.gate, SOL_SOCKET, SO_SNDBUF, &size, sizeof(size));
	assert_int_equal(send(a.gate, big, AUDIT_MESSAGE_MAX + 1, 0), AUDIT_MESSAGE_MAX + 1);
	mem_free(big);
	char c;
	assert_true(recv(a.gate, &c, 1, 0) == 1);
	close(a.gate);
	struct loop *loop = loop_new();
	struct seen s = { .client = audit_client_new(loop, a.supervisor, on_lost, &s) };
	struct err err;
	assert_int_equal(audit_client_send(s.client, AUDIT_SANDBOX_END, fields_end(), NULL, 0, NULL, NULL, &err), 0);
	audit_client_free(s.client);
	assert_int_equal(auditor_status(&a), 0);
	expect_lost(f->fd, "gate", "protocol", 1);
	loop_free(loop);
}

/* Both sources hear of a full disk, each event gets its answer, the log is whole. */
static void test_disk_full(void **state)
{
	struct folder *f = *state;
	struct auditor a = start_auditor(f->fd, 500001);
	struct loop *loop = loop_new();
	struct seen s = { 0 }, gate = { 0 };
	struct err err = ERR_INIT;
	s.client = audit_client_new(loop, a.supervisor, on_lost, &s);
	gate.client = audit_client_new(loop, a.gate, on_lost, &gate);
	unsigned sent = 0;
	for (; sent < 20; sent++)
		if (send_output(&s, AUDIT_BLOB_MAX, &err) < 0)
			break;
	while (!s.lost || !gate.lost)
		loop_run_once(loop, true);
	assert_int_equal(s.lost, 1);
	assert_int_equal(s.done + s.failed, sent);
	assert_int_equal(s.done, 3);
	assert_int_equal(s.done_when_lost, sent);
	assert_int_equal(s.why.code, ERR_SYSTEM);
	assert_int_equal(s.why.sys, EFBIG);
	assert_non_null(strstr(s.why.text, "record"));
	assert_int_equal(send_signal_event(&s, &err), -1);
	assert_int_equal(send_signal_event(&gate, &err), -1);
	audit_client_free(s.client);
	audit_client_free(gate.client);
	assert_int_equal(auditor_status(&a), 1);
	struct record_verdict v = verdict_of(f->fd);
	assert_true(v.intact && !v.torn && !v.complete);
	assert_int_equal(v.records, 3);
	loop_free(loop);
}

/* Answers that nobody reads: the auditor stops reading from that source, and the other goes on. */
static void test_unread_answers(void **state)
{
	struct folder *f = *state;
	struct auditor a = start_auditor(f->fd, 0);
	static const char event[] = "\0\0\0\x07\0\0\0\x31{\"name\":\"a\",\"allow\":true,\"reason\":\"no\",\"count\":1}";
	unsigned long sent = 0;
	/* 400,000 answers fill any socket buffer; then ours fills too. */
	for (unsigned quiet = 0; quiet < 20 && sent < 2000000;) {
		if (send(a.gate, event, sizeof(event) - 1, MSG_DONTWAIT) >= 0) {
			sent++;
			quiet = 0;
		} else {
			quiet++;
			usleep(10 * 1000);
		}
	}
	assert_true(sent < 2000000);
	struct loop *loop = loop_new();
	struct seen s = { .client = audit_client_new(loop, a.supervisor, on_lost, &s) };
	struct err err = ERR_INIT;
	assert_int_equal(send_signal_event(&s, &err), 0);
	assert_int_equal(audit_client_drain(s.client, WAIT_NS, &err), 0);
	/* It is gone now; what it had sent is still written. */
	close(a.gate);
	assert_int_equal(audit_client_send(s.client, AUDIT_SANDBOX_END, fields_end(), NULL, 0, NULL, NULL, &err), 0);
	audit_client_free(s.client);
	assert_int_equal(auditor_status(&a), 0);
	struct record_verdict v = verdict_of(f->fd);
	assert_true(v.intact);
	assert_int_equal(v.records, sent + 3);
	loop_free(loop);
}

/* ---- a made-up auditor ---- */

struct fake {
	int fd;
	struct loop *loop;
	struct seen s;
};

static void fake_start(struct fake *k)
{
	int pair[2];
	make_pair(pair);
	*k = (struct fake){ .fd = pair[1], .loop = loop_new() };
	k->s.client = audit_client_new(k->loop, pair[0], on_lost, &k->s);
}

static void fake_end(struct fake *k)
{
	audit_client_free(k->s.client);
	close(k->fd);
	loop_free(k->loop);
}

static void fake_answer(struct fake *k, const void *bytes, size_t len)
{
	assert_int_equal(send(k->fd, bytes, len, 0), len);
	loop_run_once(k->loop, true);
}

static void test_wrong_answers(void **state)
{
	static const struct {
		const char *bytes;
		size_t len;
	} cases[] = {
#define WIRE(s) { s, sizeof(s) - 1 }
		WIRE("x"),
		WIRE("\0\0\0\x09"),
		WIRE("\0\0\0\x01\0\0\0\0\0\0\0"),
		WIRE("\0\0\0\x01\0\0\0\0\0\0\0\x01\0\0\0\0\0\0\0\x02"), /* two for one */
		WIRE("\0\0\0\x02"),
		WIRE("\0\0\0\x02\0\0\0\0\0\0\0\0no reason"),
		WIRE("\0\0\0\x02\0\0\xff\xff\0\0\0\0bad code"),
#undef WIRE
	};
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		struct fake k;
		struct err err;
		fake_start(&k);
		assert_int_equal(send_signal_event(&k.s, &err), 0);
		fake_answer(&k, cases[i].bytes, cases[i].len);
		assert_int_equal(k.s.lost, 1);
		assert_int_equal(k.s.failed, 1);
		assert_int_equal(k.s.why.code, ERR_PROTOCOL);
		fake_end(&k);
	}
}

static void test_auditor_dies(void **state)
{
	struct fake k;
	struct err err;
	fake_start(&k);
	for (unsigned i = 0; i < 3; i++)
		assert_int_equal(send_signal_event(&k.s, &err), 0);
	close(k.fd);
	/* Seen while sending: told from the loop, not from inside. */
	assert_int_equal(send_signal_event(&k.s, &err), -1);
	assert_int_equal(k.s.lost, 0);
	while (!k.s.lost)
		loop_run_once(k.loop, true);
	assert_int_equal(k.s.lost, 1);
	assert_int_equal(k.s.failed, 3);
	assert_int_equal(k.s.why.code, ERR_CLOSED);
	assert_int_equal(audit_client_drain(k.s.client, WAIT_NS, &err), -1);
	k.fd = open("/dev/null", O_RDONLY | O_CLOEXEC);
	fake_end(&k);
}

/* An auditor that fails and goes while there is unread work: its reason is what is told, not a broken pipe. */
static void test_reason_before_reset(void **state)
{
	struct fake k;
	struct err err;
	fake_start(&k);
	for (unsigned i = 0; i < 3; i++)
		assert_int_equal(send_signal_event(&k.s, &err), 0);
	assert_int_equal(send(k.fd, "\0\0\0\x02\0\0\0\x01\0\0\0\x1cthe disk is full", 28, 0), 28);
	close(k.fd);
	while (!k.s.lost)
		loop_run_once(k.loop, true);
	assert_int_equal(k.s.failed, 3);
	assert_int_equal(k.s.why.code, ERR_SYSTEM);
	assert_string_equal(k.s.why.text, "the disk is full");
	k.fd = open("/dev/null", O_RDONLY | O_CLOEXEC);
	fake_end(&k);
}

static void test_free_inside_callback(void **state)
{
	struct fake k;
	struct err err;
	fake_start(&k);
	k.s.free_in_done = true;
	for (unsigned i = 0; i < 3; i++)
		assert_int_equal(send_signal_event(&k.s, &err), 0);
	fake_answer(&k, "\0\0\0\x01\0\0\0\0\0\0\0\x01\0\0\0\0\0\0\0\x02\0\0\0\0\0\0\0\x03", 28);
	assert_int_equal(k.s.done, 1);
	assert_int_equal(k.s.lost, 0);
	assert_null(k.s.client);
	fake_end(&k);
}

static void test_ceilings(void **state)
{
	struct fake k;
	struct err err = ERR_INIT;
	fake_start(&k);
	size_t room = audit_client_room(k.s.client);
	assert_int_equal(room, AUDIT_PENDING_MAX);
	assert_int_equal(send_output(&k.s, AUDIT_BLOB_MAX + 1, &err), -1);
	assert_int_equal(err.code, ERR_LIMIT);
	char *name = mem_alloc(AUDIT_MESSAGE_MAX + 1);
	memset(name, 'n', AUDIT_MESSAGE_MAX);
	json_t *fields = fields_signal(1);
	json_object_set_new(fields, "signal", json_string(name));
	assert_int_equal(audit_client_send(k.s.client, AUDIT_SIGNAL, fields, NULL, 0, NULL, NULL, &err), -1);
	assert_int_equal(err.code, ERR_LIMIT);
	assert_int_equal(audit_client_send(k.s.client, AUDIT_SIGNAL, json_object(), NULL, 0, NULL, NULL, &err), -1);
	assert_int_equal(err.code, ERR_INVALID);
	assert_int_equal(audit_client_pending(k.s.client), 0);
	assert_int_equal(audit_client_room(k.s.client), room);

	/* Nobody answers: room runs out, and a caller that doesn't care is stopped. */
	unsigned n = 0;
	while (send_output(&k.s, AUDIT_BLOB_MAX, &err) == 0)
		n++;
	assert_int_equal(err.code, ERR_LIMIT);
	assert_true(n > AUDIT_PENDING_MAX / AUDIT_BLOB_MAX && n <= AUDIT_PENDING_HARD / AUDIT_BLOB_MAX);
	assert_int_equal(audit_client_room(k.s.client), 0);
	assert_int_equal(audit_client_pending(k.s.client), n);
	assert_int_equal(audit_client_drain(k.s.client, 20 * NS_PER_MS, &err), -1);
	assert_int_equal(err.code, ERR_TIMEOUT);
	assert_int_equal(k.s.lost, 0);
	mem_free(name);
	close(k.fd);
	k.fd = open("/dev/null", O_RDONLY | O_CLOEXEC);
	fake_end(&k);
}

int main(void)
{
	signal(SIGPIPE, SIG_IGN);
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_two_sources, folder_make, folder_remove),
		cmocka_unit_test_setup_teardown(test_three_sources, folder_make, folder_remove),
		cmocka_unit_test_setup_teardown(test_upstream_is_held_to_its_types, folder_make, folder_remove),
		cmocka_unit_test_setup_teardown(test_back_pressure, folder_make, folder_remove),
		cmocka_unit_test_setup_teardown(test_free_flushes, folder_make, folder_remove),
		cmocka_unit_test_setup_teardown(test_supervisor_dies, folder_make, folder_remove),
		cmocka_unit_test_setup_teardown(test_ends_early, folder_make, folder_remove),
		cmocka_unit_test_setup_teardown(test_gate_breaks_protocol, folder_make, folder_remove),
		cmocka_unit_test_setup_teardown(test_too_large_a_datagram, folder_make, folder_remove),
		cmocka_unit_test_setup_teardown(test_disk_full, folder_make, folder_remove),
		cmocka_unit_test_setup_teardown(test_unread_answers, folder_make, folder_remove),
		cmocka_unit_test(test_wrong_answers),
		cmocka_unit_test(test_auditor_dies),
		cmocka_unit_test(test_reason_before_reset),
		cmocka_unit_test(test_free_inside_callback),
		cmocka_unit_test(test_ceilings),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
