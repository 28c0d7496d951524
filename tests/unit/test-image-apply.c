/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/mem.h"
#include "image-trees.h"

static int setup(void **state)
{
	trees_begin();
	tree_folder("upper");
	tree_folder("lower");
	return 0;
}

static int setup_as_user(void **state)
{
	trees_begin_as_user();
	tree_folder("upper");
	tree_folder("lower");
	return 0;
}

static int teardown(void **state)
{
	trees_end();
	return 0;
}

static struct changes collect(void)
{
	return collected("upper", "lower", now_ns());
}

/* Paths end with NULL; none at all: everything. */
static int apply(const struct changes *c, struct apply_result *result, struct err *err, char *const *paths)
{
	int state = tree_fd("state"), original = tree_fd("lower");
	*err = ERR_INIT;
	int r = changes_apply(c, state, "changes", original, paths, false, result, err);
	close(state);
	close(original);
	return r;
}

static void expect_text(const char *path, const char *text)
{
	char *now = tree_read(path, NULL);
	if (!now)
		fail_msg("%s isn't there", path);
	assert_string_equal(now, text);
	free(now);
}

#define PATHS(...) ((char *const[]){ __VA_ARGS__, NULL })
#define S(s) ((char[]){ s })

static void test_held_until_named(void **state)
{
	struct apply_result r;
	struct err err;
	tree_write("upper/d/.husky/pre-commit", "hook\n");
	tree_write("upper/d/plain", "plain\n");
	tree_link("upper/d/out", "/etc/passwd");
	tree_write("upper/d/suid", "x\n");
	tree_mode("upper/d/suid", 04755);
	struct changes c = collect();
	assert_int_equal(apply(&c, &r, &err, NULL), 0);
	assert_int_equal(r.held.n, 3);
	expect_text("lower/d/plain", "plain\n");
	assert_false(tree_exists("lower/d/.husky/pre-commit") || tree_exists("lower/d/out") || tree_exists("lower/d/suid"));
	apply_result_done(&r);
	/* The folder's name takes what is below it, but not those. */
	assert_int_equal(apply(&c, &r, &err, PATHS(S("d"))), 0);
	assert_int_equal(r.held.n, 3);
	assert_false(tree_exists("lower/d/out"));
	apply_result_done(&r);
	assert_int_equal(apply(&c, &r, &err, PATHS(S("d/.husky/pre-commit"), S("d/suid"))), 0);
	assert_int_equal(r.held.n, 0);
	expect_text("lower/d/.husky/pre-commit", "hook\n");
	struct stat st;
	assert_int_equal(stat("lower/d/suid", &st), 0);
	assert_int_equal(st.st_mode & 07777, 04755);
	assert_false(tree_exists("lower/d/out"));
	apply_result_done(&r);
	changes_done(&c);
}

static void test_special_files_never(void **state)
{
	struct apply_result r;
	struct err err;
	assert_int_equal(mkfifo("upper/pipe", 0644), 0);
	struct changes c = collect();
	assert_int_equal(apply(&c, &r, &err, PATHS(S("pipe"))), 0);
	assert_int_equal(r.held.n, 1);
	assert_false(tree_exists("lower/pipe"));
	apply_result_done(&r);
	changes_done(&c);
}

static void test_a_held_deletion_keeps_its_folder(void **state)
{
	struct apply_result r;
	struct err err;
	tree_write("lower/d/.vscode/tasks.json", "{}\n");
	tree_write("lower/d/x", "x\n");
	tree_whiteout("upper/d");
	struct changes c = collect();
	assert_int_equal(apply(&c, &r, &err, NULL), 0);
	assert_true(tree_exists("lower/d/.vscode/tasks.json"));
	assert_false(tree_exists("lower/d/x"));
	assert_int_equal(r.held.n, 3); /* the file and the two folders that it keeps */
	apply_result_done(&r);
	assert_int_equal(apply(&c, &r, &err, PATHS(S("d"), S("d/.vscode/tasks.json"))), 0);
	assert_false(tree_exists("lower/d"));
	apply_result_done(&r);
	changes_done(&c);
}

