/* SPDX-License-Identifier: Apache-2.0 */
#include "gate/upstream/vault.h"

#include <errno.h>
#include <stdio.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/mem.h"
#include "base/text.h"
#include "gate/upstream/helper.h"

#define WHY_MAX 1024u
#define EXPIRY_MARGIN_NS (30 * NS_PER_S)

struct vault_value {
	unsigned refs;
	struct secret_value *value;   /* NULL: revoked */
	uint64_t generation;
	uint64_t expires_ns;          /* realtime; 0: nobody said */
};

struct vault_wait {
	struct entry *entry;
	vault_fn fn;
	void *ctx;
	uint64_t number;              /* later ones have higher numbers */
	struct vault_wait *prev, *next;
};

struct entry {
	struct vault *vault;
	char name[SECRET_NAME_MAX + 1], placeholder[PLACEHOLDER_MAX];
	bool revoked;
	bool loaded;                          /* a sealed file came, and wasn't revoked */
	enum secret_kind kind;
	uint64_t generation;
	struct vault_value *value;            /* NULL: none now */
	struct vault_value *old[VAULT_OLD_MAX]; /* newest first */
	/* helpers */
	uint64_t fresh_until_ns;              /* monotonic; 0: asked anew by the next who wants it */
	uint64_t failed_until_ns;
	struct helper_call *call;
	struct vault_wait *waits;
	char why[WHY_MAX];                    /* why there is no value */
};

struct vault {
	struct loop *loop;
	struct entry *entries;
	unsigned n;
	uint64_t calls, epoch, n_waits;
	struct scan_set *scan;
	vault_help_fn help;
	void *ctx;
};

/* ---- values ---- */

static struct vault_value *value_new(struct secret_value *value, uint64_t generation)
{
	struct vault_value *v = mem_alloc(sizeof(*v));
	*v = (struct vault_value){ .refs = 1, .value = value, .generation = generation };
	return v;
}

static struct vault_value *hold(struct vault_value *v)
{
	v->refs++;
	return v;
}

struct vault_value *vault_release(struct vault_value *v)
{
	if (v && --v->refs == 0) {
		secret_value_free(v->value);
		mem_free(v);
	}
	return NULL;
}

/* Gone for everyone who holds it. */
static struct vault_value *destroy(struct vault_value *v)
{
	if (v)
		v->value = secret_value_free(v->value);
	return vault_release(v);
}

const uint8_t *vault_bytes(const struct vault_value *v, size_t *ret_len)
{
	*ret_len = 0;
	return v->value ? secret_value_bytes(v->value, ret_len) : NULL;
}

uint64_t vault_generation(const struct vault_value *v) { return v->generation; }

/* ---- what is looked for in answers ---- */

static bool same_value(const struct vault_value *a, const struct vault_value *b)
{
	size_t len_a, len_b;
	const uint8_t *pa = vault_bytes(a, &len_a), *pb = vault_bytes(b, &len_b);
	return pa && pb && len_a == len_b && memcmp(pa, pb, len_a) == 0;
}

static int add_needle(struct scan_set *set, unsigned id, const struct vault_value *value, struct err *err)
{
	size_t len;
	const uint8_t *p = value ? vault_bytes(value, &len) : NULL;
	return !p || scan_set_needles(set) >= SCAN_NEEDLES_MAX ? 0 : scan_set_add(set, id, p, len, err);
}

/* Values of now first, then the newest old ones, as many as a set may hold. */
static int rebuild(struct vault *v, struct err *err)
{
	struct scan_set *set = scan_set_new();
	int r = 0;
	for (unsigned i = 0; r == 0 && i < v->n; i++)
		r = add_needle(set, i, v->entries[i].value, err);
	for (unsigned age = 0; age < VAULT_OLD_MAX; age++)
		for (unsigned i = 0; r == 0 && i < v->n; i++)
			r = add_needle(set, i, v->entries[i].old[age], err);
	if (r < 0 || scan_set_compile(set, err) < 0) {
		scan_set_free(set);
		return -1;
	}
	scan_set_free(v->scan);
	v->scan = set;
	v->epoch++;
	return 0;
}

struct scan_set *vault_scan(const struct vault *v) { return v->scan; }
uint64_t vault_epoch(const struct vault *v) { return v->epoch; }

