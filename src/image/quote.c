/* SPDX-License-Identifier: Apache-2.0 */
#include "image/changes.h"

#include <stdio.h>
#include <string.h>

#include "base/mem.h"

static bool needs_quotes(const char *s)
{
	for (; *s; s++) {
		unsigned char c = (unsigned char)*s;
		if (c < 0x20 || c >= 0x7f || c == '"' || c == '\\')
			return true;
	}
	return false;
}

static char *quote_byte(char *out, unsigned char c)
{
	static const char plain[] = "abtnvfr"; /* \a is 7, \r is 13 */
	if (c == '"' || c == '\\' || (c >= 7 && c <= 13)) {
		*out++ = '\\';
		*out++ = c >= 7 && c <= 13 ? plain[c - 7] : (char)c;
		return out;
	}
	if (c >= 0x20 && c < 0x7f) {
		*out++ = (char)c;
		return out;
	}
	return out + sprintf(out, "\\%03o", c);
}

char *change_path_quote(const char *prefix, const char *path)
{
	if (!needs_quotes(path))
		return mem_printf("%s%s", prefix, path);
	char *quoted = mem_alloc(strlen(prefix) + 4 * strlen(path) + 3);
	char *out = quoted;
	*out++ = '"';
	out = stpcpy(out, prefix);
	for (const char *p = path; *p; p++)
		out = quote_byte(out, (unsigned char)*p);
	strcpy(out, "\"");
	return quoted;
}
