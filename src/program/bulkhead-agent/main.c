/* SPDX-License-Identifier: Apache-2.0 */
/*
 * bulkhead-agent: pid 1 of a box. Takes no arguments and no environment; it finds its pipe on a descriptor that the launcher
 * has put there, and was confined by the launcher before its first instruction.
 */
#include "agent/agent.h"
#include "isolate/launch.h"

int main(void)
{
	return agent_run(&(struct agent_options){ .pipe_fd = AGENT_PIPE_FD, .dns_port = 53 });
}
