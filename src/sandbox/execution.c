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
	buf_free(&e->request);
	e->dead = true;
	if (e->chunks_pending == 0)
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
	e->chunks_pending--;
	if (e->dead && e->chunks_pending == 0)
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
	e->chunks_pending++;
	st->offset += len;
	return 0;
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
	} else {
		for (size_t at = 0; at < take;) {
			size_t n = take - at < AUDIT_BLOB_MAX ? take - at : AUDIT_BLOB_MAX;
			if (record_chunk(st, data + at, n) < 0)
				return 0;
			at += n;
		}
	}
	if (!fits)
		limit_hit(s, REASON_LIMIT_OUTPUT, s->spec.limits.output, true);
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

static void on_output_done(void *ctx, const struct err *err)
{
	stream_over(ctx);
}

static void on_input_done(void *ctx, const struct err *err)
{
	struct execution *e = ctx;
	pump_free(e->in);
	e->in = NULL;
}

static const struct pump_ops output_ops = { .filter = on_output, .on_done = on_output_done };
static const struct pump_ops input_ops = { .on_done = on_input_done };

static int open_output(struct execution *e, struct execution_stream *st, const char *name, int fd, uint32_t *ret_id, struct err *err)
{
	*ret_id = mux_stream_allocate(e->sandbox->mux);
	st->execution = e;
	st->name = name;
	st->pump = pump_new(e->sandbox->loop, e->sandbox->mux, *ret_id, -1, fd, &output_ops, st, err);
	st->open = st->pump != NULL;
	return st->pump ? 0 : -1;
}

/* With a terminal, one stream carries both directions. */
static int open_streams(struct execution *e, const struct execution_spec *spec, struct wire_exec *m, struct err *err)
{
	if (spec->tty) {
		m->stdin_stream = m->stdout_stream = mux_stream_allocate(e->sandbox->mux);
		e->out.execution = e;
		e->out.name = "tty";
		e->out.pump = pump_new(e->sandbox->loop, e->sandbox->mux, m->stdout_stream, spec->stdin_fd, spec->stdout_fd, &output_ops, &e->out, err);
		e->out.open = e->out.pump != NULL;
		return e->out.pump ? 0 : -1;
	}
	if (open_output(e, &e->out, "stdout", spec->stdout_fd, &m->stdout_stream, err) < 0 ||
		open_output(e, &e->err_out, "stderr", spec->stderr_fd, &m->stderr_stream, err) < 0)
		return -1;
	if (spec->stdin_fd < 0)
		return 0;
	m->stdin_stream = mux_stream_allocate(e->sandbox->mux);
	e->in = pump_new(e->sandbox->loop, e->sandbox->mux, m->stdin_stream, spec->stdin_fd, -1, &input_ops, e, err);
	return e->in ? 0 : -1;
}

/* ---- life ---- */

static void on_start_recorded(void *ctx, uint64_t seq, const struct err *err)
{
	struct execution *e = ctx;
	struct sandbox *s = e->sandbox;
	struct err send_err;
	if (err || s->phase != SB_READY)
		return;
	e->started_ns = time_monotonic_ns();
	if (mux_send(s->mux, WIRE_EXEC, e->request.data, e->request.len, &send_err) < 0)
		sandbox_fail(s, &send_err);
	buf_free(&e->request);
}

static int encode_request(struct execution *e, const struct execution_spec *spec, struct wire_exec *m, struct err *err)
{
	m->execution = e->id;
	m->tty = spec->tty;
	m->rows = spec->rows;
	m->columns = spec->columns;
	m->nofile = e->sandbox->spec.limits.open_files == POLICY_UNLIMITED ? 0 : e->sandbox->spec.limits.open_files;
	m->cwd = (char *)spec->cwd;
	m->argv = spec->argv;
	m->envp = spec->envp;
	buf_init(&e->request, MUX_MESSAGE_MAX);
	if (wire_exec_encode(&e->request, m) == 0)
		return 0;
	return err_set(err, ERR_LIMIT, "the command, its arguments and its environment are larger than %u bytes together; pass large data on standard input or in a file",
		MUX_MESSAGE_MAX);
}

struct execution *sandbox_exec(struct sandbox *s, const struct execution_spec *spec, const struct execution_ops *ops, void *ctx, struct err *err)
{
	if (s->phase != SB_READY) {
		err_set(err, ERR_CLOSED, "sandbox %s is not running", s->spec.id);
		return NULL;
	}
	struct execution *e = mem_alloc(sizeof(*e));
	struct wire_exec m = { 0 };
	e->sandbox = s;
	e->id = ++s->next_execution;
	e->ops = *ops;
	e->ctx = ctx;
	e->next = s->executions;
	s->executions = e;
	if (open_streams(e, spec, &m, err) < 0 || encode_request(e, spec, &m, err) < 0) {
		execution_free(e);
		return NULL;
	}
	events_exec_start(e, spec, on_start_recorded);
	return e;
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
	/* Nobody reads its input any more. */
	if (e->in)
		pump_stop_reading(e->in);
	if (e->out.pump && !e->err_out.execution)
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
