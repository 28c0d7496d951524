/* SPDX-License-Identifier: Apache-2.0 */
#include "audit/line.h"

#include <sodium.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "base/mem.h"
#include "base/text.h"

#define CHAIN_TAG "bulkhead-record-v1\n"
#define FLAGS_CANONICAL (JSON_COMPACT | JSON_SORT_KEYS)
#define TIME_TEXT_LEN 30u

char *record_canonical(const json_t *value)
{
	return json_dumps(value, FLAGS_CANONICAL | JSON_ENCODE_ANY);
}

void blob_hash(const void *blob, size_t len, uint8_t ret[RECORD_HASH_SIZE])
{
	crypto_generichash(ret, RECORD_HASH_SIZE, blob, len, NULL, 0);
}

size_t line_tail(const struct line_meta *m, char out[RECORD_TAIL_MAX])
{
	char prev[RECORD_HASH_HEX + 1], when[TEXT_SIZE_MAX];
	text_hex(m->prev, sizeof(m->prev), prev);
	int n = snprintf(out, RECORD_TAIL_MAX,
		",\"prev\":\"%s\",\"seq\":%llu,\"source\":\"%s\",\"time\":\"%s\",\"type\":\"%s\",\"v\":1}", prev,
		(unsigned long long)m->seq, audit_source_name(m->source), text_format_time(m->time_ns, when),
		audit_type_name(m->type));
	return (size_t)n;
}

void line_hash(const uint8_t prev[RECORD_HASH_SIZE], const char *data, size_t data_len, const char *tail, size_t tail_len,
	uint8_t ret[RECORD_HASH_SIZE])
{
	crypto_generichash_state st;
	crypto_generichash_init(&st, NULL, 0, RECORD_HASH_SIZE);
	crypto_generichash_update(&st, (const unsigned char *)CHAIN_TAG, sizeof(CHAIN_TAG) - 1);
	crypto_generichash_update(&st, prev, RECORD_HASH_SIZE);
	crypto_generichash_update(&st, (const unsigned char *)RECORD_LINE_HEAD, sizeof(RECORD_LINE_HEAD) - 1);
	crypto_generichash_update(&st, (const unsigned char *)data, data_len);
	crypto_generichash_update(&st, (const unsigned char *)tail, tail_len);
	crypto_generichash_final(&st, ret, RECORD_HASH_SIZE);
}

/* The inverse of text_format_time; anything that it would not have written is refused. */
static int parse_time(const char *s, uint64_t *ret)
{
	struct tm tm = { 0 };
	unsigned ns;
	int end = 0;
	if (strlen(s) != TIME_TEXT_LEN)
		return -1;
	if (sscanf(s, "%4d-%2d-%2dT%2d:%2d:%2d.%9uZ%n", &tm.tm_year, &tm.tm_mon, &tm.tm_mday, &tm.tm_hour, &tm.tm_min,
		    &tm.tm_sec, &ns, &end) != 7 ||
		end != (int)TIME_TEXT_LEN)
		return -1;
	tm.tm_year -= 1900;
	tm.tm_mon -= 1;
	time_t t = timegm(&tm);
	/* 2^63 ns is the year 2262. */
	if (t < 0 || (uint64_t)t >= INT64_MAX / NS_PER_S)
		return -1;
	*ret = (uint64_t)t * NS_PER_S + ns;
	char again[TEXT_SIZE_MAX];
	return str_eq(text_format_time(*ret, again), s) ? 0 : -1;
}

