/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/statfs.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/mem.h"
#include "isolate/common/mounts.h"

/* The kernel's own words about a failed mount are in the log of the context: "e overlay: …". */
static int context_error(int sys, int fs_fd, const char *type, const char *what, struct err *err)
{
	char log[256] = "";
	ssize_t n = read(fs_fd, log, sizeof(log) - 1);
	log[n > 0 ? n : 0] = '\0';
	log[strcspn(log, "\n")] = '\0';
	if (n > 2)
		return err_sys(err, sys, "can't mount %s (%s; the kernel says: %s)", type, what, log + 2);
	return err_sys(err, sys, "can't mount %s (%s)", type, what);
}

int mount_fresh(const char *type, const struct fs_option *options, uint64_t attrs, struct err *err)
{
	cleanup_fd int fs_fd = fsopen(type, FSOPEN_CLOEXEC);
	if (fs_fd < 0)
		return err_sys(err, errno, "this kernel has no file system \"%s\" for us", type);
	for (const struct fs_option *o = options; o && o->key; o++)
		if (fsconfig(fs_fd, o->value ? FSCONFIG_SET_STRING : FSCONFIG_SET_FLAG, o->key, o->value, 0) < 0)
			return context_error(errno, fs_fd, type, o->key, err);
	if (fsconfig(fs_fd, FSCONFIG_CMD_CREATE, NULL, NULL, 0) < 0)
		return context_error(errno, fs_fd, type, "create", err);
	int fd = fsmount(fs_fd, FSMOUNT_CLOEXEC, (unsigned)attrs);
	if (fd < 0)
		return context_error(errno, fs_fd, type, "mount", err);
	return fd;
}

static const char *fs_name(long magic)
{
	static const struct {
		long magic;
		const char *name;
	} names[] = {
		{ 0x6969, "nfs" },
		{ 0x65735546, "fuse" },
		{ 0x01021997, "9p" },
		{ 0xff534d42, "cifs" },
		{ 0xfe534d42, "smb" },
		{ 0x794c7630, "overlay" },
		{ 0xef53, "ext4" },
		{ 0x9123683e, "btrfs" },
		{ 0x58465342, "xfs" },
		{ 0x01021994, "tmpfs" },
		{ 0x2fc12fc1, "zfs" },
		{ 0xca451a4e, "bcachefs" },
		{ 0x6a656a63, "virtiofs" },
		{ 0x4d44, "vfat" },
		{ 0x52654973, "reiserfs" },
	};
	for (size_t i = 0; i < ARRAY_LEN(names); i++)
		if (names[i].magic == magic)
			return names[i].name;
	return "unknown";
}

static int id_map_error(int sys, int fd, struct err *err)
{
	struct statfs fs = { 0 };
	fstatfs(fd, &fs);
	if (sys == EINVAL || sys == EOPNOTSUPP)
		return err_set(err, ERR_UNSUPPORTED,
			"the file system (%s) can't be id-mapped by this kernel, so its files can't be shown to the sandbox "
			"under "
			"its own user id; use mode copy, put the folder on another file system (ext4, xfs, btrfs; tmpfs from "
			"Linux 6.3), or run "
			"bulkhead as the folder's owner instead of root",
			fs_name((long)fs.f_type));
	return err_sys(err, sys, "can't id-map a mount");
}

int mount_clone(int dirfd, const char *path, bool recursive, uint64_t attrs, int userns_fd, struct err *err)
{
	unsigned deep = recursive ? AT_RECURSIVE : 0;
	cleanup_fd int fd =
		open_tree(dirfd, path, OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC | AT_EMPTY_PATH | AT_SYMLINK_NOFOLLOW | deep);
	if (fd < 0)
		return err_sys(err, errno, "can't clone the mount of %s", *path ? path : "a descriptor");
	struct mount_attr attr = { .attr_set = attrs };
	if (mount_setattr(fd, "", AT_EMPTY_PATH | deep, &attr, sizeof(attr)) < 0)
		return err_sys(err, errno, "can't set the attributes of the mount of %s", *path ? path : "a descriptor");
	if (userns_fd >= 0) {
		attr = (struct mount_attr){ .attr_set = MOUNT_ATTR_IDMAP, .userns_fd = (uint64_t)userns_fd };
		if (mount_setattr(fd, "", AT_EMPTY_PATH | deep, &attr, sizeof(attr)) < 0)
			return id_map_error(errno, fd, err);
	}
	return fd_steal(&fd);
}

int mount_attach(int mount_fd, int dirfd, const char *path, struct err *err)
{
	unsigned flags = MOVE_MOUNT_F_EMPTY_PATH | (*path ? 0 : MOVE_MOUNT_T_EMPTY_PATH);
	return move_mount(mount_fd, "", dirfd, path, flags) < 0 ? err_sys(err, errno, "can't mount at \"%s\"", path) : 0;
}
