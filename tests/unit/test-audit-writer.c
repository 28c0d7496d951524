/* SPDX-License-Identifier: Apache-2.0 */
/* Crashes in the middle of a write, full disks, two writers. */
#include "unit/audit-fixture.h"

#include <sched.h>
#include <signal.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/wait.h>

#include "audit/line.h"

static void test_torn_at_every_byte(void **state)
{
	struct folder *f = *state;
	size_t len, last = 0;
	write_small_log(f->fd);
	char *text = slurp(f->fd, RECORD_FILE, &len);
	for (size_t i = 0; i + 1 < len; i++)
		if (text[i] == '\n')
			last = i + 1;
	for (size_t keep = last; keep < len; keep++) {
		uint64_t cut;
		put_file(f->fd, RECORD_FILE, text, keep);
		struct record_writer *w = open_writer(f->fd, &cut);
		assert_int_equal(cut, keep - last);
		assert_int_equal(record_writer_count(w), SMALL_RECORDS - 1);
		assert_false(record_writer_settled(w));
		append(w, AUDIT_FROM_SUPERVISOR, AUDIT_SANDBOX_END, fields_end(), NULL, 0);
		assert_true(record_writer_settled(w));
		record_writer_free(w);
		struct record_verdict v = verdict_of(f->fd);
		assert_true(v.intact && v.complete && !v.torn);
		assert_int_equal(v.records, SMALL_RECORDS);
	}
	mem_free(text);
}

/* Killed before the first record was whole: the log begins anew. */
static void test_torn_first(void **state)
{
	struct folder *f = *state;
	uint64_t cut;
	put_file(f->fd, RECORD_FILE, "{\"data\":", 8);
	struct record_writer *w = open_writer(f->fd, &cut);
	assert_int_equal(cut, 8);
	assert_int_equal(record_writer_count(w), 0);
	append(w, AUDIT_FROM_SUPERVISOR, AUDIT_SANDBOX_START, fields_start(), NULL, 0);
	record_writer_free(w);
	assert_int_equal(verdict_of(f->fd).records, 1);
}

/* Bytes that were written while their record was not: the next output goes behind them. */
static void test_orphan_output(void **state)
{
	struct folder *f = *state;
	uint64_t cut;
	write_small_log(f->fd);
	put_file(f->fd, RECORD_BLOB_FILE, "hello and more", 14);
	struct record_writer *w = open_writer(f->fd, &cut);
	append(w, AUDIT_FROM_SUPERVISOR, AUDIT_OUTPUT, fields_output(3), "new", 3);
	record_writer_free(w);
	struct record_verdict v = verdict_of(f->fd);
	assert_true(v.intact);
	assert_false(v.complete);
	assert_int_equal(v.output_bytes, 8);
}

static void test_damaged_end_is_not_built_on(void **state)
{
	struct folder *f = *state;
	size_t len;
	uint64_t cut;
	struct record_writer *w = NULL;
	struct err err;
	write_small_log(f->fd);
	char *text = slurp(f->fd, RECORD_FILE, &len);
	text[len - 80] ^= 1;
	put_file(f->fd, RECORD_FILE, text, len);
	assert_int_equal(record_writer_open(f->fd, &w, &cut, &err), -1);
	assert_int_equal(err.code, ERR_CORRUPT);
	size_t now;
	char *after = slurp(f->fd, RECORD_FILE, &now);
	assert_int_equal(now, len);
	assert_memory_equal(after, text, len);
	mem_free(after);
	mem_free(text);
}

static void test_continue_keeps_settled(void **state)
{
	struct folder *f = *state;
	uint64_t cut;
	write_small_log(f->fd);
	for (unsigned i = 0; i < 3; i++) {
		struct record_writer *w = open_writer(f->fd, &cut);
		assert_int_equal(cut, 0);
		assert_true(record_writer_settled(w));
		append(w, AUDIT_FROM_SUPERVISOR, AUDIT_CHANGES_APPLIED, json_pack("{s:[s], s:s}", "paths", "a", "how", "apply"),
			NULL, 0);
		assert_true(record_writer_settled(w));
		record_writer_free(w);
	}
	struct record_verdict v = verdict_of(f->fd);
	assert_true(v.intact && v.complete);
	assert_int_equal(v.records, SMALL_RECORDS + 3);
}