int line_meta_read(const json_t *root, struct line_meta *ret, struct err *err)
{
	const char *prev = json_string_value(json_object_get(root, "prev"));
	const char *source = json_string_value(json_object_get(root, "source"));
	const char *when = json_string_value(json_object_get(root, "time"));
	const char *type = json_string_value(json_object_get(root, "type"));
	const json_t *seq = json_object_get(root, "seq");
	if (!prev || !source || !when || !type || !json_is_integer(seq) || json_integer_value(seq) < 1)
		return err_set(err, ERR_CORRUPT, "a field of the record is missing or has the wrong kind");
	if (strlen(prev) != RECORD_HASH_HEX || text_unhex(prev, ret->prev, sizeof(ret->prev)) < 0)
		return err_set(err, ERR_CORRUPT, "the record's \"prev\" is no hash");
	if (audit_source_from_name(source, &ret->source) < 0 || audit_type_from_name(type, &ret->type) < 0)
		return err_set(err, ERR_CORRUPT, "the record's source or type is unknown");
	if (!audit_type_allowed(ret->type, ret->source))
		return err_set(err, ERR_CORRUPT, "a record of this type can't come from this source");
	if (parse_time(when, &ret->time_ns) < 0)
		return err_set(err, ERR_CORRUPT, "the record's time is malformed");
	ret->seq = (uint64_t)json_integer_value(seq);
	return 0;
}

/* The line is byte for byte what we would have written. */
static int check_canonical(const json_t *root, const char *line, size_t len, struct err *err)
{
	char *text = record_canonical(root);
	if (!text)
		return err_set(err, ERR_MEMORY, "out of memory while checking a record");
	bool same = strlen(text) == len && memcmp(text, line, len) == 0;
	free(text);
	return same ? 0 : err_set(err, ERR_CORRUPT, "the record is not in canonical form");
}

static int check_root(json_t *root, const char *line, size_t len, const uint8_t prev[RECORD_HASH_SIZE], uint64_t expect_seq,
	uint8_t ret_hash[RECORD_HASH_SIZE], struct err *err)
{
	struct line_meta m;
	char tail[RECORD_TAIL_MAX];
	const char *hash = json_string_value(json_object_get(root, "hash"));
	char hex[RECORD_HASH_HEX + 1];
	if (json_object_size(root) != 8 || !json_is_object(json_object_get(root, "data")) || !hash ||
		strlen(hash) != RECORD_HASH_HEX)
		return err_set(err, ERR_CORRUPT, "the line is no record");
	if (line_meta_read(root, &m, err) < 0 || check_canonical(root, line, len, err) < 0)
		return -1;
	if (m.seq != expect_seq)
		return err_set(err, ERR_CORRUPT,
			"the record has number %llu where %llu was to be: records are missing, doubled or out of order",
			(unsigned long long)m.seq, (unsigned long long)expect_seq);
	if (memcmp(m.prev, prev, RECORD_HASH_SIZE) != 0)
		return err_set(err, ERR_CORRUPT, "the record does not follow the one before it");

	size_t tail_len = line_tail(&m, tail);
	size_t around = sizeof(RECORD_LINE_HEAD) - 1 + RECORD_HASH_FIELD + tail_len;
	if (len < around || memcmp(line + len - tail_len, tail, tail_len) != 0)
		return err_set(err, ERR_CORRUPT, "the record is not in canonical form");
	line_hash(prev, line + sizeof(RECORD_LINE_HEAD) - 1, len - around, tail, tail_len, ret_hash);
	/* As text: there is only one spelling. */
	text_hex(ret_hash, RECORD_HASH_SIZE, hex);
	if (!str_eq(hex, hash))
		return err_set(err, ERR_CORRUPT, "the record was changed: its hash does not match");
	return 0;
}

int record_line_parse(const char *line, size_t len, const uint8_t prev[RECORD_HASH_SIZE], uint64_t expect_seq,
	json_t **ret_root, uint8_t ret_hash[RECORD_HASH_SIZE], struct err *err)
{
	if (len > RECORD_LINE_MAX)
		return err_set(err, ERR_CORRUPT, "the record is longer than %u bytes", RECORD_LINE_MAX);
	json_error_t why;
	json_t *root = json_loadb(line, len, JSON_REJECT_DUPLICATES, &why);
	if (!root)
		return err_set(err, ERR_CORRUPT, "the line is not JSON (near byte %d)", why.position);
	uint8_t hash[RECORD_HASH_SIZE];
	if (check_root(root, line, len, prev, expect_seq, hash, err) < 0) {
		json_decref(root);
		return -1;
	}
	memcpy(ret_hash, hash, sizeof(hash));
	*ret_root = root;
	return 0;
}
