/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Walks the upper folder beside the original. No recursion: a stack of paths, each opened afresh from the roots, so that a tree
 * of any depth needs three descriptors. The box is dead, so the upper folder stands still; the original may change under us at
 * any time.
 */
#include "image/changes.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/openat2.h>
#include <sodium.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/mem.h"
#include "image/content.h"
#include "image/facts.h"
#include "image/flags.h"
#include "image/list.h"
#include "image/rename.h"
#include "image/tree.h"

#define PATH_BYTES_MAX (256u * 1024u * 1024u) /* of all paths together */

/* A folder to be read: on the box's side, on the original's side, or both (then compared). */
struct pending {
	char *path;
	bool upper, lower;
};

/* Digests of files with several names: a million names of one large file are hashed once. */
struct seen {
	ino_t ino;
	dev_t dev;
	char digest[DIGEST_HEX_SIZE];
};

struct collect {
	int upper, lower;
	int64_t started_ns;
	bool whole; /* upper is no overlay's, but a whole copy */
	size_t max, cap;
	struct changes out;
	struct pending *stack;
	size_t depth, stack_cap;
	size_t path_bytes;
	struct facts facts;
	struct seen *seen;
	size_t n_seen, seen_cap; /* open addressing; cap is a power of two */
};

/* One folder being read. */
struct folder {
	const char *path;
	int upper, lower; /* -1: not on this side */
	bool opaque;
};

static int fail_at(struct err *err, int r, const char *doing, const char *path)
{
	cleanup_free char *quoted = change_path_quote("", *path ? path : ".");
	return err_sys(err, -r, "cannot %s %s", doing, quoted);
}

static int push(struct collect *c, char *path, bool upper, bool lower, struct err *err)
{
	if (c->depth == c->stack_cap) {
		c->stack_cap = c->stack_cap ? c->stack_cap * 2 : 64;
		c->stack = mem_grow_array(c->stack, c->stack_cap, sizeof(*c->stack));
	}
	c->path_bytes += strlen(path);
	c->stack[c->depth++] = (struct pending){ path, upper, lower };
	if (c->path_bytes > PATH_BYTES_MAX)
		return err_set(err, ERR_LIMIT,
			"the changed paths are longer than %u MiB together; the run made too deep a tree to be kept: "
			"discard it and run again with another folder",
			PATH_BYTES_MAX >> 20);
	return 0;
}

static char *child_path(const char *folder, const char *name)
{
	return *folder ? path_join(folder, name) : mem_strdup(name);
}

/* The new item, filled with what holds for all kinds. Takes the path. */
static struct change *emit(struct collect *c, char *path, enum change_kind kind, struct err *err)
{
	size_t len = strlen(path);
	c->path_bytes += len;
	if (c->out.n >= c->max || c->path_bytes > PATH_BYTES_MAX || len > TREE_PATH_MAX) {
		mem_free(path);
		err_set(err, ERR_LIMIT,
			"more than %zu files changed, or their paths are too long; nothing is cut short, so nothing is kept: "
			"run again with a higher ceiling or a smaller folder",
			c->max);
		return NULL;
	}
	struct change *one = changes_append(&c->out, &c->cap);
	one->path = path;
	one->kind = kind;
	one->before = one->after = FILE_NONE;
	return one;
}

static void set_before(const struct collect *c, struct change *one, const struct stat *st, enum file_kind kind)
{
	one->before = kind;
	if (kind == FILE_NONE)
		return;
	one->orig_exists = true;
	one->mode_before = st->st_mode & 07777;
	one->size_before = kind == FILE_REGULAR ? (uint64_t)st->st_size : 0;
	one->orig_ino = st->st_ino;
	one->orig_size = (uint64_t)st->st_size;
	one->orig_mtime_ns = tree_time_ns(&st->st_mtim);
	one->orig_ctime_ns = tree_time_ns(&st->st_ctim);
	/* A folder's times change with its entries, which are judged one by one. */
	if (kind != FILE_FOLDER && one->orig_ctime_ns > c->started_ns)
		one->flags |= CHANGE_FLAG_ORIGINAL_CHANGED;
}

static void set_after(struct change *one, const struct stat *st, enum file_kind kind)
{
	one->after = kind;
	one->mode_after = st->st_mode & 07777;
	one->size_after = kind == FILE_REGULAR ? (uint64_t)st->st_size : 0;
	one->mtime_ns = tree_time_ns(&st->st_mtim);
}

static struct seen *seen_slot(struct seen *table, size_t cap, ino_t ino, dev_t dev)
{
	size_t i = (size_t)(ino * 0x9e3779b97f4a7c15u) & (cap - 1);
	while (table[i].digest[0] && (table[i].ino != ino || table[i].dev != dev))
		i = (i + 1) & (cap - 1);
	return &table[i];
}

