/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Executions: the programs that the host asked for, their streams and their end.
 *
 * What the host may rely on: EXEC_STARTED comes once for each EXEC. When its error is 0, EXEC_EXITED follows once, as soon
 * as the program has ended. Every byte that it had written to stdout and stderr by then arrives before the EOF of these
 * streams, and that EOF comes even if a background child keeps them open: an execution ends with its own program. When the
 * error isn't 0, nothing ran and the streams end empty or are reset. The stream of stdin is reset when the program ends or
 * closes its end.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/err.h"
#include "event/loop.h"
#include "wire/messages.h"
#include "wire/mux.h"

#define EXEC_CEILING 128u /* at once, whatever the host configures: with three streams each they leave room for others */

struct exec_table;

struct exec_table *exec_table_new(struct loop *loop, struct mux *mux);
struct exec_table *exec_table_free(struct exec_table *t); /* accepts NULL; returns NULL. Processes are left alone */
void exec_table_set_max(struct exec_table *t, uint32_t max);

/* What the box can't do is reported to the host as EXEC_STARTED with an errno. -1 only when the host broke the protocol or
 * the pipe is over. */
int exec_start(struct exec_table *t, const struct wire_exec *m, struct err *err);
/* An execution that is gone is no error: they cross on the way. */
void exec_signal(struct exec_table *t, const struct wire_signal *m);
void exec_resize(struct exec_table *t, const struct wire_resize *m);
/* A process was collected. -1 when the pipe is over. */
int exec_reaped(struct exec_table *t, pid_t pid, int wait_status, struct err *err);
/* SIGKILL to the process groups of all executions. */
void exec_kill_all(struct exec_table *t);
/* True when no execution is left and everything they wrote was handed to the pipe. */
bool exec_idle(const struct exec_table *t);
