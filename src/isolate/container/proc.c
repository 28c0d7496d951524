/* SPDX-License-Identifier: Apache-2.0 */
/* /proc of the box: its own processes; knobs read-only; what tells about the host's kernel and hardware covered. */
#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/mem.h"
#include "isolate/common/mounts.h"
#include "isolate/container/build.h"

static const char *const read_only[] = { "sys", "irq", "bus", "sysrq-trigger" };
/* A folder is covered by an empty one, a file by /dev/null. What only root may touch is out of reach already: nobody in the box
 * is the host's root, and no process in it holds a capability. */
static const char *const covered[] = { "acpi", "asound", "scsi", "fs", "driver", "kcore", "keys", "kmsg", "kallsyms",
	"timer_list", "timer_stats", "sched_debug", "latency_stats", "interrupts", "cmdline", "modules", "slabinfo",
	"vmallocinfo", "kpagecount", "kpageflags", "kpagecgroup", "mdstat", "partitions", "diskstats", "swaps", "locks" };

static int mount_error(struct err *err)
{
	if (err && err->sys == EPERM)
		return err_set(err, ERR_UNSUPPORTED,
			"the kernel refuses a fresh /proc: parts of this one are covered, as container managers do it; run "
			"bulkhead "
			"outside of that container, or start it with an unmasked /proc (docker: --security-opt "
			"systempaths=unconfined)");
	return -1;
}

static int make_read_only(int proc_fd, const char *name, struct err *err)
{
	if (faccessat(proc_fd, name, F_OK, AT_SYMLINK_NOFOLLOW) < 0)
		return 0;
	cleanup_fd int fd = mount_clone(proc_fd, name, false, MOUNT_SAFE_RO | MOUNT_ATTR_NOEXEC, -1, err);
	return fd < 0 ? -1 : mount_attach(fd, proc_fd, name, err);
}

static int cover(const struct build *b, int proc_fd, const char *name, struct err *err)
{
	struct stat st;
	if (fstatat(proc_fd, name, &st, AT_SYMLINK_NOFOLLOW) < 0 || (st.st_mode & S_IRWXO) == 0)
		return 0;
	cleanup_fd int fd =
		S_ISDIR(st.st_mode)
			? mount_clone(b->root_fd, "mnt", false, MOUNT_SAFE_RO | MOUNT_ATTR_NOEXEC, -1, err)
			: mount_clone(b->root_fd, "dev/null", false, MOUNT_ATTR_NOSUID | MOUNT_ATTR_NOEXEC | MOUNT_ATTR_RDONLY, -1, err);
	return fd < 0 ? -1 : mount_attach(fd, proc_fd, name, err);
}

int view_add_proc(struct build *b, struct err *err)
{
	cleanup_fd int fd = mount_fresh("proc", NULL, MOUNT_SAFE | MOUNT_ATTR_NOEXEC, err);
	if (fd < 0)
		return mount_error(err);
	if (mount_attach(fd, b->root_fd, "proc", err) < 0)
		return -1;
	b->proc_fd = mount_clone(fd, "", false, MOUNT_SAFE | MOUNT_ATTR_NOEXEC, -1, err);
	if (b->proc_fd < 0)
		return -1;
	for (size_t i = 0; i < ARRAY_LEN(read_only); i++)
		if (make_read_only(fd, read_only[i], err) < 0)
			return -1;
	for (size_t i = 0; i < ARRAY_LEN(covered); i++)
		if (cover(b, fd, covered[i], err) < 0)
			return -1;
	return 0;
}
