/* SPDX-License-Identifier: Apache-2.0 */
/* A folder for a record, and events to put into it. Included by the tests of audit and of its program. */
#pragma once

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "audit/record.h"
#include "base/fd.h"
#include "base/mem.h"
#include "base/text.h"

#define TEST_PARENT "/tmp"

struct folder {
	char path[64];
	int fd;
};

static inline int folder_make(void **state)
{
	struct folder *f = mem_alloc(sizeof(*f));
	snprintf(f->path, sizeof(f->path), TEST_PARENT "/bulkhead-test-XXXXXX");
	if (!mkdtemp(f->path))
		return -1;
	f->fd = open(f->path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	*state = f;
	return f->fd < 0 ? -1 : 0;
}

static inline int folder_remove(void **state)
{
	struct folder *f = *state;
	int parent = open(TEST_PARENT, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	int r = path_remove_tree(parent, strrchr(f->path, '/') + 1);
	close(parent);
	close(f->fd);
	mem_free(f);
	return r;
}

static inline json_t *fields_start(void)
{
	return json_pack("{s:s, s:s, s:s, s:s}", "id", "a", "level", "container", "policy_hash", "00", "version", "0");
}

static inline json_t *fields_end(void)
{
	return json_pack("{s:i, s:s}", "exit_status", 0, "reason", "none");
}

static inline json_t *fields_signal(int n)
{
	return json_pack("{s:i, s:b}", "signal", n, "forwarded", 1);
}

static inline json_t *fields_output(size_t len)
{
	return json_pack("{s:i, s:s, s:i, s:I}", "execution", 1, "stream", "stdout", "offset", 0, "length", (json_int_t)len);
}

static inline json_t *fields_egress(void)
{
	return json_pack("{s:i, s:s, s:i, s:s, s:b, s:s}", "flow", 1, "host", "a.example", "port", 443, "entrance", "proxy",
		"allow", 0, "reason", "no_rule");
}

static inline void append(
	struct record_writer *w, enum audit_source source, enum audit_type type, json_t *fields, const void *blob, size_t len)
{
	struct err err = ERR_INIT;
	uint64_t seq = 0, before = record_writer_count(w);
	int r = record_writer_append(w, source, type, fields, blob, len, time_realtime_ns(), &seq, &err);
	json_decref(fields);
	if (r < 0)
		fail_msg("%s", err.text);
	assert_int_equal(seq, before + 1);
}

static inline struct record_writer *open_writer(int dirfd, uint64_t *cut)
{
	struct record_writer *w = NULL;
	struct err err = ERR_INIT;
	if (record_writer_open(dirfd, &w, cut, &err) < 0)
		fail_msg("%s", err.text);
	return w;
}

#define SMALL_RECORDS 4u
/* start, output, signal, end */
static inline void write_small_log(int dirfd)
{
	uint64_t cut;
	struct record_writer *w = open_writer(dirfd, &cut);
	append(w, AUDIT_FROM_SUPERVISOR, AUDIT_SANDBOX_START, fields_start(), NULL, 0);
	append(w, AUDIT_FROM_SUPERVISOR, AUDIT_OUTPUT, fields_output(5), "hello", 5);
	append(w, AUDIT_FROM_SUPERVISOR, AUDIT_SIGNAL, fields_signal(15), NULL, 0);
	append(w, AUDIT_FROM_SUPERVISOR, AUDIT_SANDBOX_END, fields_end(), NULL, 0);
	record_writer_free(w);
}

static inline struct record_verdict verdict_of(int dirfd)
{
	struct record_verdict v;
	struct err err = ERR_INIT;
	if (record_read(dirfd, true, NULL, NULL, &v, &err) < 0)
		fail_msg("%s", err.text);
	return v;
}

/* Not inlined: GCC 12 takes the buffer for a dangling pointer then. */
__attribute__((noinline, unused)) static char *slurp(int dirfd, const char *name, size_t *ret_len)
{
	char *data;
	struct err err = ERR_INIT;
	if (fd_read_file_at(dirfd, name, 64u * 1024 * 1024, &data, ret_len, &err) < 0)
		fail_msg("%s", err.text);
	return data;
}

static inline void put_file(int dirfd, const char *name, const void *data, size_t len)
{
	cleanup_fd int fd = openat(dirfd, name, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
	assert_true(fd >= 0);
	assert_int_equal(fd_write_full(fd, data, len), 0);
}

/* Looks through a log for one audit.lost of this source. */
struct lost_search {
	const char *source, *reason;
	unsigned found, all;
};

static inline int search_lost(void *ctx, const struct record *r)
{
	struct lost_search *s = ctx;
	if (r->type != AUDIT_LOST)
		return 0;
	s->all++;
	if (str_eq(json_string_value(json_object_get(r->data, "source")), s->source) &&
		str_eq(json_string_value(json_object_get(r->data, "reason")), s->reason))
		s->found++;
	return 0;
}

static inline void expect_lost(int dirfd, const char *source, const char *reason, unsigned all)
{
	struct lost_search s = { .source = source, .reason = reason };
	struct record_verdict v;
	struct err err;
	assert_int_equal(record_read(dirfd, true, search_lost, &s, &v, &err), 0);
	assert_true(v.intact);
	assert_int_equal(s.all, all);
	assert_int_equal(s.found, all ? 1 : 0);
}
