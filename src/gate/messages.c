/* SPDX-License-Identifier: Apache-2.0 */
#include "gate/messages.h"

#include <string.h>

#include "base/mem.h"
#include "policy/policy.h"

#define POLICY_JSON_MAX (4u * POLICY_TEXT_MAX)

int gate_msg_type(const void *p, size_t n, uint32_t *ret)
{
	struct cursor c = cursor_make(p, n);
	uint32_t type = cursor_u32(&c);
	if (c.bad)
		return -1;
	*ret = type;
	return 0;
}

/* Every decoder begins and ends alike: the type, and nothing left over. */
static struct cursor begin(const void *p, size_t n, uint32_t type)
{
	struct cursor c = cursor_make(p, n);
	if (cursor_u32(&c) != type)
		c.bad = true;
	return c;
}

static int end(const struct cursor *c, bool valid, const char *what, struct err *err)
{
	if (valid && cursor_done(c))
		return 0;
	return err_set(err, ERR_PROTOCOL, "a %s message between supervisor and gate is malformed; both must be of the same version",
		what);
}

/* A byte string into a fixed array, NUL-terminated. Whether a NUL may be inside is the caller's question. */
static size_t take_text(struct cursor *c, char *out, size_t room)
{
	size_t len = 0;
	const uint8_t *p = cursor_bytes(c, room - 1, &len);
	if (!p)
		len = 0;
	if (len)
		memcpy(out, p, len);
	out[len] = 0;
	return len;
}

static bool take_bool(struct cursor *c)
{
	uint8_t v = cursor_u8(c);
	c->bad |= v > 1;
	return v == 1;
}

static enum reason take_reason(struct cursor *c)
{
	uint32_t v = cursor_u32(c);
	c->bad |= v >= REASON_MAX;
	return c->bad ? REASON_NONE : (enum reason)v;
}

int gate_msg_config_encode(struct buf *out, const struct gate_msg_config *m)
{
	int e = buf_put_u32(out, GATE_CONFIG) | buf_put_bytes(out, m->policy, m->policy_len) | buf_put_u32(out, m->n_resolvers);
	for (unsigned i = 0; i < m->n_resolvers; i++)
		e |= buf_put_str(out, m->resolvers[i]);
	return e;
}

int gate_msg_config_decode(const void *p, size_t n, struct gate_msg_config *ret, struct err *err)
{
	struct cursor c = begin(p, n, GATE_CONFIG);
	struct gate_msg_config m = { 0 };
	m.policy = cursor_strdup(&c, POLICY_JSON_MAX);
	m.n_resolvers = cursor_u32(&c);
	bool valid = m.policy && m.n_resolvers <= GATE_RESOLVERS_MAX;
	for (unsigned i = 0; valid && i < m.n_resolvers; i++) {
		size_t len = take_text(&c, m.resolvers[i], sizeof(m.resolvers[i]));
		valid = len > 0 && strlen(m.resolvers[i]) == len;
	}
	if (end(&c, valid, "CONFIG", err) < 0) {
		mem_free(m.policy);
		return -1;
	}
	m.policy_len = strlen(m.policy);
	*ret = m;
	return 0;
}

void gate_msg_config_done(struct gate_msg_config *m) { m->policy = mem_free(m->policy); }

int gate_msg_name_encode(struct buf *out, const struct gate_msg_name *m)
{
	return buf_put_u32(out, GATE_NAME) | buf_put_u32(out, m->query) | buf_put_bytes(out, m->text, m->len);
}

int gate_msg_name_decode(const void *p, size_t n, struct gate_msg_name *ret, struct err *err)
{
	struct cursor c = begin(p, n, GATE_NAME);
	struct gate_msg_name m = { .query = cursor_u32(&c) };
	m.len = take_text(&c, m.text, sizeof(m.text));
	if (end(&c, true, "NAME", err) < 0)
		return -1;
	*ret = m;
	return 0;
}

int gate_msg_open_encode(struct buf *out, const struct gate_msg_open *m)
{
	uint8_t family = m->address.family == AF_INET ? 4 : m->address.family == AF_INET6 ? 6 : 0;
	return buf_put_u32(out, GATE_OPEN) | buf_put_u64(out, m->flow) | buf_put_u8(out, (uint8_t)m->entrance) |
		buf_put_bytes(out, m->name, m->name_len) | buf_put_u8(out, family) |
		buf_append(out, m->address.bytes, sizeof(m->address.bytes)) | buf_put_u16(out, m->port);
}

/* What an entrance must bring, and must not. */
static bool open_valid(const struct gate_msg_open *m)
{
	switch (m->entrance) {
	case WIRE_ENTRANCE_NAME:
		return m->name_len > 0 && m->address.family == 0 && m->port > 0;
	case WIRE_ENTRANCE_ADDRESS:
		return m->name_len == 0 && m->address.family != 0 && m->port > 0;
	case WIRE_ENTRANCE_PROXY:
		return m->name_len == 0 && m->address.family == 0 && m->port == 0;
	}
	return false;
}

