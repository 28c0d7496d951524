/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The supervisor's end of gate/upstream-protocol.h. Secrets go through here as descriptors and are never read; what a helper prints goes from its pipe straight to
 * the upstream half.
 *
 * A half that isn't ready in time ends the sandbox: a start must never wait for ever.
 */
#include "sandbox/internal.h"

#include <string.h>

#include "base/fd.h"
#include "base/mem.h"
#include "base/text.h"
#include "gate/policy-file.h"
#include "gate/upstream-messages.h"
#include "sandbox/part_link.h"

#define START_WITHIN_NS (30 * NS_PER_S)

struct upstream_link {
	struct sandbox *sandbox;
	struct part_link *part;
	struct loop_timer *deadline; /* of the start, of both halves */
	size_t n_loaded;             /* secrets of the start that it has answered for */
	bool ready;
};

/* ---- sending ---- */

static int post(struct upstream_link *u, struct buf *b, const int *fds, size_t n_fds, struct err *err)
{
	int r = part_link_post(u->part, b, fds, n_fds, err);
	buf_free(b);
	return r < 0 ? err_wrap(err, "the upstream half of the gate of sandbox %s", u->sandbox->spec.id) : 0;
}

static int send_config(struct upstream_link *u, struct err *err)
{
	struct buf b;
	int fd;
	const struct gate_msg_config *m = sandbox_gate_config(u->sandbox, &fd, err);
	if (!m)
		return -1;
	buf_init(&b, UPSTREAM_MESSAGE_MAX);
	if (upstream_msg_config_encode(&b, m) == 0)
		return post(u, &b, &fd, 1, err);
	fd_close(&fd);
	return err_set(err, ERR_LIMIT, "the configuration of the gate's upstream half is too large");
}

int upstream_link_secret(struct upstream_link *u, struct grant *grant, struct err *err)
{
	struct upstream_msg_secret m = { 0 };
	int fds[] = { fd_steal(&grant->file_fd), fd_steal(&grant->key_fd) };
	struct buf b;
	memcpy(m.name, grant->name, sizeof(m.name));
	buf_init(&b, UPSTREAM_MESSAGE_MAX);
	upstream_msg_secret_encode(&b, &m);
	return post(u, &b, fds, fds[1] >= 0 ? 2 : 1, err);
}

int upstream_link_revoke(struct upstream_link *u, const char *name, struct err *err)
{
	struct upstream_msg_revoke m = { 0 };
	struct buf b;
	strncpy(m.name, name, SECRET_NAME_MAX);
	buf_init(&b, UPSTREAM_MESSAGE_MAX);
	upstream_msg_revoke_encode(&b, &m);
	return post(u, &b, NULL, 0, err);
}

int upstream_link_policy(struct upstream_link *u, uint64_t generation, const struct policy *p, struct err *err)
{
	struct gate_msg_policy m = { .generation = generation };
	struct buf b;
	int fd = policy_fd_make(p, &m.policy_len, err);
	if (fd < 0)
		return -1;
	buf_init(&b, UPSTREAM_MESSAGE_MAX);
	upstream_msg_policy_encode(&b, &m);
	return post(u, &b, &fd, 1, err);
}

int upstream_link_helped(struct upstream_link *u, uint64_t call, int fd, struct err *err)
{
	struct upstream_msg_helped m = { .call = call, .started = fd >= 0 };
	struct buf b;
	buf_init(&b, UPSTREAM_MESSAGE_MAX);
	upstream_msg_helped_encode(&b, &m);
	return post(u, &b, &fd, fd >= 0 ? 1 : 0, err);
}

/* ---- receiving ---- */

static int on_ready(struct upstream_link *u, const void *p, size_t n, struct err *err)
{
	if (upstream_msg_ready_decode(p, n, err) < 0)
		return -1;
	u->ready = true;
	sandbox_maybe_ready(u->sandbox);
	return 0;
}

/* One that can't be opened ends the start: a box whose requests would fail later is no box that was asked for. */
static int first_loaded(struct upstream_link *u, const struct grant *grant, const struct upstream_msg_loaded *m, struct err *err)
{
	char sentence[512];
	events_secret(u->sandbox, grant, "granted", m->ok, NULL, NULL, NULL);
	if (!m->ok)
		return err_set(err, ERR_INVALID, "the secret \"%s\" can't be used: %s", grant->name,
			text_escape(m->sentence, strlen(m->sentence), sentence, sizeof(sentence)));
	u->n_loaded++;
	sandbox_maybe_ready(u->sandbox);
	return 0;
}

