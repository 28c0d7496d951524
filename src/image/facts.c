/* SPDX-License-Identifier: Apache-2.0 */
#include "image/facts.h"

#include <ctype.h>
#include <fcntl.h>
#include <strings.h>
#include <sys/stat.h>

#include "base/fd.h"
#include "base/mem.h"
#include "image/tree.h"

#define CONFIG_MAX (256u * 1024u)
#define FACTS_MAX 4096u /* of each sort; repositories beyond that still have their .git flagged by name */

static void add(char ***list, size_t *n, char *item)
{
	if (!item)
		return;
	for (size_t i = 0; i < *n; i++)
		if (str_eq((*list)[i], item)) {
			mem_free(item);
			return;
		}
	if (*n == FACTS_MAX) {
		mem_free(item);
		return;
	}
	*list = mem_grow_array(*list, *n + 1, sizeof(**list));
	(*list)[(*n)++] = item;
}

static void pop_component(char *path)
{
	char *slash = strrchr(path, '/');
	*(slash ? slash : path) = '\0';
}

char *facts_resolve(const char *base, const char *relative)
{
	if (*relative == '/' || *relative == '~')
		return NULL;
	char *out = mem_alloc(strlen(base) + strlen(relative) + 2);
	strcpy(out, base);
	while (*relative) {
		size_t n = strcspn(relative, "/");
		if (n == 2 && memcmp(relative, "..", 2) == 0) {
			if (!*out)
				return mem_free(out);
			pop_component(out);
		} else if (n > 0 && !(n == 1 && *relative == '.')) {
			size_t len = strlen(out);
			if (len > 0)
				out[len++] = '/';
			memcpy(out + len, relative, n);
			out[len + n] = '\0';
		}
		relative += n + (relative[n] == '/');
	}
	return out;
}

/* The value after "=": quotes taken off, a comment cut. Good enough to find paths: a hostile spelling is in a changed
 * .git/config, which is flagged itself. */
static char *config_value(const char *p, size_t len)
{
	char *out = mem_alloc(len + 1);
	size_t n = 0;
	bool quoted = false;
	for (size_t i = 0; i < len; i++) {
		if (p[i] == '"')
			quoted = !quoted;
		else if ((p[i] == '#' || p[i] == ';') && !quoted)
			break;
		else if (p[i] == '\\' && i + 1 < len)
			out[n++] = p[++i];
		else if (p[i] != '\0')
			out[n++] = p[i];
	}
	while (n > 0 && isspace((unsigned char)out[n - 1]))
		n--;
	out[n] = '\0';
	return out;
}

static bool key_is(const char *line, size_t len, const char *key)
{
	size_t n = strlen(key);
	return len == n && strncasecmp(line, key, n) == 0;
}

static void read_setting(struct facts *f, const char *section, const char *key, size_t key_len, const char *value,
	const char *work_tree, const char *git_dir)
{
	if (strncasecmp(section, "core]", 5) == 0 && key_is(key, key_len, "hooksPath"))
		add(&f->hook_dirs, &f->n_hook_dirs, facts_resolve(work_tree, value));
	else if (strncasecmp(section, "core]", 5) == 0 && key_is(key, key_len, "attributesFile"))
		add(&f->config_files, &f->n_config_files, facts_resolve(work_tree, value));
	else if (strncasecmp(section, "include", 7) == 0 && key_is(key, key_len, "path"))
		add(&f->config_files, &f->n_config_files, facts_resolve(git_dir, value));
}

