/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <string.h>

#include "base/mem.h"
#include "image/flag-rules.h"
#include "image/flags.h"

struct path_case { const char *path; unsigned flags; };

/* Each is what the path of a plain file gives, exactly. */
static const struct path_case paths[] = {
	/* git hooks, however deep and however spelled */
	{ ".git/hooks/pre-commit", CHANGE_FLAG_GIT_HOOK },
	{ "vendor/a/b/.git/hooks/post-checkout", CHANGE_FLAG_GIT_HOOK },
	{ ".GIT/hooks/pre-commit", CHANGE_FLAG_GIT_HOOK },
	{ ".git/Hooks/pre-commit", CHANGE_FLAG_GIT_HOOK },
	{ "git~1/hooks/pre-commit", CHANGE_FLAG_GIT_HOOK },
	{ "GIT~2/HOOKS/x", CHANGE_FLAG_GIT_HOOK },
	{ ".g\xe2\x80\x8cit/hooks/pre-commit", CHANGE_FLAG_GIT_HOOK },
	{ ".git\xef\xbb\xbf/hooks/pre-commit", CHANGE_FLAG_GIT_HOOK },
	{ ".git. . /hooks/pre-commit", CHANGE_FLAG_GIT_HOOK },
	{ ".git::$INDEX_ALLOCATION/hooks/pre-commit", CHANGE_FLAG_GIT_HOOK },
	{ ".git/hooks", CHANGE_FLAG_GIT_HOOK },
	{ ".git/modules/sub/module/hooks/post-merge", CHANGE_FLAG_GIT_HOOK },
	{ ".git/worktrees/w/hooks/x", CHANGE_FLAG_GIT_HOOK },
	{ ".git/rebase-merge/git-rebase-todo", CHANGE_FLAG_GIT_HOOK },
	{ ".git/sequencer/todo", CHANGE_FLAG_GIT_HOOK },
	{ ".husky/pre-commit", CHANGE_FLAG_GIT_HOOK },
	{ ".hus\xe2\x84\xaay/pre-commit", CHANGE_FLAG_GIT_HOOK }, /* the Kelvin sign */
	{ "packages/x/.husky/_/husky.sh", CHANGE_FLAG_GIT_HOOK },
	{ ".githooks/commit-msg", CHANGE_FLAG_GIT_HOOK },
	{ ".pre-commit-config.yaml", CHANGE_FLAG_GIT_HOOK },
	{ "lefthook.yml", CHANGE_FLAG_GIT_HOOK },
	/* git configuration */
	{ ".git/config", CHANGE_FLAG_GIT_CONFIG },
	{ "sub/.git/config", CHANGE_FLAG_GIT_CONFIG },
	{ ".git/config.worktree", CHANGE_FLAG_GIT_CONFIG },
	{ ".git/worktrees/w/config.worktree", CHANGE_FLAG_GIT_CONFIG },
	{ ".git/worktrees/w/gitdir", CHANGE_FLAG_GIT_CONFIG },
	{ ".git/modules/s/config", CHANGE_FLAG_GIT_CONFIG },
	{ ".git/info/attributes", CHANGE_FLAG_GIT_CONFIG },
	{ ".git", CHANGE_FLAG_GIT_CONFIG },
	{ "sub/.Git", CHANGE_FLAG_GIT_CONFIG },
	{ ".gitattributes", CHANGE_FLAG_GIT_CONFIG },
	{ "deep/er/.gitattributes", CHANGE_FLAG_GIT_CONFIG },
	{ ".gitmodules", CHANGE_FLAG_GIT_CONFIG },
	{ "gitmod~1", CHANGE_FLAG_GIT_CONFIG },
	{ ".gitconfig", CHANGE_FLAG_GIT_CONFIG },
	{ ".hg/hgrc", CHANGE_FLAG_GIT_CONFIG },
	/* ordinary parts of git */
	{ ".git/objects/ab/cdef", 0 },
	{ ".git/index", 0 },
	{ ".git/refs/heads/main", 0 },
	{ ".git/refs/heads/hooks/x", 0 },
	{ ".git/logs/HEAD", 0 },
	{ ".git/HEAD", 0 },
	{ ".git/COMMIT_EDITMSG", 0 },
	{ ".gitignore", 0 },
	{ "git/hooks.c", 0 },
	{ "hooks/useThing.js", 0 },
	/* shells and interpreters */
	{ ".bashrc", CHANGE_FLAG_SHELL_RC },
	{ "home/me/.profile", CHANGE_FLAG_SHELL_RC },
	{ ".ZSHRC", CHANGE_FLAG_SHELL_RC },
	{ ".envrc", CHANGE_FLAG_SHELL_RC },
	{ ".env", CHANGE_FLAG_SHELL_RC },
	{ ".config/fish/config.fish", CHANGE_FLAG_SHELL_RC },
	{ ".ssh/authorized_keys", CHANGE_FLAG_SHELL_RC },
	{ ".tmux.conf", CHANGE_FLAG_SHELL_RC },
	{ ".gdbinit", CHANGE_FLAG_SHELL_RC },
	{ "lib/python3/site-packages/evil.pth", CHANGE_FLAG_SHELL_RC },
	{ "sitecustomize.py", CHANGE_FLAG_SHELL_RC },
	{ "bashrc", 0 },
	/* continuous integration */
	{ ".github/workflows/ci.yml", CHANGE_FLAG_CI },
	{ ".GitHub/Workflows/ci.yml", CHANGE_FLAG_CI },
	{ ".github/actions/x/action.yml", CHANGE_FLAG_CI },
	{ ".gitlab-ci.yml", CHANGE_FLAG_CI },
	{ "Jenkinsfile", CHANGE_FLAG_CI },
	{ "ci/Jenkinsfile.release", CHANGE_FLAG_CI },
	{ ".circleci/config.yml", CHANGE_FLAG_CI },
	{ ".ci/run", CHANGE_FLAG_CI },
	{ ".github/FUNDING.yml", 0 },
	/* editors */
	{ ".vscode/tasks.json", CHANGE_FLAG_EDITOR },
	{ ".vscode/settings.json", CHANGE_FLAG_EDITOR },
	{ "sub/.idea/workspace.xml", CHANGE_FLAG_EDITOR },
	{ ".vimrc", CHANGE_FLAG_EDITOR },
	{ ".dir-locals.el", CHANGE_FLAG_EDITOR },
	{ "x.code-workspace", CHANGE_FLAG_EDITOR },
	{ ".devcontainer/devcontainer.json", CHANGE_FLAG_EDITOR },
	{ ".vscode", CHANGE_FLAG_EDITOR },
	{ ".editorconfig", 0 },
	/* other agents */
	{ ".claude/settings.json", CHANGE_FLAG_AGENT_CONFIG },
	{ "CLAUDE.md", CHANGE_FLAG_AGENT_CONFIG },
	{ "AGENTS.md", CHANGE_FLAG_AGENT_CONFIG },
	{ "pkg/agents.md", CHANGE_FLAG_AGENT_CONFIG },
	{ ".mcp.json", CHANGE_FLAG_AGENT_CONFIG },
	{ ".cursor/rules/x.mdc", CHANGE_FLAG_AGENT_CONFIG },
	{ ".github/copilot-instructions.md", CHANGE_FLAG_AGENT_CONFIG },
	/* build files: told, not held */
	{ "package.json", CHANGE_FLAG_BUILD },
	{ "Makefile", CHANGE_FLAG_BUILD },
	{ "src/setup.py", CHANGE_FLAG_BUILD },
	{ ".cargo/config.toml", CHANGE_FLAG_BUILD },
	{ "Dockerfile.dev", CHANGE_FLAG_BUILD },
	/* nothing at all */
	{ "src/main.c", 0 },
	{ "README.md", 0 },
	{ "a b/c\nd", 0 },
};

