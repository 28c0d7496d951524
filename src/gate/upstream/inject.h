/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A secret's value into the one place of a request that its rule binds it to: a header (as it is, or inside Basic), the value of a query key. Pure; what is
 * built here holds the value and is wiped by whoever frees it. Bodies are swap.h.
 */
#pragma once

#include "net/http.h"
#include "policy/request.h"

enum inject_finding {
	INJECT_NOTHING,   /* the place isn't in this request: it passes as it is */
	INJECT_HERE,      /* the placeholder stands there, or the rule always sets the place */
	INJECT_FOREIGN,   /* the place holds another credential than the placeholder */
};

/* Headers and queries only. */
enum inject_finding inject_look(const struct secret_binding *b, const char *placeholder, const struct http_head *head);
/* After INJECT_HERE: puts the value in. -1: the request would become too large or unsendable. */
int inject_put(const struct secret_binding *b, const char *placeholder, const void *value, size_t len, struct http_head *head);
/* "header:authorization", "query:key", "body": for the record. Returns out. */
#define INJECT_PLACE_MAX 300u
const char *inject_place(const struct secret_binding *b, char out[INJECT_PLACE_MAX]);

/* Appends `text` with every `needle` replaced; returns how many there were, or -1 when `out` is full. */
long inject_replace(struct buf *out, const void *text, size_t len, const char *needle, const void *value, size_t value_len);
/* Appends as a value in a query or form: everything but unreserved bytes percent-encoded. */
int inject_percent(struct buf *out, const void *p, size_t len);
