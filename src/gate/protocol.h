/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Between supervisor and bulkhead-gate: a SOCK_SEQPACKET socket. The supervisor hands over each egress stream as one end of a socketpair; the gate
 * decides, records, dials and copies. Decisions about names (DNS) are asked on the same socket.
 *
 * Descriptors of the gate at its start: GATE_CONTROL_FD, GATE_AUDIT_FD (its own connection to the auditor). Arguments: none; its configuration comes as
 * the first message, before which it has read resolver configuration and confined itself.
 *
 * supervisor → gate
 *   CONFIG   u32 1 | policy JSON bytes (policy_to_json) | u32 n_resolvers, each: bytes "IP:PORT"   (n = 0: the system's)     once, first
 *   NAME     u32 2 | u32 query | bytes name
 *   OPEN     u32 3 | u64 flow | u8 entrance (enum wire_entrance) | bytes name | u8 family | address[16] | u16 port;          descriptor: the flow's socket
 *   FINISH   u32 4                            close listening for new flows, finish what was recorded, answer DONE
 * gate → supervisor
 *   READY    u32 1
 *   ANSWER   u32 2 | u32 query | u8 allowed | u16 n_ports | u16 port…
 *   DENIED   u32 3 | bytes host | u16 port | u32 reason         each denial, for the summary line and detectors; port 0: a name asked of DNS, once each
 *   LIMIT    u32 4 | u32 reason | u64 value                     a budget ran out
 *   DONE     u32 5 | u64 allowed | u64 denied | u64 bytes_up | u64 bytes_down
 */
#pragma once

#define GATE_CONTROL_FD 3
#define GATE_AUDIT_FD 4
#define GATE_MESSAGE_MAX (512u * 1024u)

enum gate_request { GATE_CONFIG = 1, GATE_NAME, GATE_OPEN, GATE_FINISH };
enum gate_answer { GATE_READY = 1, GATE_ANSWER, GATE_DENIED, GATE_LIMIT, GATE_DONE };
