/* SPDX-License-Identifier: Apache-2.0 */
#include "image/manifest.h"

#include <sodium.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "image/list.h"
#include "image/tree.h"

#define VERSION 1

json_t *change_text_to_json(const char *text)
{
	json_t *plain = json_string(text);
	if (plain)
		return plain;
	size_t room = sodium_base64_encoded_len(strlen(text), sodium_base64_VARIANT_ORIGINAL);
	cleanup_free char *base64 = mem_alloc(room);
	sodium_bin2base64(base64, room, (const unsigned char *)text, strlen(text), sodium_base64_VARIANT_ORIGINAL);
	return json_pack("{s:s}", "base64", base64);
}

/* NULL when it is neither, or holds a NUL. */
static char *text_from_json(const json_t *value)
{
	if (json_is_string(value))
		return strlen(json_string_value(value)) == json_string_length(value) ? mem_strdup(json_string_value(value))
										     : NULL;
	const char *base64 = json_string_value(json_object_get(value, "base64"));
	if (!base64 || json_object_size(value) != 1)
		return NULL;
	size_t room = strlen(base64), len;
	char *text = mem_alloc(room + 1);
	if (sodium_base642bin((unsigned char *)text, room, base64, room, NULL, &len, NULL, sodium_base64_VARIANT_ORIGINAL) <
			0 ||
		memchr(text, 0, len))
		return mem_free(text);
	text[len] = '\0';
	return text;
}

static json_t *flags_to_json(unsigned flags)
{
	json_t *list = json_array();
	for (unsigned bit = 1; bit <= CHANGE_FLAG_ORIGINAL_CHANGED; bit <<= 1)
		if (flags & bit)
			json_array_append_new(list, json_string(change_flag_name((enum change_flag)bit)));
	return list;
}

static json_t *mode_to_json(enum file_kind kind, mode_t mode)
{
	if (kind == FILE_NONE)
		return json_null();
	return json_sprintf("%04o", (unsigned)mode);
}

json_t *change_to_json(const struct change *one)
{
	json_t *value = json_pack("{s:o, s:s, s:s, s:s, s:o, s:o, s:I, s:I, s:o, s:b}", "path", change_text_to_json(one->path),
		"kind", change_kind_name(one->kind), "before", file_kind_name(one->before), "after", file_kind_name(one->after),
		"mode_before", mode_to_json(one->before, one->mode_before), "mode_after",
		mode_to_json(one->after, one->mode_after), "size_before", (json_int_t)one->size_before, "size_after",
		(json_int_t)one->size_after, "flags", flags_to_json(one->flags), "held", (one->flags & CHANGE_FLAGS_HELD) != 0);
	if (one->from)
		json_object_set_new(value, "from", change_text_to_json(one->from));
	if (one->link_after)
		json_object_set_new(value, "target", change_text_to_json(one->link_after));
	if (one->digest[0])
		json_object_set_new(value, one->digest_sparse ? "digest_sparse" : "digest", json_string(one->digest));
	return value;
}

json_t *changes_to_json(const struct changes *c)
{
	json_t *list = json_array();
	for (size_t i = 0; i < c->n; i++)
		json_array_append_new(list, change_to_json(&c->items[i]));
	return json_pack("{s:o, s:I, s:I, s:o}", "source", c->source ? change_text_to_json(c->source) : json_null(), "count",
		(json_int_t)c->n, "bytes", (json_int_t)(c->bytes > INT64_MAX ? INT64_MAX : c->bytes), "changes", list);
}

/* Numbers go as two's complement: an inode number may use all 64 bits. */
static json_t *item_encode(const struct change *one)
{
	json_t *v = json_pack("{s:o, s:i, s:i, s:i, s:i, s:i, s:I, s:I, s:i, s:I, s:b}", "path", change_text_to_json(one->path),
		"kind", (int)one->kind, "before", (int)one->before, "after", (int)one->after, "mode_before",
		(int)one->mode_before, "mode_after", (int)one->mode_after, "size_before", (json_int_t)one->size_before,
		"size_after", (json_int_t)one->size_after, "flags", (int)one->flags, "mtime", (json_int_t)one->mtime_ns,
		"orig_exists", one->orig_exists);
	json_object_update_new(v, json_pack("{s:I, s:I, s:I, s:I, s:s, s:s, s:b}", "orig_ino", (json_int_t)one->orig_ino,
					  "orig_size", (json_int_t)one->orig_size, "orig_mtime", (json_int_t)one->orig_mtime_ns,
					  "orig_ctime", (json_int_t)one->orig_ctime_ns, "orig_digest", one->orig_digest,
					  "digest", one->digest, "sparse", one->digest_sparse));
	if (one->from)
		json_object_set_new(v, "from", change_text_to_json(one->from));
	if (one->link_after)
		json_object_set_new(v, "target", change_text_to_json(one->link_after));
	return v;
}

