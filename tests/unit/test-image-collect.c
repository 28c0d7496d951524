/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
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

static void expect(
	const struct changes *c, const char *path, enum change_kind kind, enum file_kind before, enum file_kind after)
{
	const struct change *one = change_at(c, path);
	if (!one)
		fail_msg("%s is missing", path);
	assert_int_equal(one->kind, kind);
	assert_int_equal(one->before, before);
	assert_int_equal(one->after, after);
}

static void test_all_kinds(void **state)
{
	tree_write("lower/changed", "old\n");
	tree_write("lower/gone", "gone\n");
	tree_write("lower/mode", "same\n");
	tree_write("lower/touched", "same\n");
	tree_write("lower/untouched", "same\n");
	tree_link("lower/link", "a");
	tree_link("lower/same-link", "a");
	clock_tick();
	tree_write("upper/changed", "new\n");
	tree_whiteout("upper/gone");
	tree_write("upper/mode", "same\n");
	tree_mode("upper/mode", 0755);
	tree_write("upper/touched", "same\n");
	tree_write("upper/new/file", "x\n");
	tree_link("upper/link", "b");
	tree_link("upper/same-link", "a");
	tree_whiteout("upper/never-was");
	assert_int_equal(mkfifo("upper/fifo", 0600), 0);
	struct changes c = collect();
	expect(&c, "changed", CHANGE_MODIFIED, FILE_REGULAR, FILE_REGULAR);
	expect(&c, "gone", CHANGE_DELETED, FILE_REGULAR, FILE_NONE);
	expect(&c, "mode", CHANGE_MODE, FILE_REGULAR, FILE_REGULAR);
	expect(&c, "new", CHANGE_ADDED, FILE_NONE, FILE_FOLDER);
	expect(&c, "new/file", CHANGE_ADDED, FILE_NONE, FILE_REGULAR);
	expect(&c, "link", CHANGE_MODIFIED, FILE_LINK, FILE_LINK);
	expect(&c, "fifo", CHANGE_ADDED, FILE_NONE, FILE_FIFO);
	assert_string_equal(change_at(&c, "link")->link_after, "b");
	assert_int_equal(c.n, 7);
	assert_int_equal(c.bytes, 6);
	changes_done(&c);
}

static void test_opaque_and_replaced_folders(void **state)
{
	tree_write("lower/opaque/keeps", "k\n");
	tree_write("lower/opaque/loses/deep", "l\n");
	tree_write("lower/to-file/inner/x", "x\n");
	tree_write("lower/to-folder", "x\n");
	tree_write("lower/to-link/x", "x\n");
	clock_tick();
	tree_opaque("upper/opaque");
	tree_write("upper/opaque/keeps", "k\n");
	tree_write("upper/opaque/new", "n\n");
	tree_write("upper/to-file", "f\n");
	tree_write("upper/to-folder/y", "y\n");
	tree_link("upper/to-link", "/etc");
	struct changes c = collect();
	expect(&c, "opaque/loses", CHANGE_DELETED, FILE_FOLDER, FILE_NONE);
	expect(&c, "opaque/loses/deep", CHANGE_DELETED, FILE_REGULAR, FILE_NONE);
	expect(&c, "opaque/new", CHANGE_ADDED, FILE_NONE, FILE_REGULAR);
	expect(&c, "to-file", CHANGE_TYPE, FILE_FOLDER, FILE_REGULAR);
	expect(&c, "to-file/inner", CHANGE_DELETED, FILE_FOLDER, FILE_NONE);
	expect(&c, "to-file/inner/x", CHANGE_DELETED, FILE_REGULAR, FILE_NONE);
	expect(&c, "to-folder", CHANGE_TYPE, FILE_REGULAR, FILE_FOLDER);
	expect(&c, "to-folder/y", CHANGE_ADDED, FILE_NONE, FILE_REGULAR);
	expect(&c, "to-link", CHANGE_TYPE, FILE_FOLDER, FILE_LINK);
	expect(&c, "to-link/x", CHANGE_DELETED, FILE_REGULAR, FILE_NONE);
	assert_int_equal(change_at(&c, "to-link")->flags, CHANGE_FLAG_ESCAPING_LINK);
	assert_null(change_at(&c, "opaque/keeps"));
	assert_int_equal(c.n, 10);
	changes_done(&c);
}

