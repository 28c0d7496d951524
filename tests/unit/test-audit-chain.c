/* SPDX-License-Identifier: Apache-2.0 */
/* Whatever is done to a small log is found, or reported as torn, or leaves it without its end. */
#include "unit/audit-fixture.h"

#include "audit/line.h"

#define LINES_MAX 8u

struct lines {
	char *text;
	size_t len, at[LINES_MAX + 1], n;
};

static struct lines split(int dirfd)
{
	struct lines l = { 0 };
	l.text = slurp(dirfd, RECORD_FILE, &l.len);
	for (size_t i = 0; i < l.len; i++)
		if (l.text[i] == '\n')
			l.at[++l.n] = i + 1;
	assert_int_equal(l.n, SMALL_RECORDS);
	return l;
}

/* Only what stands before the first bad line is handed out, exactly as it was written. */
struct prefix_check {
	const struct lines *original;
	size_t seen;
};

static int check_prefix(void *ctx, const struct record *r)
{
	struct prefix_check *p = ctx;
	const struct lines *l = p->original;
	assert_true(p->seen < l->n);
	assert_int_equal(r->line_len, l->at[p->seen + 1] - l->at[p->seen] - 1);
	assert_memory_equal(r->line, l->text + l->at[p->seen], r->line_len);
	p->seen++;
	return 0;
}

static struct record_verdict read_checked(int dirfd, const struct lines *l)
{
	struct prefix_check p = { .original = l };
	struct record_verdict v;
	struct err err;
	assert_int_equal(record_read(dirfd, true, check_prefix, &p, &v, &err), 0);
	assert_int_equal(p.seen, v.records);
	return v;
}

static bool looks_whole(const struct record_verdict *v)
{
	return v->intact && v->complete && !v->torn;
}

static void test_good(void **state)
{
	struct folder *f = *state;
	write_small_log(f->fd);
	struct lines l = split(f->fd);
	struct record_verdict v = read_checked(f->fd, &l);
	assert_true(looks_whole(&v));
	assert_int_equal(v.records, SMALL_RECORDS);
	assert_int_equal(v.last_seq, SMALL_RECORDS);
	assert_int_equal(v.output_bytes, 5);
	assert_int_equal(v.bad_line, 0);
	assert_false(v.lost);
	mem_free(l.text);
}

static void flip_all(int dirfd, const char *name, const struct lines *l, size_t len)
{
	cleanup_fd int fd = openat(dirfd, name, O_RDWR | O_CLOEXEC);
	assert_true(fd >= 0);
	for (size_t at = 0; at < len; at++)
		for (unsigned bit = 0; bit < 8; bit++) {
			uint8_t good, bad;
			assert_int_equal(pread(fd, &good, 1, (off_t)at), 1);
			bad = good ^ (uint8_t)(1u << bit);
			assert_int_equal(pwrite(fd, &bad, 1, (off_t)at), 1);
			struct record_verdict v = read_checked(dirfd, l);
			if (looks_whole(&v))
				fail_msg("bit %u of byte %zu of %s was flipped, and nobody saw", bit, at, name);
			assert_int_equal(pwrite(fd, &good, 1, (off_t)at), 1);
		}
}

static void test_every_bit(void **state)
{
	struct folder *f = *state;
	write_small_log(f->fd);
	struct lines l = split(f->fd);
	flip_all(f->fd, RECORD_FILE, &l, l.len);
	flip_all(f->fd, RECORD_BLOB_FILE, &l, 5);
	struct record_verdict v = read_checked(f->fd, &l);
	assert_true(looks_whole(&v));
	mem_free(l.text);
}

/* order: indexes of lines, ends with -1 */
static struct record_verdict reorder(int dirfd, const struct lines *l, const int *order)
{
	char *text = mem_alloc(l->len * 2 + 1), *p = text;
	for (; *order >= 0; order++)
		p = mempcpy(p, l->text + l->at[*order], l->at[*order + 1] - l->at[*order]);
	put_file(dirfd, RECORD_FILE, text, (size_t)(p - text));
	mem_free(text);
	return read_checked(dirfd, l);
}

static void test_order(void **state)
{
	struct folder *f = *state;
	write_small_log(f->fd);
	struct lines l = split(f->fd);
	static const struct {
		int order[LINES_MAX];
		unsigned bad_line;
	} cases[] = {
		{ { 1, 2, 3, -1 }, 1 }, /* each one removed */
		{ { 0, 2, 3, -1 }, 2 },
		{ { 0, 1, 3, -1 }, 3 },
		{ { 1, 0, 2, 3, -1 }, 1 }, /* neighbours swapped */
		{ { 0, 2, 1, 3, -1 }, 2 },
		{ { 0, 1, 3, 2, -1 }, 3 },
		{ { 0, 0, 1, 2, 3, -1 }, 2 }, /* each one doubled */
		{ { 0, 1, 1, 2, 3, -1 }, 3 },
		{ { 0, 1, 2, 2, 3, -1 }, 4 },
		{ { 0, 1, 2, 3, 3, -1 }, 5 },
		{ { 3, 2, 1, 0, -1 }, 1 },
	};
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		struct record_verdict v = reorder(f->fd, &l, cases[i].order);
		assert_false(v.intact);
		assert_int_equal(v.bad_line, cases[i].bad_line);
	}
	/* The one thing that the chain alone can't show is seen by the missing end. */
	struct record_verdict v = reorder(f->fd, &l, (int[]){ 0, 1, 2, -1 });
	assert_true(v.intact);
	assert_false(v.complete);
	mem_free(l.text);
}