static bool is_over(const struct vault_value *v)
{
	return !v || (v->expires_ns && v->expires_ns + EXPIRY_MARGIN_NS < time_realtime_ns());
}

/* An earlier value that is of no use to anyone any more, or no value. VAULT_OLD_MAX: there is none. */
static unsigned find_over(const struct entry *e)
{
	unsigned i = VAULT_OLD_MAX;
	while (i > 0 && !is_over(e->old[i - 1]))
		i--;
	return i > 0 ? i - 1 : VAULT_OLD_MAX;
}

static void retire(struct entry *e, struct vault_value *value)
{
	unsigned i = find_over(e);
	if (i == VAULT_OLD_MAX)
		i--; /* a person has set so many: the oldest goes */
	vault_release(e->old[i]);
	memmove(&e->old[1], &e->old[0], i * sizeof(e->old[0]));
	e->old[0] = value;
}

/* The box decides how often a helper is asked, and a server may have kept every value: none may fall out of those that are looked for while it may still hold. */
static bool may_have_another(const struct entry *e)
{
	return !e->value || (find_over(e) < VAULT_OLD_MAX && scan_set_needles(e->vault->scan) < SCAN_NEEDLES_MAX);
}

/* Takes the value. On failure it isn't used: a value that can't be found in answers must not go out. */
static int set_value(struct entry *e, struct secret_value *value, struct err *err)
{
	struct vault_value *before = e->value;
	e->value = value_new(value, e->generation);
	if (before && same_value(before, e->value))
		before = vault_release(before);
	if (before)
		retire(e, before);
	if (rebuild(e->vault, err) == 0)
		return 0;
	e->value = destroy(e->value);
	return -1;
}

/* ---- those who wait ---- */

struct vault_wait *vault_drop(struct vault_wait *w)
{
	if (!w)
		return NULL;
	if (w->prev)
		w->prev->next = w->next;
	else
		w->entry->waits = w->next;
	if (w->next)
		w->next->prev = w->prev;
	return mem_free(w);
}

static struct vault_wait *wait_new(struct entry *e, vault_fn fn, void *ctx)
{
	struct vault_wait *w = mem_alloc(sizeof(*w));
	*w = (struct vault_wait){ .entry = e, .fn = fn, .ctx = ctx, .number = e->vault->n_waits++, .next = e->waits };
	if (w->next)
		w->next->prev = w;
	return e->waits = w;
}

static struct vault_wait *first_before(struct vault_wait *w, uint64_t number)
{
	while (w && w->number >= number)
		w = w->next;
	return w;
}

/* Tells all who wait now; one that is told may want it again (and then waits anew), or drop others. */
static void tell(struct entry *e, struct vault_value *value, const char *why)
{
	uint64_t now = e->vault->n_waits;
	for (struct vault_wait *w; (w = first_before(e->waits, now));) {
		vault_fn fn = w->fn;
		void *ctx = w->ctx;
		vault_drop(w);
		fn(ctx, value && value->value ? hold(value) : NULL, why);
	}
}

static void fail(struct entry *e, const char *why)
{
	snprintf(e->why, sizeof(e->why), "the secret %s can't be had: %s", e->name, why);
	tell(e, NULL, e->why);
}

/* ---- helpers ---- */

/* Until when it is given out: shortly before it expires, so that it still holds when it arrives. */
static uint64_t fresh_until(uint64_t expires_ns)
{
	uint64_t now = time_realtime_ns();
	if (expires_ns <= now)
		return 0;
	uint64_t life = expires_ns - now, margin = life / 10 > EXPIRY_MARGIN_NS ? life / 10 : EXPIRY_MARGIN_NS;
	if (margin > life / 2)
		margin = life / 2;
	return time_monotonic_ns() + life - margin;
}

static void helper_failed(struct entry *e, const char *why)
{
	e->failed_until_ns = time_monotonic_ns() + VAULT_RETRY_S * NS_PER_S;
	fail(e, why);
}

static void on_helper(void *ctx, const struct buf *output, const char *why)
{
	struct entry *e = ctx;
	struct secret_value *value = NULL;
	uint64_t expires = 0;
	struct err err = ERR_INIT;
	e->call = NULL;
	if (!output) {
		helper_failed(e, why);
		return;
	}
	if (secret_helper_parse(output->data, output->len, time_realtime_ns(), &value, &expires, &err) < 0 || set_value(e, value, &err) < 0) {
		helper_failed(e, err.text);
		return;
	}
	e->value->expires_ns = expires;
	e->fresh_until_ns = expires ? fresh_until(expires) : 0;
	struct vault_value *held = hold(e->value);
	tell(e, held, "");
	vault_release(held);
}

