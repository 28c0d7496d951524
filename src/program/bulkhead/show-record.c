/* SPDX-License-Identifier: Apache-2.0 */
/* One line for each type of record. Every string in a record may come from inside a box. */
#include <inttypes.h>
#include <string.h>

#include "audit/text.h"
#include "base/mem.h"
#include "base/text.h"
#include "program/bulkhead/show.h"

#define DUMP_MAX 400u

static json_int_t number(const json_t *d, const char *key)
{
	return json_integer_value(json_object_get(d, key));
}

static void put_value(struct buf *b, const json_t *v)
{
	size_t len;
	cleanup_free char *text = audit_text_decode(v, &len);
	if (text) {
		show_text(b, text, len);
	} else if (json_is_integer(v)) {
		buf_printf(b, "%" JSON_INTEGER_FORMAT, json_integer_value(v));
	} else if (v) {
		char *dump = json_dumps(v, JSON_COMPACT | JSON_SORT_KEYS | JSON_ENCODE_ANY);
		size_t all = dump ? strlen(dump) : 0;
		show_text(b, dump ? dump : "", all > DUMP_MAX ? DUMP_MAX : all);
		if (all > DUMP_MAX)
			buf_printf(b, "… (%zu more bytes: --json)", all - DUMP_MAX);
		free(dump);
	}
}

static void put(struct buf *b, const json_t *d, const char *key)
{
	put_value(b, json_object_get(d, key));
}

/* " key value", when there is one. */
static void put_named(struct buf *b, const json_t *d, const char *key)
{
	const json_t *v = json_object_get(d, key);
	if (!v || json_is_null(v))
		return;
	buf_printf(b, " %s ", key);
	put_value(b, v);
}

static void put_duration(struct buf *b, const json_t *d, const char *key)
{
	char text[TEXT_SIZE_MAX];
	json_int_t ns = number(d, key);
	buf_printf(b, "%s", text_format_duration(ns > 0 ? (uint64_t)ns : 0, text));
}

static void put_size(struct buf *b, const json_t *d, const char *key)
{
	char text[TEXT_SIZE_MAX];
	json_int_t n = number(d, key);
	buf_printf(b, "%s", text_format_size(n > 0 ? (uint64_t)n : 0, text));
}

static const char *verdict(const json_t *d)
{
	return json_is_true(json_object_get(d, "allow")) ? "allow" : "deny";
}

static void show_start(struct buf *b, const json_t *d)
{
	put(b, d, "id");
	put_named(b, d, "level");
	put_named(b, d, "policy");
	put_named(b, d, "workdir");
	put_named(b, d, "policy_hash");
}

static void show_ready(struct buf *b, const json_t *d)
{
	put(b, d, "level");
	buf_printf(b, " after ");
	put_duration(b, d, "start_ns");
	put_named(b, d, "probes");
}

/* The tail of a very long command line: its beginning, size and digest (sandbox/events.c). */
static void show_rest(struct buf *b, const json_t *rest)
{
	size_t len;
	cleanup_free char *begins = audit_text_decode(json_object_get(rest, "begins"), &len);
	if (begins)
		show_word(b, begins, len);
	buf_printf(b, "… (%" JSON_INTEGER_FORMAT " more, %" JSON_INTEGER_FORMAT " bytes, blake2b ", number(rest, "strings"), number(rest, "bytes"));
	put(b, rest, "blake2b");
	buf_printf(b, ")");
}

static void show_exec_start(struct buf *b, const json_t *d)
{
	const json_t *argv = json_object_get(d, "argv");
	for (size_t i = 0; i < json_array_size(argv); i++) {
		size_t len;
		cleanup_free char *word = audit_text_decode(json_array_get(argv, i), &len);
		if (i > 0)
			buf_append(b, " ", 1);
		if (word)
			show_word(b, word, len);
		else
			show_rest(b, json_array_get(argv, i));
	}
}

static void show_exec_end(struct buf *b, const json_t *d)
{
	buf_printf(b, "after ");
	put_duration(b, d, "duration_ns");
	put_named(b, d, "exit");
	put_named(b, d, "signal");
	put_named(b, d, "error");
}

static void show_output(struct buf *b, const json_t *d)
{
	put(b, d, "stream");
	buf_printf(b, " %" JSON_INTEGER_FORMAT " bytes at %" JSON_INTEGER_FORMAT, number(d, "length"), number(d, "offset"));
}

