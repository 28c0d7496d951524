/* SPDX-License-Identifier: Apache-2.0 */
/* The auditor's system call list. */
#pragma once

#include "base/err.h"

/* Any other call ends the process. */
int syscalls_restrict(struct err *err);
