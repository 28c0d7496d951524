/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The gate reads bytes of the box and of foreign servers. After this list it can move bytes between sockets it has, connect to
 * internet addresses, wait, allocate, and end. It can't open, execute, fork, listen, signal, or make memory executable.
 */
#include "program/bulkhead-gate/syscalls.h"

#include "program/common/gate-syscalls.h"

static struct sock_filter list[] = {
	LIST_BEGIN,
	LIST_GATE,
	LIST_GATE_MEMORY,
	LIST_GATE_SOCKETS,
};

int syscalls_restrict(struct err *err)
{
	return syscall_list_install(list, err);
}
