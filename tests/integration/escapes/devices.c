/* SPDX-License-Identifier: Apache-2.0 */
/* Device nodes, and terminals: input that is pushed into them, and other people's. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <termios.h>
#include <unistd.h>

#include "probe.h"

static void by_link(void)
{
	if (symlink("/tmp", "/workspace/to-tmp") < 0 && errno != EEXIST)
		broken("no link: %s", strerror(errno));
	conclude(mknod("/workspace/to-tmp/memory", S_IFCHR | 0666, makedev(1, 1)), "a device behind a link");
}

static void open_device(const char *path) { conclude(open(path, O_RDWR), path); }
static void dev_mem(void) { open_device("/dev/mem"); }
static void dev_port(void) { open_device("/dev/port"); }
static void dev_kmsg(void) { open_device("/dev/kmsg"); }
static void dev_kvm(void) { open_device("/dev/kvm"); }
static void dev_fuse(void) { open_device("/dev/fuse"); }
static void dev_loop(void) { open_device("/dev/loop0"); }
static void dev_loop_control(void) { open_device("/dev/loop-control"); }
static void dev_disk(void) { open_device(argument("disk")); }
static void dev_tun(void) { open_device("/dev/net/tun"); }
static void dev_vsock(void) { open_device("/dev/vsock"); }
static void dev_console(void) { open_device("/dev/console"); }
static void dev_tty1(void) { open_device("/dev/tty1"); }
static void dev_uffd(void) { open_device("/dev/userfaultfd"); }
static void dev_host(void) { open_device(argument("device")); }

static void other_devices(void)
{
	static const char *const known[] = { ".", "..", "null", "zero", "full", "random", "urandom", "tty", "fd", "stdin", "stdout", "stderr", "ptmx", "pts", "shm" };
	DIR *d = opendir("/dev");
	if (!d)
		broken("/dev can't be listed");
	for (struct dirent *e; (e = readdir(d));) {
		size_t i = 0;
		while (i < sizeof(known) / sizeof(known[0]) && strcmp(known[i], e->d_name) != 0)
			i++;
		if (i == sizeof(known) / sizeof(known[0]))
			succeeded("/dev/%s", e->d_name);
	}
	refused_by("six devices and its own terminals");
}

static void null_mode(void) { conclude(chmod("/dev/null", 0600), "the host's /dev/null was changed"); }
static void null_times(void) { conclude(utimensat(AT_FDCWD, "/dev/null", NULL, 0), "the times of the host's /dev/null were changed"); }
static void null_replace(void) { conclude(unlink("/dev/null"), "/dev/null was removed"); }

static const struct attempt device_rows[] = {
	{ "mknod-memory", "mknodat", "EPERM", NULL, SYS_mknodat, { AT_FDCWD, (long)"/tmp/memory", S_IFCHR | 0666, 0x101 } },
	{ "mknod-disk", "mknodat", "EPERM", NULL, SYS_mknodat, { AT_FDCWD, (long)"/tmp/disk", S_IFBLK | 0666, 0xfe00 } },
	{ "mknod-whiteout", "mknodat", "EPERM", NULL, SYS_mknodat, { AT_FDCWD, (long)"/tmp/whiteout", S_IFCHR, 0 } },
	{ "mknod-highbit", "mknodat", "EPERM", NULL, SYS_mknodat, { AT_FDCWD, (long)"/tmp/high", (1L << 32) | S_IFCHR | 0666, 0x101 } },
#ifdef SYS_mknod
	{ "mknod-old-call", "mknod", "EPERM", NULL, SYS_mknod, { (long)"/tmp/old", S_IFCHR | 0666, 0x101 } },
#endif
	{ "mknod-by-link", "mknodat", "EPERM", by_link },
	{ "dev-mem", NULL, "ENOENT", dev_mem },
	{ "dev-port", NULL, "ENOENT", dev_port },
	{ "dev-kmsg", NULL, "ENOENT", dev_kmsg },
	{ "dev-kvm", NULL, "ENOENT", dev_kvm },
	{ "dev-fuse", NULL, "ENOENT", dev_fuse },
	{ "dev-loop0", NULL, "ENOENT", dev_loop },
	{ "dev-loop-ctl", NULL, "ENOENT", dev_loop_control },
	{ "dev-disk", NULL, "ENOENT", dev_disk },
	{ "dev-tun", NULL, "ENOENT", dev_tun },
	{ "dev-vsock", NULL, "ENOENT", dev_vsock },
	{ "dev-console", NULL, "ENOENT", dev_console },
	{ "dev-tty1", NULL, "ENOENT", dev_tty1 },
	{ "dev-userfault", NULL, "ENOENT", dev_uffd },
	{ "dev-of-host", NULL, "ENOENT", dev_host },
	{ "other-devices", NULL, "ok", other_devices },
	{ "null-mode", NULL, "EPERM|EROFS", null_mode },
	{ "null-times", NULL, "EROFS", null_times },
	{ "null-replace", NULL, "EROFS|EACCES|EBUSY|EPERM", null_replace },
};
ATTEMPT_GROUP(device_attempts, "devices", device_rows);

/* ---- terminals ---- */

