/* SPDX-License-Identifier: Apache-2.0 */
#include "audit/event.h"

#include <string.h>

#include "base/mem.h"

#define FIELDS_MAX 10
#define DEPTH_MAX 32
#define FROM(source) (1u << (source))

/* kind: i integer, b boolean, a array, o object, t text, x anything */
struct field {
	const char *name;
	char kind;
	bool optional;
};

struct type_info {
	const char *name;
	unsigned sources;
	struct field fields[FIELDS_MAX + 1];
};

static const struct type_info types[AUDIT_TYPE_MAX] = {
	[AUDIT_SANDBOX_START] = { "sandbox.start", FROM(AUDIT_FROM_SUPERVISOR),
		{ { "id", 't' }, { "level", 't' }, { "policy_hash", 't' }, { "version", 't' }, { "policy", 'x', true },
			{ "template", 't', true }, { "workdir", 't', true }, { "mounts", 'a', true }, { "limits", 'o', true },
			{ "user", 'x', true } } },
	[AUDIT_SANDBOX_READY] = { "sandbox.ready", FROM(AUDIT_FROM_SUPERVISOR),
		{ { "level", 't' }, { "probes", 'o' }, { "start_ns", 'i' } } },
	[AUDIT_EXEC_START] = { "exec.start", FROM(AUDIT_FROM_SUPERVISOR),
		{ { "execution", 'i' }, { "argv", 'a' }, { "env_names", 'a', true }, { "cwd", 't', true }, { "tty", 'b' } } },
	[AUDIT_EXEC_END] = { "exec.end", FROM(AUDIT_FROM_SUPERVISOR),
		{ { "execution", 'i' }, { "duration_ns", 'i' }, { "exit", 'i', true }, { "signal", 'x', true },
			{ "error", 't', true } } },
	[AUDIT_OUTPUT] = { "output", FROM(AUDIT_FROM_SUPERVISOR),
		{ { "execution", 'i' }, { "stream", 't' }, { "offset", 'i' }, { "length", 'i' } } },
	[AUDIT_EGRESS] = { "egress", FROM(AUDIT_FROM_GATE),
		{ { "flow", 'i' }, { "host", 't' }, { "port", 'i' }, { "address", 't', true }, { "entrance", 't' },
			{ "protocol", 't', true }, { "allow", 'b' }, { "reason", 't' }, { "rule", 'x', true } } },
	[AUDIT_EGRESS_END] = { "egress.end", FROM(AUDIT_FROM_GATE),
		{ { "flow", 'i' }, { "bytes_up", 'i' }, { "bytes_down", 'i' }, { "duration_ns", 'i' },
			{ "reason", 't', true } } },
	[AUDIT_NAME] = { "name", FROM(AUDIT_FROM_GATE),
		{ { "name", 't' }, { "allow", 'b' }, { "reason", 't' }, { "count", 'i' } } },
	[AUDIT_DENIAL] = { "denial", FROM(AUDIT_FROM_SUPERVISOR),
		{ { "syscall", 't' }, { "command", 't' }, { "pid", 'i' }, { "count", 'i' } } },
	[AUDIT_LIMIT] = { "limit", FROM(AUDIT_FROM_SUPERVISOR),
		{ { "limit", 't' }, { "value", 'x', true }, { "reason", 't' }, { "killed", 'b' } } },
	[AUDIT_SIGNAL] = { "signal", FROM(AUDIT_FROM_SUPERVISOR), { { "signal", 'x' }, { "forwarded", 'b' } } },
	[AUDIT_FILES] = { "files", FROM(AUDIT_FROM_SUPERVISOR),
		{ { "mount", 'x' }, { "added", 'i' }, { "modified", 'i' }, { "deleted", 'i' }, { "bytes", 'i' },
			{ "paths", 'a', true } } },
	[AUDIT_TEARDOWN] = { "teardown", FROM(AUDIT_FROM_SUPERVISOR),
		{ { "processes", 'x' }, { "mounts", 'x' }, { "cgroup", 'x' }, { "sockets", 'x' },
			{ "durations", 'x', true } } },
	[AUDIT_SANDBOX_END] = { "sandbox.end", FROM(AUDIT_FROM_SUPERVISOR),
		{ { "exit_status", 'i' }, { "reason", 't' }, { "totals", 'o', true } } },
	[AUDIT_LOST] = { "audit.lost", FROM(AUDIT_FROM_AUDITOR), { { "source", 't' }, { "reason", 't' } } },
	[AUDIT_REQUEST] = { "request", FROM(AUDIT_FROM_GATE),
		{ { "flow", 'i' }, { "request", 'i' }, { "method", 't' }, { "host", 't' }, { "port", 'i' }, { "path", 't' },
			{ "query", 'b' }, { "allow", 'b' }, { "reason", 't' }, { "rule", 'x', true } } },
	[AUDIT_REQUEST_END] = { "request.end", FROM(AUDIT_FROM_GATE),
		{ { "flow", 'i' }, { "request", 'i' }, { "status", 'i' }, { "bytes_up", 'i' }, { "bytes_down", 'i' },
			{ "duration_ns", 'i' }, { "reason", 't' } } },
	[AUDIT_SECRET] = { "secret", FROM(AUDIT_FROM_SUPERVISOR),
		{ { "secret", 't' }, { "action", 't' }, { "ok", 'b' }, { "generation", 'i', true }, { "detail", 't', true } } },
	[AUDIT_SECRET_USE] = { "secret.use", FROM(AUDIT_FROM_UPSTREAM),
		{ { "secret", 't' }, { "generation", 'i' }, { "flow", 'i' }, { "host", 't' }, { "place", 't' } } },
	[AUDIT_SECRET_FOUND] = { "secret.found", FROM(AUDIT_FROM_UPSTREAM),
		{ { "secret", 't' }, { "flow", 'i' }, { "host", 't' }, { "spelling", 't' }, { "where", 't' }, { "count", 'i' } } },
	[AUDIT_CANARY] = { "canary", FROM(AUDIT_FROM_GATE),
		{ { "secret", 't' }, { "flow", 'i' }, { "host", 't' }, { "port", 'i' }, { "where", 't' }, { "spelling", 't' },
			{ "action", 't' } } },
	[AUDIT_POLICY] = { "policy", FROM(AUDIT_FROM_SUPERVISOR),
		{ { "generation", 'i' }, { "policy_hash", 't' }, { "cut", 'i' }, { "by", 'x', true } } },
	[AUDIT_CHANGES_APPLIED] = { "changes.applied", FROM(AUDIT_FROM_SUPERVISOR), { { "paths", 'a' }, { "how", 't' } } },
};

