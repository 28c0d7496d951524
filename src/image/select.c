/* SPDX-License-Identifier: Apache-2.0 */
#include "image/apply.h"

#include <string.h>

#include "base/mem.h"
#include "image/list.h"

bool change_makes_folder(const struct change *one)
{
	return one->after == FILE_FOLDER && (one->kind == CHANGE_ADDED || one->kind == CHANGE_TYPE);
}

bool change_removes_folder(const struct change *one)
{
	return one->before == FILE_FOLDER && (one->kind == CHANGE_DELETED || one->kind == CHANGE_TYPE);
}

void apply_each_ancestor(const struct apply *a, const char *path, void (*fn)(void *ctx, size_t item), void *ctx)
{
	cleanup_free char *folder = mem_strdup(path);
	for (char *slash = strchr(folder, '/'); slash; slash = strchr(slash + 1, '/')) {
		*slash = '\0';
		ssize_t item = changes_find(a->c, folder);
		*slash = '/';
		if (item >= 0)
			fn(ctx, (size_t)item);
	}
}

static bool named_exactly(const struct change *one, char *const *paths)
{
	for (; *paths; paths++)
		if (str_eq(one->path, *paths) || (one->from && str_eq(one->from, *paths)))
			return true;
	return false;
}

static enum item_state first_state(const struct change *one, char *const *paths)
{
	if (!change_selected(one, paths))
		return ITEM_UNASKED;
	if (one->flags & CHANGE_FLAG_SPECIAL)
		return ITEM_HELD;
	bool held = (one->flags & CHANGE_FLAGS_HELD) && !(paths && named_exactly(one, paths));
	return held ? ITEM_HELD : ITEM_TODO;
}

static int check_names(const struct changes *c, char *const *paths, struct err *err)
{
	for (; paths && *paths; paths++) {
		char *const single[] = { *paths, NULL };
		bool found = false;
		for (size_t i = 0; i < c->n && !found; i++)
			found = change_selected(&c->items[i], single);
		cleanup_free char *quoted = change_path_quote("", *paths);
		if (!found)
			return err_set(err, ERR_NOT_FOUND,
				"nothing changed at or below %s; `bulkhead diff --name-only` lists the paths", quoted);
	}
	return 0;
}

/* A folder that something chosen below needs is taken along; unless it is held: then what is below it is held too. */
struct need { struct apply *a; size_t item; };

static void need_ancestor(void *ctx, size_t ancestor)
{
	struct need *n = ctx;
	struct apply *a = n->a;
	const struct change *one = &a->c->items[ancestor];
	if (!change_makes_folder(one))
		return;
	if (a->state[ancestor] == ITEM_HELD || (one->flags & CHANGE_FLAGS_HELD && a->state[ancestor] == ITEM_UNASKED)) {
		a->state[n->item] = ITEM_HELD;
		a->held_flags[n->item] |= one->flags | a->held_flags[ancestor];
	} else if (a->state[n->item] == ITEM_TODO) {
		a->state[ancestor] = ITEM_TODO;
	}
}

/* Something held lies below a folder that was to go: the folder stays. */
static void hold_ancestor(void *ctx, size_t ancestor)
{
	struct need *n = ctx;
	struct apply *a = n->a;
	if (!change_removes_folder(&a->c->items[ancestor]) || a->state[ancestor] != ITEM_TODO)
		return;
	a->state[ancestor] = ITEM_HELD;
	a->held_flags[ancestor] |= a->c->items[n->item].flags | a->held_flags[n->item];
}

int apply_select(struct apply *a, char *const *paths, struct err *err)
{
	if (check_names(a->c, paths, err) < 0)
		return -1;
	for (size_t i = 0; i < a->c->n; i++)
		a->state[i] = first_state(&a->c->items[i], paths);
	for (size_t i = 0; i < a->c->n; i++) {
		struct need n = { a, i };
		if (a->state[i] == ITEM_TODO && a->c->items[i].kind != CHANGE_DELETED)
			apply_each_ancestor(a, a->c->items[i].path, need_ancestor, &n);
	}
	for (size_t i = 0; i < a->c->n; i++) {
		const struct change *one = &a->c->items[i];
		struct need n = { a, i };
		if (a->state[i] != ITEM_TODO && (one->kind == CHANGE_DELETED || one->from))
			apply_each_ancestor(a, one->from ? one->from : one->path, hold_ancestor, &n);
	}
	return 0;
}
