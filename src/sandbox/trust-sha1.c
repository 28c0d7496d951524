/* SPDX-License-Identifier: Apache-2.0 */
/* FIPS 180-4, section 6.1. */
#include <string.h>

#include "sandbox/trust-internal.h"

#define BLOCK 64u

static uint32_t rotate(uint32_t v, unsigned n)
{
	return v << n | v >> (32 - n);
}

static uint32_t word(const uint8_t *p)
{
	return (uint32_t)p[0] << 24 | (uint32_t)p[1] << 16 | (uint32_t)p[2] << 8 | p[3];
}

static void take_block(uint32_t h[5], const uint8_t *p)
{
	uint32_t w[80], a = h[0], b = h[1], c = h[2], d = h[3], e = h[4];
	for (unsigned i = 0; i < 16; i++)
		w[i] = word(p + 4 * i);
	for (unsigned i = 16; i < 80; i++)
		w[i] = rotate(w[i - 3] ^ w[i - 8] ^ w[i - 14] ^ w[i - 16], 1);
	for (unsigned i = 0; i < 80; i++) {
		uint32_t f = i < 20 ? ((b & c) | (~b & d)) + 0x5a827999 : i < 40 ? (b ^ c ^ d) + 0x6ed9eba1
			   : i < 60 ? ((b & c) | (b & d) | (c & d)) + 0x8f1bbcdc : (b ^ c ^ d) + 0xca62c1d6;
		uint32_t t = rotate(a, 5) + f + e + w[i];
		e = d;
		d = c;
		c = rotate(b, 30);
		b = a;
		a = t;
	}
	h[0] += a;
	h[1] += b;
	h[2] += c;
	h[3] += d;
	h[4] += e;
}

void trust_sha1(const void *data, size_t len, uint8_t ret[SHA1_SIZE])
{
	uint32_t h[5] = { 0x67452301, 0xefcdab89, 0x98badcfe, 0x10325476, 0xc3d2e1f0 };
	const uint8_t *p = data;
	uint8_t last[2 * BLOCK] = { 0 };
	size_t whole = len / BLOCK, rest = len % BLOCK, end = rest < BLOCK - 8 ? BLOCK : 2 * BLOCK;
	for (size_t i = 0; i < whole; i++)
		take_block(h, p + i * BLOCK);
	if (rest > 0)
		memcpy(last, p + whole * BLOCK, rest);
	last[rest] = 0x80;
	for (unsigned i = 0; i < 8; i++)
		last[end - 1 - i] = (uint8_t)((uint64_t)len * 8 >> 8 * i);
	for (size_t at = 0; at < end; at += BLOCK)
		take_block(h, last + at);
	for (unsigned i = 0; i < SHA1_SIZE; i++)
		ret[i] = (uint8_t)(h[i / 4] >> (24 - 8 * (i % 4)));
}
