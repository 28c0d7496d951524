/* SPDX-License-Identifier: Apache-2.0 */
#include "net/http1.h"

#include <string.h>
#include <strings.h>

#include "base/mem.h"

static bool is_digit(uint8_t c) { return c >= '0' && c <= '9'; }
static bool is_alpha(uint8_t c) { return (c | 0x20) >= 'a' && (c | 0x20) <= 'z'; }
static bool is_token(uint8_t c) { return is_digit(c) || is_alpha(c) || (c && strchr("!#$%&'*+-.^_`|~", c)); }
static bool is_value(uint8_t c) { return c == '\t' || (c >= 0x20 && c != 0x7f); }
static bool is_visible(uint8_t c) { return c > 0x20 && c < 0x7f; }

bool http1_text_is(struct http1_text t, const char *s)
{
	return t.len == strlen(s) && strncasecmp(t.p, s, t.len) == 0;
}

static bool all(struct http1_text t, bool (*ok)(uint8_t))
{
	for (size_t i = 0; i < t.len; i++)
		if (!ok((uint8_t)t.p[i]))
			return false;
	return true;
}

static struct http1_text trim(struct http1_text t)
{
	while (t.len && (t.p[0] == ' ' || t.p[0] == '\t'))
		t.p++, t.len--;
	while (t.len && (t.p[t.len - 1] == ' ' || t.p[t.len - 1] == '\t'))
		t.len--;
	return t;
}

int http1_head_find(const void *data, size_t len, size_t from, size_t *ret_len)
{
	const uint8_t *p = data;
	size_t end = len < HTTP1_HEAD_MAX ? len : HTTP1_HEAD_MAX;
	for (size_t i = from; i < end; i++) {
		if (p[i] == 0)
			return -1;
		if (p[i] != '\n')
			continue;
		if (i == 0 || p[i - 1] != '\r')
			return -1;
		if (i >= 3 && p[i - 2] == '\n') {
			*ret_len = i + 1;
			return 1;
		}
	}
	return len >= HTTP1_HEAD_MAX ? -1 : 0;
}

/* The next line without its CRLF; the caller's data ends with one. A CR anywhere else is refused by the character checks of the
 * parts. */
static struct http1_text next_line(struct http1_text *rest)
{
	const char *lf = memchr(rest->p, '\n', rest->len);
	size_t whole = lf ? (size_t)(lf - rest->p) + 1 : rest->len;
	struct http1_text line = { rest->p, whole >= 2 ? whole - 2 : 0 };
	rest->p += whole;
	rest->len -= whole;
	return line;
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
	if (v.len < 5 || memcmp(v.p, "HTTP/", 5) != 0 || !all(v, is_visible))
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
	if (r->method.len == 0 || r->method.len > HTTP1_METHOD_MAX || !all(r->method, is_token))
		return malformed(fault, err, "the method is not a token");
	if (r->target.len == 0 || !all(r->target, is_visible))
		return malformed(fault, err, "the target has bytes that do not belong there");
	if (parse_version(version, r, fault, err) < 0)
		return -1;
	return parse_target(r) < 0 ? malformed(fault, err, "the target is not a form that can be judged") : 0;
}

static int parse_header(struct http1_text line, struct http1_header *ret)
{
	const char *colon = memchr(line.p, ':', line.len);
	if (!colon)
		return -1;
	ret->name = (struct http1_text){ line.p, (size_t)(colon - line.p) };
	ret->value = trim((struct http1_text){ colon + 1, line.len - ret->name.len - 1 });
	return ret->name.len && all(ret->name, is_token) && all(ret->value, is_value) ? 0 : -1;
}

static int parse_headers(struct http1_text rest, struct http1_request *r, enum http1_fault *fault, struct err *err)
{
	for (;;) {
		struct http1_text line = next_line(&rest);
		if (line.len == 0)
			break;
		if (r->n_headers == HTTP1_HEADERS_MAX)
			return malformed(fault, err, "it has too many header lines");
		if (parse_header(line, &r->headers[r->n_headers]) < 0)
			return malformed(fault, err, "a header line is not NAME:VALUE");
		r->n_headers++;
	}
	return rest.len ? malformed(fault, err, "bytes follow its head") : 0;
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
	if (v.len == 0 || v.len > 18 || !all(v, is_digit))
		return -1;
	for (size_t i = 0; i < v.len; i++)
		n = n * 10 + (uint64_t)(v.p[i] - '0');
	*ret = n;
	return 0;
}

/* One comma-separated list has the token? */
static bool list_has(struct http1_text list, struct http1_text token)
{
	while (list.len) {
		const char *comma = memchr(list.p, ',', list.len);
		size_t n = comma ? (size_t)(comma - list.p) : list.len;
		struct http1_text item = trim((struct http1_text){ list.p, n });
		if (item.len == token.len && strncasecmp(item.p, token.p, token.len) == 0)
			return true;
		n += comma != NULL;
		list.p += n;
		list.len -= n;
	}
	return false;
}

