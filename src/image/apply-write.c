/* SPDX-License-Identifier: Apache-2.0 */
#include "image/apply.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/mem.h"
#include "image/content.h"
#include "image/list.h"
#include "image/save.h"
#include "image/tree.h"

void apply_temp_name(const struct apply *a, size_t item, char out[TEMP_NAME_SIZE])
{
	snprintf(out, TEMP_NAME_SIZE, ".bulkhead-%016llx-%zx", (unsigned long long)a->c->nonce, item);
}

bool apply_is_temp_name(const struct apply *a, const char *name)
{
	char prefix[TEMP_NAME_SIZE];
	snprintf(prefix, sizeof(prefix), ".bulkhead-%016llx-", (unsigned long long)a->c->nonce);
	return str_starts(name, prefix);
}

/* One entry of the original that is being changed. */
struct spot {
	const struct apply *a;
	const struct change *one;
	int parent;              /* O_PATH */
	const char *name;
	char temp[TEMP_NAME_SIZE];
	struct stat st;          /* what is there now, when kind isn't FILE_NONE */
	enum file_kind kind;
};

static int changed_meanwhile(struct err *err, const char *path)
{
	cleanup_free char *quoted = change_path_quote("", path);
	return err_set(err, ERR_CONFLICT,
		"%s was changed by somebody else at this moment; it was left as they made it, what came before it is applied: "
		"look at "
		"`bulkhead diff` and apply again",
		quoted);
}

static int fail(struct err *err, int r, const char *doing, const char *path)
{
	cleanup_free char *quoted = change_path_quote("", path);
	return err_sys(
		err, -r, "cannot %s %s (what came before it is applied; the same command goes on from here)", doing, quoted);
}

/* An earlier, killed apply may have left its temporary entry. Before the exchange it is the new state, to be made again; after
 * it (finished) it is the original that came out. Anything else is what somebody wrote in the very moment of the exchange: not
 * ours to remove. */
static void clear_temp(const struct spot *s, bool finished)
{
	struct stat st;
	if (fstatat(s->parent, s->temp, &st, AT_SYMLINK_NOFOLLOW) < 0)
		return;
	if (!finished || original_is_unchanged(s->one, s->parent, s->temp, &st, true))
		unlinkat(s->parent, s->temp, S_ISDIR(st.st_mode) ? AT_REMOVEDIR : 0);
}

static int spot_open(struct spot *s, const struct apply *a, size_t item, const char *path)
{
	*s = (struct spot){ .a = a, .one = &a->c->items[item], .parent = -1 };
	s->parent = tree_open_parent(a->original, path, &s->name);
	if (s->parent < 0)
		return s->parent;
	apply_temp_name(a, item, s->temp);
	return tree_stat(s->parent, s->name, &s->st, &s->kind);
}

static void spot_done(struct spot *s)
{
	fd_close(&s->parent);
}
#define cleanup_spot __attribute__((cleanup(spot_done)))

/* New files belong to whom their folder belongs, changed ones to whom they belonged. Only root can give away; an ordinary user
 * keeps the group where it may. */
static int set_owner(const struct spot *s, int fd)
{
	struct stat parent, own;
	if (fstat(s->parent, &parent) < 0 || fstat(fd, &own) < 0)
		return -errno;
	const struct stat *like = s->kind == FILE_NONE || s->one->kind == CHANGE_ADDED ? &parent : &s->st;
	if (geteuid() == 0)
		return fchown(fd, like->st_uid, like->st_gid) < 0 ? -errno : 0;
	if (like == &s->st && own.st_gid != like->st_gid && fchown(fd, (uid_t)-1, like->st_gid) < 0 && errno != EPERM)
		return -errno;
	return 0;
}

static struct timespec time_from_ns(int64_t ns)
{
	int64_t rest = ns % 1000000000;
	return (struct timespec){ .tv_sec = ns / 1000000000 - (rest < 0), .tv_nsec = rest < 0 ? rest + 1000000000 : rest };
}

static int fill(const struct spot *s, int fd, int from, const char *digest)
{
	const struct timespec times[2] = { { .tv_nsec = UTIME_OMIT }, time_from_ns(s->one->mtime_ns) };
	int r = content_copy(from, fd, digest, s->one->digest_sparse);
	if (r == 0)
		r = set_owner(s, fd);
	/* After the owner: chown takes set-id bits away. */
	if (r == 0 && fchmod(fd, s->one->mode_after) < 0)
		r = -errno;
	if (r == 0 && futimens(fd, times) < 0)
		r = -errno;
	return r;
}