static void test_renames(void **state)
{
	tree_write("lower/a/one", "first content\n");
	tree_write("lower/a/two", "second content\n");
	tree_write("lower/empty", "");
	tree_write("lower/twin1", "twins\n");
	tree_write("lower/twin2", "twins\n");
	clock_tick();
	tree_whiteout("upper/a");
	tree_write("upper/b/one", "first content\n");
	tree_write("upper/b/renamed", "second content\n");
	tree_mode("upper/b/renamed", 0755);
	tree_whiteout("upper/empty");
	tree_write("upper/empty2", "");
	tree_whiteout("upper/twin1");
	tree_whiteout("upper/twin2");
	tree_write("upper/c/twin2", "twins\n");
	struct changes c = collect();
	expect(&c, "b/one", CHANGE_RENAMED, FILE_REGULAR, FILE_REGULAR);
	assert_string_equal(change_at(&c, "b/one")->from, "a/one");
	assert_string_equal(change_at(&c, "b/renamed")->from, "a/two");
	assert_int_equal(change_at(&c, "b/renamed")->flags & CHANGE_FLAG_EXECUTABLE, CHANGE_FLAG_EXECUTABLE);
	assert_string_equal(change_at(&c, "c/twin2")->from, "twin2"); /* the one of the same name */
	expect(&c, "twin1", CHANGE_DELETED, FILE_REGULAR, FILE_NONE);
	expect(&c, "empty2", CHANGE_ADDED, FILE_NONE, FILE_REGULAR);
	expect(&c, "empty", CHANGE_DELETED, FILE_REGULAR, FILE_NONE);
	assert_null(change_at(&c, "a/one"));
	changes_done(&c);
}

/* A link that the box put where a folder is looked for must not be followed, in neither tree. */
static void test_links_are_not_followed(void **state)
{
	tree_write("outside/secret", "secret\n");
	tree_folder("lower/d");
	tree_link("lower/l", "../outside");
	tree_link("upper/d", "../outside");
	tree_write("upper/l/secret", "mine\n");
	struct changes c = collect();
	expect(&c, "d", CHANGE_TYPE, FILE_FOLDER, FILE_LINK);
	expect(&c, "l", CHANGE_TYPE, FILE_LINK, FILE_FOLDER);
	expect(&c, "l/secret", CHANGE_ADDED, FILE_NONE, FILE_REGULAR);
	assert_int_equal(c.n, 3);
	changes_done(&c);
}

static void test_link_through_a_link_of_the_original(void **state)
{
	tree_link("lower/out", "../outside");
	tree_folder("lower/in");
	tree_folder("outside");
	clock_tick();
	tree_link("upper/x", "out/secret");
	tree_link("upper/y", "in");
	struct changes c = collect();
	assert_int_equal(change_at(&c, "x")->flags, CHANGE_FLAG_ESCAPING_LINK);
	assert_int_equal(change_at(&c, "y")->flags, 0);
	changes_done(&c);
}

static void test_unreadable_leavings(void **state)
{
	tree_write("upper/closed/file", "inner\n");
	tree_mode("upper/closed/file", 0);
	tree_write("upper/listed/file", "inner\n");
	tree_mode("upper/listed", 0600);
	tree_mode("upper/closed", 0);
	struct changes c = collect();
	assert_int_equal(change_at(&c, "closed")->mode_after, 0);
	assert_int_equal(change_at(&c, "closed/file")->mode_after, 0);
	assert_int_equal(change_at(&c, "closed/file")->size_after, 6);
	assert_int_equal(change_at(&c, "listed")->mode_after, 0600);
	assert_non_null(change_at(&c, "listed/file"));
	changes_done(&c);
}

static void enter_new(const char *name)
{
	assert_int_equal(mkdir(name, 0755), 0);
	assert_int_equal(chdir(name), 0);
}

/* 1500 levels of ten bytes: four times PATH_MAX, and more levels than descriptors that we may have open. */
static void test_deeper_than_a_path_may_be(void **state)
{
	int back = tree_fd(".");
	assert_int_equal(chdir("upper"), 0);
	for (int i = 0; i < 1500; i++)
		enter_new("abcdefghij");
	int fd = open("leaf", O_WRONLY | O_CREAT | O_CLOEXEC, 0644);
	assert_true(fd >= 0 && write(fd, "x", 1) == 1);
	close(fd);
	assert_int_equal(fchdir(back), 0);
	close(back);
	struct changes c = collect();
	assert_int_equal(c.n, 1501);
	assert_int_equal(strlen(c.items[1500].path), 1500 * 11 + 4);
	assert_int_equal(c.items[1500].after, FILE_REGULAR);
	changes_done(&c);
}

