/* SPDX-License-Identifier: Apache-2.0 */
#include "gate/upstream-messages.h"

#define UPSTREAM_BETWEEN "supervisor and upstream half"

static int end(const struct cursor *c, const char *what, struct err *err) { return message_end(c, true, what, UPSTREAM_BETWEEN, err); }

int upstream_msg_type(const void *p, size_t n, uint32_t *ret) { return message_type(p, n, ret); }

int upstream_msg_config_encode(struct buf *out, const struct gate_msg_config *m) { return config_message_encode(out, UPSTREAM_CONFIG, m); }

int upstream_msg_config_decode(const void *p, size_t n, struct gate_msg_config *ret, struct err *err)
{
	return config_message_decode(p, n, UPSTREAM_CONFIG, UPSTREAM_BETWEEN, ret, err);
}

int upstream_msg_policy_encode(struct buf *out, const struct gate_msg_policy *m) { return policy_message_encode(out, UPSTREAM_POLICY, m); }

int upstream_msg_policy_decode(const void *p, size_t n, struct gate_msg_policy *ret, struct err *err)
{
	return policy_message_decode(p, n, UPSTREAM_POLICY, UPSTREAM_BETWEEN, ret, err);
}

/* SECRET and REVOKE both are a name. */
static int name_decode(const void *p, size_t n, uint32_t type, const char *what, char ret[SECRET_NAME_MAX + 1], struct err *err)
{
	struct cursor c = message_begin(p, n, type);
	message_text(&c, ret, SECRET_NAME_MAX + 1, 1);
	return end(&c, what, err);
}

int upstream_msg_secret_encode(struct buf *out, const struct upstream_msg_secret *m)
{
	return buf_put_u32(out, UPSTREAM_SECRET) | buf_put_str(out, m->name);
}

int upstream_msg_secret_decode(const void *p, size_t n, struct upstream_msg_secret *ret, struct err *err)
{
	return name_decode(p, n, UPSTREAM_SECRET, "SECRET", ret->name, err);
}

int upstream_msg_revoke_encode(struct buf *out, const struct upstream_msg_revoke *m)
{
	return buf_put_u32(out, UPSTREAM_REVOKE) | buf_put_str(out, m->name);
}

int upstream_msg_revoke_decode(const void *p, size_t n, struct upstream_msg_revoke *ret, struct err *err)
{
	return name_decode(p, n, UPSTREAM_REVOKE, "REVOKE", ret->name, err);
}

int upstream_msg_helped_encode(struct buf *out, const struct upstream_msg_helped *m)
{
	return buf_put_u32(out, UPSTREAM_HELPED) | buf_put_u64(out, m->call) | buf_put_u8(out, m->started);
}

int upstream_msg_helped_decode(const void *p, size_t n, struct upstream_msg_helped *ret, struct err *err)
{
	struct cursor c = message_begin(p, n, UPSTREAM_HELPED);
	struct upstream_msg_helped m = { .call = cursor_u64(&c) };
	m.started = message_bool(&c);
	if (end(&c, "HELPED", err) < 0)
		return -1;
	*ret = m;
	return 0;
}

int upstream_msg_ready_encode(struct buf *out) { return buf_put_u32(out, UPSTREAM_READY); }

int upstream_msg_ready_decode(const void *p, size_t n, struct err *err)
{
	struct cursor c = message_begin(p, n, UPSTREAM_READY);
	return end(&c, "READY", err);
}

int upstream_msg_policy_set_encode(struct buf *out, const struct gate_msg_policy_set *m)
{
	return policy_set_message_encode(out, UPSTREAM_DONE_POLICY, m);
}

int upstream_msg_policy_set_decode(const void *p, size_t n, struct gate_msg_policy_set *ret, struct err *err)
{
	return policy_set_message_decode(p, n, UPSTREAM_DONE_POLICY, UPSTREAM_BETWEEN, ret, err);
}

int upstream_msg_help_encode(struct buf *out, const struct upstream_msg_help *m)
{
	return buf_put_u32(out, UPSTREAM_HELP) | buf_put_u64(out, m->call) | buf_put_str(out, m->name);
}

int upstream_msg_help_decode(const void *p, size_t n, struct upstream_msg_help *ret, struct err *err)
{
	struct cursor c = message_begin(p, n, UPSTREAM_HELP);
	struct upstream_msg_help m = { .call = cursor_u64(&c) };
	message_text(&c, m.name, sizeof(m.name), 1);
	if (end(&c, "HELP", err) < 0)
		return -1;
	*ret = m;
	return 0;
}

int upstream_msg_loaded_encode(struct buf *out, const struct upstream_msg_loaded *m)
{
	return buf_put_u32(out, UPSTREAM_LOADED) | buf_put_str(out, m->name) | buf_put_u8(out, m->ok) | buf_put_str(out, m->sentence);
}

int upstream_msg_loaded_decode(const void *p, size_t n, struct upstream_msg_loaded *ret, struct err *err)
{
	struct cursor c = message_begin(p, n, UPSTREAM_LOADED);
	struct upstream_msg_loaded m = { 0 };
	message_text(&c, m.name, sizeof(m.name), 1);
	m.ok = message_bool(&c);
	message_text(&c, m.sentence, sizeof(m.sentence), 0);
	if (end(&c, "LOADED", err) < 0)
		return -1;
	*ret = m;
	return 0;
}
