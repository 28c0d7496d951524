/* SPDX-License-Identifier: Apache-2.0 */
/* One sandbox's folder: begun, found again, ended, removed. */
#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/fd.h"
#include "base/mem.h"
#include "store/internal.h"

#define PREFIX_MIN 3u
#define NAMED_MAX 5u /* candidates named when a prefix is ambiguous */

int sandbox_folder_open(const struct state *s, const char *id)
{
	char path[ENTRY_PATH_MAX];
	return path_open_beneath(s->fd, entry_path(SANDBOXES_FOLDER, id, path), O_RDONLY | O_DIRECTORY, 0);
}

static struct sandbox_dir *dir_new(const char *id)
{
	struct sandbox_dir *d = mem_alloc(sizeof(*d));
	d->fd = d->lock_fd = -1;
	snprintf(d->id, sizeof(d->id), "%s", id);
	return d;
}

struct sandbox_dir *sandbox_dir_free(struct sandbox_dir *d)
{
	if (!d)
		return NULL;
	fd_close(&d->fd);
	fd_close(&d->lock_fd);
	return mem_free(d);
}

int sandbox_dir_fd(const struct sandbox_dir *d)
{
	return d->fd;
}

const char *sandbox_dir_id(const struct sandbox_dir *d)
{
	return d->id;
}

/* An open file description lock: it dies with its owner, isn't lost when another descriptor of the file is closed, and can be
 * looked at without being taken. */
static struct flock whole_file(void)
{
	return (struct flock){ .l_type = F_WRLCK, .l_whence = SEEK_SET };
}

static int take_lock(struct sandbox_dir *d, struct err *err)
{
	struct flock lock = whole_file();
	d->lock_fd = openat(d->fd, LOCK_FILE, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK, 0600);
	if (d->lock_fd < 0)
		return err_sys(err, errno, "cannot open the lock of sandbox %s", d->id);
	if (fcntl(d->lock_fd, F_OFD_SETLK, &lock) == 0)
		return 0;
	return errno == EAGAIN || errno == EACCES
		       ? err_set(err, ERR_CONFLICT, "sandbox %s is in use: it still runs, or another command works on it; try again when that has ended", d->id)
		       : err_sys(err, errno, "cannot lock sandbox %s", d->id);
}

/* ---- begin ---- */