static void test_odd_names_survive(void **state)
{
	static const char *const names[] = { "new\nline", "\xff\xfe", "-rf", "\x1b[2J", " ", "a\tb", "\"q\"", "\\",
		"caf\xc3\xa9" };
	for (size_t i = 0; i < ARRAY_LEN(names); i++) {
		char path[64];
		snprintf(path, sizeof(path), "upper/%s", names[i]);
		tree_write(path, names[i]);
	}
	struct changes c = collect();
	assert_int_equal(c.n, ARRAY_LEN(names));
	for (size_t i = 0; i < ARRAY_LEN(names); i++)
		expect(&c, names[i], CHANGE_ADDED, FILE_NONE, FILE_REGULAR);
	changes_done(&c);
}

/* A million names of one large file must not fill the host's disk. */
static void test_hard_links_are_stored_once(void **state)
{
	tree_write("upper/a", "content\n");
	for (int i = 0; i < 200; i++) {
		char name[32];
		snprintf(name, sizeof(name), "upper/link%d", i);
		assert_int_equal(link("upper/a", name), 0);
	}
	struct changes c = collect();
	assert_int_equal(c.n, 201);
	assert_string_equal(c.items[0].digest, c.items[200].digest);
	tree_run("test $(ls state/changes/files | wc -l) = 1");
	changes_done(&c);
}

static void test_original_changed_is_told(void **state)
{
	tree_write("lower/before", "x\n");
	tree_write("lower/after", "x\n");
	clock_tick();
	uint64_t started = now_ns();
	clock_tick();
	tree_write("lower/after", "y\n");
	tree_write("upper/before", "mine\n");
	tree_write("upper/after", "mine\n");
	struct changes c = collected("upper", "lower", started);
	assert_int_equal(change_at(&c, "before")->flags, 0);
	assert_int_equal(change_at(&c, "after")->flags, CHANGE_FLAG_ORIGINAL_CHANGED);
	changes_done(&c);
}

static void test_repositories_by_shape_and_configuration(void **state)
{
	tree_write("lower/.git/config", "[core]\n\thooksPath = tools/hooks\n");
	tree_folder("lower/nested/.git");
	tree_link("lower/nested/.git/hooks", "../shared");
	tree_folder("lower/tools/hooks");
	tree_write("lower/bare/HEAD", "ref: refs/heads/main\n");
	tree_folder("lower/bare/objects");
	tree_folder("lower/bare/refs");
	clock_tick();
	tree_write("upper/tools/hooks/pre-push", "x\n");
	tree_write("upper/nested/shared/pre-push", "x\n");
	tree_write("upper/bare/hooks/update", "x\n");
	tree_write("upper/bare/config", "x\n");
	tree_write("upper/made/HEAD", "x\n");
	tree_folder("upper/made/objects");
	tree_folder("upper/made/refs");
	tree_write("upper/made/config", "[core]\nfsmonitor = evil\n");
	tree_write("upper/tools/other", "x\n");
	struct changes c = collect();
	assert_int_equal(change_at(&c, "tools/hooks/pre-push")->flags, CHANGE_FLAG_GIT_HOOK);
	assert_int_equal(change_at(&c, "nested/shared/pre-push")->flags, CHANGE_FLAG_GIT_HOOK);
	assert_int_equal(change_at(&c, "bare/hooks/update")->flags, CHANGE_FLAG_GIT_HOOK);
	assert_int_equal(change_at(&c, "bare/config")->flags, CHANGE_FLAG_GIT_CONFIG);
	assert_int_equal(change_at(&c, "made/config")->flags, CHANGE_FLAG_GIT_CONFIG);
	assert_int_equal(change_at(&c, "tools/other")->flags, 0);
	changes_done(&c);
}

static void test_too_many_are_refused_whole(void **state)
{
	struct changes c;
	struct err err = ERR_INIT;
	for (int i = 0; i < 20; i++) {
		char path[32];
		snprintf(path, sizeof(path), "upper/f%d", i);
		tree_write(path, "x");
	}
	int up = tree_fd("upper"), low = tree_fd("lower");
	assert_int_equal(changes_collect(up, low, NULL, now_ns(), 19, &c, &err), -1);
	assert_int_equal(err.code, ERR_LIMIT);
	assert_int_equal(changes_collect(up, low, NULL, now_ns(), 20, &c, &err), 0);
	assert_int_equal(c.n, 20);
	changes_done(&c);
	close(up);
	close(low);
}

