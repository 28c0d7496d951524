/* SPDX-License-Identifier: Apache-2.0 */
/* Terminals of the box's own devpts. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

/* A new pair: master non-blocking, both close-on-exec; the slave doesn't become anyone's controlling terminal by this. 0 or
 * -errno. */
int pty_open(uint16_t rows, uint16_t columns, int *ret_master, int *ret_slave);
int pty_resize(int master, uint16_t rows, uint16_t columns); /* 0 or -errno; the kernel sends SIGWINCH */

/* A terminal has no end of file: the end of input is its VEOF character, typed. `mid_line` says that the last byte typed was
 * no newline: then the first VEOF only hands over the begun line, and a second one is the end. 1: typed; 0: no room, try
 * again when writable; or -errno. */
int pty_type_eof(int master, bool mid_line);
