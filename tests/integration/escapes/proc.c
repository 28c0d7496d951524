/* SPDX-License-Identifier: Apache-2.0 */
/* /proc and /sys: the agent's secrets, the kernel's knobs, what is masked. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "probe.h"

static void open_for_reading(const char *path)
{
	char byte;
	int fd = open(path, O_RDONLY);
	if (fd < 0)
		refused(errno);
	ssize_t n = read(fd, &byte, 1);
	if (n < 0)
		refused(errno);
	succeeded("%s was read%s", path, n == 0 ? " (empty)" : "");
}

static void write_text(const char *path, const char *text)
{
	int fd = open(path, O_WRONLY);
	if (fd < 0)
		refused(errno);
	conclude(write(fd, text, strlen(text)), path);
}

/* There, but covered: it must yield nothing. */
static void must_be_empty(const char *path)
{
	char byte;
	int fd = open(path, O_RDONLY);
	if (fd < 0)
		refused(errno);
	ssize_t n = read(fd, &byte, 1);
	if (n > 0)
		succeeded("%s tells about the host", path);
	refused_by("covered");
}

static void agent_environ(void) { open_for_reading("/proc/1/environ"); }
static void agent_maps(void) { open_for_reading("/proc/1/maps"); }
static void agent_memory(void)
{
	char byte;
	int fd = open("/proc/1/mem", O_RDWR);
	if (fd < 0)
		refused(errno);
	conclude(pread(fd, &byte, 1, 0x400000), "the agent's memory is open");
}
static void agent_syscall(void) { open_for_reading("/proc/1/syscall"); }
static void agent_auxv(void) { open_for_reading("/proc/1/auxv"); }
static void agent_link(const char *path)
{
	char text[256];
	conclude(readlink(path, text, sizeof(text)), path);
}
static void agent_exe(void) { agent_link("/proc/1/exe"); }
static void agent_cwd(void) { agent_link("/proc/1/cwd"); }
static void agent_root(void) { conclude(open("/proc/1/root/", O_RDONLY | O_DIRECTORY), "the agent's root folder"); }
static void agent_descriptors(void)
{
	DIR *d = opendir("/proc/1/fd");
	if (!d)
		refused(errno);
	succeeded("the agent's descriptors can be listed");
}
static void agent_pipe(void) { conclude(open("/proc/1/fd/3", O_RDWR), "the agent's pipe"); }
static void agent_thread(void) { conclude(open("/proc/1/task/1/fd/3", O_RDWR), "the agent's pipe, by its thread"); }
static void agent_exe_write(void) { conclude(open("/proc/1/exe", O_WRONLY), "the agent's program is open for writing"); }

static void core_pattern(void) { write_text("/proc/sys/kernel/core_pattern", "|/tmp/escape"); }
static void modprobe(void) { write_text("/proc/sys/kernel/modprobe", "/tmp/escape"); }
static void hotplug(void) { write_text("/proc/sys/kernel/hotplug", "/tmp/escape"); }
static void randomize(void) { write_text("/proc/sys/kernel/randomize_va_space", "0"); }
static void dumpable(void) { write_text("/proc/sys/fs/suid_dumpable", "1"); }
static void binfmt(void) { write_text("/proc/sys/fs/binfmt_misc/register", ":e:M::XX::/tmp/escape:"); }
static void overcommit(void) { write_text("/proc/sys/vm/overcommit_memory", "1"); }
static void user_limit(void) { write_text("/proc/sys/user/max_user_namespaces", "100"); }
static void forwarding(void) { write_text("/proc/sys/net/ipv4/ip_forward", "1"); }
static void last_pid(void) { write_text("/proc/sys/kernel/ns_last_pid", "1"); }
static void default_ttl(void) { write_text("/proc/sys/net/ipv4/ip_default_ttl", "65"); }
static void sysctl_host_name(void) { write_text("/proc/sys/kernel/hostname", "escaped"); }
static void sysctl_mode(void) { conclude(chmod("/proc/sys/kernel/core_pattern", 0666), "a knob's mode was changed"); }
static void sysrq(void) { write_text("/proc/sysrq-trigger", "h"); }
static void irq(void) { write_text("/proc/irq/default_smp_affinity", "1"); }
static void bus(void)
{
	struct stat st;
	if (stat("/proc/bus/pci", &st) < 0)
		refused(errno);
	conclude(open("/proc/bus/pci/escape", O_WRONLY | O_CREAT, 0644), "a file in /proc/bus/pci");
}
static void oom_down(void) { write_text("/proc/self/oom_score_adj", "-1000"); }
static void own_uid_map(void) { write_text("/proc/self/uid_map", "0 0 1\n"); }
static void own_gid_map(void) { write_text("/proc/self/gid_map", "0 0 1\n"); }
static void own_setgroups(void) { write_text("/proc/self/setgroups", "allow"); }
static void own_timens(void) { write_text("/proc/self/timens_offsets", "monotonic 1000 0\n"); }