static void ask_helper(struct entry *e)
{
	struct vault *v = e->vault;
	e->call = helper_call_new(v->loop, ++v->calls, on_helper, e);
	v->help(v->ctx, v->calls, e->name);
}

void vault_helped(struct vault *v, uint64_t call, int fd)
{
	for (unsigned i = 0; i < v->n; i++) {
		struct entry *e = &v->entries[i];
		if (e->call && helper_call_id(e->call) == call) {
			helper_call_started(e->call, fd);
			return;
		}
	}
	fd_close(&fd); /* nobody waits for it any more */
}

/* ---- wanting ---- */

static bool is_fresh(const struct entry *e)
{
	return e->value && (e->kind == SECRET_STATIC || e->fresh_until_ns > time_monotonic_ns());
}

static void tell_later(void *ctx)
{
	struct entry *e = ctx;
	tell(e, NULL, e->why);
}

struct vault_value *vault_want(struct vault *v, unsigned id, vault_fn fn, void *ctx, struct vault_wait **ret_wait)
{
	struct entry *e = &v->entries[id];
	if (e->loaded && is_fresh(e))
		return hold(e->value);
	*ret_wait = wait_new(e, fn, ctx);
	if (e->call)
		return NULL;
	if (!e->loaded || e->kind == SECRET_STATIC || e->failed_until_ns > time_monotonic_ns()) {
		loop_defer_cancel(v->loop, tell_later, e);
		loop_defer(v->loop, tell_later, e);
	} else if (!may_have_another(e)) {
		snprintf(e->why, sizeof(e->why), "the secret %s can't be had: its helper has made more values than can be looked for in answers, and they may all "
			"still hold; let it say when a value expires (`expires_in`)", e->name);
		loop_defer_cancel(v->loop, tell_later, e);
		loop_defer(v->loop, tell_later, e);
	} else {
		ask_helper(e);
	}
	return NULL;
}

/* ---- loading and revoking ---- */

static struct entry *find(const struct vault *v, const char *name)
{
	for (unsigned i = 0; i < v->n; i++)
		if (str_eq(v->entries[i].name, name))
			return &v->entries[i];
	return NULL;
}

/* A whole file from its beginning, wherever its descriptor stands. */
static int read_file(int fd, struct buf *out, struct err *err)
{
	for (;;) {
		uint8_t *to = buf_reserve(out, 1);
		if (!to)
			return err_set(err, ERR_LIMIT, "its file is too large");
		ssize_t n = pread(fd, to, out->cap - out->len, (off_t)out->len);
		if (n == 0)
			return 0;
		if (n < 0 && errno != EINTR)
			return err_sys(err, errno, "its file can't be read");
		if (n > 0)
			buf_commit(out, (size_t)n);
	}
}

/* Exactly a key, or none (zeros): then only a file in which nothing is sealed can be read. */
static int read_key(int fd, uint8_t ret[SECRET_KEY_SIZE], struct err *err)
{
	struct buf key;
	if (fd < 0)
		return 0;
	buf_init(&key, SECRET_KEY_SIZE + 1);
	int r = read_file(fd, &key, err);
	if (r == 0 && key.len != SECRET_KEY_SIZE)
		r = err_set(err, ERR_CORRUPT, "the key of the secret store is not %u bytes long", SECRET_KEY_SIZE);
	if (r == 0)
		memcpy(ret, key.data, SECRET_KEY_SIZE);
	buf_wipe_free(&key);
	return r;
}

static int open_sealed(int file_fd, int key_fd, struct secret_about *about, struct secret_value **value, struct err *err)
{
	uint8_t key[SECRET_KEY_SIZE] = { 0 };
	struct buf file;
	buf_init(&file, SECRET_FILE_MAX + 1);
	int r = read_file(file_fd, &file, err);
	if (r == 0)
		r = read_key(key_fd, key, err);
	if (r == 0)
		r = secret_file_open(file.data, file.len, key, about, value, err);
	buf_wipe_free(&file);
	mem_wipe(key, sizeof(key));
	return r;
}

