/* SPDX-License-Identifier: Apache-2.0 */
#include "gate/upstream/inject.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include <sodium.h>

#include "base/mem.h"
#include "secrets/secret.h"

#define TEXT_MAX (4u * SECRET_VALUE_MAX + HTTP_HEAD_MAX)

static bool contains(const void *p, size_t len, const char *needle) { return len && memmem(p, len, needle, strlen(needle)); }

long inject_replace(struct buf *out, const void *text, size_t len, const char *needle, const void *value, size_t value_len)
{
	const char *p = text, *end = p + len;
	size_t needle_len = strlen(needle);
	long n = 0;
	for (const char *hit; (hit = len ? memmem(p, (size_t)(end - p), needle, needle_len) : NULL); n++) {
		if (buf_append(out, p, (size_t)(hit - p)) < 0 || buf_append(out, value, value_len) < 0)
			return -1;
		p = hit + needle_len;
	}
	return buf_append(out, p, (size_t)(end - p)) < 0 ? -1 : n;
}

int inject_percent(struct buf *out, const void *p, size_t len)
{
	static const char hex[] = "0123456789ABCDEF";
	const uint8_t *b = p;
	for (size_t i = 0; i < len; i++) {
		char coded[3] = { '%', hex[b[i] >> 4], hex[b[i] & 15] };
		bool plain = b[i] < 0x80 && (isalnum(b[i]) || strchr("-._~", b[i]));
		if (b[i] == 0 || !plain ? buf_append(out, coded, 3) < 0 : buf_append(out, &b[i], 1) < 0)
			return -1;
	}
	return 0;
}

/* "Bearer {}" with the value in place of the braces. */
static int render(struct buf *out, const char *template, const void *value, size_t len)
{
	return inject_replace(out, template, strlen(template), "{}", value, len) < 0 ? -1 : 0;
}

/* ---- headers ---- */

/* The user and password of "Basic …", decoded into `out` (wiped by the caller); false when it is something else. */
static bool basic_decode(struct http_text v, struct buf *out)
{
	if (v.len < 6 || strncasecmp(v.p, "basic ", 6) != 0)
		return false;
	const char *p = v.p + 6, *end = v.p + v.len;
	while (p < end && *p == ' ')
		p++;
	while (end > p && end[-1] == '=') /* padding may be missing; the decoder then wants none */
		end--;
	size_t len = 0, text_len = (size_t)(end - p);
	uint8_t *to = buf_reserve(out, text_len + 1);
	if (!to || sodium_base642bin(to, text_len + 1, p, text_len, NULL, &len, NULL, sodium_base64_VARIANT_ORIGINAL_NO_PADDING) != 0)
		return false;
	buf_commit(out, len);
	return true;
}

static int basic_encode(struct buf *out, const struct buf *plain)
{
	size_t room = sodium_base64_encoded_len(plain->len, sodium_base64_VARIANT_ORIGINAL);
	if (buf_append(out, "Basic ", 6) < 0)
		return -1;
	char *to = buf_reserve(out, room);
	if (!to)
		return -1;
	sodium_bin2base64(to, room, plain->data, plain->len, sodium_base64_VARIANT_ORIGINAL);
	buf_commit(out, room - 1);
	return 0;
}

static bool value_holds(struct http_text v, const char *placeholder)
{
	if (contains(v.p, v.len, placeholder))
		return true;
	struct buf plain;
	buf_init(&plain, HTTP_HEAD_MAX);
	bool found = basic_decode(v, &plain) && contains(plain.data, plain.len, placeholder);
	buf_wipe_free(&plain);
	return found;
}

static enum inject_finding look_header(const struct secret_binding *b, const char *placeholder, const struct http_head *head)
{
	bool seen = false;
	for (size_t i = 0; i < head->n_fields; i++) {
		if (!http_text_equal(head->fields[i].name, b->field))
			continue;
		if (!value_holds(head->fields[i].value, placeholder))
			return INJECT_FOREIGN;
		seen = true;
	}
	return seen ? INJECT_HERE : INJECT_NOTHING;
}

