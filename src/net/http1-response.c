/* SPDX-License-Identifier: Apache-2.0 */
#include "net/http1-model.h"

#include "net/http-rules.h"
#include "net/http1-syntax.h"

/* "HTTP/1.x NNN[ reason]". The reason is nobody's business. */
static enum http1_fault parse_status_line(struct http1_text line, struct http1_response *r)
{
	if (line.len < 7 || memcmp(line.p, "HTTP/", 5) != 0)
		return line.len >= 4 && memcmp(line.p, "ICY ", 4) == 0 ? HTTP1_FAULT_VERSION : HTTP1_FAULT_MALFORMED;
	if (memcmp(line.p, "HTTP/1.", 7) != 0)
		return HTTP1_FAULT_VERSION;
	if (line.len < 12 || line.p[8] != ' ')
		return HTTP1_FAULT_MALFORMED;
	if (line.p[7] != '0' && line.p[7] != '1')
		return HTTP1_FAULT_VERSION;
	r->minor = (unsigned)(line.p[7] - '0');
	for (size_t i = 9; i < 12; i++) {
		if (!http1_is_digit((uint8_t)line.p[i]))
			return HTTP1_FAULT_MALFORMED;
		r->status = r->status * 10 + (unsigned)(line.p[i] - '0');
	}
	struct http1_text reason = { line.p + 12, line.len - 12 };
	bool ok = r->status >= 100 && r->status <= 599 && (reason.len == 0 || reason.p[0] == ' ') && http1_all(reason, http1_is_value);
	return ok ? HTTP1_FAULT_NONE : HTTP1_FAULT_MALFORMED;
}

static int look_at_header(struct http1_response *r, const struct http1_header *h)
{
	if (http1_text_is(h->name, "Content-Length")) {
		bool first = !r->has_length;
		r->has_length = true;
		return first ? http_length_parse(h->value.p, h->value.len, &r->length) : -1;
	}
	if (http1_text_is(h->name, "Transfer-Encoding")) {
		bool first = !r->chunked;
		r->chunked = true;
		return first && r->minor == 1 && http1_text_is(h->value, "chunked") ? 0 : -1;
	}
	return 0;
}

enum http1_fault http1_response_parse(const void *data, size_t len, struct http1_response *ret)
{
	ret->minor = ret->status = 0;
	ret->n_headers = 0;
	ret->has_length = ret->chunked = false;
	struct http1_text rest = { data, len };
	enum http1_fault fault = parse_status_line(http1_next_line(&rest), ret);
	if (fault || http1_parse_headers(rest, ret->headers, &ret->n_headers, &fault))
		return fault;
	for (size_t i = 0; i < ret->n_headers; i++)
		if (look_at_header(ret, &ret->headers[i]) < 0)
			return HTTP1_FAULT_MALFORMED;
	bool conflict = ret->has_length && ret->chunked;
	bool interim = ret->status < 200 && (ret->has_length || ret->chunked);
	bool empty = ret->status == 204 && (ret->chunked || (ret->has_length && ret->length > 0));
	return conflict || interim || empty ? HTTP1_FAULT_MALFORMED : HTTP1_FAULT_NONE;
}