static void read_line(
	struct facts *f, char section[64], const char *line, size_t len, const char *work_tree, const char *git_dir)
{
	while (len > 0 && isspace((unsigned char)*line))
		line++, len--;
	if (len > 0 && *line == '[') {
		size_t n = len - 1 < 63 ? len - 1 : 63;
		memcpy(section, line + 1, n);
		section[n] = '\0';
		/* "[core] hooksPath = x" on one line is valid. */
		const char *end = memchr(line, ']', len);
		if (end)
			read_line(f, section, end + 1, len - (size_t)(end + 1 - line), work_tree, git_dir);
		return;
	}
	const char *eq = memchr(line, '=', len);
	if (!eq)
		return;
	size_t key_len = (size_t)(eq - line);
	while (key_len > 0 && isspace((unsigned char)line[key_len - 1]))
		key_len--;
	const char *p = eq + 1, *end = line + len;
	while (p < end && isspace((unsigned char)*p))
		p++;
	cleanup_free char *value = config_value(p, (size_t)(end - p));
	if (*value)
		read_setting(f, section, line, key_len, value, work_tree, git_dir);
}

void facts_read_config(struct facts *f, const char *text, size_t len, const char *work_tree, const char *git_dir)
{
	char section[64] = "";
	while (len > 0) {
		const char *end = memchr(text, '\n', len);
		size_t n = end ? (size_t)(end - text) : len;
		read_line(f, section, text, n, work_tree, git_dir);
		n += end ? 1 : 0;
		text += n;
		len -= n;
	}
}

static bool has(int upper, int lower, const char *name)
{
	struct stat st;
	return (upper >= 0 && fstatat(upper, name, &st, AT_SYMLINK_NOFOLLOW) == 0 && !tree_is_whiteout(&st)) ||
	       (lower >= 0 && fstatat(lower, name, &st, AT_SYMLINK_NOFOLLOW) == 0);
}

static void read_config_at(struct facts *f, int dir, const char *name, const char *work_tree, const char *git_dir)
{
	char *text;
	size_t len;
	cleanup_fd int fd = dir < 0 ? -1 : tree_open_entry(dir, name, FILE_REGULAR, false);
	if (fd < 0)
		return;
	char self[64];
	snprintf(self, sizeof(self), "/proc/self/fd/%d", fd);
	if (fd_read_file_at(AT_FDCWD, self, CONFIG_MAX, &text, &len, NULL) < 0)
		return;
	facts_read_config(f, text, len, work_tree, git_dir);
	mem_free(text);
}

static void read_hooks_link(struct facts *f, int dir, const char *git_dir)
{
	cleanup_free char *target = dir < 0 ? NULL : tree_read_link(dir, "hooks");
	if (target)
		add(&f->hook_dirs, &f->n_hook_dirs, facts_resolve(git_dir, target));
}

/* A folder with configuration of its own: `dir` is one side of it. */
static void read_git_dir(struct facts *f, int dir, const char *work_tree, const char *git_dir)
{
	read_config_at(f, dir, "config", work_tree, git_dir);
	read_config_at(f, dir, "config.worktree", work_tree, git_dir);
	read_hooks_link(f, dir, git_dir);
}

static void visit_repository(struct facts *f, const char *path, int side)
{
	cleanup_fd int git = side < 0 ? -1 : tree_open_entry(side, ".git", FILE_FOLDER, false);
	if (git < 0)
		return;
	cleanup_free char *git_dir = *path ? path_join(path, ".git") : mem_strdup(".git");
	read_git_dir(f, git, path, git_dir);
}

void facts_visit(struct facts *f, const char *path, int upper, int lower)
{
	/* The original first: what is configured now decides what runs now. */
	visit_repository(f, path, lower);
	visit_repository(f, path, upper);
	bool shaped = has(upper, lower, "HEAD") &&
		      ((has(upper, lower, "objects") && has(upper, lower, "refs")) || has(upper, lower, "commondir"));
	if (!shaped)
		return;
	add(&f->git_dirs, &f->n_git_dirs, mem_strdup(path));
	read_git_dir(f, lower, path, path);
	read_git_dir(f, upper, path, path);
}

static void list_done(char **list, size_t n)
{
	for (size_t i = 0; i < n; i++)
		mem_free(list[i]);
	mem_free(list);
}

void facts_done(struct facts *f)
{
	list_done(f->git_dirs, f->n_git_dirs);
	list_done(f->hook_dirs, f->n_hook_dirs);
	list_done(f->config_files, f->n_config_files);
	*f = (struct facts){ 0 };
}