static void show_egress(struct buf *b, const json_t *d)
{
	buf_printf(b, "%s ", verdict(d));
	put(b, d, "host");
	buf_printf(b, ":%" JSON_INTEGER_FORMAT " ", number(d, "port"));
	put(b, d, "reason");
	put_named(b, d, "address");
	put_named(b, d, "protocol");
	buf_printf(b, "%s", json_is_true(json_object_get(d, "inspected")) ? " inspected" : "");
	buf_printf(b, " flow %" JSON_INTEGER_FORMAT, number(d, "flow"));
}

static void show_egress_end(struct buf *b, const json_t *d)
{
	buf_printf(b, "flow %" JSON_INTEGER_FORMAT " up ", number(d, "flow"));
	put_size(b, d, "bytes_up");
	buf_printf(b, " down ");
	put_size(b, d, "bytes_down");
	buf_printf(b, " after ");
	put_duration(b, d, "duration_ns");
	put_named(b, d, "reason");
}

static void show_name(struct buf *b, const json_t *d)
{
	buf_printf(b, "%s ", verdict(d));
	put(b, d, "name");
	buf_append(b, " ", 1);
	put(b, d, "reason");
	if (number(d, "count") > 1)
		buf_printf(b, " (%" JSON_INTEGER_FORMAT " times)", number(d, "count"));
}

static void show_denial(struct buf *b, const json_t *d)
{
	put(b, d, "syscall");
	buf_printf(b, " by ");
	put(b, d, "command");
	buf_printf(b, " (pid %" JSON_INTEGER_FORMAT ")", number(d, "pid"));
	if (number(d, "count") > 1)
		buf_printf(b, " %" JSON_INTEGER_FORMAT " times", number(d, "count"));
}

static void show_limit(struct buf *b, const json_t *d)
{
	put(b, d, "limit");
	put_named(b, d, "value");
	buf_printf(b, "%s: ", json_is_true(json_object_get(d, "killed")) ? " (killed)" : "");
	put(b, d, "reason");
}

static void show_signal(struct buf *b, const json_t *d)
{
	put(b, d, "signal");
	buf_printf(b, "%s", json_is_true(json_object_get(d, "forwarded")) ? " forwarded" : "");
}

static void show_files(struct buf *b, const json_t *d)
{
	put(b, d, "mount");
	buf_printf(b, ": %" JSON_INTEGER_FORMAT " added, %" JSON_INTEGER_FORMAT " modified, %" JSON_INTEGER_FORMAT " deleted, ",
		number(d, "added"), number(d, "modified"), number(d, "deleted"));
	put_size(b, d, "bytes");
}

static void show_teardown(struct buf *b, const json_t *d)
{
	static const char *const parts[] = { "processes", "mounts", "cgroup", "sockets" };
	for (size_t i = 0; i < ARRAY_LEN(parts); i++) {
		buf_printf(b, "%s%s ", i > 0 ? ", " : "", parts[i]);
		put(b, d, parts[i]);
	}
}

static void show_end(struct buf *b, const json_t *d)
{
	buf_printf(b, "status %" JSON_INTEGER_FORMAT " ", number(d, "exit_status"));
	put(b, d, "reason");
	put_named(b, d, "totals");
}

static void show_lost(struct buf *b, const json_t *d)
{
	put(b, d, "source");
	buf_append(b, " ", 1);
	put(b, d, "reason");
	put_named(b, d, "cut_bytes");
	put_named(b, d, "text");
}

/* Where a request or a placeholder was on its way to: "host:443". */
static void put_place(struct buf *b, const json_t *d)
{
	put(b, d, "host");
	buf_printf(b, ":%" JSON_INTEGER_FORMAT, number(d, "port"));
}

static void put_request(struct buf *b, const json_t *d)
{
	buf_printf(b, " (flow %" JSON_INTEGER_FORMAT " request %" JSON_INTEGER_FORMAT ")", number(d, "flow"), number(d, "request"));
}

static void show_request(struct buf *b, const json_t *d)
{
	buf_printf(b, "%s ", verdict(d));
	put(b, d, "method");
	buf_append(b, " ", 1);
	put_place(b, d);
	put(b, d, "path");
	buf_printf(b, "%s ", json_is_true(json_object_get(d, "query")) ? "?…" : "");
	put(b, d, "reason");
	put_request(b, d);
}

