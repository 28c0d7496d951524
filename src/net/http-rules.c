/* SPDX-License-Identifier: Apache-2.0 */
#include "net/http-rules.h"

#include <string.h>
#include <strings.h>

#include "base/mem.h"
#include "net/http1-syntax.h"

struct known_field { const char *name; size_t len; enum http_field_class class; };
#define KNOWN(name, class) { name, sizeof(name) - 1, class }

static const struct known_field known_fields[] = {
	KNOWN("host", FIELD_HOST), KNOWN("content-length", FIELD_LENGTH), KNOWN("te", FIELD_TE),
	KNOWN("connection", FIELD_CONNECTION), KNOWN("keep-alive", FIELD_CONNECTION), KNOWN("proxy-connection", FIELD_CONNECTION),
	KNOWN("transfer-encoding", FIELD_CONNECTION), KNOWN("upgrade", FIELD_CONNECTION), KNOWN("http2-settings", FIELD_CONNECTION),
	KNOWN("content_length", FIELD_DISGUISED), KNOWN("transfer_encoding", FIELD_DISGUISED),
};

enum http_field_class http_field_class(const char *name, size_t len)
{
	for (size_t i = 0; i < ARRAY_LEN(known_fields); i++)
		if (known_fields[i].len == len && memcmp(known_fields[i].name, name, len) == 0)
			return known_fields[i].class;
	return FIELD_PLAIN;
}

bool http_is_token(const char *p, size_t len)
{
	for (size_t i = 0; i < len; i++)
		if (!http1_is_token((uint8_t)p[i]))
			return false;
	return len > 0;
}

bool http_is_value(const char *p, size_t len)
{
	for (size_t i = 0; i < len; i++)
		if (!http1_is_value((uint8_t)p[i]))
			return false;
	return len == 0 || (!http1_is_blank(p[0]) && !http1_is_blank(p[len - 1]));
}

bool http_is_authority(const char *p, size_t len)
{
	for (size_t i = 0; i < len; i++)
		if (!http1_is_alpha((uint8_t)p[i]) && !http1_is_digit((uint8_t)p[i]) && (!p[i] || !strchr("-._~:[]", p[i])))
			return false;
	return len > 0;
}

bool http_is_target(const char *p, size_t len)
{
	if (len == 1 && p[0] == '*')
		return true;
	for (size_t i = 0; i < len; i++)
		if (!http1_is_visible((uint8_t)p[i]) || p[i] == '#')
			return false;
	return len > 0 && p[0] == '/';
}

static struct http_text without_port(struct http_text a, struct http_text scheme)
{
	const char *port = http_text_equal(scheme, "https") ? ":443" : ":80";
	size_t n = strlen(port);
	if (a.len > n && memcmp(a.p + a.len - n, port, n) == 0)
		a.len -= n;
	return a;
}

bool http_authority_same(struct http_text scheme, struct http_text a, struct http_text b)
{
	a = without_port(a, scheme);
	b = without_port(b, scheme);
	return a.len == b.len && strncasecmp(a.p, b.p, a.len) == 0;
}

bool http_trailer_allowed(const char *name, size_t len)
{
	static const char *const before_only[] = { "trailer", "authorization", "proxy-authorization", "cookie", "set-cookie", "expect",
		"content-type", "content-encoding", "content-range", "location", "www-authenticate", "proxy-authenticate" };
	if (http_field_class(name, len) != FIELD_PLAIN)
		return false;
	for (size_t i = 0; i < ARRAY_LEN(before_only); i++)
		if (strlen(before_only[i]) == len && memcmp(before_only[i], name, len) == 0)
			return false;
	return true;
}

int http_length_parse(const char *p, size_t len, uint64_t *ret)
{
	uint64_t n = 0;
	if (len == 0 || len > 18)
		return -1;
	for (size_t i = 0; i < len; i++) {
		if (!http1_is_digit((uint8_t)p[i]))
			return -1;
		n = n * 10 + (uint64_t)(p[i] - '0');
	}
	*ret = n;
	return 0;
}

