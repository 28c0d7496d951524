/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/agent.h"

#include <stdlib.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "agent/dns_server.h"
#include "agent/egress.h"
#include "agent/exec.h"
#include "agent/init.h"
#include "agent/listener.h"
#include "base/fd.h"
#include "base/mem.h"
#include "base/text.h"
#include "event/loop.h"
#include "wire/messages.h"
#include "wire/mux.h"

enum { SHUTDOWN_LOOK_MS = 5, SHUTDOWN_MAX_MS = 2000 };

struct agent {
	struct agent_options options;
	struct loop *loop;
	struct mux *mux;               /* NULL once the pipe is over */
	struct reaper *reaper;
	struct exec_table *execs;
	struct listeners *listeners;   /* this and the next two: with egress only */
	struct egress *egress;
	struct dns_server *dns;
	struct buf exec_parts;         /* of an EXEC too long for one message */
	bool configured;               /* CONFIG has come */
	struct loop_timer *shutdown;   /* running: SHUTDOWN has come */
	uint64_t shutdown_ns;
};

/* ---- the end ---- */

static void kill_all(struct agent *a)
{
	init_kill_all();
	if (a->execs)
		exec_kill_all(a->execs);
}

/* Without the pipe there is no reason for anything in the box to go on. */
static void end(struct agent *a, int status)
{
	kill_all(a);
	loop_quit(a->loop, status);
}

static void on_closed(void *ctx, const struct err *err)
{
	end(ctx, err->code == ERR_CLOSED ? EXIT_SUCCESS : EXIT_FAILURE);
}

static void on_child(void *ctx, pid_t pid, int wait_status)
{
	struct agent *a = ctx;
	/* the host would wait for that message for ever */
	if (exec_reaped(a->execs, pid, wait_status, NULL) < 0)
		end(a, EXIT_FAILURE);
}

/* Ends when everything that was killed is collected and what it had written is on the pipe, or the host has stopped reading. */
static void on_shutdown_look(void *ctx)
{
	struct agent *a = ctx;
	bool over = reaper_collect(a->reaper) && exec_idle(a->execs) && mux_flushed(a->mux);
	if (over || time_monotonic_ns() - a->shutdown_ns > SHUTDOWN_MAX_MS * NS_PER_MS)
		end(a, EXIT_SUCCESS);
}

static int on_shutdown(struct agent *a, const uint8_t *body, size_t len, struct err *err)
{
	if (len > 0)
		return err_set(err, ERR_PROTOCOL, "SHUTDOWN has no content");
	if (!a->reaper || a->shutdown_ns > 0) {
		end(a, EXIT_SUCCESS);
		return 0;
	}
	kill_all(a);
	a->shutdown_ns = time_monotonic_ns();
	a->shutdown = loop_timer_new(a->loop, on_shutdown_look, a);
	loop_timer_set(a->shutdown, 0, SHUTDOWN_LOOK_MS * NS_PER_MS);
	return 0;
}

/* ---- messages ---- */

static int start_egress(struct agent *a, const struct wire_config *config, struct err *err)
{
	a->listeners = listeners_new(a->loop);
	a->egress = egress_new(a->loop, a->mux, a->listeners);
	if (egress_start(a->egress, config, err) < 0)
		return -1;
	a->dns = dns_server_new(a->loop, a->mux, a->egress, a->listeners, a->options.dns_port, err);
	return a->dns ? 0 : -1;
}

static int start(struct agent *a, const struct wire_config *config, struct err *err)
{
	a->execs = exec_table_new(a->loop, a->mux);
	exec_table_set_max(a->execs, config->exec_max);
	a->reaper = reaper_new(a->loop, on_child, a, err);
	if (!a->reaper)
		return -1;
	return config->egress ? start_egress(a, config, err) : 0;
}

static int send_failed(struct agent *a, const struct err *cause, struct err *err)
{
	struct wire_failed m = { .code = cause->code, .text = (char *)cause->text };
	struct buf body;
	buf_init(&body, MUX_MESSAGE_MAX);
	int r = wire_failed_encode(&body, &m);
	if (r == 0)
		r = mux_send(a->mux, WIRE_FAILED, body.data, body.len, err);
	buf_free(&body);
	return r;
}

static int on_config(struct agent *a, const uint8_t *body, size_t len, struct err *err)
{
	struct wire_config m;
	if (a->configured)
		return err_set(err, ERR_PROTOCOL, "CONFIG has come twice");
	if (wire_config_decode(body, len, &m, err) < 0)
		return -1;
	struct err cause = ERR_INIT;
	a->configured = true;
	if (start(a, &m, &cause) == 0)
		return 0;
	exec_table_set_max(a->execs, 0); /* a box that isn't as it should be runs nothing */
	return send_failed(a, &cause, err);
}

