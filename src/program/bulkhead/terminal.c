/* SPDX-License-Identifier: Apache-2.0 */
#include "program/bulkhead/terminal.h"

#include <sys/ioctl.h>
#include <termios.h>
#include <unistd.h>

static struct termios saved;
static bool is_raw;

bool terminal_interactive(void)
{
	return isatty(STDIN_FILENO) && isatty(STDOUT_FILENO);
}

void terminal_raw(void)
{
	struct termios t;
	if (tcgetattr(STDIN_FILENO, &saved) < 0)
		return;
	t = saved;
	cfmakeraw(&t);
	is_raw = tcsetattr(STDIN_FILENO, TCSADRAIN, &t) == 0;
}

void terminal_restore(void)
{
	/* Unread input goes too: a terminal's answers to what the box printed last must not reach the shell as typed. */
	if (is_raw)
		tcsetattr(STDIN_FILENO, TCSAFLUSH, &saved);
	is_raw = false;
}

void terminal_size(uint16_t *ret_rows, uint16_t *ret_columns)
{
	struct winsize w = { 0 };
	if (ioctl(STDOUT_FILENO, TIOCGWINSZ, &w) < 0 || w.ws_row == 0 || w.ws_col == 0)
		w = (struct winsize){ .ws_row = 24, .ws_col = 80 };
	*ret_rows = w.ws_row;
	*ret_columns = w.ws_col;
}
