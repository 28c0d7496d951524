/* SPDX-License-Identifier: Apache-2.0 */
#include "net/http1-model.h"

#include "base/mem.h"
#include "net/http-rules.h"
#include "net/http1-syntax.h"

struct lines { const struct http1_header *p; size_t n; };

static const struct http1_header *find(struct lines l, const char *name, size_t *count)
{
	const struct http1_header *found = NULL;
	*count = 0;
	for (size_t i = 0; i < l.n; i++) {
		if (!http1_text_is(l.p[i].name, name))
			continue;
		++*count;
		if (!found)
			found = &l.p[i];
	}
	return found;
}

static bool listed(struct lines l, const char *name, struct http1_text word)
{
	for (size_t i = 0; i < l.n; i++)
		if (http1_text_is(l.p[i].name, name) && http1_list_has(l.p[i].value, word))
			return true;
	return false;
}

static bool connection_says(struct lines l, const char *word)
{
	return listed(l, "Connection", (struct http1_text){ word, strlen(word) });
}

/* Does Connection name fields of its own? Seldom: and only then each field is looked up. */
static bool connection_names_fields(struct lines l)
{
	static const char *const usual[] = { "close", "keep-alive", "upgrade", "te", "Upgrade, HTTP2-Settings" };
	size_t unusual = 0;
	for (size_t i = 0; i < l.n; i++) {
		if (!http1_text_is(l.p[i].name, "Connection"))
			continue;
		bool known = false;
		for (size_t k = 0; k < ARRAY_LEN(usual); k++)
			known |= http1_text_is(l.p[i].value, usual[k]);
		unusual += !known;
	}
	return unusual > 0;
}

static bool takes_trailers(const struct http1_header *h)
{
	return http1_list_has(h->value, (struct http1_text){ "trailers", 8 });
}

/* One line. The name is classified in the lower case that the head gives it. */
static enum http_fault add_line(struct http_head *head, const struct http1_header *h, bool named)
{
	struct http_field *f = http_head_push(head, h->name.p, h->name.len, h->value.p, h->value.len);
	if (!f)
		return HTTP_TOO_LARGE;
	switch (http_field_class(f->name.p, f->name.len)) {
	case FIELD_PLAIN:
		if (named)
			http_head_pop(head);
		else if (http_head_join_cookie(head) < 0)
			return HTTP_TOO_LARGE;
		break;
	case FIELD_TE:
		http_head_pop(head);
		if (takes_trailers(h) && !http_head_get(head, "te") && !http_head_push(head, "te", 2, "trailers", 8))
			return HTTP_TOO_LARGE;
		break;
	case FIELD_HOST:
	case FIELD_LENGTH:
	case FIELD_CONNECTION:
		http_head_pop(head);
		break;
	case FIELD_DISGUISED:
		return HTTP_MALFORMED;
	}
	return HTTP_FAULT_NONE;
}

static enum http_fault add_lines(struct http_head *head, struct lines l)
{
	bool names = connection_names_fields(l);
	enum http_fault fault = HTTP_FAULT_NONE;
	for (size_t i = 0; i < l.n && !fault; i++)
		fault = add_line(head, &l.p[i], names && listed(l, "Connection", l.p[i].name));
	return fault;
}

static size_t text_total(struct lines l)
{
	size_t n = 0;
	for (size_t i = 0; i < l.n; i++)
		n += l.p[i].name.len + l.p[i].value.len;
	return n;
}

static int set(struct http_head *head, struct http_text *member, struct http1_text t)
{
	return http_head_set(head, member, t.p, t.len);
}

static struct http1_text text(const char *s) { return (struct http1_text){ s, strlen(s) }; }

static enum http_fault set_place(const struct http1_request *r, const struct http_conn_config *config, struct http_head *head)
{
	struct http1_text scheme = text(config->scheme[0] ? config->scheme : "http");
	bool absolute = r->form == HTTP1_ABSOLUTE;
	struct http1_text authority = absolute ? r->authority : r->host;
	/* Absolute form says "http": inside TLS, or where no proxy is, that is another place than the one that was connected to. */
	if (r->form == HTTP1_AUTHORITY || (absolute && (!config->proxy || !http1_text_is(scheme, "http"))))
		return HTTP_MALFORMED;
	if (r->minor == 1 && !r->has_host)
		return HTTP_MALFORMED;
	if ((r->has_host || absolute) && !http_is_authority(authority.p, authority.len))
		return HTTP_MALFORMED;
	if (!http_is_target(r->path.p, r->path.len))
		return HTTP_MALFORMED;
	if (set(head, &head->scheme, scheme) < 0 || set(head, &head->authority, authority) < 0 || set(head, &head->path, r->path) < 0)
		return HTTP_TOO_LARGE;
	struct http_text host = { r->host.p, r->host.len };
	if (absolute && r->has_host && !http_authority_same(head->scheme, head->authority, host))
		return HTTP_MALFORMED;
	return HTTP_FAULT_NONE;
}

