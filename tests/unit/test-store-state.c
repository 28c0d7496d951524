/* SPDX-License-Identifier: Apache-2.0 */
/* The state folder: who may write it, locks, what a killed supervisor leaves, prefixes, state.json. */
#include "unit/audit-fixture.h"

#include <signal.h>
#include <sys/wait.h>

#include "store/state.h"

static struct state *open_state(const struct folder *f)
{
	struct state *s = NULL;
	struct err err = ERR_INIT;
	if (state_open(f->path, &s, &err) < 0)
		fail_msg("%s", err.text);
	return s;
}

static struct sandbox_dir *create(struct state *s, const char *id)
{
	struct sandbox_dir *d = NULL;
	struct err err = ERR_INIT;
	if (state_sandbox_create(s, id, &d, &err) < 0)
		fail_msg("%s", err.text);
	return d;
}

static bool exists(const struct folder *f, const char *folder, const char *id)
{
	char path[64];
	struct stat st;
	snprintf(path, sizeof(path), "%s/%s", folder, id);
	return fstatat(f->fd, path, &st, AT_SYMLINK_NOFOLLOW) == 0;
}

static void expect_stale(struct state *s, const char *const *want, size_t n_want)
{
	char **ids;
	size_t n;
	struct err err;
	assert_int_equal(state_stale(s, &ids, &n, &err), 0);
	assert_int_equal(n, n_want);
	for (size_t i = 0; i < n; i++) {
		bool found = false;
		for (size_t w = 0; w < n_want; w++)
			found = found || str_eq(want[w], ids[i]);
		assert_true(found);
		mem_free(ids[i]);
	}
	mem_free(ids);
}

#define ID_A "abcdefghijk1"
#define ID_B "abcdefghijk2"
#define ID_C "abxdefghijk3"

static void test_open(void **state)
{
	struct folder *f = *state;
	struct state *s = NULL;
	struct err err;
	char path[128];
	snprintf(path, sizeof(path), "%s/deep/er", f->path);
	assert_int_equal(state_open(path, &s, &err), 0);
	assert_string_equal(state_path(s), path);
	struct stat st;
	assert_int_equal(fstat(state_dirfd(s), &st), 0);
	assert_int_equal(st.st_mode & 0777, 0700);
	state_free(s);

	assert_int_equal(chmod(path, 0770), 0);
	assert_int_equal(state_open(path, &s, &err), -1);
	assert_int_equal(err.code, ERR_DENIED);
	assert_int_equal(chmod(path, 0702), 0);
	assert_int_equal(state_open(path, &s, &err), -1);
	if (geteuid() == 0) {
		assert_int_equal(chmod(path, 0700), 0);
		assert_int_equal(chown(path, 12345, 12345), 0);
		assert_int_equal(state_open(path, &s, &err), -1);
		assert_int_equal(err.code, ERR_DENIED);
	}
	put_file(f->fd, "file", "", 0);
	snprintf(path, sizeof(path), "%s/file", f->path);
	assert_int_equal(state_open(path, &s, &err), -1);
	assert_int_equal(err.code, ERR_SYSTEM);
}

static void test_environment(void **state)
{
	struct folder *f = *state;
	struct state *s = NULL;
	struct err err;
	char path[128];
	snprintf(path, sizeof(path), "%s/env", f->path);
	setenv("BULKHEAD_STATE", path, 1);
	assert_int_equal(state_open(NULL, &s, &err), 0);
	assert_string_equal(state_path(s), path);
	state_free(s);
	assert_int_equal(state_open(f->path, &s, &err), 0);
	assert_string_equal(state_path(s), f->path);
	state_free(s);
	unsetenv("BULKHEAD_STATE");
}

