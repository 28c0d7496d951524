/* SPDX-License-Identifier: Apache-2.0 */
/* The box's root folder: a read-only skeleton, the host's system folders, and the writable places. */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/fsuid.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/mem.h"
#include "isolate/common/mounts.h"
#include "isolate/container/build.h"

/* Folders of the one writable file system; those with a place are mounted there. */
enum owner { HOST, ROOT, USER };
static const struct {
	const char *name, *place;
	mode_t mode;
	enum owner owner;
} writable[] = {
	{ "root", NULL, 0755, ROOT },
	{ "up", NULL, 0700, HOST },
	{ "work", NULL, 0700, HOST },
	{ "lower", NULL, 0700, HOST },
	{ "whole", NULL, 0700, HOST },
	{ "tmp", "tmp", 01777, ROOT },
	{ "vartmp", "var/tmp", 01777, ROOT },
	{ "home", "home/agent", 0755, USER },
	{ "run", "run", 0755, USER },
	{ "shm", "dev/shm", 01777, ROOT },
};

static const char *const skeleton[] = { "proc", "sys", "dev", "dev/shm", "dev/pts", "etc", "tmp", "run", "home", "home/agent",
	"var", "var/tmp", "opt", "mnt", "srv" };

/* What programs are made of. Nothing else of the host is shown: not /opt, /srv, /var, /home, /root, /run, /sys. */
static const char *const system_folders[] = { "usr", "bin", "sbin", "lib", "lib32", "lib64", "libx32" };

uid_t build_root_id(const struct build *b)
{
	return b->spec.privileged ? b->spec.host_id_base : SPEC_INSIDE_ID;
}

uid_t build_user_id(const struct build *b)
{
	return b->spec.privileged ? b->spec.host_id_base + SPEC_INSIDE_ID : SPEC_INSIDE_ID;
}

/* One file system, one limit: every place that the box can write to takes from it. */
static int create_disk(struct build *b, struct err *err)
{
	char size[24] = "0", inodes[24] = "0", uid[16];
	uint64_t disk = b->spec.limits.disk;
	if (disk != POLICY_UNLIMITED) {
		/* Inodes cost memory that the size doesn't count: one for each 4 KiB, within reason. */
		uint64_t n = disk / 4096 < 65536 ? 65536 : disk / 4096 > (1u << 22) ? (1u << 22) : disk / 4096;
		snprintf(size, sizeof(size), "%" PRIu64, disk);
		snprintf(inodes, sizeof(inodes), "%" PRIu64, n);
	}
	snprintf(uid, sizeof(uid), "%u", build_root_id(b));
	const struct fs_option options[] = { { "size", size }, { "nr_inodes", inodes }, { "mode", "0755" }, { "uid", uid },
		{ "gid", uid }, { NULL, NULL } };
	b->disk_fd = mount_fresh("tmpfs", options, MOUNT_SAFE, err);
	return b->disk_fd < 0 ? -1 : 0;
}

static int create_folders(struct build *b, struct err *err)
{
	for (size_t i = 0; i < ARRAY_LEN(writable); i++) {
		uid_t id = writable[i].owner == USER ? build_user_id(b) : build_root_id(b);
		if (mkdirat(b->disk_fd, writable[i].name, writable[i].mode) < 0)
			return err_sys(err, errno, "can't create the folder %s of the box", writable[i].name);
		if (writable[i].owner != HOST && fchownat(b->disk_fd, writable[i].name, id, id, AT_SYMLINK_NOFOLLOW) < 0)
			return err_sys(err, errno, "can't give the folder %s of the box its owner", writable[i].name);
	}
	return 0;
}

/* An ordinary user's overlay keeps its marks on replaced folders in user attributes, which tmpfs has since Linux 6.6. Without
 * them deleting a folder and making it anew fails, and that is what every package manager does. */
static bool overlay_has_marks(const struct build *b)
{
	char value;
	cleanup_fd int up = path_open_beneath(b->disk_fd, "up", O_RDONLY | O_DIRECTORY, 0);
	return b->spec.privileged || fgetxattr(up, "user.overlay.opaque", &value, 1) >= 0 || errno != EOPNOTSUPP;
}

