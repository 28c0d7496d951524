/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The record on disk: a chain of canonical JSON records in "record.jsonl", raw output bytes in "output.bin" beside it.
 * Writing (only bulkhead-audit does) and reading apart; verification needs nothing but the files.
 *
 * A line is the canonical JSON (sorted keys, no white space, integers only, UTF-8; binary text escaped as \u00XX is not used: non-UTF-8 strings are stored as
 * {"base64":…}) of {"data":…,"hash":…,"prev":…,"seq":…,"source":…,"time":…,"type":…,"v":1}; hash = BLAKE2b-256, hex, of "bulkhead-record-v1\n", the
 * previous hash (32 bytes; zeroes first) and the canonical JSON without "hash".
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "audit/event.h"

#define RECORD_LINE_MAX (1024u * 1024u)
#define RECORD_HASH_SIZE 32u

struct record_writer;
/* Continues an existing log (verifying its last whole record, cutting off a torn tail and saying so in *ret_cut_bytes) or begins one. Descriptors are of the folder. */
int record_writer_open(int dirfd, struct record_writer **ret, uint64_t *ret_cut_bytes, struct err *err);
/* Appends one record; on failure (disk full) the file is cut back to the last whole record. */
int record_writer_append(struct record_writer *w, enum audit_source source, enum audit_type type, json_t *fields,
	const void *blob, size_t blob_len, uint64_t time_ns, uint64_t *ret_seq, struct err *err);
int record_writer_sync(struct record_writer *w, struct err *err);
struct record_writer *record_writer_free(struct record_writer *w);

/* One record as read. */
struct record {
	uint64_t seq, time_ns;
	enum audit_source source;
	enum audit_type type;
	const json_t *data;      /* valid during the callback */
};

struct record_verdict {
	bool intact;             /* every whole record is as written, in order, nothing missing between them */
	bool complete;           /* ends with sandbox.end (or a later changes.applied) */
	bool torn;               /* bytes after the last whole record (a crash in the middle of a write) */
	uint64_t records;
	uint64_t last_seq;
	char head[RECORD_HASH_SIZE * 2 + 1];
	uint64_t bad_line;       /* first bad one, 1-based; 0 when intact */
	char text[256];          /* one sentence */
};

/* Reads through; `fn` may be NULL; returning non-zero from fn stops. Output blobs' digests are checked when check_blobs. -1 only when the files can't be
 * read at all; a broken chain is told by the verdict. */
int record_read(int dirfd, bool check_blobs, int (*fn)(void *ctx, const struct record *r), void *ctx, struct record_verdict *ret, struct err *err);
/* The bytes of an output record. Returns 0 or -1. out holds `length` of the record. */
int record_blob_read(int dirfd, const struct record *r, void *out, size_t out_len, struct err *err);

/* The pure parts, for tests and fuzzing. */
char *record_canonical(const json_t *value);   /* free with free(3) */
int record_line_parse(const char *line, size_t len, const uint8_t prev[RECORD_HASH_SIZE], uint64_t expect_seq,
	json_t **ret_root, uint8_t ret_hash[RECORD_HASH_SIZE], struct err *err);
