/* SPDX-License-Identifier: Apache-2.0 */
#include "agent-harness.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "agent/agent.h"
#include "base/mem.h"
#include "base/text.h"

enum { GIVE_UP_S = 60, KEEP_MAX = 64 * 1024 * 1024 };

static uint64_t deadline_ns;

static void on_tick(void *ctx)
{
}

void harness_deadline(struct harness *h)
{
	deadline_ns = time_monotonic_ns() + GIVE_UP_S * NS_PER_S;
}

/* The timer makes the loop come back, so that a wait for what never happens ends. */
void harness_step(struct harness *h, const char *what)
{
	if (time_monotonic_ns() > deadline_ns)
		fail_msg("gave up waiting for: %s", what);
	struct loop_timer *t = loop_timer_new(h->loop, on_tick, NULL);
	loop_timer_set(t, 20 * NS_PER_MS, 0);
	loop_run_once(h->loop, true);
	loop_timer_free(t);
}

/* ---- streams ---- */

static void on_data(void *ctx, const uint8_t *data, size_t len)
{
	struct side_stream *st = ctx;
	st->received += len;
	if (st->keep)
		assert_int_equal(buf_append(&st->got, data, len), 0);
	if (!st->hold)
		mux_stream_consumed(st->s, len);
}

static void on_eof(void *ctx)
{
	struct side_stream *st = ctx;
	st->eof = true;
}

static void on_reset(void *ctx, uint32_t reason)
{
	struct side_stream *st = ctx;
	st->reset = true;
	st->reset_reason = reason;
	st->s = NULL;
}

static void on_writable(void *ctx)
{
	struct side_stream *st = ctx;
	st->writable = true;
}

static const struct mux_stream_ops stream_ops = { on_data, on_eof, on_reset, on_writable };

static struct side_stream *add_stream(struct harness *h, uint32_t id, bool keep)
{
	struct side_stream *st = mem_alloc(sizeof(*st));
	struct err err = ERR_INIT;
	*st = (struct side_stream){ .h = h, .id = id, .keep = keep };
	buf_init(&st->got, KEEP_MAX);
	st->s = mux_stream_open(h->mux, id, &stream_ops, st, &err);
	if (!st->s)
		fail_msg("%s", err.text);
	assert_true(h->n_streams < HARNESS_STREAMS);
	h->streams[h->n_streams++] = st;
	return st;
}

struct side_stream *harness_open(struct harness *h, bool keep)
{
	return add_stream(h, mux_stream_allocate(h->mux), keep);
}

/* ---- messages ---- */

void harness_send(struct harness *h, uint16_t type, const void *body, size_t len)
{
	struct err err = ERR_INIT;
	if (mux_send(h->mux, type, body, len, &err) < 0)
		fail_msg("%s", err.text);
}

void harness_answer(struct harness *h, uint32_t query, bool allowed, const uint16_t *ports, uint16_t n)
{
	struct wire_name_answer m = { .query = query, .allowed = allowed, .n_ports = n };
	struct buf b;
	if (n)
		memcpy(m.ports, ports, n * sizeof(*ports));
	buf_init(&b, MUX_MESSAGE_MAX);
	assert_int_equal(wire_name_answer_encode(&b, &m), 0);
	harness_send(h, WIRE_NAME_ANSWER, b.data, b.len);
	buf_free(&b);
}

/* The policy of these tests: what ends in "allowed.example" is allowed, on 443 and 8443. */
static void on_query(struct harness *h, const struct wire_name_query *q)
{
	static const uint16_t ports[] = { 443, 8443 };
	bool allowed = str_ends(q->name.text, "allowed.example");
	if (h->n_queries < HARNESS_NAMES)
		h->queries[h->n_queries] = *q;
	h->n_queries++;
	if (h->answer_queries)
		harness_answer(h, q->query, allowed, ports, allowed ? 2 : 0);
}

