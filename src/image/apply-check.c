/* SPDX-License-Identifier: Apache-2.0 */
#include "image/apply.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>

#include "base/fd.h"
#include "base/mem.h"
#include "image/content.h"
#include "image/list.h"
#include "image/save.h"
#include "image/tree.h"

/* Another name of the same file went or came, or the file was changed and put back: only the content can tell. */
static bool same_original_content(const struct change *one, int parent, const char *name, const struct stat *st)
{
	char digest[DIGEST_HEX_SIZE];
	cleanup_fd int fd = one->orig_digest[0] ? tree_open_entry(parent, name, FILE_REGULAR, false) : -1;
	return fd >= 0 && content_digest(fd, content_is_sparse(st), digest) == 0 && str_eq(digest, one->orig_digest);
}

bool original_is_unchanged(const struct change *one, int parent, const char *name, const struct stat *st, bool moved)
{
	if (tree_kind(st) != one->before)
		return false;
	if (one->before == FILE_FOLDER)
		return one->kind != CHANGE_MODE || (st->st_mode & 07777) == one->mode_before ||
		       (st->st_mode & 07777) == (one->mode_after | 0700); /* ours, interrupted */
	if ((uint64_t)st->st_size != one->orig_size || (one->before != FILE_LINK && (st->st_mode & 07777) != one->mode_before))
		return false;
	bool same_file = st->st_ino == one->orig_ino && tree_time_ns(&st->st_mtim) == one->orig_mtime_ns &&
			 (moved || tree_time_ns(&st->st_ctim) == one->orig_ctime_ns);
	return same_file || same_original_content(one, parent, name, st);
}

static bool content_is_stored(const struct apply *a, const struct change *one, int parent, const char *name)
{
	cleanup_fd int now = tree_open_entry(parent, name, FILE_REGULAR, false);
	cleanup_fd int stored = now < 0 ? -1 : stored_open(a->dirfd, a->name, one, NULL);
	return stored >= 0 && content_equal(now, stored) == 1;
}

bool original_is_as_wanted(const struct apply *a, const struct change *one, int parent, const char *name, const struct stat *st)
{
	if (tree_kind(st) != one->after)
		return false;
	bool same_mode = (st->st_mode & 07777) == one->mode_after;
	if (one->kind == CHANGE_MODE)
		return same_mode &&
		       (one->after == FILE_FOLDER || (st->st_ino == one->orig_ino && (uint64_t)st->st_size == one->orig_size) ||
			       same_original_content(one, parent, name, st));
	if (one->after == FILE_FOLDER)
		return true; /* its mode is set in any case */
	if (one->after == FILE_LINK) {
		cleanup_free char *target = tree_read_link(parent, name);
		return target && str_eq(target, one->link_after);
	}
	return one->after == FILE_REGULAR && same_mode && (uint64_t)st->st_size == one->size_after &&
	       content_is_stored(a, one, parent, name);
}

static int compare_gone(const void *x, const void *y)
{
	return strcmp(((const struct gone *)x)->path, ((const struct gone *)y)->path);
}

static void list_gone(struct apply *a)
{
	a->gone = mem_alloc_array(a->c->n + 1, sizeof(*a->gone));
	for (size_t i = 0; i < a->c->n; i++) {
		const struct change *one = &a->c->items[i];
		if (apply_chosen(a, i) && (one->kind == CHANGE_DELETED || one->from))
			a->gone[a->n_gone++] = (struct gone){ one->from ? one->from : one->path, i };
	}
	if (a->n_gone > 1)
		qsort(a->gone, a->n_gone, sizeof(*a->gone), compare_gone);
}

/* Everything in the folder is ours to take away: nothing appeared since. 1, 0 or -errno. */
static int holds_only_gone(const struct apply *a, const char *path, int parent, const char *name)
{
	struct names names;
	cleanup_fd int fd = tree_open_entry(parent, name, FILE_FOLDER, false);
	int r = fd < 0 ? fd : tree_names(fd, &names);
	if (r < 0)
		return r == -ENOENT || r == -ESTALE ? 0 : r;
	r = 1;
	for (size_t i = 0; i < names.n && r; i++) {
		cleanup_free char *child = path_join(path, names.items[i]);
		struct gone key = { child, 0 };
		r = apply_is_temp_name(a, names.items[i]) ||
		    (a->n_gone > 0 && bsearch(&key, a->gone, a->n_gone, sizeof(key), compare_gone));
	}
	names_done(&names);
	return r;
}

