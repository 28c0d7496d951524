/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Attempts to get out of a box, or at what isn't the box's, each by the plain system call. Prints "refused NAME" or "ESCAPED
 * NAME (…)" for each and "total N escaped M" at the end; exits 1 when anything got through. launch-box runs it inside; outside
 * of a box, as an ordinary user, many get through, which shows that the attempts are real.
 */
#include <arpa/inet.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/audit.h>
#include <linux/capability.h>
#include <linux/filter.h>
#include <linux/netlink.h>
#include <linux/seccomp.h>
#include <netinet/in.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/personality.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <sys/time.h>
#include <sys/timex.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

extern char **environ;
static char pty_name[64];
static int pty_master = -1, pty_slave = -1;

/* Each attempt returns 0 when it got through, else an errno (or -1: refused in another way). */
static int by_result(long r)
{
	return r < 0 ? errno : 0;
}

static int opened(const char *path, int flags)
{
	int fd = open(path, flags | O_CLOEXEC, 0644);
	if (fd < 0)
		return errno;
	close(fd);
	return 0;
}

/* Runs in a child; 0 when the child says that it got through. */
static int in_child(int (*what)(void))
{
	int status;
	pid_t pid = fork();
	if (pid == 0) {
		int r = what();
		_exit(r == 0 ? 0 : r > 0 && r < 256 ? r : 255);
	}
	if (pid < 0 || waitpid(pid, &status, 0) < 0)
		return errno;
	return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

static long sys_clone(unsigned long flags)
{
	long pid = syscall(SYS_clone, flags | SIGCHLD, 0, 0, 0, 0);
	if (pid == 0)
		_exit(0);
	if (pid > 0)
		waitpid((pid_t)pid, NULL, 0);
	return pid;
}

static int unshared(int flag)
{
	return by_result(unshare(flag));
}
static int unshare_user(void)
{
	return unshared(CLONE_NEWUSER);
}
static int unshare_mount(void)
{
	return unshared(CLONE_NEWNS);
}
static int unshare_pid(void)
{
	return unshared(CLONE_NEWPID);
}
static int unshare_net(void)
{
	return unshared(CLONE_NEWNET);
}
static int unshare_ipc(void)
{
	return unshared(CLONE_NEWIPC);
}
static int unshare_uts(void)
{
	return unshared(CLONE_NEWUTS);
}
static int unshare_cgroup(void)
{
	return unshared(CLONE_NEWCGROUP);
}
static int unshare_time(void)
{
	return unshared(0x80);
}
static int clone_user(void)
{
	return by_result(sys_clone(CLONE_NEWUSER));
}
static int clone_user_high(void)
{
	return by_result(sys_clone(CLONE_NEWUSER | 0xffff00000000ul));
}
static int clone_mount(void)
{
	return by_result(sys_clone(CLONE_NEWNS));
}
static int clone_net(void)
{
	return by_result(sys_clone(CLONE_NEWNET));
}
static int clone3_user(void)
{
	uint64_t args[11] = { CLONE_NEWUSER, 0, 0, 0, SIGCHLD };
	long pid = syscall(SYS_clone3, args, sizeof(args));
	if (pid == 0)
		_exit(0);
	return by_result(pid);
}
static int set_ns(const char *which)
{
	char path[64];
	snprintf(path, sizeof(path), "/proc/self/ns/%s", which);
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	return fd < 0 ? errno : by_result(setns(fd, 0));
}
static int setns_user(void)
{
	return set_ns("user");
}
static int setns_mount(void)
{
	return set_ns("mnt");
}
static int setns_net(void)
{
	return set_ns("net");
}

static int mount_tmpfs(void)
{
	return by_result(mount("x", "/tmp", "tmpfs", 0, NULL));
}
static int mount_proc(void)
{
	return by_result(mount("x", "/tmp", "proc", 0, NULL));
}
static int mount_cgroup(void)
{
	return by_result(mount("x", "/tmp", "cgroup", 0, "memory"));
}
static int mount_bind(void)
{
	return by_result(mount("/usr", "/tmp", NULL, MS_BIND, NULL));
}
static int mount_remount(void)
{
	return by_result(mount(NULL, "/", NULL, MS_REMOUNT | MS_BIND, NULL));
}
static int mount_shared(void)
{
	return by_result(mount(NULL, "/", NULL, MS_SHARED | MS_REC, NULL));
}
static int umount_sys(void)
{
	return by_result(umount2("/proc/sys", MNT_DETACH));
}
static int pivot(void)
{
	return by_result(syscall(SYS_pivot_root, ".", "."));
}
static int change_root(void)
{
	return by_result(chroot("/tmp"));
}
static int api_open_tree(void)
{
	return by_result(open_tree(AT_FDCWD, "/", OPEN_TREE_CLONE));
}
static int api_move_mount(void)
{
	return by_result(move_mount(AT_FDCWD, "/proc/sys", AT_FDCWD, "/tmp", 0));
}
static int api_fsopen(void)
{
	return by_result(fsopen("tmpfs", 0));
}
static int api_fspick(void)
{
	return by_result(fspick(AT_FDCWD, "/", 0));
}
static int api_fsconfig(void)
{
	return by_result(fsconfig(0, FSCONFIG_CMD_CREATE, NULL, NULL, 0));
}
static int api_fsmount(void)
{
	return by_result(fsmount(0, 0, 0));
}
static int api_setattr(void)
{
	struct mount_attr attr = { .attr_clr = MOUNT_ATTR_RDONLY };
	return by_result(mount_setattr(AT_FDCWD, "/", 0, &attr, sizeof(attr)));
}

static int trace_me(void)
{
	return by_result(ptrace(PTRACE_TRACEME, 0, NULL, NULL));
}
static int trace_init(void)
{
	return by_result(ptrace(PTRACE_SEIZE, 1, NULL, NULL));
}
static int vm_read(void)
{
	char data[8];
	struct iovec local = { data, 8 }, remote = { data, 8 };
	return by_result(process_vm_readv(getpid(), &local, 1, &remote, 1, 0));
}
static int vm_write(void)
{
	char data[8] = "";
	struct iovec local = { data, 8 }, remote = { data, 8 };
	return by_result(process_vm_writev(getpid(), &local, 1, &remote, 1, 0));
}
static int get_fd(void)
{
	int pidfd = (int)syscall(SYS_pidfd_open, getpid(), 0);
	return by_result(syscall(SYS_pidfd_getfd, pidfd, 0, 0));
}
static int compare(void)
{
	return by_result(syscall(SYS_kcmp, getpid(), getpid(), 0, 0, 0));
}
static int init_memory(void)
{
	return opened("/proc/1/mem", O_RDWR);
}

static int core_pattern(void)
{
	return opened("/proc/sys/kernel/core_pattern", O_WRONLY);
}
static int modprobe(void)
{
	return opened("/proc/sys/kernel/modprobe", O_WRONLY);
}
static int sysrq(void)
{
	return opened("/proc/sysrq-trigger", O_WRONLY);
}
static int ip_forward(void)
{
	return opened("/proc/sys/net/ipv4/ip_forward", O_WRONLY);
}
static int kcore(void)
{
	return opened("/proc/kcore", O_RDONLY);
}
static int max_namespaces(void)
{
	return opened("/proc/sys/user/max_user_namespaces", O_WRONLY);
}
static int has_content(const char *path)
{
	char c;
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	ssize_t n = fd >= 0 ? read(fd, &c, 1) : -1;
	if (fd >= 0)
		close(fd);
	return n > 0 ? 0 : EACCES;
}
static int kernel_log(void)
{
	return has_content("/proc/kmsg");
}
static int kernel_keys(void)
{
	return has_content("/proc/keys");
}
static int kernel_symbols(void)
{
	return has_content("/proc/kallsyms");
}
static int kernel_cmdline(void)
{
	return has_content("/proc/cmdline");
}
static int kernel_interrupts(void)
{
	return has_content("/proc/interrupts");
}
static int kernel_timers(void)
{
	return has_content("/proc/timer_list");
}
static int uid_map(void)
{
	int fd = open("/proc/self/uid_map", O_WRONLY | O_CLOEXEC);
	return fd < 0 ? errno : by_result(write(fd, "0 0 1\n", 6));
}
static int sys_firmware(void)
{
	return opened("/sys/firmware", O_RDONLY);
}
static int sys_cgroup(void)
{
	return opened("/sys/fs/cgroup", O_RDONLY);
}

static int made_node(mode_t mode, dev_t dev)
{
	int r = by_result(mknod("/tmp/escape-node", mode, dev));
	unlink("/tmp/escape-node");
	return r;
}
static int node_memory(void)
{
	return made_node(S_IFCHR | 0666, makedev(1, 1));
}
static int node_disk(void)
{
	return made_node(S_IFBLK | 0666, makedev(8, 0));
}
static int node_whiteout(void)
{
	return made_node(S_IFCHR | 0666, 0);
}
static int dev_memory(void)
{
	return opened("/dev/mem", O_RDONLY);
}
static int dev_log(void)
{
	return opened("/dev/kmsg", O_RDONLY);
}
static int dev_kvm(void)
{
	return opened("/dev/kvm", O_RDWR);
}
static int dev_fuse(void)
{
	return opened("/dev/fuse", O_RDWR);
}
static int dev_tun(void)
{
	return opened("/dev/net/tun", O_RDWR);
}
static int dev_loop(void)
{
	return opened("/dev/loop-control", O_RDWR);
}
static int dev_disk(void)
{
	/* Whatever block device the host has, none of it is here. */
	DIR *dir = opendir("/dev");
	struct stat st;
	int r = ENOENT;
	for (struct dirent *e; dir && (e = readdir(dir));)
		if (fstatat(dirfd(dir), e->d_name, &st, AT_SYMLINK_NOFOLLOW) == 0 && S_ISBLK(st.st_mode))
			r = 0;
	if (dir)
		closedir(dir);
	return r;
}

static int made_socket(int domain, int type, int protocol)
{
	int fd = socket(domain, type, protocol);
	if (fd < 0)
		return errno;
	close(fd);
	return 0;
}
static int socket_packet(void)
{
	return made_socket(AF_PACKET, SOCK_RAW, 0);
}
static int socket_packet_old(void)
{
	return made_socket(AF_INET, SOCK_PACKET, 0);
}
static int socket_vsock(void)
{
	return made_socket(AF_VSOCK, SOCK_STREAM, 0);
}
static int socket_alg(void)
{
	return made_socket(AF_ALG, SOCK_SEQPACKET, 0);
}
static int socket_key(void)
{
	return made_socket(AF_KEY, SOCK_RAW, 2);
}
static int socket_bluetooth(void)
{
	return made_socket(AF_BLUETOOTH, SOCK_RAW, 1);
}
static int socket_xdp(void)
{
	return made_socket(44, SOCK_RAW, 0);
}
static int socket_can(void)
{
	return made_socket(AF_CAN, SOCK_RAW, 1);
}
static int socket_raw(void)
{
	return made_socket(AF_INET, SOCK_RAW, IPPROTO_ICMP);
}
static int socket_raw6(void)
{
	return made_socket(AF_INET6, SOCK_RAW, IPPROTO_ICMPV6);
}
static int socket_ping(void)
{
	return made_socket(AF_INET, SOCK_DGRAM, IPPROTO_ICMP);
}
static int socket_sctp(void)
{
	return made_socket(AF_INET, SOCK_STREAM, IPPROTO_SCTP);
}
static int socket_audit(void)
{
	return made_socket(AF_NETLINK, SOCK_RAW, NETLINK_AUDIT);
}
static int socket_diag(void)
{
	return made_socket(AF_NETLINK, SOCK_RAW, NETLINK_SOCK_DIAG);
}
static int socket_uevent(void)
{
	return made_socket(AF_NETLINK, SOCK_RAW, NETLINK_KOBJECT_UEVENT);
}
static int pair_tipc(void)
{
	int fds[2];
	return by_result(socketpair(AF_TIPC, SOCK_STREAM, 0, fds));
}
static int connected(const char *address, uint16_t port, int type)
{
	struct sockaddr_in sa = { .sin_family = AF_INET, .sin_port = htons(port) };
	inet_pton(AF_INET, address, &sa.sin_addr);
	int fd = socket(AF_INET, type | SOCK_CLOEXEC, 0);
	struct timeval t = { 1, 0 };
	setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &t, sizeof(t));
	int r = by_result(connect(fd, (struct sockaddr *)&sa, sizeof(sa)));
	close(fd);
	return r;
}
static int net_world(void)
{
	return connected("192.0.2.1", 443, SOCK_STREAM) == ENETUNREACH ? ENETUNREACH : 0;
}
static int net_dns(void)
{
	return connected("9.9.9.9", 53, SOCK_DGRAM);
}
static int net_metadata(void)
{
	return connected("169.254.169.254", 80, SOCK_STREAM) == ENETUNREACH ? ENETUNREACH : 0;
}

