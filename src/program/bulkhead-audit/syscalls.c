/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A list this short needs no library: compiling it at each start would take longer than the rest of the start.
 * Killing, not failing: a call outside the list means that this process is no longer the program that we wrote.
 */
#include "program/bulkhead-audit/syscalls.h"

#include <errno.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>

#include "base/mem.h"

#if defined(__x86_64__)
#define OUR_ARCH AUDIT_ARCH_X86_64
/* x32 calls have the same architecture word and this bit in their number: none of them is on the list. */
#elif defined(__aarch64__)
#define OUR_ARCH AUDIT_ARCH_AARCH64
#else
#error "the auditor's system call list is not made for this architecture"
#endif

#define LOAD(field) BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, field))
#define LOAD_ARG_LOW(n) BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, args[n]))
#define RETURN(what) BPF_STMT(BPF_RET | BPF_K, (what))
#define ALLOW_CALL(nr) BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (nr), 0, 1), RETURN(SECCOMP_RET_ALLOW)

/* The sanitizers' runtimes make calls of their own; such builds are for tests only. */
#ifndef WITH_SANITIZER
static struct sock_filter list[] = {
	LOAD(arch),
	BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, OUR_ARCH, 1, 0),
	RETURN(SECCOMP_RET_KILL_PROCESS),
	LOAD(nr),
	/* events and answers */
	ALLOW_CALL(__NR_recvfrom),
	ALLOW_CALL(__NR_sendto),
	ALLOW_CALL(__NR_sendmsg),
#ifdef __NR_poll
	ALLOW_CALL(__NR_poll),
#endif
	ALLOW_CALL(__NR_ppoll),
	ALLOW_CALL(__NR_restart_syscall),
	/* the files */
	ALLOW_CALL(__NR_pwrite64),
	ALLOW_CALL(__NR_ftruncate),
	ALLOW_CALL(__NR_flock),
	ALLOW_CALL(__NR_fdatasync),
	ALLOW_CALL(__NR_close),
	/* diagnostics on stderr, assertion failures of libc */
	ALLOW_CALL(__NR_write),
	ALLOW_CALL(__NR_writev),
	ALLOW_CALL(__NR_rt_sigprocmask),
	ALLOW_CALL(__NR_gettid),
	ALLOW_CALL(__NR_getpid),
	ALLOW_CALL(__NR_tgkill),
	/* time, memory, the end */
	ALLOW_CALL(__NR_clock_gettime),
	ALLOW_CALL(__NR_brk),
	ALLOW_CALL(__NR_munmap),
	ALLOW_CALL(__NR_mremap),
	ALLOW_CALL(__NR_madvise),
	ALLOW_CALL(__NR_rt_sigreturn),
	ALLOW_CALL(__NR_exit_group),
	/* new memory, but no code */
	BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, __NR_mmap, 1, 0),
	RETURN(SECCOMP_RET_KILL_PROCESS),
	LOAD_ARG_LOW(2),
	BPF_JUMP(BPF_JMP | BPF_JSET | BPF_K, PROT_EXEC, 0, 1),
	RETURN(SECCOMP_RET_KILL_PROCESS),
	RETURN(SECCOMP_RET_ALLOW),
};

int syscalls_restrict(struct err *err)
{
	struct sock_fprog program = { .len = ARRAY_LEN(list), .filter = list };
	if (prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program, 0, 0) < 0)
		return err_sys(err, errno, "cannot restrict system calls (seccomp); the kernel needs CONFIG_SECCOMP_FILTER");
	return 0;
}
#else
int syscalls_restrict(struct err *err)
{
	return 0;
}
#endif
