/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/pty.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/ioctl.h>
#include <termios.h>
#include <unistd.h>

#include "base/fd.h"

int pty_resize(int master, uint16_t rows, uint16_t columns)
{
	struct winsize size = { .ws_row = rows, .ws_col = columns };
	return ioctl(master, TIOCSWINSZ, &size) < 0 ? -errno : 0;
}

int pty_open(uint16_t rows, uint16_t columns, int *ret_master, int *ret_slave)
{
	cleanup_fd int master = open("/dev/ptmx", O_RDWR | O_NOCTTY | O_NONBLOCK | O_CLOEXEC);
	if (master < 0)
		return -errno;
	int unlock = 0;
	if (ioctl(master, TIOCSPTLCK, &unlock) < 0)
		return -errno;
	/* by descriptor, not by path: /dev/pts is the box's to rename things in */
	cleanup_fd int slave = ioctl(master, TIOCGPTPEER, O_RDWR | O_NOCTTY | O_CLOEXEC);
	if (slave < 0)
		return -errno;
	int r = pty_resize(master, rows, columns);
	if (r < 0)
		return r;
	*ret_master = fd_steal(&master);
	*ret_slave = fd_steal(&slave);
	return 0;
}

int pty_type_eof(int master, bool mid_line)
{
	struct termios t;
	if (tcgetattr(master, &t) < 0)
		return -errno;
	if (t.c_cc[VEOF] == _POSIX_VDISABLE)
		return 1; /* the program has said that it knows no end of input */
	cc_t typed[2] = { t.c_cc[VEOF], t.c_cc[VEOF] };
	size_t n = mid_line && (t.c_lflag & ICANON) ? 2 : 1;
	ssize_t written = write(master, typed, n);
	if (written < 0)
		return errno == EAGAIN || errno == EINTR ? 0 : -errno;
	return (size_t)written == n;
}
