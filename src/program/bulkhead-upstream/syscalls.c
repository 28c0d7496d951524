/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The upstream half reads bytes of foreign servers and holds secrets. After this list it can do what the gate can, read files that it is handed (sealed ones, at
 * any place in them), and lock and guard memory. It can't open, execute, fork, listen, signal, or make memory executable.
 */
#include "program/bulkhead-upstream/syscalls.h"

#include "program/common/gate-syscalls.h"

static struct sock_filter list[] = {
	LIST_BEGIN,
	LIST_GATE,
	LIST_ALLOW(__NR_pread64),
	LIST_GATE_MEMORY_LOCKED,
	LIST_GATE_SOCKETS,
};

int syscalls_restrict(struct err *err)
{
	return syscall_list_install(list, err);
}
