/* SPDX-License-Identifier: Apache-2.0 */
/* Places inside the box where a folder may appear. */
#pragma once

#include <stdbool.h>

#include "base/err.h"

#define TARGET_MAX 4096u

/* Absolute, normalised (no empty, "." or ".." part, no slash at the end), at most TARGET_MAX - 1 bytes. "/" passes. */
bool path_is_normal(const char *path);
/* `path` is `folder` itself or below it; both normalised. */
bool path_is_within(const char *path, const char *folder);
/* May a mount have this target? Not "/", nor one of the system's folders or below: see target.c. */
int target_check(const char *path, struct err *err);
