/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Denied system calls. The filter answers the dangerous ones with SECCOMP_RET_USER_NOTIF; this handler, in the supervisor,
 * refuses each with EPERM (ENOSYS where libc must fall back) and reports it. It never lets one continue. When the supervisor is
 * gone the kernel answers ENOSYS.
 */
#pragma once

#include <stdint.h>
#include <sys/types.h>

#include "base/err.h"
#include "event/loop.h"

struct notify;

struct syscall_denial {
	int number;
	const char *name; /* "mount"; "unknown" when not in our table */
	pid_t pid;	  /* in the host's namespace */
	char command[17]; /* comm of the caller; from inside: untrusted */
	uint64_t args[6];
};

/* Takes the descriptor. on_denied is called for each; the caller limits what it records (nothing is dropped silently: count).
 */
struct notify *notify_new(struct loop *loop, int notify_fd, void (*on_denied)(void *ctx, const struct syscall_denial *d),
	void *ctx, struct err *err);
struct notify *notify_free(struct notify *n);
