/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Words for a program's system call list, written as a constant filter beside the code that needs it: compiling one at each
 * start would take longer than the rest of the start. Begin with LIST_BEGIN, end with LIST_END_KILL.
 */
#pragma once

#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <sys/syscall.h>

#include "base/err.h"

#if defined(__x86_64__)
/* x32 calls have the same architecture word and a bit in their number that no number on a list has. */
#define LIST_ARCH AUDIT_ARCH_X86_64
#elif defined(__aarch64__)
#define LIST_ARCH AUDIT_ARCH_AARCH64
#else
#error "the system call lists are not made for this architecture"
#endif

#define LIST_RETURN(what) BPF_STMT(BPF_RET | BPF_K, (what))
#define LIST_LOAD(field) BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, field))
/* The low 32 bits of an argument (little-endian machines: both of ours). */
#define LIST_LOAD_ARG(n) BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, args[n]))

#define LIST_BEGIN \
	LIST_LOAD(arch), BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, LIST_ARCH, 1, 0), LIST_RETURN(SECCOMP_RET_KILL_PROCESS), \
	LIST_LOAD(nr)
#define LIST_ANSWER(nr, what) BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (nr), 0, 1), LIST_RETURN(what)
#define LIST_ALLOW(nr) LIST_ANSWER(nr, SECCOMP_RET_ALLOW)
#define LIST_REFUSE(nr) LIST_ANSWER(nr, SECCOMP_RET_ERRNO | EACCES)
#define LIST_END_KILL LIST_RETURN(SECCOMP_RET_KILL_PROCESS)

/* Puts the list on this process for good. In sanitizer builds (tests only) there is none: their runtimes make calls of their own, and it says so by its size. */
#define syscall_list_install(list, err) syscall_list_install_n((list), sizeof(list) / sizeof((list)[0]), (err))
int syscall_list_install_n(struct sock_filter *list, size_t n, struct err *err);