/* A nameless file where the file system can do that: then a kill leaves nothing behind. */
static int open_temp(const struct spot *s, bool *ret_nameless)
{
	int fd = openat(s->parent, ".", O_TMPFILE | O_WRONLY | O_CLOEXEC, 0600);
	*ret_nameless = fd >= 0;
	if (fd < 0 && (errno == EOPNOTSUPP || errno == EISDIR || errno == ENOENT || errno == EINVAL))
		fd = openat(s->parent, s->temp, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
	return fd < 0 ? -errno : fd;
}

static int give_name(const struct spot *s, int fd, const char *name)
{
	char self[64];
	snprintf(self, sizeof(self), "/proc/self/fd/%d", fd);
	return linkat(AT_FDCWD, self, s->parent, name, AT_SYMLINK_FOLLOW) < 0 ? -errno : 0;
}

/* Puts the temporary entry where nothing may be. -EEXIST when there is something after all. */
static int place_new(const struct spot *s)
{
	struct stat st;
	if (renameat2(s->parent, s->temp, s->parent, s->name, RENAME_NOREPLACE) == 0)
		return 0;
	if (errno != EINVAL)
		return -errno;
	/* The file system doesn't know the flag: look, then rename. */
	if (fstatat(s->parent, s->name, &st, AT_SYMLINK_NOFOLLOW) == 0)
		return -EEXIST;
	return renameat(s->parent, s->temp, s->parent, s->name) < 0 ? -errno : 0;
}

/* What lies under the temporary name is what was checked. */
static bool took_the_checked(const struct spot *s)
{
	struct stat st;
	return fstatat(s->parent, s->temp, &st, AT_SYMLINK_NOFOLLOW) == 0 && st.st_ino == s->st.st_ino &&
	       st.st_size == s->st.st_size && st.st_mode == s->st.st_mode &&
	       tree_time_ns(&st.st_mtim) == tree_time_ns(&s->st.st_mtim);
}

/* -ESTALE: somebody changed it; it is back in its place. */
static int place_over(const struct spot *s)
{
	if (renameat2(s->parent, s->temp, s->parent, s->name, RENAME_EXCHANGE) < 0) {
		if (errno != EINVAL)
			return errno == ENOENT ? -ESTALE : -errno;
		struct stat st;
		if (fstatat(s->parent, s->name, &st, AT_SYMLINK_NOFOLLOW) < 0 ||
			tree_time_ns(&st.st_ctim) != tree_time_ns(&s->st.st_ctim))
			return -ESTALE;
		return renameat(s->parent, s->temp, s->parent, s->name) < 0 ? -errno : 0;
	}
	if (!took_the_checked(s)) {
		renameat2(s->parent, s->temp, s->parent, s->name, RENAME_EXCHANGE);
		return -ESTALE;
	}
	return unlinkat(s->parent, s->temp, 0) < 0 ? -errno : 0;
}

static int place(const struct spot *s)
{
	int r = s->kind == FILE_NONE ? place_new(s) : place_over(s);
	if (r < 0)
		unlinkat(s->parent, s->temp, 0);
	return r;
}

static int put_file_from(const struct spot *s, int from, const char *digest)
{
	bool nameless;
	cleanup_fd int fd = open_temp(s, &nameless);
	if (fd < 0)
		return fd;
	int r = fill(s, fd, from, digest);
	if (r == 0 && nameless && s->kind == FILE_NONE)
		return give_name(s, fd, s->name); /* in place at once */
	if (r == 0 && nameless)
		r = give_name(s, fd, s->temp);
	if (r < 0) {
		if (!nameless)
			unlinkat(s->parent, s->temp, 0);
		return r;
	}
	return place(s);
}

static int put_link(const struct spot *s)
{
	const struct timespec times[2] = { { .tv_nsec = UTIME_OMIT }, time_from_ns(s->one->mtime_ns) };
	if (symlinkat(s->one->link_after, s->parent, s->temp) < 0)
		return -errno;
	utimensat(s->parent, s->temp, times, AT_SYMLINK_NOFOLLOW);
	cleanup_fd int fd = openat(s->parent, s->temp, O_PATH | O_NOFOLLOW | O_CLOEXEC);
	struct stat parent;
	if (fd >= 0 && geteuid() == 0 && fstat(s->parent, &parent) == 0) {
		const struct stat *like = s->kind == FILE_NONE ? &parent : &s->st;
		if (fchownat(fd, "", like->st_uid, like->st_gid, AT_EMPTY_PATH) < 0) {
			int r = -errno;
			unlinkat(s->parent, s->temp, 0);
			return r;
		}
	}
	return place(s);
}

/* Complete under the temporary name, but for its mode: that comes last, so that it can be filled. */
static int put_folder(const struct spot *s)
{
	if (mkdirat(s->parent, s->temp, 0700) < 0)
		return -errno;
	cleanup_fd int fd = openat(s->parent, s->temp, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	int r = fd < 0 ? -errno : set_owner(s, fd);
	if (r == 0)
		r = place_new(s);
	if (r < 0)
		unlinkat(s->parent, s->temp, AT_REMOVEDIR);
	return r;
}

/* Moves what is there to the temporary name and looks at it once more before it is dropped. */
static int take_away(const struct spot *s)
{
	if (s->kind == FILE_FOLDER)
		return unlinkat(s->parent, s->name, AT_REMOVEDIR) < 0
			       ? (errno == ENOTEMPTY || errno == EEXIST ? -ESTALE : -errno)
			       : 0;
	if (renameat2(s->parent, s->name, s->parent, s->temp, RENAME_NOREPLACE) < 0) {
		if (errno != EINVAL)
			return -errno;
		return unlinkat(s->parent, s->name, 0) < 0 ? -errno : 0;
	}
	if (!took_the_checked(s)) {
		renameat2(s->parent, s->temp, s->parent, s->name, RENAME_NOREPLACE);
		return -ESTALE;
	}
	return unlinkat(s->parent, s->temp, 0) < 0 ? -errno : 0;
}

static int put_file(struct spot *s, struct err *err)
{
	cleanup_fd int from = stored_open(s->a->dirfd, s->a->name, s->one, err);
	if (from < 0)
		return -1;
	int r = put_file_from(s, from, s->one->digest);
	if (r == -EBADMSG) {
		cleanup_free char *quoted = change_path_quote("", s->one->path);
		return err_set(err, ERR_CORRUPT,
			"the stored content of %s isn't what was saved; it was not applied: discard these changes", quoted);
	}
	if (r == -ESTALE || r == -EEXIST)
		return changed_meanwhile(err, s->one->path);
	return r < 0 ? fail(err, r, "write", s->one->path) : 0;
}

/* A file that has other names keeps its mode under those: this name gets a copy. */
static int put_mode(const struct spot *s)
{
	if (s->kind == FILE_REGULAR && s->st.st_nlink > 1) {
		cleanup_fd int from = tree_open_entry(s->parent, s->name, FILE_REGULAR, false);
		return from < 0 ? from : put_file_from(s, from, NULL);
	}
	cleanup_fd int fd = openat(s->parent, s->name, O_PATH | O_NOFOLLOW | O_CLOEXEC);
	struct stat st;
	if (fd < 0 || fstat(fd, &st) < 0)
		return -errno;
	return st.st_ino == s->st.st_ino ? tree_chmod(fd, s->one->mode_after) : -ESTALE;
}

/* Made, replaced, or given another mode. */
static int write_made(const struct apply *a, size_t item, struct err *err)
{
	cleanup_spot struct spot s;
	const struct change *one = &a->c->items[item];
	int r = spot_open(&s, a, item, one->path);
	if (r < 0)
		return fail(err, r, "open the folder of", one->path);
	clear_temp(&s, false);
	/* Between the check and now somebody may have been here. */
	bool new_here = one->kind == CHANGE_ADDED || one->kind == CHANGE_RENAMED;
	if (s.kind != FILE_NONE && (new_here || !original_is_unchanged(one, s.parent, s.name, &s.st, false)))
		return original_is_as_wanted(a, one, s.parent, s.name, &s.st) ? 0 : changed_meanwhile(err, one->path);
	bool in_the_way = s.kind != FILE_NONE && s.kind != one->after && (s.kind == FILE_FOLDER || one->after == FILE_FOLDER);
	if (in_the_way) {
		r = take_away(&s);
		s.kind = r == 0 ? FILE_NONE : s.kind;
	}
	if (r == 0 && one->kind == CHANGE_MODE)
		r = put_mode(&s);
	else if (r == 0 && one->after == FILE_FOLDER)
		r = put_folder(&s);
	else if (r == 0 && one->after == FILE_LINK)
		r = put_link(&s);
	else if (r == 0)
		return put_file(&s, err);
	if (r == -ESTALE || r == -EEXIST)
		return changed_meanwhile(err, one->path);
	return r < 0 ? fail(err, r, "change", one->path) : 0;
}

/* The folder is going too, so its mode may be widened to get at its entries. */
static int take_away_from_closed(const struct apply *a, struct spot *s, const char *path)
{
	const char *slash = strrchr(path, '/');
	cleanup_free char *folder = mem_strndup(path, slash ? (size_t)(slash - path) : 0);
	struct stat st;
	bool going = false;
	for (size_t i = 0; i < a->n_gone && !going; i++)
		going = str_eq(a->gone[i].path, folder);
	if (!going || fstat(s->parent, &st) < 0)
		return -EACCES;
	int r = tree_chmod(s->parent, (st.st_mode & 07777) | 0700);
	return r < 0 ? r : take_away(s);
}

static int write_gone(const struct apply *a, const struct gone *g, struct err *err)
{
	cleanup_spot struct spot s;
	int r = spot_open(&s, a, g->item, g->path);
	if (r == -ENOENT || r == -ENOTDIR || r == -ELOOP)
		return 0; /* gone with its folder */
	if (r < 0)
		return fail(err, r, "open the folder of", g->path);
	if (s.kind == FILE_NONE) {
		clear_temp(&s, true);
		return 0;
	}
	if (!original_is_unchanged(s.one, s.parent, s.name, &s.st, false))
		return changed_meanwhile(err, g->path);
	r = take_away(&s);
	if (r == -EACCES)
		r = take_away_from_closed(a, &s, g->path);
	if (r == -ESTALE || r == -EEXIST)
		return changed_meanwhile(err, g->path);
	return r < 0 ? fail(err, r, "remove", g->path) : 0;
}

struct replaced { const struct apply *a; bool found; };

static void note_replaced(void *ctx, size_t item)
{
	struct replaced *r = ctx;
	if (apply_chosen(r->a, item) && r->a->c->items[item].kind == CHANGE_TYPE)
		r->found = true;
}

/* Must go first: something else takes the place of a folder above it. */
static bool goes_first(const struct apply *a, const struct gone *g)
{
	struct replaced r = { a, false };
	apply_each_ancestor(a, g->path, note_replaced, &r);
	return r.found;
}

/* In reverse order: what is in a folder before the folder. */
static int write_all_gone(const struct apply *a, bool first, struct err *err)
{
	for (size_t i = a->n_gone; i-- > 0;)
		if (goes_first(a, &a->gone[i]) == first && write_gone(a, &a->gone[i], err) < 0)
			return -1;
	return 0;
}

static int set_folder_mode(const struct apply *a, size_t item, mode_t mode, struct err *err)
{
	const struct change *one = &a->c->items[item];
	cleanup_fd int fd = tree_open(a->original, one->path, O_PATH | O_DIRECTORY);
	int r = fd < 0 ? fd : tree_chmod(fd, mode);
	return r < 0 ? fail(err, r, "set the mode of", one->path) : 0;
}

/* Folders that were opened for the changes below them are opened first; all get their exact modes last, inner ones before outer
 * ones. */
static int open_folders(const struct apply *a, struct err *err)
{
	for (size_t i = 0; i < a->c->n; i++) {
		const struct change *one = &a->c->items[i];
		if (a->state[i] == ITEM_TODO && one->kind == CHANGE_MODE && one->after == FILE_FOLDER &&
			(one->mode_after & 0300) == 0300 && set_folder_mode(a, i, one->mode_after | 0700, err) < 0)
			return -1;
	}
	return 0;
}

static int set_folder_modes(const struct apply *a, struct err *err)
{
	for (size_t i = a->c->n; i-- > 0;) {
		const struct change *one = &a->c->items[i];
		bool folder = one->after == FILE_FOLDER && (change_makes_folder(one) || one->kind == CHANGE_MODE);
		if (apply_chosen(a, i) && folder && set_folder_mode(a, i, one->mode_after, err) < 0)
			return -1;
	}
	return 0;
}

static int write_all_made(const struct apply *a, struct err *err)
{
	for (size_t i = 0; i < a->c->n; i++) {
		const struct change *one = &a->c->items[i];
		bool folder_mode = one->kind == CHANGE_MODE && one->after == FILE_FOLDER;
		if (a->state[i] == ITEM_TODO && one->kind != CHANGE_DELETED && !folder_mode && write_made(a, i, err) < 0)
			return -1;
	}
	return 0;
}

static void clear_leftover(const struct apply *a, size_t item, const char *path)
{
	cleanup_spot struct spot s;
	if (spot_open(&s, a, item, path) == 0)
		clear_temp(&s, true);
}

/* Items that are as wanted may still have the leftovers of a killed apply beside them. */
static void clear_leftovers(const struct apply *a)
{
	for (size_t i = 0; i < a->c->n; i++) {
		if (a->state[i] != ITEM_ALREADY)
			continue;
		clear_leftover(a, i, a->c->items[i].path);
		if (a->c->items[i].from)
			clear_leftover(a, i, a->c->items[i].from);
	}
}

int apply_write(struct apply *a, struct err *err)
{
	clear_leftovers(a);
	if (open_folders(a, err) < 0 || write_all_gone(a, true, err) < 0 || write_all_made(a, err) < 0 ||
		write_all_gone(a, false, err) < 0 || set_folder_modes(a, err) < 0)
		return -1;
	cleanup_fd int root = openat(a->original, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (root >= 0 && syncfs(root) < 0)
		return err_sys(err, errno, "everything is applied, but the disk reports a failure in writing it");
	return 0;
}
