/* SPDX-License-Identifier: Apache-2.0 */
#include "image/flags.h"

#include <ctype.h>
#include <fnmatch.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/mem.h"
#include "image/flag-rules.h"
#include "image/list.h"

#define FILE_SIZE_MAX (4ull << 40)

/* Bytes of a code point that HFS+ leaves out when comparing names, at p; 0 when it is none. */
static size_t ignorable(const unsigned char *p, size_t left)
{
	if (left < 3)
		return 0;
	unsigned code = p[0] == 0xe2 && p[1] == 0x80 ? 0x2000u + (p[2] & 0x3f) :
			p[0] == 0xe2 && p[1] == 0x81 ? 0x2040u + (p[2] & 0x3f) :
			p[0] == 0xef && p[1] == 0xbb && p[2] == 0xbf ? 0xfeffu : 0;
	bool hit = (code >= 0x200c && code <= 0x200f) || (code >= 0x202a && code <= 0x202e) ||
		   (code >= 0x206a && code <= 0x206f) || code == 0xfeff;
	return hit ? 3 : 0;
}

/* Letters beyond ASCII whose case folding is an ASCII letter: long s and the Kelvin sign. */
static size_t fold_special(const unsigned char *p, size_t left, char *ret)
{
	if (left >= 2 && p[0] == 0xc5 && p[1] == 0xbf) {
		*ret = 's';
		return 2;
	}
	if (left >= 3 && p[0] == 0xe2 && p[1] == 0x84 && p[2] == 0xaa) {
		*ret = 'k';
		return 3;
	}
	return 0;
}

void name_fold(const char *name, size_t len, char out[256])
{
	const unsigned char *p = (const unsigned char *)name;
	size_t n = 0;
	for (size_t i = 0; i < len && n < 255;) {
		size_t skip = ignorable(p + i, len - i);
		if (skip == 0 && (skip = fold_special(p + i, len - i, &out[n])) > 0)
			n++;
		else if (skip == 0)
			out[n++] = (char)tolower(p[i]), skip = 1;
		i += skip;
	}
	out[n] = '\0';
	/* NTFS: "name:stream" is the file itself, and trailing dots and spaces don't count. */
	char *colon = memchr(out + (n > 0), ':', n > 0 ? n - 1 : 0);
	if (colon) {
		*colon = '\0';
		n = (size_t)(colon - out);
	}
	while (n > 0 && (out[n - 1] == '.' || out[n - 1] == ' '))
		out[--n] = '\0';
	if (strncmp(out, "git~", 4) == 0 && isdigit((unsigned char)out[4]))
		strcpy(out, ".git");
}

/* A path's folded components, all of them: a deep path must not carry a .git out of sight. */
struct components {
	char **names; /* into storage */
	char *storage;
	size_t n;
	size_t run_later_end; /* behind the last one whose files a git folder runs later; 0: none */
};

static bool component_is_one_of(const char *name, const char *const *list)
{
	for (; *list; list++)
		if (str_eq(name, *list))
			return true;
	return false;
}

static void components_done(struct components *c)
{
	mem_free(c->names);
	mem_free(c->storage);
}
#define cleanup_components __attribute__((cleanup(components_done)))

static void split(const char *path, struct components *out)
{
	static const char *const run_later[] = { "hooks", "rebase-merge", "rebase-apply", "sequencer", NULL };
	size_t len = strlen(path), count = len > 0;
	for (const char *p = path; *p; p++)
		count += *p == '/';
	out->names = mem_alloc_array(count + 1, sizeof(*out->names));
	/* Folding shortens, but for "git~1", which becomes no longer than it was. */
	out->storage = mem_alloc(len + 2);
	out->n = 0;
	char *at = out->storage, folded[256];
	for (const char *p = path; *p;) {
		size_t n = strcspn(p, "/");
		name_fold(p, n, folded);
		out->names[out->n++] = at;
		at = stpcpy(at, folded) + 1;
		if (component_is_one_of(folded, run_later))
			out->run_later_end = out->n;
		p += n + (p[n] == '/');
	}
}

/* The pattern's components match those from `at` on. */
static bool pattern_at(const struct components *c, size_t at, const char *pattern)
{
	char part[64];
	if (*pattern != '*' && *pattern != c->names[at][0])
		return false; /* most of them: fnmatch(3) is slow */
	for (size_t i = at; *pattern; i++) {
		size_t n = strcspn(pattern, "/");
		memcpy(part, pattern, n);
		part[n] = '\0';
		if (i >= c->n || fnmatch(part, c->names[i], 0) != 0)
			return false;
		pattern += n + (pattern[n] == '/');
	}
	return true;
}

static size_t count_slashes(const char *s)
{
	size_t n = 0;
	for (; *s; s++)
		n += *s == '/';
	return n;
}