/* Each way in which the original may have changed: nothing at all is written, and the file is named. */
static void expect_conflict(const struct changes *c, const char *path)
{
	struct apply_result r;
	struct err err;
	tree_run("rm -rf before; cp -a lower before");
	assert_int_equal(apply(c, &r, &err, NULL), -1);
	assert_int_equal(err.code, ERR_CONFLICT);
	assert_non_null(strstr(err.text, path));
	assert_int_equal(r.conflicts.n, 1);
	assert_string_equal(r.conflicts.items[0].path, path);
	assert_int_equal(trees_compare("before", "lower", COMPARE_MODES | COMPARE_FOLDERS | COMPARE_SPECIAL), 0);
	apply_result_done(&r);
}

static void test_conflicts(void **state)
{
	static const struct { const char *change, *path; } cases[] = {
		{ "echo theirs > lower/mod", "mod" },
		{ "chmod 600 lower/mod", "mod" },
		{ "rm lower/mod", "mod" },
		{ "rm lower/mod; ln -s /etc/passwd lower/mod", "mod" },
		{ "rm lower/mod; mkdir lower/mod", "mod" },
		{ "echo Mod > lower/t; touch -r lower/mod lower/t; mv lower/t lower/mod", "mod" }, /* same size and time */
		{ "echo theirs > lower/gone", "gone" },
		{ "echo theirs > lower/new", "new" },
		{ "ln -s /etc lower/new", "new" },
		{ "mkdir lower/new", "new" },
		{ "echo theirs > lower/folder/extra", "folder" },
		{ "rm -r lower/in; ln -s ../outside lower/in", "in/mod" },
		{ "chmod 600 lower/mode", "mode" },
		{ "chmod 711 lower/fmode", "fmode" },
		{ "echo theirs > lower/old", "moved" },
		{ "echo theirs > lower/moved", "moved" },
	};
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		tree_run("chmod -R u+rwx . ; rm -rf upper lower state outside; mkdir upper outside; echo secret > outside/mod");
		tree_write("lower/mod", "mod\n");
		tree_write("lower/gone", "gone\n");
		tree_write("lower/in/mod", "mod\n");
		tree_write("lower/folder/f", "f\n");
		tree_write("lower/mode", "mode\n");
		tree_folder("lower/fmode");
		tree_write("lower/old", "to be moved\n");
		clock_tick();
		tree_write("upper/mod", "changed\n");
		tree_whiteout("upper/gone");
		tree_write("upper/new", "new\n");
		tree_write("upper/in/mod", "changed\n");
		tree_whiteout("upper/folder");
		tree_write("upper/mode", "mode\n");
		tree_mode("upper/mode", 0755);
		tree_folder("upper/fmode");
		tree_mode("upper/fmode", 0700);
		tree_whiteout("upper/old");
		tree_write("upper/moved", "to be moved\n");
		struct changes c = collect();
		clock_tick();
		tree_run(cases[i].change);
		expect_conflict(&c, cases[i].path);
		expect_text("outside/mod", "secret\n");
		changes_done(&c);
	}
}

/* What changed while the box ran is as it was when the changes were collected: only the flag tells. */
static void test_what_changed_during_the_run_is_a_conflict(void **state)
{
	tree_write("lower/mod", "old\n");
	tree_write("lower/gone", "gone\n");
	clock_tick();
	uint64_t started = now_ns();
	clock_tick();
	for (int i = 0; i < 2; i++) {
		tree_run("rm -rf upper; mkdir upper");
		tree_write(i ? "lower/gone" : "lower/mod", "theirs\n");
		if (i)
			tree_whiteout("upper/gone");
		else
			tree_write("upper/mod", "mine\n");
		struct changes c = collected("upper", "lower", started);
		expect_conflict(&c, i ? "gone" : "mod");
		changes_done(&c);
	}
}

