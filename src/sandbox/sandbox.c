/* SPDX-License-Identifier: Apache-2.0 */
/* The state machine: start, readiness, messages of the agent, failure. The end is in teardown.c. */
#include "sandbox/internal.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/socket.h>

#include "base/fd.h"
#include "base/mem.h"
#include "base/text.h"
#include "policy/request.h"
#include "sandbox/trust.h"

static void teardown_begin_deferred(void *ctx)
{
	teardown_begin(ctx);
}

void sandbox_end(struct sandbox *s, enum reason reason)
{
	if (s->phase >= SB_ENDING)
		return;
	s->phase = SB_ENDING;
	if (s->result.end_reason == REASON_NONE)
		s->result.end_reason = reason;
	/* Not from inside the callback that found the reason: its stream or pump is still in use there. */
	loop_defer(s->loop, teardown_begin_deferred, s);
}

void sandbox_fail(struct sandbox *s, const struct err *err)
{
	if (!s->result.failed && s->phase < SB_ENDED) {
		s->result.failed = true;
		s->result.err = *err;
	}
	sandbox_end(s, s->result.end_reason);
}

bool sandbox_egress_ready(const struct sandbox *s)
{
	return s->got_probe && (!s->inspects || (s->upstream && upstream_link_ready(s->upstream)));
}

void sandbox_maybe_ready(struct sandbox *s)
{
	executions_dispatch(s);
	if (s->phase != SB_STARTING || !s->have_box || !s->got_hello || !sandbox_egress_ready(s) || !s->got_start_record)
		return;
	s->phase = SB_READY;
	s->result.ready_after_ns = time_monotonic_ns() - s->started_monotonic_ns;
	events_ready(s);
	s->ops.on_ready(s->ctx);
}

/* ---- the agent ---- */

static int send_config(struct sandbox *s, struct err *err)
{
	struct wire_config c = { .egress = s->spec.egress, .proxy_port = SANDBOX_PROXY_PORT, .exec_max = 64 };
	struct buf b;
	for (size_t i = 0; i < s->policy->n_rules; i++) {
		const struct network_rule *r = &s->policy->rules[i];
		for (unsigned p = 0; r->is_address && p < r->n_ports && c.n_literals < ARRAY_LEN(c.literals); p++) {
			c.literals[c.n_literals].address = r->address;
			c.literals[c.n_literals++].port = r->ports[p];
		}
	}
	buf_init(&b, MUX_MESSAGE_MAX);
	int r = wire_config_encode(&b, &c);
	r = r < 0 ? err_set(err, ERR_LIMIT, "the agent's configuration is too large") : mux_send(s->mux, WIRE_CONFIG, b.data, b.len, err);
	buf_free(&b);
	return r;
}

static int on_hello(struct sandbox *s, const uint8_t *body, size_t len, struct err *err)
{
	struct wire_hello m;
	if (wire_hello_decode(body, len, &m, err) < 0)
		return -1;
	if (s->got_hello)
		return err_set(err, ERR_PROTOCOL, "the agent said HELLO twice");
	if (m.version != WIRE_VERSION)
		return err_set(err, ERR_PROTOCOL, "bulkhead-agent speaks version %u of the pipe protocol and this program %u: install all programs from one build",
			m.version, WIRE_VERSION);
	s->got_hello = true;
	sandbox_maybe_ready(s);
	return 0;
}

static int on_exec_started(struct sandbox *s, const uint8_t *body, size_t len, struct err *err)
{
	struct wire_exec_started m;
	return wire_exec_started_decode(body, len, &m, err) < 0 ? -1 : execution_handle_started(s, &m, err);
}

static int on_exec_exited(struct sandbox *s, const uint8_t *body, size_t len, struct err *err)
{
	struct wire_exec_exited m;
	return wire_exec_exited_decode(body, len, &m, err) < 0 ? -1 : execution_handle_exited(s, &m, err);
}

static int on_name_query(struct sandbox *s, const uint8_t *body, size_t len, struct err *err)
{
	struct wire_name_query m;
	if (wire_name_query_decode(body, len, &m, err) < 0)
		return -1;
	return s->gate ? gate_link_name(s->gate, &m, err) : 0;
}

