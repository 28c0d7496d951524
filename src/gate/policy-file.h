/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The policy on its way from supervisor to gate: its canonical JSON in a sealed memory file, because lock files make it larger than any message.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "policy/policy.h"

#define POLICY_JSON_MAX (32u * 1024u * 1024u)

/* A memory file with the policy's JSON, sealed against every change. A descriptor (the caller's), or -1. */
int policy_fd_make(const struct policy *p, uint64_t *ret_len, struct err *err);
/* Reads and parses exactly `len` bytes; refuses a file that isn't sealed or longer. Uses read(2) only. The descriptor stays the caller's. */
struct policy *policy_fd_read(int fd, uint64_t len, struct err *err);