static void test_a_conflict_elsewhere_does_not_matter(void **state)
{
	struct apply_result r;
	struct err err;
	tree_write("lower/a", "a\n");
	tree_write("lower/b", "b\n");
	clock_tick();
	tree_write("upper/a", "A\n");
	tree_write("upper/b", "B\n");
	struct changes c = collect();
	clock_tick();
	tree_write("lower/a", "theirs\n");
	assert_int_equal(apply(&c, &r, &err, PATHS(S("b"))), 0);
	expect_text("lower/b", "B\n");
	expect_text("lower/a", "theirs\n");
	apply_result_done(&r);
	assert_int_equal(apply(&c, &r, &err, PATHS(S("c"))), -1);
	assert_int_equal(err.code, ERR_NOT_FOUND);
	apply_result_done(&r);
	changes_done(&c);
}

static void test_the_same_change_by_hand_is_no_conflict(void **state)
{
	struct apply_result r;
	struct err err;
	tree_write("lower/a", "a\n");
	tree_write("lower/gone", "a\n");
	clock_tick();
	tree_write("upper/a", "A\n");
	tree_write("upper/n", "N\n");
	tree_whiteout("upper/gone");
	struct changes c = collect();
	clock_tick();
	tree_run("echo A > lower/a; echo N > lower/n; rm lower/gone");
	assert_int_equal(apply(&c, &r, &err, NULL), 0);
	assert_int_equal(r.already, 3);
	assert_int_equal(r.done.n, 0);
	apply_result_done(&r);
	changes_done(&c);
}

static void test_folders_above_a_named_file_come_along(void **state)
{
	struct apply_result r;
	struct err err;
	tree_write("upper/a/b/c", "c\n");
	tree_write("upper/a/b/d", "d\n");
	tree_mode("upper/a/b", 0700);
	struct changes c = collect();
	assert_int_equal(apply(&c, &r, &err, PATHS(S("a/b/c"))), 0);
	expect_text("lower/a/b/c", "c\n");
	assert_false(tree_exists("lower/a/b/d"));
	struct stat st;
	assert_int_equal(stat("lower/a/b", &st), 0);
	assert_int_equal(st.st_mode & 0777, 0700);
	apply_result_done(&r);
	changes_done(&c);
}

static void test_times_and_owners(void **state)
{
	struct apply_result r;
	struct err err;
	struct stat st;
	const struct timespec times[2] = { { 1000, 5 }, { 86400, 123456789 } };
	tree_write("lower/own/mod", "a\n");
	clock_tick();
	tree_write("upper/own/mod", "b\n");
	tree_write("upper/own/new/file", "n\n");
	tree_link("upper/own/link", "mod");
	assert_int_equal(utimensat(AT_FDCWD, "upper/own/mod", times, 0), 0);
	bool root = geteuid() == 0;
	if (root) {
		assert_int_equal(chown("lower/own", 12, 34), 0);
		assert_int_equal(chown("lower/own/mod", 56, 78), 0);
		tree_run("chown -R 100000 upper");
	}
	struct changes c = collect();
	assert_int_equal(apply(&c, &r, &err, NULL), 0);
	assert_int_equal(stat("lower/own/mod", &st), 0);
	assert_int_equal(st.st_mtim.tv_sec, 86400);
	assert_int_equal(st.st_mtim.tv_nsec, 123456789);
	assert_int_equal(st.st_uid, root ? 56 : geteuid());
	static const char *const new[] = { "lower/own/new", "lower/own/new/file", "lower/own/link" };
	for (size_t i = 0; i < ARRAY_LEN(new); i++) {
		assert_int_equal(lstat(new[i], &st), 0);
		assert_int_equal(st.st_uid, root ? 12 : geteuid());
		assert_int_equal(st.st_gid, root ? 34 : getegid());
	}
	apply_result_done(&r);
	changes_done(&c);
}

