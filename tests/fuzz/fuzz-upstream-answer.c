/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A server's answer through the upstream half's filter: head fields, a body in whatever coding it says, pieces of any size, trailers. Whatever comes out holds no
 * secret as it is. First byte: flags; second: size of pieces; then lines "name: value" up to an empty one, then the body.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "gate/upstream/answer.h"
#include "net/http.h"

#define SECRET "s3cr3t-value-0001"
#define OUT_MAX (4u * HTTP_WINDOW + 65536u)

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* The vault as far as the filter needs it: a fixed set of finds. */
struct vault { struct scan_set *set; };
unsigned vault_count(const struct vault *v) { return 1; }
uint64_t vault_epoch(const struct vault *v) { return 1; }
struct scan_set *vault_scan(const struct vault *v) { return v->set; }

static void on_found(void *ctx, unsigned secret, const char *spelling, const char *where) {}

static void must_not_hold(const void *p, size_t len)
{
	if (len && memmem(p, len, SECRET, strlen(SECRET)))
		abort();
}

static void check_head(const struct http_head *head)
{
	for (size_t i = 0; i < head->n_fields; i++) {
		must_not_hold(head->fields[i].name.p, head->fields[i].name.len);
		must_not_hold(head->fields[i].value.p, head->fields[i].value.len);
	}
}

/* Reads fields; returns the rest. */
static const uint8_t *read_head(const uint8_t *p, const uint8_t *end, struct http_head *head)
{
	const uint8_t *lf;
	while ((lf = p < end ? memchr(p, '\n', (size_t)(end - p)) : NULL)) {
		char name[64];
		const uint8_t *colon = memchr(p, ':', (size_t)(lf - p));
		if (lf == p)
			return lf + 1;
		if (colon && colon - p < 63) {
			snprintf(name, sizeof(name), "%.*s", (int)(colon - p), (const char *)p);
			const uint8_t *value = colon + 1;
			while (value < lf && *value == ' ')
				value++;
			http_head_add(head, name, value, (size_t)(lf - value));
		}
		p = lf + 1;
	}
	return end;
}

static enum reason feed(struct answer *a, const uint8_t *p, size_t len, size_t piece, struct buf *all)
{
	enum reason reason = REASON_NONE;
	for (size_t at = 0; reason == REASON_NONE && at < len; at += piece) {
		struct buf out;
		bool waiting = true;
		buf_init(&out, OUT_MAX);
		reason = answer_data(a, p + at, len - at < piece ? len - at : piece, &out);
		for (unsigned i = 0; reason == REASON_NONE && waiting; i++) {
			if (buf_append(all, out.data, out.len) < 0 || i > 10000)
				reason = REASON_RESPONSE_UNREADABLE; /* enough of it */
			buf_clear(&out);
			if (reason == REASON_NONE)
				reason = answer_more(a, &out, &waiting);
		}
		buf_append(all, out.data, out.len);
		buf_free(&out);
	}
	return reason;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static struct vault vault;
	struct http_head head, trailers;
	struct answer a;
	struct buf all, out;
	struct err err;
	if (size < 2)
		return 0;
	if (!vault.set) {
		vault.set = scan_set_new();
		if (scan_set_add(vault.set, 0, SECRET, strlen(SECRET), &err) < 0 || scan_set_compile(vault.set, &err) < 0)
			abort();
	}
	http_head_init(&head);
	http_head_init(&trailers);
	buf_init(&all, 8u * 1024 * 1024);
	buf_init(&out, OUT_MAX);
	answer_init(&a, &vault, on_found, NULL);
	a.head_request = data[0] & 1;
	a.upgrade = data[0] & 2;
	head.status = data[0] & 4 ? 206 : data[0] & 8 ? 304 : 200;
	const uint8_t *end = data + size, *body = read_head(data + 2, end, &head);
	http_head_copy(&trailers, &head);
	enum reason reason = answer_head(&a, &head);
	if (reason == REASON_NONE)
		check_head(&head);
	if (reason == REASON_NONE)
		reason = feed(&a, body, (size_t)(end - body), data[1] ? data[1] : 16384, &all);
	if (reason == REASON_NONE)
		reason = answer_end(&a, &out, &trailers);
	if (reason == REASON_NONE) {
		check_head(&trailers);
		buf_append(&all, out.data, out.len);
	}
	must_not_hold(all.data, all.len);
	answer_done(&a);
	buf_free(&all);
	buf_free(&out);
	http_head_free(&head);
	http_head_free(&trailers);
	return 0;
}
