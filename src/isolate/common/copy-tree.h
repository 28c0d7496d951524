/* SPDX-License-Identifier: Apache-2.0 */
/* A plain copy of a folder, where the kernel can't show the folder itself as a copy. The source is untrusted: nothing in it is followed or
 * executed. */
#pragma once

#include "base/err.h"
#include "isolate/common/userns.h"

/* Copies folders, files, links, modes and times below src_dir into the empty folder dst_dir; owners go through the maps (ids
 * without a place become the last one of the range); without maps everything belongs to the caller. Sockets, pipes and devices are left out. Doesn't cross onto other file
 * systems. ERR_LIMIT where the target is full. */
int copy_tree(int src_dir, int dst_dir, const struct id_map *uids, const struct id_map *gids, struct err *err);