static int on_egress_open(struct sandbox *s, const uint8_t *body, size_t len, struct err *err)
{
	struct wire_egress_open m;
	if (wire_egress_open_decode(body, len, &m, err) < 0)
		return -1;
	return s->gate ? gate_link_open(s->gate, &m, err) : 0;
}

static int on_agent_failed(struct sandbox *s, const uint8_t *body, size_t len, struct err *err)
{
	struct wire_failed m;
	struct err failure;
	char text[512];
	if (wire_failed_decode(body, len, &m, err) < 0)
		return -1;
	err_set(&failure, m.code, "the agent in sandbox %s can't go on: %s", s->spec.id, text_escape(m.text, strlen(m.text), text, sizeof(text)));
	mem_free(m.text);
	sandbox_fail(s, &failure);
	return 0;
}

static const struct {
	uint16_t type;
	bool before_hello;
	int (*handle)(struct sandbox *s, const uint8_t *body, size_t len, struct err *err);
} agent_messages[] = {
	{ WIRE_HELLO, true, on_hello },
	{ WIRE_EXEC_STARTED, false, on_exec_started },
	{ WIRE_EXEC_EXITED, false, on_exec_exited },
	{ WIRE_NAME_QUERY, false, on_name_query },
	{ WIRE_EGRESS_OPEN, false, on_egress_open },
	{ WIRE_FAILED, false, on_agent_failed },
};

static int on_agent_message(void *ctx, uint16_t type, const uint8_t *body, size_t len, struct err *err)
{
	struct sandbox *s = ctx;
	for (size_t i = 0; i < ARRAY_LEN(agent_messages); i++)
		if (agent_messages[i].type == type) {
			if (!s->got_hello && !agent_messages[i].before_hello)
				return err_set(err, ERR_PROTOCOL, "the agent spoke before it said HELLO");
			return agent_messages[i].handle(s, body, len, err);
		}
	return err_set(err, ERR_PROTOCOL, "the agent sent message type %u, which a host doesn't take", type);
}

/* The pipe is over. In ENDING that is what we wait for; before, the box died under its command. */
static void on_pipe_closed(void *ctx, const struct err *cause)
{
	struct sandbox *s = ctx;
	struct err err = *cause;
	s->ending.pipe_done = true;
	if (s->phase == SB_ENDING) {
		teardown_step(s);
		return;
	}
	/* A box that was never finished: its back end says why. */
	if (s->launching)
		return;
	if (s->limits)
		limit_watch_sample(s->limits);
	if (s->result.limits_hit & SANDBOX_LIMIT_BIT(REASON_LIMIT_MEMORY)) { /* memory: the kernel took pid 1 of the box */
		sandbox_end(s, REASON_LIMIT_MEMORY);
		return;
	}
	err_wrap(&err, "the agent in sandbox %s is gone", s->spec.id);
	sandbox_fail(s, &err);
}

static const struct mux_ops agent_ops = { .on_message = on_agent_message, .on_closed = on_pipe_closed };

/* ---- starting ---- */

static void on_denied_syscall(void *ctx, const struct syscall_denial *d)
{
	denial_log_add(((struct sandbox *)ctx)->denials, d);
}

static int take_box(struct sandbox *s, struct box *box, struct err *err)
{
	int notify_fd = fd_steal(&box->notify_fd);
	s->box = *box;
	s->have_box = true;
	if (notify_fd >= 0) {
		s->notify = notify_new(s->loop, notify_fd, on_denied_syscall, s, err);
		if (!s->notify)
			return -1;
	}
	limit_watch_box(s->limits);
	return 0;
}

static void on_box(void *ctx, struct box *box, const struct err *failure)
{
	struct sandbox *s = ctx;
	struct err err;
	s->launching = false;
	if (failure) {
		s->ending.pipe_done = true;
		sandbox_fail(s, failure);
	} else if (take_box(s, box, &err) < 0) {
		sandbox_fail(s, &err);
	} else {
		sandbox_maybe_ready(s); /* the agent's HELLO may have come before its launcher's answer */
	}
	if (s->phase == SB_ENDING)
		teardown_step(s);
}

