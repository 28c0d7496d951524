/* SPDX-License-Identifier: Apache-2.0 */
#include "audit/record.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

#include "audit/line.h"
#include "audit/tail.h"
#include "base/fd.h"
#include "base/mem.h"
#include "base/text.h"

#define LOCK_TRIES 1000u
#define LOCK_PAUSE_NS (10ULL * NS_PER_MS)

struct record_writer {
	int fd, blob_fd;
	uint64_t size, blob_size;
	uint64_t seq; /* of the last record */
	uint8_t head[RECORD_HASH_SIZE];
	bool settled;
};

/* The auditor of a run that has just ended may still be syncing. */
static int lock_file(int fd, struct err *err)
{
	struct timespec pause = { .tv_nsec = LOCK_PAUSE_NS };
	for (unsigned i = 0; flock(fd, LOCK_EX | LOCK_NB) < 0; i++) {
		if (errno != EWOULDBLOCK)
			return err_sys(err, errno, "cannot lock the record");
		if (i == LOCK_TRIES)
			return err_set(err, ERR_CONFLICT,
				"the record is still being written by another process; try again when it has ended");
		nanosleep(&pause, NULL);
	}
	return 0;
}

static int open_file(int dirfd, const char *name, struct err *err)
{
	int fd = openat(dirfd, name, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK, 0600);
	return fd < 0 ? err_sys(err, errno, "cannot open the record's file %s", name) : fd;
}

static int file_size(int fd, const char *name, uint64_t *ret, struct err *err)
{
	struct stat st;
	if (fstat(fd, &st) < 0)
		return err_sys(err, errno, "cannot look at the record's file %s", name);
	if (!S_ISREG(st.st_mode))
		return err_set(err, ERR_CORRUPT, "the record's file %s is not a regular file", name);
	*ret = (uint64_t)st.st_size;
	return 0;
}

/* The lock is held when the sizes are read. */
static int open_files(struct record_writer *w, int dirfd, struct err *err)
{
	w->fd = open_file(dirfd, RECORD_FILE, err);
	if (w->fd < 0 || lock_file(w->fd, err) < 0 || file_size(w->fd, RECORD_FILE, &w->size, err) < 0)
		return -1;
	w->blob_fd = open_file(dirfd, RECORD_BLOB_FILE, err);
	return w->blob_fd < 0 ? -1 : file_size(w->blob_fd, RECORD_BLOB_FILE, &w->blob_size, err);
}

/* Picks the chain up at its last whole record and removes what a crash left behind it. */
static int continue_log(struct record_writer *w, uint64_t *ret_cut, struct err *err)
{
	struct record_tail tail;
	if (record_tail_read(w->fd, w->size, &tail, err) < 0)
		return -1;
	*ret_cut = w->size - tail.whole;
	if (*ret_cut > 0 && ftruncate(w->fd, (off_t)tail.whole) < 0)
		return err_sys(err, errno, "cannot cut the torn end off the record");
	w->size = tail.whole;
	w->seq = tail.seq;
	w->settled = tail.settled;
	memcpy(w->head, tail.hash, sizeof(w->head));
	return 0;
}

int record_writer_open(int dirfd, struct record_writer **ret, uint64_t *ret_cut_bytes, struct err *err)
{
	struct record_writer *w = mem_alloc(sizeof(*w));
	uint64_t cut = 0;
	w->fd = w->blob_fd = -1;
	if (open_files(w, dirfd, err) < 0 || (w->size > 0 && continue_log(w, &cut, err) < 0)) {
		record_writer_free(w);
		return -1;
	}
	*ret = w;
	*ret_cut_bytes = cut;
	return 0;
}

struct record_writer *record_writer_free(struct record_writer *w)
{
	if (!w)
		return NULL;
	fd_close(&w->fd);
	fd_close(&w->blob_fd);
	return mem_free(w);
}

static int pwrite_full(int fd, const void *data, size_t len, uint64_t at)
{
	const char *p = data;
	while (len > 0) {
		ssize_t n = pwrite(fd, p, len, (off_t)at);
		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return n < 0 ? -errno : -ENOSPC;
		p += n;
		len -= (size_t)n;
		at += (uint64_t)n;
	}
	return 0;
}

