/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The agent: pid 1 of a box. It holds nothing and is trusted with nothing; the host judges every byte that it says. It runs
 * what the host asks for (exec.h), answers DNS on the box's loopback (dns_server.h) and turns connections of programs in the
 * box into streams on the one pipe (egress.h). When the pipe ends, everything in the box ends.
 *
 * Programs in the box have the agent's uid and are hostile. Everything they can make grow has a ceiling, and a full table is an
 * answer to the program that filled it (SERVFAIL, a reset connection), never a wait or a loop of the agent.
 */
#pragma once

#include <stdint.h>

struct agent_options {
	int pipe_fd;
	uint16_t dns_port; /* 53, but for tests outside a box */
};

/* Runs until the pipe ends or the host says SHUTDOWN. Returns the exit status: 0 after SHUTDOWN or a clean end of the pipe,
 * 1 else. */
int agent_run(const struct agent_options *options);
