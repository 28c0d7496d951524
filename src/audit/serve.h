/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The auditor's work, once its files are open: takes events from its sources, appends, answers. Knows nothing of confinement,
 * opens nothing.
 */
#pragma once

#include "audit/record.h"

/* A socket for each source; -1 for one that does not exist. */
struct audit_sockets { int supervisor, gate, upstream; };

/* Takes the sockets, not the writer. cut_bytes: what record_writer_open cut off (recorded). Returns when all sources have closed: 0, or -1 when the record could not
 * be written (the sources were told). */
int audit_serve(struct record_writer *w, const struct audit_sockets *sockets, uint64_t cut_bytes, struct err *err);

/* For an auditor that could not even begin: tells all sources why, so that they fail at once and with the right words. */
void audit_refuse(const struct audit_sockets *sockets, const struct err *why);
