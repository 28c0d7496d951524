/* SPDX-License-Identifier: Apache-2.0 */
/* The policy of a command line: a file, judged by today's date, or the built-in default. */
#pragma once

#include "policy/policy.h"

/* `file` NULL: the built-in default. Files that the policy names are read too. *ret_warning is a sentence or NULL (free with mem_free). 0 or -1. */
int policy_file_read(const char *file, struct policy **ret, char **ret_warning, struct err *err);
