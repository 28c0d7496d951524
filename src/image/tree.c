/* SPDX-License-Identifier: Apache-2.0 */
#include "image/tree.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/sysmacros.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/mem.h"

#define PIECE_MAX 3800u /* below PATH_MAX, whatever the kernel adds */

/* Length of the longest run of whole components in `path` that fits into one piece. Components are at most 255 bytes. */
static size_t piece_length(const char *path)
{
	size_t n = strlen(path);
	if (n <= PIECE_MAX)
		return n;
	n = PIECE_MAX;
	while (n > 0 && path[n] != '/')
		n--;
	return n;
}

int tree_open(int root, const char *path, int flags)
{
	cleanup_fd int at = -1;
	if (!*path) {
		int fd = openat(root, ".", flags | O_CLOEXEC);
		return fd < 0 ? -errno : fd;
	}
	for (;;) {
		size_t n = piece_length(path);
		if (n == 0)
			return -ENAMETOOLONG;
		if (path[n] == '\0')
			return path_open_beneath(at >= 0 ? at : root, path, flags, 0);
		char piece[PIECE_MAX + 1];
		memcpy(piece, path, n);
		piece[n] = '\0';
		int next = path_open_beneath(at >= 0 ? at : root, piece, O_PATH | O_DIRECTORY, 0);
		if (next < 0)
			return next;
		fd_close(&at);
		at = next;
		path += n + 1;
	}
}

int tree_open_parent(int root, const char *path, const char **ret_name)
{
	const char *slash = strrchr(path, '/');
	cleanup_free char *folder = mem_strndup(path, slash ? (size_t)(slash - path) : 0);
	int fd = tree_open(root, folder, O_PATH | O_DIRECTORY);
	if (fd >= 0)
		*ret_name = slash ? slash + 1 : path;
	return fd;
}

int tree_chmod(int fd, mode_t mode)
{
	char self[64];
	snprintf(self, sizeof(self), "/proc/self/fd/%d", fd);
	return chmod(self, mode) < 0 ? -errno : 0;
}

static int open_flags(enum file_kind kind)
{
	return kind == FILE_FOLDER ? O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC :
				     O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC;
}

/* Somebody made it unreadable for its owner, who is us: widen the mode by descriptor, having seen what it is. */
static int open_widened(int parent, const char *name, enum file_kind kind)
{
	cleanup_fd int at = openat(parent, name, O_PATH | O_NOFOLLOW | O_CLOEXEC);
	struct stat st;
	if (at < 0 || fstat(at, &st) < 0)
		return -errno;
	if (tree_kind(&st) != kind)
		return -ESTALE;
	int r = tree_chmod(at, (st.st_mode & 07777) | (kind == FILE_FOLDER ? 0700 : 0400));
	if (r < 0)
		return r;
	int fd = openat(parent, name, open_flags(kind));
	return fd < 0 ? -errno : fd;
}

int tree_open_entry(int parent, const char *name, enum file_kind kind, bool widen)
{
	cleanup_fd int fd = openat(parent, name, open_flags(kind));
	struct stat st;
	if (fd < 0 && errno == EACCES && widen)
		fd = open_widened(parent, name, kind);
	else if (fd < 0)
		fd = -errno;
	if (fd < 0)
		return fd == -ELOOP || fd == -ENOTDIR ? -ESTALE : fd;
	if (fstat(fd, &st) < 0)
		return -errno;
	if (tree_kind(&st) != kind)
		return -ESTALE;
	/* Readable but not searchable (mode 0600): names could be listed and nothing opened. */
	if (kind == FILE_FOLDER && widen && (st.st_mode & 0700) != 0700 && geteuid() != 0)
		fchmod(fd, (st.st_mode & 07777) | 0700);
	return fd_steal(&fd);
}

int tree_stat(int parent, const char *name, struct stat *ret, enum file_kind *ret_kind)
{
	if (fstatat(parent, name, ret, AT_SYMLINK_NOFOLLOW) == 0) {
		*ret_kind = tree_kind(ret);
		return 0;
	}
	if (errno != ENOENT)
		return -errno;
	*ret_kind = FILE_NONE;
	return 0;
}

int tree_stat_path(int root, const char *path, struct stat *ret, enum file_kind *ret_kind)
{
	const char *name;
	cleanup_fd int parent = tree_open_parent(root, path, &name);
	if (parent >= 0)
		return tree_stat(parent, name, ret, ret_kind);
	if (parent != -ENOENT && parent != -ENOTDIR && parent != -ELOOP)
		return parent;
	*ret_kind = FILE_NONE;
	return 0;
}

char *tree_read_link(int parent, const char *name)
{
	/* A target is at most PATH_MAX - 1 bytes on Linux. */
	char target[4097];
	ssize_t n = readlinkat(parent, name, target, sizeof(target));
	if (n < 0)
		return NULL;
	if ((size_t)n == sizeof(target)) {
		errno = ENAMETOOLONG;
		return NULL;
	}
	return mem_strndup(target, (size_t)n);
}

enum file_kind tree_kind(const struct stat *st)
{
	switch (st->st_mode & S_IFMT) {
	case S_IFREG:
		return FILE_REGULAR;
	case S_IFDIR:
		return FILE_FOLDER;
	case S_IFLNK:
		return FILE_LINK;
	case S_IFIFO:
		return FILE_FIFO;
	case S_IFSOCK:
		return FILE_SOCKET;
	default:
		return FILE_DEVICE;
	}
}

bool tree_is_whiteout(const struct stat *st)
{
	return S_ISCHR(st->st_mode) && st->st_rdev == makedev(0, 0);
}

bool tree_is_opaque(int fd)
{
	static const char *const names[] = { "trusted.overlay.opaque", "user.overlay.opaque" };
	for (size_t i = 0; i < ARRAY_LEN(names); i++) {
		char value;
		if (fgetxattr(fd, names[i], &value, 1) == 1 && value == 'y')
			return true;
	}
	return false;
}

int64_t tree_time_ns(const struct timespec *t)
{
	return (int64_t)t->tv_sec * 1000000000 + t->tv_nsec;
}

static int compare_names(const void *a, const void *b)
{
	return strcmp(*(char *const *)a, *(char *const *)b);
}

static int read_names(DIR *d, struct names *out)
{
	size_t cap = 0;
	for (;;) {
		errno = 0;
		const struct dirent *e = readdir(d);
		if (!e)
			return -errno;
		if (str_eq(e->d_name, ".") || str_eq(e->d_name, ".."))
			continue;
		if (out->n == cap) {
			cap = cap ? cap * 2 : 32;
			out->items = mem_grow_array(out->items, cap, sizeof(*out->items));
		}
		out->items[out->n++] = mem_strdup(e->d_name);
	}
}

int tree_names(int fd, struct names *ret)
{
	struct names out = { 0 };
	int copy = openat(fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (copy < 0)
		return -errno;
	DIR *d = fdopendir(copy);
	if (!d) {
		close(copy);
		return -ENOMEM;
	}
	int r = read_names(d, &out);
	closedir(d);
	if (r < 0) {
		names_done(&out);
		return r;
	}
	if (out.n > 1)
		qsort(out.items, out.n, sizeof(*out.items), compare_names);
	*ret = out;
	return 0;
}

void names_done(struct names *n)
{
	for (size_t i = 0; i < n->n; i++)
		mem_free(n->items[i]);
	mem_free(n->items);
	*n = (struct names){ 0 };
}

bool names_contain(const struct names *n, const char *name)
{
	return n->n > 0 && bsearch(&name, n->items, n->n, sizeof(*n->items), compare_names) != NULL;
}
