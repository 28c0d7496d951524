/* SPDX-License-Identifier: Apache-2.0 */
/* Lock files made of lines: requirements.txt with --hash, and lists of digests and paths for apt. */
#include <string.h>

#include "base/buf.h"
#include "base/mem.h"
#include "base/text.h"
#include "policy/lock.h"
#include "policy/pin.h"
#include "policy/request-rule.h"

#define SHOWN_MAX 128
#define BLANKS " \t\r"
#define LOGICAL_MAX (256u * 1024u)

static const char *show(const char *s, size_t len, char out[SHOWN_MAX])
{
	return text_escape(s, len, out, SHOWN_MAX);
}

/* ---- requirements.txt ---- */

/* Where the line's content ends: in front of a comment ("#" at the start or behind a blank) and of blanks. */
static size_t content_length(const char *s, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (s[i] == '#' && (i == 0 || strchr(BLANKS, s[i - 1])))
			n = i;
	while (n > 0 && strchr(BLANKS, s[n - 1]))
		n--;
	return n;
}

/* One line with those that follow a "\" at its end, into `out`. -1: too long. */
static int next_logical(const char **p, struct buf *out, unsigned *line)
{
	bool more = true;
	buf_clear(out);
	while (more && **p) {
		const char *s = *p;
		size_t whole = strcspn(s, "\n"), n = content_length(s, whole);
		*p += whole + (s[whole] == '\n');
		(*line)++;
		more = n > 0 && s[n - 1] == '\\';
		if (buf_append(out, s, n - more) < 0 || buf_append(out, " ", 1) < 0)
			return -1;
	}
	return buf_put_u8(out, 0);
}

static int take_hashes(struct request_rule *q, const char *s, unsigned *ret_n, struct err *err)
{
	*ret_n = 0;
	for (const char *p = strstr(s, "--hash"); p; p = strstr(p + 1, "--hash")) {
		const char *v = p + 6 + strspn(p + 6, "= \t");
		size_t name = strcspn(v, ": \t"), n = strcspn(v, BLANKS);
		struct pin pin;
		char shown[SHOWN_MAX];
		if (v[name] != ':' || pin_parse_hex(v, name, v + name + 1, n - name - 1, &pin) < 0 || pin.kind == DIGEST_SHA1)
			return err_set(err, ERR_INVALID, "\"%s\" is not sha256:, sha384: or sha512: and its digits", show(v, n, shown));
		if (request_add_pin(q, NULL, &pin, err) < 0)
			return -1;
		(*ret_n)++;
	}
	return 0;
}

/* Options of pip's own are left to pip, but for those that bring in what would have to be read too. */
static int check_option(const char *s, struct err *err)
{
	static const char *const names[] = { "--requirement", "--constraint", "--editable" };
	char shown[SHOWN_MAX];
	bool other = s[1] == 'r' || s[1] == 'c' || s[1] == 'e';
	for (size_t i = 0; i < ARRAY_LEN(names); i++)
		other = other || str_starts(s, names[i]);
	if (other)
		return err_set(err, ERR_UNSUPPORTED, "\"%s\" names something else to read; write what it requires into this file",
			show(s, strlen(s), shown));
	return 0;
}

static int take_requirement(struct lock_target *t, const char *s, struct err *err)
{
	static const char name_bytes[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_.";
	struct request_rule *q = t->rule->request;
	unsigned hashes;
	char shown[SHOWN_MAX];
	s += strspn(s, BLANKS);
	if (*s == '\0')
		return 0;
	if (*s == '-')
		return check_option(s, err);
	size_t n = strspn(s, name_bytes);
	if (n == 0)
		return err_set(err, ERR_INVALID, "\"%s\" is not the name of a package", show(s, strcspn(s, BLANKS), shown));
	if (take_hashes(q, s, &hashes, err) < 0)
		return -1;
	if (hashes == 0)
		return err_set(err, ERR_INVALID, "\"%s\" has no --hash, so nothing is pinned; make the file with hashes (pip-compile --generate-hashes)",
			show(s, n, shown));
	if (!t->add_packages)
		return 0;
	cleanup_free char *name = mem_strndup(s, n);
	return request_add_package(q, name, RULE_PINS_MAX, err);
}

int lock_read_pypi(struct lock_target *t, const char *text, size_t len, struct err *err)
{
	struct buf logical;
	unsigned line = 0;
	int r = 0;
	buf_init(&logical, LOGICAL_MAX);
	for (const char *p = text; r == 0 && *p;) {
		r = next_logical(&p, &logical, &line);
		if (r < 0)
			err_set(err, ERR_LIMIT, "a requirement is longer than %u KiB", LOGICAL_MAX / 1024);
		else
			r = take_requirement(t, (const char *)logical.data, err);
	}
	buf_free(&logical);
	return r < 0 ? err_wrap(err, "line %u of the lock file", line) : 0;
}

/* ---- lines "SHA256  PATH" ---- */

static const char *algorithm_by_length(size_t hex)
{
	return hex == 64 ? "sha256" : hex == 96 ? "sha384" : hex == 128 ? "sha512" : NULL;
}

static int take_line(struct request_rule *q, const char *s, size_t n, struct err *err)
{
	char shown[SHOWN_MAX];
	size_t hex = 0, gap;
	while (hex < n && !strchr(BLANKS, s[hex]))
		hex++;
	for (gap = hex; gap < n && strchr(BLANKS "*", s[gap]); gap++)
		;
	const char *algorithm = algorithm_by_length(hex), *file = s + gap;
	size_t file_len = n - gap;
	while (file_len > 0 && strchr(BLANKS, file[file_len - 1]))
		file_len--;
	if (file_len > 1 && file[0] == '.' && file[1] == '/') {
		file += 2;
		file_len -= 2;
	}
	struct pin pin;
	if (!algorithm || file_len == 0 || pin_parse_hex(algorithm, 6, s, hex, &pin) < 0)
		return err_set(err, ERR_INVALID, "\"%s\" is not a SHA-256 in hex and a path below the registry's base, as sha256sum prints them",
			show(s, n, shown));
	cleanup_free char *whole = mem_printf("%s%s%.*s", q->registry_base, file[0] == '/' ? "" : "/", (int)file_len, file);
	cleanup_free char *path = lock_pin_path(whole, strlen(whole));
	if (!path)
		return err_set(err, ERR_INVALID, "no request could ever ask for the path \"%s\"", show(file, file_len, shown));
	return request_add_pin(q, path, &pin, err);
}

int lock_read_apt(struct lock_target *t, const char *text, size_t len, struct err *err)
{
	unsigned line = 1;
	for (const char *p = text; *p; line++) {
		const char *s = p + strspn(p, BLANKS);
		size_t n = strcspn(s, "\n");
		if (n > 0 && *s != '#' && take_line(t->rule->request, s, n, err) < 0)
			return err_wrap(err, "line %u of the lock file", line);
		p = s + n + (s[n] == '\n');
	}
	return 0;
}
