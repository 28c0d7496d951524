/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One command in the box. It is asked for when its start is on the record; its output reaches the caller when it is on the record: nothing that
 * the box does outruns the log. It is over when the agent said so, all output was recorded and the caller took it.
 */
#include "sandbox/internal.h"

#include <errno.h>
#include <string.h>

#include "base/fd.h"
#include "base/mem.h"
#include "base/text.h"

#define START_WITHIN_NS (60 * NS_PER_S)
#define GATHER_NS (5 * NS_PER_MS)
#define GATHER_BYTES (16u * 1024u)

static void execution_maybe_done(struct execution *e);

static void execution_unlink(struct execution *e)
{
	for (struct execution **p = &e->sandbox->executions; *p; p = &(*p)->next)
		if (*p == e) {
			*p = e->next;
			return;
		}
}

/* Acknowledgements of chunks may still be under way: the last of them frees the memory. */
static void execution_free(struct execution *e)
{
	execution_unlink(e);
	pump_free(e->in);
	pump_free(e->out.pump);
	pump_free(e->err_out.pump);
	e->in = e->out.pump = e->err_out.pump = NULL;
	e->out.timer = loop_timer_free(e->out.timer);
	e->err_out.timer = loop_timer_free(e->err_out.timer);
	buf_free(&e->out.gather);
	buf_free(&e->err_out.gather);
	buf_free(&e->request.message);
	for (size_t i = 0; i < ARRAY_LEN(e->request.fds); i++)
		fd_close(&e->request.fds[i]);
	e->dead = true;
	if (e->acks_pending == 0)
		mem_free(e);
}

static void execution_finish(struct execution *e)
{
	struct execution_ops ops = e->ops;
	struct execution_result result;
	void *ctx = e->ctx;
	e->result.duration_ns = e->started_ns ? time_monotonic_ns() - e->started_ns : 0;
	e->result.output_bytes = e->out.offset + e->err_out.offset;
	events_exec_end(e);
	result = e->result;
	execution_free(e);
	ops.on_exit(ctx, &result);
}

static void execution_finish_deferred(void *ctx)
{
	struct sandbox *s = ctx;
	for (struct execution *e = s->executions, *next; e; e = next) {
		next = e->next;
		if (e->finishing)
			execution_finish(e);
	}
}

static void execution_maybe_done(struct execution *e)
{
	if (!e->exited || e->out.open || e->err_out.open || e->sandbox->phase != SB_READY)
		return;
	if (!e->finishing)
		loop_defer(e->sandbox->loop, execution_finish_deferred, e->sandbox);
	e->finishing = true;
}

/* ---- output ---- */

struct chunk {
	struct execution_stream *stream;
	uint32_t len;
};

static void on_chunk_recorded(void *ctx, uint64_t seq, const struct err *err)
{
	struct chunk *c = ctx;
	struct execution *e = c->stream->execution;
	struct pump *pump = c->stream->pump;
	uint32_t len = c->len;
	mem_free(c);
	e->acks_pending--;
	if (e->dead && e->acks_pending == 0)
		mem_free(e);
	else if (!err && pump)
		pump_release(pump, len);
}

static int record_chunk(struct execution_stream *st, const uint8_t *data, size_t len)
{
	struct execution *e = st->execution;
	struct chunk *c = mem_alloc(sizeof(*c));
	struct err err;
	*c = (struct chunk){ st, (uint32_t)len };
	json_t *f = json_pack("{s:I,s:s,s:I,s:I}", "execution", (json_int_t)e->id, "stream", st->name, "offset", (json_int_t)st->offset, "length",
		(json_int_t)len);
	if (audit_client_send(e->sandbox->audit, AUDIT_OUTPUT, f, data, len, on_chunk_recorded, c, &err) < 0) {
		mem_free(c);
		sandbox_fail(e->sandbox, &err);
		return -1;
	}
	e->acks_pending++;
	st->offset += len;
	return 0;
}

