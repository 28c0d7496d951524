/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include <jansson.h>

#include "audit/event.h"
#include "base/err.h"

/* Appends events to the record of an ended sandbox, by an auditor started for it (the only writer there is), and waits until
 * each is written. `fields` is an array; its reference is taken. dirfd is the sandbox's folder. On failure some of them may
 * have been written. */
int append_record(int dirfd, enum audit_type type, json_t *fields, struct err *err);
