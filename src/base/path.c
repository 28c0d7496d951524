/* SPDX-License-Identifier: Apache-2.0 */
#include "base/fd.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/fs.h>
#include <linux/openat2.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/mem.h"

/* The kernel asks to try again when a rename elsewhere made it unsure about "..": bounded, so that nobody can make us spin. */
#define OPEN_TRIES 64

static int open_resolved(int dirfd, const char *path, int flags, mode_t mode, uint64_t resolve)
{
	bool creates = (flags & O_CREAT) || (flags & O_TMPFILE) == O_TMPFILE;
	struct open_how how = {
		.flags = (uint64_t)(unsigned)flags | O_CLOEXEC,
		.mode = creates ? mode & 07777 : 0,
		.resolve = resolve,
	};
	for (int i = 0; i < OPEN_TRIES; i++) {
		long fd = syscall(SYS_openat2, dirfd, path, &how, sizeof(how));
		if (fd >= 0)
			return (int)fd;
		if (errno != EAGAIN && errno != EINTR)
			break;
	}
	return -errno;
}

/* The next component of a path, moving *rest behind it; 0 at the end. */
static size_t next_component(const char **rest, const char **ret_start)
{
	const char *p = *rest + strspn(*rest, "/");
	size_t len = strcspn(p, "/");
	*ret_start = p;
	*rest = p + len;
	return len;
}

static bool has_dot_dot(const char *path)
{
	const char *start;
	for (size_t len; (len = next_component(&path, &start)) > 0;)
		if (len == 2 && start[0] == '.' && start[1] == '.')
			return true;
	return false;
}

#define RESOLVE_STRICT (RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS)

int path_open_beneath(int dirfd, const char *path, int flags, mode_t mode)
{
	/* RESOLVE_BENEATH alone would let ".." through as long as it stays below. */
	if (has_dot_dot(path))
		return -EXDEV;
	return open_resolved(dirfd, path, flags, mode, RESOLVE_STRICT);
}

int path_open_in_root(int dirfd, const char *path, int flags, mode_t mode)
{
	return open_resolved(dirfd, path, flags, mode, RESOLVE_IN_ROOT | RESOLVE_NO_MAGICLINKS);
}

static int mkdir_and_enter(int dirfd, const char *name, mode_t mode)
{
	if (mkdirat(dirfd, name, mode) < 0 && errno != EEXIST)
		return -errno;
	/* Without O_NOFOLLOW: a link in the way is ELOOP then, and not a vague ENOTDIR. */
	return open_resolved(dirfd, name, O_PATH | O_DIRECTORY, 0, RESOLVE_STRICT);
}

int path_mkdir_beneath(int dirfd, const char *path, mode_t mode)
{
	if (path[0] == '/' || has_dot_dot(path))
		return -EXDEV;
	cleanup_fd int held = -1;
	const char *start;
	for (size_t len; (len = next_component(&path, &start)) > 0;) {
		if (len == 1 && start[0] == '.')
			continue;
		cleanup_free char *name = mem_strndup(start, len);
		int fd = mkdir_and_enter(held >= 0 ? held : dirfd, name, mode);
		if (fd < 0)
			return fd;
		fd_close(&held);
		held = fd;
	}
	return 0;
}

char *path_join(const char *a, const char *b)
{
	return mem_printf("%s/%s", a, b);
}

/*
 * Removing a tree that a stranger built. It may be deeper than any stack or descriptor table: below REMOVE_DEPTH levels a
 * folder is not entered but moved up into the tree's root, where a later pass meets it again.
 */
#define REMOVE_DEPTH 32

struct removal {
	int root;        /* the folder that is being removed */
	unsigned moved;  /* how many folders were moved up, also their new names */
};

static int remove_folder(struct removal *r, int parent, const char *name, unsigned depth);

/* Gives the owner all rights on a folder that can't be opened or changed. Through a descriptor: chmod by name could be led
 * astray. */
