/* SPDX-License-Identifier: Apache-2.0 */
/* v2's own rules: controllers are handed down folder by folder, and a folder that hands them down may hold no process itself.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/mem.h"
#include "isolate/common/cgroup-internal.h"

static const struct {
	const char *name;
	unsigned bit;
} names[] = { { "cpu", CGROUP_CPU }, { "memory", CGROUP_MEMORY }, { "pids", CGROUP_PIDS } };

static unsigned parse_controllers(const char *text)
{
	unsigned bits = 0;
	for (size_t i = 0; i < ARRAY_LEN(names); i++) {
		size_t len = strlen(names[i].name);
		for (const char *p = text; (p = strstr(p, names[i].name)); p += len)
			if ((p == text || p[-1] == ' ') && (p[len] == ' ' || p[len] == '\n' || p[len] == '\0'))
				bits |= names[i].bit;
	}
	return bits;
}

unsigned cgroup_v2_controllers(const char *path, const char *file)
{
	cleanup_fd int fd = open(path, O_PATH | O_DIRECTORY | O_CLOEXEC);
	cleanup_free char *text = NULL;
	size_t len;
	if (fd < 0 || fd_read_file_at(fd, file, 4096, &text, &len, NULL) < 0)
		return 0;
	return parse_controllers(text);
}

static unsigned not_enabled(const char *path, unsigned controllers)
{
	return controllers & ~cgroup_v2_controllers(path, "cgroup.subtree_control");
}

static int enable(const char *path, unsigned controllers, struct err *err)
{
	char text[64] = "";
	for (size_t i = 0; i < ARRAY_LEN(names); i++)
		if (controllers & names[i].bit)
			snprintf(text + strlen(text), sizeof(text) - strlen(text), "%s+%s", *text ? " " : "", names[i].name);
	if (!*text)
		return 0;
	cleanup_fd int fd = open(path, O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (fd < 0)
		return err_sys(err, errno, "can't open the cgroup %s", path);
	return fd_write_file_at(fd, "cgroup.subtree_control", text, err);
}

/* Every process of the base into a leaf. Ones that end meanwhile are fine; ones that come meanwhile are seen in the next round.
 */
static int move_aside(const char *base, struct err *err)
{
	cleanup_fd int base_fd = open(base, O_PATH | O_DIRECTORY | O_CLOEXEC);
	for (int round = 0; round < 16; round++) {
		cleanup_free char *pids = NULL;
		size_t len;
		char *save = NULL;
		if (fd_read_file_at(base_fd, "cgroup.procs", 1u << 20, &pids, &len, err) < 0)
			return -1;
		if (len == 0)
			return 0;
		if (mkdirat(base_fd, "bulkhead-main", 0755) < 0 && errno != EEXIST)
			return err_sys(err, errno, "can't create a cgroup in %s", base);
		for (char *pid = strtok_r(pids, "\n", &save); pid; pid = strtok_r(NULL, "\n", &save)) {
			struct err moved = ERR_INIT;
			if (fd_write_file_at(base_fd, "bulkhead-main/cgroup.procs", pid, &moved) < 0 && moved.sys != ESRCH) {
				if (err)
					*err = moved;
				return err_wrap(err, "can't move process %s out of the way in %s", pid, base);
			}
		}
	}
	return err_set(err, ERR_CONFLICT, "the cgroup %s gets new processes faster than they can be moved aside", base);
}

/* Every cgroup but the root of the hierarchy has a type. The root may hold processes beside the cgroups it hands controllers to. */
static bool is_hierarchy_root(const char *path)
{
	cleanup_free char *type = path_join(path, "cgroup.type");
	return access(type, F_OK) < 0 && errno == ENOENT;
}

int cgroup_v2_delegate(const char *base, unsigned controllers, struct err *err)
{
	cleanup_free char *folder = path_join(base, CGROUP_FOLDER);
	/* First aside, then enable: with processes in the way the kernel takes "+cpu" alone, makes the cgroup a threaded one, and
	 * refuses "+memory" for ever after. */
	unsigned missing = not_enabled(base, controllers);
	if (missing && !is_hierarchy_root(base) && move_aside(base, err) < 0)
		return -1;
	if (enable(base, missing, err) < 0)
		return err_wrap(err, "can't hand cgroup controllers down from %s", base);
	if (mkdir(folder, 0755) < 0 && errno != EEXIST)
		return err_sys(err, errno, "can't create the cgroup %s", folder);
	return enable(folder, not_enabled(folder, controllers), err);
}
