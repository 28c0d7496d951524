/* SPDX-License-Identifier: Apache-2.0 */
#include "gate/messages.h"

#include <string.h>

#define GATE_BETWEEN "supervisor and gate"

static int end(const struct cursor *c, bool valid, const char *what, struct err *err)
{
	return message_end(c, valid, what, GATE_BETWEEN, err);
}

int gate_msg_type(const void *p, size_t n, uint32_t *ret) { return message_type(p, n, ret); }

static enum reason take_reason(struct cursor *c)
{
	uint32_t v = cursor_u32(c);
	c->bad |= v >= REASON_MAX;
	return c->bad ? REASON_NONE : (enum reason)v;
}

int gate_msg_config_encode(struct buf *out, const struct gate_msg_config *m) { return config_message_encode(out, GATE_CONFIG, m); }

int gate_msg_config_decode(const void *p, size_t n, struct gate_msg_config *ret, struct err *err)
{
	return config_message_decode(p, n, GATE_CONFIG, GATE_BETWEEN, ret, err);
}

int gate_msg_name_encode(struct buf *out, const struct gate_msg_name *m)
{
	return buf_put_u32(out, GATE_NAME) | buf_put_u32(out, m->query) | buf_put_bytes(out, m->text, m->len);
}

int gate_msg_name_decode(const void *p, size_t n, struct gate_msg_name *ret, struct err *err)
{
	struct cursor c = message_begin(p, n, GATE_NAME);
	struct gate_msg_name m = { .query = cursor_u32(&c) };
	m.len = message_bytes(&c, m.text, sizeof(m.text));
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
	struct cursor c = message_begin(p, n, GATE_OPEN);
	struct gate_msg_open m = { .flow = cursor_u64(&c) };
	m.entrance = (enum wire_entrance)cursor_u8(&c);
	m.name_len = message_bytes(&c, m.name, sizeof(m.name));
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
	struct cursor c = message_begin(p, n, GATE_FINISH);
	return end(&c, true, "FINISH", err);
}

int gate_msg_policy_encode(struct buf *out, const struct gate_msg_policy *m) { return policy_message_encode(out, GATE_POLICY, m); }

int gate_msg_policy_decode(const void *p, size_t n, struct gate_msg_policy *ret, struct err *err)
{
	return policy_message_decode(p, n, GATE_POLICY, GATE_BETWEEN, ret, err);
}

int gate_msg_ready_encode(struct buf *out, const struct gate_msg_ready *m)
{
	return buf_put_u32(out, GATE_READY) | buf_put_str(out, m->ca_pem);
}

int gate_msg_ready_decode(const void *p, size_t n, struct gate_msg_ready *ret, struct err *err)
{
	struct cursor c = message_begin(p, n, GATE_READY);
	struct gate_msg_ready m = { 0 };
	message_text(&c, m.ca_pem, sizeof(m.ca_pem), 0);
	if (end(&c, true, "READY", err) < 0)
		return -1;
	*ret = m;
	return 0;
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
	struct cursor c = message_begin(p, n, GATE_ANSWER);
	struct gate_msg_answer m = { .query = cursor_u32(&c) };
	m.allowed = message_bool(&c);
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
	struct cursor c = message_begin(p, n, GATE_DENIED);
	struct gate_msg_denied m = { 0 };
	message_text(&c, m.host, sizeof(m.host), 0);
	m.port = cursor_u16(&c);
	m.reason = take_reason(&c);
	if (end(&c, true, "DENIED", err) < 0)
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
	struct cursor c = message_begin(p, n, GATE_LIMIT);
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
	struct cursor c = message_begin(p, n, GATE_DONE);
	struct gate_msg_done m = { .allowed = cursor_u64(&c) };
	m.denied = cursor_u64(&c);
	m.bytes_up = cursor_u64(&c);
	m.bytes_down = cursor_u64(&c);
	if (end(&c, true, "DONE", err) < 0)
		return -1;
	*ret = m;
	return 0;
}

int gate_msg_policy_set_encode(struct buf *out, const struct gate_msg_policy_set *m)
{
	return policy_set_message_encode(out, GATE_POLICY_SET, m);
}

int gate_msg_policy_set_decode(const void *p, size_t n, struct gate_msg_policy_set *ret, struct err *err)
{
	return policy_set_message_decode(p, n, GATE_POLICY_SET, GATE_BETWEEN, ret, err);
}

int gate_msg_canary_encode(struct buf *out, const struct gate_msg_canary *m)
{
	return buf_put_u32(out, GATE_CANARY) | buf_put_str(out, m->name) | buf_put_str(out, m->host) | buf_put_u16(out, m->port);
}

int gate_msg_canary_decode(const void *p, size_t n, struct gate_msg_canary *ret, struct err *err)
{
	struct cursor c = message_begin(p, n, GATE_CANARY);
	struct gate_msg_canary m = { 0 };
	message_text(&c, m.name, sizeof(m.name), 1);
	message_text(&c, m.host, sizeof(m.host), 0);
	m.port = cursor_u16(&c);
	if (end(&c, true, "CANARY", err) < 0)
		return -1;
	*ret = m;
	return 0;
}
