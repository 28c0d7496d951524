/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a client's first bytes are. Nothing is forwarded before this is known, and nothing is called "raw" that an HTTP or TLS
 * server could take for its own protocol.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "net/http1.h"
#include "net/tls_hello.h"
#include "policy/reason.h"

#define INSPECT_MAX (80u * 1024u) /* bytes that may be held before they are judged */

enum inspect_result {
	INSPECT_MORE = 0,
	INSPECT_TLS,    /* `hello` is set */
	INSPECT_HTTP,   /* `request` is set: exactly the first head_len bytes */
	INSPECT_RAW,    /* neither: judged by name and port alone */
	INSPECT_REFUSE, /* `reason` is set */
};

struct inspection {
	enum reason reason;
	struct tls_hello hello;
	struct http1_request request;
	size_t head_len;
};

/* Looks at all bytes so far; `eof`: no more will come. Port 443 must speak TLS, port 80 HTTP/1. */
enum inspect_result inspect_first_bytes(const void *data, size_t len, bool eof, uint16_t port, struct inspection *ret);

enum { INSPECT_PORT_HTTP = 80, INSPECT_PORT_HTTPS = 443 };

/* Could these first bytes be those of an HTTP client that understands an HTTP answer? For the form of a refusal. */
bool inspect_wants_http(const void *data, size_t len);
