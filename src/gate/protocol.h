/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Between supervisor and bulkhead-gate: a SOCK_SEQPACKET socket. The supervisor hands over each egress stream as one end of a socketpair; the gate
 * decides, records, dials and copies. Decisions about names (DNS) are asked on the same socket.
 *
 * The program is bulkhead-gate, or bulkhead-inspect where a rule of the policy needs requests seen (policy_inspects).
 * Descriptors of the gate at its start: GATE_CONTROL_FD, GATE_AUDIT_FD (its own connection to the auditor), and for bulkhead-inspect GATE_LINK_FD (upstream-link.h). Arguments: none; its configuration comes as
 * the first message, before which it has read resolver configuration and confined itself.
 *
 * supervisor → gate
 *   CONFIG   u32 1 | u64 length of the policy's JSON | u32 n_resolvers, each: bytes "IP:PORT" (n = 0: the system's) | bytes sandbox id |
 *            u32 n, each: bytes secret name | bytes placeholder;   descriptor: the policy (policy-file.h)                     once, first
 *   NAME     u32 2 | u32 query | bytes name
 *   OPEN     u32 3 | u64 flow | u8 entrance (enum wire_entrance) | bytes name | u8 family | address[16] | u16 port;          descriptor: the flow's socket
 *   FINISH   u32 4                            close listening for new flows, finish what was recorded, answer DONE
 *   POLICY   u32 5 | u64 generation | u64 length; descriptor: the policy       flows and requests that it doesn't allow any more are cut (policy_changed)
 * gate → supervisor
 *   READY    u32 1 | bytes CA certificate, PEM               (empty: bulkhead-gate)
 *   ANSWER   u32 2 | u32 query | u8 allowed | u16 n_ports | u16 port…
 *   DENIED   u32 3 | bytes host | u16 port | u32 reason         each denial, for the summary line and detectors; port 0: a name asked of DNS, once each
 *   LIMIT    u32 4 | u32 reason | u64 value                     a budget ran out
 *   POLICY_SET u32 6 | u64 generation | u64 cut              how many flows were cut
 *   CANARY   u32 7 | bytes secret name | bytes host | u16 port   a placeholder went astray; what follows is the policy's `detect.canary`
 *   DONE     u32 5 | u64 allowed | u64 denied | u64 bytes_up | u64 bytes_down
 */
#pragma once

#define GATE_CONTROL_FD 3
#define GATE_AUDIT_FD 4
#define GATE_LINK_FD 5
#define GATE_MESSAGE_MAX (64u * 1024u)

enum gate_request { GATE_CONFIG = 1, GATE_NAME, GATE_OPEN, GATE_FINISH, GATE_POLICY };
enum gate_answer { GATE_READY = 1, GATE_ANSWER, GATE_DENIED, GATE_LIMIT, GATE_DONE, GATE_POLICY_SET, GATE_CANARY };
