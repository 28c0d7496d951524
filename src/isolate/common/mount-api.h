/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The kernel's newer calls for mounts and descriptors, which glibc has since 2.36 and musl 1.2.3 has not: there they are made
 * directly.
 */
#pragma once

#include <sys/mount.h>
#include <unistd.h>

#ifndef __GLIBC__
#include <linux/close_range.h>
#include <linux/mount.h>
#include <sys/syscall.h>

#define AT_RECURSIVE 0x8000

static inline int fsopen(const char *type, unsigned flags)
{
	return (int)syscall(SYS_fsopen, type, flags);
}

static inline int fsconfig(int fd, unsigned command, const char *key, const void *value, int aux)
{
	return (int)syscall(SYS_fsconfig, fd, command, key, value, aux);
}

static inline int fsmount(int fd, unsigned flags, unsigned attrs)
{
	return (int)syscall(SYS_fsmount, fd, flags, attrs);
}

static inline int open_tree(int dirfd, const char *path, unsigned flags)
{
	return (int)syscall(SYS_open_tree, dirfd, path, flags);
}

static inline int move_mount(int from_fd, const char *from, int to_fd, const char *to, unsigned flags)
{
	return (int)syscall(SYS_move_mount, from_fd, from, to_fd, to, flags);
}

static inline int mount_setattr(int dirfd, const char *path, unsigned flags, struct mount_attr *attr, size_t size)
{
	return (int)syscall(SYS_mount_setattr, dirfd, path, flags, attr, size);
}

static inline int close_range(unsigned first, unsigned last, int flags)
{
	return (int)syscall(SYS_close_range, first, last, flags);
}
#endif
