/* SPDX-License-Identifier: Apache-2.0 */
/*
 * package-lock.json, lockfileVersion 2 and 3: every entry of `packages` that is fetched has `resolved` and `integrity`. The pin is the
 * content; so a file that the lock file has from another registry may come from the rule's host, in the path that registries give it:
 * npm itself fetches from the registry that it is configured for.
 */
#include <string.h>

#include <jansson.h>

#include "base/mem.h"
#include "base/text.h"
#include "policy/lock.h"
#include "policy/pin.h"
#include "policy/registry.h"
#include "policy/request-rule.h"
#include "policy/rule.h"

#define SHOWN_MAX 160

/* "node_modules/a/node_modules/@s/b" -> "@s/b"; NULL when the place is no installed package. */
static const char *name_of_place(const char *place)
{
	static const char folder[] = "node_modules/";
	const char *name = NULL;
	for (const char *p = strstr(place, folder); p; p = strstr(p + 1, folder))
		if (p == place || p[-1] == '/')
			name = p + strlen(folder);
	return name;
}

/* An alias ("npm:other@1") is installed under one name and fetched under the other, which `name` has. */
static const char *package_name(const char *place, const json_t *entry)
{
	const char *name = json_string_value(json_object_get(entry, "name"));
	if (!name)
		name = name_of_place(place);
	return name && npm_name_valid(name, strlen(name)) ? name : NULL;
}

/* Where a URL of http or https leads: its path within, without query and fragment; NULL for others (git, file). */
static const char *url_path(const char *url, size_t *ret_len, const char **ret_host, size_t *ret_host_len)
{
	const char *s = str_starts(url, "https://") ? url + 8 : str_starts(url, "http://") ? url + 7 : NULL;
	if (!s)
		return NULL;
	size_t authority = strcspn(s, "/?#");
	const char *host;
	uint16_t port;
	if (s[authority] != '/' || hostport_split(s, authority, &host, ret_host_len, &port) < 0)
		return NULL;
	*ret_host = host;
	*ret_len = strcspn(s + authority, "?#");
	return s + authority;
}

static bool is_host_of(const struct network_rule *r, const char *host, size_t len)
{
	struct hostname name;
	struct ip ip;
	if (r->is_address)
		return ip_parse(host, len, &ip) == 0 && ip_equal(&ip, &r->address);
	return hostname_parse(host, len, &name, NULL) == 0 && rule_matches_name(r, &name);
}

/* The path on the rule's own registry: /NAME/-/FILE, the file being the last segment of the URL, or made from the version. */
static char *usual_path(const struct request_rule *q, const char *name, const char *file, size_t file_len, const char *version)
{
	const char *slash = strchr(name, '/');
	cleanup_free char *path = file ? mem_printf("%s/%s/-/%.*s", q->registry_base, name, (int)file_len, file)
				       : mem_printf("%s/%s/-/%s-%s.tgz", q->registry_base, name, slash ? slash + 1 : name, version);
	return lock_pin_path(path, strlen(path));
}

static char *path_of_url(const struct network_rule *r, const char *name, const char *url)
{
	size_t len, host_len;
	const char *host, *path = url_path(url, &len, &host, &host_len);
	if (!path)
		return NULL;
	if (is_host_of(r, host, host_len))
		return lock_pin_path(path, len);
	const char *slash = memrchr(path, '/', len);
	return usual_path(r->request, name, slash + 1, len - (size_t)(slash + 1 - path), NULL);
}

/* Of several digests only the strongest kind counts (SRI 3.3.4); any of that kind may match. */
static int add_pins(struct request_rule *q, const char *path, const char *integrity, struct err *err)
{
	int best = 0;
	for (int pass = 0; pass < 2; pass++)
		for (const char *s = integrity; *s;) {
			struct pin pin;
			size_t n = strcspn(s, " \t\r\n");
			bool good = n > 0 && pin_parse_sri(s, n, &pin) == 0;
			if (good && pass == 0 && pin_strength(pin.kind) > best)
				best = pin_strength(pin.kind);
			if (good && pass == 1 && pin_strength(pin.kind) == best && request_add_pin(q, path, &pin, err) < 0)
				return -1;
			s += n + strspn(s + n, " \t\r\n");
		}
	if (best == 0)
		return err_set(err, ERR_INVALID, "its `integrity` has no sha512, sha384, sha256 or sha1");
	return 0;
}

/* What is fetched from elsewhere (git), linked, or comes inside another package needs no pin here. */
static bool is_fetched(const json_t *entry)
{
	return json_is_object(entry) && !json_is_true(json_object_get(entry, "link")) && !json_is_true(json_object_get(entry, "inBundle")) &&
		json_is_string(json_object_get(entry, "integrity"));
}

static int take_entry(struct lock_target *t, const char *place, const json_t *entry, struct err *err)
{
	const char *resolved = json_string_value(json_object_get(entry, "resolved"));
	const char *version = json_string_value(json_object_get(entry, "version"));
	const char *name = package_name(place, entry);
	if (!is_fetched(entry) || !name || (!resolved && !version))
		return 0;
	cleanup_free char *path = resolved ? path_of_url(t->rule, name, resolved) : usual_path(t->rule->request, name, NULL, 0, version);
	if (!path)
		return 0; /* not by http, or in no path that could be asked for */
	if (add_pins(t->rule->request, path, json_string_value(json_object_get(entry, "integrity")), err) < 0)
		return -1;
	return t->add_packages ? request_add_package(t->rule->request, name, RULE_PINS_MAX, err) : 0;
}

static int take_packages(struct lock_target *t, json_t *packages, struct err *err)
{
	const char *place;
	json_t *entry;
	json_object_foreach(packages, place, entry)
		if (take_entry(t, place, entry, err) < 0) {
			char shown[SHOWN_MAX];
			return err_wrap(err, "package-lock.json, \"%s\"", text_escape(place, strlen(place), shown, sizeof(shown)));
		}
	return 0;
}

int lock_read_npm(struct lock_target *t, const char *text, size_t len, struct err *err)
{
	json_error_t at;
	json_t *o = json_loadb(text, len, JSON_REJECT_DUPLICATES, &at);
	if (!o)
		return err_set(err, ERR_INVALID, "the lock file is not JSON, at line %d: %s", at.line, at.text);
	json_t *packages = json_object_get(o, "packages");
	json_int_t version = json_integer_value(json_object_get(o, "lockfileVersion"));
	int r = version != 2 && version != 3 ? err_set(err, ERR_UNSUPPORTED, "the lock file must be a package-lock.json with lockfileVersion 2 or 3; write it anew with npm 7 or later")
		: !json_is_object(packages) ? err_set(err, ERR_INVALID, "the lock file has no `packages`")
					    : take_packages(t, packages, err);
	json_decref(o);
	return r;
}