static int on_open(struct harness *h, const uint8_t *body, size_t len, struct err *err)
{
	struct wire_egress_open m;
	if (wire_egress_open_decode(body, len, &m, err) < 0)
		return -1;
	add_stream(h, m.stream, true)->opened = m;
	h->n_opened++;
	return 0;
}

static int on_message(void *ctx, uint16_t type, const uint8_t *body, size_t len, struct err *err)
{
	struct harness *h = ctx;
	struct wire_hello hello;
	struct wire_exec_started started;
	struct wire_exec_exited exited;
	struct wire_name_query query;
	switch (type) {
	case WIRE_HELLO:
		h->hello = wire_hello_decode(body, len, &hello, err) == 0 && hello.version == WIRE_VERSION;
		return h->hello ? 0 : -1;
	case WIRE_EXEC_STARTED:
		if (wire_exec_started_decode(body, len, &started, err) < 0 || h->is_started[started.execution])
			return -1;
		h->is_started[started.execution] = true;
		h->started[started.execution] = started;
		return 0;
	case WIRE_EXEC_EXITED:
		if (wire_exec_exited_decode(body, len, &exited, err) < 0 || h->is_exited[exited.execution] || !h->is_started[exited.execution])
			return -1;
		h->is_exited[exited.execution] = true;
		h->exited[exited.execution] = exited;
		return 0;
	case WIRE_NAME_QUERY:
		if (wire_name_query_decode(body, len, &query, err) < 0)
			return -1;
		on_query(h, &query);
		return 0;
	case WIRE_EGRESS_OPEN:
		return on_open(h, body, len, err);
	case WIRE_FAILED:
		h->is_failed = wire_failed_decode(body, len, &h->failed, err) == 0;
		return h->is_failed ? 0 : -1;
	default:
		return err_set(err, ERR_PROTOCOL, "unexpected message %u", type);
	}
}

static void on_closed(void *ctx, const struct err *err)
{
	struct harness *h = ctx;
	h->closed = true;
	h->closed_code = err->code;
}

/* ---- life ---- */

static const struct mux_ops mux_ops = { .on_message = on_message, .on_closed = on_closed };

static void be_agent(int fd)
{
	struct agent_options options = { .pipe_fd = fd, .dns_port = HARNESS_DNS_PORT };
	for (int sig = 1; sig < NSIG; sig++)
		signal(sig, SIG_DFL); /* the test library's and the sanitizer's handlers: an exec'd agent has none */
	exit(agent_run(&options)); /* not _exit: the sanitizer looks for leaks at exit */
}

/* Waits for the pid 1 that it started, whose status becomes its own. */
static void be_stand_in(int fd)
{
	int status;
	if (unshare(CLONE_NEWUSER | CLONE_NEWPID) < 0)
		_exit(HARNESS_SKIPPED);
	pid_t init = fork();
	if (init == 0)
		be_agent(fd);
	close(fd);
	waitpid(init, &status, 0);
	_exit(WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status));
}

static struct harness *start_with(void (*be)(int fd))
{
	int fds[2];
	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds), 0);
	fflush(NULL);
	pid_t agent = fork();
	assert_true(agent >= 0);
	if (agent == 0) {
		close(fds[0]);
		be(fds[1]);
	}
	close(fds[1]);
	struct harness *h = mem_alloc(sizeof(*h));
	h->agent = agent;
	h->loop = loop_new();
	h->mux = mux_new(h->loop, fds[0], fds[0], MUX_HOST, &mux_ops, h);
	harness_until(h, h->hello || h->closed);
	return h;
}

struct harness *harness_start(void)
{
	struct harness *h = start_with(be_agent);
	assert_true(h->hello);
	return h;
}

struct harness *harness_start_as_init(void)
{
	struct harness *h = start_with(be_stand_in);
	if (h->hello)
		return h;
	assert_int_equal(WEXITSTATUS(harness_abandon(h)), HARNESS_SKIPPED);
	return NULL;
}

