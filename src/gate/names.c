/* SPDX-License-Identifier: Apache-2.0 */
#include "gate/names.h"

#include <string.h>

#include "base/mem.h"

#define BUCKETS 512u

struct item {
	char *name;
	bool allow;
	enum reason reason;
	uint64_t count, distinct, bytes; /* not yet recorded */
	struct item *chain;              /* of the bucket */
	struct item *next;               /* of all */
};

struct names {
	struct recorder *recorder;
	struct item *buckets[BUCKETS];
	struct item *all;
	size_t singles, parents;
	uint32_t last_hash; /* of the last name summed up: a question repeated at once isn't a new name */
	struct item others[2]; /* denied, allowed */
};

static uint32_t hash_text(const char *s)
{
	uint32_t h = 2166136261u;
	for (; *s; s++)
		h = (h ^ (uint8_t)*s) * 16777619u;
	return h;
}

struct names *names_new(struct recorder *recorder)
{
	struct names *n = mem_alloc(sizeof(*n));
	n->recorder = recorder;
	for (int i = 0; i < 2; i++) {
		n->others[i].name = mem_strdup("*");
		n->others[i].allow = i == 1;
		n->others[i].next = n->all;
		n->all = &n->others[i];
	}
	return n;
}

struct names *names_free(struct names *n)
{
	if (!n)
		return NULL;
	for (struct item *i = n->all, *next; i; i = next) {
		next = i->next;
		mem_free(i->name);
		if (i != &n->others[0] && i != &n->others[1])
			mem_free(i);
	}
	return mem_free(n);
}

static struct item *find(const struct names *n, const char *name, bool allow)
{
	struct item *i = n->buckets[hash_text(name) % BUCKETS];
	while (i && (i->allow != allow || !str_eq(i->name, name)))
		i = i->chain;
	return i;
}

static struct item *add(struct names *n, const char *name, bool allow)
{
	struct item *i = mem_alloc(sizeof(*i));
	struct item **bucket = &n->buckets[hash_text(name) % BUCKETS];
	*i = (struct item){ .name = mem_strdup(name), .allow = allow, .chain = *bucket, .next = n->all };
	*bucket = i;
	n->all = i;
	return i;
}

/* "*." and the last two labels: what is in front of them is where a tunnel would put its data. */
static void parent_of(const char *name, char out[HOSTNAME_MAX + 3])
{
	const char *cut = name;
	unsigned dots = 0;
	for (const char *p = name + strlen(name); p > name; p--)
		if (p[-1] == '.' && ++dots == 2) {
			cut = p;
			break;
		}
	size_t len = strlen(cut);
	if (len > HOSTNAME_MAX)
		len = HOSTNAME_MAX;
	memcpy(out, "*.", 2);
	memcpy(out + 2, cut, len);
	out[2 + len] = 0;
}

static void record(struct names *n, struct item *i)
{
	struct name_event e = { i->name, i->allow, i->reason, i->count, i->distinct, i->bytes };
	if (i->count && recorder_name(n->recorder, &e) == 0)
		i->count = i->distinct = i->bytes = 0;
}

static struct item *sum_of(struct names *n, const char *text, bool allow)
{
	char parent[HOSTNAME_MAX + 3];
	parent_of(text, parent);
	struct item *i = find(n, parent, allow);
	if (!i && n->parents < NAMES_PARENTS_MAX) {
		n->parents++;
		i = add(n, parent, allow);
	}
	return i ? i : &n->others[allow];
}

static void sum_up(struct names *n, const char *text, const struct verdict *v)
{
	struct item *i = sum_of(n, text, v->allow);
	uint32_t hash = hash_text(text);
	i->reason = v->reason;
	i->count++;
	i->bytes += strlen(text);
	i->distinct += hash != n->last_hash;
	n->last_hash = hash;
}

bool names_asked(struct names *n, const char *text, const struct verdict *v)
{
	struct item *i = find(n, text, v->allow);
	if (i) {
		i->count++;
		i->reason = v->reason;
	} else if (n->singles < NAMES_SINGLE_MAX) {
		n->singles++;
		i = add(n, text, v->allow);
		i->reason = v->reason;
		i->count = 1;
		record(n, i);
		return true;
	} else {
		sum_up(n, text, v);
	}
	return false;
}

void names_flush(struct names *n)
{
	for (struct item *i = n->all; i; i = i->next)
		record(n, i);
}