int gate_msg_open_decode(const void *p, size_t n, struct gate_msg_open *ret, struct err *err)
{
	struct cursor c = begin(p, n, GATE_OPEN);
	struct gate_msg_open m = { .flow = cursor_u64(&c) };
	m.entrance = (enum wire_entrance)cursor_u8(&c);
	m.name_len = take_text(&c, m.name, sizeof(m.name));
	uint8_t family = cursor_u8(&c);
	const uint8_t *address = cursor_take(&c, sizeof(m.address.bytes));
	m.port = cursor_u16(&c);
	m.address.family = family == 4 ? AF_INET : family == 6 ? AF_INET6 : 0;
	if (address && m.address.family)
		memcpy(m.address.bytes, address, m.address.family == AF_INET ? 4 : 16);
	bool known = family == 0 || family == 4 || family == 6;
	if (end(&c, known && open_valid(&m), "OPEN", err) < 0)
		return -1;
	*ret = m;
	return 0;
}

int gate_msg_finish_encode(struct buf *out) { return buf_put_u32(out, GATE_FINISH); }

int gate_msg_finish_decode(const void *p, size_t n, struct err *err)
{
	struct cursor c = begin(p, n, GATE_FINISH);
	return end(&c, true, "FINISH", err);
}

int gate_msg_ready_encode(struct buf *out) { return buf_put_u32(out, GATE_READY); }

int gate_msg_ready_decode(const void *p, size_t n, struct err *err)
{
	struct cursor c = begin(p, n, GATE_READY);
	return end(&c, true, "READY", err);
}

int gate_msg_answer_encode(struct buf *out, const struct gate_msg_answer *m)
{
	int e = buf_put_u32(out, GATE_ANSWER) | buf_put_u32(out, m->query) | buf_put_u8(out, m->allowed) |
		buf_put_u16(out, m->n_ports);
	for (unsigned i = 0; i < m->n_ports; i++)
		e |= buf_put_u16(out, m->ports[i]);
	return e;
}

int gate_msg_answer_decode(const void *p, size_t n, struct gate_msg_answer *ret, struct err *err)
{
	struct cursor c = begin(p, n, GATE_ANSWER);
	struct gate_msg_answer m = { .query = cursor_u32(&c) };
	m.allowed = take_bool(&c);
	m.n_ports = cursor_u16(&c);
	bool valid = m.n_ports <= WIRE_PORTS_MAX;
	for (unsigned i = 0; valid && i < m.n_ports; i++)
		m.ports[i] = cursor_u16(&c);
	if (end(&c, valid, "ANSWER", err) < 0)
		return -1;
	*ret = m;
	return 0;
}

int gate_msg_denied_encode(struct buf *out, const struct gate_msg_denied *m)
{
	return buf_put_u32(out, GATE_DENIED) | buf_put_str(out, m->host) | buf_put_u16(out, m->port) |
		buf_put_u32(out, m->reason);
}

int gate_msg_denied_decode(const void *p, size_t n, struct gate_msg_denied *ret, struct err *err)
{
	struct cursor c = begin(p, n, GATE_DENIED);
	struct gate_msg_denied m = { 0 };
	size_t len = take_text(&c, m.host, sizeof(m.host));
	m.port = cursor_u16(&c);
	m.reason = take_reason(&c);
	if (end(&c, strlen(m.host) == len, "DENIED", err) < 0)
		return -1;
	*ret = m;
	return 0;
}

int gate_msg_limit_encode(struct buf *out, const struct gate_msg_limit *m)
{
	return buf_put_u32(out, GATE_LIMIT) | buf_put_u32(out, m->reason) | buf_put_u64(out, m->value);
}

int gate_msg_limit_decode(const void *p, size_t n, struct gate_msg_limit *ret, struct err *err)
{
	struct cursor c = begin(p, n, GATE_LIMIT);
	struct gate_msg_limit m = { .reason = take_reason(&c) };
	m.value = cursor_u64(&c);
	if (end(&c, true, "LIMIT", err) < 0)
		return -1;
	*ret = m;
	return 0;
}

int gate_msg_done_encode(struct buf *out, const struct gate_msg_done *m)
{
	return buf_put_u32(out, GATE_DONE) | buf_put_u64(out, m->allowed) | buf_put_u64(out, m->denied) |
		buf_put_u64(out, m->bytes_up) | buf_put_u64(out, m->bytes_down);
}

int gate_msg_done_decode(const void *p, size_t n, struct gate_msg_done *ret, struct err *err)
{
	struct cursor c = begin(p, n, GATE_DONE);
	struct gate_msg_done m = { .allowed = cursor_u64(&c) };
	m.denied = cursor_u64(&c);
	m.bytes_up = cursor_u64(&c);
	m.bytes_down = cursor_u64(&c);
	if (end(&c, true, "DONE", err) < 0)
		return -1;
	*ret = m;
	return 0;
}
