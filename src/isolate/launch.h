/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Protocol between supervisor and bulkhead-launch: a SOCK_SEQPACKET socket (descriptor LAUNCH_FD in the launcher), a numbered
 * table of typed requests, each allowed in one phase and once. The launcher builds the box, sends the answer, and is gone: the
 * box's pid 1 is a child of the supervisor (CLONE_PARENT), with PDEATHSIG, so that the box can't outlive it.
 *
 * Request BUILD:   u32 LAUNCH_REQUEST_BUILD | encoded spec;   descriptors: [0] box end of the pipe, [1…] one O_PATH source for
 * each mount, then one memory file for each file. Answer BUILT:    u32 LAUNCH_ANSWER_BUILT | u32 pid | u32 n_lower;    descriptors: pidfd, seccomp notify, upper,
 * lower for each copy mount in order Answer FAILED:   u32 LAUNCH_ANSWER_FAILED | u32 err_code | u32 errno | text;  descriptors:
 * pidfd of the child that failed, where there is one (the supervisor is its parent and must reap it) The child's own failures
 * (after clone, before exec of the agent) travel home through the launcher as FAILED, with code and text. The child talks to
 * the launcher in the same form: BUILT (pid 0, without pidfd) just before exec, then end of file when exec succeeded, or
 * FAILED; from the launcher it gets one message, PREPARED: the box's user and network namespaces and the v1 cgroups' files to
 * join by.
 *
 * One descriptor message carries at most FD_PASS_MAX of them; more follow in messages of their own (launch_send and
 * launch_receive see to that).
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/err.h"
#include "spec/spec.h"

#define LAUNCH_FD 3
#define LAUNCH_MESSAGE_MAX (300u * 1024u)
#define LAUNCH_FDS_MAX (SPEC_SOURCES_MAX + 3u)

enum launch_request { LAUNCH_REQUEST_BUILD = 1 };
enum launch_answer { LAUNCH_ANSWER_BUILT = 1, LAUNCH_ANSWER_FAILED = 2, LAUNCH_PREPARED = 3 };

/* Descriptor on which the agent finds the box end of the pipe. */
#define AGENT_PIPE_FD 3

/* One message as it comes in. Descriptors belong to it until taken with fd_steal. */
struct launch_message {
	struct buf body; /* without the framing */
	int fds[LAUNCH_FDS_MAX];
	size_t n_fds, announced;
	bool begun;
};
void launch_message_init(struct launch_message *m);
void launch_message_done(struct launch_message *m);

/* Sends body and descriptors (not consumed). 0 or -1. */
int launch_send(int sock, const struct buf *body, const int *fds, size_t n_fds, struct err *err);
/* Reads one more piece: 1 when the message is whole, 0 when more is to come (or the socket is non-blocking and empty), -1
 * (ERR_CLOSED at the end). */
int launch_receive(int sock, struct launch_message *m, struct err *err);

/* Puts an error into a FAILED answer, and reads one (behind the answer's number). */
int launch_failed_encode(struct buf *out, const struct err *e);
void launch_failed_decode(struct cursor *c, struct err *ret);
