/* SPDX-License-Identifier: Apache-2.0 */
/* The box's network: a loopback interface and, for boxes with egress, local routes that let the agent bind the addresses it
 * answers DNS with. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "base/addr.h"
#include "base/err.h"

/* In the calling process's (fresh) network namespace. */
int netns_loopback_up(struct err *err);
/* The synthetic ranges of wire/capture.h and `literals`, all as local addresses. IPv6 ones are left out where the kernel has no
 * IPv6. */
int netns_capture(const struct ip *literals, size_t n, struct err *err);