/* Package stores share files by hard links: what was changed under one name must not reach the others. */
static void test_other_names_of_a_file_stay_as_they_are(void **state)
{
	struct apply_result r;
	struct err err;
	struct stat st;
	tree_write("store", "shared\n");
	tree_folder("lower");
	assert_int_equal(link("store", "lower/mode"), 0);
	assert_int_equal(link("store", "lower/mod"), 0);
	assert_int_equal(link("store", "lower/gone"), 0);
	clock_tick();
	tree_write("upper/mode", "shared\n");
	tree_mode("upper/mode", 0755);
	tree_write("upper/mod", "mine\n");
	tree_whiteout("upper/gone");
	struct changes c = collect();
	clock_tick();
	/* Another name more or less is no change of content. */
	assert_int_equal(link("store", "another"), 0);
	for (int i = 0; i < 2; i++) {
		assert_int_equal(apply(&c, &r, &err, i == 0 ? PATHS(S("gone")) : NULL), 0);
		apply_result_done(&r);
	}
	expect_text("store", "shared\n");
	assert_int_equal(stat("store", &st), 0);
	assert_int_equal(st.st_mode & 0777, 0644);
	assert_int_equal(stat("lower/mode", &st), 0);
	assert_int_equal(st.st_mode & 0777, 0755);
	expect_text("lower/mode", "shared\n");
	expect_text("lower/mod", "mine\n");
	changes_done(&c);
}

static void test_damaged_store_is_not_applied(void **state)
{
	struct apply_result r;
	struct err err;
	tree_write("upper/f", "good\n");
	struct changes c = collect();
	tree_run("for f in state/changes/files/*; do chmod u+w $f; echo evil > $f; done");
	assert_int_equal(apply(&c, &r, &err, NULL), -1);
	assert_int_equal(err.code, ERR_CORRUPT);
	assert_false(tree_exists("lower/f"));
	tree_run("test -z \"$(ls -A lower)\"");
	apply_result_done(&r);
	changes_done(&c);
}

static void test_dry_run_writes_nothing(void **state)
{
	struct apply_result r;
	struct err err = ERR_INIT;
	tree_write("upper/f", "x\n");
	struct changes c = collect();
	int dir = tree_fd("state"), original = tree_fd("lower");
	assert_int_equal(changes_apply(&c, dir, "changes", original, NULL, true, &r, &err), 0);
	assert_int_equal(r.done.n, 1);
	assert_false(tree_exists("lower/f"));
	apply_result_done(&r);
	changes_done(&c);
	close(dir);
	close(original);
}

static void test_closed_folders_that_go(void **state)
{
	struct apply_result r;
	struct err err;
	tree_write("lower/cache/mod/f", "f\n");
	tree_mode("lower/cache/mod/f", 0444);
	tree_mode("lower/cache/mod", 0555);
	tree_mode("lower/cache", 0555);
	tree_whiteout("upper/cache");
	struct changes c = collect();
	assert_int_equal(apply(&c, &r, &err, NULL), 0);
	assert_false(tree_exists("lower/cache"));
	apply_result_done(&r);
	changes_done(&c);
}

/* ---- under a tracer: killed at each step, and disturbed at each exchange ---- */

/* Called at the entry of each system call, with its running number. True: kill the child now. */
typedef bool (*step_fn)(void *ctx, long nr, unsigned count);

static void child_apply(const struct changes *c)
{
	struct apply_result r;
	struct err err;
	if (ptrace(PTRACE_TRACEME, 0, NULL, NULL) < 0)
		_exit(99);
	raise(SIGSTOP);
	int status = apply(c, &r, &err, NULL);
	_exit(status == 0 ? 0 : (int)err.code);
}

static bool is_syscall_entry(pid_t pid, long *ret_nr)
{
	struct __ptrace_syscall_info info;
	long n = ptrace(PTRACE_GET_SYSCALL_INFO, pid, sizeof(info), &info);
	if (n <= 0 || info.op != PTRACE_SYSCALL_INFO_ENTRY)
		return false;
	*ret_nr = (long)info.entry.nr;
	return true;
}

