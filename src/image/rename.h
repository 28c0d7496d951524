/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "image/changes.h"
#include "image/facts.h"

/* Turns pairs of one deleted and one added regular file with the same content (not empty) into one CHANGE_RENAMED each. The
 * list is sorted and stays so. */
void renames_find(struct changes *c, int lower_fd, const struct facts *facts);
