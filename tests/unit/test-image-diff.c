/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

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

static int teardown(void **state)
{
	trees_end();
	return 0;
}

static char *patch(unsigned style)
{
	struct changes c = collected("upper", "lower", now_ns());
	char *text = patch_of(&c, "lower", NULL, style);
	changes_done(&c);
	return text;
}

static void expect_patch(const char *want)
{
	char *text = patch(DIFF_PLAIN);
	assert_string_equal(text, want);
	free(text);
}

static void test_modified_with_context(void **state)
{
	tree_write("lower/f", "1\n2\n3\n4\n5\n6\n7\n8\n9\n10\n11\n12\n13\n14\n15\n");
	clock_tick();
	tree_write("upper/f", "1\n2\n3\n4\nfive\n6\n7\n8\n9\n10\n11\n12\n13\n14\n15");
	expect_patch("diff --git a/f b/f\n--- a/f\n+++ b/f\n@@ -2,7 +2,7 @@\n 2\n 3\n 4\n-5\n+five\n 6\n 7\n 8\n"
		     "@@ -12,4 +12,4 @@\n 12\n 13\n 14\n-15\n+15\n\\ No newline at end of file\n");
}

static void test_new_deleted_empty(void **state)
{
	tree_write("lower/gone", "a\nb\n");
	tree_write("lower/gone-empty", "");
	clock_tick();
	tree_whiteout("upper/gone");
	tree_whiteout("upper/gone-empty");
	tree_write("upper/n", "x\n");
	tree_mode("upper/n", 0755);
	tree_write("upper/n-empty", "");
	expect_patch("diff --git a/gone b/gone\ndeleted file mode 100644\n--- a/gone\n+++ /dev/null\n@@ -1,2 +0,0 @@\n-a\n-b\n"
		     "diff --git a/gone-empty b/gone-empty\ndeleted file mode 100644\n"
		     "# executable: n: it became executable\ndiff --git a/n b/n\nnew file mode 100755\n--- /dev/null\n+++ "
		     "b/n\n@@ -0,0 +1 @@\n+x\n"
		     "diff --git a/n-empty b/n-empty\nnew file mode 100644\n");
}

static void test_modes_renames_kinds(void **state)
{
	tree_write("lower/m", "same\n");
	tree_write("lower/old name", "moved\n");
	tree_write("lower/t", "text\n");
	tree_folder("lower/folder");
	clock_tick();
	tree_write("upper/m", "same\n");
	tree_mode("upper/m", 0600);
	tree_whiteout("upper/old name");
	tree_write("upper/new\tname", "moved\n");
	tree_link("upper/t", "m");
	tree_folder("upper/folder");
	tree_mode("upper/folder", 0700);
	expect_patch("# folder has another mode: folder (mode 0700, was 0755)\n"
		     "diff --git a/m b/m\nold mode 100644\nnew mode 100600\n"
		     "diff --git a/old name \"b/new\\tname\"\nsimilarity index 100%\nrename from old name\nrename to "
		     "\"new\\tname\"\n"
		     "# file became link: t (mode 0777)\n"
		     "diff --git a/t b/t\ndeleted file mode 100644\n--- a/t\n+++ /dev/null\n@@ -1 +0,0 @@\n-text\n"
		     "diff --git a/t b/t\nnew file mode 120000\n--- /dev/null\n+++ b/t\n@@ -0,0 +1 @@\n+m\n\\ No newline at "
		     "end of file\n");
}

static void test_binary_and_special(void **state)
{
	tree_write_bytes("upper/bin", "a\0b", 3);
	assert_int_equal(mkfifo("upper/pipe", 0644), 0);
	expect_patch("diff --git a/bin b/bin\nnew file mode 100644\nBinary files /dev/null and b/bin differ\n"
		     "# special: pipe: devices, pipes, sockets and files beyond 4 TiB are never applied\n# fifo added: pipe "
		     "(mode 0644)\n");
}

static void test_names_with_spaces_end_with_a_tab(void **state)
{
	tree_write("upper/a b", "x\n");
	expect_patch("diff --git a/a b b/a b\nnew file mode 100644\n--- /dev/null\n+++ b/a b\t\n@@ -0,0 +1 @@\n+x\n");
}

/* No name and no content can forge a line of ours, or one of the patch. */
static void test_names_forge_nothing(void **state)
{
	tree_write("upper/x\n# ok: fine", "x\n");
	char *text = patch(DIFF_PLAIN);
	assert_null(strstr(text, "\n# ok"));
	assert_non_null(strstr(text, "\"b/x\\n# ok: fine\""));
	free(text);
}

static void test_flags_are_announced_above(void **state)
{
	tree_write("upper/.git/hooks/pre-commit", "#!/bin/sh\n");
	char *text = patch(DIFF_PLAIN);
	const char *flag = strstr(text,
		"# git-hook: .git/hooks/pre-commit: git or a hook manager runs it; it is applied only when it is named\n");
	assert_non_null(flag);
	assert_true(flag < strstr(text, "diff --git a/.git/hooks/pre-commit"));
	free(text);
}

