/* SPDX-License-Identifier: Apache-2.0 */
/* Changing and giving up privilege. Raw system calls: each acts on the calling thread only, and the launcher has one. */
#pragma once

#include <stdbool.h>
#include <sys/types.h>

#include "base/err.h"

/* Drops the bounding set, locks securebits, changes to uid and gid (all three of each), empties every capability set and sets
 * no_new_privs. `set_groups`: also empties the supplementary groups; false where the kernel doesn't allow setgroups (single-id
 * user namespaces). */
int privilege_drop(uid_t uid, gid_t gid, bool set_groups, struct err *err);

/* Changes the effective uid alone and keeps every capability, for what the kernel counts for its maker. The real uid must be 0; 0 leads back. */
int privilege_act_as(uid_t uid, struct err *err);
