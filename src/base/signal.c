/* SPDX-License-Identifier: Apache-2.0 */
#include "base/signal.h"

#include <signal.h>
#include <stdint.h>
#include <sys/syscall.h>
#include <unistd.h>

#define SIGNALS 64 /* _NSIG of the kernel, x86-64 and aarch64 */

/* struct kernel_sigaction; its size and order differ between architectures, but a default action is all zeroes in each. */
union zero_action { uint64_t words[4]; };

void signal_reset_all(void)
{
	static const union zero_action zero;
	for (int number = 1; number <= SIGNALS; number++)
		syscall(SYS_rt_sigaction, number, &zero, NULL, sizeof(uint64_t)); /* SIGKILL and SIGSTOP refuse: they are at their default */
}

void signal_unblock_all(void)
{
	static const uint64_t none;
	syscall(SYS_rt_sigprocmask, SIG_SETMASK, &none, NULL, sizeof(none));
}