static void on_start_recorded(void *ctx, uint64_t seq, const struct err *err)
{
	struct sandbox *s = ctx;
	if (err)
		return; /* on_audit_lost tells */
	s->got_start_record = true;
	sandbox_maybe_ready(s);
}

static void on_audit_lost(void *ctx, const struct err *cause)
{
	struct sandbox *s = ctx;
	struct err err = *cause;
	if (s->phase == SB_ENDED)
		return;
	err_wrap(&err, "the record of sandbox %s can't be written, so nothing may run in it", s->spec.id);
	if (s->result.end_reason == REASON_NONE)
		s->result.end_reason = REASON_RECORD_UNAVAILABLE;
	sandbox_fail(s, &err);
	if (s->phase == SB_ENDING)
		teardown_step(s);
}

static int start_record(struct sandbox *s, struct part_sockets *sockets, struct err *err)
{
	if (parts_start_auditor(s, sockets, err) < 0)
		return -1;
	s->audit = audit_client_new(s->loop, fd_steal(&sockets->audit), on_audit_lost, s);
	events_start(s, on_start_recorded);
	return 0;
}

static int start_gate(struct sandbox *s, int audit_fd, int link_fd, struct err *err)
{
	int fd;
	if (parts_start_gate(s, audit_fd, link_fd, &fd, err) < 0)
		return -1;
	s->gate = gate_link_new(s, fd, err);
	return s->gate ? 0 : -1;
}

static int start_upstream(struct sandbox *s, int audit_fd, int link_fd, struct err *err)
{
	int fd;
	if (parts_start_upstream(s, audit_fd, link_fd, &fd, err) < 0)
		return -1;
	s->upstream = upstream_link_new(s, fd, err);
	return s->upstream ? 0 : -1;
}

/* The front half first: the box waits for its certificate. */
static int start_halves(struct sandbox *s, const struct part_sockets *sockets, struct err *err)
{
	int pair[2];
	if (parts_pair(SOCK_STREAM, pair, err) < 0)
		return -1;
	cleanup_fd int front = pair[0], upstream = pair[1];
	return start_gate(s, sockets->gate, front, err) < 0 ? -1 : start_upstream(s, sockets->upstream, upstream, err);
}

/* Commands may be asked for from here on: their streams are the pipe's. */
static int open_pipe(struct sandbox *s, struct err *err)
{
	int pair[2];
	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) < 0)
		return err_sys(err, errno, "cannot make the pipe between host and box");
	s->box_end = pair[1];
	s->mux = mux_new(s->loop, pair[0], pair[0], MUX_HOST, &agent_ops, s);
	return 0;
}

static int add_trust(struct sandbox *s, int fds[SPEC_FILES_MAX], struct err *err)
{
	cleanup_fd int root = open("/", O_PATH | O_DIRECTORY | O_CLOEXEC);
	return root < 0 ? err_sys(err, errno, "cannot open the host's root folder") : trust_add(&s->spec, fds, s->ca_pem, root, err);
}

static int start_box(struct sandbox *s, struct err *err)
{
	const struct isolate_backend *backend = isolate_find(s->result.level);
	int fds[SPEC_SOURCES_MAX], *trust_fds = fds + s->spec.n_mounts;
	if (!backend)
		return err_set(err, ERR_UNSUPPORTED, "this version of Bulkhead has no %s isolation; ask for `container`",
			isolation_level_name(s->result.level));
	for (size_t i = 0; i < s->spec.n_mounts; i++)
		fds[i] = s->mounts[i].fd;
	cleanup_fd int box_end = fd_steal(&s->box_end);
	if (s->inspects && add_trust(s, trust_fds, err) < 0)
		return -1;
	int r = backend->start(s->loop, &s->spec, fds, box_end, on_box, s, err);
	for (size_t i = 0; i < s->spec.n_files; i++)
		fd_close(&trust_fds[i]);
	if (r < 0)
		return -1;
	s->launching = true;
	/* Waits in the pipe until the agent reads it: one round trip less than answering its HELLO. */
	return send_config(s, err);
}

