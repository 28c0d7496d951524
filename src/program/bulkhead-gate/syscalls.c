/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The gate reads bytes of the box and of foreign servers. After this list it can move bytes between sockets it has, connect to
 * internet addresses, wait, allocate, and end. It can't open, execute, fork, listen, signal, or make memory executable.
 */
#include "program/bulkhead-gate/syscalls.h"

#include <errno.h>
#include <sys/mman.h>
#include <sys/socket.h>

#include "program/common/syscall-list.h"

static struct sock_filter list[] = {
	LIST_BEGIN,
	/* moving bytes */
	LIST_ALLOW(__NR_recvfrom),
	LIST_ALLOW(__NR_sendto),
	LIST_ALLOW(__NR_sendmsg),
	LIST_ALLOW(__NR_recvmsg),
	LIST_ALLOW(__NR_read),
	LIST_ALLOW(__NR_readv),
	LIST_ALLOW(__NR_write),
	LIST_ALLOW(__NR_writev),
	LIST_ALLOW(__NR_shutdown),
	LIST_ALLOW(__NR_close),
	/* waiting */
#ifdef __NR_epoll_wait
	LIST_ALLOW(__NR_epoll_wait),
#endif
	LIST_ALLOW(__NR_epoll_pwait),
	LIST_ALLOW(__NR_epoll_ctl),
#ifdef __NR_poll
	LIST_ALLOW(__NR_poll),
#endif
	LIST_ALLOW(__NR_ppoll),
	LIST_ALLOW(__NR_restart_syscall),
	/* dialling and asking resolvers (c-ares) */
	LIST_ALLOW(__NR_connect),
	LIST_ALLOW(__NR_setsockopt),
	LIST_ALLOW(__NR_getsockopt),
	LIST_ALLOW(__NR_getsockname),
	LIST_ALLOW(__NR_fcntl),
	/* time, memory, diagnostics, the end */
	LIST_ALLOW(__NR_clock_gettime),
	LIST_ALLOW(__NR_gettimeofday),
	LIST_ALLOW(__NR_brk),
	LIST_ALLOW(__NR_munmap),
	LIST_ALLOW(__NR_mremap),
	LIST_ALLOW(__NR_madvise),
	LIST_ALLOW(__NR_mlock), /* what is looked for (secrets/scan.h) is kept out of swap */
	LIST_ALLOW(__NR_munlock),
	LIST_ALLOW(__NR_futex),
	LIST_ALLOW(__NR_getrandom),
	LIST_ALLOW(__NR_rt_sigprocmask),
	LIST_ALLOW(__NR_rt_sigreturn),
	LIST_ALLOW(__NR_gettid),
	LIST_ALLOW(__NR_getpid),
	LIST_ALLOW(__NR_tgkill),
	LIST_ALLOW(__NR_exit_group),
	/* what a library may try, and does without */
#ifdef __NR_open
	LIST_REFUSE(__NR_open),
#endif
	LIST_REFUSE(__NR_openat),
	/* new memory, but no code */
	BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, __NR_mmap, 1, 0),
	BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, __NR_mprotect, 0, 4),
	LIST_LOAD_ARG(2),
	BPF_JUMP(BPF_JMP | BPF_JSET | BPF_K, PROT_EXEC, 0, 1),
	LIST_RETURN(SECCOMP_RET_KILL_PROCESS),
	LIST_RETURN(SECCOMP_RET_ALLOW),
	/* new sockets, but only TCP and UDP: no raw, packet, netlink, unix, vsock or algorithm sockets */
	BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, __NR_socket, 1, 0),
	LIST_END_KILL,
	LIST_LOAD_ARG(0),
	BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, AF_INET, 2, 0),
	BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, AF_INET6, 1, 0),
	LIST_RETURN(SECCOMP_RET_ERRNO | EACCES),
	LIST_LOAD_ARG(1),
	BPF_STMT(BPF_ALU | BPF_AND | BPF_K, ~(unsigned)(SOCK_NONBLOCK | SOCK_CLOEXEC)),
	BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SOCK_STREAM, 2, 0),
	BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SOCK_DGRAM, 1, 0),
	LIST_RETURN(SECCOMP_RET_ERRNO | EACCES),
	LIST_RETURN(SECCOMP_RET_ALLOW),
};

int syscalls_restrict(struct err *err)
{
	return syscall_list_install(list, err);
}