struct makers { const struct apply *a; bool found; };

static void note_if_maker(void *ctx, size_t item)
{
	struct makers *m = ctx;
	if (apply_chosen(m->a, item) && change_makes_folder(&m->a->c->items[item]))
		m->found = true;
}

/* The folder isn't there, but will be. */
static bool parent_will_be_made(const struct apply *a, const char *path)
{
	struct makers m = { a, false };
	apply_each_ancestor(a, path, note_if_maker, &m);
	return m.found;
}

static bool is_missing(int r)
{
	return r == -ENOENT || r == -ENOTDIR || r == -ELOOP;
}

/* The old path of a deletion or rename. */
static int check_gone(const struct apply *a, const struct change *one, const char *path, enum item_state *ret)
{
	struct stat st;
	enum file_kind kind;
	const char *name;
	cleanup_fd int parent = tree_open_parent(a->original, path, &name);
	*ret = ITEM_ALREADY;
	if (parent < 0)
		return is_missing(parent) ? 0 : parent;
	int r = tree_stat(parent, name, &st, &kind);
	if (r < 0 || kind == FILE_NONE)
		return r;
	*ret = ITEM_CONFLICT;
	if ((one->flags & CHANGE_FLAG_ORIGINAL_CHANGED) || !original_is_unchanged(one, parent, name, &st, false))
		return 0;
	r = one->before == FILE_FOLDER ? holds_only_gone(a, path, parent, name) : 1;
	if (r > 0)
		*ret = ITEM_TODO;
	return r < 0 ? r : 0;
}

/* The path of everything else: made, replaced, or given another mode. */
static int check_made(const struct apply *a, const struct change *one, enum item_state *ret)
{
	struct stat st;
	enum file_kind kind;
	const char *name;
	cleanup_fd int parent = tree_open_parent(a->original, one->path, &name);
	bool new_here = one->kind == CHANGE_ADDED || one->kind == CHANGE_RENAMED;
	*ret = ITEM_CONFLICT;
	if (parent < 0 && !is_missing(parent))
		return parent;
	if (parent < 0) {
		if (new_here && parent_will_be_made(a, one->path))
			*ret = ITEM_TODO;
		return 0;
	}
	int r = tree_stat(parent, name, &st, &kind);
	if (r < 0)
		return r;
	if (kind == FILE_NONE) {
		/* Killed between taking the old kind away and making the new one: the old one is gone, and it was checked then.
		 */
		*ret = new_here || (one->kind == CHANGE_TYPE && (one->before == FILE_FOLDER || one->after == FILE_FOLDER))
			       ? ITEM_TODO
			       : ITEM_CONFLICT;
		return 0;
	}
	if (original_is_as_wanted(a, one, parent, name, &st)) {
		*ret = ITEM_ALREADY;
		return 0;
	}
	if (new_here || (one->flags & CHANGE_FLAG_ORIGINAL_CHANGED) || !original_is_unchanged(one, parent, name, &st, false))
		return 0;
	r = change_removes_folder(one) ? holds_only_gone(a, one->path, parent, name) : 1;
	if (r > 0)
		*ret = ITEM_TODO;
	return r < 0 ? r : 0;
}

static int check_item(const struct apply *a, const struct change *one, enum item_state *ret)
{
	enum item_state old = ITEM_ALREADY;
	int r = 0;
	if (one->kind == CHANGE_DELETED)
		return check_gone(a, one, one->path, ret);
	if (one->from)
		r = check_gone(a, one, one->from, &old);
	if (r == 0)
		r = check_made(a, one, ret);
	if (old == ITEM_CONFLICT || (old == ITEM_TODO && *ret == ITEM_ALREADY))
		*ret = old;
	return r;
}

int apply_check(struct apply *a, struct err *err)
{
	list_gone(a);
	for (size_t i = 0; i < a->c->n; i++) {
		enum item_state state = ITEM_TODO;
		if (a->state[i] != ITEM_TODO)
			continue;
		int r = check_item(a, &a->c->items[i], &state);
		if (r < 0) {
			cleanup_free char *quoted = change_path_quote("", a->c->items[i].path);
			return err_sys(err, -r, "cannot look at the original of %s", quoted);
		}
		a->state[i] = state;
	}
	return 0;
}
