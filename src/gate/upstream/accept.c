/* SPDX-License-Identifier: Apache-2.0 */
#include "gate/upstream/accept.h"

#include <string.h>
#include <strings.h>

#include "base/mem.h"

#define ACCEPT_MAX 512u

static const char *const readable[] = { "gzip", "x-gzip", "deflate", "br", "zstd", "identity" };

static bool is_blank(char c) { return c == ' ' || c == '\t'; }

static bool is_readable(const char *p, size_t len)
{
	while (len && is_blank(p[len - 1]))
		len--;
	for (size_t i = 0; i < ARRAY_LEN(readable); i++)
		if (len == strlen(readable[i]) && strncasecmp(p, readable[i], len) == 0)
			return true;
	return false;
}

static void take_item(struct buf *out, const char *p, size_t len)
{
	while (len && is_blank(*p))
		p++, len--;
	while (len && is_blank(p[len - 1]))
		len--;
	const char *semicolon = len ? memchr(p, ';', len) : NULL;
	if (len && is_readable(p, semicolon ? (size_t)(semicolon - p) : len) && out->len + len + 2 <= out->max) {
		buf_append(out, ", ", out->len ? 2 : 0);
		buf_append(out, p, len);
	}
}

static void take_list(struct buf *out, struct http_text v)
{
	const char *p = v.p, *end = v.p + v.len;
	while (p < end) {
		const char *comma = memchr(p, ',', (size_t)(end - p));
		take_item(out, p, (size_t)((comma ? comma : end) - p));
		p = comma ? comma + 1 : end;
	}
}

int accept_limit(struct http_head *head)
{
	struct buf list;
	buf_init(&list, ACCEPT_MAX);
	if (!http_head_get(head, "range"))
		for (size_t i = 0; i < head->n_fields; i++)
			if (http_text_equal(head->fields[i].name, "accept-encoding"))
				take_list(&list, head->fields[i].value);
	if (!list.len)
		buf_append(&list, "identity", 8);
	int r = http_head_put(head, "accept-encoding", list.data, list.len);
	buf_free(&list);
	return r;
}
