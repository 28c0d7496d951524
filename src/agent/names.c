/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/names.h"

#include <string.h>

#include "base/mem.h"
#include "wire/capture.h"

enum { BUCKETS = 1024, V4_PER_BLOCK = 254 };

struct names {
	struct name *buckets[BUCKETS];
	struct name *by_index[NAMES_MAX];
	unsigned next; /* where the search for a free index begins: addresses come back as late as possible */
	unsigned count;
	void (*on_remove)(void *ctx, struct name *n);
	void *ctx;
};

/* ---- index and address ---- */

/* No address ends in .0 or .255: some programs take these for a network or a broadcast. */
static struct ip v4_of(unsigned index)
{
	uint32_t a = CAPTURE_V4_NET_NUMBER + (index / V4_PER_BLOCK << 8) + index % V4_PER_BLOCK + 1;
	return (struct ip){ .family = AF_INET, .bytes = { a >> 24, a >> 16 & 0xff, a >> 8 & 0xff, a & 0xff } };
}

static struct ip v6_of(unsigned index)
{
	struct ip ip = { .family = AF_INET6, .bytes = CAPTURE_V6_NET_BYTES };
	ip.bytes[14] = (uint8_t)((index + 1) >> 8);
	ip.bytes[15] = (uint8_t)(index + 1);
	return ip;
}

/* A guess at the index, to be verified against the entry's own addresses. */
static unsigned index_of(const struct ip *ip)
{
	if (ip->family == AF_INET6)
		return ((unsigned)ip->bytes[14] << 8 | ip->bytes[15]) - 1u;
	unsigned block = (ip->bytes[1] & 1u) << 8 | ip->bytes[2];
	return block * V4_PER_BLOCK + ip->bytes[3] - 1u;
}

/* ---- the table ---- */

/* FNV-1a. A program in the box could pick names that collide, and only slows its own lookups by that: at most NAMES_MAX
 * steps. */
static unsigned bucket_of(const struct hostname *host)
{
	uint32_t h = 2166136261u;
	for (uint8_t i = 0; i < host->len; i++)
		h = (h ^ (uint8_t)host->text[i]) * 16777619u;
	return h % BUCKETS;
}

struct names *names_new(void (*on_remove)(void *ctx, struct name *n), void *ctx)
{
	struct names *t = mem_alloc(sizeof(*t));
	t->on_remove = on_remove;
	t->ctx = ctx;
	return t;
}

struct names *names_free(struct names *t)
{
	if (!t)
		return NULL;
	for (unsigned i = 0; i < NAMES_MAX; i++)
		if (t->by_index[i])
			names_remove(t, t->by_index[i]);
	return mem_free(t);
}

struct name *names_find(const struct names *t, const struct hostname *host)
{
	struct name *n = t->buckets[bucket_of(host)];
	while (n && !hostname_equal(&n->host, host))
		n = n->next_in_bucket;
	return n;
}

struct name *names_find_ip(const struct names *t, const struct ip *ip)
{
	unsigned index = index_of(ip);
	struct name *n = index < NAMES_MAX ? t->by_index[index] : NULL;
	return n && ip_equal(ip->family == AF_INET ? &n->v4 : &n->v6, ip) ? n : NULL;
}

void names_remove(struct names *t, struct name *n)
{
	struct name **at = &t->buckets[bucket_of(&n->host)];
	while (*at != n)
		at = &(*at)->next_in_bucket;
	*at = n->next_in_bucket;
	t->by_index[n->index] = NULL;
	t->count--;
	t->on_remove(t->ctx, n);
	mem_free(n);
}

static bool may_go(const struct name *n, uint64_t now_ns)
{
	return n->connections == 0 && now_ns - n->asked_ns > NAMES_REMEMBERED_NS;
}

int names_recycle(struct names *t, uint64_t now_ns)
{
	struct name *oldest = NULL;
	for (unsigned i = 0; i < NAMES_MAX; i++) {
		struct name *n = t->by_index[i];
		if (n && may_go(n, now_ns) && (!oldest || n->asked_ns < oldest->asked_ns))
			oldest = n;
	}
	if (!oldest)
		return -1;
	names_remove(t, oldest);
	return 0;
}

struct name *names_get(struct names *t, const struct hostname *host, uint64_t now_ns)
{
	struct name *n = names_find(t, host);
	if (n || (t->count == NAMES_MAX && names_recycle(t, now_ns) < 0))
		return n;
	while (t->by_index[t->next])
		t->next = (t->next + 1) % NAMES_MAX;
	n = mem_alloc(sizeof(*n));
	*n = (struct name){ .host = *host, .v4 = v4_of(t->next), .v6 = v6_of(t->next), .index = t->next, .asked_ns = now_ns };
	t->by_index[t->next] = n;
	t->next = (t->next + 1) % NAMES_MAX;
	unsigned b = bucket_of(host);
	n->next_in_bucket = t->buckets[b];
	t->buckets[b] = n;
	t->count++;
	return n;
}
