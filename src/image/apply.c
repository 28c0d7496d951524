/* SPDX-License-Identifier: Apache-2.0 */
#include "image/apply.h"

#include <stdio.h>
#include <string.h>

#include "base/buf.h"
#include "base/mem.h"
#include "image/list.h"

#define NAMED_MAX 5u /* conflicts named in the sentence; all are in the result */

static size_t count_state(const struct apply *a, enum item_state state)
{
	size_t n = 0;
	for (size_t i = 0; i < a->c->n; i++)
		n += a->state[i] == state;
	return n;
}

static void list_state(const struct apply *a, enum item_state state, struct changes *out, size_t *cap)
{
	for (size_t i = 0; i < a->c->n; i++) {
		if (a->state[i] != state)
			continue;
		changes_append_copy(out, cap, &a->c->items[i]);
		out->items[out->n - 1].flags |= a->held_flags[i];
	}
}

static int refuse_conflicts(const struct changes *conflicts, struct err *err)
{
	struct buf names;
	buf_init(&names, 400);
	size_t shown = 0;
	for (; shown < conflicts->n && shown < NAMED_MAX; shown++) {
		cleanup_free char *quoted = change_path_quote("", conflicts->items[shown].path);
		if (buf_printf(&names, "%s%s", shown ? ", " : "", quoted) < 0)
			break;
	}
	if (shown < conflicts->n)
		buf_printf(&names, "%s%zu more", shown ? " and " : "", conflicts->n - shown);
	err_set(err, ERR_CONFLICT,
		"the original changed meanwhile: %.*s; nothing was applied: name the other paths to apply them alone, or put "
		"the original back",
		(int)names.len, names.data ? (const char *)names.data : "");
	buf_free(&names);
	return -1;
}

static int run(struct apply *a, char *const *paths, bool dry_run, struct apply_result *ret, struct err *err)
{
	size_t cap = 0, held_cap = 0, done_cap = 0;
	if (apply_select(a, paths, err) < 0 || apply_check(a, err) < 0)
		return -1;
	list_state(a, ITEM_HELD, &ret->held, &held_cap);
	list_state(a, ITEM_CONFLICT, &ret->conflicts, &cap);
	if (ret->conflicts.n > 0)
		return refuse_conflicts(&ret->conflicts, err);
	list_state(a, ITEM_TODO, &ret->done, &done_cap);
	ret->already = count_state(a, ITEM_ALREADY);
	ret->applied = ret->done.n + ret->already;
	return dry_run ? 0 : apply_write(a, err);
}

int changes_apply(const struct changes *c, int dirfd, const char *name, int original_fd, char *const *paths, bool dry_run,
	struct apply_result *ret, struct err *err)
{
	struct apply a = { .c = c, .dirfd = dirfd, .name = name, .original = original_fd };
	a.state = mem_alloc_array(c->n + 1, sizeof(*a.state));
	a.held_flags = mem_alloc_array(c->n + 1, sizeof(*a.held_flags));
	*ret = (struct apply_result){ 0 };
	int r = run(&a, paths, dry_run, ret, err);
	mem_free(a.state);
	mem_free(a.held_flags);
	mem_free(a.gone);
	return r;
}
