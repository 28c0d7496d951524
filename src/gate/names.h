/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Names that the box asked of DNS. Nothing is resolved for these questions, but they are recorded: a box that tries to talk
 * through them shows. The first question for a name is recorded at once, repeats as a count later. From the 1,001st distinct
 * name on, names are summed up below their parent ("*.example.com": questions, distinct-or-so names, bytes), and beyond 256
 * parents in one last line. Counts are never dropped.
 */
#pragma once

#include <stdbool.h>

#include <stddef.h>
#include <stdint.h>

#include "base/addr.h"
#include "gate/recorder.h"

#define NAMES_SINGLE_MAX 1000u
#define NAMES_PARENTS_MAX 256u

struct names;

struct names *names_new(struct recorder *recorder); /* doesn't own the recorder */
struct names *names_free(struct names *n);          /* accepts NULL; without names_flush counts since the last one are lost */
/* A question for `text` was answered with `v`. `text` is a canonical name or escaped bytes. */
/* True for a name not seen before (as long as names are told apart). */
bool names_asked(struct names *n, const char *text, const struct verdict *v);
/* Records the counts that have grown since. */
void names_flush(struct names *n);
