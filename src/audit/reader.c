/* SPDX-License-Identifier: Apache-2.0 */
#include "audit/record.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "audit/client.h"
#include "audit/line.h"
#include "audit/tail.h"
#include "base/fd.h"
#include "base/mem.h"
#include "base/text.h"

#define READ_STEP (256u * 1024u)
#define WINDOW_SIZE (RECORD_LINE_MAX + 1u + READ_STEP)

/* A log being read from front to back. */
struct reading {
	int fd, blob_fd;
	char *window; /* unread bytes: window[start … end-1] */
	size_t start, end;
	bool eof;
	uint8_t head[RECORD_HASH_SIZE];
	bool ended; /* sandbox.end, and nothing of the supervisor but changes.applied since */
	uint8_t *blob;
	struct record_verdict *v;
};

static int open_read(int dirfd, const char *name)
{
	int fd = openat(dirfd, name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
	struct stat st;
	if (fd < 0)
		return -errno;
	if (fstat(fd, &st) < 0 || !S_ISREG(st.st_mode)) {
		close(fd);
		return -EINVAL;
	}
	return fd;
}

static int refill(struct reading *g, struct err *err)
{
	memmove(g->window, g->window + g->start, g->end - g->start);
	g->end -= g->start;
	g->start = 0;
	ssize_t n;
	do
		n = read(g->fd, g->window + g->end, WINDOW_SIZE - g->end);
	while (n < 0 && errno == EINTR);
	if (n < 0)
		return err_sys(err, errno, "cannot read the record");
	g->eof = n == 0;
	g->end += (size_t)n;
	return 0;
}

/* 1 with a line (without its newline), 0 when there is no further whole line, -1. A line that is too long is given as far as it
 * was read. */
static int next_line(struct reading *g, const char **ret, size_t *ret_len, struct err *err)
{
	size_t seen = 0;
	for (;;) {
		const char *nl = memchr(g->window + g->start + seen, '\n', g->end - g->start - seen);
		size_t have = g->end - g->start;
		if (nl || have > RECORD_LINE_MAX) {
			*ret = g->window + g->start;
			*ret_len = nl ? (size_t)(nl - *ret) : have;
			g->start += *ret_len + (nl ? 1 : 0);
			return 1;
		}
		if (g->eof)
			return 0;
		seen = have;
		if (refill(g, err) < 0)
			return -1;
	}
}

static int blob_bounds(const json_t *data, uint64_t *ret_at, size_t *ret_len, struct err *err)
{
	const json_t *at = json_object_get(data, "blob"), *len = json_object_get(data, "length");
	json_int_t a = json_integer_value(at), n = json_integer_value(len);
	if (!json_is_integer(at) || !json_is_integer(len) || a < 0 || n < 0 || n > (json_int_t)AUDIT_BLOB_MAX)
		return err_set(err, ERR_CORRUPT, "the output record does not say where its bytes are");
	*ret_at = (uint64_t)a;
	*ret_len = (size_t)n;
	return 0;
}

static int blob_fetch(int blob_fd, const json_t *data, uint8_t *out, size_t out_len, struct err *err)
{
	uint8_t hash[RECORD_HASH_SIZE];
	char hex[RECORD_HASH_HEX + 1];
	const char *digest = json_string_value(json_object_get(data, "digest"));
	uint64_t at;
	size_t len;
	if (blob_bounds(data, &at, &len, err) < 0)
		return -1;
	if (len > out_len)
		return err_set(err, ERR_LIMIT, "the output record holds %zu bytes, more than there is room for", len);
	for (size_t got = 0; got < len;) {
		ssize_t n = blob_fd < 0 ? 0 : pread(blob_fd, out + got, len - got, (off_t)(at + got));
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return err_sys(err, errno, "cannot read " RECORD_BLOB_FILE);
		if (n == 0)
			return err_set(err, ERR_CORRUPT, "bytes that the record names are missing in " RECORD_BLOB_FILE);
		got += (size_t)n;
	}
	blob_hash(out, len, hash);
	text_hex(hash, sizeof(hash), hex);
	if (!digest || !str_eq(digest, hex))
		return err_set(err, ERR_CORRUPT, "the output bytes were changed: their digest does not match");
	return 0;
}

static void note_record(struct reading *g, const struct record *r)
{
	g->v->records++;
	g->v->last_seq = r->seq;
	if (r->type == AUDIT_OUTPUT)
		g->v->output_bytes += record_blob_len(r);
	if (r->type == AUDIT_LOST)
		g->v->lost = true;
	if (record_settling(r->source, r->type, r->data) != SETTLES_NOTHING)
		g->ended = r->type == AUDIT_SANDBOX_END;
}

/* 0 good, -1 the record is bad. */
static int judge_line(struct reading *g, const char *line, size_t len, json_t **ret_root, struct record *ret, struct err *err)
{
	struct line_meta m;
	uint8_t hash[RECORD_HASH_SIZE];
	uint64_t expect = g->v->last_seq + 1;
	json_t *root;
	if (record_line_parse(line, len, g->head, expect, &root, hash, err) < 0)
		return -1;
	const json_t *data = json_object_get(root, "data");
	if (line_meta_read(root, &m, err) < 0 || audit_fields_check(m.type, data, err) < 0 ||
		(m.type == AUDIT_OUTPUT && g->blob && blob_fetch(g->blob_fd, data, g->blob, AUDIT_BLOB_MAX, err) < 0)) {
		json_decref(root);
		return -1;
	}
	memcpy(g->head, hash, sizeof(hash));
	*ret = (struct record){ .seq = m.seq,
		.time_ns = m.time_ns,
		.source = m.source,
		.type = m.type,
		.data = data,
		.line = line,
		.line_len = len };
	*ret_root = root;
	return 0;
}

static int read_all(struct reading *g, int (*fn)(void *ctx, const struct record *r), void *ctx, struct err *err)
{
	for (;;) {
		const char *line;
		size_t len;
		int more = next_line(g, &line, &len, err);
		if (more <= 0)
			return more;
		struct err bad = ERR_INIT;
		struct record r;
		json_t *root;
		if (judge_line(g, line, len, &root, &r, &bad) < 0) {
			g->v->intact = false;
			g->v->bad_line = g->v->records + 1;
			snprintf(g->v->text, sizeof(g->v->text), "line %" PRIu64 " is bad: %.200s", g->v->bad_line, bad.text);
			return 0;
		}
		note_record(g, &r);
		bool stop = fn && fn(ctx, &r) != 0;
		json_decref(root);
		if (stop)
			return 1;
	}
}

static void conclude(struct reading *g)
{
	struct record_verdict *v = g->v;
	text_hex(g->head, sizeof(g->head), v->head);
	if (!v->intact)
		return;
	v->torn_bytes = g->end - g->start;
	v->torn = v->torn_bytes > 0;
	v->complete = g->ended && !v->torn;
	char where[160] = "";
	if (v->torn)
		snprintf(where, sizeof(where),
			"; %" PRIu64 " bytes of a torn record follow (a writer died in the middle of it)", v->torn_bytes);
	const char *end =
		v->records == 0 ? "the log is empty"
		: g->ended	? "it ends with the end of the sandbox"
		: v->lost	? "it ends where its writer was lost, without the end of the sandbox"
			  : "it ends without the end of the sandbox: still running, lost, or records were cut off its end";
	snprintf(v->text, sizeof(v->text), "%" PRIu64 " records intact; %s%s", v->records, end, where);
}

int record_read(int dirfd, bool check_blobs, int (*fn)(void *ctx, const struct record *r), void *ctx,
	struct record_verdict *ret, struct err *err)
{
	struct record_verdict v = { .intact = true };
	cleanup_fd int fd = open_read(dirfd, RECORD_FILE);
	if (fd < 0)
		return err_sys(err, -fd, "cannot open the record (" RECORD_FILE ")");
	cleanup_fd int blob_fd = open_read(dirfd, RECORD_BLOB_FILE);
	cleanup_free char *window = mem_alloc(WINDOW_SIZE);
	cleanup_free uint8_t *blob = check_blobs ? mem_alloc(AUDIT_BLOB_MAX) : NULL;
	struct reading g = { .fd = fd, .blob_fd = blob_fd, .window = window, .blob = blob, .v = &v };
	if (read_all(&g, fn, ctx, err) < 0)
		return -1;
	conclude(&g);
	*ret = v;
	return 0;
}

size_t record_blob_len(const struct record *r)
{
	uint64_t at;
	size_t len;
	return r->type == AUDIT_OUTPUT && blob_bounds(r->data, &at, &len, NULL) == 0 ? len : 0;
}

int record_blob_read(int dirfd, const struct record *r, void *out, size_t out_len, struct err *err)
{
	cleanup_fd int blob_fd = open_read(dirfd, RECORD_BLOB_FILE);
	if (blob_fd < 0)
		return err_sys(err, -blob_fd, "cannot open the recorded output (" RECORD_BLOB_FILE ")");
	return blob_fetch(blob_fd, r->data, out, out_len, err);
}