static int call_bpf(void)
{
	return by_result(syscall(SYS_bpf, 0, NULL, 0)) == EPERM ? EPERM : 0;
}
static int call_perf(void)
{
	uint32_t attr[32] = { 1, 128 };
	return by_result(syscall(SYS_perf_event_open, attr, 0, -1, -1, 0));
}
static int call_userfault(void)
{
	return by_result(syscall(SYS_userfaultfd, 1));
}
static int call_uring(void)
{
	uint32_t params[30] = { 0 };
	return by_result(syscall(SYS_io_uring_setup, 4, params));
}
static int call_uring_enter(void)
{
	return by_result(syscall(SYS_io_uring_enter, 0, 0, 0, 0, NULL, 0)) == ENOSYS ? ENOSYS : 0;
}
static int call_keyctl(void)
{
	return by_result(syscall(SYS_keyctl, 0, -3, 1));
}
static int call_add_key(void)
{
	return by_result(syscall(SYS_add_key, "user", "escape", "x", 1, -2));
}
static int call_request_key(void)
{
	return by_result(syscall(SYS_request_key, "user", "escape", NULL, 0)) == EPERM ? EPERM : 0;
}
static int call_init_module(void)
{
	return by_result(syscall(SYS_init_module, NULL, 0, ""));
}
static int call_finit_module(void)
{
	return by_result(syscall(SYS_finit_module, -1, "", 0)) == EPERM ? EPERM : 0;
}
static int call_delete_module(void)
{
	return by_result(syscall(SYS_delete_module, "none", 0));
}
static int call_kexec(void)
{
	return by_result(syscall(SYS_kexec_load, 0, 0, NULL, 0));
}
static int call_reboot(void)
{
	return by_result(syscall(SYS_reboot, 0xfee1dead, 672274793, 0, NULL));
}
static int call_swapon(void)
{
	return by_result(syscall(SYS_swapon, "/none", 0));
}
static int call_swapoff(void)
{
	return by_result(syscall(SYS_swapoff, "/none"));
}
static int call_acct(void)
{
	return by_result(syscall(SYS_acct, "/tmp/none"));
}
static int call_quota(void)
{
	return by_result(syscall(SYS_quotactl, 0x800001, NULL, 0, NULL)) == EPERM ? EPERM : 0;
}
static int call_settime(void)
{
	struct timespec t;
	clock_gettime(CLOCK_REALTIME, &t);
	return by_result(clock_settime(CLOCK_REALTIME, &t));
}
static int call_settimeofday(void)
{
	struct timeval t;
	gettimeofday(&t, NULL);
	return by_result(settimeofday(&t, NULL));
}
static int call_adjtime(void)
{
	struct timex t = { 0 };
	return by_result(adjtimex(&t));
}
static int call_hostname(void)
{
	return by_result(sethostname("escape", 6));
}
static int call_domainname(void)
{
	return by_result(setdomainname("escape", 6));
}
static int call_syslog(void)
{
	return by_result(syscall(SYS_syslog, 10, NULL, 0));
}
static int call_vhangup(void)
{
	return by_result(vhangup());
}
static int call_fanotify(void)
{
	return by_result(syscall(SYS_fanotify_init, 0x200, 0));
}
static int call_handle(void)
{
	struct {
		unsigned bytes;
		int type;
		unsigned char data[128];
	} handle = { .bytes = 128 };
	int id;
	return by_result(syscall(SYS_name_to_handle_at, AT_FDCWD, "/usr", &handle, &id, 0));
}
static int call_open_handle(void)
{
	struct {
		unsigned bytes;
		int type;
		unsigned char data[8];
	} handle = { .bytes = 8 };
	return by_result(syscall(SYS_open_by_handle_at, AT_FDCWD, &handle, 0));
}
static int call_secret(void)
{
	return by_result(syscall(447, 0));
}
static int call_personality(void)
{
	long r = personality(READ_IMPLIES_EXEC);
	return by_result(r);
}
static int call_listener(void)
{
	struct sock_filter allow = { BPF_RET | BPF_K, 0, 0, SECCOMP_RET_ALLOW };
	struct sock_fprog program = { 1, &allow };
	prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
	return by_result(syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_NEW_LISTENER, &program)) == EPERM
		       ? EPERM
		       : 0;
}
#ifdef __x86_64__
static int call_iopl(void)
{
	return by_result(syscall(SYS_iopl, 3));
}
static int call_ioperm(void)
{
	return by_result(syscall(SYS_ioperm, 0x80, 1, 1));
}
static int call_ldt(void)
{
	uint32_t description[4] = { 0, 0, 0xfffff, 0x51 };
	return by_result(syscall(SYS_modify_ldt, 1, description, sizeof(description)));
}
static int call_x32(void)
{
	/* x32's own getpid and, by its number space, ptrace. */
	return by_result(syscall(0x40000000 + SYS_getpid));
}
static int int80_child(void)
{
	long r;
	__asm__ volatile("int $0x80" : "=a"(r) : "a"(20L) : "memory", "r8", "r9", "r10", "r11"); /* i386 getpid */
	return r > 0 ? 0 : ENOSYS;
}
static int call_int80(void)
{
	return in_child(int80_child);
}
#endif

