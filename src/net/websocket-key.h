/* SPDX-License-Identifier: Apache-2.0 */
/* The handshake of RFC 6455 section 4: it proves that the other side speaks WebSocket and not just HTTP. No secret is
 * involved. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#define WEBSOCKET_KEY_LEN 24u    /* base64 of 16 bytes */
#define WEBSOCKET_ACCEPT_LEN 28u /* base64 of SHA-1 */

bool websocket_key_valid(const char *p, size_t len);
void websocket_key_make(char ret[WEBSOCKET_KEY_LEN + 1]);
void websocket_accept(const char key[WEBSOCKET_KEY_LEN + 1], char ret[WEBSOCKET_ACCEPT_LEN + 1]);