bool http_list_has(const char *list, size_t len, const char *word)
{
	return http1_list_has((struct http1_text){ list, len }, (struct http1_text){ word, strlen(word) });
}

bool http_is_bodiless(unsigned status, bool to_head)
{
	return to_head || status < 200 || status == 204 || status == 304;
}

static int check_fields(const struct http_head *h, struct err *err)
{
	for (size_t i = 0; i < h->n_fields; i++) {
		const struct http_field *f = &h->fields[i];
		enum http_field_class class = http_field_class(f->name.p, f->name.len);
		if (class == FIELD_PLAIN || (class == FIELD_TE && http_text_equal(f->value, "trailers")))
			continue;
		return err_set(err, ERR_INVALID, "the field %.*s is the connection's own and can't be sent in a head",
			(int)f->name.len, f->name.p);
	}
	return 0;
}

static int check_length(const struct http_head *h, bool end, struct err *err)
{
	if (end && h->has_length && h->length > 0)
		return err_set(err, ERR_INVALID, "the head announces a body of %llu bytes, and none follows", (unsigned long long)h->length);
	return 0;
}

int http_request_check(const struct http_head *h, bool end, struct err *err)
{
	bool upgrade = h->protocol.len > 0;
	bool star = h->path.len == 1 && h->path.p[0] == '*';
	if (!http_is_token(h->method.p, h->method.len) || h->method.len > HTTP1_METHOD_MAX)
		return err_set(err, ERR_INVALID, "the method of the request is not a token of at most %u bytes", HTTP1_METHOD_MAX);
	if (http_text_equal(h->method, "CONNECT") != upgrade || (upgrade && !http_text_equal(h->protocol, "websocket")))
		return err_set(err, ERR_UNSUPPORTED, "CONNECT is only sent to begin a WebSocket");
	if (!http_text_equal(h->scheme, "https") && !http_text_equal(h->scheme, "http"))
		return err_set(err, ERR_INVALID, "the scheme of the request is neither https nor http");
	if (!http_is_authority(h->authority.p, h->authority.len))
		return err_set(err, ERR_INVALID, "the authority of the request is not HOST[:PORT]");
	if (!http_is_target(h->path.p, h->path.len) || (star && !http_text_equal(h->method, "OPTIONS")))
		return err_set(err, ERR_INVALID, "the path of the request is not one");
	const struct http_field *version = upgrade ? http_head_get(h, "sec-websocket-version") : NULL;
	if (upgrade && (!version || version->value.len == 0 || http_head_count(h, "sec-websocket-version") != 1))
		return err_set(err, ERR_INVALID, "a request for a WebSocket says its version once");
	if (upgrade && (end || h->has_length))
		return err_set(err, ERR_INVALID, "a request for a WebSocket has no body, and doesn't end with its head");
	return check_length(h, end, err) < 0 ? -1 : check_fields(h, err);
}

int http_response_check(const struct http_head *h, bool end, struct err *err)
{
	if (h->status < 100 || h->status > 599 || h->status == 101)
		return err_set(err, ERR_INVALID, "%u is no status of a response that can be sent", h->status);
	if (h->status < 200 && (end || h->has_length))
		return err_set(err, ERR_INVALID, "an interim response has no body and is not the end");
	return check_fields(h, err);
}

int http_trailers_check(const struct http_head *h, struct err *err)
{
	for (size_t i = 0; i < h->n_fields; i++)
		if (!http_trailer_allowed(h->fields[i].name.p, h->fields[i].name.len))
			return err_set(err, ERR_INVALID, "the field %.*s can't be a trailer", (int)h->fields[i].name.len, h->fields[i].name.p);
	if (h->live > HTTP_TRAILERS_MAX)
		return err_set(err, ERR_LIMIT, "trailers are limited to %u bytes", HTTP_TRAILERS_MAX);
	return 0;
}
