/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The promise, on the kernel's own overlay: whatever happens in the working copy, collecting, saving, loading and applying
 * gives exactly the tree that the box saw; and `git apply` makes the same text files of our patch.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <unistd.h>

#include "image-trees.h"

#define ROUNDS 150u

static bool can_mount;

static int setup(void **state)
{
	trees_begin();
	can_mount = trees_mount_tmpfs();
	if (!can_mount)
		print_message("skipped: this test mounts overlays, which needs root (CAP_SYS_ADMIN) here\n");
	return 0;
}

static int teardown(void **state)
{
	trees_end();
	return 0;
}

/* One round: a random original, random changes through an overlay; "want" is what the box saw at last, "copy" the original as
 * it was. */
static struct changes round_of(struct random *r)
{
	tree_run("rm -rf lower upper work merged want copy state; mkdir upper work merged");
	random_tree(r, "lower", 25);
	tree_run("cp -a lower copy");
	clock_tick();
	uint64_t started = now_ns();
	assert_true(trees_mount_overlay("lower", "upper", "work", "merged"));
	random_changes(r, "merged", 30);
	tree_run("cp -a merged want");
	assert_int_equal(umount("merged"), 0);
	return collected("upper", "lower", started);
}

static void check_apply(const struct changes *c, uint64_t seed)
{
	struct err err = ERR_INIT;
	struct apply_result result;
	char **paths = all_paths(c);
	int state = tree_fd("state"), original = tree_fd("lower");
	/* Twice: the second time all of it is so already. */
	for (int i = 0; i < 2 && c->n > 0; i++) {
		int r = changes_apply(c, state, "changes", original, paths, false, &result, &err);
		if (r < 0)
			print_error("seed %llu: %s\n", (unsigned long long)seed, err.text);
		assert_int_equal(r, 0);
		assert_int_equal(result.applied, c->n);
		if (i == 1)
			assert_int_equal(result.already, c->n);
		apply_result_done(&result);
	}
	close(state);
	close(original);
	free(paths);
}

static void test_apply_gives_what_the_box_saw(void **state)
{
	if (!can_mount)
		skip();
	size_t changes = 0;
	for (uint64_t seed = 1; seed <= ROUNDS; seed++) {
		struct random r = { .state = seed };
		struct changes c = round_of(&r);
		changes += c.n;
		check_apply(&c, seed);
		unsigned differences = trees_compare("want", "lower", COMPARE_MODES | COMPARE_FOLDERS | COMPARE_SPECIAL);
		if (differences)
			print_error("seed %llu\n", (unsigned long long)seed);
		assert_int_equal(differences, 0);
		changes_done(&c);
	}
	/* The trees must not have become trivial. */
	assert_true(changes > 10 * ROUNDS);
}

static void test_git_takes_the_patch(void **state)
{
	if (!can_mount)
		skip();
	for (uint64_t seed = 1000; seed < 1000 + ROUNDS; seed++) {
		struct random r = { .state = seed, .plain = true };
		struct changes c = round_of(&r);
		char *patch = patch_of(&c, "lower", NULL, DIFF_PLAIN);
		/* git knows no empty folders: one in the way of a file would stop it. */
		tree_run("find copy -mindepth 1 -type d -empty -delete");
		bool has_patch = strstr(patch, "diff --git") != NULL;
		tree_write("patch", patch);
		if (has_patch)
			tree_run("cd copy && GIT_CEILING_DIRECTORIES=/ git apply --whitespace=nowarn ../patch");
		unsigned differences = trees_compare("want", "copy", 0);
		if (differences)
			print_error("seed %llu\n%s\n", (unsigned long long)seed, patch);
		assert_int_equal(differences, 0);
		free(patch);
		changes_done(&c);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_apply_gives_what_the_box_saw),
		cmocka_unit_test(test_git_takes_the_patch),
	};
	return cmocka_run_group_tests(tests, setup, teardown);
}