static void seen_grow(struct collect *c)
{
	size_t cap = c->seen_cap ? c->seen_cap * 2 : 64;
	struct seen *table = mem_alloc_array(cap, sizeof(*table));
	for (size_t i = 0; i < c->seen_cap; i++)
		if (c->seen[i].digest[0])
			*seen_slot(table, cap, c->seen[i].ino, c->seen[i].dev) = c->seen[i];
	mem_free(c->seen);
	c->seen = table;
	c->seen_cap = cap;
}

static int digest_upper(struct collect *c, struct change *one, int fd, struct err *err)
{
	struct stat st;
	struct seen *slot = NULL;
	if (fstat(fd, &st) < 0)
		return fail_at(err, -errno, "look at the changed", one->path);
	one->digest_sparse = content_is_sparse(&st);
	if (st.st_nlink > 1) {
		if (2 * c->n_seen >= c->seen_cap)
			seen_grow(c);
		slot = seen_slot(c->seen, c->seen_cap, st.st_ino, st.st_dev);
		if (slot->digest[0]) {
			memcpy(one->digest, slot->digest, sizeof(one->digest));
			return 0;
		}
	}
	int r = content_digest(fd, one->digest_sparse, one->digest);
	if (r < 0)
		return fail_at(err, r, "read the changed", one->path);
	if (slot) {
		*slot = (struct seen){ .ino = st.st_ino, .dev = st.st_dev };
		memcpy(slot->digest, one->digest, sizeof(slot->digest));
		c->n_seen++;
	}
	return 0;
}

/* What the original held, so that one which was changed and put back is known as unchanged, and a file with several names too, whose ctime changes when another
 * name goes. Not for every deleted file: a whole tree may have been deleted, and would be read for nothing. Unreadable: then times and numbers decide alone. */
static void digest_original(struct change *one, int folder, const char *name, const struct stat *st)
{
	if (one->before != FILE_REGULAR || (st->st_nlink < 2 && one->kind == CHANGE_DELETED))
		return;
	cleanup_fd int fd = tree_open_entry(folder, name, FILE_REGULAR, false);
	if (fd < 0 || content_digest(fd, content_is_sparse(st), one->orig_digest) < 0)
		one->orig_digest[0] = '\0';
}

static void count_bytes(struct collect *c, const struct change *one)
{
	if (one->size_after > UINT64_MAX - c->out.bytes)
		c->out.bytes = UINT64_MAX;
	else
		c->out.bytes += one->size_after;
}

/* Adds what the new state needs beyond modes and sizes: digest or target. */
static int set_content(struct collect *c, struct change *one, const struct folder *f, const char *name, struct err *err)
{
	if (one->after == FILE_LINK) {
		one->link_after = tree_read_link(f->upper, name);
		return one->link_after ? 0 : fail_at(err, -errno, "read the changed link", one->path);
	}
	if (!change_has_content(one))
		return 0;
	cleanup_fd int fd = tree_open_entry(f->upper, name, FILE_REGULAR, true);
	if (fd < 0)
		return fail_at(err, fd, "open the changed", one->path);
	count_bytes(c, one);
	return digest_upper(c, one, fd, err);
}

/* Is this copied-up file still what the original is? 1, 0 or -1. An original that can't be read counts as different. */
static int same_content(const struct folder *f, const char *name, const struct stat *up, const struct stat *low,
	enum file_kind kind, const char *path, struct err *err)
{
	if (kind == FILE_LINK) {
		cleanup_free char *a = tree_read_link(f->upper, name);
		cleanup_free char *b = tree_read_link(f->lower, name);
		return a && b && str_eq(a, b);
	}
	if (kind == FILE_DEVICE)
		return up->st_rdev == low->st_rdev;
	if (kind != FILE_REGULAR)
		return 1;
	if (up->st_size != low->st_size)
		return 0;
	cleanup_fd int a = tree_open_entry(f->upper, name, FILE_REGULAR, true);
	if (a < 0)
		return fail_at(err, a, "open the changed", path);
	cleanup_fd int b = tree_open_entry(f->lower, name, FILE_REGULAR, false);
	int r = b < 0 ? 0 : content_equal(a, b);
	return r < 0 ? fail_at(err, r, "compare with its original the changed", path) : r;
}

static int add_deleted(struct collect *c, const struct folder *f, const char *name, const struct stat *low, enum file_kind kind,
	struct err *err)
{
	char *path = child_path(f->path, name);
	if (kind == FILE_FOLDER && push(c, mem_strdup(path), false, true, err) < 0) {
		mem_free(path);
		return -1;
	}
	struct change *one = emit(c, path, CHANGE_DELETED, err);
	if (!one)
		return -1;
	set_before(c, one, low, kind);
	digest_original(one, f->lower, name, low);
	return 0;
}