/* A pattern for files can only match at the end. */
static bool file_pattern_matches(const struct components *c, bool is_folder, const char *pattern)
{
	size_t n = count_slashes(pattern) + 1;
	return !is_folder && n <= c->n && pattern_at(c, c->n - n, pattern);
}

static bool is_folder_pattern(const char *pattern)
{
	return pattern[strlen(pattern) - 1] == '/';
}

static bool folder_pattern_matches(const struct components *c, size_t at, bool is_folder, const char *pattern)
{
	size_t end = at + count_slashes(pattern);
	return (end < c->n || (end == c->n && !is_folder)) && pattern_at(c, at, pattern);
}

/*
 * The patterns for folders, which can match anywhere, by their first component: a box can make paths of thousands of components,
 * and thousands of such paths. Sorted once.
 */
struct folder_pattern { const char *pattern; unsigned flag; };

static struct {
	struct folder_pattern *items;
	size_t n;
} folder_patterns;

/* As strcmp of the first components, the second one being `len` bytes long. */
static int compare_first(const char *pattern, const char *name, size_t len)
{
	size_t n = strcspn(pattern, "/");
	int r = memcmp(pattern, name, n < len ? n : len);
	return r ? r : (n > len) - (n < len);
}

static int compare_folder_patterns(const void *x, const void *y)
{
	const struct folder_pattern *a = x, *b = y;
	return compare_first(a->pattern, b->pattern, strcspn(b->pattern, "/"));
}

static void index_folder_patterns(void)
{
	size_t n = 0;
	for (size_t i = 0; i < n_flag_rules; i++)
		for (const char *const *p = flag_rules[i].patterns; *p; p++)
			n += is_folder_pattern(*p);
	folder_patterns.items = mem_alloc_array(n, sizeof(*folder_patterns.items));
	for (size_t i = 0; i < n_flag_rules; i++)
		for (const char *const *p = flag_rules[i].patterns; *p; p++)
			if (is_folder_pattern(*p))
				folder_patterns.items[folder_patterns.n++] =
					(struct folder_pattern){ *p, (unsigned)flag_rules[i].flag };
	qsort(folder_patterns.items, n, sizeof(*folder_patterns.items), compare_folder_patterns);
}

