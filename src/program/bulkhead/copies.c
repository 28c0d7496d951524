/* SPDX-License-Identifier: Apache-2.0 */
#include "program/bulkhead/copies.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "base/fd.h"
#include "base/mem.h"
#include "spec/spec.h"

static void copy_name(size_t i, char out[32])
{
	if (i == 0)
		snprintf(out, 32, "changes");
	else
		snprintf(out, 32, "changes.%zu", i);
}

/* A run that changed nothing saved nothing: that is an answer, not a failure. */
static bool ended_unchanged(const struct sandbox_state *st)
{
	return st->phase == PHASE_ENDED && st->files_changed == 0;
}

/* Nothing is saved here: fine, or why it isn't. */
static int explain_none(const struct copies *c, const struct err *missing, struct err *err)
{
	const char *id = sandbox_dir_id(c->dir);
	struct sandbox_state st;
	if (sandbox_state_read(c->dir, &st, NULL) < 0)
		return err_set(err, missing->code, "sandbox %s: %s", id, missing->text);
	int r = 0;
	if (st.phase < PHASE_ENDED)
		r = err_set(err, ERR_CONFLICT, "sandbox %s still runs: its changes are saved when it ends; `bulkhead kill %s` ends it now", id, id);
	else if (!ended_unchanged(&st))
		r = err_set(err, missing->code, "sandbox %s: %s", id, missing->text);
	sandbox_state_done(&st);
	return r;
}

static int load_all(struct copies *c, struct err *err)
{
	struct err missing = ERR_INIT;
	c->items = mem_alloc_array(SPEC_MOUNTS_MAX, sizeof(*c->items));
	for (size_t i = 0; i < SPEC_MOUNTS_MAX; i++) {
		struct copy *one = &c->items[c->n];
		struct err why = ERR_INIT;
		copy_name(i, one->name);
		if (changes_load(sandbox_dir_fd(c->dir), one->name, &one->changes, &why) == 0) {
			one->original = -1;
			c->n++;
		} else if (why.code != ERR_NOT_FOUND) {
			if (err)
				*err = why;
			return -1;
		} else if (i == 0) {
			missing = why;
		}
	}
	return c->n > 0 ? 0 : explain_none(c, &missing, err);
}

int copies_open(struct copies *c, const struct globals *g, const char *id, bool lock, struct err *err)
{
	*c = (struct copies){ 0 };
	if (state_open(g->state, &c->state, err) < 0 || state_sandbox_open(c->state, id, lock, &c->dir, err) < 0 ||
		load_all(c, err) < 0) {
		copies_done(c);
		return -1;
	}
	return 0;
}

int copies_open_originals(struct copies *c, struct err *err)
{
	for (size_t i = 0; i < c->n; i++) {
		const char *source = c->items[i].changes.source;
		if (!source)
			return err_set(err, ERR_CORRUPT, "the saved changes don't say of which folder they are; discard them");
		c->items[i].original = open(source, O_PATH | O_DIRECTORY | O_CLOEXEC);
		cleanup_free char *quoted = change_path_quote("", source);
		if (c->items[i].original < 0)
			return err_sys(err, errno, "cannot open the original folder %s; put it back where it was", quoted);
	}
	return 0;
}

/* "./a//b/" becomes "a/b"; "." becomes "". NULL for what leads out. */
static char *tidy(const char *path)
{
	char *out = mem_alloc(strlen(path) + 1), *end = out;
	while (*path) {
		size_t n = strcspn(path, "/");
		if (n == 2 && memcmp(path, "..", 2) == 0)
			return mem_free(out);
		if (n > 0 && !(n == 1 && *path == '.')) {
			if (end > out)
				*end++ = '/';
			memcpy(end, path, n);
			end += n;
		}
		path += n + (path[n] == '/');
	}
	*end = '\0';
	return out;
}

/* The operand as a path of this copy, or NULL. */
static char *path_in_copy(const struct copy *one, const char *operand)
{
	const char *source = one->changes.source;
	if (*operand != '/')
		return tidy(operand);
	size_t n = source ? strlen(source) : 0;
	while (n > 0 && source[n - 1] == '/')
		n--;
	if (!source || strncmp(operand, source, n) != 0 || (operand[n] != '/' && operand[n]))
		return NULL;
	return tidy(operand + n);
}

static bool changed_in_copy(const struct copy *one, char *path)
{
	char *const single[] = { path, NULL };
	for (size_t i = 0; i < one->changes.n; i++)
		if (!*path || change_selected(&one->changes.items[i], single))
			return true;
	return false;
}

/* True when something at or below the operand changed in this copy. Asking for all of it is the same as not naming anything. */
static bool ask_copy(struct copy *one, size_t *n_paths, const char *operand)
{
	char *path = path_in_copy(one, operand);
	if (!path || !changed_in_copy(one, path)) {
		mem_free(path);
		return false;
	}
	one->asked = true;
	one->paths = mem_grow_array(one->paths, *n_paths + 2, sizeof(*one->paths));
	one->paths[(*n_paths)++] = path;
	one->paths[*n_paths] = NULL;
	return true;
}

static void free_paths(struct copy *one)
{
	for (char **p = one->paths; p && *p; p++)
		mem_free(*p);
	one->paths = mem_free(one->paths);
}

static bool asks_for_all(const struct copy *one)
{
	for (char **p = one->paths; p && *p; p++)
		if (!**p)
			return true;
	return false;
}

int copies_ask(struct copies *c, char *const *operands, size_t n, struct err *err)
{
	size_t counts[SPEC_MOUNTS_MAX] = { 0 };
	for (size_t k = 0; k < n; k++) {
		bool found = false;
		for (size_t i = 0; i < c->n; i++)
			found |= ask_copy(&c->items[i], &counts[i], operands[k]);
		cleanup_free char *quoted = change_path_quote("", operands[k]);
		if (!found)
			return err_set(err, ERR_NOT_FOUND,
				"nothing changed at or below %s; paths are relative to the working copy, and `bulkhead diff %s "
				"--name-only` lists them",
				quoted, sandbox_dir_id(c->dir));
	}
	for (size_t i = 0; i < c->n; i++) {
		c->items[i].asked |= n == 0;
		/* "." beside other names: the others may name held files exactly, so both count; "" alone is everything. */
		if (asks_for_all(&c->items[i]) && counts[i] == 1)
			free_paths(&c->items[i]);
	}
	return 0;
}

void copies_done(struct copies *c)
{
	for (size_t i = 0; i < c->n; i++) {
		changes_done(&c->items[i].changes);
		fd_close(&c->items[i].original);
		free_paths(&c->items[i]);
	}
	mem_free(c->items);
	sandbox_dir_free(c->dir);
	state_free(c->state);
	*c = (struct copies){ 0 };
}
