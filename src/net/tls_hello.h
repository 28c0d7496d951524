/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The first flight of a TLS client, read strictly: record framing, one ClientHello, its server name. The bytes themselves are
 * forwarded unchanged (the handshake hashes them), so whatever a lenient server could read differently is refused here as
 * malformed: repeated extensions, several names, foreign records between fragments, bytes behind the ClientHello in its own
 * record.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Ceilings: the handshake message, and all bytes looked at (record headers included) before the hello must be complete. */
#define TLS_HELLO_MESSAGE_MAX (64u * 1024u)
#define TLS_HELLO_INPUT_MAX (80u * 1024u)
#define TLS_SERVER_NAME_MAX 255

enum tls_hello_result {
	TLS_HELLO_COMPLETE = 0,
	TLS_HELLO_MORE,      /* nothing wrong so far; more bytes are needed */
	TLS_HELLO_NOT_TLS,   /* the first bytes aren't a TLS handshake record */
	TLS_HELLO_MALFORMED, /* TLS by its first bytes, but not a ClientHello that can be judged */
};

struct tls_hello {
	bool has_name;
	uint8_t name[TLS_SERVER_NAME_MAX]; /* raw bytes as sent, unparsed, may contain anything */
	size_t name_len;
	bool encrypted; /* carries encrypted_client_hello (or its GREASE): only the outer name can be seen */
	size_t length;  /* bytes of the records that the hello filled */
};

/* Looks at the first `len` bytes of a connection. *ret is written for COMPLETE; for MORE, *ret_need (may be NULL) is the total
 * number of bytes without which another call can't succeed. */
enum tls_hello_result tls_hello_parse(const void *data, size_t len, struct tls_hello *ret, size_t *ret_need);
