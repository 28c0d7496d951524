/* SPDX-License-Identifier: Apache-2.0 */
/* Parts of the kernel that no program in a box needs, and other doors into it; the clock. */
#include <errno.h>
#include <fcntl.h>
#include <linux/bpf.h>
#include <linux/filter.h>
#include <linux/perf_event.h>
#include <linux/seccomp.h>
#include <stdint.h>
#include <sys/fanotify.h>
#include <sys/personality.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/timex.h>
#include <time.h>
#include <unistd.h>

#include "probe.h"

#define X32 0x40000000L
#define USER_MODE_ONLY 1 /* userfaultfd without privilege */
#define KEYCTL_JOIN_SESSION_KEYRING 1
#define LINUX_REBOOT(cmd) 0xfee1dead, 672274793, (long)(cmd)

static union bpf_attr map = { .map_type = BPF_MAP_TYPE_ARRAY, .key_size = 4, .value_size = 4, .max_entries = 1 };
static struct perf_event_attr event = { .type = PERF_TYPE_SOFTWARE, .size = sizeof(event), .exclude_kernel = 1, .exclude_hv = 1 };
static struct { unsigned bytes, type; unsigned char handle[128]; } handle = { .bytes = 128 };
static uint8_t ring[256], space[512];
static int mount_id;
static struct sock_filter allow_all[] = { BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW) };
static struct sock_fprog filter = { 1, allow_all };

static void numbers_of_x32(long number)
{
	conclude(syscall(X32 | number, 0, 0, 0, 0, 0, 0), "a call by its x32 number");
}
static void x32_getpid(void) { numbers_of_x32(SYS_getpid); }
static void x32_ptrace(void) { numbers_of_x32(521); }
static void x32_ioctl(void) { numbers_of_x32(514); }

/* The table of 32-bit programs: 20 is getpid there. */
static void int_80(void)
{
#if defined(__x86_64__)
	long result;
	__asm__ volatile("int $0x80" : "=a"(result) : "a"(20L) : "memory", "r8", "r9", "r10", "r11");
	errno = (int)-result;
	conclude(result < 0 ? -1 : result, "a call through the 32-bit entrance");
#else
	refused_by("no such entrance on this architecture");
#endif
}

static void new_listener(void)
{
	conclude(syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_NEW_LISTENER, &filter), "a second listener");
}

static void unknown_call(void) { conclude(syscall(999), "a number that nobody knows"); }
static void no_new_privs(void) { conclude(prctl(PR_SET_NO_NEW_PRIVS, 0, 0, 0, 0), "no_new_privs was cleared"); }
static void drop_filter(void) { conclude(prctl(PR_SET_SECCOMP, 0, 0, 0, 0), "the filter was taken off"); }

