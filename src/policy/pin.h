/* SPDX-License-Identifier: Apache-2.0 */
/* Digests as people and tools write them. Inside policy/ only. */
#pragma once

#include "policy/request.h"

#define PIN_TEXT_MAX 112 /* "sha512-" and 88 characters of base64 */

/* "sha512-BASE64" (Subresource Integrity): exactly `len` bytes. Fills kind and digest. 0, or -1: another algorithm, not well formed. */
int pin_parse_sri(const char *s, size_t len, struct pin *ret);
const char *pin_format_sri(const struct pin *p, char out[PIN_TEXT_MAX]);
/* Lower- or upper-case hex of a digest of the algorithm called `name` ("sha256"). */
int pin_parse_hex(const char *name, size_t name_len, const char *hex, size_t hex_len, struct pin *ret);
/* Which of two algorithms is worth more: greater is better. */
int pin_strength(uint8_t kind);