static int add_changed(struct collect *c, const struct folder *f, const char *name, enum change_kind kind,
	const struct stat *up, enum file_kind up_kind, const struct stat *low, enum file_kind low_kind, struct err *err)
{
	struct change *one = emit(c, child_path(f->path, name), kind, err);
	if (!one)
		return -1;
	set_before(c, one, low, low_kind);
	set_after(one, up, up_kind);
	if (low_kind != FILE_NONE)
		digest_original(one, f->lower, name, low);
	return set_content(c, one, f, name, err);
}

/* The entry exists on both sides and is of the same kind. */
static int compare_same_kind(struct collect *c, const struct folder *f, const char *name, const struct stat *up,
	const struct stat *low, enum file_kind kind, struct err *err)
{
	cleanup_free char *path = child_path(f->path, name);
	if (kind == FILE_FOLDER && push(c, mem_strdup(path), true, true, err) < 0)
		return -1;
	int same = same_content(f, name, up, low, kind, path, err);
	if (same < 0)
		return -1;
	bool same_mode = kind == FILE_LINK || ((up->st_mode ^ low->st_mode) & 07777) == 0;
	if (same && same_mode)
		return 0;
	return add_changed(c, f, name, same ? CHANGE_MODE : CHANGE_MODIFIED, up, kind, low, kind, err);
}

static int compare_kinds(struct collect *c, const struct folder *f, const char *name, const struct stat *up,
	enum file_kind up_kind, const struct stat *low, enum file_kind low_kind, struct err *err)
{
	bool was_folder = low_kind == FILE_FOLDER, is_folder = up_kind == FILE_FOLDER;
	/* A folder on one side only: all below it was added, or deleted. */
	if ((was_folder || is_folder) && push(c, child_path(f->path, name), is_folder, was_folder, err) < 0)
		return -1;
	return add_changed(c, f, name, low_kind == FILE_NONE ? CHANGE_ADDED : CHANGE_TYPE, up, up_kind, low, low_kind, err);
}

static int visit_upper_entry(struct collect *c, const struct folder *f, const char *name, struct err *err)
{
	struct stat up, low;
	enum file_kind up_kind, low_kind = FILE_NONE;
	int r = tree_stat(f->upper, name, &up, &up_kind);
	if (r == 0 && f->lower >= 0)
		r = tree_stat(f->lower, name, &low, &low_kind);
	if (r < 0)
		return fail_at(err, r, "look at an entry of", f->path);
	if (up_kind == FILE_NONE || tree_is_whiteout(&up))
		return low_kind == FILE_NONE ? 0 : add_deleted(c, f, name, &low, low_kind, err);
	if (up_kind == low_kind)
		return compare_same_kind(c, f, name, &up, &low, up_kind, err);
	return compare_kinds(c, f, name, &up, up_kind, &low, low_kind, err);
}

static bool never_copied(const struct collect *c, const struct folder *f, enum file_kind kind)
{
	return c->whole && f->upper >= 0 && kind != FILE_REGULAR && kind != FILE_FOLDER && kind != FILE_LINK;
}

/* Everything of the original that the box's side doesn't mention, where that counts as deleted. */
static int visit_hidden(struct collect *c, const struct folder *f, const struct names *upper, struct err *err)
{
	struct names lower;
	int r = tree_names(f->lower, &lower);
	if (r < 0)
		return fail_at(err, r, "list the original folder", f->path);
	for (size_t i = 0; i < lower.n && r == 0; i++) {
		struct stat st;
		enum file_kind kind;
		if (names_contain(upper, lower.items[i]))
			continue;
		if (tree_stat(f->lower, lower.items[i], &st, &kind) == 0 && kind != FILE_NONE && !never_copied(c, f, kind))
			r = add_deleted(c, f, lower.items[i], &st, kind, err);
	}
	names_done(&lower);
	return r;
}

static int visit_folder(struct collect *c, const struct folder *f, struct err *err)
{
	struct names upper = { 0 };
	int r = f->upper >= 0 ? tree_names(f->upper, &upper) : 0;
	if (r < 0)
		return fail_at(err, r, "list the changed folder", f->path);
	if (f->upper >= 0)
		facts_visit(&c->facts, f->path, f->upper, f->lower);
	for (size_t i = 0; i < upper.n && r == 0; i++)
		r = visit_upper_entry(c, f, upper.items[i], err);
	if (r == 0 && f->lower >= 0 && (f->upper < 0 || f->opaque))
		r = visit_hidden(c, f, &upper, err);
	names_done(&upper);
	return r;
}

