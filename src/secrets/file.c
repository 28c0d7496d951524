/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The file of one secret: a first line that names the format, one line of JSON, and for a static one the sealed box.
 *
 * What is sealed is the hash of the JSON line and then the value. So the line, readable by anyone who may read the file, is as hard to change as the value: a
 * value that is put under another name, or an older one with the generation of a newer, does not open. (Who can write the file can still put an older whole file
 * back, or seal a value of his own: the public key is no secret.)
 */
#include "secrets/file.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include <jansson.h>
#include <sodium.h>

#include "base/mem.h"
#include "base/text.h"
#include "secrets/value.h"

#define FIRST_LINE "bulkhead-secret 1\n"
#define FIRST_WORD "bulkhead-secret "
#define BOUND_SIZE crypto_generichash_BYTES
#define KEY_ID_SIZE 8u

static_assert(SECRET_KEY_SIZE == crypto_box_SECRETKEYBYTES + crypto_box_PUBLICKEYBYTES, "the key file holds both halves");
static_assert(sizeof(FIRST_LINE) + SECRET_HELPER_BYTES_MAX + 4096u <= SECRET_FILE_MAX, "a helper fits unless it must be escaped throughout");
static_assert(SECRET_VALUE_MAX + crypto_box_SEALBYTES + BOUND_SIZE + 4096u <= SECRET_FILE_MAX, "the longest value fits");

static const char *const kind_names[] = { [SECRET_STATIC] = "static", [SECRET_HELPER] = "helper" };

const char *secret_kind_name(enum secret_kind kind)
{
	return (unsigned)kind < ARRAY_LEN(kind_names) ? kind_names[kind] : "unknown";
}

void secret_about_done(struct secret_about *a)
{
	for (char **arg = a->helper; arg && *arg; arg++)
		mem_free(*arg);
	mem_free(a->helper);
	*a = (struct secret_about){ 0 };
}

/* Says which key a value was sealed for, so that the wrong key can be told from a damaged file. */
static void key_id(const uint8_t public_key[32], char out[2 * KEY_ID_SIZE + 1])
{
	uint8_t hash[crypto_generichash_BYTES_MIN];
	crypto_generichash(hash, sizeof(hash), public_key, crypto_box_PUBLICKEYBYTES, NULL, 0);
	text_hex(hash, KEY_ID_SIZE, out);
}

/* ---- write ---- */

int secret_helper_check(char *const argv[], struct err *err)
{
	size_t n = 0, bytes = 0;
	for (; argv[n]; n++) {
		bytes += strlen(argv[n]) + 1;
		if (!text_is_utf8(argv[n], strlen(argv[n])))
			return err_set(err, ERR_INVALID, "argument %zu of the helper is not UTF-8", n + 1);
	}
	if (n == 0 || argv[0][0] != '/')
		return err_set(err, ERR_INVALID, "a helper needs a command with its absolute path, so that it is the same wherever it is run");
	if (n > SECRET_HELPER_ARGS_MAX || bytes > SECRET_HELPER_BYTES_MAX)
		return err_set(err, ERR_LIMIT, "the helper's command line is too long: at most %u words and %u bytes; put it into a script",
			SECRET_HELPER_ARGS_MAX, SECRET_HELPER_BYTES_MAX);
	return 0;
}

static json_t *helper_json(char *const argv[])
{
	json_t *list = json_array();
	for (; *argv; argv++)
		json_array_append_new(list, json_string(*argv));
	return list;
}

static char *about_line(const struct secret_about *a, const uint8_t public_key[32], struct err *err)
{
	char id[2 * KEY_ID_SIZE + 1];
	json_t *o = json_pack("{s:s, s:s, s:I, s:I, s:I}", "name", a->name, "kind", secret_kind_name(a->kind), "created_ns",
		(json_int_t)a->created_ns, "changed_ns", (json_int_t)a->changed_ns, "generation", (json_int_t)a->generation);
	if (o && a->kind == SECRET_HELPER)
		json_object_set_new(o, "helper", helper_json(a->helper));
	if (o && a->kind == SECRET_STATIC) {
		key_id(public_key, id);
		json_object_set_new(o, "key", json_string(id));
	}
	char *line = o ? json_dumps(o, JSON_COMPACT | JSON_SORT_KEYS) : NULL;
	json_decref(o);
	if (!line)
		err_set(err, ERR_MEMORY, "out of memory while writing the secret %s", a->name);
	return line;
}