static int stream_flush(struct execution_stream *st)
{
	int r = 0;
	for (size_t at = 0; r == 0 && at < st->gather.len;) {
		size_t n = st->gather.len - at < AUDIT_BLOB_MAX ? st->gather.len - at : AUDIT_BLOB_MAX;
		r = record_chunk(st, st->gather.data + at, n);
		at += n;
	}
	buf_clear(&st->gather);
	st->recorded_ns = time_monotonic_ns();
	return r;
}

static void on_gathered(void *ctx)
{
	stream_flush(ctx);
}

/*
 * A box that writes single bytes would make a record of each and fill the disk with them: after a record, small writes are gathered for GATHER_NS. The first
 * one goes at once, so that nobody waits at a prompt; and when the command has ended or the sandbox ends, nothing is gathered any more.
 */
static int record_output(struct execution_stream *st, const uint8_t *data, size_t len)
{
	struct execution *e = st->execution;
	struct err err;
	uint64_t now = time_monotonic_ns(), due = st->recorded_ns + GATHER_NS;
	if (buf_append(&st->gather, data, len) < 0) {
		err_set(&err, ERR_MEMORY, "no memory for the output of the box");
		sandbox_fail(e->sandbox, &err);
		return -1;
	}
	if (now >= due || st->gather.len >= GATHER_BYTES || e->exited || e->sandbox->phase == SB_ENDING)
		return stream_flush(st);
	if (!st->timer)
		st->timer = loop_timer_new(e->sandbox->loop, on_gathered, st);
	loop_timer_set(st->timer, due - now, 0);
	return 0;
}

void executions_flush(struct sandbox *s)
{
	for (struct execution *e = s->executions; e; e = e->next) {
		stream_flush(&e->out);
		stream_flush(&e->err_out);
	}
}

/* Bytes from the box: held until recorded. Beyond the output limit they are neither recorded nor passed on. */
static size_t on_output(void *ctx, const uint8_t *data, size_t len)
{
	struct execution_stream *st = ctx;
	struct sandbox *s = st->execution->sandbox;
	uint64_t take = len;
	bool fits = limit_watch_output(s, &take);
	size_t pass = 0;
	if (!s->policy->record_output) {
		st->offset += take;
		pass = take;
	} else if (record_output(st, data, take) < 0) {
		return 0;
	}
	if (!fits) {
		/* Nobody will ever take the rest, so the end doesn't wait for it. */
		pump_cut(st->pump, take);
		limit_hit(s, REASON_LIMIT_OUTPUT, s->spec.limits.output, true);
	}
	return pass;
}

static void stream_over(struct execution_stream *st)
{
	pump_free(st->pump);
	st->pump = NULL;
	st->open = false;
	if (st->execution->sandbox->phase == SB_ENDING)
		teardown_step(st->execution->sandbox);
	else
		execution_maybe_done(st->execution);
}

/* A reader that left is its own affair, as with any command; a full disk is not. */
static void on_output_done(void *ctx, const struct err *err)
{
	struct execution_stream *st = ctx;
	if (err && err->sys && err->sys != EPIPE && !st->execution->result.write_error)
		st->execution->result.write_error = err->sys;
	stream_over(st);
}

static void on_input_done(void *ctx, const struct err *err)
{
	struct execution *e = ctx;
	pump_free(e->in);
	e->in = NULL;
}

static const struct pump_ops output_ops = { .filter = on_output, .on_done = on_output_done };
static const struct pump_ops input_ops = { .on_done = on_input_done };

static int open_output(struct execution *e, struct execution_stream *st, const char *name, uint32_t id, int rfd, int wfd, struct err *err)
{
	st->execution = e;
	st->name = name;
	buf_init(&st->gather, MUX_WINDOW); /* the pump holds no more than that */
	st->pump = pump_new(e->sandbox->loop, e->sandbox->mux, id, rfd, wfd, &output_ops, st, err);
	st->open = st->pump != NULL;
	return st->pump ? 0 : -1;
}

