/* SPDX-License-Identifier: Apache-2.0 */
/* Names and values: what is allowed, and where a value lives. */
#include "secrets/value.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

#include <sodium.h>

#include "base/mem.h"

struct secret_value {
	size_t len;
	/* On pages of its own: locked as far as RLIMIT_MEMLOCK goes, left out of core files, guard pages around them, read-only once filled, wiped when freed. */
	uint8_t *bytes;
};

static bool is_letter(char c)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

bool secret_name_valid(const char *name)
{
	size_t len = strlen(name);
	if (len == 0 || len > SECRET_NAME_MAX || !is_letter(name[0]))
		return false;
	for (const char *c = name; *c; c++)
		if (!is_letter(*c) && !(*c >= '0' && *c <= '9') && !strchr("_.-", *c))
			return false;
	return true;
}

int secret_name_check(const char *name, struct err *err)
{
	if (secret_name_valid(name))
		return 0;
	return err_set(err, ERR_USAGE,
		"\"%.80s\" is no name of a secret: it begins with a letter, goes on with letters, digits, '_', '.' or '-', and has at most %u "
		"characters",
		name, SECRET_NAME_MAX);
}

/* What is wrong is said without showing any of it. */
int secret_value_check(const void *p, size_t len, struct err *err)
{
	const uint8_t *v = p;
	if (len < SECRET_VALUE_MIN)
		return err_set(err, ERR_INVALID,
			"the value is too short: at least %u characters, since a shorter one can't be told from ordinary text in answers",
			SECRET_VALUE_MIN);
	if (len > SECRET_VALUE_MAX)
		return err_set(err, ERR_LIMIT, "the value is too long: at most %u characters", SECRET_VALUE_MAX);
	for (size_t i = 0; i < len; i++) {
		if (v[i] == '\n' || v[i] == '\r')
			return err_set(err, ERR_INVALID, "the value has several lines (line end at byte %zu); it must be one line, as it stands in a header", i + 1);
		if (v[i] < 0x20 || v[i] > 0x7e)
			return err_set(err, ERR_INVALID, "the value has a byte at position %zu that can't stand in a header: only printable ASCII can", i + 1);
	}
	if (v[0] == ' ' || v[len - 1] == ' ')
		return err_set(err, ERR_INVALID, "the value begins or ends with a blank, which headers don't keep; leave it out");
	return 0;
}

int sodium_ready(struct err *err)
{
	return sodium_init() < 0 ? err_set(err, ERR_SYSTEM, "libsodium cannot be initialised: there is no source of randomness") : 0;
}

struct secret_value *secret_value_alloc(size_t len, struct err *err)
{
	if (sodium_ready(err) < 0)
		return NULL;
	struct secret_value *v = mem_alloc(sizeof(*v));
	v->len = len;
	v->bytes = sodium_malloc(len ? len : 1);
	if (!v->bytes) {
		err_set(err, ERR_MEMORY, "no memory for a secret");
		return mem_free(v);
	}
	return v;
}

uint8_t *secret_value_fill(struct secret_value *v)
{
	return v->bytes;
}

void secret_value_seal(struct secret_value *v)
{
	sodium_mprotect_readonly(v->bytes);
}

struct secret_value *secret_value_new(const void *p, size_t len, struct err *err)
{
	if (secret_value_check(p, len, err) < 0)
		return NULL;
	struct secret_value *v = secret_value_alloc(len, err);
	if (!v)
		return NULL;
	memcpy(v->bytes, p, len);
	secret_value_seal(v);
	return v;
}

struct secret_value *secret_value_free(struct secret_value *v)
{
	if (!v)
		return NULL;
	sodium_free(v->bytes);
	return mem_free(v);
}

const uint8_t *secret_value_bytes(const struct secret_value *v, size_t *ret_len)
{
	*ret_len = v->len;
	return v->bytes;
}

bool secret_value_equal(const struct secret_value *a, const struct secret_value *b)
{
	return a->len == b->len && sodium_memcmp(a->bytes, b->bytes, a->len) == 0;
}

/* ---- reading one ---- */

/* What is read: a byte more than fits, and the newline (CRLF at most). */
#define READ_MAX (SECRET_VALUE_MAX + 3u)

/* Up to the end, or the first newline. Bytes read or -errno. */
static ssize_t read_text(int fd, bool line, uint8_t *p)
{
	size_t len = 0;
	while (len < READ_MAX) {
		/* On a line, byte by byte: what follows it is not ours. */
		ssize_t n = read(fd, p + len, line ? 1 : READ_MAX - len);
		if (n < 0)
			return -errno;
		if (n == 0)
			break;
		len += (size_t)n;
		if (line && p[len - 1] == '\n')
			break;
	}
	return (ssize_t)len;
}

static size_t without_newline(const uint8_t *p, size_t len)
{
	if (len > 0 && p[len - 1] == '\n')
		len--;
	return len > 0 && p[len - 1] == '\r' ? len - 1 : len;
}

int secret_value_read(int fd, bool line, struct secret_value **ret, struct err *err)
{
	struct secret_value *text = secret_value_alloc(READ_MAX, err);
	if (!text)
		return -1;
	struct secret_value *v = NULL;
	ssize_t n = read_text(fd, line, text->bytes);
	if (n < 0)
		err_sys(err, (int)-n, "cannot read the value");
	else if (n == 0)
		err_set(err, ERR_CLOSED, "there was no value to read: standard input is empty");
	else
		v = secret_value_new(text->bytes, without_newline(text->bytes, (size_t)n), err);
	secret_value_free(text);
	if (!v)
		return -1;
	*ret = v;
	return 0;
}
