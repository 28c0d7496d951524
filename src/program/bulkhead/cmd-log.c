/* SPDX-License-Identifier: Apache-2.0 */
/* bulkhead log: what happened in a sandbox, from its record. */
#include <inttypes.h>
#include <string.h>
#include <unistd.h>

#include "audit/client.h"
#include "audit/record.h"
#include "base/fd.h"
#include "base/mem.h"
#include "base/text.h"
#include "program/bulkhead/command.h"
#include "program/bulkhead/show.h"
#include "store/state.h"

#define LINE_BYTES_MAX (64u * 1024u)

struct options {
	bool output, has_kind;
	enum audit_type kind;
};

struct logging {
	const struct options *options;
	bool json;
	int dirfd;
	uint64_t start_ns;
	struct buf line;
	uint8_t *blob;
	struct err err; /* what stopped it, when code is set */
};

static int set_output(void *ctx, const char *value, struct err *err)
{
	((struct options *)ctx)->output = true;
	return 0;
}

static int set_kind(void *ctx, const char *value, struct err *err)
{
	struct options *o = ctx;
	if (audit_type_from_name(value, &o->kind) < 0) {
		struct buf all;
		buf_init(&all, 512);
		for (unsigned t = 0; t < AUDIT_TYPE_MAX; t++)
			buf_printf(&all, "%s%s", t ? ", " : "", audit_type_name((enum audit_type)t));
		err_set(err, ERR_USAGE, "there is no record type \"%.60s\"; the types are %.*s", value, (int)all.len,
			(const char *)all.data);
		buf_free(&all);
		return -1;
	}
	o->has_kind = true;
	return 0;
}

static int print_output(struct logging *l, const struct record *r)
{
	const char *stream = json_string_value(json_object_get(r->data, "stream"));
	size_t len = record_blob_len(r);
	if (record_blob_read(l->dirfd, r, l->blob, len, &l->err) < 0)
		return -1;
	bool to_stderr = stream && str_eq(stream, "stderr");
	int failed = fd_write_full(to_stderr ? STDERR_FILENO : STDOUT_FILENO, l->blob, len);
	return failed < 0 ? err_sys(&l->err, -failed, "cannot write the recorded output") : 0;
}

static void print_line(struct logging *l, const struct record *r)
{
	uint64_t after = r->time_ns > l->start_ns ? r->time_ns - l->start_ns : 0;
	buf_clear(&l->line);
	show_record(&l->line, r);
	printf("+%llu.%03llus %-15s  %.*s\n", after / NS_PER_S, after % NS_PER_S / NS_PER_MS, audit_type_name(r->type),
		(int)l->line.len, l->line.len ? (const char *)l->line.data : "");
}

static int on_record(void *ctx, const struct record *r)
{
	struct logging *l = ctx;
	if (l->start_ns == 0)
		l->start_ns = r->time_ns;
	if (l->options->has_kind && r->type != l->options->kind)
		return 0;
	if (l->options->output)
		return r->type == AUDIT_OUTPUT ? print_output(l, r) : 0;
	if (l->json)
		printf("%.*s\n", (int)r->line_len, r->line);
	else
		print_line(l, r);
	return ferror(stdout);
}

/* What was printed is good; what follows it isn't, or isn't there. */
static int print_end(const struct globals *g, const struct record_verdict *v)
{
	if (!v->intact) {
		fflush(stdout);
		fprintf(stderr, "bulkhead log: the record is broken after %" PRIu64 " good records: %s\n", v->records, v->text);
		return command_finish(&command_log, EXIT_NO);
	}
	if (v->torn && !g->quiet) {
		fflush(stdout);
		fprintf(stderr, "bulkhead log: %s\n", v->text);
	}
	return command_finish(&command_log, 0);
}

static int print_log(const struct globals *g, const struct options *o, int dirfd, struct err *err)
{
	struct logging l = { .options = o, .json = g->json, .dirfd = dirfd, .err = ERR_INIT };
	struct record_verdict v;
	buf_init(&l.line, LINE_BYTES_MAX);
	l.blob = mem_alloc(AUDIT_BLOB_MAX);
	int r = record_read(dirfd, false, on_record, &l, &v, err);
	mem_free(l.blob);
	buf_free(&l.line);
	if (r == 0 && l.err.code != ERR_NONE)
		r = err_set(err, l.err.code, "%s", l.err.text);
	return r < 0 ? command_fail(&command_log, err) : print_end(g, &v);
}

static int run(struct globals *g, int argc, char **argv)
{
	struct options o = { 0 };
	const struct option_spec specs[] = { { 0, "output", NULL, set_output }, { 0, "kind", "TYPE", set_kind }, { 0 } };
	struct err err = ERR_INIT;
	struct state *s = NULL;
	struct sandbox_dir *d = NULL;
	char **rest;
	int n;
	bool help;
	if (command_options(&command_log, g, specs, &o, false, argc, argv, &rest, &n, &help, &err) < 0)
		return command_fail(&command_log, &err);
	if (help)
		return command_finish(&command_log, 0);
	if (n != 1) {
		err_set(&err, ERR_USAGE, "log needs the id of one sandbox: bulkhead log ID; `bulkhead ls` lists them");
		return command_fail(&command_log, &err);
	}
	int status;
	if (state_open(g->state, &s, &err) < 0 || state_sandbox_open(s, rest[0], false, &d, &err) < 0)
		status = command_fail(&command_log, &err);
	else
		status = print_log(g, &o, sandbox_dir_fd(d), &err);
	sandbox_dir_free(d);
	state_free(s);
	return status;
}

const struct command command_log = {
	.name = "log",
	.summary = "show what happened in a sandbox",
	.usage = "usage: bulkhead log ID [--kind TYPE] [--json | --output]\n\n"
		 "Prints the record, one line each: time since the start, type, what happened. The chain is checked on the "
		 "way: what is\n"
		 "printed is as it was recorded; a broken chain ends the printing with status 1. ID may be shortened.\n\n"
		 "      --kind TYPE   only records of this type (exec.start, egress, denial, limit, …)\n"
		 "      --json        JSON lines exactly as recorded\n"
		 "      --output      the recorded output bytes instead: stdout on stdout, stderr on stderr\n",
	.run = run,
};
