/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The kernel's mount interface by descriptors (Linux 5.2; attributes and id maps 5.12). A mount is made detached, gets its
 * attributes while nobody can reach it, and is attached last, at a place that is a descriptor too. Every function returns a
 * descriptor (O_PATH, close-on-exec) or 0, or -1.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"
#include "isolate/common/mount-api.h"

#define MOUNT_SAFE (MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV)
#define MOUNT_SAFE_RO (MOUNT_SAFE | MOUNT_ATTR_RDONLY)

/* A detached copy of the mount at dirfd/path ("" for dirfd itself) with `attrs` set. Links in the last component are not
 * followed. `userns_fd` ≥ 0: id-mapped (ERR_UNSUPPORTED names the file system that can't). */
int mount_clone(int dirfd, const char *path, bool recursive, uint64_t attrs, int userns_fd, struct err *err);

struct fs_option {
	const char *key, *value;
}; /* value NULL: a flag */
/* A detached mount of a fresh file system; options end with a NULL key. */
int mount_fresh(const char *type, const struct fs_option *options, uint64_t attrs, struct err *err);

/* Attaches at dirfd/path ("" for dirfd itself). A link in the last component is not followed, ones before it are: a path that
 * somebody else could have shaped must be opened first (path_open_beneath) and its descriptor given. */
int mount_attach(int mount_fd, int dirfd, const char *path, struct err *err);
