/* SPDX-License-Identifier: Apache-2.0 */
/* The folders of the user: copies (overlay over a read-only, id-mapped view; plain ones where the kernel can't do that),
 * read-only and read-write ones. */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/magic.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/mem.h"
#include "isolate/common/copy-tree.h"
#include "isolate/common/mounts.h"
#include "isolate/container/build.h"

#define OVERLAY_WORK "work" /* on the box's disk, as root.c makes it */

/* The descriptor belongs to the supervisor's mount namespace, where we may mount nothing. Its path leads to the same folder in
 * our copy of that namespace; that it is the same is checked, so a folder renamed meanwhile is an error and never another
 * folder. */
static int reopen(int source, struct err *err)
{
	char link[40], path[PATH_MAX];
	struct stat before, after;
	snprintf(link, sizeof(link), "/proc/self/fd/%d", source);
	ssize_t n = readlink(link, path, sizeof(path) - 1);
	if (n <= 0 || fstat(source, &before) < 0)
		return err_sys(err, errno, "can't find out where a folder to mount is");
	path[n] = '\0';
	cleanup_fd int fd = open(path, O_PATH | O_NOFOLLOW | O_CLOEXEC);
	if (fd < 0)
		return err_sys(err, errno, "can't open %s for the box", path);
	if (fstat(fd, &after) < 0 || before.st_dev != after.st_dev || before.st_ino != after.st_ino)
		return err_set(err, ERR_CONFLICT, "%s was renamed or replaced while the box was being built; try again", path);
	return fd_steal(&fd);
}

/* Layers of an overlay may be id-mapped since Linux 5.19; id-mapped mounts as such are older. */
static bool overlay_takes_mapped_layers(void)
{
	struct utsname u;
	unsigned major = 0, minor = 0;
	if (uname(&u) < 0 || sscanf(u.release, "%u.%u", &major, &minor) != 2)
		return true; /* the mount itself will tell */
	return major > 5 || (major == 5 && minor >= 19);
}

/* A copy shows one file system: overlay can't look through mounts inside its lower folder, and an ordinary user may not see
 * beneath these. */
static int clone_source(struct build *b, size_t i, struct err *err)
{
	const struct spec_mount *m = &b->spec.mounts[i];
	uint64_t attrs = m->mode == MOUNT_RW ? MOUNT_SAFE : MOUNT_SAFE_RO;
	cleanup_fd int fd = reopen(b->sources[i], err);
	if (fd < 0)
		return -1;
	int clone = -1;
	if (m->mode == MOUNT_COPY && b->map_userns[i] >= 0 && !overlay_takes_mapped_layers())
		err_set(err, ERR_UNSUPPORTED, "this kernel's overlay takes no id-mapped layers");
	else
		clone = mount_clone(fd, "", m->mode != MOUNT_COPY, attrs, b->map_userns[i], err);
	if (clone < 0 && m->mode == MOUNT_COPY && b->map_userns[i] >= 0 && err && err->code == ERR_UNSUPPORTED) {
		/* Can't be id-mapped: the same copy on write, over a plain copy that counts against the disk limit. */
		b->plain_copy[i] = true;
		clone = mount_clone(fd, "", false, attrs, -1, err);
	}
	if (clone < 0 && err && err->sys == EINVAL && m->mode == MOUNT_COPY)
		return err_set(err, ERR_UNSUPPORTED,
			"the folder for %s has other file systems mounted inside it, which a copy can't show; "
			"name a folder without mounts, or use mode ro or rw",
			m->target);
	return clone;
}

int view_open_sources(struct build *b, struct err *err)
{
	for (size_t i = 0; i < b->spec.n_mounts; i++) {
		b->clones[i] = clone_source(b, i, err);
		if (b->clones[i] < 0)
			return err_wrap(err, "mount %s", b->spec.mounts[i].target);
	}
	b->agent_fd = mount_clone(AT_FDCWD, b->agent_path, false, MOUNT_SAFE_RO, -1, err);
	return b->agent_fd < 0 ? -1 : 0;
}

