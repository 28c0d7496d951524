/* SPDX-License-Identifier: Apache-2.0 */
/* The caller's terminal while a box has its own: raw mode, size, always put back. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

/* True when standard input and output are terminals. */
bool terminal_interactive(void);
void terminal_raw(void);      /* keeps the old settings; restored by terminal_restore */
void terminal_restore(void);  /* idempotent; safe in a signal handler */
void terminal_size(uint16_t *ret_rows, uint16_t *ret_columns);
/* A descriptor of our own for stdin, stdout or stderr, non-blocking without changing the one that the shell shares. -1 when it is closed. */
int terminal_own_fd(int fd, int flags);