/* The agent opens its ends in this order, which is that of the ids. */
static void allocate_streams(struct execution *e, const struct execution_spec *spec)
{
	struct mux *mux = e->sandbox->mux;
	if (spec->tty || spec->stdin_fd >= 0)
		e->request.stdin_stream = mux_stream_allocate(mux);
	e->request.stdout_stream = spec->tty ? e->request.stdin_stream : mux_stream_allocate(mux);
	e->request.stderr_stream = spec->tty ? 0 : mux_stream_allocate(mux);
}

/* Only after EXEC, which names the streams to the agent. With a terminal, one stream carries both directions. The pumps take the descriptors. */
static int open_streams(struct execution *e, struct err *err)
{
	const struct execution_request *r = &e->request;
	int in = fd_steal(&e->request.fds[0]), out = fd_steal(&e->request.fds[1]), err_out = fd_steal(&e->request.fds[2]);
	if (r->tty)
		return open_output(e, &e->out, "tty", r->stdout_stream, in, out, err);
	if (r->stdin_stream) {
		e->in = pump_new(e->sandbox->loop, e->sandbox->mux, r->stdin_stream, in, -1, &input_ops, e, err);
		if (!e->in)
			return -1;
	}
	if (open_output(e, &e->out, "stdout", r->stdout_stream, -1, out, err) < 0)
		return -1;
	return open_output(e, &e->err_out, "stderr", r->stderr_stream, -1, err_out, err);
}

/* ---- life ---- */

/* The last bytes go as EXEC itself; a command of ordinary length is one message. */
static int send_request(struct execution *e, struct err *err)
{
	const struct buf *m = &e->request.message;
	size_t at = 0;
	for (; m->len - at > MUX_MESSAGE_MAX; at += MUX_MESSAGE_MAX)
		if (mux_send(e->sandbox->mux, WIRE_EXEC_PART, m->data + at, MUX_MESSAGE_MAX, err) < 0)
			return -1;
	return mux_send(e->sandbox->mux, WIRE_EXEC, m->data + at, m->len - at, err);
}

static void dispatch(struct execution *e)
{
	struct err err;
	e->started_ns = time_monotonic_ns();
	if (send_request(e, &err) < 0 || open_streams(e, &err) < 0)
		sandbox_fail(e->sandbox, &err);
	buf_free(&e->request.message);
}

/* The pipe keeps the order, so EXEC may go before the agent has said HELLO; it does nothing with it then but read it later. */
void executions_dispatch(struct sandbox *s)
{
	struct execution *next = NULL;
	if (s->phase > SB_READY || !s->have_box || !sandbox_egress_ready(s))
		return;
	/* In the order in which they were asked for: their stream numbers rise. */
	do {
		next = NULL;
		for (struct execution *e = s->executions; e; e = e->next)
			if (!e->started_ns && (!next || e->id < next->id))
				next = e;
		if (next && next->recorded)
			dispatch(next);
	} while (next && next->recorded);
}

static void on_start_recorded(void *ctx, uint64_t seq, const struct err *err)
{
	struct execution *e = ctx;
	if (--e->acks_pending == 0 && e->dead) {
		mem_free(e);
		return;
	}
	e->recorded = err == NULL;
	if (!e->dead)
		executions_dispatch(e->sandbox);
}

static int encode_request(struct execution *e, const struct execution_spec *spec, struct err *err)
{
	struct wire_exec m = {
		.execution = e->id, .stdin_stream = e->request.stdin_stream, .stdout_stream = e->request.stdout_stream,
		.stderr_stream = e->request.stderr_stream, .tty = spec->tty, .rows = spec->rows, .columns = spec->columns,
		.nofile = e->sandbox->spec.limits.open_files == POLICY_UNLIMITED ? 0 : e->sandbox->spec.limits.open_files,
		.cwd = (char *)spec->cwd, .argv = spec->argv, .envp = spec->envp,
	};
	buf_init(&e->request.message, WIRE_EXEC_MAX);
	if (wire_exec_encode(&e->request.message, &m) == 0)
		return 0;
	return err_set(err, ERR_LIMIT, "the command is too long: at most %u bytes of arguments and environment together, %u in one of them and %u of them; "
				       "pass large data on standard input or in a file", WIRE_EXEC_MAX, WIRE_STRING_MAX, WIRE_ARGS_MAX);
}