static const struct attempt rows[] = {
	{ "bpf", "bpf", "EPERM", NULL, SYS_bpf, { BPF_MAP_CREATE, (long)&map, sizeof(map) } },
	{ "perf_event_open", "perf_event_open", "EPERM", NULL, SYS_perf_event_open, { (long)&event, 0, -1, -1, 0 } },
	{ "userfaultfd", "userfaultfd", "EPERM", NULL, SYS_userfaultfd, { USER_MODE_ONLY } },
	{ "io_uring_setup", "io_uring_setup", "ENOSYS", NULL, SYS_io_uring_setup, { 4, (long)ring } },
	{ "io_uring_enter", "io_uring_enter", "ENOSYS", NULL, SYS_io_uring_enter, { 0, 1, 0, 0, 0 } },
	{ "io_uring_reg", "io_uring_register", "ENOSYS", NULL, SYS_io_uring_register, { -1, 0, 0, 0 } },
	{ "add_key", "add_key", "EPERM", NULL, SYS_add_key, { (long)"user", (long)"escape", (long)"x", 1, -3 } },
	{ "request_key", "request_key", "EPERM", NULL, SYS_request_key, { (long)"user", (long)"escape", 0, 0 } },
	{ "keyctl-session", "keyctl", "EPERM", NULL, SYS_keyctl, { KEYCTL_JOIN_SESSION_KEYRING, (long)"escape" } },
	{ "init_module", "init_module", "EPERM", NULL, SYS_init_module, { (long)space, sizeof(space), (long)"" } },
	{ "finit_module", "finit_module", "EPERM", NULL, SYS_finit_module, { 0, (long)"", 0 } },
	{ "delete_module", "delete_module", "EPERM", NULL, SYS_delete_module, { (long)"escape", O_NONBLOCK } },
	{ "kexec_load", "kexec_load", "EPERM", NULL, SYS_kexec_load, { 0, 0, 0, 0 } },
	{ "kexec_file_load", "kexec_file_load", "EPERM", NULL, SYS_kexec_file_load, { -1, -1, 0, 0, 0 } },
	{ "name_to_handle", "name_to_handle_at", "EPERM", NULL, SYS_name_to_handle_at, { AT_FDCWD, (long)"/usr", (long)&handle, (long)&mount_id, 0 } },
	{ "open_by_handle", "open_by_handle_at", "EPERM", NULL, SYS_open_by_handle_at, { AT_FDCWD, (long)&handle, O_RDONLY } },
	{ "fanotify_init", "fanotify_init", "EPERM", NULL, SYS_fanotify_init, { FAN_CLASS_NOTIF | FAN_REPORT_FID, O_RDONLY } },
	{ "quotactl", "quotactl", "EPERM", NULL, SYS_quotactl, { 0x80000700, 0, 0, (long)space } },
	{ "quotactl_fd", "quotactl_fd", "EPERM", NULL, SYS_quotactl_fd, { 0, 0x80000700, 0, (long)space } },
	{ "swapon", "swapon", "EPERM", NULL, SYS_swapon, { (long)"/tmp/escape", 0 } },
	{ "swapoff", "swapoff", "EPERM", NULL, SYS_swapoff, { (long)"/tmp/escape" } },
	{ "acct", "acct", "EPERM", NULL, SYS_acct, { (long)"/tmp/escape" } },
	{ "reboot", "reboot", "EPERM", NULL, SYS_reboot, { LINUX_REBOOT(0) } },
	{ "syslog-read", "syslog", "EPERM", NULL, SYS_syslog, { 3, (long)space, sizeof(space) } },
	{ "vhangup", "vhangup", "EPERM", NULL, SYS_vhangup, { 0 } },
#if defined(__x86_64__)
	{ "iopl", "iopl", "EPERM", NULL, SYS_iopl, { 3 } },
	{ "ioperm", "ioperm", "EPERM", NULL, SYS_ioperm, { 0x70, 1, 1 } },
	{ "modify_ldt", NULL, "EPERM", NULL, SYS_modify_ldt, { 0, (long)space, sizeof(space) } },
	{ "x32-getpid", "unknown", "EPERM", x32_getpid },
	{ "x32-ptrace", "unknown", "EPERM", x32_ptrace },
	{ "x32-ioctl", "unknown", "EPERM", x32_ioctl },
	{ "int-0x80", NULL, "SIGSYS", int_80 },
#endif
	{ "personality", NULL, "EPERM", NULL, SYS_personality, { READ_IMPLIES_EXEC } },
	{ "personality-2", NULL, "EPERM", NULL, SYS_personality, { ADDR_NO_RANDOMIZE | ADDR_COMPAT_LAYOUT } },
	{ "seccomp-listen", "seccomp", "EPERM", new_listener },
	{ "seccomp-off", NULL, "EINVAL", drop_filter },
	{ "nnp-off", NULL, "EINVAL", no_new_privs },
	{ "memfd_secret", "memfd_secret", "ENOSYS", NULL, SYS_memfd_secret, { 0 } },
	{ "unknown-number", NULL, "ENOSYS", unknown_call },
};
ATTEMPT_GROUP(kernel_attempts, "kernel", rows);

/* Setting it to what it shows already does no harm where it goes through. */
static void set_clock(void)
{
	struct timespec now;
	clock_gettime(CLOCK_REALTIME, &now);
	conclude(syscall(SYS_clock_settime, CLOCK_REALTIME, &now), "the clock was set");
}
static void set_time_of_day(void)
{
	struct timespec now;
	clock_gettime(CLOCK_REALTIME, &now);
	struct timeval tv = { now.tv_sec, now.tv_nsec / 1000 };
	conclude(syscall(SYS_settimeofday, &tv, NULL), "the clock was set");
}
static struct timex look;
static void wake_alarm(void)
{
	conclude(syscall(SYS_timerfd_create, CLOCK_REALTIME_ALARM, 0), "an alarm that wakes the machine");
}

static const struct attempt clock_rows[] = {
	{ "clock_settime", "clock_settime", "EPERM", set_clock },
	{ "settimeofday", "settimeofday", "EPERM", set_time_of_day },
	{ "adjtimex", "adjtimex", "EPERM", NULL, SYS_adjtimex, { (long)&look } },
	{ "clock_adjtime", "clock_adjtime", "EPERM", NULL, SYS_clock_adjtime, { CLOCK_REALTIME, (long)&look } },
	{ "wake-alarm", NULL, "EPERM", wake_alarm },
};
ATTEMPT_GROUP(clock_attempts, "clock", clock_rows);