/* Places may be created on the box's own file systems only: never in a folder of the host. */
static bool is_ours(struct build *b, int fd)
{
	struct stat st, disk;
	struct statfs fs;
	if (fstat(fd, &st) < 0 || fstat(b->disk_fd, &disk) < 0 || fstatfs(fd, &fs) < 0)
		return false;
	if (st.st_dev == disk.st_dev)
		return true;
	for (size_t i = 0; i < b->spec.n_mounts; i++) {
		struct stat top;
		if (b->spec.mounts[i].mode != MOUNT_COPY || fs.f_type != OVERLAYFS_SUPER_MAGIC)
			continue;
		cleanup_fd int top_fd = path_open_beneath(b->root_fd, b->spec.mounts[i].target + 1, O_PATH, 0);
		if (top_fd >= 0 && fstat(top_fd, &top) == 0 && top.st_dev == st.st_dev)
			return true;
	}
	return false;
}

static int create_component(struct build *b, int dir_fd, const char *name, bool is_file, const char *target, struct err *err)
{
	uid_t user = build_user_id(b);
	if (!is_ours(b, dir_fd))
		return err_set(err, ERR_INVALID,
			"there is no place for the mount %s: \"%s\" doesn't exist in a folder of the host, where nothing is "
			"created; "
			"create it there, or choose another target",
			target, name);
	int r = is_file ? openat(dir_fd, name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644) : mkdirat(dir_fd, name, 0755);
	if (r < 0 || fchownat(dir_fd, name, user, user, AT_SYMLINK_NOFOLLOW) < 0)
		return err_sys(err, errno, "can't create the place for the mount %s", target);
	if (is_file)
		fd_close(&r);
	return 0;
}

/* Opens the place, component by component. Returns fd or -1. */
static int open_place(struct build *b, const struct spec_mount *m, struct err *err)
{
	char part[NAME_MAX + 1];
	cleanup_fd int dir_fd = path_open_beneath(b->root_fd, ".", O_PATH | O_DIRECTORY, 0);
	for (const char *p = m->target + 1; dir_fd >= 0 && *p;) {
		size_t len = strcspn(p, "/");
		bool last = p[len] == '\0';
		if (len == 0 || len > NAME_MAX)
			return err_set(err, ERR_INVALID, "the mount target %s isn't a path", m->target);
		snprintf(part, sizeof(part), "%.*s", (int)len, p);
		p += len + !last;
		int flags = O_PATH | (last && m->is_file ? 0 : O_DIRECTORY);
		int next = path_open_beneath(dir_fd, part, flags, 0);
		if (next == -ENOENT) {
			if (create_component(b, dir_fd, part, last && m->is_file, m->target, err) < 0)
				return -1;
			next = path_open_beneath(dir_fd, part, flags, 0);
		}
		if (next < 0)
			return err_sys(err, -next, "can't reach the place for the mount %s at \"%s\" (links are not followed)",
				m->target, part);
		fd_close(&dir_fd);
		dir_fd = next;
	}
	return dir_fd < 0 ? err_sys(err, -dir_fd, "can't open the box's root folder") : fd_steal(&dir_fd);
}

/* The same with the box's ids, under the overlay in the place of what can't be id-mapped. Returns its mount. */
static int lower_by_copy(struct build *b, size_t i, const char *path, struct err *err)
{
	const struct spec_mount *m = &b->spec.mounts[i];
	struct id_map uids, gids;
	id_map_for_owner(&uids, m->owner_uid, b->spec.host_id_base);
	id_map_for_owner(&gids, m->owner_gid, b->spec.host_id_base);
	cleanup_fd int target = path_open_beneath(b->disk_fd, path, O_RDONLY | O_DIRECTORY, 0);
	if (target < 0)
		return err_sys(err, -target, "can't open the folder of a copy");
	if (copy_tree(b->clones[i], target, &uids, &gids, err) < 0)
		return -1;
	return mount_clone(b->disk_fd, path, false, MOUNT_SAFE_RO, -1, err);
}

