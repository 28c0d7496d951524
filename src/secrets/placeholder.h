/* SPDX-License-Identifier: Apache-2.0 */
/* What a box holds instead of a secret: "bulkhead-NAME-" and 32 random lower-case letters and digits of its own sandbox. Worth nothing outside. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "secrets/secret.h"

#define PLACEHOLDER_MAX (SECRET_NAME_MAX + 48u)

void placeholder_new(const char *name, char out[PLACEHOLDER_MAX]);
/* The default variable of a secret: upper case, other bytes than letters and digits as '_'. */
void placeholder_variable(const char *name, char out[SECRET_NAME_MAX + 1]);
