/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the programs of the gate have in common in their system call lists: moving bytes between sockets they have, connecting to internet addresses, waiting,
 * allocating, ending. No opening, executing, forking, listening, signalling. In this order:
 * LIST_BEGIN, LIST_GATE, what is the program's own, one of LIST_GATE_MEMORY_*, LIST_GATE_SOCKETS (the end).
 */
#pragma once

#include <errno.h>
#include <sys/mman.h>
#include <sys/socket.h>

#include "program/common/syscall-list.h"

/* Old calls that newer architectures don't have. */
#ifdef __NR_epoll_wait
#define LIST_OLD_WAITING LIST_ALLOW(__NR_epoll_wait), LIST_ALLOW(__NR_poll),
#define LIST_OLD_OPENING LIST_REFUSE(__NR_open),
#else
#define LIST_OLD_WAITING
#define LIST_OLD_OPENING
#endif

#define LIST_GATE \
	/* moving bytes */ \
	LIST_ALLOW(__NR_recvfrom), LIST_ALLOW(__NR_sendto), LIST_ALLOW(__NR_sendmsg), LIST_ALLOW(__NR_recvmsg), LIST_ALLOW(__NR_read), \
	LIST_ALLOW(__NR_readv), LIST_ALLOW(__NR_write), LIST_ALLOW(__NR_writev), LIST_ALLOW(__NR_shutdown), LIST_ALLOW(__NR_close), \
	/* waiting */ \
	LIST_OLD_WAITING LIST_ALLOW(__NR_epoll_pwait), LIST_ALLOW(__NR_epoll_ctl), LIST_ALLOW(__NR_ppoll), LIST_ALLOW(__NR_restart_syscall), \
	/* dialling and asking resolvers (c-ares) */ \
	LIST_ALLOW(__NR_connect), LIST_ALLOW(__NR_setsockopt), LIST_ALLOW(__NR_getsockopt), LIST_ALLOW(__NR_getsockname), LIST_ALLOW(__NR_fcntl), \
	/* time, memory, diagnostics, the end */ \
	LIST_ALLOW(__NR_clock_gettime), LIST_ALLOW(__NR_gettimeofday), LIST_ALLOW(__NR_brk), LIST_ALLOW(__NR_munmap), LIST_ALLOW(__NR_mremap), \
	LIST_ALLOW(__NR_madvise), LIST_ALLOW(__NR_futex), LIST_ALLOW(__NR_getrandom), LIST_ALLOW(__NR_rt_sigprocmask), LIST_ALLOW(__NR_rt_sigreturn), \
	LIST_ALLOW(__NR_gettid), LIST_ALLOW(__NR_getpid), LIST_ALLOW(__NR_tgkill), LIST_ALLOW(__NR_exit_group), \
	/* what a library may try, and does without */ \
	LIST_OLD_OPENING LIST_REFUSE(__NR_openat)

/* The call is loaded, and is one that takes a protection as its third argument: anything but code. */
#define LIST_NO_CODE LIST_LOAD_ARG(2), BPF_JUMP(BPF_JMP | BPF_JSET | BPF_K, PROT_EXEC, 0, 1), LIST_RETURN(SECCOMP_RET_KILL_PROCESS), LIST_RETURN(SECCOMP_RET_ALLOW)
/* New memory. */
#define LIST_GATE_MEMORY BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, __NR_mmap, 0, 4), LIST_NO_CODE
/* Besides: memory kept out of swap, and guarded on both sides or made read-only: what is looked for, and secrets. */
#define LIST_GATE_MEMORY_LOCKED \
	LIST_ALLOW(__NR_mlock), LIST_ALLOW(__NR_munlock), BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, __NR_mmap, 1, 0), \
	BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, __NR_mprotect, 0, 4), LIST_NO_CODE

/* New sockets, but only TCP and UDP: no raw, packet, netlink, unix, vsock or algorithm sockets. Everything else ends the process. */
#define LIST_GATE_SOCKETS \
	BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, __NR_socket, 1, 0), LIST_END_KILL, LIST_LOAD_ARG(0), BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, AF_INET, 2, 0), \
	BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, AF_INET6, 1, 0), LIST_RETURN(SECCOMP_RET_ERRNO | EACCES), LIST_LOAD_ARG(1), \
	BPF_STMT(BPF_ALU | BPF_AND | BPF_K, ~(unsigned)(SOCK_NONBLOCK | SOCK_CLOEXEC)), BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SOCK_STREAM, 2, 0), \
	BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SOCK_DGRAM, 1, 0), LIST_RETURN(SECCOMP_RET_ERRNO | EACCES), LIST_RETURN(SECCOMP_RET_ALLOW)