/* The merged root folder has the attributes of the upper one: the original's. */
static int create_upper(struct build *b, int upper_parent, const char *name, int lower_fd, struct err *err)
{
	struct stat st;
	if (fstat(lower_fd, &st) < 0 || mkdirat(upper_parent, name, 0700) < 0)
		return err_sys(err, errno, "can't create the upper folder of a copy");
	if (b->spec.privileged && fchownat(upper_parent, name, st.st_uid, st.st_gid, AT_SYMLINK_NOFOLLOW) < 0)
		return err_sys(err, errno, "can't give the upper folder of a copy its owner");
	const struct timespec times[] = { st.st_atim, st.st_mtim };
	if (fchmodat(upper_parent, name, st.st_mode & 01777, 0) < 0 || utimensat(upper_parent, name, times, 0) < 0)
		return err_sys(err, errno, "can't give the upper folder of a copy its mode");
	return 0;
}

static int mount_overlay(struct build *b, size_t i, struct err *err)
{
	char lower[48], upper[48], work[48];
	snprintf(lower, sizeof(lower), STAGING "/lower/%zu", i);
	snprintf(upper, sizeof(upper), STAGING "/up/%zu", i);
	snprintf(work, sizeof(work), STAGING "/" OVERLAY_WORK "/%zu", i);
	const struct fs_option options[] = { { "lowerdir", lower }, { "upperdir", upper }, { "workdir", work },
		{ "redirect_dir", "nofollow" }, { "metacopy", "off" }, { "index", "off" }, { "xino", "off" },
		{ b->spec.privileged ? NULL : "userxattr", NULL }, { NULL, NULL } };
	return mount_fresh("overlay", options, MOUNT_SAFE, err);
}

static int add_overlay(struct build *b, size_t i, int place, struct err *err)
{
	char name[24], path[40];
	snprintf(name, sizeof(name), "%zu", i);
	snprintf(path, sizeof(path), "lower/%s", name);
	cleanup_fd int up = path_open_beneath(b->disk_fd, "up", O_RDONLY | O_DIRECTORY, 0);
	cleanup_fd int work = path_open_beneath(b->disk_fd, "work", O_RDONLY | O_DIRECTORY, 0);
	if (up < 0 || work < 0 || mkdirat(work, name, 0700) < 0 || mkdirat(b->disk_fd, path, 0700) < 0)
		return err_sys(err, errno, "can't create the folders of a copy");
	cleanup_fd int copied = b->plain_copy[i] ? lower_by_copy(b, i, path, err) : -1;
	int lower = b->plain_copy[i] ? copied : b->clones[i];
	if (lower < 0 || create_upper(b, up, name, lower, err) < 0)
		return -1;
	if (mount_attach(lower, b->disk_fd, path, err) < 0) /* 0700 and ours alone so far */
		return -1;
	cleanup_fd int fd = mount_overlay(b, i, err);
	if (fd < 0 || mount_attach(fd, place, "", err) < 0)
		return -1;
	return 0;
}

/* No overlay: what the box gets is a copy, and what it changed is found by comparing all of it with the original. */
static int add_whole_copy(struct build *b, size_t i, int place, struct err *err)
{
	char path[40];
	snprintf(path, sizeof(path), "whole/%zu", i);
	if (mkdirat(b->disk_fd, path, 0700) < 0)
		return err_sys(err, errno, "can't create the folder of a copy");
	cleanup_fd int target = path_open_beneath(b->disk_fd, path, O_RDONLY | O_DIRECTORY, 0);
	if (target < 0)
		return err_sys(err, -target, "can't open the folder of a copy");
	if (copy_tree(b->clones[i], target, NULL, NULL, err) < 0)
		return -1;
	cleanup_fd int fd = mount_clone(b->disk_fd, path, false, MOUNT_SAFE, -1, err);
	return fd < 0 ? -1 : mount_attach(fd, place, "", err);
}

static int add_copy(struct build *b, size_t i, int place, struct err *err)
{
	b->lower_fd[b->n_lower++] = b->clones[i]; /* always the original */
	return b->whole ? add_whole_copy(b, i, place, err) : add_overlay(b, i, place, err);
}

int view_add_mounts(struct build *b, struct err *err)
{
	for (size_t i = 0; i < b->spec.n_mounts; i++) {
		const struct spec_mount *m = &b->spec.mounts[i];
		cleanup_fd int place = open_place(b, m, err);
		if (place < 0)
			return -1;
		int r = m->mode == MOUNT_COPY ? add_copy(b, i, place, err) : mount_attach(b->clones[i], place, "", err);
		if (r < 0)
			return err_wrap(err, "mount %s", m->target);
	}
	return 0;
}