static bool connection_lists(const struct http1_request *r, struct http1_text token)
{
	for (size_t i = 0; i < r->n_headers; i++)
		if (http1_text_is(r->headers[i].name, "Connection") && list_has(r->headers[i].value, token))
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
	struct http1_request r = { 0 };
	struct http1_text rest = { data, len };
	size_t head;
	if (http1_head_find(data, len, 0, &head) != 1 || head != len)
		return malformed(ret_fault, err, "its head is not CRLF-terminated lines and one empty line");
	if (parse_request_line(next_line(&rest), &r, ret_fault, err) < 0)
		return -1;
	if (parse_headers(rest, &r, ret_fault, err) < 0 || judge_framing(&r, ret_fault, err) < 0)
		return -1;
	*ret = r;
	return 0;
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

/* ---- bodies ---- */

enum chunk_state { CHUNK_SIZE, CHUNK_SIZE_LF, CHUNK_DATA, CHUNK_DATA_CR, CHUNK_DATA_LF, CHUNK_TRAILER, CHUNK_TRAILER_LF };

void http1_body_init(struct http1_body *b, const struct http1_request *r)
{
	*b = (struct http1_body){ .framing = r->framing, .left = r->framing == HTTP1_LENGTH ? r->length : 0 };
	b->done = b->framing != HTTP1_CHUNKED && b->left == 0;
}

static int hex_value(uint8_t c)
{
	if (is_digit(c))
		return c - '0';
	uint8_t l = c | 0x20;
	return l >= 'a' && l <= 'f' ? l - 'a' + 10 : -1;
}

static int chunk_size_byte(struct http1_body *b, uint8_t c)
{
	int v = hex_value(c);
	if (v >= 0 && b->digits < 15) { /* 60 bits: can't overflow */
		b->left = b->left << 4 | (uint64_t)v;
		b->digits++;
		return 0;
	}
	if (c != '\r' || b->digits == 0)
		return -1;
	b->state = CHUNK_SIZE_LF;
	return 0;
}

/* Trailers are only checked: NAME:VALUE lines up to an empty one. */
static int trailer_byte(struct http1_body *b, uint8_t c)
{
	if (++b->trailer > HTTP1_TRAILER_MAX)
		return -1;
	if (c == '\r') {
		b->state = CHUNK_TRAILER_LF;
		return b->line && !b->colon ? -1 : 0;
	}
	if (!b->colon && c == ':')
		b->colon = b->line > 0;
	else if (!(b->colon ? is_value(c) : is_token(c)))
		return -1;
	b->line++;
	return b->line == 1 && c == ':' ? -1 : 0;
}

static int trailer_end(struct http1_body *b, struct buf *out)
{
	b->done = b->line == 0;
	b->line = 0;
	b->colon = false;
	b->state = CHUNK_TRAILER;
	return b->done ? buf_append(out, "0\r\n\r\n", 5) : 0;
}

static int chunk_byte(struct http1_body *b, uint8_t c, struct buf *out)
{
	switch ((enum chunk_state)b->state) {
	case CHUNK_SIZE:
		return chunk_size_byte(b, c);
	case CHUNK_SIZE_LF:
		b->state = b->left ? CHUNK_DATA : CHUNK_TRAILER;
		b->digits = 0;
		return c == '\n' ? 0 : -1;
	case CHUNK_DATA_CR:
		b->state = CHUNK_DATA_LF;
		return c == '\r' ? 0 : -1;
	case CHUNK_DATA_LF:
		b->state = CHUNK_SIZE;
		return c == '\n' ? 0 : -1;
	case CHUNK_TRAILER:
		return trailer_byte(b, c);
	case CHUNK_TRAILER_LF:
		return c == '\n' ? trailer_end(b, out) : -1;
	case CHUNK_DATA:
		break;
	}
	return -1;
}

static int feed_chunked(struct http1_body *b, const uint8_t *p, size_t len, size_t *used, struct buf *out)
{
	while (*used < len && !b->done) {
		if (b->state != CHUNK_DATA) {
			if (chunk_byte(b, p[(*used)++], out) < 0)
				return -1;
			continue;
		}
		size_t n = len - *used < b->left ? len - *used : (size_t)b->left;
		if (buf_printf(out, "%zx\r\n", n) < 0 || buf_append(out, p + *used, n) < 0 || buf_append(out, "\r\n", 2) < 0)
			return -1;
		*used += n;
		b->left -= n;
		if (b->left == 0)
			b->state = CHUNK_DATA_CR;
	}
	return 0;
}

static int feed_length(struct http1_body *b, const uint8_t *p, size_t len, size_t *used, struct buf *out)
{
	size_t n = len < b->left ? len : (size_t)b->left;
	if (n && buf_append(out, p, n) < 0)
		return -1;
	b->left -= n;
	b->done = b->left == 0;
	*used = n;
	return 0;
}

int http1_body_feed(struct http1_body *b, const void *data, size_t len, size_t *ret_used, struct buf *out)
{
	size_t used = 0;
	int r = 0;
	if (!b->done)
		r = b->framing == HTTP1_CHUNKED ? feed_chunked(b, data, len, &used, out) :
			feed_length(b, data, len, &used, out);
	*ret_used = used;
	return r;
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
