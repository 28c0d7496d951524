/* SPDX-License-Identifier: Apache-2.0 */
/* Pieces of explanations. Inside policy/ only. */
#pragma once

#include "base/buf.h"
#include "policy/request.h"

#define EXPLAIN_MAX 16384u
#define EXPLAIN_HOST_MAX 280

/* `rule 2 of policy "x" (line 14: host api.example.com, ports 443, private; inspected: GET)` */
void explain_put_rule(struct buf *b, const struct policy *p, int index);
/* What happens after the name was resolved. */
void explain_put_after(struct buf *b, const struct network_rule *r);
/* Ends the text without a newline, and the buffer. */
char *explain_take(struct buf *b);