/* Without overlay the box's side is all there is: what lacks was deleted, what is the same is no change. */
static void test_whole_copy(void **state)
{
	struct changes c;
	struct err err = ERR_INIT;
	tree_write("lower/same", "x\n");
	tree_write("lower/edited", "old\n");
	tree_write("lower/gone", "x\n");
	tree_write("lower/sub/same", "x\n");
	tree_write("lower/sub/gone", "x\n");
	tree_write("lower/tree/deep/gone", "x\n");
	tree_run("mkfifo lower/pipe lower/tree/pipe; ln -s same lower/link; cp -a lower/link upper");
	tree_write("upper/same", "x\n");
	tree_write("upper/edited", "new\n");
	tree_write("upper/sub/same", "x\n");
	tree_write("upper/sub/added", "added\n");
	int up = tree_fd("upper"), low = tree_fd("lower");
	assert_int_equal(changes_collect_whole(up, low, NULL, now_ns(), 100, &c, &err), 0);
	assert_int_equal(change_at(&c, "edited")->kind, CHANGE_MODIFIED);
	assert_int_equal(change_at(&c, "gone")->kind, CHANGE_DELETED);
	assert_int_equal(change_at(&c, "sub/gone")->kind, CHANGE_DELETED);
	assert_int_equal(change_at(&c, "sub/added")->kind, CHANGE_ADDED);
	assert_int_equal(change_at(&c, "tree/deep/gone")->kind, CHANGE_DELETED);
	assert_null(change_at(&c, "pipe"));
	assert_int_equal(c.n, 8); /* tree, tree/deep and tree/pipe besides */
	changes_done(&c);
	close(up);
	close(low);
}

/* A hole that no ordinary disk could hold is told, and doesn't keep the rest from being saved. */
static void test_giant_file(void **state)
{
	int fd = open("upper/giant", O_WRONLY | O_CREAT | O_CLOEXEC, 0644);
	if (ftruncate(fd, (off_t)1 << 50) < 0)
		skip();
	close(fd);
	tree_write("upper/small", "x\n");
	struct changes c = collect();
	assert_int_equal(change_at(&c, "giant")->flags, CHANGE_FLAG_SPECIAL);
	assert_int_equal(change_at(&c, "small")->flags, 0);
	tree_run("test $(ls state/changes/files | wc -l) = 1");
	char *patch = patch_of(&c, "lower", NULL, DIFF_PLAIN);
	assert_non_null(strstr(patch, "giant is too large"));
	free(patch);
	changes_done(&c);
}

/* A save that fails leaves nothing that could be taken for a whole one. */
static void test_failed_save_leaves_nothing(void **state)
{
	struct changes c;
	struct err err = ERR_INIT;
	tree_write("upper/a", "x\n");
	tree_folder("state");
	int up = tree_fd("upper"), low = tree_fd("lower"), to = tree_fd("state");
	assert_int_equal(changes_collect(up, low, NULL, now_ns(), 100, &c, &err), 0);
	assert_int_equal(unlink("upper/a"), 0);
	assert_int_equal(changes_save(&c, up, to, "changes", &err), -1);
	assert_false(tree_exists("state/changes"));
	changes_done(&c);
	assert_int_equal(changes_load(to, "changes", &c, &err), -1);
	assert_int_equal(err.code, ERR_NOT_FOUND);
	close(up);
	close(low);
	close(to);
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
		TREE_TEST(test_all_kinds),
		TREE_TEST(test_opaque_and_replaced_folders),
		TREE_TEST(test_renames),
		TREE_TEST(test_links_are_not_followed),
		TREE_TEST(test_link_through_a_link_of_the_original),
		TREE_TEST(test_unreadable_leavings),
		TREE_TEST(test_deeper_than_a_path_may_be),
		TREE_TEST(test_odd_names_survive),
		TREE_TEST(test_hard_links_are_stored_once),
		TREE_TEST(test_original_changed_is_told),
		TREE_TEST(test_repositories_by_shape_and_configuration),
		TREE_TEST(test_too_many_are_refused_whole),
		TREE_TEST(test_whole_copy),
		TREE_TEST(test_giant_file),
		TREE_TEST(test_failed_save_leaves_nothing),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