static int wait_agent(struct harness *h)
{
	int status;
	assert_int_equal(waitpid(h->agent, &status, 0), h->agent);
	return status;
}

static void release(struct harness *h)
{
	mux_free(h->mux);
	for (unsigned i = 0; i < h->n_streams; i++) {
		buf_free(&h->streams[i]->got);
		mem_free(h->streams[i]);
	}
	loop_free(h->loop);
	mem_free(h->failed.text);
	mem_free(h);
}

void harness_stop(struct harness *h)
{
	harness_send(h, WIRE_SHUTDOWN, NULL, 0);
	harness_until(h, h->closed);
	assert_int_equal(h->closed_code, ERR_CLOSED);
	assert_int_equal(wait_agent(h), 0);
	release(h);
}

int harness_abandon(struct harness *h)
{
	mux_free(h->mux);
	h->mux = NULL;
	int status = wait_agent(h);
	release(h);
	return status;
}

void harness_configure(struct harness *h, const struct wire_config *c)
{
	struct buf b;
	buf_init(&b, MUX_MESSAGE_MAX);
	assert_int_equal(wire_config_encode(&b, c), 0);
	harness_send(h, WIRE_CONFIG, b.data, b.len);
	buf_free(&b);
}

/* ---- executions ---- */

struct run harness_run(struct harness *h, const struct run_options *o, const char *const *argv)
{
	static const char *const default_env[] = { "PATH=/usr/local/bin:/usr/bin:/bin", NULL };
	struct run r = { .h = h, .number = ++h->next_execution };
	uint32_t out = mux_stream_allocate(h->mux), err = o->tty ? 0 : mux_stream_allocate(h->mux);
	uint32_t in = o->no_stdin ? 0 : o->one_stream ? out : mux_stream_allocate(h->mux);
	struct wire_exec m = {
		.execution = r.number, .stdin_stream = in, .stdout_stream = out, .stderr_stream = err, .tty = o->tty, .rows = o->rows,
		.columns = o->columns, .nofile = o->nofile, .cwd = (char *)(o->cwd ? o->cwd : "/"), .argv = (char **)argv,
		.envp = (char **)(o->envp ? o->envp : default_env),
	};
	struct buf b;
	buf_init(&b, MUX_MESSAGE_MAX);
	assert_int_equal(wire_exec_encode(&b, &m), 0);
	harness_send(h, WIRE_EXEC, b.data, b.len);
	buf_free(&b);
	r.out = add_stream(h, out, !o->drop);
	if (err) {
		r.err = add_stream(h, err, true);
		mux_stream_eof(r.err->s);
	}
	if (o->one_stream)
		r.in = r.out;
	else {
		mux_stream_eof(r.out->s);
		r.in = in ? add_stream(h, in, false) : NULL;
	}
	return r;
}

static bool is_over(const struct side_stream *s)
{
	return !s || s->eof || s->reset;
}

int run_finish(struct run *r)
{
	struct harness *h = r->h;
	harness_until(h, h->is_started[r->number]);
	if (h->started[r->number].error)
		return -h->started[r->number].error;
	harness_until(h, h->is_exited[r->number]);
	harness_until(h, is_over(r->out) && is_over(r->err));
	return h->exited[r->number].wait_status;
}

const char *run_output(struct run *r)
{
	assert_int_equal(buf_append(&r->out->got, "", 1), 0);
	r->out->got.len--;
	return (const char *)r->out->got.data;
}

void run_feed(struct run *r, const void *data, size_t len)
{
	const uint8_t *p = data;
	while (len > 0) {
		assert_non_null(r->in->s);
		r->in->writable = false;
		size_t n = mux_stream_write(r->in->s, p, len);
		p += n;
		len -= n;
		if (len > 0)
			harness_until(r->h, r->in->writable || !r->in->s);
	}
}

void run_feed_eof(struct run *r)
{
	mux_stream_eof(r->in->s);
}
