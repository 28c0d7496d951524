/* SPDX-License-Identifier: Apache-2.0 */
/* The system call filter of a box, generated from seccomp.table at build time. */
#pragma once

#include <linux/filter.h>
#include <stddef.h>

#include "base/err.h"

/* A call that is refused with notice, and what the supervisor answers. */
struct seccomp_refusal {
	int number;
	int error;
	const char *name;
};

/* Installs the filter in the calling thread for good (no_new_privs must be set) and returns the listener (close-on-exec), or
 * -1. */
int seccomp_install(struct err *err);
/* NULL when the table has no notice for that number. */
const struct seccomp_refusal *seccomp_refusal_find(int number);
/* The program, for tests. */
const struct sock_filter *seccomp_program_get(size_t *ret_len);
