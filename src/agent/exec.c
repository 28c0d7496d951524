/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/exec.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "agent/pty.h"
#include "agent/spawn.h"
#include "base/fd.h"
#include "base/mem.h"
#include "wire/pump.h"

enum { STREAM_IN, STREAM_OUT, STREAM_ERR, N_STREAMS };

struct execution;

struct exec_stream {
	struct execution *e;
	struct pump *pump; /* NULL once it is over */
};

struct execution {
	struct exec_table *table;
	uint32_t number;
	pid_t pid;                  /* -1 once collected: the number may be another's then */
	int report;                 /* spawn's; -1 once read */
	struct loop_io *report_io;
	int terminal;               /* master side, our own duplicate; -1 without tty */
	struct loop_io *eof_io;     /* waits for room to type the end of input */
	bool mid_line;
	bool failed;                /* never ran */
	struct exec_stream streams[N_STREAMS];
};

struct exec_table {
	struct loop *loop;
	struct mux *mux;
	uint32_t max;
	struct execution *slots[EXEC_CEILING];
	struct rlimit nofile; /* as the agent was started */
};

/* ---- the table ---- */

struct exec_table *exec_table_new(struct loop *loop, struct mux *mux)
{
	struct exec_table *t = mem_alloc(sizeof(*t));
	t->loop = loop;
	t->mux = mux;
	getrlimit(RLIMIT_NOFILE, &t->nofile);
	return t;
}

void exec_table_set_max(struct exec_table *t, uint32_t max)
{
	t->max = max < EXEC_CEILING ? max : EXEC_CEILING;
}

static struct execution *find(const struct exec_table *t, uint32_t number)
{
	for (unsigned i = 0; i < EXEC_CEILING; i++)
		if (t->slots[i] && t->slots[i]->number == number)
			return t->slots[i];
	return NULL;
}

static struct execution *add(struct exec_table *t, uint32_t number)
{
	for (unsigned i = 0; i < t->max; i++) {
		if (t->slots[i])
			continue;
		struct execution *e = mem_alloc(sizeof(*e));
		*e = (struct execution){ .table = t, .number = number, .pid = -1, .report = -1, .terminal = -1 };
		for (unsigned s = 0; s < N_STREAMS; s++)
			e->streams[s].e = e;
		return t->slots[i] = e;
	}
	return NULL;
}

static void close_stream(struct exec_stream *s)
{
	if (s->pump)
		pump_free(s->pump);
	s->pump = NULL;
}

static void close_terminal(struct execution *e)
{
	e->eof_io = loop_io_remove(e->eof_io);
	fd_close(&e->terminal);
}

static void remove_execution(struct execution *e)
{
	for (unsigned i = 0; i < EXEC_CEILING; i++)
		if (e->table->slots[i] == e)
			e->table->slots[i] = NULL;
	loop_io_remove(e->report_io);
	fd_close(&e->report);
	for (unsigned s = 0; s < N_STREAMS; s++)
		close_stream(&e->streams[s]);
	close_terminal(e);
	mem_free(e);
}

/* The slot is kept until the program is collected and its output handed over. */
static void remove_if_over(struct execution *e)
{
	if (e->pid < 0 && !e->streams[STREAM_OUT].pump && !e->streams[STREAM_ERR].pump)
		remove_execution(e);
}

struct exec_table *exec_table_free(struct exec_table *t)
{
	if (!t)
		return NULL;
	for (unsigned i = 0; i < EXEC_CEILING; i++)
		if (t->slots[i])
			remove_execution(t->slots[i]);
	return mem_free(t);
}

bool exec_idle(const struct exec_table *t)
{
	for (unsigned i = 0; i < EXEC_CEILING; i++)
		if (t->slots[i])
			return false;
	return true;
}

/* ---- streams ---- */

static void type_eof(struct execution *e);

static void on_terminal_writable(void *ctx, int fd, int ready)
{
	type_eof(ctx);
}

static void type_eof(struct execution *e)
{
	e->eof_io = loop_io_remove(e->eof_io);
	if (pty_type_eof(e->terminal, e->mid_line) == 0)
		e->eof_io = loop_io_add(e->table->loop, e->terminal, LOOP_WRITE, on_terminal_writable, e);
}

static size_t note_line_end(void *ctx, const uint8_t *data, size_t len)
{
	struct exec_stream *s = ctx;
	if (len > 0)
		s->e->mid_line = data[len - 1] != '\n';
	return len;
}

static void on_terminal_input_end(void *ctx)
{
	struct exec_stream *s = ctx;
	if (s->e->terminal >= 0)
		type_eof(s->e);
}

/* Over, be it by an error: whoever fails to read or write here is the program itself, or the host by a reset. */
static void on_stream_done(void *ctx, const struct err *err)
{
	struct exec_stream *s = ctx;
	close_stream(s);
	remove_if_over(s->e);
}

static const struct pump_ops stream_ops = { .on_done = on_stream_done };
static const struct pump_ops terminal_ops = {
	.on_done = on_stream_done, .filter = note_line_end, .on_input_end = on_terminal_input_end,
};

