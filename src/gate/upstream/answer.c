/* SPDX-License-Identifier: Apache-2.0 */
#include "gate/upstream/answer.h"

#include <stdio.h>
#include <string.h>

#include "base/mem.h"
#include "gate/upstream-link.h"
#include "gate/upstream/accept.h"

#define PLAIN_MAX 32768u               /* unpacked at once */
#define OUT_ENOUGH (128u * 1024u)      /* then the receiver's turn */
#define PACKED_MAX (HTTP_WINDOW + 65536u)
#define CODING_MAX 256u

static const char unreadable_coding[] = "the server coded its answer in a way that can't be taken off";
static const char unreadable_part[] = "the server sent a part of a coded answer, which can't be read by itself";
static const char unreadable_body[] = "the answer is not of the coding that the server says, or is cut short";
static const char unreadable_frames[] = "the server turned on a WebSocket extension that nobody asked for";

void answer_init(struct answer *a, const struct vault *vault, answer_fn fn, void *ctx)
{
	*a = (struct answer){ .vault = vault, .fn = fn, .ctx = ctx, .where = "header" };
	buf_init(&a->packed, PACKED_MAX);
}

void answer_done(struct answer *a)
{
	a->unpack = unpack_free(a->unpack);
	a->scan = scan_stream_free(a->scan);
	buf_wipe_free(&a->packed);
}

/* ---- heads ---- */

static bool starts(struct http_text t, const char *prefix) { return t.len >= strlen(prefix) && memcmp(t.p, prefix, strlen(prefix)) == 0; }

void answer_strip(struct http_head *head)
{
	for (size_t i = 0; i < head->n_fields;) {
		cleanup_free char *name = starts(head->fields[i].name, LINK_FIELD_PREFIX) ? http_text_dup(head->fields[i].name) : NULL;
		if (name)
			http_head_remove(head, name);
		else
			i++;
	}
}

int answer_prepare(const struct vault *vault, struct http_head *request)
{
	answer_strip(request);
	if (vault_count(vault) == 0)
		return 0;
	http_head_remove(request, "sec-websocket-extensions"); /* compressed frames could not be read */
	return accept_limit(request);
}

static void on_found(void *ctx, unsigned id, const char *spelling, uint64_t offset, size_t len)
{
	struct answer *a = ctx;
	a->fn(a->ctx, id, spelling, a->where);
}

/* The head is ours to change, and overwriting keeps lengths. */
static void scrub_fields(struct answer *a, struct http_head *head, const char *where)
{
	struct scan_set *set = vault_scan(a->vault);
	a->where = where;
	for (size_t i = 0; i < head->n_fields; i++) {
		struct http_field *f = &head->fields[i];
		if (f->value.len)
			scan_text(set, (char *)(uintptr_t)f->value.p, f->value.len, true, on_found, a);
		if (scan_text(set, (char *)(uintptr_t)f->name.p, f->name.len, false, on_found, a)) {
			cleanup_free char *name = http_text_dup(f->name);
			http_head_remove(head, name);
			i = (size_t)-1; /* the list has moved */
		}
	}
}

/* The codings of all fields as one list. False: too long to be one. */
static bool coding_of(const struct http_head *head, char out[CODING_MAX])
{
	size_t n = 0;
	out[0] = 0;
	for (size_t i = 0; i < head->n_fields; i++) {
		struct http_text v = head->fields[i].value;
		if (!http_text_equal(head->fields[i].name, "content-encoding"))
			continue;
		if (n + v.len + 3 > CODING_MAX)
			return false;
		n += (size_t)snprintf(out + n, CODING_MAX - n, "%s%.*s", n ? ", " : "", (int)v.len, v.p ? v.p : "");
	}
	return true;
}

/* Fields that speak of the coded bytes are no longer true. */
static void forget_coding(struct http_head *head)
{
	static const char *const fields[] = { "content-encoding", "content-md5", "digest", "content-digest", "repr-digest" };
	for (size_t i = 0; i < ARRAY_LEN(fields); i++)
		http_head_remove(head, fields[i]);
	head->has_length = false;
	head->length = 0;
}

static enum reason unreadable(struct answer *a, const char *why)
{
	a->why = why;
	return REASON_RESPONSE_UNREADABLE;
}

static enum reason begin_body(struct answer *a, struct http_head *head)
{
	char coding[CODING_MAX];
	struct err err;
	if (!coding_of(head, coding) || unpack_new(coding, &a->unpack, &err) < 0)
		return unreadable(a, unreadable_coding);
	bool bodiless = a->head_request || head->status == 204 || head->status == 304;
	if (!a->unpack)
		return REASON_NONE;
	if (bodiless)
		a->unpack = unpack_free(a->unpack);
	else if (head->status == 206)
		return unreadable(a, unreadable_part);
	forget_coding(head);
	return REASON_NONE;
}

