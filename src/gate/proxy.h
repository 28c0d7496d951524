/* SPDX-License-Identifier: Apache-2.0 */
/* The proxy entrance's own request: CONNECT host:port, or an absolute-form http:// one. Nothing else is spoken. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "gate/target.h"
#include "net/http1.h"

#define PROXY_HEAD_MAX HTTP1_HEAD_MAX

enum proxy_result { PROXY_MORE = 0, PROXY_CONNECT, PROXY_FORWARD, PROXY_REFUSE };

struct proxy_head {
	enum reason reason;        /* REFUSE */
	struct gate_target target; /* set for REFUSE too, as far as it could be read */
	size_t head_len;           /* CONNECT: these bytes were the proxy's; the tunnel's begin behind them */
};

enum proxy_result proxy_head_parse(const void *data, size_t len, bool eof, struct proxy_head *ret);