static int put_live_entry(struct state *s, const char *id)
{
	char path[ENTRY_PATH_MAX];
	cleanup_fd int fd =
		openat(s->fd, entry_path(LIVE_FOLDER, id, path), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
	return fd < 0 ? -errno : 0;
}

static int make_folder(struct state *s, struct sandbox_dir *d, struct err *err)
{
	char path[ENTRY_PATH_MAX];
	entry_path(SANDBOXES_FOLDER, d->id, path);
	if (mkdirat(s->fd, path, 0700) < 0)
		return err_sys(err, errno, "cannot create %s/%s", s->path, path);
	d->fd = openat(s->fd, path, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
	return d->fd < 0 ? err_sys(err, errno, "cannot open %s/%s", s->path, path) : take_lock(d, err);
}

static int begin(struct state *s, struct sandbox_dir *d, struct err *err)
{
	int r = put_live_entry(s, d->id);
	if (r == -ENOENT) {
		if (state_make_folders(s, err) < 0)
			return -1;
		r = put_live_entry(s, d->id);
	}
	if (r < 0)
		return err_sys(err, -r, "cannot create %s/" LIVE_FOLDER "/%s", s->path, d->id);
	return make_folder(s, d, err);
}

int state_sandbox_create(struct state *s, const char *id, struct sandbox_dir **ret, struct err *err)
{
	if (!sandbox_id_valid(id))
		return err_set(err, ERR_INVALID, "\"%.40s\" is no sandbox id", id);
	/* Keeps others from judging the live entry before its lock is taken. */
	while (flock(s->fd, LOCK_SH) < 0)
		if (errno != EINTR)
			return err_sys(err, errno, "cannot lock the state folder %s", s->path);
	struct sandbox_dir *d = dir_new(id);
	int r = begin(s, d, err);
	flock(s->fd, LOCK_UN);
	if (r < 0) {
		sandbox_dir_free(d);
		return -1;
	}
	*ret = d;
	return 0;
}

/* ---- find again ---- */

struct search {
	const char *prefix;
	char found[SANDBOX_ID_LEN + 1];
	unsigned n;
	struct buf names;
};

static int match_prefix(void *ctx, const char *id)
{
	struct search *f = ctx;
	if (!str_starts(id, f->prefix))
		return 0;
	memcpy(f->found, id, sizeof(f->found));
	if (f->n++ < NAMED_MAX)
		buf_printf(&f->names, "%s%s", f->n > 1 ? ", " : "", id);
	return 0;
}

static bool prefix_valid(const char *s)
{
	size_t len = strlen(s);
	for (const char *c = s; *c; c++)
		if (!islower((unsigned char)*c) && !isdigit((unsigned char)*c))
			return false;
	return len >= PREFIX_MIN && len <= SANDBOX_ID_LEN;
}

static int find_id(struct state *s, const char *prefix, char ret[SANDBOX_ID_LEN + 1], struct err *err)
{
	if (!prefix_valid(prefix))
		return err_set(err, ERR_USAGE,
			"\"%.40s\" is no sandbox id: give at least its first %u letters and digits; `bulkhead ls --all` lists "
			"them",
			prefix, PREFIX_MIN);
	struct search f = { .prefix = prefix };
	buf_init(&f.names, 256);
	int r = state_each_id(s, SANDBOXES_FOLDER, match_prefix, &f, err);
	if (r == 0 && f.n == 0)
		r = err_set(
			err, ERR_NOT_FOUND, "there is no sandbox %s in %s; `bulkhead ls --all` lists them", prefix, s->path);
	else if (r == 0 && f.n > 1)
		r = err_set(err, ERR_USAGE, "%s could be %u sandboxes (%.*s%s); give more of the id", prefix, f.n,
			(int)f.names.len, (const char *)f.names.data, f.n > NAMED_MAX ? ", …" : "");
	buf_free(&f.names);
	if (r == 0)
		memcpy(ret, f.found, sizeof(f.found));
	return r;
}

int state_sandbox_open(struct state *s, const char *id_or_prefix, bool lock, struct sandbox_dir **ret, struct err *err)
{
	char id[SANDBOX_ID_LEN + 1];
	int fd = sandbox_id_valid(id_or_prefix) ? sandbox_folder_open(s, id_or_prefix) : -ENOENT;
	if (fd == -ENOENT) {
		if (find_id(s, id_or_prefix, id, err) < 0)
			return -1;
		fd = sandbox_folder_open(s, id);
	} else {
		snprintf(id, sizeof(id), "%s", id_or_prefix);
	}
	if (fd < 0)
		return err_sys(err, -fd, "cannot open the folder of sandbox %s", id);
	struct sandbox_dir *d = dir_new(id);
	d->fd = fd;
	if (lock && take_lock(d, err) < 0) {
		sandbox_dir_free(d);
		return -1;
	}
	*ret = d;
	return 0;
}

int state_sandbox_held(struct state *s, const char *id, struct err *err)
{
	char path[ENTRY_PATH_MAX + sizeof(LOCK_FILE) + 1];
	snprintf(path, sizeof(path), SANDBOXES_FOLDER "/%s/" LOCK_FILE, id);
	cleanup_fd int fd = path_open_beneath(s->fd, path, O_RDONLY | O_NONBLOCK, 0);
	if (fd == -ENOENT)
		return 0;
	if (fd < 0)
		return err_sys(err, -fd, "cannot open the lock of sandbox %s", id);
	struct flock lock = whole_file();
	if (fcntl(fd, F_OFD_GETLK, &lock) < 0)
		return err_sys(err, errno, "cannot look at the lock of sandbox %s", id);
	return lock.l_type != F_UNLCK;
}

/* ---- end ---- */

int state_live_remove(struct state *s, const char *id, struct err *err)
{
	char path[ENTRY_PATH_MAX];
	if (unlinkat(s->fd, entry_path(LIVE_FOLDER, id, path), 0) < 0 && errno != ENOENT)
		return err_sys(err, errno, "cannot remove %s/%s", s->path, path);
	return 0;
}

bool state_is_live(const struct state *s, const char *id)
{
	char path[ENTRY_PATH_MAX];
	struct stat st;
	return fstatat(s->fd, entry_path(LIVE_FOLDER, id, path), &st, AT_SYMLINK_NOFOLLOW) == 0;
}

int state_sandbox_ended(struct state *s, struct sandbox_dir *d, struct err *err)
{
	return state_live_remove(s, d->id, err);
}

int state_sandbox_remove(struct state *s, const char *id, struct err *err)
{
	char path[ENTRY_PATH_MAX];
	struct sandbox_dir *d;
	if (state_sandbox_open(s, id, true, &d, err) < 0)
		return -1;
	entry_path(SANDBOXES_FOLDER, d->id, path);
	int r = state_is_live(s, d->id)
			? err_set(err, ERR_CONFLICT, "sandbox %s has not been cleaned up yet; run `bulkhead gc`", d->id)
			: 0;
	if (r == 0) {
		r = path_remove_tree(s->fd, path);
		if (r < 0)
			err_sys(err, -r, "cannot remove %s/%s", s->path, path);
	}
	sandbox_dir_free(d);
	return r < 0 ? -1 : 0;
}
