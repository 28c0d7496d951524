/* SPDX-License-Identifier: Apache-2.0 */
/*
 * First byte chooses what the rest is: one line (0), a whole record.jsonl with output.bin empty (1), the log that a writer
 * picks up (2), one message from a source to the auditor (3).
 */
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "audit/line.h"
#include "audit/record.h"
#include "audit/serve.h"
#include "base/fd.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static char folder_path[64];
static int folder_fd = -1;

static void remove_folder(void)
{
	unlinkat(folder_fd, RECORD_FILE, 0);
	unlinkat(folder_fd, RECORD_BLOB_FILE, 0);
	rmdir(folder_path);
}

/* A folder of our own, in memory where there is such a place. */
static int folder(void)
{
	if (folder_fd >= 0)
		return folder_fd;
	snprintf(folder_path, sizeof(folder_path), "%s/bulkhead-fuzz-XXXXXX",
		access("/dev/shm", W_OK) == 0 ? "/dev/shm" : "/tmp");
	if (!mkdtemp(folder_path) || (folder_fd = open(folder_path, O_RDONLY | O_DIRECTORY | O_CLOEXEC)) < 0)
		abort();
	atexit(remove_folder);
	return folder_fd;
}

static void put_log(const uint8_t *data, size_t size)
{
	int fd = openat(folder(), RECORD_FILE, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
	if (fd < 0 || fd_write_full(fd, data, size) < 0)
		abort();
	close(fd);
	unlinkat(folder(), RECORD_BLOB_FILE, 0);
}

/* What parses is canonical: composed again from its parts it is the same line, and there is no second spelling with the same
 * meaning. */
static void fuzz_line(const uint8_t *data, size_t size)
{
	static const uint8_t zero[RECORD_HASH_SIZE];
	uint8_t hash[RECORD_HASH_SIZE];
	json_t *root;
	if (record_line_parse((const char *)data, size, zero, 1, &root, hash, NULL) < 0)
		return;
	char *text = record_canonical(root);
	if (!text || strlen(text) != size || memcmp(text, data, size) != 0)
		abort();
	free(text);
	json_decref(root);
}

static int count(void *ctx, const struct record *r)
{
	(*(uint64_t *)ctx)++;
	if (r->seq != *(uint64_t *)ctx)
		abort();
	return 0;
}

static void fuzz_log(const uint8_t *data, size_t size)
{
	struct record_verdict v;
	uint64_t n = 0;
	put_log(data, size);
	if (record_read(folder(), true, count, &n, &v, NULL) < 0)
		return;
	if (v.records != n || (v.complete && !v.intact) || (!v.intact && v.bad_line != n + 1))
		abort();
}

/* A log that can be picked up can be appended to, and is torn no more. */
static void fuzz_tail(const uint8_t *data, size_t size)
{
	struct record_writer *w;
	struct record_verdict before, after;
	uint64_t cut, seq;
	put_log(data, size);
	if (record_read(folder(), false, NULL, NULL, &before, NULL) < 0 || record_writer_open(folder(), &w, &cut, NULL) < 0)
		return;
	json_t *fields = json_pack("{s:i, s:b}", "signal", 1, "forwarded", 1);
	if (record_writer_append(w, AUDIT_FROM_SUPERVISOR, AUDIT_SIGNAL, fields, NULL, 0, 1, &seq, NULL) < 0)
		abort();
	json_decref(fields);
	record_writer_free(w);
	if (before.intact && (cut != before.torn_bytes || record_read(folder(), false, NULL, NULL, &after, NULL) < 0 ||
				     !after.intact || after.torn || after.records != before.records + 1))
		abort();
}

static void fuzz_message(const uint8_t *data, size_t size)
{
	int pair[2];
	struct record_writer *w;
	struct record_verdict v;
	uint64_t cut;
	if (size == 0 || size > 100000 || socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) < 0)
		return;
	put_log(data, 0);
	if (record_writer_open(folder(), &w, &cut, NULL) < 0 || send(pair[0], data, size, MSG_NOSIGNAL) < 0)
		abort();
	shutdown(pair[0], SHUT_WR);
	/* From the source with the fewest types, or the one with the most. */
	bool upstream = size % 2 == 0;
	struct audit_sockets sockets = { -1, upstream ? -1 : pair[1], upstream ? pair[1] : -1 };
	audit_serve(w, &sockets, 0, NULL);
	record_writer_free(w);
	close(pair[0]);
	/* Whatever was said, the log is good. */
	if (record_read(folder(), true, NULL, NULL, &v, NULL) < 0 || !v.intact || v.torn)
		abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	if (size < 1)
		return 0;
	switch (data[0] & 3) {
	case 0:
		fuzz_line(data + 1, size - 1);
		break;
	case 1:
		fuzz_log(data + 1, size - 1);
		break;
	case 2:
		fuzz_tail(data + 1, size - 1);
		break;
	default:
		fuzz_message(data + 1, size - 1);
		break;
	}
	return 0;
}