/* The value goes through memory of its own kind only. */
static int seal(struct buf *out, const char *line, const void *value, size_t len, const uint8_t public_key[32], struct err *err)
{
	struct secret_value *plain = secret_value_alloc(BOUND_SIZE + len, err);
	uint8_t *box = plain ? buf_reserve(out, BOUND_SIZE + len + crypto_box_SEALBYTES) : NULL;
	if (!box) {
		secret_value_free(plain);
		return plain ? err_set(err, ERR_MEMORY, "no memory to seal a secret") : -1;
	}
	uint8_t *p = secret_value_fill(plain);
	crypto_generichash(p, BOUND_SIZE, (const uint8_t *)line, strlen(line), NULL, 0);
	memcpy(p + BOUND_SIZE, value, len);
	int r = crypto_box_seal(box, p, BOUND_SIZE + len, public_key);
	secret_value_free(plain);
	if (r != 0)
		return err_set(err, ERR_CORRUPT, "the key that secrets are sealed with is not usable: its public half is no valid point");
	buf_commit(out, BOUND_SIZE + len + crypto_box_SEALBYTES);
	return 0;
}

static int check_about(const struct secret_about *a, const void *value, size_t len, struct err *err)
{
	if (secret_name_check(a->name, err) < 0)
		return -1;
	if (a->kind == SECRET_HELPER)
		return a->helper ? secret_helper_check(a->helper, err) : err_set(err, ERR_INVALID, "a helper needs a command");
	return secret_value_check(value, len, err);
}

int secret_file_encode(struct buf *out, const struct secret_about *about, const void *value, size_t len, const uint8_t public_key[32],
	struct err *err)
{
	if (check_about(about, value, len, err) < 0)
		return -1;
	char *line = about_line(about, public_key, err);
	if (!line)
		return -1;
	size_t before = out->len;
	int r = 0;
	if (buf_append(out, FIRST_LINE, strlen(FIRST_LINE)) < 0 || buf_append(out, line, strlen(line)) < 0 || buf_put_u8(out, '\n') < 0 ||
		out->len - before > SECRET_FILE_MAX)
		r = err_set(err, ERR_LIMIT, "the secret %s doesn't fit into a file of %u bytes", about->name, SECRET_FILE_MAX);
	if (r == 0 && about->kind == SECRET_STATIC)
		r = seal(out, line, value, len, public_key, err);
	if (r < 0)
		out->len = before;
	free(line);
	return r;
}

/* ---- read ---- */

struct parts {
	const char *line; /* without its newline */
	size_t line_len;
	const uint8_t *box;
	size_t box_len;
};

static int split(const void *p, size_t len, struct parts *ret, struct err *err)
{
	const char *s = p;
	if (len > SECRET_FILE_MAX)
		return err_set(err, ERR_LIMIT, "the file is larger than a secret's can be (%u bytes)", SECRET_FILE_MAX);
	if (len < strlen(FIRST_LINE) || memcmp(s, FIRST_LINE, strlen(FIRST_LINE)) != 0) {
		if (len >= strlen(FIRST_WORD) && memcmp(s, FIRST_WORD, strlen(FIRST_WORD)) == 0)
			return err_set(err, ERR_UNSUPPORTED, "the file is of a version that this one doesn't know");
		return err_set(err, ERR_CORRUPT, "the file is no secret's: it doesn't begin with \"" FIRST_WORD "1\"");
	}
	s += strlen(FIRST_LINE);
	len -= strlen(FIRST_LINE);
	const char *end = memchr(s, '\n', len);
	if (!end)
		return err_set(err, ERR_CORRUPT, "the file is cut short: its second line doesn't end");
	size_t line_len = (size_t)(end - s);
	*ret = (struct parts){ .line = s, .line_len = line_len, .box = (const uint8_t *)end + 1, .box_len = len - line_len - 1 };
	return 0;
}

static int bad_line(struct err *err, const char *what)
{
	return err_set(err, ERR_CORRUPT, "the second line of the file doesn't say what it must: %s", what);
}

/* A count from 1 to what fits, or -1. */
static int get_count(const json_t *o, const char *key, uint64_t *ret)
{
	const json_t *v = json_object_get(o, key);
	if (!json_is_integer(v) || json_integer_value(v) < 1)
		return -1;
	*ret = (uint64_t)json_integer_value(v);
	return 0;
}

static int get_helper(const json_t *o, struct secret_about *a, struct err *err)
{
	const json_t *list = json_object_get(o, "helper");
	size_t n = json_array_size(list);
	if (n == 0 || n > SECRET_HELPER_ARGS_MAX)
		return bad_line(err, "\"helper\"");
	a->helper = mem_alloc_array(n + 1, sizeof(*a->helper));
	for (size_t i = 0; i < n; i++) {
		const char *arg = json_string_value(json_array_get(list, i));
		if (!arg)
			return bad_line(err, "\"helper\"");
		a->helper[i] = mem_strdup(arg);
	}
	return secret_helper_check(a->helper, err);
}