/* What the box trusts must be known before it is built. Without inspection it was launched long before. */
int sandbox_gate_ready(struct sandbox *s, struct err *err)
{
	if (s->inspects && s->phase == SB_STARTING)
		return start_box(s, err);
	return 0;
}

/* The launcher takes longest, so it goes first; the others start while it works. Where requests are inspected it has to wait for the gate's certificate. */
static int start_parts(struct sandbox *s, struct err *err)
{
	struct part_sockets sockets = { -1, -1, -1 };
	int r = open_pipe(s, err);
	if (r == 0 && !s->inspects)
		r = start_box(s, err);
	if (r == 0)
		r = start_record(s, &sockets, err);
	if (r == 0)
		r = s->inspects ? start_halves(s, &sockets, err) : start_gate(s, sockets.gate, -1, err);
	fd_close(&sockets.gate);
	fd_close(&sockets.upstream);
	if (r == 0)
		s->control = control_new(s, err);
	return r == 0 && s->control ? 0 : -1;
}

struct sandbox *sandbox_start(struct loop *loop, struct sandbox_config *config, const struct sandbox_ops *ops, void *ctx)
{
	struct sandbox *s = mem_alloc(sizeof(*s));
	struct err err;
	s->loop = loop;
	s->policy = s->start_policy = config->policy;
	s->generation = s->result.policy_generation = 1;
	s->inspects = policy_inspects(s->policy);
	s->grants = config->grants;
	s->result.grants = s->grants;
	s->dir = config->dir;
	s->spec = config->spec;
	s->mounts = config->mounts;
	s->resolvers = config->resolvers;
	s->ops = *ops;
	s->ctx = ctx;
	s->box = BOX_INIT;
	s->box_end = s->auditor.pidfd = s->gate_part.pidfd = s->upstream_part.pidfd = -1;
	s->started_monotonic_ns = time_monotonic_ns();
	s->result.id = s->spec.id;
	s->result.level = ISOLATION_CONTAINER;
	s->result.started_ns = time_realtime_ns();
	s->denials = denial_log_new(s);
	s->limits = limit_watch_new(s);
	if (start_parts(s, &err) < 0)
		sandbox_fail(s, &err);
	return s;
}

void sandbox_abort(struct sandbox *s, const struct err *err)
{
	sandbox_fail(s, err);
}

const char *sandbox_workdir(const struct sandbox *s)
{
	return s->spec.workdir;
}

const char *sandbox_ca_pem(const struct sandbox *s)
{
	return s->ca_pem;
}

const char *sandbox_id(const struct sandbox *s)
{
	return s->spec.id;
}

struct sandbox *sandbox_free(struct sandbox *s)
{
	if (!s)
		return NULL;
	s->free_asked = true;
	/* A queued step still holds the pointer: it frees. */
	if (!s->ending.stepping)
		sandbox_release(s);
	return NULL;
}

void sandbox_config_done(struct sandbox_config *c)
{
	for (size_t i = 0; c->mounts && i < c->spec.n_mounts; i++) {
		fd_close(&c->mounts[i].fd);
		mem_free(c->mounts[i].source);
	}
	mem_free(c->mounts);
	for (size_t i = 0; c->resolvers && c->resolvers[i]; i++)
		mem_free(c->resolvers[i]);
	mem_free(c->resolvers);
	grants_free(c->grants);
	spec_done(&c->spec);
}

void sandbox_release(struct sandbox *s)
{
	if (!s->free_asked)
		return;
	limit_watch_free(s->limits);
	denial_log_free(s->denials);
	files_log_free(s->files);
	loop_timer_free(s->ending.deadline);
	live_changes_free(s->live_changes);
	policy_free(s->own_policy);
	mem_free(s->ca_pem);
	mem_free(s->helper_complaint);
	struct sandbox_config taken = { .spec = s->spec, .mounts = s->mounts, .resolvers = s->resolvers, .grants = s->grants };
	sandbox_config_done(&taken);
	mem_free(s);
}
