/* SPDX-License-Identifier: Apache-2.0 */
/* Maps read by a table of their keys; a key that isn't in the table is an error that names the nearest one. */
#include <string.h>

#include "base/mem.h"
#include "policy/node.h"

#define WORD_MAX 32

static unsigned min3(unsigned a, unsigned b, unsigned c)
{
	unsigned m = a < b ? a : b;
	return m < c ? m : c;
}

/* Edits (insert, delete, replace, swap of neighbours) between two short words. */
static unsigned word_distance(const char *a, size_t na, const char *b, size_t nb)
{
	unsigned d[WORD_MAX + 1][WORD_MAX + 1];
	for (unsigned i = 0; i <= na; i++)
		d[i][0] = i;
	for (unsigned j = 0; j <= nb; j++)
		d[0][j] = j;
	for (size_t i = 1; i <= na; i++)
		for (size_t j = 1; j <= nb; j++) {
			d[i][j] = min3(d[i - 1][j] + 1, d[i][j - 1] + 1, d[i - 1][j - 1] + (a[i - 1] != b[j - 1]));
			if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1] && d[i - 2][j - 2] + 1 < d[i][j])
				d[i][j] = d[i - 2][j - 2] + 1;
		}
	return d[na][nb];
}

static const struct key *nearest(const struct key *keys, const struct node *key)
{
	const struct key *best = NULL;
	unsigned least = key->len < 5 ? 2 : 3; /* fewer edits than this */
	for (const struct key *k = keys; k->name; k++) {
		size_t n = strlen(k->name);
		if (n > WORD_MAX || key->len > WORD_MAX)
			continue;
		unsigned distance = word_distance(k->name, n, key->text, key->len);
		if (distance < least) {
			least = distance;
			best = k;
		}
	}
	return best;
}

static int refuse_unknown(const struct node *key, const char *where, const struct key *keys, struct err *err)
{
	char shown[NODE_SHOWN_MAX];
	const struct key *near = nearest(keys, key);
	node_show(key, shown);
	if (near)
		return node_error(
			key, err, ERR_INVALID, "unknown key `%s` in %s; did you mean `%s`?", shown, where, near->name);
	return node_error(
		key, err, ERR_INVALID, "unknown key `%s` in %s; remove it (docs/policy.md lists the keys)", shown, where);
}

static const struct key *find(const struct key *keys, const struct node *key)
{
	for (const struct key *k = keys; k->name; k++)
		if (str_eq(k->name, key->text))
			return k;
	return NULL;
}

int key_refuse(const struct node *key, const char *instead, struct err *err)
{
	return node_error(key, err, ERR_UNSUPPORTED,
		"`%s` is not enforced by this version of Bulkhead, so the policy is refused; remove it, %s", key->text,
		instead);
}

int keys_parse(const struct node *map, const char *where, const struct key *keys, void *into, struct err *err)
{
	if (node_want(map, where, NODE_MAP, err) < 0)
		return -1;
	for (size_t i = 0; i + 1 < map->n_items; i += 2) {
		const struct node *key = map->items[i];
		const struct key *k = find(keys, key);
		if (!k)
			return refuse_unknown(key, where, keys, err);
		if (k->refused)
			return key_refuse(key, k->refused, err);
		if (k->parse(key, map->items[i + 1], into, err) < 0)
			return -1;
	}
	return 0;
}
