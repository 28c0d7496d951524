/* SPDX-License-Identifier: Apache-2.0 */
#include "net/http1.h"

#include <string.h>
#include <strings.h>

#include "base/mem.h"
#include "net/http1-syntax.h"

bool http1_text_is(struct http1_text t, const char *s)
{
	return t.len == strlen(s) && strncasecmp(t.p, s, t.len) == 0;
}

int http1_head_scan(const void *data, size_t len, size_t from, size_t *ret_len, enum http1_fault *ret_fault)
{
	const uint8_t *p = data;
	size_t end = len < HTTP1_HEAD_MAX ? len : HTTP1_HEAD_MAX;
	*ret_fault = HTTP1_FAULT_MALFORMED;
	for (size_t i = from; i < end; i++) {
		if (p[i] == 0)
			return -1;
		if (p[i] != '\n')
			continue;
		if (i == 0 || p[i - 1] != '\r')
			return -1;
		if (i >= 3 && p[i - 2] == '\n') {
			*ret_fault = HTTP1_FAULT_NONE;
			*ret_len = i + 1;
			return 1;
		}
	}
	*ret_fault = len >= HTTP1_HEAD_MAX ? HTTP1_FAULT_TOO_LARGE : HTTP1_FAULT_NONE;
	return len >= HTTP1_HEAD_MAX ? -1 : 0;
}

int http1_head_find(const void *data, size_t len, size_t from, size_t *ret_len)
{
	enum http1_fault fault;
	return http1_head_scan(data, len, from, ret_len, &fault);
}

static int malformed(enum http1_fault *fault, struct err *err, const char *what)
{
	*fault = HTTP1_FAULT_MALFORMED;
	return err_set(err, ERR_INVALID, "the HTTP request is malformed: %s", what);
}

/* "http://host[:port]" + path. Userinfo, fragments and other schemes have no place in a request. */
static int split_absolute(struct http1_request *r)
{
	static const char scheme[] = "http://";
	size_t n = sizeof(scheme) - 1;
	if (r->target.len <= n || strncasecmp(r->target.p, scheme, n) != 0)
		return -1;
	struct http1_text rest = { r->target.p + n, r->target.len - n };
	size_t host = 0;
	while (host < rest.len && rest.p[host] != '/' && rest.p[host] != '?')
		host++;
	r->authority = (struct http1_text){ rest.p, host };
	r->path = (struct http1_text){ rest.p + host, rest.len - host };
	if (r->path.len == 0)
		r->path = (struct http1_text){ "/", 1 };
	return host == 0 || r->path.p[0] != '/' || memchr(rest.p, '@', host) ? -1 : 0;
}

static int parse_target(struct http1_request *r)
{
	if (memchr(r->target.p, '#', r->target.len))
		return -1;
	if (http1_text_is(r->method, "CONNECT")) {
		r->form = HTTP1_AUTHORITY;
		r->authority = r->target;
		return memchr(r->target.p, '@', r->target.len) || memchr(r->target.p, '/', r->target.len) ? -1 : 0;
	}
	r->path = r->target;
	if (r->target.p[0] == '/') {
		r->form = HTTP1_ORIGIN;
		return 0;
	}
	if (r->target.len == 1 && r->target.p[0] == '*') {
		r->form = HTTP1_ASTERISK;
		return http1_text_is(r->method, "OPTIONS") ? 0 : -1;
	}
	r->form = HTTP1_ABSOLUTE;
	return split_absolute(r);
}

static int parse_version(struct http1_text v, struct http1_request *r, enum http1_fault *fault, struct err *err)
{
	if (v.len < 5 || memcmp(v.p, "HTTP/", 5) != 0 || !http1_all(v, http1_is_visible))
		return malformed(fault, err, "the request line does not end in an HTTP version");
	if (v.len != 8 || memcmp(v.p, "HTTP/1.", 7) != 0 || (v.p[7] != '0' && v.p[7] != '1')) {
		*fault = HTTP1_FAULT_VERSION;
		return err_set(err, ERR_UNSUPPORTED, "only HTTP/1.0 and HTTP/1.1 can be judged in clear text");
	}
	r->minor = (unsigned)(v.p[7] - '0');
	return 0;
}

