/* SPDX-License-Identifier: Apache-2.0 */
/* Typed reading of nodes, with sentences that say where. */
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/mem.h"
#include "base/text.h"
#include "policy/node.h"

static const char *const kind_names[] = { [NODE_SCALAR] = "a single value", [NODE_LIST] = "a list", [NODE_MAP] = "a map" };

int node_wrap(const struct node *n, struct err *err)
{
	return err_wrap(err, "%s:%u:%u", n->file, n->line, n->column);
}

int node_error(const struct node *n, struct err *err, enum err_code code, const char *format, ...)
{
	char text[sizeof(err->text)];
	va_list ap;
	va_start(ap, format);
	vsnprintf(text, sizeof(text), format, ap);
	va_end(ap);
	err_set(err, code, "%s", text);
	return node_wrap(n, err);
}

const char *node_show(const struct node *n, char out[NODE_SHOWN_MAX])
{
	if (n->kind == NODE_SCALAR)
		return text_escape(n->text, n->len, out, NODE_SHOWN_MAX);
	return text_escape(kind_names[n->kind], strlen(kind_names[n->kind]), out, NODE_SHOWN_MAX);
}

int node_want(const struct node *n, const char *key, enum node_kind kind, struct err *err)
{
	if (n->kind == kind)
		return 0;
	return node_error(n, err, ERR_INVALID, "`%s` must be %s, and is %s", key, kind_names[kind], kind_names[n->kind]);
}

/* What YAML reads as "nothing": an empty place, ~ or null. */
static bool is_null(const struct node *n)
{
	static const char *const words[] = { "", "~", "null", "Null", "NULL" };
	for (size_t i = 0; n->plain && i < ARRAY_LEN(words); i++)
		if (str_eq(n->text, words[i]))
			return true;
	return false;
}

static int want_scalar(const struct node *n, const char *key, struct err *err)
{
	if (node_want(n, key, NODE_SCALAR, err) < 0)
		return -1;
	if (is_null(n))
		return node_error(n, err, ERR_INVALID, "`%s` has no value; give one or remove the key", key);
	return 0;
}

int node_bool(const struct node *n, const char *key, bool *ret, struct err *err)
{
	char shown[NODE_SHOWN_MAX];
	if (want_scalar(n, key, err) < 0)
		return -1;
	bool yes = n->plain && str_eq(n->text, "true");
	if (!yes && !(n->plain && str_eq(n->text, "false")))
		return node_error(n, err, ERR_INVALID, "`%s` must be true or false without quotes, and is \"%s\"", key,
			node_show(n, shown));
	*ret = yes;
	return 0;
}

static bool printable(const struct node *n)
{
	for (size_t i = 0; i < n->len; i++)
		if ((unsigned char)n->text[i] < 0x20 || n->text[i] == 0x7f)
			return false;
	return true;
}

int node_string(const struct node *n, const char *key, size_t max, const char **ret, struct err *err)
{
	if (want_scalar(n, key, err) < 0)
		return -1;
	if (n->len == 0 || n->len > max)
		return node_error(n, err, ERR_INVALID, "`%s` must have 1 to %zu bytes, and has %zu", key, max, n->len);
	if (!printable(n))
		return node_error(n, err, ERR_INVALID, "`%s` must be one line without control characters", key);
	*ret = n->text;
	return 0;
}

int node_copy(const struct node *n, const char *key, size_t max, char **field, struct err *err)
{
	const char *s;
	if (node_string(n, key, max, &s, err) < 0)
		return -1;
	mem_free(*field);
	*field = mem_strdup(s);
	return 0;
}

int node_number(const struct node *n, const char *key, uint64_t min, uint64_t max, uint64_t *ret, struct err *err)
{
	char shown[NODE_SHOWN_MAX];
	if (want_scalar(n, key, err) < 0)
		return -1;
	/* Some readers of YAML take 0443 for octal: nobody can be sure what was meant. */
	bool leading_zero = n->len > 1 && n->text[0] == '0';
	if (!n->plain || leading_zero || text_parse_u64(n->text, min, max, ret) < 0)
		return node_error(n, err, ERR_INVALID,
			"`%s` must be a whole number from %llu to %llu without quotes, and is \"%s\"", key,
			(unsigned long long)min, (unsigned long long)max, node_show(n, shown));
	return 0;
}

const struct node *node_get(const struct node *map, const char *key)
{
	for (size_t i = 0; map->kind == NODE_MAP && i + 1 < map->n_items; i += 2)
		if (str_eq(map->items[i]->text, key))
			return map->items[i + 1];
	return NULL;
}
