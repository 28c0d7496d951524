/* SPDX-License-Identifier: Apache-2.0 */
/* All sandboxes, and those whose supervisor is gone. */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>

#include "base/fd.h"
#include "base/mem.h"
#include "base/text.h"
#include "store/internal.h"

/* ---- list ---- */

struct entry {
	char id[SANDBOX_ID_LEN + 1];
	struct sandbox_state state;
};

struct entries {
	struct state *s;
	struct entry *items;
	size_t n, cap;
};

/* A supervisor that was killed before it wrote state.json: the folder's age is all there is. */
static void unreadable(int dirfd, struct sandbox_state *ret)
{
	struct stat st;
	*ret = (struct sandbox_state){ .phase = PHASE_LOST, .exit_status = -1, .supervisor_pid = -1 };
	if (fstat(dirfd, &st) == 0)
		ret->created_ns = (uint64_t)st.st_mtim.tv_sec * NS_PER_S + (uint64_t)st.st_mtim.tv_nsec;
}

static int add_entry(void *ctx, const char *id)
{
	struct entries *e = ctx;
	cleanup_fd int fd = sandbox_folder_open(e->s, id);
	/* Removed meanwhile. */
	if (fd < 0)
		return 0;
	if (e->n == e->cap) {
		e->cap = e->cap ? e->cap * 2 : 32;
		e->items = mem_grow_array(e->items, e->cap, sizeof(*e->items));
	}
	struct entry *item = &e->items[e->n++];
	memcpy(item->id, id, sizeof(item->id));
	if (sandbox_state_load(fd, &item->state, NULL) < 0)
		unreadable(fd, &item->state);
	return 0;
}

static int newest_first(const void *a, const void *b)
{
	const struct entry *x = a, *y = b;
	if (x->state.created_ns != y->state.created_ns)
		return x->state.created_ns < y->state.created_ns ? 1 : -1;
	return strcmp(x->id, y->id);
}

int state_list(
	struct state *s, int (*fn)(void *ctx, const char *id, const struct sandbox_state *st), void *ctx, struct err *err)
{
	struct entries e = { .s = s };
	int r = state_each_id(s, SANDBOXES_FOLDER, add_entry, &e, err);
	if (r == 0 && e.n > 0)
		qsort(e.items, e.n, sizeof(*e.items), newest_first);
	bool stop = r < 0;
	for (size_t i = 0; i < e.n; i++) {
		if (!stop)
			stop = fn(ctx, e.items[i].id, &e.items[i].state) != 0;
		sandbox_state_done(&e.items[i].state);
	}
	mem_free(e.items);
	return r;
}

/* ---- live, stale ---- */

int state_live(struct state *s, int (*fn)(void *ctx, const char *id), void *ctx, struct err *err)
{
	return state_each_id(s, LIVE_FOLDER, fn, ctx, err);
}

struct ids {
	struct state *s;
	char **items;
	size_t n;
	bool failed;
	struct err *err;
};

static int add_id(void *ctx, const char *id)
{
	struct ids *l = ctx;
	int held = state_sandbox_held(l->s, id, l->err);
	if (held < 0) {
		l->failed = true;
		return 1;
	}
	if (held)
		return 0;
	l->items = mem_grow_array(l->items, l->n + 1, sizeof(*l->items));
	l->items[l->n++] = mem_strdup(id);
	return 0;
}

static void free_ids(struct ids *l)
{
	for (size_t i = 0; i < l->n; i++)
		mem_free(l->items[i]);
	l->items = mem_free(l->items);
	l->n = 0;
}

static int collect_stale(struct ids *l)
{
	free_ids(l);
	return state_each_id(l->s, LIVE_FOLDER, add_id, l, l->err) < 0 || l->failed ? -1 : 0;
}

/* Only when something looks stale is it worth keeping others from beginning: then it is judged again with nobody half way. */
static int collect_surely(struct state *s, struct ids *l)
{
	while (flock(s->fd, LOCK_EX) < 0)
		if (errno != EINTR)
			return err_sys(l->err, errno, "cannot lock the state folder %s", s->path);
	int r = collect_stale(l);
	flock(s->fd, LOCK_UN);
	return r;
}

int state_stale(struct state *s, char ***ret_ids, size_t *ret_n, struct err *err)
{
	struct ids l = { .s = s, .err = err };
	if (collect_stale(&l) < 0 || (l.n > 0 && collect_surely(s, &l) < 0)) {
		free_ids(&l);
		return -1;
	}
	*ret_ids = l.items;
	*ret_n = l.n;
	return 0;
}