static int parse_request_line(struct http1_text line, struct http1_request *r, enum http1_fault *fault, struct err *err)
{
	const char *sp1 = memchr(line.p, ' ', line.len);
	const char *sp2 = sp1 ? memchr(sp1 + 1, ' ', line.len - (size_t)(sp1 + 1 - line.p)) : NULL;
	if (!sp2)
		return malformed(fault, err, "the request line needs a method, a target and a version");
	r->method = (struct http1_text){ line.p, (size_t)(sp1 - line.p) };
	r->target = (struct http1_text){ sp1 + 1, (size_t)(sp2 - sp1 - 1) };
	struct http1_text version = { sp2 + 1, line.len - (size_t)(sp2 + 1 - line.p) };
	if (r->method.len == 0 || r->method.len > HTTP1_METHOD_MAX || !http1_all(r->method, http1_is_token))
		return malformed(fault, err, "the method is not a token");
	if (r->target.len == 0 || !http1_all(r->target, http1_is_visible))
		return malformed(fault, err, "the target has bytes that do not belong there");
	if (parse_version(version, r, fault, err) < 0)
		return -1;
	return parse_target(r) < 0 ? malformed(fault, err, "the target is not a form that can be judged") : 0;
}

const char *http1_parse_headers(struct http1_text rest, struct http1_header *headers, size_t *n, enum http1_fault *fault)
{
	*fault = HTTP1_FAULT_MALFORMED;
	for (;;) {
		struct http1_text line = http1_next_line(&rest);
		if (line.len == 0)
			break;
		if (*n == HTTP1_HEADERS_MAX) {
			*fault = HTTP1_FAULT_TOO_LARGE;
			return "it has too many header lines";
		}
		if (http1_parse_header(line, &headers[*n]) < 0)
			return "a header line is not NAME:VALUE";
		++*n;
	}
	if (rest.len)
		return "bytes follow its head";
	*fault = HTTP1_FAULT_NONE;
	return NULL;
}

static int parse_headers(struct http1_text rest, struct http1_request *r, enum http1_fault *fault, struct err *err)
{
	enum http1_fault which;
	const char *what = http1_parse_headers(rest, r->headers, &r->n_headers, &which);
	if (!what)
		return 0;
	malformed(fault, err, what);
	*fault = which;
	return -1;
}

/* CGI-like servers read '_' as '-': a framing header spelt that way could be seen by one of two servers. */
static bool is_disguised(struct http1_text name)
{
	static const char *const framing[] = { "content-length", "transfer-encoding", "host", "connection", "upgrade" };
	char plain[32];
	if (name.len >= sizeof(plain) || !memchr(name.p, '_', name.len))
		return false;
	for (size_t i = 0; i < name.len; i++)
		plain[i] = name.p[i] == '_' ? '-' : name.p[i];
	for (size_t i = 0; i < ARRAY_LEN(framing); i++)
		if (http1_text_is((struct http1_text){ plain, name.len }, framing[i]))
			return true;
	return false;
}

static int parse_length(struct http1_text v, uint64_t *ret)
{
	uint64_t n = 0;
	if (v.len == 0 || v.len > 18 || !http1_all(v, http1_is_digit))
		return -1;
	for (size_t i = 0; i < v.len; i++)
		n = n * 10 + (uint64_t)(v.p[i] - '0');
	*ret = n;
	return 0;
}

static bool connection_lists(const struct http1_request *r, struct http1_text token)
{
	for (size_t i = 0; i < r->n_headers; i++)
		if (http1_text_is(r->headers[i].name, "Connection") && http1_list_has(r->headers[i].value, token))
			return true;
	return false;
}

struct framing_seen { unsigned lengths, codings, hosts, upgrades; bool websocket; };

static int look_at_header(struct http1_request *r, const struct http1_header *h, struct framing_seen *seen)
{
	if (is_disguised(h->name))
		return -1;
	if (http1_text_is(h->name, "Host")) {
		r->has_host = true;
		r->host = h->value;
		return ++seen->hosts > 1 ? -1 : 0;
	}
	if (http1_text_is(h->name, "Content-Length")) {
		r->framing = HTTP1_LENGTH;
		return ++seen->lengths > 1 ? -1 : parse_length(h->value, &r->length);
	}
	if (http1_text_is(h->name, "Transfer-Encoding")) {
		r->framing = HTTP1_CHUNKED;
		return ++seen->codings > 1 || r->minor == 0 || !http1_text_is(h->value, "chunked") ? -1 : 0;
	}
	if (http1_text_is(h->name, "Upgrade")) {
		seen->upgrades++;
		seen->websocket = http1_text_is(h->value, "websocket");
	}
	return 0;
}

static int judge_framing(struct http1_request *r, enum http1_fault *fault, struct err *err)
{
	struct framing_seen seen = { 0 };
	for (size_t i = 0; i < r->n_headers; i++)
		if (look_at_header(r, &r->headers[i], &seen) < 0)
			return malformed(fault, err, "its host or body framing is repeated or can't be read in one way only");
	if (seen.lengths && seen.codings)
		return malformed(fault, err, "it has both Content-Length and Transfer-Encoding");
	r->websocket = seen.upgrades == 1 && seen.websocket && r->minor == 1 && http1_text_is(r->method, "GET") &&
		r->framing == HTTP1_NO_BODY && connection_lists(r, (struct http1_text){ "upgrade", 7 });
	return 0;
}