/* Exit status of the child, 255 when it was killed; -1 when tracing isn't permitted here. */
static int traced_apply(const struct changes *c, step_fn fn, void *ctx)
{
	int status;
	unsigned count = 0;
	pid_t pid = fork();
	assert_true(pid >= 0);
	if (pid == 0)
		child_apply(c);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	if (!WIFSTOPPED(status))
		return -1;
	ptrace(PTRACE_SETOPTIONS, pid, NULL, PTRACE_O_TRACESYSGOOD | PTRACE_O_EXITKILL);
	for (;;) {
		long nr;
		ptrace(PTRACE_SYSCALL, pid, NULL, NULL);
		assert_int_equal(waitpid(pid, &status, 0), pid);
		if (WIFEXITED(status))
			return WEXITSTATUS(status);
		if (WIFSIGNALED(status))
			return 255;
		if (WSTOPSIG(status) == (SIGTRAP | 0x80) && is_syscall_entry(pid, &nr) && fn(ctx, nr, count++))
			kill(pid, SIGKILL);
	}
}

/* Only at calls that change something: between two of them, one place is like another. */
static bool changes_something(long nr)
{
	static const long calls[] = { SYS_renameat2, SYS_renameat, SYS_unlinkat, SYS_mkdirat, SYS_symlinkat, SYS_linkat,
		SYS_fchmod, SYS_fchown, SYS_fchownat, SYS_ftruncate, SYS_pwrite64, SYS_utimensat,
#ifdef SYS_chmod
		SYS_chmod,
#endif
		SYS_fchmodat };
	for (size_t i = 0; i < ARRAY_LEN(calls); i++)
		if (calls[i] == nr)
			return true;
	return false;
}

struct kill_at { unsigned at, seen; };

static bool kill_at_change(void *ctx, long nr, unsigned count)
{
	struct kill_at *k = ctx;
	return changes_something(nr) && k->seen++ == k->at;
}

static void make_rich_changes(void)
{
	tree_run("chmod -R u+rwx upper lower; rm -rf upper lower state; mkdir upper lower");
	tree_write("lower/mod", "old\n");
	tree_write("lower/gone", "gone\n");
	tree_write("lower/to-file/x", "x\n");
	tree_write("lower/to-folder", "x\n");
	tree_write("lower/mode", "m\n");
	tree_write("lower/old-name", "moved content\n");
	tree_write("lower/dir/inner/f", "f\n");
	tree_write("lower/linked", "linked\n");
	assert_int_equal(link("lower/linked", "lower/other"), 0);
	tree_folder("lower/fmode");
	clock_tick();
	tree_write("upper/mod", "new\n");
	tree_whiteout("upper/gone");
	tree_write("upper/to-file", "file now\n");
	tree_write("upper/to-folder/y", "y\n");
	tree_write("upper/mode", "m\n");
	tree_mode("upper/mode", 0700);
	tree_whiteout("upper/old-name");
	tree_write("upper/new-name", "moved content\n");
	tree_whiteout("upper/dir");
	tree_write("upper/linked", "linked\n");
	tree_mode("upper/linked", 0755);
	tree_link("upper/link", "mod");
	tree_write("upper/fresh/deep/file", "fresh\n");
	tree_mode("upper/fresh/deep", 0555);
	tree_folder("upper/fmode");
	tree_mode("upper/fmode", 0555);
}

