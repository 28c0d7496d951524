/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a server says on its way into the box: codings taken off, every live secret overwritten, in heads, bodies and trailers. Fields that are nobody's
 * business inside (alt-svc: there is no HTTP/3; bulkhead-*) are left out.
 */
#pragma once

#include "gate/upstream/vault.h"
#include "net/http.h"
#include "policy/reason.h"
#include "secrets/unpack.h"

/* A secret was found: `where` is "header", "body" or "trailer". */
typedef void (*answer_fn)(void *ctx, unsigned secret, const char *spelling, const char *where);

struct answer {
	const struct vault *vault;
	answer_fn fn;
	void *ctx;
	bool head_request, upgrade;
	const char *where;
	struct unpack *unpack;        /* NULL: the body isn't coded */
	bool fed;                     /* the coded body has bytes */
	bool inside;                  /* the unpacker may hold more than there was room for */
	struct buf packed;            /* coded bytes not yet unpacked, from `at` on */
	size_t at;
	struct scan_stream *scan;     /* NULL before the first byte */
	uint64_t epoch;               /* of the vault, that `scan` was made for */
	const char *why;              /* a sentence about a refusal, or NULL */
};

void answer_init(struct answer *a, const struct vault *vault, answer_fn fn, void *ctx);
void answer_done(struct answer *a);
/* Prepares a request so that its answer can be read. -1: too large. */
int answer_prepare(const struct vault *vault, struct http_head *request);

void answer_strip(struct http_head *head); /* takes out bulkhead-* */

/* As relay_ops; with a vault without secrets everything passes. */
enum reason answer_head(struct answer *a, struct http_head *head);
enum reason answer_data(struct answer *a, const uint8_t *p, size_t len, struct buf *out);
enum reason answer_more(struct answer *a, struct buf *out, bool *ret_waiting);
enum reason answer_end(struct answer *a, struct buf *out, struct http_head *trailers);