int http1_request_parse(const void *data, size_t len, struct http1_request *ret, enum http1_fault *ret_fault, struct err *err)
{
	*ret_fault = HTTP1_FAULT_NONE;
	/* All but the header lines, which are most of it and written as they come. */
	memset(ret, 0, offsetof(struct http1_request, headers));
	memset((char *)ret + offsetof(struct http1_request, n_headers), 0, sizeof(*ret) - offsetof(struct http1_request, n_headers));
	struct http1_text rest = { data, len };
	size_t head;
	if (http1_head_find(data, len, 0, &head) != 1 || head != len)
		return malformed(ret_fault, err, "its head is not CRLF-terminated lines and one empty line");
	if (parse_request_line(http1_next_line(&rest), ret, ret_fault, err) < 0)
		return -1;
	return parse_headers(rest, ret, ret_fault, err) < 0 ? -1 : judge_framing(ret, ret_fault, err);
}

/* Written anew or not at all; what Connection names goes too. */
static bool is_hop_by_hop(const struct http1_request *r, struct http1_text name)
{
	static const char *const own[] = { "Host", "Connection", "Proxy-Connection", "Keep-Alive", "Proxy-Authorization", "TE",
		"Trailer", "Transfer-Encoding", "Content-Length", "Upgrade", "HTTP2-Settings" };
	for (size_t i = 0; i < ARRAY_LEN(own); i++)
		if (http1_text_is(name, own[i]))
			return true;
	return connection_lists(r, name);
}

static int put_text(struct buf *out, struct http1_text t) { return buf_append(out, t.p, t.len); }

static int put_framing(const struct http1_request *r, struct buf *out)
{
	int e = 0;
	if (r->framing == HTTP1_LENGTH)
		e |= buf_printf(out, "Content-Length: %llu\r\n", (unsigned long long)r->length);
	else if (r->framing == HTTP1_CHUNKED)
		e |= buf_printf(out, "Transfer-Encoding: chunked\r\n");
	if (r->websocket)
		e |= buf_printf(out, "Connection: Upgrade\r\nUpgrade: websocket\r\n\r\n");
	else
		e |= buf_printf(out, "Connection: close\r\n\r\n");
	return e;
}

int http1_request_serialise(const struct http1_request *r, const char *host, struct buf *out)
{
	int e = put_text(out, r->method);
	e |= buf_append(out, " ", 1);
	e |= put_text(out, r->path);
	e |= buf_printf(out, " HTTP/1.%u\r\nHost: %s\r\n", r->minor, host);
	for (size_t i = 0; i < r->n_headers; i++) {
		const struct http1_header *h = &r->headers[i];
		if (is_hop_by_hop(r, h->name))
			continue;
		e |= put_text(out, h->name);
		e |= buf_append(out, ": ", 2);
		e |= put_text(out, h->value);
		e |= buf_append(out, "\r\n", 2);
	}
	return e | put_framing(r, out) ? -1 : 0;
}

/* ---- responses ---- */

enum { WATCH_MAX = 64 * 1024 };

/* "HTTP/1.1 101": what is known when a head ended. */
static enum http1_upgrade status_result(const struct http1_watch *w)
{
	const char *s = w->status;
	if (w->n_status < 12 || memcmp(s, "HTTP/1.1 ", 9) != 0 || s[9] != '1')
		return HTTP1_UPGRADE_NO;
	return memcmp(s + 9, "101", 3) == 0 ? HTTP1_UPGRADE_YES : HTTP1_UPGRADE_WAITING;
}

static void watch_line_end(struct http1_watch *w)
{
	bool empty = w->in_headers && w->n_line == 0;
	w->in_headers = true;
	w->n_line = 0;
	if (!empty)
		return;
	w->result = status_result(w);
	w->in_headers = false;
	w->n_status = 0;
}

enum http1_upgrade http1_watch_feed(struct http1_watch *w, const void *data, size_t len)
{
	const char *p = data;
	for (size_t i = 0; i < len && w->result == HTTP1_UPGRADE_WAITING; i++) {
		if (++w->n_total > WATCH_MAX)
			w->result = HTTP1_UPGRADE_NO;
		else if (p[i] == '\n')
			watch_line_end(w);
		else if (p[i] != '\r')
			w->n_line++;
		if (!w->in_headers && p[i] != '\n' && w->n_status < sizeof(w->status))
			w->status[w->n_status++] = p[i];
	}
	return w->result;
}