#define TIOCLINUX_PASTE 3
static const unsigned long HIGH = 0xdead00000000ul;

/* A terminal of one's own will do: what is refused is the request. */
static int own_terminal(void)
{
	int master = posix_openpt(O_RDWR | O_NOCTTY), unlock = 0;
	if (master < 0 || ioctl(master, TIOCSPTLCK, &unlock) < 0)
		broken("no pseudo terminal: %s", strerror(errno));
	int slave = ioctl(master, TIOCGPTPEER, O_RDWR | O_NOCTTY);
	if (slave < 0)
		broken("no pseudo terminal: %s", strerror(errno));
	return slave;
}
static void push(unsigned long request)
{
	char byte = 'x';
	conclude(syscall(SYS_ioctl, own_terminal(), request, &byte), "input was pushed into a terminal");
}
static void sti(void) { push(TIOCSTI); }
static void sti_high(void) { push(HIGH | TIOCSTI); }
static void sti_negative(void) { push((unsigned long)(long)(int)(0x80000000u | TIOCSTI)); }
static void paste(unsigned long request)
{
	char what = TIOCLINUX_PASTE;
	conclude(syscall(SYS_ioctl, own_terminal(), request, &what), "the console's selection was pasted");
}
static void tioclinux(void) { paste(TIOCLINUX); }
static void tioclinux_high(void) { paste(HIGH | TIOCLINUX); }
/* The one that is there already, which every kernel has. */
static void discipline(void)
{
	int n_tty = 0;
	conclude(ioctl(own_terminal(), TIOCSETD, &n_tty), "a line discipline was set");
}
static void console(void) { conclude(ioctl(own_terminal(), TIOCCONS, 0), "the console's output"); }
static void controlling(void) { conclude(open("/dev/tty", O_RDWR), "a controlling terminal that is not the box's"); }

/* Its own are numbered from 0; the host's don't show. */
static void host_terminals(void)
{
	unsigned n = 0;
	DIR *d = opendir("/dev/pts");
	if (!d)
		broken("/dev/pts can't be listed");
	for (struct dirent *e; (e = readdir(d));)
		n += e->d_name[0] != '.' && strcmp(e->d_name, "ptmx") != 0;
	if (n > 0)
		succeeded("%u terminals are there already", n);
	refused_by("none but its own");
}

static const struct attempt terminal_rows[] = {
	{ "TIOCSTI", "ioctl", "EPERM", sti },
	{ "TIOCSTI-high", "ioctl", "EPERM", sti_high },
	{ "TIOCSTI-bit31", NULL, "ENOTTY|EPERM|EINVAL", sti_negative },
	{ "TIOCLINUX", "ioctl", "EPERM", tioclinux },
	{ "TIOCLINUX-high", "ioctl", "EPERM", tioclinux_high },
	{ "TIOCSETD", "ioctl", "EPERM", discipline },
	{ "TIOCCONS", NULL, "EPERM|EBUSY", console },
	{ "dev-tty", NULL, "ENXIO", controlling },
	{ "host-pts", NULL, "ok", host_terminals },
};
ATTEMPT_GROUP(terminal_attempts, "terminals", terminal_rows);
