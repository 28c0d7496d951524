/* SPDX-License-Identifier: Apache-2.0 */
/* bulkhead policy set: a running sandbox gets another policy. */
#pragma once

#include "program/bulkhead/command.h"

/* Prints what came of it; returns the exit status. */
int policy_set(const struct globals *g, const char *id, const char *file);