enum reason answer_head(struct answer *a, struct http_head *head)
{
	answer_strip(head);
	http_head_remove(head, "alt-svc");
	if (vault_count(a->vault) == 0)
		return REASON_NONE;
	scrub_fields(a, head, "header");
	if (head->status < 200)
		return REASON_NONE;
	if (a->upgrade && head->status < 300 && http_head_get(head, "sec-websocket-extensions"))
		return unreadable(a, unreadable_frames);
	return begin_body(a, head);
}

/* ---- bodies ---- */

/* The stream of finds, made for what the vault holds now. What the old one held back is looked at again with the new eyes. */
static int renew_scan(struct answer *a, struct buf *out)
{
	if (a->scan && a->epoch == vault_epoch(a->vault))
		return 0;
	struct buf held;
	buf_init(&held, out->max);
	int r = a->scan ? scan_scrub_end(a->scan, &held) : 0;
	scan_stream_free(a->scan);
	a->scan = scan_stream_new(vault_scan(a->vault), on_found, a);
	a->epoch = vault_epoch(a->vault);
	if (r == 0 && held.len)
		r = scan_scrub(a->scan, held.data, held.len, out);
	buf_wipe_free(&held);
	return r;
}

static enum reason scrub(struct answer *a, const void *p, size_t len, struct buf *out)
{
	a->where = "body";
	if (renew_scan(a, out) < 0 || scan_scrub(a->scan, p, len, out) < 0)
		return unreadable(a, unreadable_body);
	return REASON_NONE;
}

static enum reason unpack_some(struct answer *a, struct buf *out)
{
	struct buf plain;
	struct err err;
	size_t used = 0;
	buf_init(&plain, PLAIN_MAX);
	int r = unpack_feed(a->unpack, a->packed.data + a->at, a->packed.len - a->at, &used, &plain, &err);
	a->at += used;
	a->inside = plain.len == PLAIN_MAX;
	enum reason reason = r < 0 ? unreadable(a, unreadable_body) : plain.len ? scrub(a, plain.data, plain.len, out) : REASON_NONE;
	if (reason == REASON_NONE && !used && !plain.len && a->at < a->packed.len)
		reason = unreadable(a, unreadable_body); /* bytes after the coding's own end */
	buf_wipe_free(&plain);
	return reason;
}

enum reason answer_more(struct answer *a, struct buf *out, bool *ret_waiting)
{
	enum reason reason = REASON_NONE;
	while (reason == REASON_NONE && a->unpack && (a->at < a->packed.len || a->inside) && out->len < OUT_ENOUGH)
		reason = unpack_some(a, out);
	if (a->at == a->packed.len) {
		buf_clear(&a->packed);
		a->at = 0;
	}
	*ret_waiting = a->unpack && (a->at < a->packed.len || a->inside);
	return reason;
}

enum reason answer_data(struct answer *a, const uint8_t *p, size_t len, struct buf *out)
{
	bool waiting;
	if (vault_count(a->vault) == 0)
		return buf_append(out, p, len) < 0 ? REASON_UPSTREAM_PROTOCOL : REASON_NONE;
	if (!a->unpack)
		return scrub(a, p, len, out);
	buf_consume(&a->packed, a->at);
	a->at = 0;
	a->fed |= len > 0;
	if (buf_append(&a->packed, p, len) < 0)
		return REASON_UPSTREAM_PROTOCOL; /* more than any window allows */
	return answer_more(a, out, &waiting);
}

/* The unpacker's rest, and whether the body was whole. */
static enum reason end_unpack(struct answer *a, struct buf *out)
{
	bool more = a->unpack && a->fed;
	enum reason reason = REASON_NONE;
	while (more && reason == REASON_NONE) {
		struct buf plain;
		struct err err;
		buf_init(&plain, PLAIN_MAX);
		if (unpack_end(a->unpack, &plain, &more, &err) < 0)
			reason = unreadable(a, unreadable_body);
		else if (plain.len)
			reason = scrub(a, plain.data, plain.len, out);
		buf_wipe_free(&plain);
	}
	return reason;
}

enum reason answer_end(struct answer *a, struct buf *out, struct http_head *trailers)
{
	if (trailers)
		answer_strip(trailers);
	if (vault_count(a->vault) == 0)
		return REASON_NONE;
	enum reason reason = end_unpack(a, out);
	if (reason == REASON_NONE && a->scan && (renew_scan(a, out) < 0 || scan_scrub_end(a->scan, out) < 0))
		reason = unreadable(a, unreadable_body);
	if (reason == REASON_NONE && trailers)
		scrub_fields(a, trailers, "trailer");
	return reason;
}
