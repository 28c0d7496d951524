/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Every signal to its default, the two included that the C library keeps for itself (32 and 33) and that whoever started us may have set to be ignored: ignored
 * signals stay ignored across exec. Only system calls: for the child between fork or vfork and exec. */
void signal_reset_all(void);
/* Nothing blocked. Likewise. */
void signal_unblock_all(void);
