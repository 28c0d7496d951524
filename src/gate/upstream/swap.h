/* SPDX-License-Identifier: Apache-2.0 */
/* The placeholder in a request body, replaced as the body streams by; what could be its beginning is held back. */
#pragma once

#include "base/buf.h"
#include "net/http.h"

struct swap;

/* The value is coded as the body's content type needs it: percent-encoded in a form, escaped in JSON, else as it is. Wiped when freed. NULL: it can't be coded. */
struct swap *swap_new(const char *placeholder, const void *value, size_t len, const struct http_head *head);
struct swap *swap_free(struct swap *s); /* accepts NULL */
int swap_feed(struct swap *s, const void *p, size_t len, struct buf *out); /* -1: out is full */
int swap_end(struct swap *s, struct buf *out);
/* The length of a body of `length` bytes in which the placeholder stands `count` times. */
uint64_t swap_length(const struct swap *s, uint64_t length, size_t count);
size_t swap_count(const char *placeholder, const void *p, size_t len);
