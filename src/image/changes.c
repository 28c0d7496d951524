/* SPDX-License-Identifier: Apache-2.0 */
#include "image/changes.h"

#include <string.h>

#include "base/mem.h"
#include "image/list.h"

const char *change_kind_name(enum change_kind kind)
{
	static const char *const names[CHANGE_KIND_MAX] = { "added", "modified", "deleted", "mode", "type", "renamed" };
	return (unsigned)kind < CHANGE_KIND_MAX ? names[kind] : "unknown";
}

const char *file_kind_name(enum file_kind kind)
{
	static const char *const names[FILE_KIND_MAX] = { "file", "folder", "link", "fifo", "socket", "device", "none" };
	return (unsigned)kind < FILE_KIND_MAX ? names[kind] : "unknown";
}

static const struct {
	enum change_flag flag;
	const char *name, *reason;
} flag_table[] = {
	{ CHANGE_FLAG_GIT_HOOK, "git-hook", "git or a hook manager runs it" },
	{ CHANGE_FLAG_GIT_CONFIG, "git-config", "version control obeys it, and it can name programs to run" },
	{ CHANGE_FLAG_SHELL_RC, "shell-rc", "a shell or an interpreter runs it when it starts" },
	{ CHANGE_FLAG_CI, "ci", "continuous integration runs it" },
	{ CHANGE_FLAG_EDITOR, "editor", "an editor obeys it, and it can name programs to run" },
	{ CHANGE_FLAG_BUILD, "build", "build tools run it" },
	{ CHANGE_FLAG_SETID, "set-id", "it runs with its owner's or group's rights" },
	{ CHANGE_FLAG_ESCAPING_LINK, "escaping-link", "the link points out of the folder" },
	{ CHANGE_FLAG_SPECIAL, "special", "devices, pipes, sockets and files beyond 4 TiB are never applied" },
	{ CHANGE_FLAG_AGENT_CONFIG, "agent-config", "other agents obey it" },
	{ CHANGE_FLAG_EXECUTABLE, "executable", "it became executable" },
	{ CHANGE_FLAG_ORIGINAL_CHANGED, "original-changed", "the original changed since the run began" },
};

const char *change_flag_name(enum change_flag one)
{
	for (size_t i = 0; i < ARRAY_LEN(flag_table); i++)
		if (flag_table[i].flag == one)
			return flag_table[i].name;
	return "unknown";
}

const char *change_flag_reason(enum change_flag one)
{
	for (size_t i = 0; i < ARRAY_LEN(flag_table); i++)
		if (flag_table[i].flag == one)
			return flag_table[i].reason;
	return "unknown";
}

void change_done(struct change *one)
{
	mem_free(one->path);
	mem_free(one->from);
	mem_free(one->link_after);
	*one = (struct change){ 0 };
}

void changes_done(struct changes *c)
{
	for (size_t i = 0; i < c->n; i++)
		change_done(&c->items[i]);
	mem_free(c->items);
	mem_free(c->source);
	*c = (struct changes){ 0 };
}

struct change *changes_append(struct changes *c, size_t *cap)
{
	if (c->n == *cap) {
		*cap = *cap ? *cap * 2 : 64;
		c->items = mem_grow_array(c->items, *cap, sizeof(*c->items));
	}
	struct change *one = &c->items[c->n++];
	*one = (struct change){ 0 };
	return one;
}

void changes_append_copy(struct changes *c, size_t *cap, const struct change *from)
{
	struct change *one = changes_append(c, cap);
	*one = *from;
	one->path = mem_strdup(from->path);
	one->from = mem_strdup(from->from);
	one->link_after = mem_strdup(from->link_after);
}

ssize_t changes_find(const struct changes *c, const char *path)
{
	size_t lo = 0, hi = c->n;
	while (lo < hi) {
		size_t mid = lo + (hi - lo) / 2;
		int order = strcmp(c->items[mid].path, path);
		if (order == 0)
			return (ssize_t)mid;
		if (order < 0)
			lo = mid + 1;
		else
			hi = mid;
	}
	return -1;
}

bool path_is_below(const char *path, const char *folder)
{
	size_t n = strlen(folder);
	return n == 0 || (strncmp(path, folder, n) == 0 && path[n] == '/');
}

static bool path_selected(const char *path, char *const *paths)
{
	for (; *paths; paths++)
		if (str_eq(path, *paths) || path_is_below(path, *paths))
			return true;
	return false;
}

bool change_selected(const struct change *one, char *const *paths)
{
	return !paths || path_selected(one->path, paths) || (one->from && path_selected(one->from, paths));
}

bool change_has_content(const struct change *one)
{
	return one->after == FILE_REGULAR && one->kind != CHANGE_DELETED && one->kind != CHANGE_MODE;
}

bool change_is_stored(const struct change *one)
{
	return change_has_content(one) && !(one->flags & CHANGE_FLAG_SPECIAL);
}

void apply_result_done(struct apply_result *r)
{
	changes_done(&r->done);
	changes_done(&r->held);
	changes_done(&r->conflicts);
	*r = (struct apply_result){ 0 };
}
