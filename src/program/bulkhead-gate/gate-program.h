/* SPDX-License-Identifier: Apache-2.0 */
/* The main program of the gate's front half, with or without the part that looks into connections. */
#pragma once

#include "base/err.h"
#include "gate/interceptor.h"

struct gate_program {
	const char *name;
	const struct interceptor_ops *interceptor;      /* NULL: tunnels only */
	int (*prepare)(int link_fd, struct err *err);   /* before confinement; NULL without an interceptor */
	int (*restrict_calls)(struct err *err);         /* the program's own system call list */
};

/* The exit status. */
int gate_program_run(const struct gate_program *p);