static int terminal(unsigned long request, void *arg)
{
	if (pty_slave < 0)
		return 0;
	return by_result(syscall(SYS_ioctl, pty_slave, request, arg));
}
static int sti_child(unsigned long request)
{
	char c = 'x';
	setsid();
	ioctl(pty_slave, TIOCSCTTY, 0);
	return terminal(request, &c);
}
static int sti_low(void)
{
	return sti_child(0x5412);
}
static int sti_high(void)
{
	return sti_child(0x5412 | 0xabcd00000000ul);
}
static int tiocsti(void)
{
	return in_child(sti_low) == EPERM ? EPERM : 0;
}
static int tiocsti_high(void)
{
	return in_child(sti_high) == EPERM ? EPERM : 0;
}
static int tioclinux(void)
{
	char c = 2;
	return terminal(0x541c, &c) == EPERM ? EPERM : 0;
}
static int tioclinux_high(void)
{
	char c = 2;
	return terminal(0x541c | 0x100000000ul, &c) == EPERM ? EPERM : 0;
}

static int with_file(int (*what)(const char *path))
{
	const char *path = "/tmp/escape-file";
	int fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0644);
	if (fd >= 0)
		close(fd);
	int r = what(path);
	unlink(path);
	return r;
}
static int chmod_suid(const char *p)
{
	return by_result(chmod(p, 04755));
}
static int chmod_sgid(const char *p)
{
	return by_result(chmod(p, 02755));
}
static int fchmod_suid(const char *p)
{
	int fd = open(p, O_WRONLY | O_CLOEXEC);
	int r = by_result(fchmod(fd, 04755));
	close(fd);
	return r;
}
static int fchmodat_suid(const char *p)
{
	return by_result(syscall(SYS_fchmodat, AT_FDCWD, p, 06755));
}
static int fchmodat2_suid(const char *p)
{
	return by_result(syscall(452, AT_FDCWD, p, 04755, 0));
}
static int file_suid(void)
{
	return with_file(chmod_suid);
}
static int file_sgid(void)
{
	return with_file(chmod_sgid);
}
static int file_fchmod(void)
{
	return with_file(fchmod_suid);
}
static int file_fchmodat(void)
{
	return with_file(fchmodat_suid);
}
static int file_fchmodat2(void)
{
	return with_file(fchmodat2_suid);
}
static int file_open_suid(void)
{
	int r = by_result(syscall(SYS_openat, AT_FDCWD, "/tmp/escape-suid", O_CREAT | O_WRONLY, 04755));
	unlink("/tmp/escape-suid");
	return r;
}
static int file_mknod_suid(void)
{
	int r = by_result(mknod("/tmp/escape-suid", S_IFREG | 04755, 0));
	unlink("/tmp/escape-suid");
	return r;
}
static int file_openat2_suid(void)
{
	uint64_t how[3] = { O_CREAT | O_WRONLY, 04755, 0 };
	int r = by_result(syscall(437, AT_FDCWD, "/tmp/escape-suid", how, sizeof(how)));
	unlink("/tmp/escape-suid");
	return r;
}
static int write_usr(void)
{
	return opened("/usr/bin/escape", O_WRONLY | O_CREAT);
}
static int write_existing(void)
{
	return opened("/usr/bin/env", O_WRONLY);
}
static int write_etc(void)
{
	return opened("/etc/passwd", O_WRONLY);
}
static int write_root(void)
{
	return opened("/escape-root", O_WRONLY | O_CREAT);
}
static int write_dev(void)
{
	return opened("/dev/escape", O_WRONLY | O_CREAT);
}
static int write_certs(void)
{
	return opened("/etc/ssl/certs/escape.pem", O_WRONLY | O_CREAT);
}
static int unlink_bin(void)
{
	return by_result(unlink("/usr/bin/env"));
}
static int link_passwd(void)
{
	int r = by_result(link("/etc/passwd", "/tmp/escape-passwd"));
	unlink("/tmp/escape-passwd");
	return r;
}
static int read_shadow(void)
{
	return opened("/etc/shadow", O_RDONLY);
}
static int read_ssh(void)
{
	return opened("/root/.ssh", O_RDONLY);
}
static int read_docker(void)
{
	return opened("/run/docker.sock", O_PATH) == 0 || opened("/var/run/docker.sock", O_PATH) == 0 ? 0 : ENOENT;
}
static int read_dbus(void)
{
	return opened("/run/dbus", O_PATH) == 0 || opened("/run/user", O_PATH) == 0 ? 0 : ENOENT;
}

