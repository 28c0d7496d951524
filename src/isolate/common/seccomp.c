/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <linux/seccomp.h>
#include <stdint.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/mem.h"
#include "isolate/common/seccomp.h"

#if defined(__x86_64__)
#include "isolate/seccomp-x86_64.inc"
#elif defined(__aarch64__)
#include "isolate/seccomp-aarch64.inc"
#else
#error "seccomp.table covers x86-64 and aarch64; a port needs its numbers checked, a box without a filter is no box"
#endif

int seccomp_install(struct err *err)
{
	struct sock_fprog program = {
		.len = ARRAY_LEN(seccomp_program),
		.filter = (struct sock_filter *)(uintptr_t)seccomp_program,
	};
	int fd = (int)syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_NEW_LISTENER, &program);
	if (fd < 0 && errno == EBUSY)
		return err_set(err, ERR_UNSUPPORTED,
			"the system call filter can't be installed: this process already runs under a filter with a "
			"listener (a container manager's); run bulkhead outside of it");
	if (fd < 0)
		return err_sys(err, errno, "can't install the system call filter (needs Linux 5.0 with CONFIG_SECCOMP_FILTER)");
	return fd;
}

const struct seccomp_refusal *seccomp_refusal_find(int number)
{
	for (size_t i = 0; i < ARRAY_LEN(seccomp_refusals); i++)
		if (seccomp_refusals[i].number == number)
			return &seccomp_refusals[i];
	return NULL;
}

const struct sock_filter *seccomp_program_get(size_t *ret_len)
{
	*ret_len = ARRAY_LEN(seccomp_program);
	return seccomp_program;
}
