/* SPDX-License-Identifier: Apache-2.0 */
#include "image/rename.h"

#include <stdlib.h>

#include "base/fd.h"
#include "base/mem.h"
#include "image/content.h"
#include "image/flags.h"
#include "image/list.h"
#include "image/tree.h"

/* A file that came or went, by content. `base` is its last name: of several candidates, the one that kept its name is taken
 * first. */
struct candidate {
	struct change *change;
	char digest[DIGEST_HEX_SIZE];
	const char *base;
	bool taken;
};

static int compare_candidates(const void *a, const void *b)
{
	const struct candidate *x = a, *y = b;
	int order = strcmp(x->digest, y->digest);
	if (order == 0)
		order = strcmp(x->base, y->base);
	return order ? order : strcmp(x->change->path, y->change->path);
}

static int compare_sizes(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
	return x < y ? -1 : x > y;
}

static void add_candidate(struct candidate *list, size_t *n, struct change *one, const char *digest)
{
	const char *slash = strrchr(one->path, '/');
	struct candidate *k = &list[(*n)++];
	*k = (struct candidate){ .change = one, .base = slash ? slash + 1 : one->path };
	memcpy(k->digest, digest, sizeof(k->digest));
}

static bool digest_deleted(int lower_fd, struct change *one, char out[DIGEST_HEX_SIZE])
{
	struct stat st;
	const char *name;
	cleanup_fd int parent = tree_open_parent(lower_fd, one->path, &name);
	cleanup_fd int fd = parent < 0 ? -1 : tree_open_entry(parent, name, FILE_REGULAR, false);
	return fd >= 0 && fstat(fd, &st) == 0 && (uint64_t)st.st_size == one->size_before &&
	       content_digest(fd, content_is_sparse(&st), out) == 0;
}

static size_t find_added(struct changes *c, struct candidate *list, uint64_t *sizes)
{
	size_t n = 0;
	for (size_t i = 0; i < c->n; i++) {
		struct change *one = &c->items[i];
		if (one->kind != CHANGE_ADDED || one->after != FILE_REGULAR || one->size_after == 0)
			continue;
		sizes[n] = one->size_after;
		add_candidate(list, &n, one, one->digest);
	}
	if (n > 1) {
		qsort(list, n, sizeof(*list), compare_candidates);
		qsort(sizes, n, sizeof(*sizes), compare_sizes);
	}
	return n;
}

/* Only deleted files that have the size of an added one are read. */
static size_t find_deleted(struct changes *c, int lower_fd, struct candidate *list, const uint64_t *sizes, size_t n_sizes)
{
	size_t n = 0;
	for (size_t i = 0; i < c->n; i++) {
		struct change *one = &c->items[i];
		char digest[DIGEST_HEX_SIZE];
		if (one->kind != CHANGE_DELETED || one->before != FILE_REGULAR || one->size_before == 0 ||
			!bsearch(&one->size_before, sizes, n_sizes, sizeof(*sizes), compare_sizes))
			continue;
		if (digest_deleted(lower_fd, one, digest))
			add_candidate(list, &n, one, digest);
	}
	if (n > 1)
		qsort(list, n, sizeof(*list), compare_candidates);
	return n;
}

/* The added item becomes the rename; the deleted one is emptied, to be dropped. */
static void join(struct candidate *gone, struct candidate *come, const struct facts *facts)
{
	struct change *from = gone->change, *to = come->change;
	gone->taken = come->taken = true;
	to->kind = CHANGE_RENAMED;
	to->from = mem_steal(&from->path);
	to->before = from->before;
	to->mode_before = from->mode_before;
	to->size_before = from->size_before;
	to->orig_exists = from->orig_exists;
	to->orig_ino = from->orig_ino;
	to->orig_size = from->orig_size;
	to->orig_mtime_ns = from->orig_mtime_ns;
	to->orig_ctime_ns = from->orig_ctime_ns;
	memcpy(to->orig_digest, from->orig_digest, sizeof(to->orig_digest));
	/* An executable that moved didn't become one. */
	to->flags = change_flags(to, facts) | (from->flags & CHANGE_FLAG_ORIGINAL_CHANGED);
	change_done(from);
}

/* Both lists are sorted by content, then last name. */
static void pair_up(
	struct candidate *gone, size_t n_gone, struct candidate *come, size_t n_come, bool same_name, const struct facts *facts)
{
	size_t i = 0, k = 0;
	while (i < n_gone && k < n_come) {
		if (gone[i].taken || come[k].taken) {
			i += gone[i].taken;
			k += come[k].taken;
			continue;
		}
		int order = strcmp(gone[i].digest, come[k].digest);
		if (order == 0 && same_name)
			order = strcmp(gone[i].base, come[k].base);
		if (order == 0)
			join(&gone[i], &come[k], facts);
		i += order <= 0;
		k += order >= 0;
	}
}

static void drop_emptied(struct changes *c)
{
	size_t n = 0;
	for (size_t i = 0; i < c->n; i++)
		if (c->items[i].path)
			c->items[n++] = c->items[i];
	c->n = n;
}

void renames_find(struct changes *c, int lower_fd, const struct facts *facts)
{
	if (c->n == 0)
		return;
	cleanup_free struct candidate *come = mem_alloc_array(c->n, sizeof(*come));
	cleanup_free uint64_t *sizes = mem_alloc_array(c->n, sizeof(*sizes));
	size_t n_come = find_added(c, come, sizes);
	if (n_come == 0)
		return;
	cleanup_free struct candidate *gone = mem_alloc_array(c->n, sizeof(*gone));
	size_t n_gone = find_deleted(c, lower_fd, gone, sizes, n_come);
	pair_up(gone, n_gone, come, n_come, true, facts);
	pair_up(gone, n_gone, come, n_come, false, facts);
	drop_emptied(c);
}
