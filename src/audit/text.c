/* SPDX-License-Identifier: Apache-2.0 */
#include "audit/text.h"

#include <sodium.h>
#include <string.h>

#include "base/mem.h"
#include "base/text.h"

json_t *audit_text_json(const char *data, size_t len)
{
	if (!memchr(data, 0, len) && text_is_utf8(data, len)) {
		json_t *plain = json_stringn(data, len);
		if (plain)
			return plain;
	}
	cleanup_free char *b64 = mem_alloc(text_base64_len(len) + 1);
	text_base64(data, len, b64);
	return json_pack("{s:s}", "base64", b64);
}

static char *decode_base64(const char *s, size_t s_len, size_t *ret_len)
{
	size_t room = s_len / 4 * 3, len;
	char *out = mem_alloc(room + 1);
	if (sodium_base642bin((unsigned char *)out, room, s, s_len, NULL, &len, NULL, sodium_base64_VARIANT_ORIGINAL) != 0)
		return mem_free(out);
	out[len] = '\0';
	if (ret_len)
		*ret_len = len;
	return out;
}

char *audit_text_decode(const json_t *value, size_t *ret_len)
{
	if (json_is_string(value)) {
		if (ret_len)
			*ret_len = json_string_length(value);
		return mem_strndup(json_string_value(value), json_string_length(value));
	}
	const json_t *b64 = json_object_size(value) == 1 ? json_object_get(value, "base64") : NULL;
	return json_is_string(b64) ? decode_base64(json_string_value(b64), json_string_length(b64), ret_len) : NULL;
}