static void test_paths(void **state)
{
	for (size_t i = 0; i < ARRAY_LEN(paths); i++) {
		unsigned flags = flags_of_path(paths[i].path, false, NULL);
		if (flags != paths[i].flags)
			print_error("%s: %#x instead of %#x\n", paths[i].path, flags, paths[i].flags);
		assert_int_equal(flags, paths[i].flags);
	}
}

static void test_folders_themselves_are_ordinary(void **state)
{
	static const char *const folders[] = { ".git", ".git/hooks", ".husky", ".vscode", ".github/workflows", ".claude",
		"sub/.git" };
	for (size_t i = 0; i < ARRAY_LEN(folders); i++)
		assert_int_equal(flags_of_path(folders[i], true, NULL), 0);
}

static void test_deep_paths_hide_nothing(void **state)
{
	char path[8192];
	size_t n = (size_t)snprintf(path, sizeof(path), ".git/modules/");
	for (int i = 0; i < 500; i++)
		n += (size_t)snprintf(path + n, sizeof(path) - n, "a/");
	snprintf(path + n, sizeof(path) - n, "hooks/pre-push");
	assert_int_equal(flags_of_path(path, false, NULL), CHANGE_FLAG_GIT_HOOK);
}

/* A name that a fold may grow or cut must not write out of its room. */
static void test_long_names(void **state)
{
	char name[600], out[256];
	memset(name, 'A', sizeof(name));
	name_fold(name, sizeof(name), out);
	assert_int_equal(strlen(out), 255);
	assert_int_equal(out[254], 'a');
	name_fold("", 0, out);
	assert_string_equal(out, "");
	name_fold("git~1", 5, out);
	assert_string_equal(out, ".git");
}

