/* SPDX-License-Identifier: Apache-2.0 */
#include "image/changes.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "base/fd.h"
#include "base/mem.h"
#include "image/list.h"
#include "image/patch.h"
#include "image/save.h"
#include "image/text-source.h"
#include "image/tree.h"

struct diff {
	const struct changes *changes;
	int dirfd;
	const char *name;
	int original;
};

/* The old text, as the original is now. Something else there by now: -ESTALE. */
static int load_old(const struct diff *d, const char *path, enum file_kind kind, struct source *ret)
{
	const char *name;
	cleanup_fd int parent = tree_open_parent(d->original, path, &name);
	if (parent < 0)
		return parent;
	if (kind == FILE_LINK) {
		char *target = tree_read_link(parent, name);
		if (!target)
			return errno == EINVAL ? -ESTALE : -errno;
		source_from_text(ret, target);
		return 0;
	}
	int fd = tree_open_entry(parent, name, FILE_REGULAR, false);
	return fd < 0 ? fd : source_from_file(ret, fd);
}

static int load_new(const struct diff *d, const struct change *one, struct source *ret, struct err *err)
{
	if (one->after == FILE_LINK) {
		source_from_text(ret, mem_strdup(one->link_after));
		return 0;
	}
	int fd = stored_open(d->dirfd, d->name, one, err);
	if (fd < 0)
		return -1;
	int r = source_from_file(ret, fd);
	cleanup_free char *quoted = change_path_quote("", one->path);
	return r == 0 ? 0 : err_sys(err, -r, "cannot read the stored content of %s", quoted);
}

static bool has_text(enum file_kind kind)
{
	return kind == FILE_REGULAR || kind == FILE_LINK;
}

/* One "diff --git" section. A NULL path: not on that side. */
struct section {
	const char *old_path, *new_path;
	enum file_kind old_kind, new_kind;
	mode_t old_mode, new_mode;
};

static unsigned git_mode(enum file_kind kind, mode_t mode)
{
	return kind == FILE_LINK ? S_IFLNK : S_IFREG | mode;
}

static void put_names(struct patch *p, const struct section *s)
{
	const char *a = s->old_path ? s->old_path : s->new_path, *b = s->new_path ? s->new_path : s->old_path;
	cleanup_free char *old = change_path_quote("a/", a), *new = change_path_quote("b/", b);
	patch_line(p, PATCH_HEAD, "diff --git %s %s", old, new);
	unsigned old_mode = git_mode(s->old_kind, s->old_mode), new_mode = git_mode(s->new_kind, s->new_mode);
	if (!s->old_path)
		patch_line(p, PATCH_HEAD, "new file mode %06o", new_mode);
	else if (!s->new_path)
		patch_line(p, PATCH_HEAD, "deleted file mode %06o", old_mode);
	else if (old_mode != new_mode)
		patch_line(p, PATCH_HEAD, "old mode %06o\nnew mode %06o", old_mode, new_mode);
	if (s->old_path && s->new_path && !str_eq(a, b)) {
		cleanup_free char *from = change_path_quote("", a), *to = change_path_quote("", b);
		patch_line(p, PATCH_HEAD, "similarity index 100%%\nrename from %s\nrename to %s", from, to);
	}
}

/* A name with a space ends with a tab, as git writes it: else a reader might take what follows for a time. */
static void put_side_name(struct patch *p, const char *sign, const char *prefix, const char *path)
{
	cleanup_free char *quoted = path ? change_path_quote(prefix, path) : mem_strdup("/dev/null");
	patch_line(p, PATCH_HEAD, "%s %s%s", sign, quoted, path && *quoted != '"' && strchr(quoted, ' ') ? "\t" : "");
}

static bool same_bytes(const struct source *a, const struct source *b)
{
	return a->exists && b->exists && a->text && b->text && a->len == b->len && memcmp(a->text, b->text, a->len) == 0;
}

static bool is_empty(const struct source *s)
{
	return !s->exists || (s->text && s->len == 0);
}

static int put_section(struct patch *p, const struct section *s, struct source *old, struct source *new)
{
	put_names(p, s);
	if (old->binary || new->binary) {
		cleanup_free char *a = s->old_path ? change_path_quote("a/", s->old_path) : mem_strdup("/dev/null");
		cleanup_free char *b = s->new_path ? change_path_quote("b/", s->new_path) : mem_strdup("/dev/null");
		patch_line(p, PATCH_PLAIN, "Binary files %s and %s differ", a, b);
		return 0;
	}
	if (same_bytes(old, new) || (is_empty(old) && is_empty(new)))
		return 0;
	put_side_name(p, "---", "a/", s->old_path);
	put_side_name(p, "+++", "b/", s->new_path);
	return patch_hunks(p, old, new);
}

