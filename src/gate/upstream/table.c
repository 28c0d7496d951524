/* SPDX-License-Identifier: Apache-2.0 */
#include "gate/upstream/table.h"

#include "base/mem.h"

#define BUCKETS_FIRST 64u

static size_t bucket_of(uint64_t key, size_t n_buckets) { return (size_t)(key * 0x9e3779b97f4a7c15ull >> 32) & (n_buckets - 1); }

static void grow(struct table *t)
{
	size_t n = t->n_buckets ? t->n_buckets * 2 : BUCKETS_FIRST;
	struct table_node **fresh = mem_alloc_array(n, sizeof(struct table_node *));
	for (size_t i = 0; i < t->n_buckets; i++) {
		for (struct table_node *node = t->buckets[i], *next; node; node = next) {
			struct table_node **to = &fresh[bucket_of(node->key, n)];
			next = node->next;
			node->next = *to;
			*to = node;
		}
	}
	mem_free(t->buckets);
	t->buckets = fresh;
	t->n_buckets = n;
}

struct table_node *table_get(const struct table *t, uint64_t key)
{
	struct table_node *node = t->n_buckets ? t->buckets[bucket_of(key, t->n_buckets)] : NULL;
	while (node && node->key != key)
		node = node->next;
	return node;
}

bool table_put(struct table *t, struct table_node *node, uint64_t key)
{
	if (table_get(t, key))
		return false;
	if (t->n >= t->n_buckets)
		grow(t);
	struct table_node **to = &t->buckets[bucket_of(key, t->n_buckets)];
	node->key = key;
	node->next = *to;
	*to = node;
	t->n++;
	return true;
}

void table_remove(struct table *t, struct table_node *node)
{
	struct table_node **link = &t->buckets[bucket_of(node->key, t->n_buckets)];
	while (*link && *link != node)
		link = &(*link)->next;
	if (*link) {
		*link = node->next;
		t->n--;
	}
}

void table_done(struct table *t)
{
	mem_free(t->buckets);
	*t = (struct table){ 0 };
}