static int on_loaded(struct upstream_link *u, const void *p, size_t n, struct err *err)
{
	struct upstream_msg_loaded m;
	if (upstream_msg_loaded_decode(p, n, &m, err) < 0)
		return -1;
	struct grant *grant = grants_find(u->sandbox->grants, m.name);
	if (!grant)
		return err_set(err, ERR_PROTOCOL, "the upstream half answered for a secret that it wasn't given");
	return upstream_link_ready(u) ? change_secret_done(u->sandbox, grant, &m, err) : first_loaded(u, grant, &m, err);
}

static int on_policy_done(struct upstream_link *u, const void *p, size_t n, struct err *err)
{
	struct gate_msg_policy_set m;
	return upstream_msg_policy_set_decode(p, n, &m, err) < 0 ? -1 : change_upstream_done(u->sandbox, &m, err);
}

static int on_help(struct upstream_link *u, const void *p, size_t n, struct err *err)
{
	struct upstream_msg_help m;
	return upstream_msg_help_decode(p, n, &m, err) < 0 ? -1 : helpers_ask(u->sandbox, m.call, m.name, err);
}

static int on_message(void *ctx, const void *p, size_t n, struct err *err)
{
	static int (*const handlers[])(struct upstream_link *, const void *, size_t, struct err *) = {
		[UPSTREAM_READY] = on_ready, [UPSTREAM_LOADED] = on_loaded, [UPSTREAM_DONE_POLICY] = on_policy_done, [UPSTREAM_HELP] = on_help,
	};
	uint32_t type;
	if (upstream_msg_type(p, n, &type) < 0 || type >= ARRAY_LEN(handlers) || !handlers[type])
		return err_set(err, ERR_PROTOCOL, "the gate's upstream half sent a message that has no meaning");
	return handlers[type](ctx, p, n, err);
}

static void on_broken(void *ctx, const struct err *err)
{
	sandbox_fail(((struct upstream_link *)ctx)->sandbox, err);
}

static void on_lost(void *ctx, const char *how)
{
	struct sandbox *s = ((struct upstream_link *)ctx)->sandbox;
	struct err err;
	if (s->phase >= SB_ENDING)
		return;
	err_set(&err, ERR_CLOSED, "the upstream half of the gate of sandbox %s %s, so the sandbox was ended", s->spec.id, how);
	sandbox_fail(s, &err);
}

/* ---- life ---- */

static void on_deadline(void *ctx)
{
	struct upstream_link *u = ctx;
	struct sandbox *s = u->sandbox;
	struct err err;
	if (s->phase != SB_STARTING || (upstream_link_ready(u) && s->ca_pem))
		return;
	err_set(&err, ERR_TIMEOUT, "%s of the gate of sandbox %s was not ready within %u s, so the sandbox was ended",
		s->ca_pem ? "the upstream half" : "the front half", s->spec.id, (unsigned)(START_WITHIN_NS / NS_PER_S));
	sandbox_fail(s, &err);
}

bool upstream_link_ready(const struct upstream_link *u)
{
	return u->ready && u->n_loaded == (u->sandbox->grants ? u->sandbox->grants->n : 0);
}

static int hand_over_secrets(struct upstream_link *u, struct err *err)
{
	struct grants *g = u->sandbox->grants;
	for (size_t i = 0; g && i < g->n; i++)
		if (upstream_link_secret(u, &g->list[i], err) < 0)
			return -1;
	return 0;
}

struct upstream_link *upstream_link_new(struct sandbox *s, int control_fd, struct err *err)
{
	static const struct part_link_ops ops = { on_message, on_broken, on_lost };
	struct upstream_link *u = mem_alloc(sizeof(*u));
	u->sandbox = s;
	u->part = part_link_new(s->loop, control_fd, &ops, u);
	u->deadline = loop_timer_new(s->loop, on_deadline, u);
	loop_timer_set(u->deadline, START_WITHIN_NS, 0);
	if (send_config(u, err) < 0 || hand_over_secrets(u, err) < 0)
		return upstream_link_free(u);
	return u;
}

struct upstream_link *upstream_link_free(struct upstream_link *u)
{
	if (!u)
		return NULL;
	loop_timer_free(u->deadline);
	part_link_free(u->part);
	return mem_free(u);
}