static int create_skeleton(struct build *b, struct err *err)
{
	for (size_t i = 0; i < ARRAY_LEN(skeleton); i++)
		if (mkdirat(b->root_fd, skeleton[i], 0755) < 0)
			return err_sys(err, errno, "can't create /%s of the box", skeleton[i]);
	return 0;
}

/* A link on the host (bin -> usr/bin) is the same link inside; a folder is shown read-only. */
static int add_system_folder(struct build *b, const char *name, struct err *err)
{
	char path[16], link[64];
	struct stat st;
	snprintf(path, sizeof(path), "/%s", name);
	if (lstat(path, &st) < 0)
		return errno == ENOENT ? 0 : err_sys(err, errno, "can't look at %s", path);
	if (S_ISLNK(st.st_mode)) {
		ssize_t n = readlink(path, link, sizeof(link) - 1);
		link[n > 0 ? n : 0] = '\0';
		if (n <= 0 || symlinkat(link, b->root_fd, name) < 0)
			return err_sys(err, errno, "can't copy the link %s into the box", path);
		return 0;
	}
	if (!S_ISDIR(st.st_mode))
		return 0;
	if (mkdirat(b->root_fd, name, 0755) < 0)
		return err_sys(err, errno, "can't create %s of the box", path);
	cleanup_fd int fd = mount_clone(AT_FDCWD, path, true, MOUNT_SAFE_RO, -1, err);
	return fd < 0 ? -1 : mount_attach(fd, b->root_fd, name, err);
}

static int add_writable_places(struct build *b, struct err *err)
{
	for (size_t i = 0; i < ARRAY_LEN(writable); i++) {
		if (!writable[i].place)
			continue;
		cleanup_fd int fd = mount_clone(b->disk_fd, writable[i].name, false, MOUNT_SAFE, -1, err);
		if (fd < 0 || mount_attach(fd, b->root_fd, writable[i].place, err) < 0)
			return -1;
	}
	return 0;
}

int view_begin(struct build *b, struct err *err)
{
	if (create_disk(b, err) < 0)
		return -1;
	/* Cloning a part of a mount needs it attached (before Linux 6.15). Nothing outside of this mount namespace sees it. */
	if (move_mount(b->disk_fd, "", AT_FDCWD, STAGING, MOVE_MOUNT_F_EMPTY_PATH) < 0)
		return err_sys(err, errno, "can't attach the box's file system at %s", STAGING);
	if (create_folders(b, err) < 0)
		return -1;
	b->whole = !overlay_has_marks(b);
	b->root_fd = mount_clone(b->disk_fd, "root", false, MOUNT_SAFE, -1, err);
	if (b->root_fd < 0 || mount_attach(b->root_fd, b->disk_fd, "root", err) < 0)
		return -1;
	/* From here the skeleton is made as the inside's root, so that it looks as it should from there. */
	setfsgid(build_root_id(b));
	setfsuid(build_root_id(b));
	int r = create_skeleton(b, err);
	setfsuid(geteuid());
	setfsgid(getegid());
	for (size_t i = 0; r == 0 && i < ARRAY_LEN(system_folders); i++)
		r = add_system_folder(b, system_folders[i], err);
	return r < 0 ? -1 : add_writable_places(b, err);
}

int view_finish(struct build *b, struct err *err)
{
	struct mount_attr attr = { .attr_set = MOUNT_SAFE_RO };
	if (mount_setattr(b->root_fd, "", AT_EMPTY_PATH, &attr, sizeof(attr)) < 0)
		return err_sys(err, errno, "can't make the box's root folder read-only");
	if (fchdir(b->root_fd) < 0 || syscall(SYS_pivot_root, ".", ".") < 0)
		return err_sys(err, errno, "can't change to the box's root folder (pivot_root)");
	/* The old root now lies over the new one; without it nothing of the host is in reach. */
	if (umount2(".", MNT_DETACH) < 0 || chdir("/") < 0)
		return err_sys(err, errno, "can't detach the host's root folder from the box");
	return 0;
}
