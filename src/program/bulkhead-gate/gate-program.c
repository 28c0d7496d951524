/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What bulkhead-gate and bulkhead-inspect have in common: they read the system's resolver configuration and own addresses, confine themselves, and only
 * then listen: no byte of the box is read before.
 */
#include "program/bulkhead-gate/gate-program.h"

#include "base/log.h"
#include "gate/gate.h"
#include "gate/protocol.h"
#include "program/common/gate-process.h"

static struct gate *start(const struct gate_program *p, struct loop *loop, struct err *err)
{
	struct gate_system system;
	if (gate_process_begin(err) < 0 || (p->prepare && p->prepare(GATE_LINK_FD, err) < 0) ||
		gate_system_read(&system, err) < 0)
		return NULL;
	gate_process_raise_descriptors();
	struct gate *g = gate_new(loop, GATE_CONTROL_FD, GATE_AUDIT_FD, &system, p->interceptor, err);
	if (g && gate_process_confine(p->restrict_calls, err) < 0)
		g = gate_free(g);
	return g;
}

int gate_program_run(const struct gate_program *p)
{
	struct err err = ERR_INIT;
	log_init(p->name);
	if (!gate_process_has(GATE_CONTROL_FD) || !gate_process_has(GATE_AUDIT_FD) || (p->prepare && !gate_process_has(GATE_LINK_FD))) {
		err_set(&err, ERR_USAGE, "this program is started by bulkhead, with its sockets; use `bulkhead run` instead");
		err_print(p->name, &err);
		return EXIT_FAILED;
	}
	struct loop *loop = loop_new();
	struct gate *g = start(p, loop, &err);
	if (!g) {
		err_print(p->name, &err);
		return EXIT_FAILED;
	}
	int status = loop_run(loop);
	if (status != 0)
		err_print(p->name, gate_failure(g));
	/* Cuts the flows, records their ends, says goodbye to the auditor. */
	gate_free(g);
	loop_free(loop);
	return status == 0 ? 0 : EXIT_FAILED;
}
