/* SPDX-License-Identifier: Apache-2.0 */
#include "net/http1-conn.h"

#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "base/mem.h"

#define LINES_MAX 320u /* of our own lines of a head, beside its fields */

/* A head is written into room that was measured before: no growing, no half head. */
struct pen { char *at; };

static void put(struct pen *pen, const char *p, size_t len)
{
	memcpy(pen->at, p, len);
	pen->at += len;
}

static void put_str(struct pen *pen, const char *s) { put(pen, s, strlen(s)); }
static void put_text(struct pen *pen, struct http_text t) { put(pen, t.p, t.len); }

/* As people write it: "Content-Type". There are programs that look for it so. */
static void put_name(struct pen *pen, struct http_text t)
{
	static const char *const own[] = { "TE", "ETag", "WWW-Authenticate", "Sec-WebSocket-" }; /* the last: and what follows */
	bool start = true;
	size_t i = 0;
	for (size_t k = 0; k < ARRAY_LEN(own) && i == 0; k++) {
		size_t n = strlen(own[k]);
		if ((t.len == n || (t.len > n && own[k][n - 1] == '-')) && strncasecmp(t.p, own[k], n) == 0)
			put(pen, own[k], i = n);
	}
	for (; i < t.len; i++) {
		char c = t.p[i];
		*pen->at++ = start && c >= 'a' && c <= 'z' ? (char)(c - 0x20) : c;
		start = c == '-';
	}
}

static void put_line(struct pen *pen, struct http_text name, struct http_text value)
{
	put_name(pen, name);
	put(pen, ": ", 2);
	put_text(pen, value);
	put(pen, "\r\n", 2);
}

static void put_fields(struct pen *pen, const struct http_head *head, const struct http1_heading *how)
{
	for (size_t i = 0; i < head->n_fields; i++) {
		const struct http_field *f = &head->fields[i];
		/* The two of the handshake are this connection's own. */
		if (how->key && (http_text_equal(f->name, "sec-websocket-key") || http_text_equal(f->name, "sec-websocket-accept")))
			continue;
		put_line(pen, f->name, f->value);
	}
}

static void put_length(struct pen *pen, uint64_t n)
{
	char line[48];
	snprintf(line, sizeof(line), "Content-Length: %llu\r\n", (unsigned long long)n);
	put_str(pen, line);
}

static void put_framing(struct pen *pen, const struct http_head *head, const struct http1_heading *how)
{
	bool te = http_head_get(head, "te") != NULL, upgrade = how->framing == OUT_WAIT || how->framing == OUT_RAW;
	if (how->framing == OUT_CHUNKED)
		put_str(pen, "Transfer-Encoding: chunked\r\n");
	else if (head->has_length && head->status != 204 && !upgrade)
		put_length(pen, head->length);
	else if (how->framing == OUT_NONE && how->zero)
		put_length(pen, 0);
	if (upgrade)
		put_str(pen, "Connection: Upgrade\r\nUpgrade: websocket\r\n");
	else if (te || how->close)
		put_str(pen, te && how->close ? "Connection: TE, close\r\n" : te ? "Connection: TE\r\n" : "Connection: close\r\n");
	put(pen, "\r\n", 2);
}

static size_t measure(const struct http_head *head)
{
	return head->live + head->n_fields * 4 + LINES_MAX;
}

/* Room for a head, straight in the queue. */
static bool begin(struct http_queue *q, const struct http_head *head, struct pen *pen)
{
	pen->at = http_queue_reserve(q, measure(head));
	q->wipe = true;
	return pen->at != NULL;
}

static int finish(struct http_queue *q, const struct pen *pen)
{
	buf_commit(&q->buf, (size_t)(pen->at - (char *)q->buf.data) - q->buf.len);
	return 0;
}

int http1_write_request(struct http_queue *q, const struct http_head *head, const struct http1_heading *how)
{
	struct pen pen;
	if (!begin(q, head, &pen))
		return -1;
	if (how->key)
		put_str(&pen, "GET");
	else
		put_text(&pen, head->method);
	put(&pen, " ", 1);
	put_text(&pen, head->path);
	put_str(&pen, " HTTP/1.1\r\nHost: ");
	put_text(&pen, head->authority);
	put(&pen, "\r\n", 2);
	put_fields(&pen, head, how);
	if (how->key)
		put_line(&pen, (struct http_text){ "sec-websocket-key", 17 }, (struct http_text){ how->key, WEBSOCKET_KEY_LEN });
	put_framing(&pen, head, how);
	return finish(q, &pen);
}

static const char *reason(unsigned status)
{
	static const struct { unsigned status; const char *text; } reasons[] = {
		{ 100, "Continue" }, { 101, "Switching Protocols" }, { 102, "Processing" }, { 103, "Early Hints" }, { 200, "OK" },
		{ 201, "Created" }, { 202, "Accepted" }, { 204, "No Content" }, { 206, "Partial Content" }, { 301, "Moved Permanently" },
		{ 302, "Found" }, { 303, "See Other" }, { 304, "Not Modified" }, { 307, "Temporary Redirect" },
		{ 308, "Permanent Redirect" }, { 400, "Bad Request" }, { 401, "Unauthorized" }, { 403, "Forbidden" },
		{ 404, "Not Found" }, { 405, "Method Not Allowed" }, { 408, "Request Timeout" }, { 409, "Conflict" }, { 410, "Gone" },
		{ 411, "Length Required" }, { 412, "Precondition Failed" }, { 413, "Content Too Large" }, { 414, "URI Too Long" },
		{ 415, "Unsupported Media Type" }, { 416, "Range Not Satisfiable" }, { 417, "Expectation Failed" },
		{ 421, "Misdirected Request" }, { 422, "Unprocessable Content" }, { 426, "Upgrade Required" }, { 429, "Too Many Requests" },
		{ 431, "Request Header Fields Too Large" }, { 500, "Internal Server Error" }, { 501, "Not Implemented" },
		{ 502, "Bad Gateway" }, { 503, "Service Unavailable" }, { 504, "Gateway Timeout" }, { 505, "HTTP Version Not Supported" },
	};
	for (size_t i = 0; i < ARRAY_LEN(reasons); i++)
		if (reasons[i].status == status)
			return reasons[i].text;
	return "";
}

int http1_write_response(struct http_queue *q, const struct http_head *head, const struct http1_heading *how)
{
	struct pen pen;
	if (!begin(q, head, &pen))
		return -1;
	unsigned status = how->framing == OUT_RAW ? 101 : head->status;
	pen.at += sprintf(pen.at, "HTTP/1.1 %u %s\r\n", status, reason(status));
	put_fields(&pen, head, how);
	if (how->key) {
		char accept[WEBSOCKET_ACCEPT_LEN + 1];
		websocket_accept(how->key, accept);
		put_line(&pen, (struct http_text){ "sec-websocket-accept", 20 }, (struct http_text){ accept, WEBSOCKET_ACCEPT_LEN });
	}
	if (head->status < 200)
		put(&pen, "\r\n", 2);
	else
		put_framing(&pen, head, how);
	return finish(q, &pen);
}

int http1_write_trailers(struct http_queue *q, const struct http_head *trailers)
{
	if (!trailers)
		return http_queue_add(q, "0\r\n\r\n", 5);
	struct pen pen;
	if (!begin(q, trailers, &pen))
		return -1;
	put(&pen, "0\r\n", 3);
	for (size_t i = 0; i < trailers->n_fields; i++)
		put_line(&pen, trailers->fields[i].name, trailers->fields[i].value);
	put(&pen, "\r\n", 2);
	return finish(q, &pen);
}
