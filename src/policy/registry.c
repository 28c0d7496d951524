/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What may be asked of a package registry: reading, in the paths that its protocol has, of the packages that the rule names or the lock
 * file pins. Whatever isn't known here is refused: a registry's other paths publish, log in, or are for its administrators.
 */
#include "policy/registry.h"

#include <string.h>

#include "base/mem.h"
#include "policy/request-rule.h"

#define NPM_NAME_MAX 214u

/* ---- what is named, what is pinned ---- */

static bool is_open(const struct request_rule *q)
{
	return q->n_packages == 0 && !q->lock_file;
}

static bool names_package(const struct request_rule *q, const char *name, size_t len)
{
	for (size_t i = 0; i < q->n_packages; i++)
		if (text_glob_match(q->packages[i], name, len))
			return true;
	return false;
}

/* A lock file that was not read, or names nothing, names no package. */
static enum reason package_reason(const struct request_rule *q, const char *name, size_t len)
{
	if (is_open(q) || names_package(q, name, len))
		return REASON_NONE;
	return q->lock_file && q->n_packages == 0 ? REASON_NOT_PINNED : REASON_PACKAGE_NOT_ALLOWED;
}

static size_t first_pin(const struct request_rule *q, const char *path)
{
	size_t low = 0, high = q->n_pins;
	while (low < high) {
		size_t middle = low + (high - low) / 2;
		if (strcmp(q->pins[middle].path ? q->pins[middle].path : "", path) < 0)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

/* The pins of this path. Those without a path are for any. */
static bool find_pins(const struct request_rule *q, const char *path, const struct pin **ret_pins, size_t *ret_n)
{
	size_t first = q->n_pins > 0 && !q->pins[0].path ? 0 : first_pin(q, path), n = 0;
	while (first + n < q->n_pins && (!q->pins[first + n].path || str_eq(q->pins[first + n].path, path)))
		n++;
	*ret_pins = n ? &q->pins[first] : NULL;
	*ret_n = n;
	return n > 0;
}

static enum reason artefact_reason(const struct request_rule *q, const char *path, const struct pin **ret_pins, size_t *ret_n)
{
	return !q->lock_file || find_pins(q, path, ret_pins, ret_n) ? REASON_NONE : REASON_NOT_PINNED;
}

/* ---- npm ---- */

static size_t npm_part(const char *s, size_t len)
{
	size_t n = 0;
	while (n < len && s[n] && strchr("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-._~", s[n]))
		n++;
	return n;
}

/* A part that begins with "-" or "_" is the registry's own ("/-/…", "/_session"). */
static bool npm_part_valid(const char *s, size_t len)
{
	return len > 0 && npm_part(s, len) == len && !strchr("-_.~", s[0]);
}

bool npm_name_valid(const char *s, size_t len)
{
	const char *slash = memchr(s, '/', len);
	if (len == 0 || len > NPM_NAME_MAX)
		return false;
	if (s[0] != '@')
		return npm_part_valid(s, len);
	return slash && npm_part_valid(s + 1, (size_t)(slash - s - 1)) && npm_part_valid(slash + 1, len - (size_t)(slash + 1 - s));
}

bool npm_slashes_clear(const char *path)
{
	for (const char *p = strstr(path, "%2F"), *last = NULL; p; last = p, p = strstr(p + 3, "%2F")) {
		const char *segment = p;
		while (segment > path && segment[-1] != '/')
			segment--;
		if ((last && last >= segment) || (segment[0] != '@' && strncmp(segment, "%40", 3) != 0))
			return false;
	}
	return true;
}

/* "name" or "@scope/name" at the start of s: its length, or 0. */
static size_t npm_name_at(const char *s)
{
	size_t n = strcspn(s, "/");
	if (s[0] == '@' && s[n] == '/')
		n += 1 + strcspn(s + n + 1, "/");
	return npm_name_valid(s, n) ? n : 0;
}

/* "name-1.0.0.tgz" of a package; some registries have the scope in front once more. */
static bool npm_is_tarball(const char *file, const char *name, size_t name_len)
{
	const char *slash = memchr(name, '/', name_len);
	if (slash && strncmp(file, name, (size_t)(slash + 1 - name)) == 0)
		file += slash + 1 - name;
	size_t len = strlen(file), base_len = slash ? name_len - (size_t)(slash + 1 - name) : name_len;
	const char *base = slash ? slash + 1 : name;
	return len > base_len + 5 && strncmp(file, base, base_len) == 0 && file[base_len] == '-' && str_ends(file, ".tgz") &&
		!strchr(file, '/') && !strchr(file, '%');
}

/* Behind "/-/": what the registry says of itself. The lists of advisories take the names of what is installed, and so say them. */
static enum reason npm_own(const struct request_rule *q, const struct protocol_request *r, const char *s)
{
	size_t n;
	if (str_eq(s, "v1/search"))
		return !is_open(q) ? REASON_PACKAGE_NOT_ALLOWED : r->reads ? REASON_NONE : REASON_METHOD_NOT_ALLOWED;
	if (str_eq(s, "npm/v1/security/advisories/bulk") || str_eq(s, "npm/v1/security/audits/quick"))
		return !is_open(q) ? REASON_PACKAGE_NOT_ALLOWED : r->post ? REASON_NONE : REASON_METHOD_NOT_ALLOWED;
	if (!r->reads)
		return REASON_METHOD_NOT_ALLOWED;
	if (str_eq(s, "ping") || str_eq(s, "npm/v1/keys"))
		return REASON_NONE;
	if (!str_starts(s, "package/") || (n = npm_name_at(s + 8)) == 0 || !str_eq(s + 8 + n, "/dist-tags"))
		return REASON_PATH_NOT_ALLOWED;
	return package_reason(q, s + 8, n);
}

static enum reason npm_judge(const struct request_rule *q, const struct protocol_request *r, const char *below, const struct pin **ret_pins,
	size_t *ret_n)
{
	if (str_starts(below, "/-/"))
		return npm_own(q, r, below + 3);
	const char *name = below + 1;
	size_t n = npm_name_at(name);
	const char *rest = name + n;
	if (!r->reads)
		return REASON_METHOD_NOT_ALLOWED;
	if (n == 0)
		return REASON_PATH_NOT_ALLOWED;
	enum reason reason = package_reason(q, name, n);
	if (reason != REASON_NONE || *rest == '\0')
		return reason;
	if (str_starts(rest, "/-/"))
		return npm_is_tarball(rest + 3, name, n) ? artefact_reason(q, r->path, ret_pins, ret_n) : REASON_PATH_NOT_ALLOWED;
	/* One version of it, or a tag. */
	return rest[1] != '\0' && rest[1] != '-' && !strchr(rest + 1, '/') && !strchr(rest + 1, '%') ? REASON_NONE : REASON_PATH_NOT_ALLOWED;
}

/* ---- PyPI ---- */

/* The part of a segment that is a project's name, normalised, into out; false when it is none. */
static bool pypi_name(const char *s, size_t len, char *out)
{
	if (len == 0 || strspn(s, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-._") < len)
		return false;
	memcpy(out, s, len);
	out[len] = '\0';
	pypi_normalise(out);
	return out[0] != '-' && out[strlen(out) - 1] != '-';
}

/* A wheel's name ends at its first hyphen. That of a source archive at the last one in front of a digit: "foo-2-1.0.tar.gz" is of foo-2. */
bool pypi_file_name(const char *file, char *out)
{
	static const char *const archives[] = { ".tar.gz", ".zip", ".tar.bz2", ".tar.xz", ".tgz" };
	const char *end = NULL;
	bool wheel = str_ends(file, ".whl") || str_ends(file, ".whl.metadata"), archive = false;
	for (size_t i = 0; i < ARRAY_LEN(archives); i++)
		archive = archive || str_ends(file, archives[i]);
	for (const char *p = strchr(file, '-'); p && (wheel || archive); p = strchr(p + 1, '-')) {
		if (wheel || (p[1] >= '0' && p[1] <= '9'))
			end = p;
		if (wheel)
			break;
	}
	return end && pypi_name(file, (size_t)(end - file), out);
}

static enum reason pypi_named(const struct request_rule *q, const char *s, size_t len)
{
	char name[REQUEST_PATH_MAX + 1];
	return pypi_name(s, len, name) ? package_reason(q, name, strlen(name)) : REASON_PATH_NOT_ALLOWED;
}

static enum reason pypi_artefact(const struct request_rule *q, const char *path, const struct pin **ret_pins, size_t *ret_n)
{
	char name[REQUEST_PATH_MAX + 1];
	const char *file = strrchr(path, '/') + 1;
	if (*file == '\0')
		return REASON_PATH_NOT_ALLOWED;
	if (is_open(q))
		return REASON_NONE;
	if (!pypi_file_name(file, name))
		return REASON_PACKAGE_NOT_ALLOWED;
	enum reason reason = package_reason(q, name, strlen(name));
	if (reason != REASON_NONE)
		return reason;
	/* What a wheel says of itself apart from the wheel is in no lock file. */
	if (q->lock_file && str_ends(file, ".metadata"))
		return REASON_NOT_PINNED;
	return artefact_reason(q, path, ret_pins, ret_n);
}

/* Behind "/pypi/": NAME/json or NAME/VERSION/json. */
static enum reason pypi_about(const struct request_rule *q, const char *s)
{
	size_t n = strcspn(s, "/");
	const char *rest = s + n;
	const char *last = strrchr(s, '/');
	if (!last || !str_eq(last, "/json") || (last != rest && memchr(rest + 1, '/', (size_t)(last - rest - 1))))
		return REASON_PATH_NOT_ALLOWED;
	return pypi_named(q, s, n);
}

static enum reason pypi_judge(const struct request_rule *q, const struct protocol_request *r, const char *below, const struct pin **ret_pins,
	size_t *ret_n)
{
	if (!r->reads)
		return REASON_METHOD_NOT_ALLOWED;
	if (str_eq(below, "/simple") || str_eq(below, "/simple/"))
		return is_open(q) ? REASON_NONE : REASON_PACKAGE_NOT_ALLOWED;
	if (str_starts(below, "/simple/")) {
		size_t n = strcspn(below + 8, "/");
		return below[8 + n] == '\0' || below[8 + n + 1] == '\0' ? pypi_named(q, below + 8, n) : REASON_PATH_NOT_ALLOWED;
	}
	if (str_starts(below, "/packages/"))
		return pypi_artefact(q, r->path, ret_pins, ret_n);
	if (str_starts(below, "/pypi/"))
		return pypi_about(q, below + 6);
	return REASON_PATH_NOT_ALLOWED;
}

/* ---- apt ---- */

/* The indices below /dists are signed, and apt checks them; what they lead to is in /pool. */
static enum reason apt_judge(const struct request_rule *q, const struct protocol_request *r, const char *below, const struct pin **ret_pins,
	size_t *ret_n)
{
	if (!r->reads)
		return REASON_METHOD_NOT_ALLOWED;
	if (str_starts(below, "/dists/") && below[7] != '\0') {
		find_pins(q, r->path, ret_pins, ret_n);
		return REASON_NONE;
	}
	const char *file = strrchr(below, '/') + 1;
	size_t n = strcspn(file, "_");
	if (!str_starts(below, "/pool/") || *file == '\0')
		return REASON_PATH_NOT_ALLOWED;
	if (q->n_packages > 0 && (file[n] != '_' || !names_package(q, file, n)))
		return REASON_PACKAGE_NOT_ALLOWED;
	return artefact_reason(q, r->path, ret_pins, ret_n);
}

/* ---- */

enum reason registry_judge(const struct request_rule *q, const struct protocol_request *r, const struct pin **ret_pins, size_t *ret_n)
{
	size_t n = strlen(q->registry_base);
	*ret_pins = NULL;
	*ret_n = 0;
	if (strncmp(r->path, q->registry_base, n) != 0 || r->path[n] != '/')
		return REASON_PATH_NOT_ALLOWED;
	switch (q->registry) {
	case REGISTRY_NPM:
		return npm_judge(q, r, r->path + n, ret_pins, ret_n);
	case REGISTRY_PYPI:
		return pypi_judge(q, r, r->path + n, ret_pins, ret_n);
	case REGISTRY_APT:
		return apt_judge(q, r, r->path + n, ret_pins, ret_n);
	case REGISTRY_NONE:
	case REGISTRY_KINDS:
		break;
	}
	return REASON_PATH_NOT_ALLOWED;
}
