/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The head model. All text of a head lies in one buffer; what is replaced stays behind in it until the room is needed. Texts
 * are pointers into the buffer, moved along when it grows.
 */
#include <string.h>
#include <strings.h>

#include "base/mem.h"
#include "net/http-rules.h"
#include "net/http1-syntax.h"

#define STORAGE_MAX (2u * HTTP_HEAD_MAX) /* live text and what was replaced */
#define FIRST_FIELDS 16u

static const struct http_text empty = { "", 0 };

bool http_text_equal(struct http_text t, const char *s)
{
	return strlen(s) == t.len && memcmp(t.p, s, t.len) == 0;
}

bool http_text_equal_nocase(struct http_text t, const char *s)
{
	return strlen(s) == t.len && strncasecmp(t.p, s, t.len) == 0;
}

char *http_text_dup(struct http_text t)
{
	return mem_strndup(t.p, t.len);
}

void http_head_init(struct http_head *h)
{
	*h = (struct http_head){ .method = empty, .scheme = empty, .authority = empty, .path = empty, .protocol = empty };
	buf_init(&h->storage, STORAGE_MAX);
}

void http_head_free(struct http_head *h)
{
	buf_wipe_free(&h->storage);
	mem_free(h->fields);
	http_head_init(h);
}

typedef void (*text_fn)(struct http_text *t, void *arg);

static void each_text(struct http_head *h, text_fn fn, void *arg)
{
	struct http_text *const members[] = { &h->method, &h->scheme, &h->authority, &h->path, &h->protocol };
	for (size_t i = 0; i < ARRAY_LEN(members); i++)
		fn(members[i], arg);
	for (size_t i = 0; i < h->n_fields; i++) {
		fn(&h->fields[i].name, arg);
		fn(&h->fields[i].value, arg);
	}
}

/* Where the text lay before the buffer moved, as numbers: those pointers are dead. */
struct move { uintptr_t from, to; size_t len; };

static const char *moved(const char *p, const struct move *m)
{
	uintptr_t at = (uintptr_t)p;
	return at >= m->from && at < m->from + m->len ? (const char *)(m->to + (at - m->from)) : p;
}

static void move_text(struct http_text *t, void *arg)
{
	t->p = moved(t->p, arg);
}

/* Makes room for len bytes. *source, when it lies in this head, moves with it. */
static char *reserve(struct http_head *h, size_t len, const char **source)
{
	struct move m = { .from = (uintptr_t)h->storage.data, .len = h->storage.len };
	char *to = buf_reserve(&h->storage, len);
	m.to = (uintptr_t)h->storage.data;
	if (to && m.len && m.to != m.from) {
		each_text(h, move_text, &m);
		*source = moved(*source, &m);
	}
	return to;
}

static void copy_text(struct http_text *t, void *arg)
{
	struct buf *to = arg;
	const char *p = t->len ? (const char *)to->data + to->len : "";
	/* Room for all of them was reserved. */
	memcpy(to->data + to->len, t->p, t->len);
	to->len += t->len;
	t->p = p;
}

/* Leaves what was replaced behind; `extra` bytes of room besides. */
static int compact(struct http_head *h, size_t extra, struct buf *old)
{
	struct buf fresh;
	buf_init(&fresh, STORAGE_MAX);
	if (!buf_reserve(&fresh, h->live + extra))
		return -1;
	*old = h->storage;
	each_text(h, copy_text, &fresh);
	h->storage = fresh;
	return 0;
}

/* Copies text in; `replaced` bytes of live text are given up for it. */
static int store(struct http_head *h, const char *p, size_t len, size_t replaced, struct http_text *ret)
{
	if (len > HTTP_HEAD_MAX || h->live - replaced + len > HTTP_HEAD_MAX)
		return -1;
	struct buf old = { 0 };
	char *to = reserve(h, len, &p);
	if (!to && compact(h, len, &old) == 0)
		to = (char *)h->storage.data + h->storage.len;
	if (!to)
		return -1;
	if (len)
		memcpy(to, p, len);
	buf_commit(&h->storage, len);
	buf_wipe_free(&old); /* the source may have been in it */
	h->live = h->live - replaced + len;
	*ret = len ? (struct http_text){ to, len } : empty;
	return 0;
}

int http_head_reserve(struct http_head *h, size_t bytes, size_t fields)
{
	const char *none = "";
	if (fields > HTTP_FIELDS_MAX || (bytes && !reserve(h, bytes < STORAGE_MAX ? bytes : STORAGE_MAX, &none)))
		return -1;
	if (fields > h->fields_cap) {
		h->fields = mem_grow_array(h->fields, fields, sizeof(*h->fields));
		h->fields_cap = fields;
	}
	return 0;
}

static struct http_field *new_field(struct http_head *h)
{
	if (h->n_fields == HTTP_FIELDS_MAX)
		return NULL;
	if (h->n_fields == h->fields_cap && http_head_reserve(h, 0, h->fields_cap ? h->fields_cap * 2 : FIRST_FIELDS) < 0)
		return NULL;
	struct http_field *f = &h->fields[h->n_fields];
	*f = (struct http_field){ .name = empty, .value = empty };
	return f;
}

static void lower(struct http_text t)
{
	char *p = (char *)(uintptr_t)t.p; /* in our own storage */
	for (size_t i = 0; i < t.len; i++)
		if (p[i] >= 'A' && p[i] <= 'Z')
			p[i] |= 0x20;
}

