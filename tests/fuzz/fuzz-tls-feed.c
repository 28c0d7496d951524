/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Hostile bytes in place of a peer. The first byte chooses our side (bit 0: client) and the size of the pieces (the rest; 0: all at
 * once); what follows is fed. Before TLS 1.3 a server's certificates come unencrypted, so the client's verification and its
 * sentences are reached, too.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/text.h"
#include "crypto/tls.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static struct mint *mint;
static struct tls_roots *roots;

static void start(void)
{
	/* Any authority will do: what is fed was made by none. */
	if (tls_prepare(NULL) < 0 || !(mint = mint_new("abcdefgh", NULL)) ||
		!(roots = tls_roots_with(NULL, mint_ca_pem(mint), strlen(mint_ca_pem(mint)), NULL)))
		abort();
}

static void read_all(struct tls *t)
{
	uint8_t plain[4096];
	while (tls_read(t, plain, sizeof(plain)))
		if (tls_state(t) != TLS_OPEN)
			abort();
}

static void check(struct tls *t)
{
	enum tls_state state = tls_state(t);
	const struct err *err = tls_error(t);
	/* No bytes of a stranger are the bytes of a server that was verified. */
	if (state == TLS_OPEN && tls_error_is_certificate(t))
		abort();
	if ((state == TLS_FAILED) != (err->code != ERR_NONE) || (state == TLS_FAILED && !*err->text))
		abort();
	if (!text_is_utf8(err->text, strlen(err->text)) || strpbrk(err->text, "\n\r\x1b"))
		abort();
	if (tls_output_pending(t) > TLS_OUTPUT_MAX + TLS_HANDSHAKE_MAX)
		abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	if (!mint)
		start();
	if (size == 0)
		return 0;
	bool client = data[0] & 1;
	size_t piece = data[0] >> 1 ? data[0] >> 1 : size;
	struct tls *t = client ? tls_client_new(roots, "a.example", "h2,http/1.1", NULL) : tls_server_new(mint, "a.example", "h2,http/1.1", NULL);
	if (!t)
		abort();
	for (size_t at = 1; at < size; at += piece) {
		tls_feed(t, data + at, size - at < piece ? size - at : piece);
		read_all(t);
		check(t);
	}
	tls_feed_end(t);
	read_all(t);
	check(t);
	if (client && tls_state(t) == TLS_OPEN)
		abort();
	tls_close(t);
	tls_free(t);
	return 0;
}