static void test_life(void **state)
{
	struct folder *f = *state;
	struct state *s = open_state(f), *other = open_state(f);
	struct sandbox_dir *d = create(s, ID_A), *second = NULL;
	struct err err;
	assert_string_equal(sandbox_dir_id(d), ID_A);
	assert_true(exists(f, "live", ID_A) && exists(f, "sandboxes", ID_A) && state_is_live(s, ID_A));
	expect_stale(other, NULL, 0);
	assert_int_equal(state_sandbox_held(other, ID_A, &err), 1);
	assert_int_equal(state_sandbox_create(other, ID_A, &second, &err), -1);
	assert_int_equal(state_sandbox_open(other, ID_A, true, &second, &err), -1);
	assert_int_equal(err.code, ERR_CONFLICT);
	assert_int_equal(state_sandbox_open(other, ID_A, false, &second, &err), 0);
	/* Looking doesn't hold, and closing what was looked at doesn't release. */
	second = sandbox_dir_free(second);
	assert_int_equal(state_sandbox_held(other, ID_A, &err), 1);
	assert_int_equal(state_sandbox_remove(other, ID_A, &err), -1);
	assert_int_equal(err.code, ERR_CONFLICT);

	assert_int_equal(state_sandbox_ended(s, d, &err), 0);
	assert_false(state_is_live(s, ID_A));
	assert_int_equal(state_sandbox_remove(other, ID_A, &err), -1);
	d = sandbox_dir_free(d);
	assert_int_equal(state_sandbox_held(other, ID_A, &err), 0);
	assert_int_equal(state_sandbox_remove(other, ID_A, &err), 0);
	assert_false(exists(f, "sandboxes", ID_A));
	assert_int_equal(state_sandbox_open(other, ID_A, false, &second, &err), -1);
	assert_int_equal(err.code, ERR_NOT_FOUND);
	assert_int_equal(state_sandbox_create(s, "Not-an-id", &second, &err), -1);
	assert_int_equal(state_sandbox_create(s, "../escape123", &second, &err), -1);
	state_free(s);
	state_free(other);
}

/* A process that is killed while it holds a sandbox: noticed, and not before. */
static void test_killed_owner(void **state)
{
	struct folder *f = *state;
	struct state *s = open_state(f);
	int ready[2];
	assert_int_equal(pipe(ready), 0);
	pid_t pid = fork();
	if (pid == 0) {
		struct state *mine = open_state(f);
		create(mine, ID_A);
		(void)!write(ready[1], "x", 1);
		pause();
		_exit(0);
	}
	char c;
	assert_int_equal(read(ready[0], &c, 1), 1);
	struct sandbox_dir *b = create(s, ID_B);
	expect_stale(s, NULL, 0);
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
	expect_stale(s, (const char *const[]){ ID_A }, 1);
	struct sandbox_dir *a = NULL;
	struct err err;
	assert_int_equal(state_sandbox_open(s, ID_A, true, &a, &err), 0);
	/* Being cleaned up by one, it isn't offered to another. */
	expect_stale(s, NULL, 0);
	assert_int_equal(state_sandbox_ended(s, a, &err), 0);
	sandbox_dir_free(a);
	sandbox_dir_free(b);
	expect_stale(s, (const char *const[]){ ID_B }, 1);
	close(ready[0]);
	close(ready[1]);
	state_free(s);
}

/* Killed between the steps of state_sandbox_create. */
static void test_half_begun(void **state)
{
	struct folder *f = *state;
	struct state *s = open_state(f);
	struct err err;
	sandbox_dir_free(create(s, ID_C));
	put_file(f->fd, "live/" ID_A, "", 0);
	put_file(f->fd, "live/" ID_B, "", 0);
	put_file(f->fd, "live/no id", "", 0);
	assert_int_equal(mkdirat(f->fd, "sandboxes/" ID_B, 0700), 0);
	expect_stale(s, (const char *const[]){ ID_A, ID_B, ID_C }, 3);
	struct sandbox_dir *d = NULL;
	assert_int_equal(state_sandbox_open(s, ID_A, true, &d, &err), -1);
	assert_int_equal(err.code, ERR_NOT_FOUND);
	assert_int_equal(state_live_remove(s, ID_A, &err), 0);
	assert_int_equal(state_live_remove(s, ID_A, &err), 0);
	assert_int_equal(state_sandbox_open(s, ID_B, true, &d, &err), 0);
	assert_int_equal(state_sandbox_ended(s, d, &err), 0);
	sandbox_dir_free(d);
	expect_stale(s, (const char *const[]){ ID_C }, 1);
	state_free(s);
}

enum { RACERS = 4, ROUNDS = 150 };

static int begin_and_end(const struct folder *f, unsigned who)
{
	struct state *s = NULL;
	struct err err;
	if (state_open(f->path, &s, &err) < 0)
		return 1;
	for (unsigned i = 0; i < ROUNDS; i++) {
		struct sandbox_dir *d;
		char id[SANDBOX_ID_LEN + 1];
		snprintf(id, sizeof(id), "r%03uaaaa%04u", who, i);
		if (state_sandbox_create(s, id, &d, &err) < 0 || state_sandbox_ended(s, d, &err) < 0)
			return 2;
		sandbox_dir_free(d);
	}
	return 0;
}

