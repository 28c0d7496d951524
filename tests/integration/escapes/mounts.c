/* SPDX-License-Identifier: Apache-2.0 */
/* The mount family, old and new. */
#include <fcntl.h>
#include <stdint.h>
#include <sys/mount.h>
#include <sys/syscall.h>

#include "probe.h"

#define NAME (long)"bulkhead-escape"
#define MARK(type) NAME, (long)"/tmp", (long)(type)

static struct mount_attr writable = { .attr_clr = MOUNT_ATTR_RDONLY | MOUNT_ATTR_NOSUID };
#ifndef SYS_statmount
#define SYS_statmount 457
#define SYS_listmount 458
#endif
static struct { uint32_t size, spare; uint64_t id, param, more; } ask_root = { .size = 24, .id = UINT64_MAX };
static uint64_t answer[64];
static const struct { uint64_t flags, mode, resolve; } openat2_how = { .flags = O_RDONLY };

static const struct attempt rows[] = {
	{ "mount-tmpfs", "mount", "EPERM", NULL, SYS_mount, { MARK("tmpfs"), 0, 0 } },
	{ "mount-proc", "mount", "EPERM", NULL, SYS_mount, { MARK("proc"), 0, 0 } },
	{ "mount-sysfs", "mount", "EPERM", NULL, SYS_mount, { MARK("sysfs"), 0, 0 } },
	{ "mount-cgroup", "mount", "EPERM", NULL, SYS_mount, { MARK("cgroup"), 0, (long)"memory" } },
	{ "mount-cgroup2", "mount", "EPERM", NULL, SYS_mount, { MARK("cgroup2"), 0, 0 } },
	{ "mount-devtmpfs", "mount", "EPERM", NULL, SYS_mount, { MARK("devtmpfs"), 0, 0 } },
	{ "mount-overlay", "mount", "EPERM", NULL, SYS_mount, { MARK("overlay"), 0, (long)"lowerdir=/usr,upperdir=/tmp,workdir=/run" } },
	{ "mount-bind", "mount", "EPERM", NULL, SYS_mount, { (long)"/usr", (long)"/tmp", 0, MS_BIND } },
	{ "mount-shared", "mount", "EPERM", NULL, SYS_mount, { 0, (long)"/", 0, MS_SHARED | MS_REC } },
	{ "remount-usr-rw", "mount", "EPERM", NULL, SYS_mount, { 0, (long)"/usr", 0, MS_REMOUNT | MS_BIND } },
	{ "remount-root-rw", "mount", "EPERM", NULL, SYS_mount, { 0, (long)"/", 0, MS_REMOUNT | MS_BIND } },
	{ "remount-sys-rw", "mount", "EPERM", NULL, SYS_mount, { 0, (long)"/proc/sys", 0, MS_REMOUNT | MS_BIND } },
	{ "remount-size", "mount", "EPERM", NULL, SYS_mount, { 0, (long)"/tmp", 0, MS_REMOUNT, (long)"size=100%" } },
	{ "umount-mask", "umount2", "EPERM", NULL, SYS_umount2, { (long)"/proc/cmdline", MNT_DETACH } },
	{ "umount-proc-sys", "umount2", "EPERM", NULL, SYS_umount2, { (long)"/proc/sys", MNT_DETACH } },
	{ "umount-work", "umount2", "EPERM", NULL, SYS_umount2, { (long)"/workspace", MNT_DETACH } },
	{ "fsopen", "fsopen", "EPERM", NULL, SYS_fsopen, { (long)"tmpfs", 0 } },
	{ "fsconfig", "fsconfig", "EPERM", NULL, SYS_fsconfig, { 0, FSCONFIG_CMD_CREATE, 0, 0, 0 } },
	{ "fsmount", "fsmount", "EPERM", NULL, SYS_fsmount, { 0, 0, 0 } },
	{ "fspick", "fspick", "EPERM", NULL, SYS_fspick, { AT_FDCWD, (long)"/usr", 0 } },
	{ "open_tree", "open_tree", "EPERM", NULL, SYS_open_tree, { AT_FDCWD, (long)"/usr", OPEN_TREE_CLONE } },
	{ "move_mount", "move_mount", "EPERM", NULL, SYS_move_mount, { AT_FDCWD, (long)"/proc/sys", AT_FDCWD, (long)"/tmp", 0 } },
	{ "mount_setattr", "mount_setattr", "EPERM", NULL, SYS_mount_setattr, { AT_FDCWD, (long)"/usr", 0, (long)&writable, sizeof(writable) } },
	{ "pivot_root", "pivot_root", "EPERM", NULL, SYS_pivot_root, { (long)"/tmp", (long)"/tmp" } },
	{ "chroot", "chroot", "EPERM", NULL, SYS_chroot, { (long)"/tmp" } },
	{ "listmount", NULL, "ENOSYS", NULL, SYS_listmount, { (long)&ask_root, (long)answer, 64, 0 } },
	{ "statmount", NULL, "ENOSYS", NULL, SYS_statmount, { (long)&ask_root, (long)answer, sizeof(answer), 0 } },
	{ "openat2", NULL, "ENOSYS", NULL, SYS_openat2, { AT_FDCWD, (long)"/", (long)&openat2_how, sizeof(openat2_how) } },
};
ATTEMPT_GROUP(mount_attempts, "mounts", rows);
