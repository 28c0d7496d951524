/* SPDX-License-Identifier: Apache-2.0 */
/* Spellings of a path. Inside policy/ only; others use request_path_parse. */
#pragma once

#include "policy/request.h"

int path_hex(char c); /* 0–15, or -1 */
/* What may stand in a segment without encoding (RFC 3986 3.3), but for ";". */
bool path_is_pchar(unsigned char c);
/* A normalised path in the one spelling that is compared: everything decoded that may stand in a segment ("%40" and "@" are the same to
 * servers, though a few tell "%2B" from "+", so what is forwarded keeps its spelling). `slash_too`: also "%2F". Returns the length. */
size_t path_match_form(const char *path, bool slash_too, char out[REQUEST_PATH_MAX + 1]);
