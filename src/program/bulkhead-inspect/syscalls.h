/* SPDX-License-Identifier: Apache-2.0 */
/* The front half's system call list. */
#pragma once

#include "base/err.h"

/* Opening a path fails with EACCES; any other call outside the list ends the process. */
int syscalls_restrict(struct err *err);