/* The first pattern that begins with this component, or the number of all. */
static size_t first_folder_pattern(const char *name, size_t len)
{
	size_t low = 0, high = folder_patterns.n;
	while (low < high) {
		size_t middle = low + (high - low) / 2;
		if (compare_first(folder_patterns.items[middle].pattern, name, len) < 0)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

static unsigned flags_of_folders(const struct components *c, bool is_folder)
{
	unsigned flags = 0;
	if (!folder_patterns.items)
		index_folder_patterns();
	for (size_t at = 0; at < c->n; at++) {
		size_t len = strlen(c->names[at]);
		for (size_t i = first_folder_pattern(c->names[at], len); i < folder_patterns.n; i++) {
			const struct folder_pattern *p = &folder_patterns.items[i];
			if (compare_first(p->pattern, c->names[at], len) != 0)
				break;
			if (!(flags & p->flag) && folder_pattern_matches(c, at, is_folder, p->pattern))
				flags |= p->flag;
		}
	}
	return flags;
}

static bool any_file_pattern(const struct components *c, bool is_folder, const char *const *patterns)
{
	for (; *patterns; patterns++)
		if (!is_folder_pattern(*patterns) && file_pattern_matches(c, is_folder, *patterns))
			return true;
	return false;
}

/* Components from `at` on lie inside a git folder. */
static unsigned flags_in_git_dir(const struct components *c, size_t at, bool is_folder)
{
	static const char *const ordinary[] = { "objects", "refs", "logs", "index", "lfs", NULL };
	static const char *const config[] = { "commondir", "gitdir", "remotes", "branches", NULL };
	if (at >= c->n || is_folder)
		return 0;
	const char *first = c->names[at], *last = c->names[c->n - 1];
	if (component_is_one_of(first, ordinary))
		return 0;
	/* Submodules' and worktrees' own git folders lie below, at any depth: every component counts. */
	if (c->run_later_end > at)
		return CHANGE_FLAG_GIT_HOOK;
	bool info = c->n >= at + 2 && str_eq(c->names[c->n - 2], "info") && str_eq(last, "attributes");
	if (info || strncmp(last, "config", 6) == 0 || component_is_one_of(last, config) || component_is_one_of(first, config))
		return CHANGE_FLAG_GIT_CONFIG;
	return 0;
}

static unsigned flags_of_dot_git(const struct components *c, bool is_folder)
{
	unsigned flags = 0;
	for (size_t i = 0; i < c->n; i++) {
		if (!str_eq(c->names[i], ".git"))
			continue;
		/* A file or link in place of the folder says where the repository is: elsewhere, then. */
		flags |= i + 1 == c->n ? (is_folder ? 0u : (unsigned)CHANGE_FLAG_GIT_CONFIG)
				       : flags_in_git_dir(c, i + 1, is_folder);
	}
	return flags;
}

static bool in_list(const char *path, char *const *list, size_t n, bool below)
{
	for (size_t i = 0; i < n; i++)
		if (str_eq(path, list[i]) || (below && path_is_below(path, list[i])))
			return true;
	return false;
}

static unsigned flags_of_facts(const char *path, const struct components *c, bool is_folder, const struct facts *facts)
{
	unsigned flags = 0;
	if (is_folder || !facts)
		return 0;
	if (facts->too_many)
		return CHANGE_FLAG_GIT_HOOK;
	for (size_t i = 0; i < facts->n_git_dirs; i++) {
		const char *dir = facts->git_dirs[i];
		if (path_is_below(path, dir))
			flags |= flags_in_git_dir(c, *dir ? count_slashes(dir) + 1 : 0, is_folder);
	}
	if (in_list(path, facts->hook_dirs, facts->n_hook_dirs, true))
		flags |= CHANGE_FLAG_GIT_HOOK;
	if (in_list(path, facts->config_files, facts->n_config_files, false))
		flags |= CHANGE_FLAG_GIT_CONFIG;
	return flags;
}

unsigned flags_of_path(const char *path, bool is_folder, const struct facts *facts)
{
	cleanup_components struct components c = { 0 };
	split(path, &c);
	unsigned flags = flags_of_dot_git(&c, is_folder) | flags_of_facts(path, &c, is_folder, facts);
	flags |= flags_of_folders(&c, is_folder);
	for (size_t i = 0; i < n_flag_rules; i++)
		if (!(flags & flag_rules[i].flag) && any_file_pattern(&c, is_folder, flag_rules[i].patterns))
			flags |= flag_rules[i].flag;
	return flags;
}

bool link_escapes(const char *link_path, const char *target)
{
	size_t depth = 0;
	bool descended = false;
	if (*target == '/')
		return true;
	for (const char *p = link_path; *p; p++)
		depth += *p == '/';
	for (const char *p = target; *p;) {
		size_t n = strcspn(p, "/");
		bool up = n == 2 && memcmp(p, "..", 2) == 0;
		if (up && (descended || depth == 0))
			return true;
		if (up)
			depth--;
		else if (n > 0 && !(n == 1 && *p == '.'))
			descended = true;
		p += n + (p[n] == '/');
	}
	return false;
}

static bool is_executable(enum file_kind kind, mode_t mode)
{
	return kind == FILE_REGULAR && (mode & 0111) != 0;
}

/* Set-gid on a folder only hands its group down; every folder made below one has it. */
static bool is_setid(enum file_kind kind, mode_t mode)
{
	return kind == FILE_FOLDER ? (mode & S_ISUID) != 0 : kind == FILE_REGULAR && (mode & (S_ISUID | S_ISGID)) != 0;
}

static unsigned flags_of_after(const struct change *one)
{
	unsigned flags = 0;
	if (one->kind == CHANGE_DELETED)
		return 0;
	if (is_executable(one->after, one->mode_after) && !is_executable(one->before, one->mode_before))
		flags |= CHANGE_FLAG_EXECUTABLE;
	if (is_setid(one->after, one->mode_after))
		flags |= CHANGE_FLAG_SETID;
	if (one->after == FILE_LINK && one->link_after && link_escapes(one->path, one->link_after))
		flags |= CHANGE_FLAG_ESCAPING_LINK;
	/* A hole of any size costs the box nothing, and ordinary file systems can't hold it. */
	if (one->after == FILE_REGULAR && one->size_after > FILE_SIZE_MAX)
		flags |= CHANGE_FLAG_SPECIAL;
	if (one->after == FILE_FIFO || one->after == FILE_SOCKET || one->after == FILE_DEVICE)
		flags |= CHANGE_FLAG_SPECIAL;
	return flags;
}

unsigned change_flags(const struct change *one, const struct facts *facts)
{
	bool is_folder = one->kind == CHANGE_DELETED ? one->before == FILE_FOLDER : one->after == FILE_FOLDER;
	unsigned flags = flags_of_after(one) | flags_of_path(one->path, is_folder, facts);
	/* A link that takes the place of the folder ".git" or ".husky" is judged as a link; a folder in place of a file as the
	 * file that went. */
	if (one->kind == CHANGE_TYPE && one->before != FILE_FOLDER)
		flags |= flags_of_path(one->path, false, facts);
	if (one->from)
		flags |= flags_of_path(one->from, false, facts);
	return flags;
}