static const char *const source_names[AUDIT_SOURCE_MAX] = {
	[AUDIT_FROM_SUPERVISOR] = "supervisor",
	[AUDIT_FROM_GATE] = "gate",
	[AUDIT_FROM_AUDITOR] = "auditor",
	[AUDIT_FROM_UPSTREAM] = "upstream",
};

const char *audit_type_name(enum audit_type type)
{
	return (unsigned)type < AUDIT_TYPE_MAX ? types[type].name : "unknown";
}

int audit_type_from_name(const char *name, enum audit_type *ret)
{
	for (unsigned i = 0; i < AUDIT_TYPE_MAX; i++)
		if (str_eq(types[i].name, name)) {
			*ret = (enum audit_type)i;
			return 0;
		}
	return -1;
}

const char *audit_source_name(enum audit_source source)
{
	return (unsigned)source < AUDIT_SOURCE_MAX ? source_names[source] : "unknown";
}

int audit_source_from_name(const char *name, enum audit_source *ret)
{
	for (unsigned i = 0; i < AUDIT_SOURCE_MAX; i++)
		if (str_eq(source_names[i], name)) {
			*ret = (enum audit_source)i;
			return 0;
		}
	return -1;
}

bool audit_type_allowed(enum audit_type type, enum audit_source source)
{
	return (unsigned)type < AUDIT_TYPE_MAX && (unsigned)source < AUDIT_SOURCE_MAX && (types[type].sources & FROM(source));
}

