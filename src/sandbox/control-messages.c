/* SPDX-License-Identifier: Apache-2.0 */
#include "sandbox/control-messages.h"

#include <string.h>

#define CONTROL_BETWEEN "command and supervisor"

int control_msg_type(const void *p, size_t n, uint32_t *ret) { return message_type(p, n, ret); }

int control_msg_policy_encode(struct buf *out, const struct gate_msg_policy *m) { return policy_message_encode(out, CONTROL_POLICY_SET, m); }

int control_msg_policy_decode(const void *p, size_t n, struct gate_msg_policy *ret, struct err *err)
{
	return policy_message_decode(p, n, CONTROL_POLICY_SET, CONTROL_BETWEEN, ret, err);
}

int control_msg_secret_encode(struct buf *out, enum control_request type, const struct control_msg_secret *m)
{
	return buf_put_u32(out, type) | buf_put_str(out, m->name);
}

int control_msg_secret_decode(const void *p, size_t n, enum control_request type, struct control_msg_secret *ret, struct err *err)
{
	struct cursor c = message_begin(p, n, type);
	struct control_msg_secret m = { 0 };
	message_text(&c, m.name, sizeof(m.name), 1);
	if (message_end(&c, true, "SECRET", CONTROL_BETWEEN, err) < 0)
		return -1;
	*ret = m;
	return 0;
}

int control_msg_ok_encode(struct buf *out, const struct control_msg_ok *m)
{
	return buf_put_u32(out, CONTROL_OK) | buf_put_u64(out, m->generation) | buf_put_u64(out, m->count);
}

int control_msg_ok_decode(const void *p, size_t n, struct control_msg_ok *ret, struct err *err)
{
	struct cursor c = message_begin(p, n, CONTROL_OK);
	struct control_msg_ok m = { .generation = cursor_u64(&c), .count = cursor_u64(&c) };
	if (message_end(&c, true, "OK", CONTROL_BETWEEN, err) < 0)
		return -1;
	*ret = m;
	return 0;
}

int control_msg_failed_encode(struct buf *out, const struct err *why)
{
	return buf_put_u32(out, CONTROL_FAILED) | buf_put_u32(out, why->code) | buf_put_str(out, why->text);
}

int control_msg_failed_decode(const void *p, size_t n, struct err *ret, struct err *err)
{
	struct cursor c = message_begin(p, n, CONTROL_FAILED);
	uint32_t code = cursor_u32(&c);
	char text[CONTROL_SENTENCE_MAX + 1];
	message_text(&c, text, sizeof(text), 1);
	if (message_end(&c, code > ERR_NONE && code < ERR_CODE_MAX, "FAILED", CONTROL_BETWEEN, err) < 0)
		return -1;
	err_set(ret, (enum err_code)code, "%s", text);
	return 0;
}