/* One field's value with the real one in it. */
static int swap_value(struct buf *out, struct http_text v, const char *placeholder, const void *value, size_t len)
{
	if (contains(v.p, v.len, placeholder))
		return inject_replace(out, v.p, v.len, placeholder, value, len) < 0 ? -1 : 0;
	struct buf plain, swapped;
	buf_init(&plain, HTTP_HEAD_MAX);
	buf_init(&swapped, TEXT_MAX);
	int r = -1;
	if (basic_decode(v, &plain) && inject_replace(&swapped, plain.data, plain.len, placeholder, value, len) > 0)
		r = basic_encode(out, &swapped);
	buf_wipe_free(&plain);
	buf_wipe_free(&swapped);
	return r;
}

/* The head anew, so that several fields of one name stay several and in their order. */
static int put_header(const struct secret_binding *b, const char *placeholder, const void *value, size_t len, struct http_head *head)
{
	struct http_head old;
	struct buf text;
	http_head_init(&old);
	buf_init(&text, TEXT_MAX);
	int r = http_head_copy(&old, head);
	if (r == 0)
		http_head_remove(head, b->field);
	for (size_t i = 0; r == 0 && i < old.n_fields; i++) {
		if (!http_text_equal(old.fields[i].name, b->field))
			continue;
		buf_clear(&text);
		r = swap_value(&text, old.fields[i].value, placeholder, value, len);
		if (r == 0)
			r = http_head_add(head, b->field, text.data, text.len);
	}
	buf_wipe_free(&text);
	http_head_free(&old);
	return r;
}

static int set_header(const struct secret_binding *b, const void *value, size_t len, struct http_head *head)
{
	struct buf text;
	buf_init(&text, TEXT_MAX);
	int r = render(&text, b->value, value, len);
	if (r == 0)
		r = http_head_put(head, b->field, text.data, text.len);
	buf_wipe_free(&text);
	return r;
}

/* ---- queries ---- */

struct pair { const char *p; size_t len, key_len; bool has_value; }; /* "key=value" as sent */

static bool next_pair(const char **p, const char *end, struct pair *ret)
{
	if (!*p || *p > end)
		return false;
	const char *amp = *p < end ? memchr(*p, '&', (size_t)(end - *p)) : NULL;
	const char *stop = amp ? amp : end;
	const char *equals = stop > *p ? memchr(*p, '=', (size_t)(stop - *p)) : NULL;
	*ret = (struct pair){ .p = *p, .len = (size_t)(stop - *p), .key_len = (size_t)((equals ? equals : stop) - *p), .has_value = equals };
	*p = amp ? amp + 1 : NULL;
	return true;
}

static int hex_digit(char c) { return c >= '0' && c <= '9' ? c - '0' : isxdigit((unsigned char)c) ? tolower((unsigned char)c) - 'a' + 10 : -1; }

/* As a form is decoded. */
static int form_decode(struct buf *out, const char *p, size_t len)
{
	for (size_t i = 0; i < len; i++) {
		char c = p[i] == '+' ? ' ' : p[i];
		if (c == '%' && i + 2 < len && hex_digit(p[i + 1]) >= 0 && hex_digit(p[i + 2]) >= 0) {
			c = (char)(hex_digit(p[i + 1]) << 4 | hex_digit(p[i + 2]));
			i += 2;
		}
		if (buf_append(out, &c, 1) < 0)
			return -1;
	}
	return 0;
}

static bool key_is(const struct pair *pair, const char *key)
{
	struct buf plain;
	buf_init(&plain, REQUEST_PATH_MAX);
	bool same = form_decode(&plain, pair->p, pair->key_len) == 0 && plain.len == strlen(key) && memcmp(plain.data ? plain.data : (const uint8_t *)"", key, plain.len) == 0;
	buf_free(&plain);
	return same;
}

static int pair_value(const struct pair *pair, struct buf *out)
{
	return pair->has_value ? form_decode(out, pair->p + pair->key_len + 1, pair->len - pair->key_len - 1) : 0;
}

