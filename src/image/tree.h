/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reading a tree that somebody hostile shaped, or that somebody changes at the same time: every step beneath a descriptor, no
 * link followed, paths of any length (longer than PATH_MAX: in pieces), few descriptors open at once.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <sys/stat.h>
#include <sys/types.h>

#include "image/changes.h"

#define TREE_PATH_MAX (256u * 1024u) /* a path longer than this is refused with ERR_LIMIT */

/* Opens root/path ("" is root itself) beneath root. fd or -errno. */
int tree_open(int root, const char *path, int flags);
/* Opens the folder that holds root/path (O_PATH) and points *ret_name at the last component. fd or -errno. */
int tree_open_parent(int root, const char *path, const char **ret_name);
/* Opens parent/name for reading, a folder or a regular file as `kind` says. Where it belongs to us and its mode forbids
 * reading, the mode is widened for the owner first (widen = true: only for the box's leavings). fd or -errno; -ESTALE when it
 * is another kind of file by now. */
int tree_open_entry(int parent, const char *name, enum file_kind kind, bool widen);
/* chmod by an O_PATH descriptor, which can't be swapped under us. 0 or -errno. */
int tree_chmod(int fd, mode_t mode);
/* 0 or -errno; *ret_kind is FILE_NONE (and 0 returned) when there is no such entry. */
int tree_stat(int parent, const char *name, struct stat *ret, enum file_kind *ret_kind);
/* The same for a whole path; missing parents, or parents that are no folders, count as "no such entry". */
int tree_stat_path(int root, const char *path, struct stat *ret, enum file_kind *ret_kind);
/* The target of a link. Free with mem_free. NULL with errno. */
char *tree_read_link(int parent, const char *name);

enum file_kind tree_kind(const struct stat *st);
bool tree_is_whiteout(const struct stat *st);
/* fd is open for reading. */
bool tree_is_opaque(int fd);
int64_t tree_time_ns(const struct timespec *t);

struct names { char **items; size_t n; };
/* All names in the folder (open for reading), sorted by bytes, without "." and "..". 0 or -errno. */
int tree_names(int fd, struct names *ret);
void names_done(struct names *n);
bool names_contain(const struct names *n, const char *name);
