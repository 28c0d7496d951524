/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Between client and auditor, one SOCK_SEQPACKET datagram each, integers big-endian.
 *
 * client → auditor
 *   EVENT   u32 audit_type | u32 json_len | json bytes | the rest is the blob
 *   BYE     u32 AUDIT_BYE                          the source ends in order; a socket that closes without it was lost
 * auditor → client
 *   WRITTEN u32 1 | u64 seq…                       one for each event, in the order in which they were sent
 *   FAILED  u32 2 | u32 err_code | u32 errno | text     nothing that was sent and not answered was written, and nothing will be
 */
#pragma once

#include <stdint.h>

#define AUDIT_BYE UINT32_MAX
#define AUDIT_EVENT_HEAD 8u
#define AUDIT_ANSWERS_MAX 512u /* sequence numbers in one WRITTEN */
#define AUDIT_ANSWER_MAX (4u + 8u * AUDIT_ANSWERS_MAX)

enum audit_answer { AUDIT_WRITTEN = 1, AUDIT_FAILED = 2 };
