/* SPDX-License-Identifier: Apache-2.0 */
#include "policy/pin.h"

#include <stdio.h>
#include <string.h>

#include "base/mem.h"
#include "base/text.h"
#include "policy/path.h"

/* MD5 pins nothing: two files with one sum are made in seconds. */
static const struct { const char *name; uint8_t kind; int strength; } algorithms[] = {
	{ "sha1", DIGEST_SHA1, 1 },
	{ "sha256", DIGEST_SHA256, 2 },
	{ "sha384", DIGEST_SHA384, 3 },
	{ "sha512", DIGEST_SHA512, 4 },
};

static int kind_of(const char *name, size_t len, uint8_t *ret)
{
	for (size_t i = 0; i < ARRAY_LEN(algorithms); i++)
		if (strlen(algorithms[i].name) == len && strncmp(algorithms[i].name, name, len) == 0) {
			*ret = algorithms[i].kind;
			return 0;
		}
	return -1;
}

int pin_strength(uint8_t kind)
{
	for (size_t i = 0; i < ARRAY_LEN(algorithms); i++)
		if (algorithms[i].kind == kind)
			return algorithms[i].strength;
	return 0;
}

static int base64_value(char c)
{
	static const char alphabet[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
	const char *at = c ? strchr(alphabet, c) : NULL;
	return at ? (int)(at - alphabet) : -1;
}

/* Standard base64 of exactly `size` bytes, padded, without bits left over. */
static int base64_decode(const char *s, size_t len, uint8_t *out, size_t size)
{
	size_t pad = (3 - size % 3) % 3, digits = len - pad, n = 0;
	uint32_t bits = 0;
	unsigned have = 0;
	if (len != 4 * ((size + 2) / 3))
		return -1;
	for (size_t i = 0; i < len; i++) {
		int v = base64_value(s[i]);
		if (i >= digits ? s[i] != '=' : v < 0)
			return -1;
		if (i >= digits)
			continue;
		bits = bits << 6 | (uint32_t)v;
		have += 6;
		if (have >= 8) {
			have -= 8;
			out[n++] = (uint8_t)(bits >> have);
		}
	}
	return n == size && (bits & ((1u << have) - 1)) == 0 ? 0 : -1;
}

int pin_parse_sri(const char *s, size_t len, struct pin *ret)
{
	const char *dash = memchr(s, '-', len);
	struct pin pin = { 0 };
	if (!dash || kind_of(s, (size_t)(dash - s), &pin.kind) < 0)
		return -1;
	size_t text = len - (size_t)(dash + 1 - s);
	const char *options = memchr(dash + 1, '?', text); /* SRI allows them behind a "?" and gives them no meaning */
	if (options)
		text = (size_t)(options - dash - 1);
	if (base64_decode(dash + 1, text, pin.digest, pin_digest_size(pin.kind)) < 0)
		return -1;
	*ret = pin;
	return 0;
}

const char *pin_format_sri(const struct pin *p, char out[PIN_TEXT_MAX])
{
	out[0] = '\0';
	for (size_t i = 0; i < ARRAY_LEN(algorithms); i++)
		if (algorithms[i].kind == p->kind) {
			int n = snprintf(out, PIN_TEXT_MAX, "%s-", algorithms[i].name);
			text_base64(p->digest, pin_digest_size(p->kind), out + n);
		}
	return out;
}

int pin_parse_hex(const char *name, size_t name_len, const char *hex, size_t hex_len, struct pin *ret)
{
	struct pin pin = { 0 };
	if (kind_of(name, name_len, &pin.kind) < 0 || hex_len != 2 * pin_digest_size(pin.kind))
		return -1;
	for (size_t i = 0; i < hex_len; i++)
		if (path_hex(hex[i]) < 0)
			return -1;
	for (size_t i = 0; i < hex_len / 2; i++)
		pin.digest[i] = (uint8_t)(path_hex(hex[2 * i]) << 4 | path_hex(hex[2 * i + 1]));
	*ret = pin;
	return 0;
}
