/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Byte 0: how the owner behaves; byte 1, bit 0: the role, bit 1: the rest are frames in a short form, which lets a mutation
 * stay well-framed (type, flags, stream, length, payload; a byte each) behind the preface that the role needs. Else the rest
 * are the peer's bytes.
 */
#include <string.h>

#include "base/buf.h"
#include "http-fuzz.h"

#define MAGIC "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"

static void put_frame(struct buf *b, uint8_t type, uint8_t flags, uint32_t stream, const void *p, size_t len)
{
	buf_put_u8(b, (uint8_t)(len >> 16));
	buf_put_u16(b, (uint16_t)len);
	buf_put_u8(b, type);
	buf_put_u8(b, flags);
	buf_put_u32(b, stream);
	buf_append(b, p, len);
}

static void put_frames(struct buf *b, const uint8_t *p, size_t len)
{
	put_frame(b, 4, 0, 0, "", 0);
	while (len >= 4) {
		size_t n = p[3] < len - 4 ? p[3] : len - 4;
		put_frame(b, p[0] % 12, p[1], p[2], p + 4, n);
		p += 4 + n;
		len -= 4 + n;
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct buf bytes;
	if (size < 2 || size > 100000)
		return 0;
	bool client = data[1] & 1;
	buf_init(&bytes, 1 << 20);
	if (!client)
		buf_append(&bytes, MAGIC, strlen(MAGIC));
	if (data[1] & 2)
		put_frames(&bytes, data + 2, size - 2);
	else
		buf_append(&bytes, data + 2, size - 2);
	fuzz_conn(HTTP_2, client ? HTTP_CLIENT : HTTP_SERVER, data[0], bytes.data, bytes.len);
	buf_free(&bytes);
	return 0;
}
