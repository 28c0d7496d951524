/* SPDX-License-Identifier: Apache-2.0 */
#include "audit/tail.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "audit/line.h"
#include "base/mem.h"

#define CHUNK (64u * 1024u)

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

/* Where the last newline before `end` ends (that byte included), 0 when there is none, searched in at most RECORD_LINE_MAX + 1 bytes. */
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
		return err_set(err, ERR_CORRUPT, "the record does not end in records: its last line is longer than %u bytes", RECORD_LINE_MAX);
	*ret = 0;
	return 0;
}

static int parse_line_at(int fd, uint64_t from, uint64_t end, struct line_meta *ret, uint8_t ret_hash[RECORD_HASH_SIZE], struct err *err)
{
	size_t len = (size_t)(end - from) - 1;
	cleanup_free char *line = mem_alloc(len + 1);
	int r = pread_full(fd, line, len, from);
	if (r < 0)
		return err_sys(err, -r, "cannot read the last line of the record");
	/* Number and predecessor are taken from the line itself: only a whole reading can judge them. */
	json_error_t why;
	json_t *root = json_loadb(line, len, JSON_REJECT_DUPLICATES, &why);
	json_t *again = NULL;
	int bad = -1;
	if (!root)
		err_set(err, ERR_CORRUPT, "it is not JSON");
	else if (line_meta_read(root, ret, err) == 0)
		bad = record_line_parse(line, len, ret->prev, ret->seq, &again, ret_hash, err);
	json_decref(root);
	json_decref(again);
	return bad < 0 ? err_wrap(err, "the last line of the record is not a valid record, so nothing can be added behind it") : 0;
}

/* Walks back over changes.applied to see what stands before: cheap, for there are few. */
static int complete_at(int fd, uint64_t end, bool *ret, struct err *err)
{
	struct line_meta m = { .type = AUDIT_CHANGES_APPLIED };
	uint8_t hash[RECORD_HASH_SIZE];
	while (end > 0 && m.type == AUDIT_CHANGES_APPLIED) {
		uint64_t from;
		if (line_end_before(fd, end - 1, &from, err) < 0 || parse_line_at(fd, from, end, &m, hash, err) < 0)
			return -1;
		end = from;
	}
	*ret = m.type == AUDIT_SANDBOX_END;
	return 0;
}

int record_tail_read(int fd, uint64_t size, struct record_tail *ret, struct err *err)
{
	struct record_tail t = { 0 };
	struct line_meta m;
	uint64_t from;
	if (line_end_before(fd, size, &t.whole, err) < 0)
		return -1;
	if (t.whole > 0) {
		if (line_end_before(fd, t.whole - 1, &from, err) < 0 || parse_line_at(fd, from, t.whole, &m, t.hash, err) < 0)
			return -1;
		t.seq = m.seq;
		if (complete_at(fd, t.whole, &t.complete, err) < 0)
			return -1;
	}
	*ret = t;
	return 0;
}
