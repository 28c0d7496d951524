/* SPDX-License-Identifier: Apache-2.0 */
#include "gate/config-message.h"

#include "gate/policy-file.h"

static bool policy_len_valid(uint64_t len) { return len > 0 && len <= POLICY_JSON_MAX; }

int config_message_encode(struct buf *out, uint32_t type, const struct gate_msg_config *m)
{
	int e = buf_put_u32(out, type) | buf_put_u64(out, m->policy_len) | buf_put_u32(out, m->n_resolvers);
	for (unsigned i = 0; i < m->n_resolvers; i++)
		e |= buf_put_str(out, m->resolvers[i]);
	e |= buf_put_str(out, m->sandbox) | buf_put_u32(out, m->n_placeholders);
	for (unsigned i = 0; i < m->n_placeholders; i++)
		e |= buf_put_str(out, m->placeholders[i].name) | buf_put_str(out, m->placeholders[i].text);
	return e;
}

/* Into the caller's memory only when all of it is good: a half-read one is of no use to anybody. */
int config_message_decode(const void *p, size_t n, uint32_t type, const char *between, struct gate_msg_config *ret, struct err *err)
{
	struct cursor c = message_begin(p, n, type);
	struct gate_msg_config m = { .policy_len = cursor_u64(&c), .n_resolvers = cursor_u32(&c) };
	c.bad |= !policy_len_valid(m.policy_len) || m.n_resolvers > GATE_RESOLVERS_MAX;
	for (unsigned i = 0; !c.bad && i < m.n_resolvers; i++)
		message_text(&c, m.resolvers[i], sizeof(m.resolvers[i]), 1);
	message_text(&c, m.sandbox, sizeof(m.sandbox), SANDBOX_ID_LEN);
	m.n_placeholders = cursor_u32(&c);
	c.bad |= m.n_placeholders > SECRETS_MAX;
	for (unsigned i = 0; !c.bad && i < m.n_placeholders; i++) {
		message_text(&c, m.placeholders[i].name, sizeof(m.placeholders[i].name), 1);
		message_text(&c, m.placeholders[i].text, sizeof(m.placeholders[i].text), SECRET_VALUE_MIN);
	}
	if (message_end(&c, true, "CONFIG", between, err) < 0)
		return -1;
	*ret = m;
	return 0;
}

int policy_message_encode(struct buf *out, uint32_t type, const struct gate_msg_policy *m)
{
	return buf_put_u32(out, type) | buf_put_u64(out, m->generation) | buf_put_u64(out, m->policy_len);
}

int policy_message_decode(const void *p, size_t n, uint32_t type, const char *between, struct gate_msg_policy *ret, struct err *err)
{
	struct cursor c = message_begin(p, n, type);
	struct gate_msg_policy m = { .generation = cursor_u64(&c), .policy_len = cursor_u64(&c) };
	if (message_end(&c, policy_len_valid(m.policy_len), "POLICY", between, err) < 0)
		return -1;
	*ret = m;
	return 0;
}

int policy_set_message_encode(struct buf *out, uint32_t type, const struct gate_msg_policy_set *m)
{
	return buf_put_u32(out, type) | buf_put_u64(out, m->generation) | buf_put_u64(out, m->cut);
}

int policy_set_message_decode(const void *p, size_t n, uint32_t type, const char *between, struct gate_msg_policy_set *ret, struct err *err)
{
	struct cursor c = message_begin(p, n, type);
	struct gate_msg_policy_set m = { .generation = cursor_u64(&c), .cut = cursor_u64(&c) };
	if (message_end(&c, true, "POLICY_SET", between, err) < 0)
		return -1;
	*ret = m;
	return 0;
}
