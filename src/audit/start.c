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

/* Both ends stay -1 for a source that isn't wanted. */
struct source_pair { int ours, theirs; };

static int make_pairs(struct source_pair *pairs, const bool *wanted, size_t n, struct err *err)
{
	for (size_t i = 0; i < n; i++)
		if (wanted[i] && make_pair(&pairs[i].ours, &pairs[i].theirs, err) < 0)
			return -1;
	return 0;
}

static int start(int dirfd, const struct source_pair *pairs, struct audit_process *ret, struct err *err)
{
	static const int numbers[] = { AUDIT_SUPERVISOR_FD, AUDIT_GATE_FD, AUDIT_UPSTREAM_FD };
	cleanup_free char *path = child_find_program("bulkhead-audit", err);
	if (!path)
		return -1;
	char name[] = "bulkhead-audit";
	char *argv[] = { name, NULL }, *envp[] = { NULL };
	struct child_fd fds[1 + ARRAY_LEN(numbers)] = { { dirfd, AUDIT_DIR_FD } };
	size_t n = 1;
	for (size_t i = 0; i < ARRAY_LEN(numbers); i++)
		if (pairs[i].theirs >= 0)
			fds[n++] = (struct child_fd){ pairs[i].theirs, numbers[i] };
	struct child_spec spec = { .path = path, .argv = argv, .envp = envp, .fds = fds, .n_fds = n, .new_session = true };
	if (child_start(&spec, &ret->pid, &ret->pidfd, err) < 0)
		return err_wrap(err, "cannot start the auditor");
	return 0;
}

int audit_start(int dirfd, bool with_gate, bool with_upstream, struct audit_process *ret, struct err *err)
{
	struct source_pair pairs[] = { { -1, -1 }, { -1, -1 }, { -1, -1 } };
	const bool wanted[ARRAY_LEN(pairs)] = { true, with_gate, with_upstream };
	struct audit_process p;
	int r = make_pairs(pairs, wanted, ARRAY_LEN(pairs), err);
	if (r == 0)
		r = start(dirfd, pairs, &p, err);
	for (size_t i = 0; i < ARRAY_LEN(pairs); i++) {
		fd_close(&pairs[i].theirs);
		if (r < 0)
			fd_close(&pairs[i].ours);
	}
	if (r < 0)
		return -1;
	p.supervisor_fd = pairs[0].ours;
	p.gate_fd = pairs[1].ours;
	p.upstream_fd = pairs[2].ours;
	*ret = p;
	return 0;
}