static int allow_owner(int parent, const char *name)
{
	cleanup_fd int fd = open_resolved(parent, name, O_PATH | O_DIRECTORY | O_NOFOLLOW, 0, RESOLVE_STRICT | RESOLVE_NO_XDEV);
	if (fd < 0)
		return fd;
	char path[sizeof("/proc/self/fd/") + 12];
	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	return chmod(path, 0700) < 0 ? -errno : 0;
}

static int open_folder(int parent, const char *name)
{
	const int flags = O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_NONBLOCK;
	int fd = open_resolved(parent, name, flags, 0, RESOLVE_STRICT | RESOLVE_NO_XDEV);
	if (fd == -EACCES && allow_owner(parent, name) == 0)
		fd = open_resolved(parent, name, flags, 0, RESOLVE_STRICT | RESOLVE_NO_XDEV);
	return fd;
}

/* Entries can't be removed from a folder that lacks the owner's w or x bit. */
static int make_writable(int fd)
{
	struct stat st;
	if (fstat(fd, &st) < 0)
		return -errno;
	if ((st.st_mode & 0700) == 0700)
		return 0;
	return fchmod(fd, st.st_mode | 0700) < 0 ? -errno : 0;
}

static int move_up(struct removal *r, int parent, const char *name)
{
	/* Changing a folder's ".." needs write permission on it. */
	cleanup_fd int fd = open_folder(parent, name);
	if (fd < 0)
		return fd;
	int error = make_writable(fd);
	if (error < 0)
		return error;
	for (unsigned tries = 0; tries < 1024; tries++) {
		char fresh[32];
		snprintf(fresh, sizeof(fresh), ".removing-%u", r->moved++);
		if (syscall(SYS_renameat2, parent, name, r->root, fresh, RENAME_NOREPLACE) == 0)
			return 0;
		if (errno != EEXIST)
			return -errno;
	}
	return -EEXIST;
}

static int remove_entry(struct removal *r, int parent, const struct dirent *e, unsigned depth)
{
	if (e->d_type != DT_DIR) {
		if (unlinkat(parent, e->d_name, 0) == 0 || errno == ENOENT)
			return 0;
		if (errno != EISDIR)
			return -errno;
	}
	if (depth >= REMOVE_DEPTH)
		return move_up(r, parent, e->d_name);
	return remove_folder(r, parent, e->d_name, depth + 1);
}

/* One pass over a folder. Counts what went away; returns the first failure, after having tried everything else. */
static int remove_entries(struct removal *r, DIR *dir, unsigned depth, unsigned *ret_removed)
{
	int first_error = 0;
	*ret_removed = 0;
	for (struct dirent *e; (e = readdir(dir));) {
		if (str_eq(e->d_name, ".") || str_eq(e->d_name, ".."))
			continue;
		int error = remove_entry(r, dirfd(dir), e, depth);
		if (error == 0)
			(*ret_removed)++;
		else if (first_error == 0)
			first_error = error;
	}
	return first_error;
}

static int remove_folder(struct removal *r, int parent, const char *name, unsigned depth)
{
	if (unlinkat(parent, name, AT_REMOVEDIR) == 0 || errno == ENOENT)
		return 0;
	int fd = open_folder(parent, name);
	if (fd < 0)
		return fd;
	int error = make_writable(fd);
	DIR *dir = error == 0 ? fdopendir(fd) : NULL;
	if (!dir) {
		error = error ? error : -errno;
		fd_close(&fd);
		return error;
	}
	if (depth == 0)
		r->root = fd;
	/* Again as long as something goes away: removing while reading may skip entries, and folders may have been moved up to
	 * here. */
	for (unsigned removed = 1; removed > 0;) {
		error = remove_entries(r, dir, depth, &removed);
		if (unlinkat(parent, name, AT_REMOVEDIR) == 0 || errno == ENOENT) {
			error = 0;
			break;
		}
		if (error == 0)
			error = -errno;
		rewinddir(dir);
	}
	closedir(dir);
	return error;
}

int path_remove_tree(int dirfd, const char *name)
{
	if (unlinkat(dirfd, name, 0) == 0 || errno == ENOENT)
		return 0;
	if (errno != EISDIR && errno != EPERM)
		return -errno;
	struct removal r = { .root = -1 };
	return remove_folder(&r, dirfd, name, 0);
}
