/* SPDX-License-Identifier: Apache-2.0 */
#include "program/bulkhead/show.h"

#include <string.h>

#include "base/mem.h"
#include "base/text.h"

#define ESCAPED_BYTE 4u /* \xNN */

/* A buffer that is full stays as it is: what people read may be cut, the record is not. */
void show_text(struct buf *b, const char *s, size_t len)
{
	size_t room = b->max - b->len;
	size_t want = len < (room / ESCAPED_BYTE) ? len * ESCAPED_BYTE + 1 : room;
	char *out = want > 0 ? buf_reserve(b, want) : NULL;
	if (!out)
		return;
	text_escape(s, len, out, want);
	buf_commit(b, strlen(out));
}

static bool is_plain(const char *s, size_t len)
{
	static const char plain[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_@%+=:,./-";
	for (size_t i = 0; i < len; i++)
		if (!s[i] || (!strchr(plain, s[i]) && !(s[i] & 0x80)))
			return false;
	return len > 0 && text_is_utf8(s, len);
}

void show_word(struct buf *b, const char *s, size_t len)
{
	bool plain = is_plain(s, len);
	if (!plain)
		buf_append(b, "'", 1);
	show_text(b, s, len);
	if (!plain)
		buf_append(b, "'", 1);
}

void show_words(struct buf *b, char *const *words)
{
	for (size_t i = 0; words && words[i]; i++) {
		if (i > 0)
			buf_append(b, " ", 1);
		show_word(b, words[i], strlen(words[i]));
	}
}

static bool begins_char(char c)
{
	return ((unsigned char)c & 0xc0) != 0x80;
}

size_t show_width(const char *s, size_t len)
{
	size_t n = 0;
	for (size_t i = 0; i < len; i++)
		n += begins_char(s[i]);
	return n;
}

void show_cut(struct buf *b, size_t columns)
{
	size_t seen = 0, at = 0;
	if (columns == 0 || show_width((const char *)b->data, b->len) <= columns)
		return;
	for (at = 0; at < b->len; at++)
		if (begins_char((char)b->data[at]) && seen++ == columns - 1)
			break;
	b->len = at;
	buf_append(b, "…", strlen("…"));
}