static int become_root(void)
{
	return by_result(syscall(SYS_setuid, 0));
}
static int become_root_group(void)
{
	return by_result(syscall(SYS_setgid, 0));
}
static int become_other(void)
{
	return by_result(syscall(SYS_setresuid, 1, 1, 1));
}
static int set_groups(void)
{
	gid_t zero = 0;
	return by_result(syscall(SYS_setgroups, 1, &zero));
}
static int set_caps(void)
{
	struct __user_cap_header_struct head = { .version = _LINUX_CAPABILITY_VERSION_3 };
	struct __user_cap_data_struct all[2] = { { ~0u, ~0u, ~0u }, { ~0u, ~0u, ~0u } };
	return by_result(syscall(SYS_capset, &head, all));
}
static int any_cap(void)
{
	struct __user_cap_header_struct head = { .version = _LINUX_CAPABILITY_VERSION_3 };
	struct __user_cap_data_struct now[2] = { 0 };
	syscall(SYS_capget, &head, now);
	for (int cap = 0; cap <= 40; cap++)
		if (prctl(PR_CAPBSET_READ, cap, 0, 0, 0) == 1)
			return 0;
	return now[0].permitted | now[1].permitted | now[0].effective | now[0].inheritable ? 0 : EPERM;
}
static int ambient_cap(void)
{
	return by_result(prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_RAISE, CAP_NET_ADMIN, 0, 0));
}
static int unset_nnp(void)
{
	return prctl(PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0) == 1 ? EPERM : 0;
}
static int suid_mounts(void)
{
	static const char *const places[] = { "/", "/usr", "/tmp", "/home/agent", "/run", "/dev/shm", "/var/tmp" };
	struct statvfs st;
	for (size_t i = 0; i < sizeof(places) / sizeof(places[0]); i++)
		if (statvfs(places[i], &st) == 0 && !(st.f_flag & ST_NOSUID))
			return 0;
	return EPERM;
}
static int real_time(void)
{
	struct sched_param p = { .sched_priority = 1 };
	return by_result(sched_setscheduler(0, SCHED_FIFO, &p));
}
static int nice_up(void)
{
	return by_result(setpriority(PRIO_PROCESS, 0, -5));
}
static int raise_files(void)
{
	struct rlimit l;
	getrlimit(RLIMIT_NOFILE, &l);
	l.rlim_max = l.rlim_cur = l.rlim_max + 1;
	return by_result(setrlimit(RLIMIT_NOFILE, &l));
}
static int core_files(void)
{
	struct rlimit l = { RLIM_INFINITY, RLIM_INFINITY };
	setrlimit(RLIMIT_CORE, &(struct rlimit){ 0, 0 }); /* would let a core handler of the host run */
	setrlimit(RLIMIT_CORE, &l);
	getrlimit(RLIMIT_CORE, &l);
	return l.rlim_cur == 1 && l.rlim_max == 1 ? EPERM : 0;
}
static int core_null_low(void)
{
	/* A new limit at an address whose low half is zero. */
	struct rlimit *l = mmap(
		(void *)0x200000000, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);
	struct rlimit now;
	if (l == MAP_FAILED)
		return 0;
	*l = (struct rlimit){ 0, 0 };
	syscall(SYS_prlimit64, 0, RLIMIT_CORE, l, NULL);
	munmap(l, 4096);
	getrlimit(RLIMIT_CORE, &now);
	return now.rlim_cur == 1 ? EPERM : 0;
}
static int old_aio(void)
{
	unsigned long context = 0;
	return by_result(syscall(SYS_io_setup, 1, &context));
}