static enum http_fault set_method(const struct http1_request *r, struct http_head *head, struct http1_facts *facts)
{
	struct lines l = { r->headers, r->n_headers };
	size_t keys, versions;
	if (!r->websocket)
		return set(head, &head->method, r->method) < 0 ? HTTP_TOO_LARGE : HTTP_FAULT_NONE;
	const struct http1_header *key = find(l, "Sec-WebSocket-Key", &keys);
	const struct http1_header *version = find(l, "Sec-WebSocket-Version", &versions);
	if (keys != 1 || !websocket_key_valid(key->value.p, key->value.len) || versions != 1 || version->value.len == 0)
		return HTTP_MALFORMED;
	memcpy(facts->key, key->value.p, WEBSOCKET_KEY_LEN);
	if (set(head, &head->method, text("CONNECT")) < 0 || set(head, &head->protocol, text("websocket")) < 0)
		return HTTP_TOO_LARGE;
	return HTTP_FAULT_NONE;
}

enum http_fault http1_request_model(const struct http1_request *r, const struct http_conn_config *config, struct http_head *head,
	struct http1_facts *facts)
{
	struct lines l = { r->headers, r->n_headers };
	*facts = (struct http1_facts){ .minor = r->minor, .websocket = r->websocket, .framing = r->framing };
	facts->close = r->minor == 0 || connection_says(l, "close");
	if (http_head_reserve(head, text_total(l) + r->method.len + r->target.len + r->host.len + 32, r->n_headers) < 0)
		return HTTP_TOO_LARGE;
	enum http_fault fault = set_method(r, head, facts);
	if (!fault)
		fault = set_place(r, config, head);
	if (!fault)
		fault = add_lines(head, l);
	if (fault)
		return fault;
	head->has_length = r->framing == HTTP1_LENGTH;
	head->length = head->has_length ? r->length : 0;
	if (r->minor == 0)
		http_head_remove(head, "expect"); /* RFC 9110 10.1.1: such a client can't be told to go on */
	if (config->proxy)
		http_head_remove(head, "proxy-authorization"); /* meant for us */
	return HTTP_FAULT_NONE;
}

/* 101: is it the answer to what was asked? */
static bool switches(struct lines l, const char *key)
{
	char accept[WEBSOCKET_ACCEPT_LEN + 1];
	size_t upgrades, accepts;
	if (!key)
		return false;
	const struct http1_header *upgrade = find(l, "Upgrade", &upgrades);
	const struct http1_header *answer = find(l, "Sec-WebSocket-Accept", &accepts);
	websocket_accept(key, accept);
	return upgrades == 1 && http1_text_is(upgrade->value, "websocket") && connection_says(l, "upgrade") && accepts == 1 &&
		answer->value.len == WEBSOCKET_ACCEPT_LEN && memcmp(answer->value.p, accept, WEBSOCKET_ACCEPT_LEN) == 0;
}

enum http_fault http1_response_model(const struct http1_response *r, bool to_head, const char *key, struct http_head *head,
	struct http1_facts *facts)
{
	struct lines l = { r->headers, r->n_headers };
	bool bodiless = http_is_bodiless(r->status, to_head);
	*facts = (struct http1_facts){ .minor = r->minor, .websocket = r->status == 101 };
	/* 2xx without 101 to a request for a WebSocket would read as its acceptance in the model. */
	if (r->status == 101 ? !switches(l, key) : key && r->status / 100 == 2)
		return HTTP_MALFORMED;
	if (http_head_reserve(head, text_total(l), r->n_headers) < 0)
		return HTTP_TOO_LARGE;
	enum http_fault fault = add_lines(head, l);
	if (fault)
		return fault;
	facts->close = r->minor == 0 || connection_says(l, "close");
	if (!bodiless) {
		facts->framing = r->chunked ? HTTP1_CHUNKED : r->has_length ? HTTP1_LENGTH : HTTP1_NO_BODY;
		facts->until_close = !r->chunked && !r->has_length;
	}
	head->status = r->status == 101 ? 200 : r->status;
	head->has_length = r->has_length && r->status != 204;
	head->length = head->has_length ? r->length : 0;
	return HTTP_FAULT_NONE;
}

enum http_fault http1_trailers_model(const void *data, size_t len, struct http_head *head)
{
	struct http1_text rest = { data, len };
	while (rest.len) {
		struct http1_header h;
		if (http1_parse_header(http1_next_line(&rest), &h) < 0)
			return HTTP_MALFORMED;
		struct http_field *f = http_head_push(head, h.name.p, h.name.len, h.value.p, h.value.len);
		if (!f)
			return HTTP_TOO_LARGE;
		if (!http_trailer_allowed(f->name.p, f->name.len))
			return HTTP_MALFORMED;
	}
	return HTTP_FAULT_NONE;
}
