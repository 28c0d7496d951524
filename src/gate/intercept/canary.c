/* SPDX-License-Identifier: Apache-2.0 */
/* Placeholders on their way: allowed in the one place that the rule binds, a canary anywhere else, in whatever spelling. */
#include "gate/intercept/internal.h"

#include <strings.h>

#include "base/mem.h"

struct finding {
	struct exchange *x;
	const char *where;
	int but;        /* the id that may stand here; -1: none */
	uint64_t seen;
	bool refuse;
};

static void on_found(void *ctx, unsigned id, const char *spelling, uint64_t offset, size_t len)
{
	struct finding *f = ctx;
	if ((int)id == f->but || f->seen & UINT64_C(1) << id)
		return;
	f->seen |= UINT64_C(1) << id;
	struct flow *flow = f->x->guest->flow;
	f->refuse |= intercept_canary(f->x->guest->it, &flow->target, flow->id, id, f->where, spelling);
}

static void look(struct finding *f, const char *p, size_t len)
{
	cleanup_free char *copy = mem_alloc(len + 1);
	memcpy(copy, p, len);
	scan_text(f->x->guest->it->placeholders, copy, len, false, on_found, f);
}

static int id_of(const struct interceptor *it, const char *secret)
{
	for (unsigned i = 0; i < it->n_secrets; i++)
		if (str_eq(it->secrets[i], secret))
			return (int)i;
	return -1;
}

static void put(struct buf *b, struct http_text t)
{
	buf_append(b, t.p, t.len);
	buf_append(b, "\n", 1);
}

/* Where the value of the bound key stands in the path's query: [*ret_at, *ret_at + *ret_len). False: it isn't there. */
static bool bound_query(struct http_text path, const char *key, size_t *ret_at, size_t *ret_len)
{
	const char *q = memchr(path.p, '?', path.len), *end = path.p + path.len;
	size_t key_len = strlen(key);
	for (const char *p = q ? q + 1 : end; p < end;) {
		const char *next = memchr(p, '&', (size_t)(end - p));
		size_t len = (size_t)((next ? next : end) - p);
		if (len > key_len && memcmp(p, key, key_len) == 0 && p[key_len] == '=') {
			*ret_at = (size_t)(p - path.p) + key_len + 1;
			*ret_len = len - key_len - 1;
			return true;
		}
		p = next ? next + 1 : end;
	}
	return false;
}

static void look_at_path(struct finding *f, const struct secret_binding *bound, int own)
{
	struct http_text path = f->x->head.path;
	size_t at, len;
	f->where = "path";
	f->but = -1;
	if (!bound || bound->place != SECRET_IN_QUERY || !bound_query(path, bound->field, &at, &len)) {
		look(f, path.p, path.len);
		return;
	}
	look(f, path.p, at);
	look(f, path.p + at + len, path.len - at - len);
	f->but = own;
	look(f, path.p + at, len);
}

bool canary_in_head(struct exchange *x, const struct secret_binding *bound)
{
	struct interceptor *it = x->guest->it;
	if (!it->placeholders)
		return false;
	struct finding f = { .x = x };
	struct buf rest;
	int own = bound ? id_of(it, bound->name) : -1;
	look_at_path(&f, bound, own);
	buf_init(&rest, 4 * HTTP_HEAD_MAX);
	put(&rest, x->head.method);
	f.where = "header";
	for (size_t i = 0; i < x->head.n_fields; i++) {
		const struct http_field *field = &x->head.fields[i];
		put(&rest, field->name);
		if (bound && bound->place == SECRET_IN_HEADER && http_text_equal(field->name, bound->field)) {
			f.but = own;
			look(&f, field->value.p, field->value.len);
		} else {
			put(&rest, field->value);
		}
	}
	f.but = -1;
	look(&f, (const char *)rest.data, rest.len);
	buf_free(&rest);
	return f.refuse;
}

bool canary_in_trailers(struct exchange *x, const struct http_head *trailers)
{
	if (!x->guest->it->placeholders)
		return false;
	struct finding f = { .x = x, .where = "trailer", .but = -1 };
	for (size_t i = 0; i < trailers->n_fields; i++) {
		look(&f, trailers->fields[i].name.p, trailers->fields[i].name.len);
		look(&f, trailers->fields[i].value.p, trailers->fields[i].value.len);
	}
	return f.refuse;
}

static void on_found_in_body(void *ctx, unsigned id, const char *spelling, uint64_t offset, size_t len)
{
	struct exchange *x = ctx;
	if ((int)id == x->body_secret || x->canaries & UINT64_C(1) << id || !x->guest)
		return;
	x->canaries |= UINT64_C(1) << id;
	struct flow *flow = x->guest->flow;
	if (intercept_canary(x->guest->it, &flow->target, flow->id, id, "body", spelling))
		x->canary = true;
}

void canary_body_begin(struct exchange *x, const struct secret_binding *bound)
{
	struct interceptor *it = x->guest->it;
	x->body_secret = bound && bound->place == SECRET_IN_BODY ? id_of(it, bound->name) : -1;
	if (it->placeholders && !x->end)
		x->body = scan_stream_new(it->placeholders, on_found_in_body, x);
}

bool canary_in_body(struct exchange *x, const uint8_t *p, size_t len)
{
	if (x->body)
		scan_look(x->body, p, len);
	return x->canary;
}
