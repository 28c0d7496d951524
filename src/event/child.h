/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Starting a program of ours: vfork-like speed, exact descriptor table, empty signal mask, default dispositions, PDEATHSIG.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/err.h"

struct child_fd { int fd; int as; }; /* descriptor `fd` of ours appears as number `as` in the child */

struct child_spec {
	const char *path;            /* absolute */
	char *const *argv;
	char *const *envp;
	const struct child_fd *fds;  /* all other descriptors above 2 are closed in the child (close_range, Linux 5.9) */
	size_t n_fds;
	bool keep_stdio;             /* false: 0, 1 are /dev/null; 2 is always kept for diagnostics */
	int death_signal;            /* PDEATHSIG, 0 for none */
	bool new_session;            /* setsid: terminal signals don't reach it */
};

/* 0 with *ret_pid and *ret_pidfd (close-on-exec), or -1. A failing exec is reported here with its errno, not as an exit
 * status. */
int child_start(const struct child_spec *spec, pid_t *ret_pid, int *ret_pidfd, struct err *err);
/* Waits (blocking) and reaps through the pidfd. *ret_status as from waitpid. 0 or -errno. */
int child_wait(int pidfd, int *ret_status);
/* As child_wait, but gives up after timeout_ns: false when it still runs. */
bool child_wait_bounded(int pidfd, uint64_t timeout_ns, int *ret_status);
/* Path of a sibling program: $BULKHEAD_LIBEXEC/name, else the folder of /proc/self/exe, else the compiled-in libexec folder.
 * $BULKHEAD_LIBEXEC is ignored when running set-id. Free with mem_free; NULL + err when not there. */
char *child_find_program(const char *name, struct err *err);
