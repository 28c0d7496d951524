/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Between a live sandbox's supervisor and the commands that change it while it runs: a SOCK_SEQPACKET socket, CONTROL_FILE in the sandbox's folder (0700), which exists as
 * long as the supervisor serves it. Whoever connects must be the supervisor's user, or root (SO_PEERCRED). One request at a time on a connection; each gets one answer.
 *
 * command → supervisor
 *   POLICY_SET      u32 1 | u64 generation | u64 length of the policy's JSON;  descriptor: the policy (gate/policy-file.h)
 *                   generation: the one that the command knows as the present, 0: whichever it is. Only network, detect and the budgets of egress may differ from what
 *                   the sandbox started with; a key that the new policy leaves at its default stays as it is. Answered when both halves of the gate have it
 *   SECRET_CHANGED  u32 2 | bytes name       the store has a newer value. Answered when the upstream half has it
 *   SECRET_REVOKE   u32 3 | bytes name       wiped, its flows are cut; for good in this sandbox
 * supervisor → command
 *   OK      u32 1 | u64 generation | u64 count    POLICY_SET: of the policy; what was cut. SECRET_*: of the secret's value; 1, or 0 when this sandbox doesn't use it
 *   FAILED  u32 2 | u32 err_code | bytes sentence     nothing was changed
 */
#pragma once

#define CONTROL_FILE "control"
#define CONTROL_MESSAGE_MAX 4096u
#define CONTROL_SENTENCE_MAX 1024u

enum control_request { CONTROL_POLICY_SET = 1, CONTROL_SECRET_CHANGED, CONTROL_SECRET_REVOKE };
enum control_answer { CONTROL_OK = 1, CONTROL_FAILED };