static void test_refused_events_write_nothing(void **state)
{
	struct folder *f = *state;
	uint64_t cut, seq;
	struct err err;
	struct record_writer *w = open_writer(f->fd, &cut);
	struct {
		enum audit_source source;
		enum audit_type type;
		json_t *fields;
		const char *blob;
		enum err_code code;
	} cases[] = {
		{ AUDIT_FROM_GATE, AUDIT_SANDBOX_END, fields_end(), NULL, ERR_DENIED },
		{ AUDIT_FROM_SUPERVISOR, AUDIT_EGRESS, fields_egress(), NULL, ERR_DENIED },
		{ AUDIT_FROM_SUPERVISOR, AUDIT_LOST, json_object(), NULL, ERR_DENIED },
		{ AUDIT_FROM_SUPERVISOR, AUDIT_TYPE_MAX, json_object(), NULL, ERR_DENIED },
		{ AUDIT_FROM_SUPERVISOR, AUDIT_SANDBOX_START, json_object(), NULL, ERR_INVALID },
		{ AUDIT_FROM_SUPERVISOR, AUDIT_SIGNAL, json_pack("{s:f, s:b}", "signal", 1.5, "forwarded", 1), NULL,
			ERR_INVALID },
		{ AUDIT_FROM_SUPERVISOR, AUDIT_SIGNAL, fields_signal(1), "blob", ERR_INVALID },
		{ AUDIT_FROM_SUPERVISOR, AUDIT_OUTPUT, fields_output(3), "blob", ERR_INVALID },
		{ AUDIT_FROM_SUPERVISOR, AUDIT_OUTPUT, json_array(), "blob", ERR_INVALID },
	};
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		const char *blob = cases[i].blob;
		assert_int_equal(record_writer_append(w, cases[i].source, cases[i].type, cases[i].fields, blob,
					 blob ? strlen(blob) : 0, 1, &seq, &err),
			-1);
		assert_int_equal(err.code, cases[i].code);
		json_decref(cases[i].fields);
	}
	record_writer_free(w);
	size_t len;
	mem_free(slurp(f->fd, RECORD_FILE, &len));
	assert_int_equal(len, 0);
	mem_free(slurp(f->fd, RECORD_BLOB_FILE, &len));
	assert_int_equal(len, 0);
}

static void test_one_writer(void **state)
{
	struct folder *f = *state;
	uint64_t cut;
	struct record_writer *w = open_writer(f->fd, &cut);
	pid_t pid = fork();
	if (pid == 0) {
		/* The second waits until the first is done, which here is when it is free again. */
		struct record_writer *second = NULL;
		struct err err;
		_exit(record_writer_open(f->fd, &second, &cut, &err) == 0 && record_writer_count(second) == 1 ? 0 : 1);
	}
	usleep(50 * 1000);
	append(w, AUDIT_FROM_SUPERVISOR, AUDIT_SANDBOX_START, fields_start(), NULL, 0);
	struct err err;
	assert_int_equal(record_writer_finish(w, &err), 0);
	int status;
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
	record_writer_free(w);
}

/* ---- no room ---- */

static bool append_signal(struct record_writer *w, struct err *err)
{
	uint64_t seq;
	json_t *fields = fields_signal(9);
	int r = record_writer_append(w, AUDIT_FROM_SUPERVISOR, AUDIT_SIGNAL, fields, NULL, 0, time_realtime_ns(), &seq, err);
	json_decref(fields);
	return r == 0;
}

static bool append_bytes(struct record_writer *w, size_t len, struct err *err)
{
	static char blob[64 * 1024];
	uint64_t seq;
	json_t *fields = fields_output(len);
	int r = record_writer_append(w, AUDIT_FROM_SUPERVISOR, AUDIT_OUTPUT, fields, blob, len, time_realtime_ns(), &seq, err);
	json_decref(fields);
	return r == 0;
}