static void kcore(void) { must_be_empty("/proc/kcore"); }
static void keys(void) { must_be_empty("/proc/keys"); }
static void kmsg(void) { must_be_empty("/proc/kmsg"); }
static void symbols(void) { must_be_empty("/proc/kallsyms"); }
static void command_line(void) { must_be_empty("/proc/cmdline"); }
static void timers(void) { must_be_empty("/proc/timer_list"); }
static void interrupts(void) { must_be_empty("/proc/interrupts"); }
static void flags(void) { must_be_empty("/proc/kpageflags"); }
static void disks(void) { must_be_empty("/proc/diskstats"); }
static void acpi(void)
{
	DIR *d = opendir("/proc/acpi");
	if (!d)
		refused(errno);
	for (struct dirent *e; (e = readdir(d));)
		if (e->d_name[0] != '.')
			succeeded("/proc/acpi shows %s", e->d_name);
	refused_by("covered");
}

/* Where it stands in the host's cgroups would be told here. */
static void own_cgroup(void)
{
	char line[512];
	FILE *f = fopen("/proc/self/cgroup", "r");
	if (!f)
		broken("/proc/self/cgroup can't be read");
	while (fgets(line, sizeof(line), f)) {
		const char *at = strrchr(line, ':');
		if (at && strcmp(at, ":/\n") != 0)
			succeeded("the host's cgroup shows: %s", at);
	}
	refused_by("every cgroup is /");
}

static void release_agent(void) { write_text("/sys/fs/cgroup/release_agent", "/tmp/escape"); }
static void release_agent_v1(void) { write_text("/sys/fs/cgroup/memory/release_agent", "/tmp/escape"); }
static void notify_release(void) { write_text("/sys/fs/cgroup/memory/notify_on_release", "1"); }
static void cgroup_out(void) { write_text("/sys/fs/cgroup/pids/cgroup.procs", "0"); }
static void uevent_helper(void) { write_text("/sys/kernel/uevent_helper", "/tmp/escape"); }
static void power(void) { write_text("/sys/power/state", "mem"); }
static void debugfs(void) { conclude(open("/sys/kernel/debug/tracing", O_RDONLY | O_DIRECTORY), "debugfs"); }
static void security_fs(void) { conclude(open("/sys/kernel/security", O_RDONLY | O_DIRECTORY), "securityfs"); }
static void bpf_fs(void) { conclude(open("/sys/fs/bpf", O_RDONLY | O_DIRECTORY), "the bpf file system"); }