/* Killed before each change in turn: the same command then brings the whole to its end, and leaves no temporary file. */
static void test_killed_at_each_step(void **state)
{
	struct err err;
	struct apply_result r;
	make_rich_changes();
	struct changes first = collect();
	assert_int_equal(apply(&first, &r, &err, NULL), 0);
	size_t all = r.applied;
	apply_result_done(&r);
	changes_done(&first);
	tree_run("rm -rf want; cp -a lower want");
	unsigned steps = 0;
	for (;; steps++) {
		make_rich_changes();
		struct changes c = collect();
		struct kill_at k = { .at = steps };
		int status = traced_apply(&c, kill_at_change, &k);
		if (status < 0)
			skip();
		int again = apply(&c, &r, &err, NULL);
		if (again < 0)
			fail_msg("killed at step %u: %s", steps, err.text);
		assert_int_equal(r.applied, all);
		apply_result_done(&r);
		changes_done(&c);
		if (trees_compare("want", "lower", COMPARE_MODES | COMPARE_FOLDERS | COMPARE_SPECIAL))
			fail_msg("killed at step %u", steps);
		if (status == 0)
			break;
		assert_int_equal(status, 255);
	}
	assert_true(steps > 30);
}

struct disturb { const char *command; unsigned at, seen; bool done; };

static bool disturb_rename(void *ctx, long nr, unsigned count)
{
	struct disturb *d = ctx;
	if ((nr == SYS_renameat2 || nr == SYS_linkat) && d->seen++ == d->at) {
		tree_run(d->command);
		d->done = true;
	}
	return false;
}

/* Somebody writes to the original in the very moment of the exchange: what they wrote is never lost. Before ours it is a
 * conflict; after ours it lies on top. */
static void test_disturbed_in_the_moment_of_the_exchange(void **state)
{
	static const struct { const char *command, *path; } cases[] = {
		{ "echo theirs > lower/mod", "lower/mod" },
		{ "rm -f lower/mod; echo theirs > lower/mod", "lower/mod" },
		{ "echo theirs > lower/gone", "lower/gone" },
		{ "echo theirs > lower/fresh", "lower/fresh" },
	};
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		unsigned conflicts = 0;
		for (unsigned at = 0; at < 4; at++) {
			tree_run("rm -rf upper lower state; mkdir upper lower");
			tree_write("lower/mod", "old\n");
			tree_write("lower/gone", "gone\n");
			clock_tick();
			tree_write("upper/mod", "new\n");
			tree_whiteout("upper/gone");
			tree_write("upper/fresh", "new\n");
			struct changes c = collect();
			struct disturb d = { .command = cases[i].command, .at = at };
			int status = traced_apply(&c, disturb_rename, &d);
			if (status < 0)
				skip();
			assert_true(d.done);
			assert_true(status == 0 || status == ERR_CONFLICT);
			conflicts += status == ERR_CONFLICT;
			expect_text(cases[i].path, "theirs\n");
			changes_done(&c);
		}
		if (conflicts == 0)
			fail_msg("%s was never noticed", cases[i].command);
	}
}

/* Each as who we are, and as an ordinary user. */
#define TREE_TEST(f)                                                                                                           \
	cmocka_unit_test_setup_teardown(f, setup, teardown),                                                                   \
	{                                                                                                                      \
#f " as an ordinary user", f, setup_as_user, teardown, NULL                                                    \
	}

int main(void)
{
	const struct CMUnitTest tests[] = {
		TREE_TEST(test_held_until_named),
		TREE_TEST(test_special_files_never),
		TREE_TEST(test_a_held_deletion_keeps_its_folder),
		TREE_TEST(test_conflicts),
		TREE_TEST(test_what_changed_during_the_run_is_a_conflict),
		TREE_TEST(test_a_conflict_elsewhere_does_not_matter),
		TREE_TEST(test_the_same_change_by_hand_is_no_conflict),
		TREE_TEST(test_folders_above_a_named_file_come_along),
		TREE_TEST(test_times_and_owners),
		TREE_TEST(test_other_names_of_a_file_stay_as_they_are),
		TREE_TEST(test_damaged_store_is_not_applied),
		TREE_TEST(test_dry_run_writes_nothing),
		TREE_TEST(test_closed_folders_that_go),
		TREE_TEST(test_killed_at_each_step),
		TREE_TEST(test_disturbed_in_the_moment_of_the_exchange),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