/* Nothing that is just being begun is ever taken for dead. */
static void test_no_false_stale(void **state)
{
	struct folder *f = *state;
	struct state *s = open_state(f);
	pid_t pids[RACERS];
	for (unsigned i = 0; i < RACERS; i++) {
		pids[i] = fork();
		if (pids[i] == 0)
			_exit(begin_and_end(f, i));
	}
	for (unsigned left = RACERS; left > 0;) {
		int status;
		expect_stale(s, NULL, 0);
		pid_t done = waitpid(-1, &status, WNOHANG);
		if (done > 0) {
			assert_int_equal(status, 0);
			left--;
		}
	}
	expect_stale(s, NULL, 0);
	state_free(s);
}

static void test_prefix(void **state)
{
	struct folder *f = *state;
	struct state *s = open_state(f);
	const char *all[] = { ID_A, ID_B, ID_C };
	for (size_t i = 0; i < ARRAY_LEN(all); i++)
		sandbox_dir_free(create(s, all[i]));
	static const struct {
		const char *prefix, *found;
		enum err_code code;
	} cases[] = {
		{ ID_A, ID_A, ERR_NONE },
		{ "abx", ID_C, ERR_NONE },
		{ "abc", NULL, ERR_USAGE },
		{ "abcdefghijk", NULL, ERR_USAGE },
		{ "ab", NULL, ERR_USAGE },
		{ "", NULL, ERR_USAGE },
		{ "abcdefghijk9", NULL, ERR_NOT_FOUND },
		{ "zzz", NULL, ERR_NOT_FOUND },
		{ "abcdefghijk12", NULL, ERR_USAGE },
		{ "../sandboxes", NULL, ERR_USAGE },
		{ "ab*", NULL, ERR_USAGE },
	};
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		struct sandbox_dir *d = NULL;
		struct err err = ERR_INIT;
		int r = state_sandbox_open(s, cases[i].prefix, false, &d, &err);
		assert_int_equal(err.code, cases[i].code);
		assert_int_equal(r, cases[i].found ? 0 : -1);
		if (d)
			assert_string_equal(sandbox_dir_id(d), cases[i].found);
		sandbox_dir_free(d);
	}
	state_free(s);
}

static struct sandbox_state sample(uint64_t created)
{
	static char npm[] = "npm", odd[] = "a b\xff", empty[] = "", policy[] = "strict", source[] = "/w\xc3";
	static char *argv[] = { npm, odd, empty, NULL };
	return (struct sandbox_state){ .phase = PHASE_ENDED,
		.created_ns = created,
		.ended_ns = created + 5,
		.supervisor_pid = 77,
		.level = ISOLATION_CONTAINER,
		.policy_name = policy,
		.argv = argv,
		.exit_status = 137,
		.end_reason = REASON_LIMIT_MEMORY,
		.files_changed = 3,
		.egress_allowed = 2,
		.egress_denied = 1,
		.workdir_source = source };
}

static void test_state_file(void **state)
{
	struct folder *f = *state;
	struct state *s = open_state(f);
	struct sandbox_dir *d = create(s, ID_A);
	struct sandbox_state in = sample(1234567890123456789ull), out = { 0 };
	struct err err = ERR_INIT;
	assert_int_equal(sandbox_state_read(d, &out, &err), -1);
	assert_int_equal(sandbox_state_write(d, &in, &err), 0);
	assert_int_equal(sandbox_state_read(d, &out, &err), 0);
	assert_int_equal(out.phase, in.phase);
	assert_true(out.created_ns == in.created_ns && out.ended_ns == in.ended_ns);
	assert_int_equal(out.supervisor_pid, 77);
	assert_int_equal(out.exit_status, 137);
	assert_int_equal(out.end_reason, REASON_LIMIT_MEMORY);
	assert_true(out.files_changed == 3 && out.egress_allowed == 2 && out.egress_denied == 1);
	assert_string_equal(out.policy_name, "strict");
	assert_null(out.policy_hash);
	assert_string_equal(out.workdir_source, "/w\xc3");
	for (unsigned i = 0; i < 3; i++)
		assert_string_equal(out.argv[i], in.argv[i]);
	assert_null(out.argv[3]);
	sandbox_state_done(&out);

	char *huge = mem_alloc(200 * 1024);
	memset(huge, 'x', 200 * 1024 - 1);
	in.argv = (char *[]){ (char[]){ "sh" }, huge, NULL };
	assert_int_equal(sandbox_state_write(d, &in, &err), 0);
	assert_int_equal(sandbox_state_read(d, &out, &err), 0);
	assert_string_equal(out.argv[0], "sh");
	assert_string_equal(out.argv[1], "…");
	assert_null(out.argv[2]);
	sandbox_state_done(&out);
	mem_free(huge);

	static const char *const bad[] = { "", "{", "[]", "{}", "{\"phase\":\"ended\"}",
		"{\"phase\":\"ended\",\"level\":\"wall\",\"created_ns\":1,\"exit_status\":0}",
		"{\"phase\":\"ended\",\"phase\":\"lost\",\"level\":\"container\",\"created_ns\":1,\"exit_status\":0}" };
	for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
		put_file(sandbox_dir_fd(d), "state.json", bad[i], strlen(bad[i]));
		assert_int_equal(sandbox_state_read(d, &out, &err), -1);
		assert_int_equal(err.code, ERR_CORRUPT);
	}
	sandbox_dir_free(d);
	state_free(s);
}