static void test_links(void **state)
{
	static const struct { const char *path, *target; bool escapes;
	} cases[] = {
		{ "a", "/etc/passwd", true },
		{ "a", "..", true },
		{ "a", "../x", true },
		{ "d/a", "../x", false },
		{ "d/a", "../../x", true },
		{ "d/e/a", "../../x", false },
		{ "d/e/a", "../../../x", true },
		{ "a", "b", false },
		{ "a", "./b/./c", false },
		{ "a", "b/../../c", true },
		{ "d/a", "b/../c", true },
		{ "d/a", ".././/x", false },
		{ "a", "", false },
		{ "a", "...", false },
		{ "a", "..b", false },
		{ "d/a", "..", false },
		{ "d/a", "../", false },
		{ "d/a", "../..", true },
	};
	for (size_t i = 0; i < ARRAY_LEN(cases); i++)
		if (link_escapes(cases[i].path, cases[i].target) != cases[i].escapes)
			fail_msg("%s -> %s", cases[i].path, cases[i].target);
}

static unsigned flags_with(
	enum change_kind kind, enum file_kind before, mode_t mode_before, enum file_kind after, mode_t mode_after)
{
	char path[] = "x", target[] = "/etc";
	struct change one = { .path = path,
		.kind = kind,
		.before = before,
		.after = after,
		.mode_before = mode_before,
		.mode_after = mode_after,
		.link_after = after == FILE_LINK ? target : NULL,
		.size_after = 1 };
	return change_flags(&one, NULL);
}