static int signal_outward(void)
{
	/* Every process that can be named is in the box, so a number that is none of ours has nobody behind it. */
	return by_result(kill(4000000, 0));
}
static int leaked_descriptor(void)
{
	DIR *dir = opendir("/proc/self/fd");
	int r = EBADF;
	for (struct dirent *e; dir && (e = readdir(dir));) {
		int fd = atoi(e->d_name);
		if (e->d_name[0] != '.' && fd > 2 && fd != dirfd(dir) && fd != pty_master && fd != pty_slave)
			r = 0;
	}
	if (dir)
		closedir(dir);
	return r;
}
static int leaked_environment(void)
{
	for (char **e = environ; *e; e++)
		if (strncmp(*e, "PATH=", 5) != 0 && strncmp(*e, "HOME=", 5) != 0 && strncmp(*e, "LANG=", 5) != 0 &&
			strncmp(*e, "PWD=", 4) != 0 && strncmp(*e, "OLDPWD=", 7) != 0 && strncmp(*e, "SHLVL=", 6) != 0 &&
			strncmp(*e, "_=", 2) != 0)
			return 0;
	return ENOENT;
}
static int other_processes(void)
{
	/* Init of the host's namespace has kthreadd beside it. */
	char name[32] = "";
	int fd = open("/proc/2/comm", O_RDONLY | O_CLOEXEC);
	ssize_t n = fd >= 0 ? read(fd, name, sizeof(name) - 1) : 0;
	if (fd >= 0)
		close(fd);
	return n > 0 && strncmp(name, "kthreadd", 8) == 0 ? 0 : ENOENT;
}
static int landlock_sees(void)
{
	/* Writing outside of the writable places is refused twice; here the file system says it first, or Landlock does. */
	return opened("/srv/escape", O_WRONLY | O_CREAT);
}