static int open_folder(int root, const char *path, bool widen)
{
	const char *name;
	if (!*path)
		return tree_open_entry(root, ".", FILE_FOLDER, widen);
	cleanup_fd int parent = tree_open_parent(root, path, &name);
	return parent < 0 ? parent : tree_open_entry(parent, name, FILE_FOLDER, widen);
}

static bool is_gone(int r)
{
	return r == -ENOENT || r == -ESTALE || r == -ENOTDIR || r == -ELOOP;
}

static int visit(struct collect *c, const struct pending *p, struct err *err)
{
	cleanup_fd int upper = p->upper ? open_folder(c->upper, p->path, true) : -1;
	cleanup_fd int lower = p->lower ? open_folder(c->lower, p->path, false) : -1;
	if (p->upper && upper < 0)
		return fail_at(err, upper, "open the changed folder", p->path);
	if (p->lower && lower < 0 && !is_gone(lower))
		return fail_at(err, lower, "open the original folder", p->path);
	struct folder f = { p->path, upper, lower < 0 ? -1 : lower, upper >= 0 && (c->whole || tree_is_opaque(upper)) };
	return visit_folder(c, &f, err);
}

static int visit_all(struct collect *c, struct err *err)
{
	int r = push(c, mem_strdup(""), true, true, err);
	while (r == 0 && c->depth > 0) {
		struct pending p = c->stack[--c->depth];
		c->path_bytes -= strlen(p.path);
		r = visit(c, &p, err);
		mem_free(p.path);
	}
	return r;
}

static int compare_changes(const void *a, const void *b)
{
	return strcmp(((const struct change *)a)->path, ((const struct change *)b)->path);
}

/* The target is harmless by its text, but a link of the original on its way may lead out. */
static void check_link(int lower, struct change *one)
{
	const char *slash = strrchr(one->path, '/');
	if (one->after != FILE_LINK || !one->link_after || (one->flags & CHANGE_FLAG_ESCAPING_LINK) ||
		strlen(one->path) > PATH_MAX / 2)
		return;
	cleanup_free char *folder = mem_strndup(one->path, slash ? (size_t)(slash - one->path) : 0);
	cleanup_free char *target = facts_resolve(folder, one->link_after);
	if (!target || !*target)
		return;
	struct open_how how = { .flags = O_PATH | O_CLOEXEC, .resolve = RESOLVE_BENEATH | RESOLVE_NO_MAGICLINKS };
	cleanup_fd int fd = (int)syscall(SYS_openat2, lower, target, &how, sizeof(how));
	if (fd < 0 && errno == EXDEV)
		one->flags |= CHANGE_FLAG_ESCAPING_LINK;
}

static void finish(struct collect *c)
{
	for (size_t i = 0; i < c->out.n; i++) {
		c->out.items[i].flags |= change_flags(&c->out.items[i], &c->facts);
		check_link(c->lower, &c->out.items[i]);
	}
	if (c->out.n > 1)
		qsort(c->out.items, c->out.n, sizeof(*c->out.items), compare_changes);
	renames_find(&c->out, c->lower, &c->facts);
	randombytes_buf(&c->out.nonce, sizeof(c->out.nonce));
}

static int run(struct collect *c, struct changes *ret, struct err *err)
{
	if (sodium_init() < 0)
		return err_set(err, ERR_SYSTEM, "libsodium cannot start: the kernel gives no random numbers");
	int r = visit_all(c, err);
	if (r == 0)
		finish(c);
	while (c->depth > 0)
		mem_free(c->stack[--c->depth].path);
	mem_free(c->stack);
	mem_free(c->seen);
	facts_done(&c->facts);
	if (r == 0)
		*ret = c->out;
	else
		changes_done(&c->out);
	return r;
}

int changes_collect(
	int upper_fd, int lower_fd, const char *source, uint64_t started_realtime_ns, size_t max_items, struct changes *ret,
	struct err *err)
{
	struct collect c = {
		.upper = upper_fd, .lower = lower_fd, .started_ns = (int64_t)started_realtime_ns, .max = max_items,
		.facts.source = source
	};
	return run(&c, ret, err);
}

int changes_collect_whole(
	int copy_fd, int original_fd, const char *source, uint64_t started_realtime_ns, size_t max_items, struct changes *ret,
	struct err *err)
{
	struct collect c = {
		.upper = copy_fd, .lower = original_fd, .started_ns = (int64_t)started_realtime_ns, .whole = true,
		.max = max_items, .facts.source = source
	};
	return run(&c, ret, err);
}