/* The two ends of the program's stdio. -1 where there is none. */
struct stdio {
	int ours[N_STREAMS], theirs[N_STREAMS];
};

static void stdio_close(int fds[N_STREAMS])
{
	for (unsigned i = 0; i < N_STREAMS; i++)
		fd_close(&fds[i]);
}

static int make_pipe(struct stdio *io, unsigned which)
{
	int fds[2];
	if (pipe2(fds, O_CLOEXEC) < 0)
		return -errno;
	io->ours[which] = which == STREAM_IN ? fds[1] : fds[0];
	io->theirs[which] = which == STREAM_IN ? fds[0] : fds[1];
	return fd_set_nonblock(io->ours[which], true);
}

static int make_pipes(const uint32_t ids[N_STREAMS], struct stdio *io)
{
	for (unsigned i = 0; i < N_STREAMS; i++) {
		if (ids[i] == 0)
			io->theirs[i] = open("/dev/null", O_RDWR | O_CLOEXEC);
		int r = ids[i] ? make_pipe(io, i) : io->theirs[i] < 0 ? -errno : 0;
		if (r < 0)
			return r;
	}
	return 0;
}

static int duplicate(int fd)
{
	int copy = fcntl(fd, F_DUPFD_CLOEXEC, 3);
	return copy < 0 ? -errno : copy;
}

static int make_terminal(struct execution *e, const struct wire_exec *m, struct stdio *io)
{
	int r = pty_open(m->rows, m->columns, &e->terminal, &io->theirs[STREAM_IN]);
	if (r < 0)
		return r;
	for (unsigned i = STREAM_OUT; i < N_STREAMS; i++)
		if ((io->theirs[i] = duplicate(io->theirs[STREAM_IN])) < 0)
			return io->theirs[i];
	for (unsigned i = STREAM_IN; i <= STREAM_OUT; i++)
		if ((io->ours[i] = duplicate(e->terminal)) < 0)
			return io->ours[i];
	return 0;
}

/* Streams must be opened in the order of their numbers. The place of the lowest one above `last` in `ids`, the later place
 * of two equal ones; N_STREAMS when there is none. */
static unsigned next_stream(const uint32_t ids[N_STREAMS], uint32_t last)
{
	unsigned found = N_STREAMS;
	for (unsigned i = 0; i < N_STREAMS; i++)
		if (ids[i] > last && (found == N_STREAMS || ids[i] <= ids[found]))
			found = i;
	return found;
}

/* A terminal may have one stream for both directions; that is kept as STREAM_OUT. */
static int open_stream(struct execution *e, unsigned which, const uint32_t ids[N_STREAMS], struct stdio *io, struct err *err)
{
	bool input = ids[which] == ids[STREAM_IN];
	int wfd = input ? io->ours[STREAM_IN] : -1;
	int rfd = which == STREAM_IN ? -1 : io->ours[which];
	struct exec_stream *s = &e->streams[which];
	const struct pump_ops *ops = input && e->terminal >= 0 ? &terminal_ops : &stream_ops;
	s->pump = pump_new(e->table->loop, e->table->mux, ids[which], rfd, wfd, ops, s, err);
	if (!s->pump)
		return -1;
	io->ours[which] = -1; /* the pump's now */
	if (input)
		io->ours[STREAM_IN] = -1;
	return 0;
}

/* Opens every stream that the host named, with or without a descriptor behind it: the host may send on them already. */
static int open_streams(struct execution *e, const uint32_t ids[N_STREAMS], struct stdio *io, struct err *err)
{
	uint32_t last = 0;
	for (unsigned i; (i = next_stream(ids, last)) < N_STREAMS; last = ids[i])
		if (open_stream(e, i, ids, io, err) < 0)
			return -1;
	return 0;
}

/* ---- beginning ---- */

static int send_started(struct exec_table *t, uint32_t execution, pid_t pid, int error, struct err *err)
{
	struct wire_exec_started m = { .execution = execution, .pid = pid > 0 ? (uint32_t)pid : 0, .error = error };
	struct buf body;
	buf_init(&body, MUX_MESSAGE_MAX);
	int r = wire_exec_started_encode(&body, &m);
	if (r == 0)
		r = mux_send(t->mux, WIRE_EXEC_STARTED, body.data, body.len, err);
	buf_free(&body);
	return r;
}

/* -1 when the pipe is over. */
static int read_report(struct execution *e, struct err *err)
{
	int error = 0;
	if (e->report < 0 || spawn_read_report(e->report, &error) == 0)
		return 0;
	e->report_io = loop_io_remove(e->report_io);
	fd_close(&e->report);
	e->failed = error != 0;
	return send_started(e->table, e->number, e->pid, error, err);
}

static void on_report(void *ctx, int fd, int ready)
{
	/* when sending fails, the mux ends the pipe by itself and on_closed follows */
	read_report(ctx, NULL);
}

