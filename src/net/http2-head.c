/* SPDX-License-Identifier: Apache-2.0 */
#include "net/http2-conn.h"

#include <stdio.h>
#include <string.h>

#include "base/mem.h"
#include "net/http-rules.h"

static bool is(const char *name, size_t len, const char *what)
{
	return strlen(what) == len && memcmp(name, what, len) == 0;
}

/* nghttp2 has checked that it is there once, before the others, and belongs to this kind of head. */
static enum http_fault pseudo_field(struct http_head *h, const char *name, size_t len, const char *value, size_t value_len)
{
	const struct { const char *name; struct http_text *member; } members[] = { { ":method", &h->method }, { ":scheme", &h->scheme },
		{ ":authority", &h->authority }, { ":path", &h->path }, { ":protocol", &h->protocol } };
	for (size_t i = 0; i < ARRAY_LEN(members); i++)
		if (is(name, len, members[i].name))
			return http_head_set(h, members[i].member, value, value_len) < 0 ? HTTP_TOO_LARGE : HTTP_FAULT_NONE;
	if (!is(name, len, ":status") || value_len != 3)
		return HTTP_MALFORMED;
	uint64_t status;
	if (http_length_parse(value, value_len, &status) < 0)
		return HTTP_MALFORMED;
	h->status = (unsigned)status;
	return HTTP_FAULT_NONE;
}

/* An old way to say :authority, after all pseudo fields. Both must say the same. */
static enum http_fault host_field(struct http_head *h, const char *value, size_t len)
{
	if (h->status)
		return HTTP_MALFORMED;
	if (h->authority.len == 0)
		return http_head_set(h, &h->authority, value, len) < 0 ? HTTP_TOO_LARGE : HTTP_FAULT_NONE;
	return http_authority_same(h->scheme, h->authority, (struct http_text){ value, len }) ? HTTP_FAULT_NONE : HTTP_MALFORMED;
}

static enum http_fault length_field(struct http_head *h, const char *value, size_t len)
{
	bool twice = h->has_length;
	h->has_length = true;
	return !twice && http_length_parse(value, len, &h->length) == 0 ? HTTP_FAULT_NONE : HTTP_MALFORMED;
}

static enum http_fault plain_field(struct http_head *h, const char *name, size_t name_len, const char *value, size_t value_len,
	uint8_t flags)
{
	struct http_field *f = http_head_push(h, name, name_len, value, value_len);
	if (!f)
		return HTTP_TOO_LARGE;
	f->sensitive = flags & NGHTTP2_NV_FLAG_NO_INDEX;
	return http_head_join_cookie(h) < 0 ? HTTP_TOO_LARGE : HTTP_FAULT_NONE;
}

enum http_fault http2_head_field(struct http2_stream *s, bool trailers, const char *name, size_t name_len, const char *value,
	size_t value_len, uint8_t flags)
{
	if (!http_is_value(value, value_len))
		return HTTP_MALFORMED;
	if (trailers && !http_trailer_allowed(name, name_len))
		return HTTP_MALFORMED;
	if (name_len && name[0] == ':')
		return trailers ? HTTP_MALFORMED : pseudo_field(&s->in, name, name_len, value, value_len);
	if (!http_is_token(name, name_len))
		return HTTP_MALFORMED;
	switch (http_field_class(name, name_len)) {
	case FIELD_HOST:
		return host_field(&s->in, value, value_len);
	case FIELD_LENGTH:
		return length_field(&s->in, value, value_len);
	case FIELD_TE:
		if (!is(value, value_len, "trailers"))
			return HTTP_MALFORMED;
		return plain_field(&s->in, name, name_len, value, value_len, flags);
	case FIELD_PLAIN:
		return plain_field(&s->in, name, name_len, value, value_len, flags);
	case FIELD_CONNECTION:
	case FIELD_DISGUISED:
		break;
	}
	return HTTP_MALFORMED;
}

static nghttp2_nv pair(const char *name, size_t name_len, const char *value, size_t value_len, uint8_t flags)
{
	return (nghttp2_nv){ .name = (uint8_t *)(uintptr_t)name, .namelen = name_len, .value = (uint8_t *)(uintptr_t)value,
		.valuelen = value_len, .flags = flags };
}

static nghttp2_nv pseudo(const char *name, struct http_text t)
{
	return pair(name, strlen(name), t.p, t.len, NGHTTP2_NV_FLAG_NONE);
}

static size_t list_pseudo(const struct http_head *h, nghttp2_nv *nv, struct http2_digits *digits)
{
	size_t n = 0;
	if (h->method.len) {
		nv[n++] = pseudo(":method", h->method);
		nv[n++] = pseudo(":scheme", h->scheme);
		nv[n++] = pseudo(":authority", h->authority);
		nv[n++] = pseudo(":path", h->path);
		if (h->protocol.len)
			nv[n++] = pseudo(":protocol", h->protocol);
	} else if (h->status) {
		int len = snprintf(digits->status, sizeof(digits->status), "%03u", h->status % 1000);
		nv[n++] = pseudo(":status", (struct http_text){ digits->status, (size_t)len });
	}
	return n;
}

size_t http2_head_list(const struct http_head *h, bool upgrade, nghttp2_nv nv[HTTP2_FIELDS_MAX], struct http2_digits *digits)
{
	size_t n = list_pseudo(h, nv, digits);
	if (h->has_length && h->status != 204) {
		int len = snprintf(digits->length, sizeof(digits->length), "%llu", (unsigned long long)h->length);
		nv[n++] = pair("content-length", 14, digits->length, (size_t)len, NGHTTP2_NV_FLAG_NONE);
	}
	for (size_t i = 0; i < h->n_fields; i++) {
		const struct http_field *f = &h->fields[i];
		/* HTTP/1's handshake: each HTTP/1 connection makes its own. */
		if (upgrade && (http_text_equal(f->name, "sec-websocket-key") || http_text_equal(f->name, "sec-websocket-accept")))
			continue;
		nv[n++] = pair(f->name.p, f->name.len, f->value.p, f->value.len,
			f->sensitive ? NGHTTP2_NV_FLAG_NO_INDEX : NGHTTP2_NV_FLAG_NONE);
	}
	return n;
}
