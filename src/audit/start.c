/* SPDX-License-Identifier: Apache-2.0 */
#include "audit/start.h"

#include <errno.h>
#include <sys/socket.h>

#include "audit/client.h"
#include "base/fd.h"
#include "base/mem.h"
#include "event/child.h"

static int make_pair(int *ret_ours, int *ret_theirs, struct err *err)
{
	int pair[2];
	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) < 0)
		return err_sys(err, errno, "cannot make a socket to the auditor");
	*ret_ours = pair[0];
	*ret_theirs = pair[1];
	return 0;
}

int audit_start(int dirfd, bool with_gate, struct audit_process *ret, struct err *err)
{
	cleanup_fd int supervisor = -1, supervisor_end = -1, gate = -1, gate_end = -1;
	cleanup_free char *path = child_find_program("bulkhead-audit", err);
	if (!path || make_pair(&supervisor, &supervisor_end, err) < 0 || (with_gate && make_pair(&gate, &gate_end, err) < 0))
		return -1;
	char name[] = "bulkhead-audit";
	char *argv[] = { name, NULL }, *envp[] = { NULL };
	struct child_fd fds[] = { { supervisor_end, AUDIT_SUPERVISOR_FD }, { dirfd, AUDIT_DIR_FD },
		{ gate_end, AUDIT_GATE_FD } };
	struct child_spec spec = {
		.path = path, .argv = argv, .envp = envp, .fds = fds, .n_fds = with_gate ? 3 : 2, .new_session = true
	};
	struct audit_process p;
	if (child_start(&spec, &p.pid, &p.pidfd, err) < 0)
		return err_wrap(err, "cannot start the auditor");
	p.supervisor_fd = fd_steal(&supervisor);
	p.gate_fd = fd_steal(&gate);
	*ret = p;
	return 0;
}
