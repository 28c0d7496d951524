/* SPDX-License-Identifier: Apache-2.0 */
/* Starting bulkhead-audit on a sandbox's folder. */
#pragma once

#include <stdbool.h>
#include <sys/types.h>

#include "base/err.h"

struct audit_process {
	pid_t pid;
	int pidfd;
	int supervisor_fd; /* for audit_client_new */
	int gate_fd;	   /* to be handed to the gate, then closed here; -1 without one */
	int upstream_fd;   /* likewise, to its upstream half */
};

/* Own session, no death signal: it ends when its sources have closed, and only then, so that the end of the record is written
 * whoever died. */
int audit_start(int dirfd, bool with_gate, bool with_upstream, struct audit_process *ret, struct err *err);