struct attempt {
	const char *name;
	int (*what)(void);
	bool apart;
};
#define ATTEMPT(f)                                                                                                             \
	{                                                                                                                      \
#f, f, false                                                                                                   \
	}
#define APART(f)                                                                                                               \
	{                                                                                                                      \
#f, f, true                                                                                                    \
	} /* changes the process: runs in a child */

static const struct attempt attempts[] = {
	ATTEMPT(leaked_descriptor), /* first: later ones open some of their own */
	APART(unshare_user),
	APART(unshare_mount),
	APART(unshare_pid),
	APART(unshare_net),
	APART(unshare_ipc),
	APART(unshare_uts),
	APART(unshare_cgroup),
	APART(unshare_time),
	ATTEMPT(clone_user),
	ATTEMPT(clone_user_high),
	ATTEMPT(clone_mount),
	ATTEMPT(clone_net),
	ATTEMPT(clone3_user),
	APART(setns_user),
	APART(setns_mount),
	APART(setns_net),
	ATTEMPT(mount_tmpfs),
	ATTEMPT(mount_proc),
	ATTEMPT(mount_cgroup),
	ATTEMPT(mount_bind),
	ATTEMPT(mount_remount),
	ATTEMPT(mount_shared),
	ATTEMPT(umount_sys),
	ATTEMPT(pivot),
	APART(change_root),
	ATTEMPT(api_open_tree),
	ATTEMPT(api_move_mount),
	ATTEMPT(api_fsopen),
	ATTEMPT(api_fspick),
	ATTEMPT(api_fsconfig),
	ATTEMPT(api_fsmount),
	ATTEMPT(api_setattr),
	APART(trace_me),
	ATTEMPT(trace_init),
	ATTEMPT(vm_read),
	ATTEMPT(vm_write),
	ATTEMPT(get_fd),
	ATTEMPT(compare),
	ATTEMPT(init_memory),
	ATTEMPT(core_pattern),
	ATTEMPT(modprobe),
	ATTEMPT(sysrq),
	ATTEMPT(ip_forward),
	ATTEMPT(kcore),
	ATTEMPT(max_namespaces),
	ATTEMPT(kernel_log),
	ATTEMPT(kernel_keys),
	ATTEMPT(kernel_symbols),
	ATTEMPT(kernel_cmdline),
	ATTEMPT(kernel_interrupts),
	ATTEMPT(kernel_timers),
	ATTEMPT(uid_map),
	ATTEMPT(sys_firmware),
	ATTEMPT(sys_cgroup),
	ATTEMPT(node_memory),
	ATTEMPT(node_disk),
	ATTEMPT(node_whiteout),
	ATTEMPT(dev_memory),
	ATTEMPT(dev_log),
	ATTEMPT(dev_kvm),
	ATTEMPT(dev_fuse),
	ATTEMPT(dev_tun),
	ATTEMPT(dev_loop),
	ATTEMPT(dev_disk),
	ATTEMPT(socket_packet),
	ATTEMPT(socket_packet_old),
	ATTEMPT(socket_vsock),
	ATTEMPT(socket_alg),
	ATTEMPT(socket_key),
	ATTEMPT(socket_bluetooth),
	ATTEMPT(socket_xdp),
	ATTEMPT(socket_can),
	ATTEMPT(socket_raw),
	ATTEMPT(socket_raw6),
	ATTEMPT(socket_ping),
	ATTEMPT(socket_sctp),
	ATTEMPT(socket_audit),
	ATTEMPT(socket_diag),
	ATTEMPT(socket_uevent),
	ATTEMPT(pair_tipc),
	ATTEMPT(net_world),
	ATTEMPT(net_dns),
	ATTEMPT(net_metadata),
	ATTEMPT(call_bpf),
	ATTEMPT(call_perf),
	ATTEMPT(call_userfault),
	ATTEMPT(call_uring),
	ATTEMPT(call_uring_enter),
	ATTEMPT(call_keyctl),
	ATTEMPT(call_add_key),
	ATTEMPT(call_request_key),
	ATTEMPT(call_init_module),
	ATTEMPT(call_finit_module),
	ATTEMPT(call_delete_module),
	ATTEMPT(call_kexec),
	ATTEMPT(call_reboot),
	ATTEMPT(call_swapon),
	ATTEMPT(call_swapoff),
	ATTEMPT(call_acct),
	ATTEMPT(call_quota),
	ATTEMPT(call_settime),
	ATTEMPT(call_settimeofday),
	ATTEMPT(call_adjtime),
	ATTEMPT(call_hostname),
	ATTEMPT(call_domainname),
	ATTEMPT(call_syslog),
	ATTEMPT(call_vhangup),
	ATTEMPT(call_fanotify),
	ATTEMPT(call_handle),
	ATTEMPT(call_open_handle),
	ATTEMPT(call_secret),
	APART(call_personality),
	APART(call_listener),
#ifdef __x86_64__
	ATTEMPT(call_iopl),
	ATTEMPT(call_ioperm),
	APART(call_ldt),
	ATTEMPT(call_x32),
	ATTEMPT(call_int80),
#endif
	ATTEMPT(tiocsti),
	ATTEMPT(tiocsti_high),
	ATTEMPT(tioclinux),
	ATTEMPT(tioclinux_high),
	ATTEMPT(file_suid),
	ATTEMPT(file_sgid),
	ATTEMPT(file_fchmod),
	ATTEMPT(file_fchmodat),
	ATTEMPT(file_fchmodat2),
	ATTEMPT(file_open_suid),
	ATTEMPT(file_mknod_suid),
	ATTEMPT(file_openat2_suid),
	ATTEMPT(write_usr),
	ATTEMPT(write_existing),
	ATTEMPT(write_etc),
	ATTEMPT(write_root),
	ATTEMPT(write_dev),
	ATTEMPT(write_certs),
	ATTEMPT(unlink_bin),
	ATTEMPT(link_passwd),
	ATTEMPT(read_shadow),
	ATTEMPT(read_ssh),
	ATTEMPT(read_docker),
	ATTEMPT(read_dbus),
	APART(become_root),
	APART(become_root_group),
	APART(become_other),
	APART(set_groups),
	APART(set_caps),
	ATTEMPT(any_cap),
	APART(ambient_cap),
	ATTEMPT(unset_nnp),
	ATTEMPT(suid_mounts),
	APART(real_time),
	APART(nice_up),
	APART(raise_files),
	APART(core_files),
	APART(core_null_low),
	APART(old_aio),
	ATTEMPT(signal_outward),
	ATTEMPT(leaked_environment),
	ATTEMPT(other_processes),
	ATTEMPT(landlock_sees),
};

static void open_terminal(void)
{
	pty_master = open("/dev/ptmx", O_RDWR | O_NOCTTY | O_CLOEXEC);
	if (pty_master < 0 || grantpt(pty_master) < 0 || unlockpt(pty_master) < 0 ||
		ptsname_r(pty_master, pty_name, sizeof(pty_name)) != 0)
		return;
	pty_slave = open(pty_name, O_RDWR | O_NOCTTY | O_CLOEXEC);
}

int main(void)
{
	unsigned escaped = 0, n = sizeof(attempts) / sizeof(attempts[0]);
	setvbuf(stdout, NULL, _IOLBF, 0);
	open_terminal();
	for (unsigned i = 0; i < n; i++) {
		int r = attempts[i].apart ? in_child(attempts[i].what) : attempts[i].what();
		if (r == 0) {
			printf("ESCAPED %s\n", attempts[i].name);
			escaped++;
		} else {
			printf("refused %s (%s)\n", attempts[i].name, r > 0 ? strerror(r) : "killed");
		}
	}
	printf("total %u escaped %u\n", n, escaped);
	return escaped ? 1 : 0;
}