static int on_exec_part(struct agent *a, const uint8_t *body, size_t len, struct err *err)
{
	if (buf_append(&a->exec_parts, body, len) < 0)
		return err_set(err, ERR_LIMIT, "an EXEC has more than %u bytes", WIRE_EXEC_MAX);
	return 0;
}

static int on_exec(struct agent *a, const uint8_t *body, size_t len, struct err *err)
{
	struct wire_exec m;
	/* The usual one fits in one message and is read in place. */
	bool whole = a->exec_parts.len == 0;
	if (!whole && on_exec_part(a, body, len, err) < 0)
		return -1;
	int r = wire_exec_decode(whole ? body : a->exec_parts.data, whole ? len : a->exec_parts.len, &m, err);
	buf_free(&a->exec_parts);
	if (r < 0)
		return -1;
	r = exec_start(a->execs, &m, err);
	wire_exec_done(&m);
	return r;
}

static int on_signal(struct agent *a, const uint8_t *body, size_t len, struct err *err)
{
	struct wire_signal m;
	if (wire_signal_decode(body, len, &m, err) < 0)
		return -1;
	exec_signal(a->execs, &m);
	return 0;
}

static int on_resize(struct agent *a, const uint8_t *body, size_t len, struct err *err)
{
	struct wire_resize m;
	if (wire_resize_decode(body, len, &m, err) < 0)
		return -1;
	exec_resize(a->execs, &m);
	return 0;
}

static int on_name_answer(struct agent *a, const uint8_t *body, size_t len, struct err *err)
{
	struct wire_name_answer m;
	if (wire_name_answer_decode(body, len, &m, err) < 0)
		return -1;
	if (a->dns)
		dns_server_answer(a->dns, &m);
	return 0;
}

static const struct handler {
	int (*fn)(struct agent *a, const uint8_t *body, size_t len, struct err *err);
	bool any_time; /* else only after CONFIG */
} handlers[WIRE_MESSAGE_MAX] = {
	[WIRE_CONFIG] = { on_config, true },
	[WIRE_EXEC] = { on_exec, false },
	[WIRE_EXEC_PART] = { on_exec_part, false },
	[WIRE_SIGNAL] = { on_signal, false },
	[WIRE_RESIZE] = { on_resize, false },
	[WIRE_NAME_ANSWER] = { on_name_answer, false },
	[WIRE_SHUTDOWN] = { on_shutdown, true },
};

static int on_message(void *ctx, uint16_t type, const uint8_t *body, size_t len, struct err *err)
{
	struct agent *a = ctx;
	const struct handler *h = type < WIRE_MESSAGE_MAX ? &handlers[type] : NULL;
	if (!h || !h->fn)
		return err_set(err, ERR_PROTOCOL, "message type %u is not one for an agent", type);
	if (!h->any_time && !a->configured)
		return err_set(err, ERR_PROTOCOL, "message type %u has come before CONFIG", type);
	return h->fn(a, body, len, err);
}

/* ---- life ---- */

static int send_hello(struct agent *a)
{
	struct wire_hello m = { .version = WIRE_VERSION, .pid_in_box = (uint32_t)getpid() };
	struct buf body;
	buf_init(&body, MUX_MESSAGE_MAX);
	int r = wire_hello_encode(&body, &m);
	if (r == 0)
		r = mux_send(a->mux, WIRE_HELLO, body.data, body.len, NULL);
	buf_free(&body);
	return r;
}

static void agent_done(struct agent *a)
{
	loop_timer_free(a->shutdown);
	dns_server_free(a->dns);
	egress_free(a->egress);
	listeners_free(a->listeners);
	exec_table_free(a->execs);
	reaper_free(a->reaper);
	buf_free(&a->exec_parts);
	mux_free(a->mux);
	loop_free(a->loop);
}

int agent_run(const struct agent_options *options)
{
	static const struct mux_ops ops = { .on_message = on_message, .on_closed = on_closed };
	struct agent a = { .options = *options };
	init_ignore_signals();
	/* Programs in the box have our uid: not dumpable means that they can't ptrace us or reach the pipe through /proc/1/fd. It
	 * would only be their own box that they break, but a broken agent can't say what happened. */
	prctl(PR_SET_DUMPABLE, 0);
	fd_set_cloexec(options->pipe_fd, true);
	buf_init(&a.exec_parts, WIRE_EXEC_MAX);
	a.loop = loop_new();
	a.mux = mux_new(a.loop, options->pipe_fd, options->pipe_fd, MUX_BOX, &ops, &a);
	int status = send_hello(&a) < 0 ? EXIT_FAILURE : loop_run(a.loop);
	agent_done(&a);
	return status;
}
