/* SPDX-License-Identifier: Apache-2.0 */
/* Landlock as a second lock: were a mount of the box writable by mistake, writing there would still be refused. */
#pragma once

#include <stddef.h>

#include "base/err.h"

/* The version that this kernel offers; 0 when it has none or it is switched off. */
int landlock_abi(void);
/* Confines the calling process and all its descendants: writing only beneath the `n` folders or files (O_PATH descriptors),
 * and, from ABI 6, no abstract sockets and no signals out of the box. Does nothing below ABI 2, which would break renames.
 * no_new_privs must be set. */
int landlock_confine(const int *writable, size_t n, struct err *err);
