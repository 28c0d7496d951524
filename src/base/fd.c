/* SPDX-License-Identifier: Apache-2.0 */
#include "base/fd.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/mem.h"

void fd_close(int *fd)
{
	if (*fd < 0)
		return;
	int saved = errno;
	/* Never retried: Linux releases the number even when close reports EINTR. */
	close(*fd);
	errno = saved;
	*fd = -1;
}

void fd_cleanup(int *fd)
{
	fd_close(fd);
}

static int change_flag(int fd, int get, int set, int flag, bool on)
{
	int flags = fcntl(fd, get);
	if (flags < 0)
		return -errno;
	int wanted = on ? flags | flag : flags & ~flag;
	if (wanted != flags && fcntl(fd, set, wanted) < 0)
		return -errno;
	return 0;
}

int fd_set_nonblock(int fd, bool on)
{
	return change_flag(fd, F_GETFL, F_SETFL, O_NONBLOCK, on);
}

int fd_set_cloexec(int fd, bool on)
{
	return change_flag(fd, F_GETFD, F_SETFD, FD_CLOEXEC, on);
}

static int duplicate(int fd)
{
	int copy = fcntl(fd, F_DUPFD_CLOEXEC, 3);
	return copy < 0 ? -errno : copy;
}

int fd_dup_nonblock(int fd)
{
	struct stat st;
	int flags = fcntl(fd, F_GETFL);
	if (flags < 0 || fstat(fd, &st) < 0)
		return -errno;
	if (S_ISREG(st.st_mode) || S_ISDIR(st.st_mode) || S_ISSOCK(st.st_mode))
		return duplicate(fd);
	char path[sizeof("/proc/self/fd/") + 12];
	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	int own = open(path, (flags & (O_ACCMODE | O_APPEND)) | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
	if (own >= 0)
		return own;
	int copy = duplicate(fd);
	if (copy < 0)
		return copy;
	int r = fd_set_nonblock(copy, true);
	if (r < 0)
		fd_close(&copy);
	return r < 0 ? r : copy;
}

int fd_write_full(int fd, const void *data, size_t len)
{
	const char *p = data;
	while (len > 0) {
		ssize_t n = write(fd, p, len);
		if (n < 0) {
			if (errno == EINTR)
				continue;
			return -errno;
		}
		p += n;
		len -= (size_t)n;
	}
	return 0;
}

int fd_read_full(int fd, void *data, size_t len)
{
	char *p = data;
	while (len > 0) {
		ssize_t n = read(fd, p, len);
		if (n < 0) {
			if (errno == EINTR)
				continue;
			return -errno;
		}
		if (n == 0)
			return -ENODATA;
		p += n;
		len -= (size_t)n;
	}
	return 0;
}

/* Reads to the end of file, at most max bytes plus one that proves there was more. 0, or -errno, or -EFBIG. */
static int read_to_end(int fd, size_t max, char **ret_data, size_t *ret_len)
{
	size_t len = 0, cap = max < 4096 ? max + 2 : 4096;
	cleanup_free char *data = mem_alloc(cap);
	for (;;) {
		if (len + 1 >= cap) {
			cap = cap > max / 2 ? max + 2 : cap * 2;
			data = mem_grow_array(data, cap, 1);
		}
		ssize_t n = read(fd, data + len, cap - 1 - len);
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return -errno;
		if (n == 0)
			break;
		len += (size_t)n;
		if (len > max)
			return -EFBIG;
	}
	data[len] = '\0';
	*ret_data = mem_steal(&data);
	*ret_len = len;
	return 0;
}

static int read_opened(int fd, const char *path, size_t max, char **ret_data, size_t *ret_len, struct err *err)
{
	int r = read_to_end(fd, max, ret_data, ret_len);
	if (r == -EFBIG)
		return err_set(err, ERR_LIMIT, "%s is larger than the %zu bytes that are accepted here", path, max);
	if (r < 0)
		return err_sys(err, -r, "cannot read %s", path);
	return 0;
}

int fd_read_file_at(int dirfd, const char *path, size_t max, char **ret_data, size_t *ret_len, struct err *err)
{
	cleanup_fd int fd = openat(dirfd, path, O_RDONLY | O_CLOEXEC | O_NOCTTY);
	if (fd < 0)
		return err_sys(err, errno, "cannot open %s", path);
	return read_opened(fd, path, max, ret_data, ret_len, err);
}

int fd_read_regular_at(int dirfd, const char *path, size_t max, char **ret_data, size_t *ret_len, struct err *err)
{
	struct stat st;
	cleanup_fd int fd = openat(dirfd, path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NOFOLLOW | O_NONBLOCK);
	if (fd < 0 || fstat(fd, &st) < 0)
		return err_sys(err, errno, "cannot open %s", path);
	if (!S_ISREG(st.st_mode))
		return err_set(err, ERR_CORRUPT, "%s is not a regular file", path);
	return read_opened(fd, path, max, ret_data, ret_len, err);
}

int fd_write_file_at(int dirfd, const char *path, const char *data, struct err *err)
{
	cleanup_fd int fd = openat(dirfd, path, O_WRONLY | O_CLOEXEC | O_NOCTTY);
	if (fd < 0)
		return err_sys(err, errno, "cannot open %s for writing", path);
	size_t len = strlen(data);
	ssize_t n;
	do
		n = write(fd, data, len);
	while (n < 0 && errno == EINTR);
	if (n < 0)
		return err_sys(err, errno, "cannot write \"%s\" to %s", data, path);
	if ((size_t)n != len)
		return err_set(err, ERR_SYSTEM, "%s took only %zd of the %zu bytes written to it", path, n, len);
	return 0;
}

/* "folder/.name.RANDOM" beside the file that it will replace, so that the rename stays within one file system. */
static char *temporary_name(const char *path)
{
	uint64_t random = 0;
	/* Uniqueness is what O_EXCL checks; randomness only makes a collision unlikely. */
	if (getrandom(&random, sizeof(random), GRND_NONBLOCK) < 0)
		random = (uint64_t)getpid();
	const char *slash = strrchr(path, '/');
	int folder = slash ? (int)(slash - path) + 1 : 0;
	return mem_printf("%.*s.%.200s.%016llx", folder, path, path + folder, (unsigned long long)random);
}

static int sync_folder_of(int dirfd, const char *path)
{
	const char *slash = strrchr(path, '/');
	cleanup_free char *folder = slash ? mem_strndup(path, slash == path ? 1 : (size_t)(slash - path)) : mem_strdup(".");
	cleanup_fd int fd = openat(dirfd, folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (fd < 0 || fsync(fd) < 0)
		return -errno;
	return 0;
}

static int write_whole(int dirfd, const char *path, const void *data, size_t len, mode_t mode, bool sync)
{
	cleanup_fd int fd = openat(dirfd, path, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
	if (fd < 0)
		return -errno;
	int r = fd_write_full(fd, data, len);
	if (r == 0 && fchmod(fd, mode) < 0)
		r = -errno;
	if (r == 0 && sync && fsync(fd) < 0)
		r = -errno;
	int raw = fd_steal(&fd);
	if (close(raw) < 0 && r == 0 && errno != EINTR)
		r = -errno; /* a late error of a network file system */
	return r;
}

int fd_replace_file_at(int dirfd, const char *path, const void *data, size_t len, mode_t mode, bool sync, struct err *err)
{
	cleanup_free char *temporary = temporary_name(path);
	int r = write_whole(dirfd, temporary, data, len, mode, sync);
	if (r == 0 && renameat(dirfd, temporary, dirfd, path) < 0)
		r = -errno;
	if (r < 0) {
		if (r != -EEXIST)
			unlinkat(dirfd, temporary, 0);
		return err_sys(err, -r, "cannot replace %s", path);
	}
	if (sync && (r = sync_folder_of(dirfd, path)) < 0)
		return err_sys(err, -r, "%s is written, but its folder cannot be synced to disk", path);
	return 0;
}
