/* SPDX-License-Identifier: Apache-2.0 */
/*
 * bulkhead-gate: the only way out of a sandbox whose policy judges hosts and ports. Started by bulkhead with two sockets; docs/gate.md says what it does with
 * them. It holds no TLS library: what it can't speak can't be attacked. A policy with rules by request gets bulkhead-inspect instead.
 */
#include "program/bulkhead-gate/gate-program.h"
#include "program/bulkhead-gate/syscalls.h"

int main(void)
{
	static const struct gate_program program = { .name = "bulkhead-gate", .restrict_calls = syscalls_restrict };
	return gate_program_run(&program);
}
