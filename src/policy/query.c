/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One query, many readers: some split at ";" too, some take "key[]", "key.x" or "KEY" for key, some the first of two, some the last. So a
 * key that a rule speaks of must stand there once, plainly, and in no spelling that another reader would take for it.
 */
#include "policy/query.h"

#include <string.h>

#include "base/mem.h"
#include "policy/path.h"

struct pair {
	char key[REQUEST_PATH_MAX + 1], value[REQUEST_PATH_MAX + 1]; /* decoded */
	size_t key_len, value_len;
	bool bad;             /* "%" without two hex digits, or a NUL */
};

static size_t decode(const char *s, size_t len, char *out, bool *bad)
{
	size_t n = 0;
	for (size_t i = 0; i < len; i++) {
		char c = s[i] == '+' ? ' ' : s[i];
		if (c == '%') {
			int high = i + 2 < len ? path_hex(s[i + 1]) : -1, low = i + 2 < len ? path_hex(s[i + 2]) : -1;
			*bad = *bad || high < 0 || low < 0;
			c = high < 0 || low < 0 ? '%' : (char)(high << 4 | low);
			i += high < 0 || low < 0 ? 0 : 2;
		}
		*bad = *bad || c == '\0';
		out[n++] = c;
	}
	out[n] = '\0';
	return n;
}

/* Takes the next pair; false at the end. */
static bool next_pair(const char **p, struct pair *ret)
{
	if (!*p)
		return false;
	size_t len = strcspn(*p, "&;"), key = 0;
	while (key < len && (*p)[key] != '=')
		key++;
	ret->bad = false;
	ret->key_len = decode(*p, key, ret->key, &ret->bad);
	ret->value_len = key < len ? decode(*p + key + 1, len - key - 1, ret->value, &ret->bad) : 0;
	*p = (*p)[len] ? *p + len + 1 : NULL;
	return true;
}

static char folded(char c)
{
	if (c >= 'A' && c <= 'Z')
		return (char)(c - 'A' + 'a');
	return c == '.' || c == ' ' || c == '-' ? '_' : c;
}

/* Blanks in front and what follows a "[" or NUL are dropped by some, dots and blanks turned into "_". */
static bool is_alike(const struct pair *pair, const char *key)
{
	size_t i = 0, k = 0;
	while (i < pair->key_len && pair->key[i] == ' ')
		i++;
	for (; i < pair->key_len && pair->key[i] != '[' && pair->key[i] != '\0'; i++, k++)
		if (key[k] == '\0' || folded(pair->key[i]) != folded(key[k]))
			return false;
	return key[k] == '\0';
}

static bool is_exactly(const struct pair *pair, const char *key)
{
	return pair->key_len == strlen(key) && memcmp(pair->key, key, pair->key_len) == 0;
}

bool query_matches(const char *query, const struct field_rule *rule)
{
	struct pair pair;
	bool found = false;
	for (const char *p = query; next_pair(&p, &pair);) {
		if (!is_alike(&pair, rule->name))
			continue;
		if (found || pair.bad || !is_exactly(&pair, rule->name) || !text_glob_match(rule->pattern, pair.value, pair.value_len))
			return false;
		found = true;
	}
	return found;
}

static bool lists(const struct request_rule *rule, const struct pair *pair)
{
	for (size_t i = 0; i < rule->n_methods; i++)
		if (strlen(rule->methods[i]) == pair->value_len && strncasecmp(rule->methods[i], pair->value, pair->value_len) == 0)
			return true;
	return false;
}

bool query_methods_listed(const char *query, const struct request_rule *rule)
{
	struct pair pair;
	for (const char *p = query; next_pair(&p, &pair);)
		if (is_alike(&pair, "_method") && !lists(rule, &pair))
			return false;
	return true;
}
