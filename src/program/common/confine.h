/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a helper program takes away from itself, in stages; each holds by itself, and each says what still works after it. The
 * program's own system call list comes last (common/syscall-list.h).
 */
#pragma once

#include "base/err.h"

/* Takes: privileges by exec (no_new_privs), core files, ptrace and /proc/PID access by the same user. Everything else still
 * works. */
int confine_begin(struct err *err);
/* As root: becomes an unprivileged user without groups. An ordinary user stays who it is. The order of death with the parent
 * (PDEATHSIG), which the kernel forgets here, is given again. Files that only the old user could open can't be opened any more. */
int confine_drop_user(struct err *err);
/* Takes every capability. */
int confine_drop_capabilities(struct err *err);
/* Takes every path of the file system, listening for TCP, abstract sockets and signals outward, as far as the kernel's Landlock
 * can (none before Linux 5.13: then the system call list holds alone). Open descriptors still work. */
int confine_close_paths(struct err *err);
