/* SPDX-License-Identifier: Apache-2.0 */
/* Patterns. Never more than pattern × text steps for each star that is open: the last star alone has to be tried again. */
#include <string.h>

#include "base/mem.h"
#include "policy/path.h"

#define PATTERN_MAX 1024u

bool text_glob_match(const char *pattern, const char *text, size_t len)
{
	const char *star = NULL;
	size_t i = 0, mark = 0;
	while (i < len) {
		if (*pattern == '*') {
			star = ++pattern;
			mark = i;
		} else if (*pattern && *pattern == text[i]) {
			pattern++;
			i++;
		} else if (star) {
			pattern = star;
			i = ++mark;
		} else {
			return false;
		}
	}
	return pattern[strspn(pattern, "*")] == '\0';
}

/* ---- paths: segments of units, a unit being a byte or its encoding ---- */

struct span { const char *p, *end; };

static bool is_star(const struct span *s)
{
	return s->p < s->end && *s->p == '*';
}

static int take_unit(struct span *s)
{
	int high = *s->p == '%' && s->end - s->p > 2 ? path_hex(s->p[1]) : -1, low = high >= 0 ? path_hex(s->p[2]) : -1;
	if (low < 0)
		return (unsigned char)*s->p++;
	s->p += 3;
	return high << 4 | low;
}

static bool segment_match(struct span pattern, struct span text)
{
	struct span star = { 0 }, mark = { 0 };
	bool open = false;
	/* A segment that is nothing (behind a slash at the end) is not something that "*" stands for. */
	if (pattern.p < pattern.end && text.p == text.end)
		return false;
	while (text.p < text.end) {
		struct span p = pattern, t = text;
		if (is_star(&pattern)) {
			pattern.p++;
			star = pattern;
			mark = text;
			open = true;
		} else if (p.p < p.end && take_unit(&p) == take_unit(&t)) {
			pattern = p;
			text = t;
		} else if (open) {
			take_unit(&mark);
			pattern = star;
			text = mark;
		} else {
			return false;
		}
	}
	while (is_star(&pattern))
		pattern.p++;
	return pattern.p == pattern.end;
}

/* The segment that begins at s; `end` is that of the whole. */
static struct span segment_at(const char *s, const char *end)
{
	const char *slash = memchr(s, '/', (size_t)(end - s));
	return (struct span){ s, slash ? slash : end };
}

static bool is_any(struct span s)
{
	return s.end - s.p == 2 && s.p[0] == '*' && s.p[1] == '*';
}

/* Behind this segment: the start of the next one, or NULL when it was the last. */
static const char *behind(struct span s, const char *end)
{
	return s.end < end ? s.end + 1 : NULL;
}

/* Both begin behind the first slash; NULL: no segment left. */
static bool segments_match(const char *pattern, const char *pattern_end, const char *path, const char *path_end)
{
	const char *star = NULL, *mark = NULL;
	bool open = false;
	while (path) {
		struct span s = segment_at(path, path_end);
		struct span p = pattern ? segment_at(pattern, pattern_end) : (struct span){ 0 };
		if (pattern && is_any(p)) {
			star = pattern = behind(p, pattern_end);
			mark = path;
			open = true;
			if (!star)
				return true;
		} else if (pattern && segment_match(p, s)) {
			pattern = behind(p, pattern_end);
			path = behind(s, path_end);
		} else if (open) {
			path = mark = behind(segment_at(mark, path_end), path_end);
			pattern = star;
		} else {
			return false;
		}
	}
	while (pattern && is_any(segment_at(pattern, pattern_end)))
		pattern = behind(segment_at(pattern, pattern_end), pattern_end);
	return pattern == NULL;
}

static bool match_until(const char *pattern, const char *path, const char *path_end)
{
	if (pattern[0] != '/' || path == path_end || path[0] != '/')
		return false;
	return segments_match(pattern + 1, pattern + strlen(pattern), path + 1, path_end);
}

/* Behind a proxy that decodes, "%3F" and "%23" end the path: then the part in front is what the server sees, and must match too. */
bool path_glob_match(const char *pattern, const char *path)
{
	for (const char *p = strchr(path, '%'); p; p = strchr(p + 1, '%'))
		if ((strncmp(p, "%3F", 3) == 0 || strncmp(p, "%23", 3) == 0) && !match_until(pattern, path, p))
			return false;
	return match_until(pattern, path, path + strlen(path));
}

static int stars_check(const char *pattern, struct err *err)
{
	const char *end = pattern + strlen(pattern);
	for (const char *s = pattern + 1; s; s = behind(segment_at(s, end), end)) {
		struct span segment = segment_at(s, end);
		if (!is_any(segment) && memmem(segment.p, (size_t)(segment.end - segment.p), "**", 2))
			return err_set(err, ERR_INVALID, "`**` stands for whole segments, so it must be a segment of its own, as in /repos/**");
	}
	return 0;
}

int path_glob_check(const char *pattern, struct err *err)
{
	size_t n = strlen(pattern);
	if (n == 0 || n > PATTERN_MAX)
		return err_set(err, ERR_INVALID, "a path pattern must have 1 to %u bytes", PATTERN_MAX);
	if (pattern[0] != '/')
		return err_set(err, ERR_INVALID, "a path pattern must begin with a slash, as in /repos/acme/**");
	if (strchr(pattern, '?'))
		return err_set(err, ERR_INVALID, "a path pattern ends before the query; say with `query` what may stand behind the ?");
	if (strstr(pattern, "%3F") || strstr(pattern, "%3f") || strstr(pattern, "%23"))
		return err_set(err, ERR_INVALID,
			"a path pattern can't hold an encoded ? or #, behind which some servers end the path; write * in its place");
	if (stars_check(pattern, err) < 0)
		return -1;
	struct request_path probe;
	cleanup_free char *plain = mem_strdup(pattern);
	for (char *p = plain; *p; p++)
		if (*p == '*')
			*p = 'x';
	if (request_path_parse(plain, n, false, &probe) != REASON_NONE)
		return err_set(err, ERR_INVALID,
			"no request could ever match this path pattern: doubled slashes, dot segments, `;`, `\\`, blanks and encodings of them are refused in requests");
	return 0;
}
