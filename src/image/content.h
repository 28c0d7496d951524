/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Contents of regular files, streamed. Cost follows the data on disk, not the apparent size: a file of 8 EiB that is one hole
 * costs nothing to hash, compare or copy.
 *
 * Digest: BLAKE2b-256 of the content (`b2sum -l 256` gives the same). A file with more than 1 MiB of holes has the sparse
 * digest instead: BLAKE2b-256 of "bulkhead-sparse-v1\n", its size (u64, big-endian), and for each 64 KiB block that isn't all
 * zeroes its offset (u64, big-endian) and bytes.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/stat.h>

#include "base/err.h"

#define DIGEST_HEX_SIZE 65

/* Does this file get the sparse digest? */
bool content_is_sparse(const struct stat *st);
/* 0 or -errno. */
int content_digest(int fd, bool sparse, char out[DIGEST_HEX_SIZE]);
/* 1 equal, 0 different, -errno. */
int content_equal(int a, int b);
/* Copies all of `from` to the empty file `to`, keeping holes. With `digest`, fails with -EBADMSG when what was read has another
 * one. 0 or -errno. */
int content_copy(int from, int to, const char *digest, bool sparse);
