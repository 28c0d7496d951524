/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the auditor takes away from itself once its files are open. Afterwards it can read its sockets, append to its two files,
 * and end. Each stage holds by itself; a kernel without Landlock (before 5.13, or switched off) leaves the others.
 */
#pragma once

#include "base/err.h"

/* Before anything is opened: no new privileges, no core file, no ptrace by the same user. */
int confine_begin(struct err *err);
/* As root: an unprivileged user; always: no capability, no descriptor more, no path, no system call that isn't on the list. */
int confine_finish(struct err *err);
