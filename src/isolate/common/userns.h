/* SPDX-License-Identifier: Apache-2.0 */
/*
 * User namespaces as descriptors: for the box to enter and for id-mapped mounts. Each is made by a helper process that lives
 * for as long as it takes to write the maps.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/err.h"

/* Line of a uid_map: `count` ids from `inside` are ids from `outside` in the parent namespace. */
struct id_range {
	uint32_t inside, outside, count;
};
#define ID_MAP_MAX 6
struct id_map {
	struct id_range ranges[ID_MAP_MAX];
	size_t n;
};

/* For an id-mapped mount: a file of `owner` shows up as host id base+1000, one of 1000 as base+owner (or base+65535 where that
 * doesn't fit), any other id k below 65535 as base+k. */
void id_map_for_owner(struct id_map *ret, uint32_t owner, uint32_t base);
/* A fresh user namespace with these maps (the caller must hold CAP_SETUID and CAP_SETGID here, or map only itself). Returns fd
 * or -1. Takes a process for a moment, which is told to end and not waited for: userns_collect does that. */
int userns_create(const struct id_map *uids, const struct id_map *gids, struct err *err);
void userns_collect(void);
/* Moves the caller into a fresh user namespace in which it is uid and gid `id`, with all capabilities there: the ordinary
 * user's way. Names what forbids it (sysctls, AppArmor, a container manager's filter). */
int userns_enter_single(uint32_t id, struct err *err);
