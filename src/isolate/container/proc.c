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
/* A folder is covered by an empty one, a file by /dev/null. */
static const char *const covered[] = { "acpi", "asound", "scsi", "fs", "driver", "kcore", "keys", "key-users", "kmsg", "kallsyms", "timer_list",
	"timer_stats", "sched_debug", "latency_stats", "interrupts", "softirqs", "cmdline", "modules", "iomem", "ioports", "slabinfo",
	"vmallocinfo", "kpagecount", "kpageflags", "kpagecgroup", "mdstat", "partitions", "diskstats", "swaps", "cgroups", "config.gz" };

static int mount_error(struct err *err)
{
	if (err && err->sys == EPERM)
		return err_set(err, ERR_UNSUPPORTED, "the kernel refuses a fresh /proc: parts of this one are covered, as container managers do it; run bulkhead "
			"outside of that container, or start it with an unmasked /proc (docker: --security-opt systempaths=unconfined)");
	return -1;
}

/* Knobs of the box's own network: the agent listens on low ports without any privilege, and on addresses that are only routed to loopback. */
static int set_network_knobs(int proc_fd, struct err *err)
{
	if (fd_write_file_at(proc_fd, "sys/net/ipv4/ip_unprivileged_port_start", "0", err) < 0)
		return -1;
	if (faccessat(proc_fd, "sys/net/ipv6/ip_nonlocal_bind", F_OK, 0) < 0)
		return 0;
	return fd_write_file_at(proc_fd, "sys/net/ipv6/ip_nonlocal_bind", "1", err);
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
	if (fstatat(proc_fd, name, &st, AT_SYMLINK_NOFOLLOW) < 0)
		return 0;
	cleanup_fd int fd = S_ISDIR(st.st_mode) ? mount_clone(b->root_fd, "mnt", false, MOUNT_SAFE_RO | MOUNT_ATTR_NOEXEC, -1, err)
						: mount_clone(b->root_fd, "dev/null", false, MOUNT_ATTR_NOSUID | MOUNT_ATTR_NOEXEC, -1, err);
	return fd < 0 ? -1 : mount_attach(fd, proc_fd, name, err);
}

int view_add_proc(struct build *b, struct err *err)
{
	cleanup_fd int fd = mount_fresh("proc", NULL, MOUNT_SAFE | MOUNT_ATTR_NOEXEC, err);
	if (fd < 0)
		return mount_error(err);
	if (set_network_knobs(fd, err) < 0 || mount_attach(fd, b->root_fd, "proc", err) < 0)
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
