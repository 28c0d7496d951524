/* SPDX-License-Identifier: Apache-2.0 */
/*
 * As the gate's, and memory may be locked and guarded: what is looked for on its way (secrets/scan.h) is kept so.
 */
#include "program/bulkhead-inspect/syscalls.h"

#include "program/common/gate-syscalls.h"

static struct sock_filter list[] = {
	LIST_BEGIN,
	LIST_GATE,
	LIST_GATE_MEMORY_LOCKED,
	LIST_GATE_SOCKETS,
};

int syscalls_restrict(struct err *err)
{
	return syscall_list_install(list, err);
}
