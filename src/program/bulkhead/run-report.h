/* SPDX-License-Identifier: Apache-2.0 */
/* What `run` says at the end: typed reasons, the closing line, --json. */
#pragma once

#include "program/bulkhead/command.h"
#include "sandbox/sandbox.h"

#define RUN_DENIALS_SHOWN 32u

struct run_report {
	struct execution_result exec;
	bool executed;                 /* exec holds a result */
	struct { char host[256]; uint16_t port; enum reason reason; uint64_t count; } denials[RUN_DENIALS_SHOWN];
	unsigned n_denials;
	uint64_t denials_beyond;       /* kinds that no longer fit the list; all are on the record */
	struct { char secret[65], host[256]; uint16_t port; } canary; /* the first */
};

void run_report_denied(struct run_report *r, const struct sandbox_denial *d);
void run_report_canary(struct run_report *r, const struct sandbox_canary *c);
/* The exit status of `run` (DESIGN section 6). */
int run_report_status(const struct run_report *r, const struct sandbox_result *s);
/* Reasons, closing line or JSON, on stderr. */
void run_report_print(const struct run_report *r, const struct sandbox_result *s, const struct globals *g, char *const *argv, int status);
/* Nothing was run: the reason, and with --json a document with it. */
void run_report_refused(const struct err *err, const struct globals *g);
