/* SPDX-License-Identifier: Apache-2.0 */
/* /dev of the box: six devices that hold no state of the host, terminals of its own, and links. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/mem.h"
#include "isolate/common/mounts.h"
#include "isolate/container/build.h"

static const struct {
	const char *name;
	unsigned major, minor;
} devices[] = {
	{ "null", 1, 3 },
	{ "zero", 1, 5 },
	{ "full", 1, 7 },
	{ "random", 1, 8 },
	{ "urandom", 1, 9 },
	{ "tty", 5, 0 },
};
static const struct {
	const char *name, *target;
} links[] = {
	{ "fd", "/proc/self/fd" },
	{ "stdin", "/proc/self/fd/0" },
	{ "stdout", "/proc/self/fd/1" },
	{ "stderr", "/proc/self/fd/2" },
	{ "ptmx", "pts/ptmx" },
};

/* Read-only as a mount: a device can be written to all the same, but the host's node keeps its times. */
#define DEVICE_MOUNT (MOUNT_ATTR_NOSUID | MOUNT_ATTR_NOEXEC | MOUNT_ATTR_RDONLY)

static int add_device(int host_dev, int dev_fd, size_t i, struct err *err)
{
	struct stat st;
	const char *name = devices[i].name;
	if (mknodat(dev_fd, name, S_IFREG | 0644, 0) < 0)
		return err_sys(err, errno, "can't create /dev/%s of the box", name);
	cleanup_fd int fd = mount_clone(host_dev, name, false, DEVICE_MOUNT, -1, err);
	if (fd < 0)
		return -1;
	/* The very device, not something that stands in its place. */
	if (fstat(fd, &st) < 0 || !S_ISCHR(st.st_mode) || st.st_rdev != makedev(devices[i].major, devices[i].minor))
		return err_set(err, ERR_UNSUPPORTED,
			"the host's /dev/%s is not the device %u:%u; a box built with it couldn't be trusted", name,
			devices[i].major, devices[i].minor);
	return mount_attach(fd, dev_fd, name, err);
}

/* The machine's number of pseudo terminals is for all boxes together: none may take them all. */
static int add_terminals(int dev_fd, struct err *err)
{
	const struct fs_option options[] = { { "newinstance", NULL }, { "max", "256" }, { "ptmxmode", "0666" }, { "mode", "0620" },
		{ NULL, NULL } };
	cleanup_fd int fd = mount_fresh("devpts", options, MOUNT_ATTR_NOSUID | MOUNT_ATTR_NOEXEC, err);
	return fd < 0 ? -1 : mount_attach(fd, dev_fd, "pts", err);
}

int view_add_dev(struct build *b, struct err *err)
{
	cleanup_fd int host_dev = open("/dev", O_PATH | O_DIRECTORY | O_CLOEXEC);
	cleanup_fd int dev_fd = path_open_beneath(b->root_fd, "dev", O_RDONLY | O_DIRECTORY, 0);
	if (host_dev < 0 || dev_fd < 0)
		return err_sys(err, errno, "can't open /dev");
	for (size_t i = 0; i < ARRAY_LEN(devices); i++)
		if (add_device(host_dev, dev_fd, i, err) < 0)
			return -1;
	for (size_t i = 0; i < ARRAY_LEN(links); i++)
		if (symlinkat(links[i].target, dev_fd, links[i].name) < 0)
			return err_sys(err, errno, "can't create /dev/%s of the box", links[i].name);
	return add_terminals(dev_fd, err);
}