static void test_modes_and_kinds(void **state)
{
	assert_int_equal(flags_with(CHANGE_ADDED, FILE_NONE, 0, FILE_REGULAR, 0644), 0);
	assert_int_equal(flags_with(CHANGE_ADDED, FILE_NONE, 0, FILE_REGULAR, 0744), CHANGE_FLAG_EXECUTABLE);
	assert_int_equal(flags_with(CHANGE_MODE, FILE_REGULAR, 0644, FILE_REGULAR, 0755), CHANGE_FLAG_EXECUTABLE);
	assert_int_equal(flags_with(CHANGE_MODIFIED, FILE_REGULAR, 0755, FILE_REGULAR, 0755), 0);
	assert_int_equal(flags_with(CHANGE_MODE, FILE_REGULAR, 0755, FILE_REGULAR, 04755), CHANGE_FLAG_SETID);
	assert_int_equal(flags_with(CHANGE_MODE, FILE_REGULAR, 0755, FILE_REGULAR, 02755), CHANGE_FLAG_SETID);
	assert_int_equal(flags_with(CHANGE_MODIFIED, FILE_REGULAR, 04755, FILE_REGULAR, 04755), CHANGE_FLAG_SETID);
	assert_int_equal(flags_with(CHANGE_ADDED, FILE_NONE, 0, FILE_FOLDER, 02775), 0);
	assert_int_equal(flags_with(CHANGE_ADDED, FILE_NONE, 0, FILE_FOLDER, 04755), CHANGE_FLAG_SETID);
	assert_int_equal(flags_with(CHANGE_ADDED, FILE_NONE, 0, FILE_LINK, 0777), CHANGE_FLAG_ESCAPING_LINK);
	assert_int_equal(flags_with(CHANGE_TYPE, FILE_FOLDER, 0755, FILE_LINK, 0777), CHANGE_FLAG_ESCAPING_LINK);
	assert_int_equal(flags_with(CHANGE_ADDED, FILE_NONE, 0, FILE_FIFO, 0644), CHANGE_FLAG_SPECIAL);
	assert_int_equal(flags_with(CHANGE_ADDED, FILE_NONE, 0, FILE_SOCKET, 0644), CHANGE_FLAG_SPECIAL);
	assert_int_equal(flags_with(CHANGE_ADDED, FILE_NONE, 0, FILE_DEVICE, 0644), CHANGE_FLAG_SPECIAL);
	assert_int_equal(flags_with(CHANGE_DELETED, FILE_REGULAR, 04755, FILE_NONE, 0), 0);
}

static void test_deletions_and_renames_of_guards(void **state)
{
	char hook[] = ".git/hooks/pre-commit", plain[] = "x";
	struct change gone = { .path = hook, .kind = CHANGE_DELETED, .before = FILE_REGULAR, .after = FILE_NONE };
	assert_int_equal(change_flags(&gone, NULL), CHANGE_FLAG_GIT_HOOK);
	struct change moved = {
		.path = plain, .from = hook, .kind = CHANGE_RENAMED, .before = FILE_REGULAR, .after = FILE_REGULAR
	};
	assert_int_equal(change_flags(&moved, NULL), CHANGE_FLAG_GIT_HOOK);
	struct change back = {
		.path = hook, .from = plain, .kind = CHANGE_RENAMED, .before = FILE_REGULAR, .after = FILE_REGULAR
	};
	assert_int_equal(change_flags(&back, NULL), CHANGE_FLAG_GIT_HOOK);
}

static void test_configuration_names_more_hooks(void **state)
{
	static const char config[] =
		"[core]\n\thooksPath = \"tools/hk\" # ours\n[CORE] HooksPath=../outside\n[include]\n path = ../shared.cfg\n"
		"[includeIf \"gitdir:/\"]\npath = more.cfg\n[core]\n hookspath = /abs\n";
	struct facts f = { 0 };
	facts_read_config(&f, config, sizeof(config) - 1, "sub", "sub/.git");
	assert_int_equal(f.n_hook_dirs, 2);
	assert_string_equal(f.hook_dirs[0], "sub/tools/hk");
	assert_string_equal(f.hook_dirs[1], "outside");
	assert_int_equal(f.n_config_files, 2);
	assert_int_equal(flags_of_path("sub/tools/hk/pre-push", false, &f), CHANGE_FLAG_GIT_HOOK);
	assert_int_equal(flags_of_path("sub/tools/hk2/x", false, &f), 0);
	assert_int_equal(flags_of_path("sub/shared.cfg", false, &f), CHANGE_FLAG_GIT_CONFIG);
	assert_int_equal(flags_of_path("sub/.git/more.cfg", false, &f) & CHANGE_FLAG_GIT_CONFIG, CHANGE_FLAG_GIT_CONFIG);
	facts_done(&f);
}

