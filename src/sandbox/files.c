/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The list of changed files on the record: a few records at a time, as the auditor takes them. A run may change any number of files, and the auditor's
 * queue has a ceiling.
 */
#include "sandbox/internal.h"

#include <string.h>

#include "audit/text.h"
#include "base/mem.h"
#include "image/changes.h"

#define FILES_PER_RECORD 256u
#define FILES_BYTES_PER_RECORD (128u * 1024u) /* one change more fits below AUDIT_MESSAGE_MAX: two paths, each byte of them escaped */
#define PATH_RECORDED_MAX 4096u

struct files_log {
	struct files_log *next;
	const char *target;            /* of the mount */
	struct changes changes;
	uint64_t added, modified, deleted;
	size_t at;                     /* the first that was not sent yet */
};

/* A tree can be deeper than any record is long: of such a path the beginning is recorded, and how long it is. The diff has it whole. */
static void set_path(json_t *o, const char *key, const char *key_bytes, const char *path)
{
	size_t len = strlen(path);
	json_object_set_new(o, key, audit_text_json(path, len > PATH_RECORDED_MAX ? PATH_RECORDED_MAX : len));
	if (len > PATH_RECORDED_MAX)
		json_object_set_new(o, key_bytes, json_integer((json_int_t)len));
}

static json_t *change_json(const struct change *c)
{
	json_t *o = json_pack("{s:s}", "kind", change_kind_name(c->kind));
	set_path(o, "path", "path_bytes", c->path);
	if (c->digest[0])
		json_object_set_new(o, "digest", json_string(c->digest));
	if (c->from)
		set_path(o, "from", "from_bytes", c->from);
	if (c->flags & CHANGE_FLAGS_HELD)
		json_object_set_new(o, "flagged", json_true());
	return o;
}

/* As many changes from *at on as one record takes. */
static json_t *changes_json(const struct changes *c, size_t *at)
{
	json_t *list = json_array();
	for (size_t bytes = 0; *at < c->n && json_array_size(list) < FILES_PER_RECORD && bytes < FILES_BYTES_PER_RECORD; (*at)++) {
		json_t *one = change_json(&c->items[*at]);
		bytes += json_dumpb(one, NULL, 0, JSON_ENSURE_ASCII);
		json_array_append_new(list, one);
	}
	return list;
}

static struct files_log *files_log_free_first(struct files_log *f)
{
	struct files_log *next = f->next;
	changes_done(&f->changes);
	mem_free(f);
	return next;
}

static void count(struct sandbox *s, struct files_log *f)
{
	for (size_t i = 0; i < f->changes.n; i++) {
		const struct change *c = &f->changes.items[i];
		if (c->kind == CHANGE_ADDED)
			f->added++;
		else if (c->kind == CHANGE_DELETED)
			f->deleted++;
		else
			f->modified++;
		if (c->flags & CHANGE_FLAGS_HELD)
			s->result.files_flagged++;
	}
	s->result.files_added += f->added;
	s->result.files_modified += f->modified;
	s->result.files_deleted += f->deleted;
	s->result.files_bytes += f->changes.bytes;
}

void files_log_add(struct sandbox *s, size_t mount, struct changes *c)
{
	struct files_log *f = mem_alloc(sizeof(*f)), **last = &s->files;
	*f = (struct files_log){ .target = s->spec.mounts[mount].target, .changes = *c };
	*c = (struct changes){ 0 };
	count(s, f);
	while (*last)
		last = &(*last)->next;
	*last = f;
}

static void on_recorded(void *ctx, uint64_t seq, const struct err *err)
{
	teardown_step(ctx);
}

static void send_some(struct sandbox *s, struct files_log *f)
{
	json_t *list = changes_json(&f->changes, &f->at);
	events_send(s, AUDIT_FILES,
		json_pack("{s:s,s:I,s:I,s:I,s:I,s:o}", "mount", f->target, "added", (json_int_t)f->added, "modified", (json_int_t)f->modified, "deleted",
			(json_int_t)f->deleted, "bytes", (json_int_t)f->changes.bytes, "changes", list),
		on_recorded, s);
}

bool files_log_step(struct sandbox *s)
{
	bool sent = false;
	while (s->files && s->audit && audit_client_room(s->audit) >= AUDIT_MESSAGE_MAX) {
		send_some(s, s->files);
		sent = true;
		if (s->files->at == s->files->changes.n)
			s->files = files_log_free_first(s->files);
	}
	return sent;
}

void files_log_free(struct files_log *f)
{
	while (f)
		f = files_log_free_first(f);
}
