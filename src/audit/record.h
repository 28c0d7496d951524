/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The record on disk: a chain of canonical JSON records in "record.jsonl", raw output bytes in "output.bin" beside it.
 * Writing (only bulkhead-audit does) and reading apart; verification needs nothing but the files. docs/record-format.md is the
 * reference.
 *
 * A line is the canonical JSON (sorted keys, no white space, integers only, UTF-8; text that is not UTF-8 is {"base64":…}) of
 * {"data":…,"hash":…,"prev":…,"seq":…,"source":…,"time":…,"type":…,"v":1}; hash = BLAKE2b-256, hex, of "bulkhead-record-v1\n",
 * the previous hash (32 bytes; zeroes first) and the canonical JSON without "hash". "seq" begins at 1.
 *
 * What the chain can't show: whole records cut off the end. Then "sandbox.end" is missing, which `complete` tells; who needs
 * more keeps `head` elsewhere.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "audit/event.h"

#define RECORD_LINE_MAX (1024u * 1024u)
#define RECORD_HASH_SIZE 32u
#define RECORD_FILE "record.jsonl"
#define RECORD_BLOB_FILE "output.bin"

struct record_writer;
/* Continues an existing log (verifying its last whole record, cutting off a torn tail and saying so in *ret_cut_bytes) or
 * begins one. Only one writer can have it open: waits a bounded time for one that is just closing. Output bytes that no record
 * names (a crash between the two writes) stay where they are. */
int record_writer_open(int dirfd, struct record_writer **ret, uint64_t *ret_cut_bytes, struct err *err);
/* Appends one record; on failure (disk full) both files are cut back to the last whole record. Doesn't take the reference to
 * `fields`; adds "blob" and "digest" to it for AUDIT_OUTPUT. The record is in the file (not yet on the medium) on return: it
 * survives the death of any process. */
int record_writer_append(struct record_writer *w, enum audit_source source, enum audit_type type, json_t *fields,
	const void *blob, size_t blob_len, uint64_t time_ns, uint64_t *ret_seq, struct err *err);
/* Gives the file free for other writers, then waits for the medium: nothing may be appended any more. */
int record_writer_finish(struct record_writer *w, struct err *err);
struct record_writer *record_writer_free(struct record_writer *w);
uint64_t record_writer_count(const struct record_writer *w); /* records in the log: 0 for a new one */
/* Nothing more is to be said about how the sandbox ended: the supervisor's last word is sandbox.end (changes.applied may
 * follow), or its loss is recorded. */
bool record_writer_settled(const struct record_writer *w);

/* One record as read. */
struct record {
	uint64_t seq, time_ns;
	enum audit_source source;
	enum audit_type type;
	const json_t *data; /* valid during the callback */
	const char *line;   /* exactly as recorded, without the newline */
	size_t line_len;
};

struct record_verdict {
	bool intact;   /* every whole record is as written, in order, nothing missing between them */
	bool complete; /* the supervisor's last word is sandbox.end (or a later changes.applied) */
	bool torn;     /* bytes after the last whole record (a crash in the middle of a write) */
	bool lost;     /* an audit.lost is in it: a source died */
	uint64_t torn_bytes;
	uint64_t records;
	uint64_t last_seq;
	uint64_t output_bytes; /* that output records name */
	char head[RECORD_HASH_SIZE * 2 + 1];
	uint64_t bad_line; /* first bad one, 1-based; 0 when intact */
	char text[256];	   /* one sentence */
};

/* Reads through; `fn` may be NULL; returning non-zero from fn stops. Output blobs' digests are checked when check_blobs. -1
 * only when the files can't be read at all; a broken chain is told by the verdict. */
int record_read(int dirfd, bool check_blobs, int (*fn)(void *ctx, const struct record *r), void *ctx,
	struct record_verdict *ret, struct err *err);
/* Length of an output record's bytes; 0 for other types. */
size_t record_blob_len(const struct record *r);
/* The bytes of an output record. Returns 0 or -1. out_len is record_blob_len. */
int record_blob_read(int dirfd, const struct record *r, void *out, size_t out_len, struct err *err);

/* The pure parts, for tests and fuzzing. */
char *record_canonical(const json_t *value); /* free with free(3) */
int record_line_parse(const char *line, size_t len, const uint8_t prev[RECORD_HASH_SIZE], uint64_t expect_seq,
	json_t **ret_root, uint8_t ret_hash[RECORD_HASH_SIZE], struct err *err);