static const char *query_of(const struct http_head *head, const char **ret_end)
{
	const char *mark = head->path.len ? memchr(head->path.p, '?', head->path.len) : NULL;
	*ret_end = head->path.p + head->path.len;
	return mark ? mark + 1 : NULL;
}

static enum inject_finding look_query(const struct secret_binding *b, const char *placeholder, const struct http_head *head)
{
	const char *end, *p = query_of(head, &end);
	enum inject_finding found = INJECT_NOTHING;
	struct pair pair;
	while (found != INJECT_FOREIGN && next_pair(&p, end, &pair)) {
		struct buf plain;
		if (!key_is(&pair, b->field))
			continue;
		buf_init(&plain, REQUEST_PATH_MAX);
		found = pair_value(&pair, &plain) == 0 && contains(plain.data, plain.len, placeholder) ? INJECT_HERE : INJECT_FOREIGN;
		buf_free(&plain);
	}
	return found;
}

static int put_pair(struct buf *out, const struct pair *pair, const char *placeholder, const void *value, size_t len)
{
	struct buf plain, swapped;
	buf_init(&plain, REQUEST_PATH_MAX);
	buf_init(&swapped, TEXT_MAX);
	int r = -1;
	if (pair_value(pair, &plain) == 0 && inject_replace(&swapped, plain.data, plain.len, placeholder, value, len) >= 0)
		r = buf_append(out, pair->p, pair->key_len) | buf_append(out, "=", 1) | inject_percent(out, swapped.data, swapped.len);
	buf_wipe_free(&plain);
	buf_wipe_free(&swapped);
	return r;
}

/* With a template the key is set to it, whatever was there. */
static int put_template(struct buf *out, bool first, const struct secret_binding *b, const void *value, size_t len)
{
	struct buf text;
	buf_init(&text, TEXT_MAX);
	int r = render(&text, b->value, value, len);
	if (r == 0)
		r = buf_append(out, first ? "?" : "&", 1) | inject_percent(out, b->field, strlen(b->field)) | buf_append(out, "=", 1) |
			inject_percent(out, text.data, text.len);
	buf_wipe_free(&text);
	return r;
}

static int put_query(const struct secret_binding *b, const char *placeholder, const void *value, size_t len, struct http_head *head)
{
	const char *end, *p = query_of(head, &end);
	struct buf out;
	struct pair pair;
	buf_init(&out, TEXT_MAX);
	int r = buf_append(&out, head->path.p, p ? (size_t)(p - 1 - head->path.p) : head->path.len);
	bool first = true;
	while (r == 0 && next_pair(&p, end, &pair)) {
		bool mine = key_is(&pair, b->field);
		if (mine && b->value)
			continue;
		r = buf_append(&out, first ? "?" : "&", 1);
		first = false;
		if (r == 0)
			r = mine ? put_pair(&out, &pair, placeholder, value, len) : buf_append(&out, pair.p, pair.len);
	}
	if (r == 0 && b->value)
		r = put_template(&out, first, b, value, len);
	if (r == 0)
		r = http_head_set(head, &head->path, out.data, out.len);
	buf_wipe_free(&out);
	return r;
}

/* ---- */

enum inject_finding inject_look(const struct secret_binding *b, const char *placeholder, const struct http_head *head)
{
	if (b->value)
		return INJECT_HERE;
	return b->place == SECRET_IN_HEADER ? look_header(b, placeholder, head) : look_query(b, placeholder, head);
}

int inject_put(const struct secret_binding *b, const char *placeholder, const void *value, size_t len, struct http_head *head)
{
	if (b->place == SECRET_IN_QUERY)
		return put_query(b, placeholder, value, len, head) ? -1 : 0;
	return (b->value ? set_header(b, value, len, head) : put_header(b, placeholder, value, len, head)) ? -1 : 0;
}

const char *inject_place(const struct secret_binding *b, char out[INJECT_PLACE_MAX])
{
	static const char *const names[] = { [SECRET_IN_HEADER] = "header:", [SECRET_IN_QUERY] = "query:", [SECRET_IN_BODY] = "body" };
	snprintf(out, INJECT_PLACE_MAX, "%s%.200s", names[b->place], b->field ? b->field : "");
	return out;
}
