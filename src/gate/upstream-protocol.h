/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Between supervisor and bulkhead-upstream: a SOCK_SEQPACKET socket. Descriptors at its start: UPSTREAM_CONTROL_FD, UPSTREAM_AUDIT_FD, UPSTREAM_LINK_FD (the socket pair
 * to bulkhead-inspect: upstream-link.h). It reads the host's roots and resolver configuration, confines itself, then reads CONFIG.
 *
 * supervisor → upstream
 *   CONFIG   u32 1 | u64 length of the policy's JSON | u32 n_resolvers, each: bytes "IP:PORT" | bytes sandbox id | u32 n, each: bytes secret name |
 *            bytes placeholder;   descriptor: the policy (policy-file.h)                                                       once, first
 *   POLICY   u32 2 | u64 generation | u64 length; descriptor: the policy      a newer policy: streams are judged again
 *   SECRET   u32 3 | bytes name                                  descriptors: the sealed file, and the key file when there is something sealed in it (not when a
 *                                                                helper makes the value). Sets or replaces (rotation) its value
 *   REVOKE   u32 4 | bytes name                                  wiped at once; flows that used it are cut
 *   HELPED   u32 5 | u64 call | u8 started                       descriptor (when started): what the helper writes, to its end
 * upstream → supervisor
 *   READY    u32 1
 *   DONE_POLICY u32 2 | u64 generation | u64 cut
 *   HELP     u32 3 | u64 call | bytes name                       run this secret's helper now
 *   LOADED   u32 4 | bytes name | u8 ok | bytes sentence         the answer to SECRET
 */
#pragma once

#define UPSTREAM_CONTROL_FD 3
#define UPSTREAM_AUDIT_FD 4
#define UPSTREAM_LINK_FD 5
#define UPSTREAM_MESSAGE_MAX (64u * 1024u)

enum upstream_request { UPSTREAM_CONFIG = 1, UPSTREAM_POLICY, UPSTREAM_SECRET, UPSTREAM_REVOKE, UPSTREAM_HELPED };
enum upstream_answer { UPSTREAM_READY = 1, UPSTREAM_DONE_POLICY, UPSTREAM_HELP, UPSTREAM_LOADED };