static const struct attempt rows[] = {
	{ "agent-environ", NULL, "EACCES|EPERM", agent_environ },
	{ "agent-maps", NULL, "EACCES|EPERM", agent_maps },
	{ "agent-memory", NULL, "EACCES|EPERM", agent_memory },
	{ "agent-syscall", NULL, "EACCES|EPERM", agent_syscall },
	{ "agent-auxv", NULL, "EACCES|EPERM", agent_auxv },
	{ "agent-exe", NULL, "EACCES|EPERM", agent_exe },
	{ "agent-exe-write", NULL, "EACCES|EPERM", agent_exe_write },
	{ "agent-cwd", NULL, "EACCES|EPERM", agent_cwd },
	{ "agent-root", NULL, "EACCES|EPERM", agent_root },
	{ "agent-fds", NULL, "EACCES|EPERM", agent_descriptors },
	{ "agent-pipe", NULL, "EACCES|EPERM", agent_pipe },
	{ "agent-task-pipe", NULL, "EACCES|EPERM", agent_thread },
	{ "core_pattern", NULL, "EACCES|EROFS", core_pattern },
	{ "modprobe-path", NULL, "EACCES|EROFS|ENOENT", modprobe },
	{ "hotplug-path", NULL, "EACCES|EROFS|ENOENT", hotplug },
	{ "randomize-va", NULL, "EACCES|EROFS", randomize },
	{ "suid_dumpable", NULL, "EACCES|EROFS", dumpable },
	{ "binfmt_misc", NULL, "EACCES|EROFS|ENOENT", binfmt },
	{ "overcommit", NULL, "EACCES|EROFS", overcommit },
	{ "max-user-ns", NULL, "EACCES|EROFS", user_limit },
	{ "ip_forward", NULL, "EACCES|EROFS", forwarding },
	{ "ns_last_pid", NULL, "EACCES|EROFS|ENOENT", last_pid },
	{ "default_ttl", NULL, "EACCES|EROFS", default_ttl },
	{ "sysctl-hostname", NULL, "EACCES|EROFS", sysctl_host_name },
	{ "sysctl-chmod", NULL, "EPERM|EROFS", sysctl_mode },
	{ "sysrq-trigger", NULL, "EACCES|EROFS|ENOENT", sysrq },
	{ "irq-affinity", NULL, "EACCES|EROFS|ENOENT", irq },
	{ "proc-bus", NULL, "EACCES|EROFS|ENOENT", bus },
	{ "oom_score_adj", NULL, "EACCES|EPERM", oom_down },
	{ "own-uid_map", NULL, "EPERM|EACCES", own_uid_map },
	{ "own-gid_map", NULL, "EPERM|EACCES", own_gid_map },
	{ "own-setgroups", NULL, "EPERM|EACCES", own_setgroups },
	{ "own-timens", NULL, "EPERM|EACCES|ENOENT", own_timens },
	{ "read-kcore", NULL, "ok|EACCES|ENOENT", kcore },
	{ "read-keys", NULL, "ok|ENOENT", keys },
	{ "read-kmsg", NULL, "ok|EACCES|ENOENT", kmsg },
	{ "read-kallsyms", NULL, "ok|EACCES|ENOENT", symbols },
	{ "read-cmdline", NULL, "ok", command_line },
	{ "read-timer_list", NULL, "ok|EACCES|ENOENT", timers },
	{ "read-interrupts", NULL, "ok|ENOENT", interrupts },
	{ "read-kpageflags", NULL, "ok|EACCES|ENOENT", flags },
	{ "read-diskstats", NULL, "ok|ENOENT", disks },
	{ "read-acpi", NULL, "ok|ENOENT", acpi },
	{ "cgroup-path", NULL, "ok", own_cgroup },
	{ "release_agent", NULL, "ENOENT", release_agent },
	{ "release_agent-1", NULL, "ENOENT", release_agent_v1 },
	{ "notify_release", NULL, "ENOENT", notify_release },
	{ "cgroup-leave", NULL, "ENOENT", cgroup_out },
	{ "uevent_helper", NULL, "ENOENT", uevent_helper },
	{ "power-state", NULL, "ENOENT", power },
	{ "debugfs", NULL, "ENOENT", debugfs },
	{ "securityfs", NULL, "ENOENT", security_fs },
	{ "bpffs", NULL, "ENOENT", bpf_fs },
};
ATTEMPT_GROUP(proc_attempts, "proc", rows);