/* Takes the value. */
static int append_line(struct buf *out, json_t *value)
{
	char *text = value ? json_dumps(value, JSON_COMPACT | JSON_SORT_KEYS) : NULL;
	json_decref(value);
	if (!text)
		return -1;
	int r = buf_append(out, text, strlen(text));
	free(text);
	return r < 0 ? -1 : buf_append(out, "\n", 1);
}

int manifest_encode(const struct changes *c, struct buf *out, struct err *err)
{
	int r = append_line(out, json_pack("{s:i, s:o, s:I, s:I, s:I}", "version", VERSION, "source",
					 c->source ? change_text_to_json(c->source) : json_null(), "nonce",
					 (json_int_t)c->nonce, "changes", (json_int_t)c->n, "bytes", (json_int_t)c->bytes));
	for (size_t i = 0; i < c->n && r == 0; i++)
		r = append_line(out, item_encode(&c->items[i]));
	if (r == 0)
		r = append_line(out, json_pack("{s:I}", "end", (json_int_t)c->n));
	return r == 0 ? 0
		      : err_set(err, ERR_LIMIT,
				"the list of %zu changes doesn't fit into memory or into %u MiB; nothing is kept", c->n,
				(unsigned)(out->max >> 20));
}

bool manifest_path_valid(const char *path)
{
	if (strlen(path) > TREE_PATH_MAX)
		return false;
	for (;;) {
		size_t n = strcspn(path, "/");
		if (n == 0 || n > 255 || (n == 1 && path[0] == '.') || (n == 2 && memcmp(path, "..", 2) == 0))
			return false;
		if (!path[n])
			return true;
		path += n + 1;
	}
}

static bool get_int(const json_t *v, const char *key, int64_t *ret)
{
	const json_t *value = json_object_get(v, key);
	*ret = (int64_t)json_integer_value(value);
	return json_is_integer(value);
}

static bool get_small(const json_t *v, const char *key, int64_t max, unsigned *ret)
{
	int64_t value;
	bool ok = get_int(v, key, &value) && value >= 0 && value <= max;
	*ret = ok ? (unsigned)value : 0;
	return ok;
}

static bool get_u64(const json_t *v, const char *key, uint64_t *ret)
{
	int64_t value;
	bool ok = get_int(v, key, &value);
	*ret = (uint64_t)value;
	return ok;
}

static bool get_digest(const json_t *v, const char *key, char out[65])
{
	const char *text = json_string_value(json_object_get(v, key));
	if (!text || (*text && (strlen(text) != 64 || strspn(text, "0123456789abcdef") != 64)))
		return false;
	strcpy(out, text);
	return true;
}

/* An optional text: absent is fine, malformed isn't. */
static bool get_text(const json_t *v, const char *key, char **ret)
{
	const json_t *value = json_object_get(v, key);
	*ret = value ? text_from_json(value) : NULL;
	return !value || *ret;
}

static bool item_decode_numbers(const json_t *v, struct change *one)
{
	unsigned kind, before, after, mode_before, mode_after;
	bool ok = get_small(v, "kind", CHANGE_KIND_MAX - 1, &kind) && get_small(v, "before", FILE_KIND_MAX - 1, &before) &&
		  get_small(v, "after", FILE_KIND_MAX - 1, &after) && get_small(v, "mode_before", 07777, &mode_before) &&
		  get_small(v, "mode_after", 07777, &mode_after) && get_u64(v, "size_before", &one->size_before) &&
		  get_u64(v, "size_after", &one->size_after) &&
		  get_small(v, "flags", 2 * CHANGE_FLAG_ORIGINAL_CHANGED - 1, &one->flags) &&
		  get_int(v, "mtime", &one->mtime_ns) && get_u64(v, "orig_ino", &one->orig_ino) &&
		  get_u64(v, "orig_size", &one->orig_size) && get_int(v, "orig_mtime", &one->orig_mtime_ns) &&
		  get_int(v, "orig_ctime", &one->orig_ctime_ns) && get_digest(v, "digest", one->digest) &&
		  get_digest(v, "orig_digest", one->orig_digest);
	if (!ok)
		return false;
	one->kind = (enum change_kind)kind;
	one->before = (enum file_kind)before;
	one->after = (enum file_kind)after;
	one->mode_before = mode_before;
	one->mode_after = mode_after;
	one->orig_exists = json_is_true(json_object_get(v, "orig_exists"));
	one->digest_sparse = json_is_true(json_object_get(v, "sparse"));
	return true;
}

