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
