/* SPDX-License-Identifier: Apache-2.0 */
#include "image/facts.h"

#include <ctype.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>

#include "base/fd.h"
#include "base/mem.h"
#include "image/tree.h"

#define CONFIG_MAX (256u * 1024u)
#define FACTS_MAX 1024u /* of each sort; see too_many */
#define INCLUDES_MAX 10u /* as git has it */

static void add(struct facts *f, char ***list, size_t *n, char *item)
{
	if (!item)
		return;
	for (size_t i = 0; i < *n; i++)
		if (str_eq((*list)[i], item)) {
			mem_free(item);
			return;
		}
	if (*n == FACTS_MAX) {
		f->too_many = true;
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

/* The value as a path of the host, or NULL. */
static char *host_path(const struct facts *f, const char *base, const char *value)
{
	const char *home = getenv("HOME");
	if (*value == '/')
		return mem_strdup(value);
	if (*value == '~')
		return value[1] == '/' && home ? path_join(home, value + 2) : NULL;
	return *base == '/' ? path_join(base, value) : mem_printf("%s/%s/%s", f->source, base, value);
}

/* Below the root, or NULL. */
static char *below_root(const char *root, const char *path)
{
	size_t n = strlen(root);
	while (n > 0 && root[n - 1] == '/')
		n--;
	return strncmp(path, root, n) == 0 && path[n] == '/' ? facts_resolve("", path + n + strspn(path + n, "/")) : NULL;
}

/* Notes the place that the value names: by its text; and as the original's owner would find it, with links followed. */
static void add_place(struct facts *f, char ***list, size_t *n, const char *base, const char *value)
{
	char real[PATH_MAX], root[PATH_MAX];
	if (*base != '/')
		add(f, list, n, facts_resolve(base, value));
	if (!f->following || !f->source)
		return;
	cleanup_free char *path = host_path(f, base, value);
	if (!path)
		return;
	add(f, list, n, below_root(f->source, path));
	if (realpath(path, real) && realpath(f->source, root))
		add(f, list, n, below_root(root, real));
}

/* Only a regular file, and without waiting for anything. */
static void read_host_config(struct facts *f, const char *path, const char *work_tree, const char *git_dir)
{
	char *text;
	size_t len;
	struct stat st;
	cleanup_fd int fd = open(path, O_PATH | O_CLOEXEC);
	char self[64];
	snprintf(self, sizeof(self), "/proc/self/fd/%d", fd);
	if (fd < 0 || fstat(fd, &st) < 0 || !S_ISREG(st.st_mode) ||
		fd_read_file_at(AT_FDCWD, self, CONFIG_MAX, &text, &len, NULL) < 0)
		return;
	facts_read_config(f, text, len, work_tree, git_dir);
	mem_free(text);
}

static void read_included(struct facts *f, const char *value, const char *work_tree, const char *git_dir)
{
	char real[PATH_MAX];
	cleanup_free char *path = f->following && f->source && f->includes < INCLUDES_MAX ? host_path(f, git_dir, value) : NULL;
	if (!path || !realpath(path, real))
		return;
	cleanup_free char *folder = mem_strndup(real, (size_t)(strrchr(real, '/') - real) + 1);
	f->includes++;
	read_host_config(f, real, work_tree, folder);
	f->includes--;
}

static void read_setting(struct facts *f, const char *section, const char *key, size_t key_len, const char *value,
	const char *work_tree, const char *git_dir)
{
	if (strncasecmp(section, "core]", 5) == 0 && key_is(key, key_len, "hooksPath"))
		add_place(f, &f->hook_dirs, &f->n_hook_dirs, work_tree, value);
	else if (strncasecmp(section, "core]", 5) == 0 && key_is(key, key_len, "attributesFile"))
		add_place(f, &f->config_files, &f->n_config_files, work_tree, value);
	else if (strncasecmp(section, "include", 7) == 0 && key_is(key, key_len, "path")) {
		add_place(f, &f->config_files, &f->n_config_files, git_dir, value);
		read_included(f, value, work_tree, git_dir);
	}
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
		add_place(f, &f->hook_dirs, &f->n_hook_dirs, git_dir, target);
}

/* A folder with configuration of its own: `dir` is one side of it. */
static void read_git_dir(struct facts *f, int dir, const char *work_tree, const char *git_dir)
{
	read_config_at(f, dir, "config", work_tree, git_dir);
	read_config_at(f, dir, "config.worktree", work_tree, git_dir);
	read_hooks_link(f, dir, git_dir);
}

/* "gitdir: PATH" or "PATH" of a small file in `dir`, as a path of the host. Free with mem_free. NULL when it is none. */
static char *read_pointer(const struct facts *f, int dir, const char *name, const char *base)
{
	char *text;
	size_t len;
	cleanup_fd int fd = tree_open_entry(dir, name, FILE_REGULAR, false);
	char self[64];
	snprintf(self, sizeof(self), "/proc/self/fd/%d", fd);
	if (fd < 0 || fd_read_file_at(AT_FDCWD, self, PATH_MAX, &text, &len, NULL) < 0)
		return NULL;
	text[strcspn(text, "\r\n")] = '\0';
	const char *value = strncmp(text, "gitdir:", 7) == 0 ? text + 7 : text;
	char *path = *value ? host_path(f, base, value + strspn(value, " ")) : NULL;
	mem_free(text);
	return path;
}

/* A linked worktree or a submodule: its repository is elsewhere, and may well point back into the tree. */
static void visit_linked_repository(struct facts *f, const char *path, int side)
{
	if (!f->source)
		return;
	cleanup_free char *git_dir = read_pointer(f, side, ".git", path);
	cleanup_fd int git = git_dir ? open(git_dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC) : -1;
	if (git < 0)
		return;
	read_git_dir(f, git, path, git_dir);
	cleanup_free char *common_dir = read_pointer(f, git, "commondir", git_dir);
	cleanup_fd int common = common_dir ? open(common_dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC) : -1;
	if (common >= 0)
		read_git_dir(f, common, path, common_dir);
}

static void visit_repository(struct facts *f, const char *path, int side)
{
	cleanup_fd int git = side < 0 ? -1 : tree_open_entry(side, ".git", FILE_FOLDER, false);
	if (git < 0 && side >= 0 && f->following)
		visit_linked_repository(f, path, side);
	if (git < 0)
		return;
	cleanup_free char *git_dir = *path ? path_join(path, ".git") : mem_strdup(".git");
	read_git_dir(f, git, path, git_dir);
}

void facts_visit(struct facts *f, const char *path, int upper, int lower)
{
	/* The original first: what is configured now decides what runs now. */
	f->following = true;
	visit_repository(f, path, lower);
	f->following = false;
	visit_repository(f, path, upper);
	bool shaped = has(upper, lower, "HEAD") &&
		      ((has(upper, lower, "objects") && has(upper, lower, "refs")) || has(upper, lower, "commondir"));
	if (!shaped)
		return;
	add(f, &f->git_dirs, &f->n_git_dirs, mem_strdup(path));
	f->following = true;
	read_git_dir(f, lower, path, path);
	f->following = false;
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
	*f = (struct facts){ .source = f->source };
}
