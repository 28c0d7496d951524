/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Protocol between supervisor and bulkhead-launch: a SOCK_SEQPACKET socket (descriptor LAUNCH_FD in the launcher), a numbered table of
 * typed requests, each allowed in one phase and once. The launcher builds the box, sends the answer, and is gone: the box's pid 1 is a child of the
 * supervisor (CLONE_PARENT), with PDEATHSIG, so that the box can't outlive it.
 *
 * Request LAUNCH:  u32 LAUNCH_REQUEST_BUILD | encoded spec;   descriptors: [0] box end of the pipe, [1…] one O_PATH source for each mount
 * Answer BUILT:    u32 LAUNCH_ANSWER_BUILT | u32 pid | u32 n_lower;    descriptors: pidfd, seccomp notify, upper, lower for each copy mount in order
 * Answer FAILED:   u32 LAUNCH_ANSWER_FAILED | u32 err_code | u32 errno | text
 * The child's own failures (after clone, before exec of the agent) travel home through the launcher as FAILED, with code and text.
 */
#pragma once

#define LAUNCH_FD 3
#define LAUNCH_MESSAGE_MAX (300u * 1024u)

enum launch_request { LAUNCH_REQUEST_BUILD = 1 };
enum launch_answer { LAUNCH_ANSWER_BUILT = 1, LAUNCH_ANSWER_FAILED = 2 };

/* Descriptor on which the agent finds the box end of the pipe. */
#define AGENT_PIPE_FD 3