static void show_request_end(struct buf *b, const json_t *d)
{
	if (number(d, "status"))
		buf_printf(b, "%" JSON_INTEGER_FORMAT, number(d, "status"));
	else
		buf_printf(b, "no answer");
	buf_printf(b, " up ");
	put_size(b, d, "bytes_up");
	buf_printf(b, " down ");
	put_size(b, d, "bytes_down");
	buf_printf(b, " after ");
	put_duration(b, d, "duration_ns");
	buf_append(b, " ", 1);
	put(b, d, "reason");
	put_request(b, d);
}

static void show_secret(struct buf *b, const json_t *d)
{
	put(b, d, "secret");
	buf_append(b, " ", 1);
	put(b, d, "action");
	buf_printf(b, "%s", json_is_true(json_object_get(d, "ok")) ? "" : " failed");
	put_named(b, d, "generation");
	put_named(b, d, "detail");
}

static void show_secret_use(struct buf *b, const json_t *d)
{
	put(b, d, "secret");
	buf_printf(b, " put in for ");
	put(b, d, "host");
	buf_printf(b, " in ");
	put(b, d, "place");
	put_named(b, d, "generation");
	put_named(b, d, "flow");
}

static void show_secret_found(struct buf *b, const json_t *d)
{
	put(b, d, "secret");
	buf_printf(b, " taken out of the ");
	put(b, d, "where");
	buf_printf(b, " of an answer of ");
	put(b, d, "host");
	put_named(b, d, "spelling");
	if (number(d, "count") > 1)
		buf_printf(b, " (%" JSON_INTEGER_FORMAT " times)", number(d, "count"));
	put_named(b, d, "flow");
}

static void show_canary(struct buf *b, const json_t *d)
{
	buf_printf(b, "placeholder of ");
	put(b, d, "secret");
	buf_printf(b, " on its way to ");
	put_place(b, d);
	put_named(b, d, "where");
	put_named(b, d, "spelling");
	put_named(b, d, "action");
	put_named(b, d, "flow");
}

static void show_policy(struct buf *b, const json_t *d)
{
	buf_printf(b, "generation %" JSON_INTEGER_FORMAT " holds, %" JSON_INTEGER_FORMAT " cut", number(d, "generation"), number(d, "cut"));
	put_named(b, d, "policy");
	put_named(b, d, "by");
	put_named(b, d, "policy_hash");
}

static void show_applied(struct buf *b, const json_t *d)
{
	put(b, d, "how");
	buf_printf(b, " %zu paths ", json_array_size(json_object_get(d, "paths")));
	put(b, d, "paths");
}

static void (*const by_type[AUDIT_TYPE_MAX])(struct buf *b, const json_t *d) = {
	[AUDIT_SANDBOX_START] = show_start,
	[AUDIT_SANDBOX_READY] = show_ready,
	[AUDIT_EXEC_START] = show_exec_start,
	[AUDIT_EXEC_END] = show_exec_end,
	[AUDIT_OUTPUT] = show_output,
	[AUDIT_EGRESS] = show_egress,
	[AUDIT_EGRESS_END] = show_egress_end,
	[AUDIT_NAME] = show_name,
	[AUDIT_DENIAL] = show_denial,
	[AUDIT_LIMIT] = show_limit,
	[AUDIT_SIGNAL] = show_signal,
	[AUDIT_FILES] = show_files,
	[AUDIT_TEARDOWN] = show_teardown,
	[AUDIT_SANDBOX_END] = show_end,
	[AUDIT_LOST] = show_lost,
	[AUDIT_REQUEST] = show_request,
	[AUDIT_REQUEST_END] = show_request_end,
	[AUDIT_SECRET] = show_secret,
	[AUDIT_SECRET_USE] = show_secret_use,
	[AUDIT_SECRET_FOUND] = show_secret_found,
	[AUDIT_CANARY] = show_canary,
	[AUDIT_POLICY] = show_policy,
	[AUDIT_CHANGES_APPLIED] = show_applied,
};

void show_record(struct buf *b, const struct record *r)
{
	by_type[r->type](b, r->data);
}
