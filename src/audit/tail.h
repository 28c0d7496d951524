/* SPDX-License-Identifier: Apache-2.0 */
/* The end of an existing log, where a writer picks it up. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "audit/record.h"

struct record_tail {
	uint64_t whole;			/* bytes of whole lines */
	uint64_t seq;			/* 0 when there is no whole line */
	uint8_t hash[RECORD_HASH_SIZE]; /* zeroes then */
	bool settled;			/* see record_writer_settled */
};

/* `size` is the file's. -1 when the last whole line is no valid record: nothing may be built on that. */
int record_tail_read(int fd, uint64_t size, struct record_tail *ret, struct err *err);

/* What a record does to that: whoever else speaks, only the supervisor's own words and its loss count. */
enum settling { SETTLES, UNSETTLES, SETTLES_NOTHING };
enum settling record_settling(enum audit_source source, enum audit_type type, const json_t *data);