static void test_cut_everywhere(void **state)
{
	struct folder *f = *state;
	write_small_log(f->fd);
	struct lines l = split(f->fd);
	for (size_t len = l.len; len-- > 0;) {
		size_t whole = 0;
		while (whole < l.n && l.at[whole + 1] <= len)
			whole++;
		put_file(f->fd, RECORD_FILE, l.text, len);
		struct record_verdict v = read_checked(f->fd, &l);
		assert_true(v.intact);
		assert_false(v.complete);
		assert_int_equal(v.records, whole);
		assert_int_equal(v.torn, len != l.at[whole]);
		assert_int_equal(v.torn_bytes, len - l.at[whole]);
	}
	mem_free(l.text);
}

/* A forger who can compute hashes changes a record and its hash: the next one doesn't follow any more. */
static void test_rehashed(void **state)
{
	struct folder *f = *state;
	write_small_log(f->fd);
	struct lines l = split(f->fd);
	char *forged = mem_strndup(l.text, l.len);
	char *number = strstr(forged, "\"offset\":0");
	assert_non_null(number);
	number[9] = '7';

	char *line = forged + l.at[1];
	size_t len = l.at[2] - l.at[1] - 1;
	json_t *root = json_loadb(line, len, 0, NULL);
	struct line_meta m;
	char tail[RECORD_TAIL_MAX], hex[RECORD_HASH_HEX + 1];
	uint8_t hash[RECORD_HASH_SIZE];
	assert_int_equal(line_meta_read(root, &m, NULL), 0);
	char *data = record_canonical(json_object_get(root, "data"));
	line_hash(m.prev, data, strlen(data), tail, line_tail(&m, tail), hash);
	text_hex(hash, sizeof(hash), hex);
	memcpy(strstr(line, "\"hash\":\"") + 8, hex, RECORD_HASH_HEX);
	free(data);
	json_decref(root);

	put_file(f->fd, RECORD_FILE, forged, l.len);
	struct record_verdict v = verdict_of(f->fd);
	assert_false(v.intact);
	assert_int_equal(v.bad_line, 3);
	mem_free(forged);
	mem_free(l.text);
}

static void test_foreign_lines(void **state)
{
	struct folder *f = *state;
	static const char *const bad[] = { "\n", "{}\n", "[]\n", "null\n", "{\"data\":{}}\n", "x\n", "\0\n",
		"{\"data\":{},\"data\":{}}\n" };
	for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
		put_file(f->fd, RECORD_FILE, bad[i], strlen(bad[i]) ? strlen(bad[i]) : 2);
		struct record_verdict v = verdict_of(f->fd);
		assert_false(v.intact);
		assert_int_equal(v.bad_line, 1);
	}
	char *huge = mem_alloc(RECORD_LINE_MAX + 2);
	memset(huge, ' ', RECORD_LINE_MAX + 1);
	put_file(f->fd, RECORD_FILE, huge, RECORD_LINE_MAX + 1);
	assert_false(verdict_of(f->fd).intact);
	put_file(f->fd, RECORD_FILE, "", 0);
	struct record_verdict v = verdict_of(f->fd);
	assert_true(v.intact);
	assert_false(v.complete);
	mem_free(huge);
}

static void test_output_missing(void **state)
{
	struct folder *f = *state;
	write_small_log(f->fd);
	put_file(f->fd, RECORD_BLOB_FILE, "hell", 4);
	assert_int_equal(verdict_of(f->fd).bad_line, 2);
	assert_int_equal(unlinkat(f->fd, RECORD_BLOB_FILE, 0), 0);
	assert_int_equal(verdict_of(f->fd).bad_line, 2);
	/* A link in its place isn't followed. */
	assert_int_equal(symlinkat("/etc/hostname", f->fd, RECORD_BLOB_FILE), 0);
	assert_int_equal(verdict_of(f->fd).bad_line, 2);
}

static void test_canonical(void **state)
{
	static const struct {
		const char *in, *out;
	} cases[] = {
		{ "{ \"b\" : 1, \"a\" : [ true , null ] }", "{\"a\":[true,null],\"b\":1}" },
		{ "\"\\u00e9\\/\\u0001\\n\\u007f\"", "\"é/\\u0001\\n\x7f\"" },
		{ "{\"\\u00e9\":1,\"z\":2,\"\":3}", "{\"\":3,\"z\":2,\"é\":1}" },
		{ "-0", "0" },
		{ "9223372036854775807", "9223372036854775807" },
	};
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		json_t *v = json_loads(cases[i].in, JSON_DECODE_ANY, NULL);
		char *text = record_canonical(v);
		assert_string_equal(text, cases[i].out);
		free(text);
		json_decref(v);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_good, folder_make, folder_remove),
		cmocka_unit_test_setup_teardown(test_every_bit, folder_make, folder_remove),
		cmocka_unit_test_setup_teardown(test_order, folder_make, folder_remove),
		cmocka_unit_test_setup_teardown(test_cut_everywhere, folder_make, folder_remove),
		cmocka_unit_test_setup_teardown(test_rehashed, folder_make, folder_remove),
		cmocka_unit_test_setup_teardown(test_foreign_lines, folder_make, folder_remove),
		cmocka_unit_test_setup_teardown(test_output_missing, folder_make, folder_remove),
		cmocka_unit_test(test_canonical),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
