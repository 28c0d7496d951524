/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Fork and exec of one program, with everything between the two: session, descriptors, limits, folder, signals, search in PATH.
 *
 * A real fork, not vfork: programs in the box may stop any process of their uid, and a stopped vfork child would stop the
 * agent too.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/resource.h>
#include <sys/types.h>

struct spawn_spec {
	int in, out, err;             /* become 0, 1, 2; each ≥ 3 */
	bool tty;                     /* `in` is the terminal: becomes the controlling one */
	const char *cwd;
	char *const *argv, *const *envp;
	uint64_t nofile;              /* 0: `nofile_inherited` */
	struct rlimit nofile_inherited;
};

/* The child is leader of a new session and process group. Returns its pid or -errno. *ret_report is the read end of a pipe
 * (non-blocking) that ends at the exec; see spawn_read_report. */
pid_t spawn_start(const struct spawn_spec *spec, int *ret_report);

/* 1: the report is in: *ret_error is 0 when the program runs, else the errno of what failed. 0: not yet. */
int spawn_read_report(int report, int *ret_error);
