/* SPDX-License-Identifier: Apache-2.0 */
/* The address floor with its details. Inside policy/ only; others use floor_classify and policy_decide_dial. */
#pragma once

#include "base/addr.h"
#include "policy/reason.h"

struct floor_verdict {
	enum reason reason;   /* REASON_NONE: ordinary and public */
	bool liftable;        /* `private: true` may open it (metadata: only by naming the very address) */
};

struct floor_verdict floor_judge(const struct ip *ip);
/* An IPv4-mapped address (::ffff:a.b.c.d) as the IPv4 address that the kernel would dial; every other one as it is. */
struct ip ip_unmap(const struct ip *ip);
