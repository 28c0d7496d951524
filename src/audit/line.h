/* SPDX-License-Identifier: Apache-2.0 */
/* Composing and hashing one line of record.jsonl: shared by the writer and the parser, so that they can't differ. */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "audit/event.h"
#include "audit/record.h"

#define RECORD_TAIL_MAX 320u
#define RECORD_LINE_HEAD "{\"data\":"
#define RECORD_HASH_HEX (RECORD_HASH_SIZE * 2u)
/* ,"hash":"…" */
#define RECORD_HASH_FIELD (sizeof(",\"hash\":\"\"") - 1u + RECORD_HASH_HEX)

struct line_meta {
	uint64_t seq, time_ns;
	enum audit_source source;
	enum audit_type type;
	uint8_t prev[RECORD_HASH_SIZE];
};

/* Everything after the hash: ,"prev":… to the closing brace. Returns its length. */
size_t line_tail(const struct line_meta *m, char out[RECORD_TAIL_MAX]);
/* The hash over a line whose data is canonical already. */
void line_hash(const uint8_t prev[RECORD_HASH_SIZE], const char *data, size_t data_len, const char *tail, size_t tail_len,
	uint8_t ret[RECORD_HASH_SIZE]);
/* Reads the fields of a parsed root object (all but data and hash). 0 or -1. */
int line_meta_read(const json_t *root, struct line_meta *ret, struct err *err);

/* BLAKE2b-256 of one blob. */
void blob_hash(const void *blob, size_t len, uint8_t ret[RECORD_HASH_SIZE]);
