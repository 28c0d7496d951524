/* SPDX-License-Identifier: Apache-2.0 */
/*
 * bulkhead-upstream: the upstream half of the gate. Started by bulkhead with three sockets; docs/gate.md says what it does with them. It reads the host's roots,
 * resolver configuration and own addresses, confines itself, and only then listens: no secret and no byte of a server is read before.
 */
#include "base/log.h"
#include "gate/upstream-protocol.h"
#include "gate/upstream/upstream.h"
#include "program/bulkhead-upstream/syscalls.h"
#include "program/common/gate-process.h"

static struct upstream *start(struct loop *loop, struct err *err)
{
	struct upstream_system system;
	if (gate_process_begin(err) < 0 || tls_prepare(err) < 0 || upstream_system_read(&system, err) < 0)
		return NULL;
	gate_process_raise_descriptors();
	struct upstream *u = upstream_new(loop, UPSTREAM_CONTROL_FD, UPSTREAM_AUDIT_FD, UPSTREAM_LINK_FD, &system, err);
	if (u && gate_process_confine(syscalls_restrict, err) < 0)
		u = upstream_free(u);
	return u;
}

int main(void)
{
	struct err err = ERR_INIT;
	log_init("bulkhead-upstream");
	if (!gate_process_has(UPSTREAM_CONTROL_FD) || !gate_process_has(UPSTREAM_AUDIT_FD) || !gate_process_has(UPSTREAM_LINK_FD)) {
		err_set(&err, ERR_USAGE, "this program is started by bulkhead, with three sockets; use `bulkhead run` instead");
		err_print("bulkhead-upstream", &err);
		return EXIT_FAILED;
	}
	struct loop *loop = loop_new();
	struct upstream *u = start(loop, &err);
	if (!u) {
		err_print("bulkhead-upstream", &err);
		return EXIT_FAILED;
	}
	int status = loop_run(loop);
	if (status != 0)
		err_print("bulkhead-upstream", upstream_failure(u));
	/* Cuts the flows, wipes the secrets, says goodbye to the auditor. */
	upstream_free(u);
	loop_free(loop);
	return status == 0 ? 0 : EXIT_FAILED;
}
