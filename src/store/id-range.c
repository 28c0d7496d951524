/* SPDX-License-Identifier: Apache-2.0 */
/* Host-wide reservation of user id ranges: two sandboxes that share an id could signal each other. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fd.h"
#include "store/internal.h"

#define RANGES_FOLDER "/run/bulkhead/ids"
/* 0x70000000 to 0x7fffffff: above what systemd-nspawn, shadow's subuid and dynamic users take, below the sign bit that some
 * tools can't read. */
#define RANGES_BASE 0x70000000u
#define RANGES_COUNT 4096u

static int open_ranges(struct err *err)
{
	struct stat st;
	if ((mkdir("/run/bulkhead", 0700) < 0 && errno != EEXIST) || (mkdir(RANGES_FOLDER, 0700) < 0 && errno != EEXIST))
		return err_sys(err, errno, "cannot create " RANGES_FOLDER);
	cleanup_fd int fd = open(RANGES_FOLDER, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
	if (fd < 0 || fstat(fd, &st) < 0)
		return err_sys(err, errno, "cannot open " RANGES_FOLDER);
	if (st.st_uid != 0 || (st.st_mode & (S_IWGRP | S_IWOTH)))
		return err_set(err, ERR_DENIED, "others than root may write to " RANGES_FOLDER "; remove it and try again");
	return fd_steal(&fd);
}

static int try_range(int dirfd, unsigned n)
{
	char name[16];
	snprintf(name, sizeof(name), "%u", n);
	cleanup_fd int fd = openat(dirfd, name, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK, 0600);
	if (fd < 0)
		return -errno;
	return flock(fd, LOCK_EX | LOCK_NB) < 0 ? -errno : fd_steal(&fd);
}

int state_id_range_reserve(uid_t *ret_base, int *ret_fd, struct err *err)
{
	cleanup_fd int dirfd = open_ranges(err);
	if (dirfd < 0)
		return -1;
	for (unsigned n = 0; n < RANGES_COUNT; n++) {
		int fd = try_range(dirfd, n);
		if (fd == -EWOULDBLOCK)
			continue;
		if (fd < 0)
			return err_sys(err, -fd, "cannot reserve user ids in " RANGES_FOLDER);
		*ret_base = RANGES_BASE + n * SPEC_ID_RANGE;
		*ret_fd = fd;
		return 0;
	}
	return err_set(err, ERR_LIMIT, "all %u ranges of user ids are in use by running sandboxes; end some", RANGES_COUNT);
}
