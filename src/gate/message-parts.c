/* SPDX-License-Identifier: Apache-2.0 */
#include "gate/message-parts.h"

#include <string.h>

int message_type(const void *p, size_t n, uint32_t *ret)
{
	struct cursor c = cursor_make(p, n);
	uint32_t type = cursor_u32(&c);
	if (c.bad)
		return -1;
	*ret = type;
	return 0;
}

struct cursor message_begin(const void *p, size_t n, uint32_t type)
{
	struct cursor c = cursor_make(p, n);
	if (cursor_u32(&c) != type)
		c.bad = true;
	return c;
}

int message_end(const struct cursor *c, bool valid, const char *what, const char *between, struct err *err)
{
	if (valid && cursor_done(c))
		return 0;
	return err_set(err, ERR_PROTOCOL, "a %s message between %s is malformed; both must be of the same version", what, between);
}

size_t message_bytes(struct cursor *c, char *out, size_t room)
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

void message_text(struct cursor *c, char *out, size_t room, size_t min)
{
	size_t len = message_bytes(c, out, room);
	c->bad |= strlen(out) != len || len < min;
}

bool message_bool(struct cursor *c)
{
	uint8_t v = cursor_u8(c);
	c->bad |= v > 1;
	return v == 1;
}