/* What the kind says must be so in the rest: the code that applies relies on it. */
static bool item_consistent(const struct change *one)
{
	bool was = one->before != FILE_NONE, is = one->after != FILE_NONE;
	if (one->orig_exists != was || (one->from != NULL) != (one->kind == CHANGE_RENAMED))
		return false;
	if (change_has_content(one) != (one->digest[0] != '\0') || (is && one->after == FILE_LINK) != (one->link_after != NULL))
		return false;
	switch (one->kind) {
	case CHANGE_ADDED:
		return !was && is;
	case CHANGE_DELETED:
		return was && !is;
	case CHANGE_MODIFIED:
	case CHANGE_MODE:
		return was && one->before == one->after;
	case CHANGE_TYPE:
		return was && is && one->before != one->after;
	case CHANGE_RENAMED:
		return one->before == FILE_REGULAR && one->after == FILE_REGULAR;
	case CHANGE_KIND_MAX:
	default:
		return false;
	}
}

static bool item_decode(const json_t *v, struct change *one)
{
	/* Each is set, whatever the others are. */
	bool path = get_text(v, "path", &one->path), from = get_text(v, "from", &one->from), target = get_text(v, "target", &one->link_after);
	return path && from && target && one->path && manifest_path_valid(one->path) && (!one->from || manifest_path_valid(one->from)) &&
	       item_decode_numbers(v, one) && item_consistent(one);
}

struct lines { const char *p; size_t left; size_t number; };

/* The next line as a JSON object, or NULL. */
static json_t *next_object(struct lines *l)
{
	const char *end = memchr(l->p, '\n', l->left);
	if (!end)
		return NULL;
	size_t n = (size_t)(end - l->p);
	json_t *v = json_loadb(l->p, n, JSON_REJECT_DUPLICATES | JSON_ALLOW_NUL, NULL);
	l->p += n + 1;
	l->left -= n + 1;
	l->number++;
	if (v && !json_is_object(v)) {
		json_decref(v);
		return NULL;
	}
	return v;
}

static int corrupt(struct err *err, const struct lines *l)
{
	return err_set(err, ERR_CORRUPT,
		"the saved list of changes is damaged at line %zu; it can't be shown or applied: discard it", l->number);
}

static bool header_decode(const json_t *v, struct changes *c, uint64_t *ret_n)
{
	int64_t version;
	const json_t *source = json_object_get(v, "source");
	if (!get_int(v, "version", &version) || version != VERSION || !get_u64(v, "nonce", &c->nonce) ||
		!get_u64(v, "changes", ret_n) || !get_u64(v, "bytes", &c->bytes))
		return false;
	c->source = json_is_null(source) ? NULL : text_from_json(source);
	return c->source || json_is_null(source);
}

static int decode_items(struct lines *l, uint64_t n, struct changes *c, struct err *err)
{
	size_t cap = 0;
	for (uint64_t i = 0; i < n; i++) {
		json_t *v = next_object(l);
		struct change *one = changes_append(c, &cap);
		bool ok = v && item_decode(v, one);
		json_decref(v);
		if (!ok || (i > 0 && strcmp(c->items[i - 1].path, one->path) >= 0))
			return corrupt(err, l);
	}
	return 0;
}

static int decode_end(struct lines *l, uint64_t n, struct err *err)
{
	uint64_t end;
	json_t *v = next_object(l);
	bool ok = v && get_u64(v, "end", &end) && end == n && l->left == 0;
	json_decref(v);
	return ok ? 0 : corrupt(err, l);
}

int manifest_decode(const char *text, size_t len, struct changes *ret, struct err *err)
{
	struct lines l = { text, len, 0 };
	struct changes c = { 0 };
	uint64_t n = 0;
	json_t *v = next_object(&l);
	int r = v && header_decode(v, &c, &n) ? 0 : corrupt(err, &l);
	json_decref(v);
	if (r == 0)
		r = decode_items(&l, n, &c, err);
	if (r == 0)
		r = decode_end(&l, n, err);
	if (r < 0) {
		changes_done(&c);
		return -1;
	}
	*ret = c;
	return 0;
}