struct http_field *http_head_push(struct http_head *h, const char *name, size_t name_len, const char *value, size_t value_len)
{
	struct http_field *f = new_field(h);
	if (!f)
		return NULL;
	size_t live = h->live;
	/* Stored into the new field itself, so that the name moves along when the value makes the buffer grow; counted at once for
	 * the same reason. */
	h->n_fields++;
	if (store(h, name, name_len, 0, &f->name) < 0 || store(h, value, value_len, 0, &f->value) < 0) {
		h->n_fields--;
		h->live = live;
		return NULL;
	}
	lower(f->name);
	return f;
}

void http_head_pop(struct http_head *h)
{
	const struct http_field *f = &h->fields[--h->n_fields];
	h->live -= f->name.len + f->value.len;
}

int http_head_join_cookie(struct http_head *h)
{
	struct http_field *crumb = &h->fields[h->n_fields - 1], *f = NULL;
	if (!http_text_equal(crumb->name, "cookie"))
		return 0;
	for (size_t i = 0; i + 1 < h->n_fields && !f; i++)
		if (http_text_equal(h->fields[i].name, "cookie"))
			f = &h->fields[i];
	if (!f)
		return 0;
	struct http_text first = f->value, second = crumb->value;
	bool both = first.len && second.len;
	size_t len = first.len + second.len + (both ? 2 : 0);
	char *joined = mem_alloc(len);
	memcpy(joined, first.p, first.len);
	if (both)
		memcpy(joined + first.len, "; ", 2);
	memcpy(joined + len - second.len, second.p, second.len);
	f->sensitive |= crumb->sensitive;
	http_head_pop(h);
	int r = store(h, joined, len, first.len, &f->value);
	mem_wipe(joined, len);
	mem_free(joined);
	return r;
}

int http_head_copy(struct http_head *to, const struct http_head *from)
{
	if (to == from)
		return 0;
	http_head_free(to);
	if (http_head_reserve(to, from->live, from->n_fields) < 0)
		return -1;
	to->status = from->status;
	to->has_length = from->has_length;
	to->length = from->length;
	bool ok = store(to, from->method.p, from->method.len, 0, &to->method) == 0 &&
		store(to, from->scheme.p, from->scheme.len, 0, &to->scheme) == 0 &&
		store(to, from->authority.p, from->authority.len, 0, &to->authority) == 0 &&
		store(to, from->path.p, from->path.len, 0, &to->path) == 0 &&
		store(to, from->protocol.p, from->protocol.len, 0, &to->protocol) == 0;
	for (size_t i = 0; ok && i < from->n_fields; i++) {
		const struct http_field *f = &from->fields[i];
		struct http_field *copy = http_head_push(to, f->name.p, f->name.len, f->value.p, f->value.len);
		ok = copy != NULL;
		if (copy)
			copy->sensitive = f->sensitive;
	}
	if (ok)
		return 0;
	http_head_free(to);
	return -1;
}

int http_head_set(struct http_head *h, struct http_text *member, const void *p, size_t len)
{
	return store(h, p, len, member->len, member);
}

static struct http1_text sendable_value(const void *value, size_t len)
{
	return http1_trim((struct http1_text){ value, len });
}

static bool sendable(const char *name, size_t name_len, struct http1_text value)
{
	char plain[64];
	if (!http_is_token(name, name_len) || !http_is_value(value.p, value.len))
		return false;
	if (name_len >= sizeof(plain))
		return true; /* longer than any name with a meaning here */
	for (size_t i = 0; i < name_len; i++)
		plain[i] = name[i] >= 'A' && name[i] <= 'Z' ? (char)(name[i] | 0x20) : name[i];
	enum http_field_class class = http_field_class(plain, name_len);
	return class == FIELD_PLAIN || (class == FIELD_TE && http1_text_is(value, "trailers"));
}

int http_head_add(struct http_head *h, const char *name, const void *value, size_t len)
{
	struct http1_text v = sendable_value(value, len);
	if (!sendable(name, strlen(name), v))
		return -1;
	return http_head_push(h, name, strlen(name), v.p, v.len) ? 0 : -1;
}

static struct http_field *find(const struct http_head *h, const char *name, size_t from)
{
	for (size_t i = from; i < h->n_fields; i++)
		if (http_text_equal_nocase(h->fields[i].name, name))
			return &h->fields[i];
	return NULL;
}

static void remove_from(struct http_head *h, const char *name, size_t from)
{
	for (struct http_field *f; (f = find(h, name, from));) {
		size_t at = (size_t)(f - h->fields);
		h->live -= f->name.len + f->value.len;
		memmove(f, f + 1, (h->n_fields - at - 1) * sizeof(*f));
		h->n_fields--;
		from = at;
	}
}

int http_head_put(struct http_head *h, const char *name, const void *value, size_t len)
{
	struct http_field *f = find(h, name, 0);
	struct http1_text v = sendable_value(value, len);
	if (!f)
		return http_head_add(h, name, value, len);
	if (!sendable(name, strlen(name), v) || store(h, v.p, v.len, f->value.len, &f->value) < 0)
		return -1;
	f->sensitive = false;
	remove_from(h, name, (size_t)(f - h->fields) + 1);
	return 0;
}

void http_head_remove(struct http_head *h, const char *name)
{
	remove_from(h, name, 0);
}

const struct http_field *http_head_get(const struct http_head *h, const char *name)
{
	return find(h, name, 0);
}

size_t http_head_count(const struct http_head *h, const char *name)
{
	size_t n = 0;
	for (size_t i = 0; i < h->n_fields; i++)
		n += http_text_equal_nocase(h->fields[i].name, name);
	return n;
}