static void test_terminal_shows_what_is_there(void **state)
{
	tree_write(
		"upper/f", "\x1b[1A\x1b[2Kclean\r\nbidi \xe2\x80\xae!\xe2\x80\x8b\nraw \xff\xc2\x9b\x7f\nfine \xc3\xa9\ttab\n");
	char *text = patch(DIFF_VISIBLE);
	assert_null(strchr(text, '\x1b'));
	assert_non_null(strstr(text, "+^[[1A^[[2Kclean^M\n"));
	assert_non_null(strstr(text, "+bidi <U+202E>!<U+200B>\n"));
	assert_non_null(strstr(text, "+raw <FF><U+009B>^?\n"));
	assert_non_null(strstr(text, "+fine \xc3\xa9\ttab\n"));
	free(text);
	text = patch(DIFF_COLOUR);
	assert_non_null(strstr(text, "\033[32m+^[[1A^[[2Kclean^M\033[0m\n"));
	free(text);
	/* Not a terminal: byte for byte, or the patch would be another. */
	text = patch(DIFF_PLAIN);
	assert_non_null(strstr(text, "+\x1b[1A\x1b[2Kclean\r\n"));
	free(text);
}

/* Too large to be compared line by line: all old lines out, all new ones in; nothing is left out. */
static void test_large_files_are_replaced_whole(void **state)
{
	tree_run("yes 'an old line that is long enough' | head -n 1200000 > lower/big; (yes 'a new line that is long enough' | "
		 "head -n 1200000; "
		 "printf end) > upper/big");
	struct changes c = collected("upper", "lower", now_ns() - 1);
	char *text = patch_of(&c, "lower", NULL, DIFF_PLAIN);
	assert_non_null(strstr(text, "@@ -1,1200000 +1,1200001 @@\n-an old"));
	assert_non_null(strstr(text, "+end\n\\ No newline at end of file\n"));
	size_t lines = 0;
	for (const char *p = text; *p; p++)
		lines += *p == '\n';
	assert_int_equal(lines, 2400001 + 1 + 4 + (strstr(text, "# original-changed") != NULL));
	free(text);
	changes_done(&c);
}

static int take_stat(void *ctx, const struct change *one, const struct change_stat *stat)
{
	*(struct change_stat *)ctx = *stat;
	return 0;
}

static void test_stat_and_selection(void **state)
{
	tree_write("lower/d/f", "a\nb\nc\n");
	tree_write("lower/e", "x\n");
	clock_tick();
	tree_write("upper/d/f", "a\nB\nc\nd\n");
	tree_write("upper/e", "y\n");
	struct changes c = collected("upper", "lower", now_ns());
	char folder[] = "d", *paths[] = { folder, NULL };
	struct change_stat stat = { 0 };
	struct err err = ERR_INIT;
	int state_fd = tree_fd("state"), original = tree_fd("lower");
	assert_int_equal(changes_stat(&c, state_fd, "changes", original, paths, take_stat, &stat, &err), 0);
	assert_int_equal(stat.added, 2);
	assert_int_equal(stat.deleted, 1);
	char *text = patch_of(&c, "lower", paths, DIFF_PLAIN);
	assert_non_null(strstr(text, "a/d/f"));
	assert_null(strstr(text, "a/e"));
	free(text);
	close(state_fd);
	close(original);
	changes_done(&c);
}

static int stop_at_once(void *ctx, const void *data, size_t len)
{
	(*(int *)ctx)++;
	return 7;
}

static void test_the_reader_can_stop(void **state)
{
	tree_run("head -c 3000000 /dev/zero | tr '\\0' 'a' | fold > upper/f");
	struct changes c = collected("upper", "lower", now_ns());
	struct err err = ERR_INIT;
	int calls = 0, state_fd = tree_fd("state"), original = tree_fd("lower");
	assert_int_equal(changes_diff(&c, state_fd, "changes", original, NULL, DIFF_PLAIN, stop_at_once, &calls, &err), 7);
	assert_int_equal(calls, 1);
	close(state_fd);
	close(original);
	changes_done(&c);
}

#define TREE_TEST(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TREE_TEST(test_modified_with_context),
		TREE_TEST(test_new_deleted_empty),
		TREE_TEST(test_modes_renames_kinds),
		TREE_TEST(test_binary_and_special),
		TREE_TEST(test_names_with_spaces_end_with_a_tab),
		TREE_TEST(test_names_forge_nothing),
		TREE_TEST(test_flags_are_announced_above),
		TREE_TEST(test_terminal_shows_what_is_there),
		TREE_TEST(test_large_files_are_replaced_whole),
		TREE_TEST(test_stat_and_selection),
		TREE_TEST(test_the_reader_can_stop),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
