/* SPDX-License-Identifier: Apache-2.0 */
#include "net/websocket-key.h"

#include <openssl/evp.h>
#include <stdint.h>
#include <string.h>
#include <sys/random.h>

#include "base/text.h"
#include "net/http1-syntax.h"

static const char guid[] = "258EAFA5-E914-47DA-95CA-C5AB0DC85B11";

bool websocket_key_valid(const char *p, size_t len)
{
	if (len != WEBSOCKET_KEY_LEN || p[22] != '=' || p[23] != '=')
		return false;
	for (size_t i = 0; i < 22; i++)
		if (!http1_is_alpha((uint8_t)p[i]) && !http1_is_digit((uint8_t)p[i]) && p[i] != '+' && p[i] != '/')
			return false;
	return true;
}

void websocket_key_make(char ret[WEBSOCKET_KEY_LEN + 1])
{
	uint8_t random[16] = { 0 };
	/* A key that repeats would only lose the guard against caches; up to 256 bytes never come short once the pool is ready. */
	ssize_t n = getrandom(random, sizeof(random), 0);
	(void)n;
	text_base64(random, sizeof(random), ret);
}

void websocket_accept(const char key[WEBSOCKET_KEY_LEN + 1], char ret[WEBSOCKET_ACCEPT_LEN + 1])
{
	char text[WEBSOCKET_KEY_LEN + sizeof(guid)];
	uint8_t digest[20] = { 0 };
	memcpy(text, key, WEBSOCKET_KEY_LEN);
	memcpy(text + WEBSOCKET_KEY_LEN, guid, sizeof(guid));
	EVP_Digest(text, sizeof(text) - 1, digest, NULL, EVP_sha1(), NULL);
	text_base64(digest, sizeof(digest), ret);
}