static void test_more_than_is_kept_is_held(void **state)
{
	struct facts f = { 0 };
	char line[64];
	for (unsigned i = 0; i < 5000; i++)
		facts_read_config(&f, line, (size_t)snprintf(line, sizeof(line), "[core] hooksPath = x%u\n", i), "", ".git");
	static const char last[] = "[core] hooksPath = last\n";
	facts_read_config(&f, last, sizeof(last) - 1, "", ".git");
	assert_true(f.too_many);
	assert_int_equal(flags_of_path("last/pre-push", false, &f) & CHANGE_FLAG_GIT_HOOK, CHANGE_FLAG_GIT_HOOK);
	facts_done(&f);
	assert_false(f.too_many);
}

/* The box writes the rest of the configuration; files of the host are not read for it. */
static void test_only_the_original_is_followed(void **state)
{
	static const char config[] = "[core] hooksPath = /srv/tree/hk\n[include] path = /srv/tree/more\n[core] attributesFile = ~/a\n";
	struct facts f = { .source = "/srv/tree" };
	facts_read_config(&f, config, sizeof(config) - 1, "", ".git");
	assert_int_equal(f.n_hook_dirs + f.n_config_files, 0);
	f.following = true;
	facts_read_config(&f, config, sizeof(config) - 1, "", ".git");
	assert_int_equal(f.n_hook_dirs, 1);
	assert_string_equal(f.hook_dirs[0], "hk");
	assert_int_equal(f.n_config_files, 1);
	assert_string_equal(f.config_files[0], "more");
	facts_done(&f);
}

/* Every folder pattern of the table is found through its index, at any depth. */
static void test_every_pattern_for_folders_counts(void **state)
{
	for (size_t i = 0; i < n_flag_rules; i++)
		for (const char *const *p = flag_rules[i].patterns; *p; p++) {
			char path[200];
			if ((*p)[strlen(*p) - 1] != '/')
				continue;
			assert_null(strpbrk(*p, "*?["));
			snprintf(path, sizeof(path), "a/b/%sc/d", *p);
			if (!(flags_of_path(path, false, NULL) & flag_rules[i].flag))
				fail_msg("%s", path);
			snprintf(path, sizeof(path), "a/%s", *p);
			path[strlen(path) - 1] = '\0';
			if (!(flags_of_path(path, false, NULL) & flag_rules[i].flag))
				fail_msg("%s", path);
		}
}

static void test_bare_repositories(void **state)
{
	char dir[] = "srv/repo";
	char *dirs[] = { dir };
	struct facts f = { .git_dirs = dirs, .n_git_dirs = 1 };
	assert_int_equal(flags_of_path("srv/repo/hooks/update", false, &f), CHANGE_FLAG_GIT_HOOK);
	assert_int_equal(flags_of_path("srv/repo/config", false, &f), CHANGE_FLAG_GIT_CONFIG);
	assert_int_equal(flags_of_path("srv/repo/objects/aa/bb", false, &f), 0);
	assert_int_equal(flags_of_path("srv/other/hooks/update", false, &f), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_paths),
		cmocka_unit_test(test_folders_themselves_are_ordinary),
		cmocka_unit_test(test_deep_paths_hide_nothing),
		cmocka_unit_test(test_long_names),
		cmocka_unit_test(test_links),
		cmocka_unit_test(test_modes_and_kinds),
		cmocka_unit_test(test_deletions_and_renames_of_guards),
		cmocka_unit_test(test_configuration_names_more_hooks),
		cmocka_unit_test(test_more_than_is_kept_is_held),
		cmocka_unit_test(test_only_the_original_is_followed),
		cmocka_unit_test(test_every_pattern_for_folders_counts),
		cmocka_unit_test(test_bare_repositories),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