static bool is_text(const json_t *v)
{
	return json_is_string(v) || (json_object_size(v) == 1 && json_is_string(json_object_get(v, "base64")));
}

static bool kind_matches(char kind, const json_t *v)
{
	switch (kind) {
	case 'i':
		return json_is_integer(v);
	case 'b':
		return json_is_boolean(v);
	case 'a':
		return json_is_array(v);
	case 'o':
		return json_is_object(v);
	case 't':
		return is_text(v);
	default:
		return v != NULL;
	}
}

static const char *kind_name(char kind)
{
	switch (kind) {
	case 'i':
		return "an integer";
	case 'b':
		return "true or false";
	case 'a':
		return "an array";
	case 'o':
		return "an object";
	case 't':
		return "a text";
	default:
		return "a value";
	}
}

/* Reals have no single spelling, so a hash over them could not be computed again by others. */
static int check_canonical(const json_t *v, unsigned depth, struct err *err)
{
	if (depth > DEPTH_MAX)
		return err_set(err, ERR_INVALID, "the event is nested deeper than %u levels", DEPTH_MAX);
	if (json_is_real(v))
		return err_set(err, ERR_INVALID, "the event holds a number that is not an integer; records hold integers only");
	if (json_is_object(v)) {
		const char *key;
		json_t *item;
		/* clang-format off */
		json_object_foreach((json_t *)v, key, item) {
			if (check_canonical(item, depth + 1, err) < 0)
				return -1;
		}
		/* clang-format on */
	}
	for (size_t i = 0; i < json_array_size(v); i++)
		if (check_canonical(json_array_get(v, i), depth + 1, err) < 0)
			return -1;
	return 0;
}

static int check_exec_end(const json_t *fields, struct err *err)
{
	if (json_object_get(fields, "exit") || json_object_get(fields, "signal") || json_object_get(fields, "error"))
		return 0;
	return err_set(err, ERR_INVALID, "the event exec.end has none of \"exit\", \"signal\" and \"error\"");
}

static int check_output(const json_t *fields, struct err *err)
{
	const char *stream = json_string_value(json_object_get(fields, "stream"));
	if (!stream || !(str_eq(stream, "stdout") || str_eq(stream, "stderr") || str_eq(stream, "tty")))
		return err_set(err, ERR_INVALID, "the event output has another stream than \"stdout\", \"stderr\" and \"tty\"");
	if (json_integer_value(json_object_get(fields, "offset")) < 0 ||
		json_integer_value(json_object_get(fields, "length")) < 0)
		return err_set(err, ERR_INVALID, "the event output has a negative offset or length");
	return 0;
}

int audit_fields_check(enum audit_type type, const json_t *fields, struct err *err)
{
	if ((unsigned)type >= AUDIT_TYPE_MAX)
		return err_set(err, ERR_INVALID, "there is no event type %u", (unsigned)type);
	const struct type_info *t = &types[type];
	if (!json_is_object(fields))
		return err_set(err, ERR_INVALID, "the event %s has no fields", t->name);
	for (const struct field *f = t->fields; f->name; f++) {
		const json_t *v = json_object_get(fields, f->name);
		if (f->optional && (!v || json_is_null(v)))
			continue;
		if (!kind_matches(f->kind, v))
			return err_set(err, ERR_INVALID, "the event %s needs the field \"%s\" to be %s", t->name, f->name,
				kind_name(f->kind));
	}
	if (check_canonical(fields, 0, err) < 0)
		return err_wrap(err, "%s", t->name);
	if (type == AUDIT_EXEC_END)
		return check_exec_end(fields, err);
	return type == AUDIT_OUTPUT ? check_output(fields, err) : 0;
}
