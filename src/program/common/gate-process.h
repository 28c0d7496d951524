/* SPDX-License-Identifier: Apache-2.0 */
/* What the programs of the gate do alike before they listen. */
#pragma once

#include <stdbool.h>

#include "base/err.h"

enum { EXIT_FAILED = 125 };

/* Was the descriptor handed over at the start? */
bool gate_process_has(int fd);
/* Core files and tracing go; what libraries open or ask of the kernel on first use is done now. */
int gate_process_begin(struct err *err);
/* As many descriptors as it may have: each flow needs two or more, and the box's limits are counted elsewhere. */
void gate_process_raise_descriptors(void);
/* User, capabilities and paths go, then `restrict_calls` installs the program's own list. Nothing works after this but the sockets, what comes over
 * them, new connections to internet addresses, memory and time. */
int gate_process_confine(int (*restrict_calls)(struct err *err), struct err *err);
