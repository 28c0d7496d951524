/* SPDX-License-Identifier: Apache-2.0 */
#include "net/tls_hello.h"

#include <string.h>

#include "base/buf.h"

enum {
	RECORD_HANDSHAKE = 22,
	RECORD_HEADER = 5,
	RECORD_PAYLOAD_MAX = 16384,
	HANDSHAKE_CLIENT_HELLO = 1,
	HANDSHAKE_HEADER = 4,
	EXTENSION_SERVER_NAME = 0,
	EXTENSION_ENCRYPTED_CLIENT_HELLO = 0xfe0d,
	EXTENSIONS_MAX = 128,
	NAME_TYPE_HOST = 0,
	SESSION_ID_MAX = 32,
};

/* A vector with an 8- or 16-bit length, as a cursor of its own. */
static struct cursor take_vector(struct cursor *c, size_t len)
{
	const uint8_t *p = cursor_take(c, len);
	struct cursor inner = cursor_make(p, p ? len : 0);
	inner.bad = c->bad;
	return inner;
}

static int parse_server_name(struct cursor ext, struct tls_hello *out)
{
	struct cursor list = take_vector(&ext, cursor_u16(&ext));
	uint8_t type = cursor_u8(&list);
	size_t len = cursor_u16(&list);
	const uint8_t *name = cursor_take(&list, len);
	/* RFC 6066 allows one name of each type and only one type exists: exactly one entry, or servers may pick another than
	 * we judged. */
	if (!cursor_done(&ext) || !cursor_done(&list) || type != NAME_TYPE_HOST || len == 0 || len > sizeof(out->name))
		return -1;
	out->has_name = true;
	memcpy(out->name, name, len);
	out->name_len = len;
	return 0;
}

static bool seen_before(const uint16_t *types, size_t n, uint16_t type)
{
	for (size_t i = 0; i < n; i++)
		if (types[i] == type)
			return true;
	return false;
}

static int parse_extensions(struct cursor list, struct tls_hello *out)
{
	uint16_t seen[EXTENSIONS_MAX];
	size_t n = 0;
	while (!list.bad && list.left > 0) {
		uint16_t type = cursor_u16(&list);
		struct cursor ext = take_vector(&list, cursor_u16(&list));
		if (list.bad || n == EXTENSIONS_MAX || seen_before(seen, n, type))
			return -1;
		seen[n++] = type;
		if (type == EXTENSION_SERVER_NAME && parse_server_name(ext, out) < 0)
			return -1;
		if (type == EXTENSION_ENCRYPTED_CLIENT_HELLO)
			out->encrypted = true;
	}
	return list.bad ? -1 : 0;
}

/* The body of a ClientHello, RFC 8446 section 4.1.2. */
static int parse_client_hello(struct cursor c, struct tls_hello *out)
{
	uint16_t version = cursor_u16(&c);
	cursor_take(&c, 32);
	struct cursor session = take_vector(&c, cursor_u8(&c));
	struct cursor ciphers = take_vector(&c, cursor_u16(&c));
	struct cursor compressions = take_vector(&c, cursor_u8(&c));
	if (c.bad || version >> 8 != 3 || session.left > SESSION_ID_MAX)
		return -1;
	if (ciphers.left < 2 || ciphers.left % 2 || compressions.left < 1)
		return -1;
	if (c.left == 0)
		return 0; /* before extensions existed: no name */
	struct cursor extensions = take_vector(&c, cursor_u16(&c));
	if (!cursor_done(&c))
		return -1;
	return parse_extensions(extensions, out);
}

/* State of gathering one handshake message out of records. */
struct gather {
	struct buf message;
	size_t wanted; /* handshake header and body; 0 while the header isn't complete */
};

static int gather_payload(struct gather *g, const uint8_t *p, size_t len)
{
	if (buf_append(&g->message, p, len) < 0)
		return -1;
	if (g->message.len >= 1 && g->message.data[0] != HANDSHAKE_CLIENT_HELLO)
		return -1;
	if (g->wanted == 0 && g->message.len >= HANDSHAKE_HEADER) {
		const uint8_t *h = g->message.data;
		g->wanted = HANDSHAKE_HEADER + ((size_t)h[1] << 16 | (size_t)h[2] << 8 | h[3]);
		if (g->wanted > TLS_HELLO_MESSAGE_MAX)
			return -1;
	}
	return 0;
}

static bool gather_full(const struct gather *g) { return g->wanted && g->message.len >= g->wanted; }

static bool record_header_ok(const uint8_t *h, size_t payload)
{
	return h[0] == RECORD_HANDSHAKE && h[1] == 3 && h[2] <= 4 && payload > 0 && payload <= RECORD_PAYLOAD_MAX;
}

/* Reads whole records until the message is full. Sets *at to where the next record would begin. */
static enum tls_hello_result gather_records(struct gather *g, const uint8_t *p, size_t len, size_t *at, size_t *need)
{
	while (!gather_full(g)) {
		*need = *at + RECORD_HEADER;
		if (len < *need)
			return TLS_HELLO_MORE;
		const uint8_t *h = p + *at;
		size_t payload = (size_t)h[3] << 8 | h[4];
		if (!record_header_ok(h, payload))
			return TLS_HELLO_MALFORMED;
		*need += payload;
		if (*need > TLS_HELLO_INPUT_MAX)
			return TLS_HELLO_MALFORMED;
		if (len < *need)
			return TLS_HELLO_MORE;
		if (gather_payload(g, h + RECORD_HEADER, payload) < 0)
			return TLS_HELLO_MALFORMED;
		*at = *need;
	}
	return TLS_HELLO_COMPLETE;
}

enum tls_hello_result tls_hello_parse(const void *data, size_t len, struct tls_hello *ret, size_t *ret_need)
{
	const uint8_t *p = data;
	size_t need = RECORD_HEADER, at = 0;
	if ((len >= 1 && p[0] != RECORD_HANDSHAKE) || (len >= 2 && p[1] != 3))
		return TLS_HELLO_NOT_TLS;

	struct gather g = { 0 };
	/* The last record may overshoot the message: that is malformed, but must fit to be seen. */
	buf_init(&g.message, TLS_HELLO_MESSAGE_MAX + RECORD_PAYLOAD_MAX);
	enum tls_hello_result r = gather_records(&g, p, len, &at, &need);
	struct tls_hello hello = { .length = at };
	if (r == TLS_HELLO_COMPLETE) {
		struct cursor body = cursor_make(g.message.data + HANDSHAKE_HEADER, g.wanted - HANDSHAKE_HEADER);
		if (g.message.len != g.wanted || parse_client_hello(body, &hello) < 0)
			r = TLS_HELLO_MALFORMED;
	}
	buf_free(&g.message);
	if (r == TLS_HELLO_COMPLETE)
		*ret = hello;
	if (r == TLS_HELLO_MORE && ret_need)
		*ret_need = need;
	return r;
}