struct execution *sandbox_exec(struct sandbox *s, const struct execution_spec *spec, const struct execution_ops *ops, void *ctx, struct err *err)
{
	struct execution *e = mem_alloc(sizeof(*e));
	e->sandbox = s;
	e->id = ++s->next_execution;
	e->asked_ns = time_monotonic_ns();
	e->ops = *ops;
	e->ctx = ctx;
	e->request.tty = spec->tty;
	e->request.fds[0] = spec->stdin_fd;
	e->request.fds[1] = spec->stdout_fd;
	e->request.fds[2] = spec->stderr_fd;
	e->next = s->executions;
	s->executions = e;
	if (s->phase > SB_READY) {
		err_set(err, ERR_CLOSED, "sandbox %s is not running", s->spec.id);
		execution_free(e);
		return NULL;
	}
	allocate_streams(e, spec);
	if (encode_request(e, spec, err) < 0) {
		execution_free(e);
		return NULL;
	}
	e->acks_pending++;
	events_exec_start(e, spec, on_start_recorded);
	return e;
}

void executions_check_started(struct sandbox *s)
{
	struct err err;
	for (struct execution *e = s->executions; e; e = e->next) {
		bool waits = !e->result.started && !e->exited;
		if (!waits || time_monotonic_ns() - e->asked_ns < START_WITHIN_NS)
			continue;
		err_set(&err, ERR_TIMEOUT, "the agent did not start the command within %u seconds; the machine may be overloaded", (unsigned)(START_WITHIN_NS / NS_PER_S));
		sandbox_fail(s, &err);
		return;
	}
}

static struct execution *find(struct sandbox *s, uint32_t id)
{
	struct execution *e = s->executions;
	while (e && e->id != id)
		e = e->next;
	return e;
}

int execution_handle_started(struct sandbox *s, const struct wire_exec_started *m, struct err *err)
{
	struct execution *e = find(s, m->execution);
	if (!e || e->result.started || e->exited || !e->started_ns)
		return err_set(err, ERR_PROTOCOL, "the agent reports a start that nobody asked for");
	e->result.started = m->error == 0;
	e->result.exec_error = m->error;
	if (m->error == 0)
		return 0;
	e->exited = true;
	execution_maybe_done(e);
	return 0;
}

int execution_handle_exited(struct sandbox *s, const struct wire_exec_exited *m, struct err *err)
{
	struct execution *e = find(s, m->execution);
	if (!e || !e->result.started || e->exited)
		return err_set(err, ERR_PROTOCOL, "the agent reports the end of a command that isn't running");
	e->result.wait_status = m->wait_status;
	e->exited = true;
	stream_flush(&e->out);
	stream_flush(&e->err_out);
	/* Nobody reads its input any more. */
	if (e->in)
		pump_stop_reading(e->in);
	if (e->out.pump && e->request.tty)
		pump_stop_reading(e->out.pump);
	execution_maybe_done(e);
	return 0;
}

/* The sandbox ends before them: what was recorded is passed on no more. */
void executions_lose(struct sandbox *s)
{
	while (s->executions) {
		struct execution *e = s->executions;
		e->result.lost = !e->exited;
		execution_finish(e);
	}
}

int execution_signal(struct execution *e, int signal_number)
{
	struct wire_signal m = { e->id, (uint32_t)signal_number };
	struct buf b;
	struct err err;
	buf_init(&b, 64);
	wire_signal_encode(&b, &m);
	int r = mux_send(e->sandbox->mux, WIRE_SIGNAL, b.data, b.len, &err);
	buf_free(&b);
	return r;
}

int execution_resize(struct execution *e, uint16_t rows, uint16_t columns)
{
	struct wire_resize m = { e->id, rows, columns };
	struct buf b;
	struct err err;
	buf_init(&b, 64);
	wire_resize_encode(&b, &m);
	int r = mux_send(e->sandbox->mux, WIRE_RESIZE, b.data, b.len, &err);
	buf_free(&b);
	return r;
}
