/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A request that a secret goes into: headers (Basic too), queries, bodies in pieces. Where the placeholder isn't, the value isn't either, and an unbound place
 * is never touched. First byte: the place; second: size of pieces; the rest is the header, the path, or the body.
 */
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "gate/upstream/accept.h"
#include "gate/upstream/inject.h"
#include "gate/upstream/swap.h"

#define HOLDER "bulkhead-key-0123456789abcdefghijklmnopqrstuv"
#define VALUE "s3cr3t-value-0001"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static bool holds(struct http_text t, const char *text) { return t.len && memmem(t.p, t.len, text, strlen(text)); }

static void check(bool ok)
{
	if (!ok)
		abort();
}

static void into_head(enum secret_place place, const uint8_t *p, size_t len)
{
	static char header[] = "authorization", key[] = "key";
	const struct secret_binding b = { .place = place, .field = place == SECRET_IN_HEADER ? header : key };
	struct http_head h;
	http_head_init(&h);
	http_head_add(&h, "x-other", p, len);
	http_head_add(&h, "accept-encoding", p, len);
	bool fits = place == SECRET_IN_HEADER ? http_head_add(&h, header, p, len) == 0 : http_head_set(&h, &h.path, p, len) == 0;
	bool theirs = holds(place == SECRET_IN_HEADER && fits ? http_head_get(&h, header)->value : h.path, VALUE);
	if (fits && !theirs && inject_look(&b, HOLDER, &h) == INJECT_HERE && inject_put(&b, HOLDER, VALUE, strlen(VALUE), &h) == 0) {
		const struct http_field *other = http_head_get(&h, "x-other");
		check(!other || !holds(other->value, VALUE));
		check(place != SECRET_IN_HEADER || !holds(h.path, VALUE));
		check(place != SECRET_IN_QUERY || holds(h.path, VALUE));
	}
	check(accept_limit(&h) == 0 && http_head_count(&h, "accept-encoding") == 1);
	http_head_free(&h);
}

static void into_body(const uint8_t *p, size_t len, size_t piece)
{
	struct http_head h;
	struct buf out;
	http_head_init(&h);
	buf_init(&out, 1u << 24);
	struct swap *s = swap_new(HOLDER, VALUE, strlen(VALUE), &h);
	for (size_t at = 0; at < len; at += piece)
		check(swap_feed(s, p + at, len - at < piece ? len - at : piece, &out) == 0);
	check(swap_end(s, &out) == 0);
	check(out.len == swap_length(s, len, swap_count(HOLDER, p, len)));
	check(swap_count(HOLDER, out.data, out.len) == 0);
	swap_free(s);
	buf_free(&out);
	http_head_free(&h);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	if (size < 2)
		return 0;
	if (data[0] % 3 == 2)
		into_body(data + 2, size - 2, data[1] ? data[1] : 4096);
	else
		into_head(data[0] % 3 == 0 ? SECRET_IN_HEADER : SECRET_IN_QUERY, data + 2, size - 2);
	return 0;
}
