/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "image/changes.h"

/* Opens the stored content of one change for reading, beneath dirfd/name. fd or -1 + err. */
int stored_open(int dirfd, const char *name, const struct change *one, struct err *err);