static int parse_about(const json_t *o, struct secret_about *a, struct err *err)
{
	const char *name = json_string_value(json_object_get(o, "name"));
	const char *kind = json_string_value(json_object_get(o, "kind"));
	if (!name || !secret_name_valid(name))
		return bad_line(err, "\"name\"");
	strcpy(a->name, name); /* its length was checked */
	if (kind && str_eq(kind, kind_names[SECRET_STATIC]))
		a->kind = SECRET_STATIC;
	else if (kind && str_eq(kind, kind_names[SECRET_HELPER]))
		a->kind = SECRET_HELPER;
	else
		return bad_line(err, "\"kind\"");
	if (get_count(o, "created_ns", &a->created_ns) < 0 || get_count(o, "changed_ns", &a->changed_ns) < 0 ||
		get_count(o, "generation", &a->generation) < 0)
		return bad_line(err, "times and generation");
	const char *key = json_string_value(json_object_get(o, "key"));
	if (a->kind == SECRET_STATIC && (!key || strlen(key) != 2u * KEY_ID_SIZE))
		return bad_line(err, "\"key\"");
	/* All six keys and no other: one that this version doesn't know may mean something. */
	if (json_object_size(o) != 6)
		return bad_line(err, "unknown keys");
	return a->kind == SECRET_HELPER ? get_helper(o, a, err) : 0;
}

static int read_about(const struct parts *p, struct secret_about *ret, json_t **ret_json, struct err *err)
{
	json_error_t why;
	json_t *o = json_loadb(p->line, p->line_len, JSON_REJECT_DUPLICATES, &why);
	struct secret_about a = { 0 };
	int r = json_is_object(o) ? parse_about(o, &a, err) : bad_line(err, "it is no JSON object");
	bool has_box = p->box_len > 0;
	if (r == 0 && has_box != (a.kind == SECRET_STATIC))
		r = err_set(err, ERR_CORRUPT, has_box ? "the file of a helper goes on after its second line" : "the file is cut short: the sealed value is missing");
	if (r < 0) {
		secret_about_done(&a);
		json_decref(o);
		return -1;
	}
	*ret = a;
	*ret_json = o;
	return 0;
}

int secret_file_about(const void *p, size_t len, struct secret_about *ret, struct err *err)
{
	struct parts parts;
	json_t *o;
	if (split(p, len, &parts, err) < 0 || read_about(&parts, ret, &o, err) < 0)
		return -1;
	json_decref(o);
	return 0;
}

static int check_key(const json_t *o, const uint8_t key[SECRET_KEY_SIZE], struct err *err)
{
	char id[2 * KEY_ID_SIZE + 1];
	key_id(key + crypto_box_SECRETKEYBYTES, id);
	const char *wanted = json_string_value(json_object_get(o, "key"));
	if (!str_eq(id, wanted))
		return err_set(err, ERR_DENIED,
			"it was sealed for another key (%.16s, and this one is %s); use the key file of that time, or set the secret again", wanted, id);
	return 0;
}

/* Opens the box into memory for values, checks what is bound to it, and moves the value to memory of its own. */
static int open_box(const struct parts *p, const uint8_t key[SECRET_KEY_SIZE], struct secret_value **ret, struct err *err)
{
	uint8_t hash[BOUND_SIZE];
	if (p->box_len < crypto_box_SEALBYTES + BOUND_SIZE + SECRET_VALUE_MIN ||
		p->box_len > crypto_box_SEALBYTES + BOUND_SIZE + SECRET_VALUE_MAX)
		return err_set(err, ERR_CORRUPT, "the sealed value is cut short or too long");
	size_t len = p->box_len - crypto_box_SEALBYTES;
	struct secret_value *plain = secret_value_alloc(len, err);
	if (!plain)
		return -1;
	uint8_t *bytes = secret_value_fill(plain);
	int r = 0;
	crypto_generichash(hash, sizeof(hash), (const uint8_t *)p->line, p->line_len, NULL, 0);
	if (crypto_box_seal_open(bytes, p->box, p->box_len, key + crypto_box_SECRETKEYBYTES, key) != 0)
		r = err_set(err, ERR_CORRUPT, "the sealed value doesn't open: the file or the key was changed");
	else if (sodium_memcmp(bytes, hash, sizeof(hash)) != 0)
		r = err_set(err, ERR_CORRUPT, "the sealed value belongs to another name or generation: its file was changed");
	struct secret_value *v = r == 0 ? secret_value_new(bytes + BOUND_SIZE, len - BOUND_SIZE, err) : NULL;
	secret_value_free(plain);
	if (!v)
		return -1;
	*ret = v;
	return 0;
}

int secret_file_open(const void *p, size_t len, const uint8_t key[SECRET_KEY_SIZE], struct secret_about *ret_about, struct secret_value **ret,
	struct err *err)
{
	struct parts parts;
	struct secret_about about;
	json_t *o;
	struct secret_value *v = NULL;
	if (split(p, len, &parts, err) < 0 || read_about(&parts, &about, &o, err) < 0)
		return -1;
	int r = 0;
	if (about.kind == SECRET_STATIC && (check_key(o, key, err) < 0 || open_box(&parts, key, &v, err) < 0))
		r = err_wrap(err, "secret %s", about.name);
	json_decref(o);
	if (r < 0) {
		secret_about_done(&about);
		return -1;
	}
	*ret = v;
	*ret_about = about;
	return 0;
}