static int launch(struct execution *e, const struct wire_exec *m, const struct stdio *io)
{
	struct spawn_spec spec = {
		.in = io->theirs[STREAM_IN], .out = io->theirs[STREAM_OUT], .err = io->theirs[STREAM_ERR],
		.tty = m->tty, .cwd = m->cwd, .argv = m->argv, .envp = m->envp,
		.nofile = m->nofile, .nofile_inherited = e->table->nofile,
	};
	pid_t pid = spawn_start(&spec, &e->report);
	if (pid < 0)
		return (int)pid;
	e->pid = pid;
	e->report_io = loop_io_add(e->table->loop, e->report, LOOP_READ, on_report, e);
	return 0;
}

/* The streams must be opened, so that the host's frames for them find something, and end at once. */
static int refuse(struct exec_table *t, const struct wire_exec *m, int error, struct err *err)
{
	const uint32_t ids[N_STREAMS] = { m->stdin_stream, m->stdout_stream, m->stderr_stream };
	uint32_t last = 0;
	for (unsigned i; (i = next_stream(ids, last)) < N_STREAMS; last = ids[i]) {
		static const struct mux_stream_ops none;
		struct mux_stream *s = mux_stream_open(t->mux, ids[i], &none, NULL, err);
		if (!s)
			return -1;
		mux_stream_close(s, MUX_RESET_LIMIT);
	}
	return send_started(t, m->execution, 0, error, err);
}

int exec_start(struct exec_table *t, const struct wire_exec *m, struct err *err)
{
	const uint32_t ids[N_STREAMS] = { m->stdin_stream, m->stdout_stream, m->stderr_stream };
	if (find(t, m->execution))
		return err_set(err, ERR_PROTOCOL, "execution %u exists already", m->execution);
	if (!m->tty && (ids[STREAM_OUT] == ids[STREAM_ERR] || ids[STREAM_IN] == ids[STREAM_OUT] || ids[STREAM_IN] == ids[STREAM_ERR]))
		return err_set(err, ERR_PROTOCOL, "execution %u has one stream twice", m->execution);
	struct execution *e = add(t, m->execution);
	if (!e)
		return refuse(t, m, EAGAIN, err);
	struct stdio io = { .ours = { -1, -1, -1 }, .theirs = { -1, -1, -1 } };
	int r = m->tty ? make_terminal(e, m, &io) : make_pipes(ids, &io);
	if (open_streams(e, ids, &io, err) < 0) {
		stdio_close(io.ours);
		stdio_close(io.theirs);
		remove_execution(e);
		return -1;
	}
	if (r == 0)
		r = launch(e, m, &io);
	stdio_close(io.ours);
	stdio_close(io.theirs);
	if (r == 0)
		return 0;
	remove_execution(e);
	return send_started(t, m->execution, 0, -r, err);
}

/* ---- running ---- */

void exec_signal(struct exec_table *t, const struct wire_signal *m)
{
	struct execution *e = find(t, m->execution);
	if (!e || e->pid <= 0)
		return;
	/* no such group: the child hasn't come to its setsid yet */
	if (kill(-e->pid, (int)m->signal) < 0 && errno == ESRCH)
		kill(e->pid, (int)m->signal);
}

void exec_resize(struct exec_table *t, const struct wire_resize *m)
{
	struct execution *e = find(t, m->execution);
	if (e && e->terminal >= 0)
		pty_resize(e->terminal, m->rows, m->columns);
}

void exec_kill_all(struct exec_table *t)
{
	for (unsigned i = 0; i < EXEC_CEILING; i++)
		if (t->slots[i] && t->slots[i]->pid > 0) {
			kill(t->slots[i]->pid, SIGKILL);
			kill(-t->slots[i]->pid, SIGKILL);
		}
}

/* ---- the end ---- */

static int send_exited(struct exec_table *t, uint32_t execution, int wait_status, struct err *err)
{
	struct wire_exec_exited m = { .execution = execution, .wait_status = wait_status };
	struct buf body;
	buf_init(&body, MUX_MESSAGE_MAX);
	int r = wire_exec_exited_encode(&body, &m);
	if (r == 0)
		r = mux_send(t->mux, WIRE_EXEC_EXITED, body.data, body.len, err);
	buf_free(&body);
	return r;
}

int exec_reaped(struct exec_table *t, pid_t pid, int wait_status, struct err *err)
{
	struct execution *e = NULL;
	for (unsigned i = 0; i < EXEC_CEILING && !e; i++)
		if (t->slots[i] && t->slots[i]->pid == pid)
			e = t->slots[i];
	if (!e)
		return 0; /* an orphan */
	/* the report is in by now: the process that held the other end is gone */
	if (read_report(e, err) < 0)
		return -1;
	e->pid = -1;
	if (!e->failed && send_exited(t, e->number, wait_status, err) < 0)
		return -1;
	close_stream(&e->streams[STREAM_IN]);
	close_terminal(e);
	for (unsigned i = STREAM_OUT; i < N_STREAMS; i++) {
		if (!e->streams[i].pump)
			continue;
		pump_stop_writing(e->streams[i].pump);
		pump_drain(e->streams[i].pump);
	}
	remove_if_over(e);
	return 0;
}