/* What git's format can't say. */
static void put_plain_note(struct patch *p, const struct change *one)
{
	cleanup_free char *path = change_path_quote("", one->path);
	const char *before = file_kind_name(one->before), *after = file_kind_name(one->after);
	if (one->kind == CHANGE_ADDED && !has_text(one->after))
		patch_line(p, PATCH_NOTE, "# %s added: %s (mode %04o)", after, path, (unsigned)one->mode_after);
	else if (one->kind == CHANGE_DELETED && !has_text(one->before))
		patch_line(p, PATCH_NOTE, "# %s deleted: %s", before, path);
	else if (one->kind == CHANGE_TYPE)
		patch_line(p, PATCH_NOTE, "# %s became %s: %s (mode %04o)", before, after, path, (unsigned)one->mode_after);
	else if (!has_text(one->after) && one->after != FILE_NONE)
		patch_line(p, PATCH_NOTE, "# %s %s: %s (mode %04o, was %04o)", after,
			one->kind == CHANGE_MODE ? "has another mode" : "changed", path, (unsigned)one->mode_after,
			(unsigned)one->mode_before);
}

static void put_flags(struct patch *p, const struct change *one)
{
	cleanup_free char *path = change_path_quote("", one->path);
	for (unsigned bit = 1; bit <= CHANGE_FLAG_ORIGINAL_CHANGED; bit <<= 1) {
		if (!(one->flags & bit))
			continue;
		const char *then =
			bit == CHANGE_FLAG_SPECIAL || !(bit & CHANGE_FLAGS_HELD) ? "" : "; it is applied only when it is named";
		patch_line(p, PATCH_NOTE, "# %s: %s: %s%s", change_flag_name((enum change_flag)bit), path,
			change_flag_reason((enum change_flag)bit), then);
	}
}

/* Texts of both sides, as far as the change has them. */
static int load_sides(
	const struct diff *d, const struct change *one, struct source *old, struct source *new, int *ret_old, struct err *err)
{
	*old = *new = SOURCE_NONE;
	*ret_old = 0;
	bool content = one->kind != CHANGE_MODE && one->kind != CHANGE_RENAMED;
	if (content && has_text(one->before))
		*ret_old = load_old(d, one->path, one->before, old);
	if (content && has_text(one->after) && !(one->flags & CHANGE_FLAG_SPECIAL) && load_new(d, one, new, err) < 0) {
		source_done(old);
		return -1;
	}
	return 0;
}

static int put_texts(struct patch *p, const struct change *one, struct source *old, struct source *new)
{
	struct source none = SOURCE_NONE;
	struct section whole = { one->from ? one->from : one->path, one->path, one->before, one->after, one->mode_before,
		one->mode_after };
	struct section gone = { one->path, NULL, one->before, FILE_NONE, one->mode_before, 0 };
	struct section come = { NULL, one->path, FILE_NONE, one->after, 0, one->mode_after };
	if (has_text(one->before) && one->before == one->after)
		return put_section(p, &whole, old, new);
	int r = has_text(one->before) ? put_section(p, &gone, old, &none) : 0;
	if (r == 0 && has_text(one->after))
		r = put_section(p, &come, &none, new);
	return r;
}

static int put_change(const struct diff *d, struct patch *p, const struct change *one, struct err *err)
{
	struct source old, new;
	int old_error;
	if (load_sides(d, one, &old, &new, &old_error, err) < 0)
		return -1;
	cleanup_free char *path = change_path_quote("", one->path);
	put_flags(p, one);
	put_plain_note(p, one);
	int r = 0;
	if (old_error < 0)
		patch_line(p, PATCH_NOTE,
			"# the original of %s isn't there to be compared any more (%s): its patch is left out", path,
			strerror(-old_error));
	else if (one->after == FILE_REGULAR && (one->flags & CHANGE_FLAG_SPECIAL))
		patch_line(
			p, PATCH_NOTE, "# %s is too large to be shown (%llu bytes)", path, (unsigned long long)one->size_after);
	else
		r = put_texts(p, one, &old, &new);
	source_done(&old);
	source_done(&new);
	return r == 0 ? 0 : err_sys(err, -r, "cannot compare %s", path);
}

int changes_diff(const struct changes *c, int dirfd, const char *name, int original_fd, char *const *paths, unsigned style,
	int (*fn)(void *ctx, const void *data, size_t len), void *ctx, struct err *err)
{
	struct diff d = { c, dirfd, name, original_fd };
	cleanup_free struct patch *p = mem_alloc(sizeof(*p));
	patch_init(p, style, fn, ctx);
	for (size_t i = 0; i < c->n && p->stopped == 0; i++)
		if (change_selected(&c->items[i], paths) && put_change(&d, p, &c->items[i], err) < 0)
			return -1;
	return patch_flush(p);
}

static int stat_change(const struct diff *d, const struct change *one, struct change_stat *ret, struct err *err)
{
	struct source old, new;
	int old_error;
	if (load_sides(d, one, &old, &new, &old_error, err) < 0)
		return -1;
	int r = patch_count(&old, &new, ret);
	source_done(&old);
	source_done(&new);
	return r == 0 ? 0 : err_sys(err, -r, "cannot read a changed file");
}

int changes_stat(const struct changes *c, int dirfd, const char *name, int original_fd, char *const *paths,
	int (*fn)(void *ctx, const struct change *one, const struct change_stat *stat), void *ctx, struct err *err)
{
	struct diff d = { c, dirfd, name, original_fd };
	for (size_t i = 0; i < c->n; i++) {
		struct change_stat stat = { 0 };
		if (!change_selected(&c->items[i], paths))
			continue;
		if (stat_change(&d, &c->items[i], &stat, err) < 0)
			return -1;
		int r = fn(ctx, &c->items[i], &stat);
		if (r != 0)
			return r;
	}
	return 0;
}
