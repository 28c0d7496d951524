/* SPDX-License-Identifier: Apache-2.0 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/mem.h"
#include "isolate/common/copy-tree.h"

#define DEPTH_MAX 128
#define CHUNK (1u << 20)

struct copy {
	const struct id_map *uids, *gids; /* NULL: owners are not kept */
	dev_t dev;
};

static uint32_t map_id(const struct id_map *m, uint32_t id)
{
	uint32_t last = 0;
	for (size_t i = 0; i < m->n; i++) {
		const struct id_range *r = &m->ranges[i];
		if (id >= r->inside && id - r->inside < r->count)
			return r->outside + (id - r->inside);
		if (r->outside + r->count - 1 > last)
			last = r->outside + r->count - 1;
	}
	return last;
}

static int failed(int sys, const char *name, struct err *err)
{
	if (sys == ENOSPC)
		return err_set(err, ERR_LIMIT,
			"the folder doesn't fit into the sandbox's disk limit (this kernel can't show it otherwise, so it has "
			"to be copied); "
			"raise the limit with --disk, or name a smaller folder");
	return err_sys(err, sys, "can't copy \"%.200s\" into the box", name);
}

static int set_owner(const struct copy *c, int dir_fd, const char *name, const struct stat *st)
{
	if (!c->uids)
		return 0;
	return fchownat(dir_fd, name, map_id(c->uids, st->st_uid), map_id(c->gids, st->st_gid), AT_EMPTY_PATH | AT_SYMLINK_NOFOLLOW);
}

/* Mode after owner: changing the owner clears set-id bits. */
static int set_attributes(const struct copy *c, int fd, const struct stat *st)
{
	const struct timespec times[] = { st->st_atim, st->st_mtim };
	if (set_owner(c, fd, "", st) < 0 || fchmod(fd, st->st_mode & 07777) < 0 || futimens(fd, times) < 0)
		return -errno;
	return 0;
}

static int copy_bytes(int from, int to)
{
	ssize_t n;
	while ((n = sendfile(to, from, NULL, CHUNK)) > 0)
		;
	return n < 0 ? -errno : 0;
}

static int copy_file(const struct copy *c, int src, int dst, const char *name, struct err *err)
{
	struct stat st;
	cleanup_fd int from = openat(src, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
	if (from < 0 || fstat(from, &st) < 0)
		return failed(errno, name, err);
	if (!S_ISREG(st.st_mode)) /* replaced since it was looked at */
		return err_set(err, ERR_CONFLICT, "\"%.200s\" changed while it was being copied; try again", name);
	cleanup_fd int to = openat(dst, name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
	if (to < 0)
		return failed(errno, name, err);
	int r = copy_bytes(from, to);
	if (r == 0)
		r = set_attributes(c, to, &st);
	return r < 0 ? failed(-r, name, err) : 0;
}

static int copy_link(const struct copy *c, int src, int dst, const char *name, const struct stat *st, struct err *err)
{
	char target[PATH_MAX];
	const struct timespec times[] = { st->st_atim, st->st_mtim };
	ssize_t n = readlinkat(src, name, target, sizeof(target) - 1);
	target[n > 0 ? n : 0] = '\0';
	if (n < 0 || symlinkat(target, dst, name) < 0 || set_owner(c, dst, name, st) < 0 ||
		utimensat(dst, name, times, AT_SYMLINK_NOFOLLOW) < 0)
		return failed(errno, name, err);
	return 0;
}

static int copy_folder(const struct copy *c, int src, int dst, unsigned depth, struct err *err);

static int copy_subfolder(const struct copy *c, int src, int dst, const char *name, unsigned depth, struct err *err)
{
	if (depth == DEPTH_MAX)
		return err_set(err, ERR_LIMIT, "folders are nested more than %u deep, too deep to be copied", DEPTH_MAX);
	int from = openat(src, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (from < 0)
		return failed(errno, name, err);
	cleanup_fd int to =
		mkdirat(dst, name, 0700) < 0 ? -1 : openat(dst, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (to < 0) {
		int saved = errno;
		fd_close(&from);
		return failed(saved, name, err);
	}
	return copy_folder(c, from, to, depth + 1, err);
}

static int copy_entry(const struct copy *c, int src, int dst, const char *name, unsigned depth, struct err *err)
{
	struct stat st;
	if (fstatat(src, name, &st, AT_SYMLINK_NOFOLLOW) < 0)
		return errno == ENOENT ? 0 : failed(errno, name, err);
	if (S_ISREG(st.st_mode))
		return copy_file(c, src, dst, name, err);
	if (S_ISLNK(st.st_mode))
		return copy_link(c, src, dst, name, &st, err);
	return S_ISDIR(st.st_mode) && st.st_dev == c->dev ? copy_subfolder(c, src, dst, name, depth, err) : 0;
}

/* Takes src. The folder's own attributes come last, because its time changes with what is put in. */
static int copy_folder(const struct copy *c, int src, int dst, unsigned depth, struct err *err)
{
	struct stat st;
	DIR *dir = fdopendir(src);
	if (!dir || fstat(src, &st) < 0) {
		int saved = errno;
		if (dir)
			closedir(dir);
		else
			fd_close(&src);
		return failed(saved, ".", err);
	}
	int r = 0;
	for (struct dirent *e; r == 0 && (errno = 0, e = readdir(dir));)
		if (!str_eq(e->d_name, ".") && !str_eq(e->d_name, ".."))
			r = copy_entry(c, src, dst, e->d_name, depth, err);
	if (r == 0 && errno != 0)
		r = failed(errno, ".", err);
	int set = r == 0 ? set_attributes(c, dst, &st) : 0;
	closedir(dir);
	return set < 0 ? failed(-set, ".", err) : r;
}

int copy_tree(int src_dir, int dst_dir, const struct id_map *uids, const struct id_map *gids, struct err *err)
{
	struct copy c = { .uids = uids, .gids = gids };
	struct stat st;
	int src = openat(src_dir, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (src < 0 || fstat(src, &st) < 0)
		return failed(errno, ".", err);
	c.dev = st.st_dev;
	return copy_folder(&c, src, dst_dir, 0, err);
}
