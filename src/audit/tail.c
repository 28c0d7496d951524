/* SPDX-License-Identifier: Apache-2.0 */
#include "audit/tail.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "audit/line.h"
#include "base/mem.h"

#define CHUNK (64u * 1024u)
#define WALK_MAX 1000u

static int pread_full(int fd, char *out, size_t len, uint64_t at)
{
	while (len > 0) {
		ssize_t n = pread(fd, out, len, (off_t)at);
		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return n < 0 ? -errno : -ENODATA;
		out += n;
		len -= (size_t)n;
		at += (uint64_t)n;
	}
	return 0;
}

/* Where the last newline before `end` ends (that byte included), 0 when there is none, searched in at most RECORD_LINE_MAX + 1
 * bytes. */
static int line_end_before(int fd, uint64_t end, uint64_t *ret, struct err *err)
{
	uint64_t floor = end > RECORD_LINE_MAX + 1 ? end - RECORD_LINE_MAX - 1 : 0;
	cleanup_free char *chunk = mem_alloc(CHUNK);
	for (uint64_t at = end; at > floor;) {
		size_t len = at - floor < CHUNK ? (size_t)(at - floor) : CHUNK;
		int r = pread_full(fd, chunk, len, at - len);
		if (r < 0)
			return err_sys(err, -r, "cannot read the end of the record");
		const char *nl = memrchr(chunk, '\n', len);
		if (nl) {
			*ret = at - len + (size_t)(nl - chunk) + 1;
			return 0;
		}
		at -= len;
	}
	if (floor > 0)
		return err_set(err, ERR_CORRUPT, "the record does not end in records: its last line is longer than %u bytes",
			RECORD_LINE_MAX);
	*ret = 0;
	return 0;
}

enum settling record_settling(enum audit_source source, enum audit_type type, const json_t *data)
{
	const char *lost = type == AUDIT_LOST ? json_string_value(json_object_get(data, "source")) : NULL;
	if (lost && str_eq(lost, audit_source_name(AUDIT_FROM_SUPERVISOR)))
		return SETTLES;
	if (source != AUDIT_FROM_SUPERVISOR || type == AUDIT_CHANGES_APPLIED)
		return SETTLES_NOTHING;
	return type == AUDIT_SANDBOX_END ? SETTLES : UNSETTLES;
}

/* The line's root object, checked. Its number and predecessor are taken from itself: only a whole reading can judge them. */
static json_t *parse_line(
	const char *line, size_t len, struct line_meta *ret, uint8_t ret_hash[RECORD_HASH_SIZE], struct err *err)
{
	json_error_t why;
	json_t *root = json_loadb(line, len, JSON_REJECT_DUPLICATES, &why), *checked = NULL;
	if (!root) {
		err_set(err, ERR_CORRUPT, "it is not JSON");
		return NULL;
	}
	if (line_meta_read(root, ret, err) < 0 ||
		record_line_parse(line, len, ret->prev, ret->seq, &checked, ret_hash, err) < 0)
		checked = NULL;
	json_decref(root);
	return checked;
}

static int parse_line_at(int fd, uint64_t from, uint64_t end, struct line_meta *ret, uint8_t ret_hash[RECORD_HASH_SIZE],
	enum settling *ret_settling, struct err *err)
{
	size_t len = (size_t)(end - from) - 1;
	cleanup_free char *line = mem_alloc(len + 1);
	int r = pread_full(fd, line, len, from);
	if (r < 0)
		return err_sys(err, -r, "cannot read the last line of the record");
	json_t *root = parse_line(line, len, ret, ret_hash, err);
	if (!root)
		return err_wrap(err, "the last line of the record is not a valid record, so nothing can be added behind it");
	*ret_settling = record_settling(ret->source, ret->type, json_object_get(root, "data"));
	json_decref(root);
	return 0;
}

/* Walks back to the last record that decides. One that is too far away is as good as none: then the supervisor's loss is
 * recorded again. */
static int settled_at(int fd, uint64_t end, bool *ret, struct err *err)
{
	enum settling settling = SETTLES_NOTHING;
	for (unsigned i = 0; i < WALK_MAX && end > 0 && settling == SETTLES_NOTHING; i++) {
		struct line_meta m;
		uint8_t hash[RECORD_HASH_SIZE];
		uint64_t from;
		if (line_end_before(fd, end - 1, &from, err) < 0 || parse_line_at(fd, from, end, &m, hash, &settling, err) < 0)
			return -1;
		end = from;
	}
	*ret = settling == SETTLES;
	return 0;
}

int record_tail_read(int fd, uint64_t size, struct record_tail *ret, struct err *err)
{
	struct record_tail t = { 0 };
	struct line_meta m;
	uint64_t from;
	enum settling settling;
	if (line_end_before(fd, size, &t.whole, err) < 0)
		return -1;
	if (t.whole > 0) {
		if (line_end_before(fd, t.whole - 1, &from, err) < 0 ||
			parse_line_at(fd, from, t.whole, &m, t.hash, &settling, err) < 0)
			return -1;
		t.seq = m.seq;
		if (settled_at(fd, t.whole, &t.settled, err) < 0)
			return -1;
	}
	*ret = t;
	return 0;
}
