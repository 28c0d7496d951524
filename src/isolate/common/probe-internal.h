/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include <stdint.h>

#include "base/err.h"

/* Runs `what` in a forked child (killed after timeout_ns) and brings its error home. 0 or -1. */
int probe_in_child(int (*what)(struct err *err), uint64_t timeout_ns, struct err *err);
