/* SPDX-License-Identifier: Apache-2.0 */
/* An owner of a connection under fuzzing: does something with everything that comes, checks what http.h promises, and writes
 * again what was read. */
#pragma once

#include "net/http.h"

struct fuzz_owner {
	struct http_conn *conn;
	uint8_t mood;          /* how it answers */
	size_t heads, alive;
};

/* Feeds the bytes in pieces and takes the output in between. For CLIENT a request is opened first, by mood, and again when
 * the connection takes another. */
void fuzz_conn(enum http_version version, enum http_role role, uint8_t mood, const uint8_t *data, size_t len);
