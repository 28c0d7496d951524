/* SPDX-License-Identifier: Apache-2.0 */
#include "gate/inspect.h"

#include <ctype.h>
#include <string.h>
#include <strings.h>

#include "base/mem.h"

static enum inspect_result refuse(struct inspection *out, enum reason reason)
{
	out->reason = reason;
	return INSPECT_REFUSE;
}

/* ---- is it HTTP? ---- */

enum guess {
	GUESS_NO,       /* no server could read a request in this */
	GUESS_OPEN,     /* can't be said yet */
	GUESS_HTTP,
	GUESS_HTTP_OFF, /* a request in all but form: white space in front of it */
	GUESS_OLD,      /* HTTP/0.9 */
	GUESS_H2,       /* the preface of cleartext HTTP/2 */
};

static bool is_blank(uint8_t c) { return c == ' ' || c == '\t' || c == '\r' || c == '\n'; }

static bool is_token(uint8_t c)
{
	return (c >= '0' && c <= '9') || ((c | 0x20) >= 'a' && (c | 0x20) <= 'z') || (c && strchr("!#$%&'*+-.^_`|~", c));
}

static bool starts_with_method(const uint8_t *p, size_t len)
{
	static const char *const methods[] = { "GET", "HEAD", "POST", "PUT", "DELETE", "OPTIONS", "PATCH", "TRACE", "CONNECT",
		"PRI", "PROPFIND", "PROPPATCH", "MKCOL", "COPY", "MOVE", "LOCK", "UNLOCK", "SEARCH", "REPORT", "QUERY" };
	for (size_t i = 0; i < ARRAY_LEN(methods); i++) {
		size_t n = strlen(methods[i]);
		if (len > n && memcmp(p, methods[i], n) == 0 && (p[n] == ' ' || p[n] == '\t'))
			return true;
	}
	return false;
}

/* "HTTP/" in any case and not the beginning of a URL: "HTTP/1.1", "http/2.0". */
static bool has_version(const uint8_t *p, size_t len)
{
	for (size_t i = 0; i + 5 < len; i++)
		if (strncasecmp((const char *)p + i, "HTTP/", 5) == 0 && p[i + 5] != '/')
			return true;
	return false;
}

/*
 * Can no server of any dialect read a request line here, whatever follows? Bytes of a first word that is no method; or a NUL
 * behind a word that is none of the methods. The answer for a line holds for every longer one: what was called raw once must
 * never turn out to be HTTP.
 */
static bool is_hopeless(const uint8_t *line, size_t len)
{
	size_t word = 0;
	while (word < len && !isspace(line[word])) {
		if (line[word] < 0x20 || line[word] >= 0x7f)
			return true;
		word++;
	}
	return memchr(line, 0, len) && !starts_with_method(line, len);
}

static enum guess guess_line(const uint8_t *line, size_t len, bool shifted)
{
	if (has_version(line, len) && shifted)
		return GUESS_HTTP_OFF;
	if (has_version(line, len))
		return len >= 14 && memcmp(line, "PRI * HTTP/2.0", 14) == 0 ? GUESS_H2 : GUESS_HTTP;
	bool simple = (len >= 5 && memcmp(line, "GET /", 5) == 0) ||
		(len >= 9 && strncasecmp((const char *)line, "GET http:", 9) == 0);
	return simple ? GUESS_OLD : GUESS_NO;
}

/* The first line that isn't empty decides; before its end, only bytes that make a request impossible do. */
static enum guess guess_http(const uint8_t *p, size_t len, bool eof)
{
	size_t start = 0;
	while (start < len && is_blank(p[start]))
		start++;
	const uint8_t *line = p + start;
	size_t left = len - start;
	if (left == 0)
		return eof || len >= HTTP1_HEAD_MAX ? GUESS_NO : GUESS_OPEN;
	if (!is_token(line[0]))
		return GUESS_NO;
	const uint8_t *lf = memchr(line, '\n', left);
	size_t line_len = lf ? (size_t)(lf - line) : left;
	if (is_hopeless(line, line_len))
		return GUESS_NO;
	if (lf || eof)
		return guess_line(line, line_len, start > 0);
	if (len >= HTTP1_HEAD_MAX)
		return memchr(line, ' ', left) ? GUESS_HTTP : GUESS_NO;
	return GUESS_OPEN;
}

bool inspect_wants_http(const void *data, size_t len)
{
	const uint8_t *p = data;
	enum guess guess = guess_http(p, len, true);
	return starts_with_method(p, len) || guess == GUESS_HTTP || guess == GUESS_HTTP_OFF;
}

/* ---- deciding ---- */

static enum inspect_result inspect_http(const uint8_t *p, size_t len, bool eof, struct inspection *out)
{
	int found = http1_head_find(p, len, 0, &out->head_len);
	if (found == 0 && !eof)
		return INSPECT_MORE;
	enum http1_fault fault;
	if (found != 1 || http1_request_parse(p, out->head_len, &out->request, &fault, NULL) == 0)
		return found == 1 ? INSPECT_HTTP : refuse(out, REASON_HTTP_MALFORMED);
	return refuse(out, fault == HTTP1_FAULT_VERSION ? REASON_HTTP_VERSION : REASON_HTTP_MALFORMED);
}

static enum inspect_result inspect_text(const uint8_t *p, size_t len, bool eof, uint16_t port, struct inspection *out)
{
	switch (guess_http(p, len, eof)) {
	case GUESS_OPEN:
		return INSPECT_MORE;
	case GUESS_HTTP:
		return inspect_http(p, len, eof, out);
	case GUESS_HTTP_OFF:
		return refuse(out, REASON_HTTP_MALFORMED);
	case GUESS_OLD:
	case GUESS_H2:
		return refuse(out, REASON_HTTP_VERSION);
	case GUESS_NO:
		break;
	}
	return port == INSPECT_PORT_HTTP ? refuse(out, REASON_PROTOCOL_MISMATCH) : INSPECT_RAW;
}

enum inspect_result inspect_first_bytes(const void *data, size_t len, bool eof, uint16_t port, struct inspection *ret)
{
	ret->reason = REASON_NONE;
	if (len == 0)
		return eof && port != INSPECT_PORT_HTTP && port != INSPECT_PORT_HTTPS ? INSPECT_RAW :
			eof ? refuse(ret, REASON_PROTOCOL_MISMATCH) : INSPECT_MORE;
	size_t need;
	enum tls_hello_result tls = tls_hello_parse(data, len, &ret->hello, &need);
	if (tls != TLS_HELLO_NOT_TLS && port == INSPECT_PORT_HTTP)
		return refuse(ret, REASON_PROTOCOL_MISMATCH);
	switch (tls) {
	case TLS_HELLO_COMPLETE:
		return INSPECT_TLS;
	case TLS_HELLO_MORE:
		/* One byte 0x16 alone can still be anybody's; cut off later it is a broken hello. */
		if (!eof)
			return INSPECT_MORE;
		return len < 2 && port != INSPECT_PORT_HTTPS ? INSPECT_RAW : refuse(ret, REASON_TLS_MALFORMED);
	case TLS_HELLO_MALFORMED:
		return refuse(ret, REASON_TLS_MALFORMED);
	case TLS_HELLO_NOT_TLS:
		break;
	}
	if (port == INSPECT_PORT_HTTPS)
		return refuse(ret, REASON_PROTOCOL_MISMATCH);
	return inspect_text(data, len, eof, port, ret);
}
