/* SPDX-License-Identifier: Apache-2.0 */
/*
 * File descriptors and paths below a directory descriptor. Descriptors are close-on-exec from birth;
 * -1 means none. Paths that an untrusted party could have shaped are only ever opened beneath a
 * descriptor, with openat2(2) (Linux 5.6).
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/err.h"

void fd_close(int *fd);       /* closes *fd if ≥ 0 and sets it to -1; keeps errno */
void fd_cleanup(int *fd);
#define cleanup_fd __attribute__((cleanup(fd_cleanup)))
#define fd_steal(pfd) __extension__({ int fd_ = *(pfd); *(pfd) = -1; fd_; })

int fd_set_nonblock(int fd, bool on);  /* 0 or -errno */
int fd_set_cloexec(int fd, bool on);   /* 0 or -errno */

/* A close-on-exec duplicate (≥ 3) of an inherited descriptor for use in an event loop. A pipe or terminal is reopened, so that
 * O_NONBLOCK is set on a description of our own and not on the one that the shell and its other children share; only where that
 * is not permitted the shared one becomes non-blocking. Sockets and files are merely duplicated (files never block; use
 * MSG_DONTWAIT on sockets, as wire/pump.h does). Returns fd or -errno. */
int fd_dup_nonblock(int fd);

/* Whole-buffer I/O that retries EINTR and short transfers. 0 or -errno; fd_read_full gives -ENODATA at an early end. */
int fd_write_full(int fd, const void *data, size_t len);
int fd_read_full(int fd, void *data, size_t len);

/* Reads a whole file of at most `max` bytes; appends a NUL that *ret_len does not count. A longer file is an error
 * (ERR_LIMIT). Free with mem_free. */
int fd_read_file_at(int dirfd, const char *path, size_t max, char **ret_data, size_t *ret_len, struct err *err);
/* The same for files of our own: nothing but a regular file, and no link at the end of the path. Never waits. */
int fd_read_regular_at(int dirfd, const char *path, size_t max, char **ret_data, size_t *ret_len, struct err *err);
/* Writes `data` to an existing (kernel) file in one write(2): cgroup and /proc knobs. */
int fd_write_file_at(int dirfd, const char *path, const char *data, struct err *err);
/* Creates or replaces a regular file whole: temp name in the same folder, write, (fsync when `sync`), rename. */
int fd_replace_file_at(int dirfd, const char *path, const void *data, size_t len, mode_t mode, bool sync, struct err *err);

/* openat2 beneath dirfd: no "..", no absolute path, no symbolic link in any component (RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS |
 * RESOLVE_NO_MAGICLINKS). O_CLOEXEC is added. Returns fd or -errno. */
int path_open_beneath(int dirfd, const char *path, int flags, mode_t mode);
/* openat2 with RESOLVE_IN_ROOT: links resolve as if dirfd were "/". Returns fd or -errno. */
int path_open_in_root(int dirfd, const char *path, int flags, mode_t mode);
/* mkdir -p beneath dirfd, refusing links in the way. 0 or -errno. */
int path_mkdir_beneath(int dirfd, const char *path, mode_t mode);
/* Removes a tree below dirfd/name without following links or crossing onto another file system; a missing tree is fine.
 * Adds owner permissions on the way where they are missing. Goes on after a failure and returns the first one. Any depth is
 * handled with a bounded number of descriptors. Whoever could still add files there must be dead before. 0 or -errno. */
int path_remove_tree(int dirfd, const char *name);
/* Joins and normalises nothing: "a" + "b" = "a/b". Free with mem_free. */
char *path_join(const char *a, const char *b);

/* Sends / receives one datagram or stream chunk with up to FD_PASS_MAX descriptors (SCM_RIGHTS); received ones are
 * close-on-exec. On receive, a truncated control message closes what arrived and fails with -EPROTO.
 * Both return bytes transferred (0 at end of file) or -errno. */
#define FD_PASS_MAX 16
ssize_t fd_send(int sock, const void *data, size_t len, const int *fds, size_t n_fds);
ssize_t fd_recv(int sock, void *data, size_t len, int *ret_fds, size_t *n_fds /* in: room, out: got */);