static void adopt(struct entry *e, const struct secret_about *about)
{
	loop_defer_cancel(e->vault->loop, tell_later, e);
	e->call = helper_call_free(e->call);
	e->kind = about->kind;
	e->generation = about->generation;
	e->fresh_until_ns = e->failed_until_ns = 0;
	e->loaded = true;
	e->revoked = false;
}

/* A helper in place of a value, or of another helper: what it gave before isn't given out any more. */
static int adopt_helper(struct entry *e, struct err *err)
{
	if (e->value)
		retire(e, mem_steal(&e->value));
	if (e->waits)
		ask_helper(e);
	return 0;
}

int vault_load(struct vault *v, const char *name, int file_fd, int key_fd, struct err *err)
{
	struct entry *e = find(v, name);
	struct secret_about about = { .name = "" };
	struct secret_value *value = NULL;
	if (!e)
		return err_set(err, ERR_NOT_FOUND, "the secret %s was not granted to this sandbox", name);
	if (open_sealed(file_fd, key_fd, &about, &value, err) < 0)
		return err_wrap(err, "the secret %s", name);
	int r = str_eq(about.name, name) ? 0 : err_set(err, ERR_CORRUPT, "the file of the secret %s holds the secret %s", name, about.name);
	if (r == 0) {
		adopt(e, &about);
		r = about.kind == SECRET_HELPER ? adopt_helper(e, err) : set_value(e, mem_steal(&value), err);
		if (r < 0)
			fail(e, err ? err->text : "");
		else if (e->value)
			tell(e, e->value, "");
	}
	secret_value_free(value);
	secret_about_done(&about);
	return r;
}

uint64_t vault_revoked(const struct vault *v)
{
	uint64_t bits = 0;
	for (unsigned i = 0; i < v->n; i++)
		bits |= (uint64_t)v->entries[i].revoked << i;
	return bits;
}

int vault_revoke(struct vault *v, const char *name)
{
	struct entry *e = find(v, name);
	if (!e)
		return -1;
	e->call = helper_call_free(e->call);
	e->value = destroy(e->value);
	for (unsigned i = 0; i < VAULT_OLD_MAX; i++)
		e->old[i] = destroy(e->old[i]);
	e->loaded = false;
	e->revoked = true;
	/* Fewer needles than before: what failed then can't fail now for want of room; if it does, the old set still finds the others. */
	struct err err;
	rebuild(v, &err);
	fail(e, "it was revoked");
	return (int)(e - v->entries);
}

/* ---- life ---- */

struct vault *vault_new(struct loop *loop, const struct gate_placeholder *placeholders, unsigned n, vault_help_fn help, void *ctx)
{
	struct vault *v = mem_alloc(sizeof(*v));
	*v = (struct vault){ .loop = loop, .n = n, .help = help, .ctx = ctx };
	v->entries = mem_alloc_array(n, sizeof(*v->entries));
	for (unsigned i = 0; i < n; i++) {
		struct entry *e = &v->entries[i];
		e->vault = v;
		memcpy(e->name, placeholders[i].name, sizeof(e->name));
		memcpy(e->placeholder, placeholders[i].text, sizeof(e->placeholder));
		snprintf(e->why, sizeof(e->why), "the secret %s can't be had: it was not set", e->name);
	}
	struct err err;
	if (rebuild(v, &err) < 0)
		return vault_free(v);
	return v;
}

struct vault *vault_free(struct vault *v)
{
	if (!v)
		return NULL;
	for (unsigned i = 0; i < v->n; i++) {
		struct entry *e = &v->entries[i];
		loop_defer_cancel(v->loop, tell_later, e);
		helper_call_free(e->call);
		while (e->waits)
			vault_drop(e->waits);
		destroy(e->value);
		for (unsigned k = 0; k < VAULT_OLD_MAX; k++)
			destroy(e->old[k]);
	}
	scan_set_free(v->scan);
	mem_free(v->entries);
	return mem_free(v);
}

unsigned vault_count(const struct vault *v) { return v->n; }

int vault_find(const struct vault *v, const char *name)
{
	const struct entry *e = find(v, name);
	return e ? (int)(e - v->entries) : -1;
}

const char *vault_name(const struct vault *v, unsigned id) { return v->entries[id].name; }
const char *vault_placeholder(const struct vault *v, unsigned id) { return v->entries[id].placeholder; }
