/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "policy/policy.h"

/* A sentence about the first rule that judges requests and is never asked, or NULL. Free with mem_free. */
char *shadow_warning(const struct policy *p, const char *file);
