/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Files of the supervisor's making (spec.h). Those for /etc go to a small file system of their own, so that they take nothing from what the
 * box may write, and lie as the upper one of two read-only layers over the host's folder: all else in there stays as it is on the
 * host. Those for the home are the workload's own.
 */
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
#include "isolate/common/mounts.h"
#include "isolate/container/build.h"

#define LAYER "layer" /* on the box's disk */
#define ETC "etc/"
#define HOME "home/"

static int copy_content(int from, int to)
{
	struct stat st;
	off_t offset = 0;
	if (fstat(from, &st) < 0)
		return -errno;
	if (!S_ISREG(st.st_mode) || st.st_size > (off_t)SPEC_FILE_SIZE_MAX)
		return -EINVAL;
	while (offset < st.st_size) {
		ssize_t n = sendfile(to, from, &offset, (size_t)(st.st_size - offset));
		if (n <= 0)
			return n < 0 ? -errno : -ENODATA;
	}
	return 0;
}

/* Each folder on the way belongs to the box's user, too. */
static int make_parents(struct build *b, int dirfd, const char *path, bool own)
{
	char parent[PATH_MAX];
	for (const char *slash = strchr(path, '/'); slash; slash = strchr(slash + 1, '/')) {
		snprintf(parent, sizeof(parent), "%.*s", (int)(slash - path), path);
		if (mkdirat(dirfd, parent, own ? 0700 : 0755) < 0) {
			if (errno == EEXIST)
				continue;
			return -errno;
		}
		if (own && fchownat(dirfd, parent, build_user_id(b), build_user_id(b), AT_SYMLINK_NOFOLLOW) < 0)
			return -errno;
	}
	return 0;
}

static int put_file(struct build *b, int source, int dirfd, const char *path, bool own, struct err *err)
{
	int r = make_parents(b, dirfd, path, own);
	cleanup_fd int fd = r < 0 ? -1 : path_open_beneath(dirfd, path, O_WRONLY | O_CREAT | O_EXCL, own ? 0600 : 0644);
	if (r == 0)
		r = fd < 0 ? fd : copy_content(source, fd);
	if (r == 0 && own && fchown(fd, build_user_id(b), build_user_id(b)) < 0)
		r = -errno;
	return r < 0 ? err_sys(err, -r, "can't write \"%s\" of the box", path) : 0;
}

static int create_layer(struct build *b, struct err *err)
{
	const struct fs_option options[] = { { "mode", "0755" }, { NULL, NULL } };
	b->layer_fd = mount_fresh("tmpfs", options, MOUNT_SAFE, err);
	if (b->layer_fd < 0)
		return -1;
	if (mkdirat(b->disk_fd, LAYER, 0700) < 0)
		return err_sys(err, errno, "can't create a folder for the box's certificates");
	return mount_attach(b->layer_fd, b->disk_fd, LAYER, err);
}

int view_add_files(struct build *b, struct err *err)
{
	if (b->spec.n_files == 0)
		return 0;
	if (create_layer(b, err) < 0)
		return -1;
	cleanup_fd int home = path_open_beneath(b->disk_fd, "home", O_RDONLY | O_DIRECTORY, 0);
	if (home < 0)
		return err_sys(err, -home, "can't open the box's home");
	for (size_t i = 0; i < b->spec.n_files; i++) {
		const char *path = b->spec.files[i];
		int r = str_starts(path, HOME) ? put_file(b, b->files[i], home, path + strlen(HOME), true, err)
					       : put_file(b, b->files[i], b->layer_fd, path + strlen(ETC), false, err);
		if (r < 0)
			return -1;
		fd_close(&b->files[i]);
	}
	return 0;
}

bool layer_covers(const struct build *b, const char *name)
{
	struct stat st;
	return b->layer_fd >= 0 && fstatat(b->layer_fd, name, &st, AT_SYMLINK_NOFOLLOW) == 0 && S_ISDIR(st.st_mode);
}

int layer_mount(const struct build *b, const char *name, bool host_has, struct err *err)
{
	char lower[2 * PATH_MAX];
	if (!host_has)
		return mount_clone(b->layer_fd, name, false, MOUNT_SAFE_RO, -1, err);
	snprintf(lower, sizeof(lower), STAGING "/" LAYER "/%s:/etc/%s", name, name);
	const struct fs_option options[] = { { "lowerdir", lower }, { "redirect_dir", "nofollow" }, { "metacopy", "off" }, { "xino", "off" },
		{ b->spec.privileged ? NULL : "userxattr", NULL }, { NULL, NULL } };
	return mount_fresh("overlay", options, MOUNT_SAFE_RO, err);
}