struct listed {
	unsigned n;
	const char *want[4];
	enum sandbox_phase phases[4];
};

static int on_listed(void *ctx, const char *id, const struct sandbox_state *st)
{
	struct listed *l = ctx;
	assert_true(l->n < 4);
	assert_string_equal(id, l->want[l->n]);
	assert_int_equal(st->phase, l->phases[l->n]);
	l->n++;
	return 0;
}

static int stop_at_once(void *ctx, const char *id, const struct sandbox_state *st)
{
	(*(unsigned *)ctx)++;
	return 1;
}

static void test_list(void **state)
{
	struct folder *f = *state;
	struct state *s = open_state(f);
	struct err err;
	struct listed none = { 0 };
	assert_int_equal(state_list(s, on_listed, &none, &err), 0);
	struct sandbox_dir *a = create(s, ID_A), *b = create(s, ID_B), *c = create(s, ID_C);
	struct sandbox_state older = sample(1000), newer = sample(2000);
	assert_int_equal(sandbox_state_write(a, &older, &err), 0);
	assert_int_equal(sandbox_state_write(b, &newer, &err), 0);
	/* Without state.json: as old as its folder, which is newest. */
	struct listed l = { .want = { ID_C, ID_B, ID_A }, .phases = { PHASE_LOST, PHASE_ENDED, PHASE_ENDED } };
	assert_int_equal(state_list(s, on_listed, &l, &err), 0);
	assert_int_equal(l.n, 3);
	unsigned seen = 0;
	assert_int_equal(state_list(s, stop_at_once, &seen, &err), 0);
	assert_int_equal(seen, 1);
	sandbox_dir_free(a);
	sandbox_dir_free(b);
	sandbox_dir_free(c);
	state_free(s);
}

static void test_id_ranges(void **state)
{
	if (geteuid() != 0)
		skip();
	uid_t bases[5];
	int fds[5];
	struct err err = ERR_INIT;
	for (unsigned i = 0; i < 5; i++) {
		assert_int_equal(state_id_range_reserve(&bases[i], &fds[i], &err), 0);
		assert_int_equal(bases[i] % SPEC_ID_RANGE, 0);
		assert_true(bases[i] >= 0x70000000u && bases[i] < 0x80000000u);
		for (unsigned j = 0; j < i; j++)
			assert_int_not_equal(bases[i], bases[j]);
	}
	/* Another process doesn't get them, nor does a killed one keep its own. */
	pid_t pid = fork();
	if (pid == 0) {
		uid_t base;
		int fd;
		for (unsigned i = 0; i < 5; i++)
			close(fds[i]);
		int r = state_id_range_reserve(&base, &fd, &err);
		for (unsigned i = 0; i < 5; i++)
			r |= base == bases[i];
		_exit(r ? 1 : 0);
	}
	int status;
	waitpid(pid, &status, 0);
	assert_int_equal(status, 0);
	for (unsigned i = 0; i < 5; i++)
		close(fds[i]);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_open, folder_make, folder_remove),
		cmocka_unit_test_setup_teardown(test_environment, folder_make, folder_remove),
		cmocka_unit_test_setup_teardown(test_life, folder_make, folder_remove),
		cmocka_unit_test_setup_teardown(test_killed_owner, folder_make, folder_remove),
		cmocka_unit_test_setup_teardown(test_half_begun, folder_make, folder_remove),
		cmocka_unit_test_setup_teardown(test_no_false_stale, folder_make, folder_remove),
		cmocka_unit_test_setup_teardown(test_prefix, folder_make, folder_remove),
		cmocka_unit_test_setup_teardown(test_state_file, folder_make, folder_remove),
		cmocka_unit_test_setup_teardown(test_list, folder_make, folder_remove),
		cmocka_unit_test(test_id_ranges),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