static int put_blob(struct record_writer *w, json_t *fields, const void *blob, size_t len, struct err *err)
{
	uint8_t hash[RECORD_HASH_SIZE];
	char hex[RECORD_HASH_HEX + 1];
	if (json_integer_value(json_object_get(fields, "length")) != (json_int_t)len)
		return err_set(
			err, ERR_INVALID, "the event output says another length than the %zu bytes that came with it", len);
	blob_hash(blob, len, hash);
	text_hex(hash, sizeof(hash), hex);
	if (json_object_set_new(fields, "blob", json_integer((json_int_t)w->blob_size)) < 0 ||
		json_object_set_new(fields, "digest", json_string(hex)) < 0)
		return err_set(err, ERR_MEMORY, "out of memory while recording output");
	int r = pwrite_full(w->blob_fd, blob, len, w->blob_size);
	return r < 0 ? err_sys(err, -r, "cannot write output to the record") : 0;
}

/* Composes the line in one piece: "data" is canonical already, the rest has a fixed order. */
static char *compose(
	const struct line_meta *m, const char *data, size_t data_len, uint8_t ret_hash[RECORD_HASH_SIZE], size_t *ret_len)
{
	char tail[RECORD_TAIL_MAX], hex[RECORD_HASH_HEX + 1];
	size_t tail_len = line_tail(m, tail);
	line_hash(m->prev, data, data_len, tail, tail_len, ret_hash);
	text_hex(ret_hash, RECORD_HASH_SIZE, hex);
	size_t len = sizeof(RECORD_LINE_HEAD) - 1 + data_len + RECORD_HASH_FIELD + tail_len + 1;
	char *line = mem_alloc(len + 1), *p = line;
	p = mempcpy(p, RECORD_LINE_HEAD, sizeof(RECORD_LINE_HEAD) - 1);
	p = mempcpy(p, data, data_len);
	p = mempcpy(p, ",\"hash\":\"", 9);
	p = mempcpy(p, hex, RECORD_HASH_HEX);
	p = mempcpy(p, "\"", 1);
	p = mempcpy(p, tail, tail_len);
	*p = '\n';
	*ret_len = len;
	return line;
}

static int put_line(struct record_writer *w, const struct line_meta *m, const json_t *fields, struct err *err)
{
	uint8_t hash[RECORD_HASH_SIZE];
	size_t len;
	char *data = record_canonical(fields);
	if (!data)
		return err_set(err, ERR_INVALID, "the event %s can't be written as canonical JSON", audit_type_name(m->type));
	cleanup_free char *line = compose(m, data, strlen(data), hash, &len);
	free(data);
	if (len - 1 > RECORD_LINE_MAX)
		return err_set(err, ERR_LIMIT, "the event %s is longer than the %u bytes that a record may have",
			audit_type_name(m->type), RECORD_LINE_MAX);
	int r = pwrite_full(w->fd, line, len, w->size);
	if (r < 0)
		return err_sys(err, -r, "cannot write the record");
	w->size += len;
	memcpy(w->head, hash, sizeof(w->head));
	return 0;
}

static void cut_back(struct record_writer *w)
{
	/* When even this fails, the reader finds a torn tail and the next writer cuts it. */
	if (ftruncate(w->fd, (off_t)w->size) < 0 || ftruncate(w->blob_fd, (off_t)w->blob_size) < 0)
		return;
}

int record_writer_append(struct record_writer *w, enum audit_source source, enum audit_type type, json_t *fields,
	const void *blob, size_t blob_len, uint64_t time_ns, uint64_t *ret_seq, struct err *err)
{
	if (!audit_type_allowed(type, source))
		return err_set(
			err, ERR_DENIED, "the %s may not send the event %s", audit_source_name(source), audit_type_name(type));
	if (audit_fields_check(type, fields, err) < 0)
		return -1;
	if (type != AUDIT_OUTPUT && blob_len > 0)
		return err_set(err, ERR_INVALID, "the event %s can't carry bytes", audit_type_name(type));

	struct line_meta m = { .seq = w->seq + 1, .time_ns = time_ns, .source = source, .type = type };
	memcpy(m.prev, w->head, sizeof(m.prev));
	if ((type == AUDIT_OUTPUT && put_blob(w, fields, blob, blob_len, err) < 0) || put_line(w, &m, fields, err) < 0) {
		cut_back(w);
		return -1;
	}
	w->blob_size += blob_len;
	w->seq++;
	enum settling settling = record_settling(source, type, fields);
	if (settling != SETTLES_NOTHING)
		w->settled = settling == SETTLES;
	*ret_seq = w->seq;
	return 0;
}

int record_writer_finish(struct record_writer *w, struct err *err)
{
	flock(w->fd, LOCK_UN);
	if ((w->blob_size > 0 && fdatasync(w->blob_fd) < 0) || fdatasync(w->fd) < 0)
		return err_sys(err, errno, "cannot sync the record to its disk");
	return 0;
}

uint64_t record_writer_count(const struct record_writer *w)
{
	return w->seq;
}

bool record_writer_settled(const struct record_writer *w)
{
	return w->settled;
}
