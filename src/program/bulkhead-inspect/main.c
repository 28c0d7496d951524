/* SPDX-License-Identifier: Apache-2.0 */
/*
 * bulkhead-inspect: the gate of a sandbox whose policy judges requests: bulkhead-gate and, besides, the part that speaks TLS and HTTP with the box. It holds the sandbox's own certificate authority
 * and no secret; what it allows goes on to bulkhead-upstream.
 */
#include "gate/intercept/intercept.h"
#include "program/bulkhead-gate/gate-program.h"
#include "program/bulkhead-inspect/syscalls.h"

int main(void)
{
	static const struct gate_program program = { .name = "bulkhead-inspect", .interceptor = &intercept_ops, .prepare = intercept_prepare,
		.restrict_calls = syscalls_restrict };
	return gate_program_run(&program);
}
