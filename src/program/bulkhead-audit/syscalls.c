/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A list this short needs no library: compiling it at each start would take longer than the rest of the start.
 * Killing, not failing: a call outside the list means that this process is no longer the program that we wrote.
 */
#include "program/bulkhead-audit/syscalls.h"

#include <errno.h>
#include <sys/mman.h>

#include "program/common/syscall-list.h"

static struct sock_filter list[] = {
	LIST_BEGIN,
	/* events and answers */
	LIST_ALLOW(__NR_recvfrom),
	LIST_ALLOW(__NR_sendto),
	LIST_ALLOW(__NR_sendmsg),
#ifdef __NR_poll
	LIST_ALLOW(__NR_poll),
#endif
	LIST_ALLOW(__NR_ppoll),
	LIST_ALLOW(__NR_restart_syscall),
	/* the files */
	LIST_ALLOW(__NR_pwrite64),
	LIST_ALLOW(__NR_ftruncate),
	LIST_ALLOW(__NR_flock),
	LIST_ALLOW(__NR_fdatasync),
	LIST_ALLOW(__NR_close),
	/* diagnostics on stderr, assertion failures of libc */
	LIST_ALLOW(__NR_write),
	LIST_ALLOW(__NR_writev),
	LIST_ALLOW(__NR_rt_sigprocmask),
	LIST_ALLOW(__NR_gettid),
	LIST_ALLOW(__NR_getpid),
	LIST_ALLOW(__NR_tgkill),
	/* time, memory, the end */
	LIST_ALLOW(__NR_clock_gettime),
	LIST_ALLOW(__NR_brk),
	LIST_ALLOW(__NR_munmap),
	LIST_ALLOW(__NR_mremap),
	LIST_ALLOW(__NR_madvise),
	LIST_ALLOW(__NR_rt_sigreturn),
	LIST_ALLOW(__NR_exit_group),
	/* new memory, but no code */
	BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, __NR_mmap, 1, 0),
	LIST_RETURN(SECCOMP_RET_KILL_PROCESS),
	LIST_LOAD_ARG(2),
	BPF_JUMP(BPF_JMP | BPF_JSET | BPF_K, PROT_EXEC, 0, 1),
	LIST_RETURN(SECCOMP_RET_KILL_PROCESS),
	LIST_RETURN(SECCOMP_RET_ALLOW),
};

int syscalls_restrict(struct err *err)
{
	return syscall_list_install(list, err);
}