/* Until it fails; then the log must be whole, and be continued once there is room. 0 when all is well. */
static int fill(int dirfd, bool output)
{
	uint64_t cut;
	struct err err = ERR_INIT;
	struct record_writer *w = NULL;
	if (record_writer_open(dirfd, &w, &cut, &err) < 0)
		return 10;
	unsigned good = 0;
	while (good < 100000 && (output ? append_bytes(w, 30000, &err) : append_signal(w, &err)))
		good++;
	bool failed_well = good > 0 && good < 100000 && err.code == ERR_SYSTEM;
	record_writer_free(w);
	struct record_verdict v;
	if (!failed_well || record_read(dirfd, true, NULL, NULL, &v, &err) < 0)
		return 11;
	return v.intact && !v.torn && v.records == good ? 0 : 12;
}

static int after_room(int dirfd)
{
	uint64_t cut;
	struct err err = ERR_INIT;
	struct record_writer *w = NULL;
	struct record_verdict v;
	if (record_writer_open(dirfd, &w, &cut, &err) < 0 || cut != 0)
		return 20;
	if (!append_signal(w, &err))
		return 21;
	record_writer_free(w);
	return record_read(dirfd, true, NULL, NULL, &v, &err) == 0 && v.intact && !v.torn ? 0 : 22;
}

static int under_file_limit(int dirfd, bool output)
{
	/* Not at the edge of a record. */
	struct rlimit small = { 100001, RLIM_INFINITY }, none = { RLIM_INFINITY, RLIM_INFINITY };
	signal(SIGXFSZ, SIG_IGN);
	if (setrlimit(RLIMIT_FSIZE, &small) < 0)
		return 1;
	int r = fill(dirfd, output);
	setrlimit(RLIMIT_FSIZE, &none);
	return r ? r : after_room(dirfd);
}

enum { CANT_MOUNT = 77 };

static int on_full_disk(const char *path, bool output)
{
	static const char ballast[32 * 1024];
	if (unshare(CLONE_NEWNS) < 0 || mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0 ||
		mount("none", path, "tmpfs", 0, "size=256k") < 0)
		return CANT_MOUNT;
	cleanup_fd int dirfd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	put_file(dirfd, "ballast", ballast, sizeof(ballast));
	int r = fill(dirfd, output);
	return r ? r : unlinkat(dirfd, "ballast", 0) < 0 ? 2 : after_room(dirfd);
}

static int in_child(struct folder *f, bool mounted, bool output)
{
	int status;
	pid_t pid = fork();
	if (pid == 0)
		_exit(mounted ? on_full_disk(f->path, output) : under_file_limit(f->fd, output));
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFEXITED(status));
	return WEXITSTATUS(status);
}

static void test_limit_line(void **state)
{
	assert_int_equal(in_child(*state, false, false), 0);
}

static void test_limit_output(void **state)
{
	assert_int_equal(in_child(*state, false, true), 0);
}

static void test_full_line(void **state)
{
	int r = in_child(*state, true, false);
	if (r == CANT_MOUNT)
		skip();
	assert_int_equal(r, 0);
}

static void test_full_output(void **state)
{
	int r = in_child(*state, true, true);
	if (r == CANT_MOUNT)
		skip();
	assert_int_equal(r, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_torn_at_every_byte, folder_make, folder_remove),
		cmocka_unit_test_setup_teardown(test_torn_first, folder_make, folder_remove),
		cmocka_unit_test_setup_teardown(test_orphan_output, folder_make, folder_remove),
		cmocka_unit_test_setup_teardown(test_damaged_end_is_not_built_on, folder_make, folder_remove),
		cmocka_unit_test_setup_teardown(test_continue_keeps_settled, folder_make, folder_remove),
		cmocka_unit_test_setup_teardown(test_refused_events_write_nothing, folder_make, folder_remove),
		cmocka_unit_test_setup_teardown(test_one_writer, folder_make, folder_remove),
		cmocka_unit_test_setup_teardown(test_limit_line, folder_make, folder_remove),
		cmocka_unit_test_setup_teardown(test_limit_output, folder_make, folder_remove),
		cmocka_unit_test_setup_teardown(test_full_line, folder_make, folder_remove),
		cmocka_unit_test_setup_teardown(test_full_output, folder_make, folder_remove),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
