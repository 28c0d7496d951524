/* SPDX-License-Identifier: Apache-2.0 */
/* bulkhead diff, apply, discard: what a run changed in its working copy; keep it; drop it. */
#include <errno.h>
#include <inttypes.h>
#include <string.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/mem.h"
#include "image/changes.h"
#include "program/bulkhead/append-record.h"
#include "program/bulkhead/command.h"
#include "program/bulkhead/copies.h"

#define PATHS_PER_RECORD 200u
#define PATH_BYTES_PER_RECORD (64u * 1024u)

struct options {
	bool stat, name_only, dry_run;
};

static int set_stat(void *ctx, const char *value, struct err *err)
{
	((struct options *)ctx)->stat = true;
	return 0;
}

static int set_name_only(void *ctx, const char *value, struct err *err)
{
	((struct options *)ctx)->name_only = true;
	return 0;
}

static int set_dry_run(void *ctx, const char *value, struct err *err)
{
	((struct options *)ctx)->dry_run = true;
	return 0;
}

static const struct option_spec diff_options[] = { { 0, "stat", NULL, set_stat }, { 0, "name-only", NULL, set_name_only },
	{ 0 } };
static const struct option_spec apply_options[] = { { 'n', "dry-run", NULL, set_dry_run }, { 0 } };

/* One invocation: what was parsed and opened. */
struct call {
	const struct command *cmd;
	struct globals *g;
	struct options options;
	struct copies copies;
};

/* 0 to go on; 1 when help was shown; -1. Options may stand behind ID and PATHs; "--" ends them, for paths that begin with a
 * dash. */
static int call_begin(
	struct call *c, const struct option_spec *specs, bool lock, bool originals, int argc, char **argv, struct err *err)
{
	char **rest;
	int n;
	bool help;
	if (command_options(c->cmd, c->g, specs, &c->options, false, argc, argv, &rest, &n, &help, err) < 0)
		return -1;
	if (help)
		return 1;
	if (n < 1)
		return err_set(err, ERR_USAGE, "which sandbox? bulkhead %s ID; `bulkhead ls` lists them", c->cmd->name);
	if (c->cmd == &command_discard && n > 1)
		return err_set(
			err, ERR_USAGE, "discard drops all changes of one sandbox; to keep some, apply those paths first");
	if (copies_open(&c->copies, c->g, rest[0], lock, err) < 0)
		return -1;
	if (copies_ask(&c->copies, rest + 1, (size_t)n - 1, err) < 0 ||
		(originals && copies_open_originals(&c->copies, err) < 0)) {
		copies_done(&c->copies);
		return -1;
	}
	return 0;
}

static const char *call_id(const struct call *c)
{
	return sandbox_dir_id(c->copies.dir);
}

static int call_folder(const struct call *c)
{
	return sandbox_dir_fd(c->copies.dir);
}

/* ---- diff ---- */

static json_t *selected_to_json(const struct changes *c, char *const *paths)
{
	json_t *list = json_array();
	for (size_t i = 0; i < c->n; i++)
		if (change_selected(&c->items[i], paths))
			json_array_append_new(list, change_to_json(&c->items[i]));
	return list;
}

static json_t *source_to_json(const struct changes *c)
{
	return c->source ? change_text_to_json(c->source) : json_null();
}

static int diff_json(const struct call *c)
{
	json_t *copies = json_array();
	for (size_t i = 0; i < c->copies.n; i++) {
		const struct copy *one = &c->copies.items[i];
		if (one->asked)
			json_array_append_new(copies, json_pack("{s:o, s:o}", "source", source_to_json(&one->changes),
							      "changes", selected_to_json(&one->changes, one->paths)));
	}
	return command_print_json(c->cmd, json_pack("{s:s, s:o}", "id", call_id(c), "copies", copies));
}

static void print_names(const struct copy *one)
{
	for (size_t i = 0; i < one->changes.n; i++) {
		const struct change *change = &one->changes.items[i];
		cleanup_free char *path = change_path_quote("", change->path);
		if (change_selected(change, one->paths))
			puts(path);
	}
}

static int print_piece(void *ctx, const void *data, size_t len)
{
	/* Nobody reads any more (a pager was left): no need to go on. */
	return fwrite(data, 1, len, stdout) == len ? 0 : 1;
}

struct totals { size_t files; uint64_t added, deleted; };

static int print_stat(void *ctx, const struct change *one, const struct change_stat *stat)
{
	struct totals *t = ctx;
	cleanup_free char *path = change_path_quote("", one->path);
	t->files++;
	t->added += stat->added;
	t->deleted += stat->deleted;
	const char *held = (one->flags & CHANGE_FLAGS_HELD) ? "  (held)" : "";
	if (stat->binary)
		printf("%-9s %s: binary, %" PRIu64 " -> %" PRIu64 " bytes%s\n", change_kind_name(one->kind), path,
			one->size_before, one->size_after, held);
	else
		printf("%-9s %s: +%" PRIu64 " -%" PRIu64 "%s\n", change_kind_name(one->kind), path, stat->added, stat->deleted,
			held);
	return ferror(stdout) ? 1 : 0;
}

static unsigned output_style(void)
{
	if (command_colour())
		return DIFF_COLOUR;
	return isatty(STDOUT_FILENO) ? DIFF_VISIBLE : DIFF_PLAIN;
}

static int diff_copy(const struct call *c, const struct copy *one, struct totals *totals, struct err *err)
{
	const struct changes *changes = &one->changes;
	if (c->copies.n > 1 && !c->options.name_only) {
		cleanup_free char *source = change_path_quote("", changes->source ? changes->source : "?");
		printf("# in %s\n", source);
	}
	if (c->options.name_only) {
		print_names(one);
		return 0;
	}
	if (c->options.stat)
		return changes_stat(changes, call_folder(c), one->name, one->original, one->paths, print_stat, totals, err);
	return changes_diff(
		changes, call_folder(c), one->name, one->original, one->paths, output_style(), print_piece, NULL, err);
}

static int diff_print(const struct call *c)
{
	struct err err = ERR_INIT;
	struct totals totals = { 0 };
	for (size_t i = 0; i < c->copies.n; i++)
		if (c->copies.items[i].asked && diff_copy(c, &c->copies.items[i], &totals, &err) < 0)
			return command_fail(c->cmd, &err);
	if (c->options.stat)
		printf("%zu changed, %" PRIu64 " lines added, %" PRIu64 " deleted\n", totals.files, totals.added,
			totals.deleted);
	return command_finish(c->cmd, 0);
}

static int run_diff(struct globals *g, int argc, char **argv)
{
	struct err err = ERR_INIT;
	struct call c = { .cmd = &command_diff, .g = g };
	int r = call_begin(&c, diff_options, false, false, argc, argv, &err);
	if (r != 0)
		return r < 0 ? command_fail(c.cmd, &err) : command_finish(c.cmd, 0);
	int status;
	if (g->json)
		status = diff_json(&c);
	else if (!c.options.name_only && copies_open_originals(&c.copies, &err) < 0)
		status = command_fail(c.cmd, &err);
	else
		status = diff_print(&c);
	copies_done(&c.copies);
	return status;
}

/* ---- apply ---- */

/* Paths of a list in pieces that fit into one event each. */
static json_t *record_events(const struct changes *list, const char *how, const char *source)
{
	json_t *events = json_array(), *paths = NULL;
	size_t bytes = 0;
	for (size_t i = 0; i < list->n; i++) {
		if (!paths || json_array_size(paths) >= PATHS_PER_RECORD || bytes > PATH_BYTES_PER_RECORD) {
			paths = json_array();
			bytes = 0;
			json_array_append_new(events, json_pack("{s:o, s:s, s:o}", "paths", paths, "how", how, "source",
				source ? change_text_to_json(source) : json_string("")));
		}
		/* One path can be longer than an event may be: its end says more than its beginning. */
		size_t len = strlen(list->items[i].path);
		const char *path = list->items[i].path + (len > PATH_BYTES_PER_RECORD ? len - PATH_BYTES_PER_RECORD : 0);
		json_array_append_new(paths, change_text_to_json(path));
		bytes += len;
	}
	return events;
}

static int record_copy(const struct call *c, const struct changes *list, const char *how, const char *source, struct err *err)
{
	return list->n == 0 ? 0 : append_record(call_folder(c), AUDIT_CHANGES_APPLIED, record_events(list, how, source), err);
}

/* Results of all copies. */
struct applied { struct apply_result results[SPEC_MOUNTS_MAX]; };

static int apply_one(const struct call *c, size_t i, bool dry_run, struct applied *a, struct err *err)
{
	const struct copy *one = &c->copies.items[i];
	apply_result_done(&a->results[i]);
	return one->asked ? changes_apply(&one->changes, call_folder(c), one->name, one->original, one->paths, dry_run,
				    &a->results[i], err)
			  : 0;
}

/* All copies are checked before one is written: a conflict in any leaves all as they are. The first error stays, all conflicts
 * are gathered. */
static int check_all(const struct call *c, struct applied *a, struct err *err)
{
	int r = 0;
	for (size_t i = 0; i < c->copies.n; i++)
		if (apply_one(c, i, true, a, r == 0 ? err : NULL) < 0)
			r = -1;
	return r;
}

/* The record first: what can't be recorded isn't done. */
static int write_one(const struct call *c, size_t i, struct applied *a, struct err *err)
{
	const struct changes *changes = &c->copies.items[i].changes;
	if (record_copy(c, &a->results[i].done, "apply", changes->source, err) < 0)
		return -1;
	if (a->results[i].done.n == 0)
		return 0;
	if (apply_one(c, i, false, a, err) == 0)
		return 0;
	/* A failure of this one would only hide the first. */
	append_record(call_folder(c), AUDIT_CHANGES_APPLIED,
		json_pack("[{s:[], s:s, s:s}]", "paths", "how", "apply-failed", "error", err_code_name(err->code)), NULL);
	return -1;
}

static int write_all(const struct call *c, struct applied *a, struct err *err)
{
	for (size_t i = 0; i < c->copies.n; i++)
		if (write_one(c, i, a, err) < 0)
			return -1;
	return 0;
}

static json_t *result_to_json(const struct copy *one, const struct apply_result *r)
{
	return json_pack("{s:o, s:I, s:I, s:o, s:o, s:o}", "source", source_to_json(&one->changes), "applied",
		(json_int_t)r->applied, "already", (json_int_t)r->already, "done", selected_to_json(&r->done, NULL), "held",
		selected_to_json(&r->held, NULL), "conflicts", selected_to_json(&r->conflicts, NULL));
}

static json_t *applied_to_json(const struct call *c, const struct applied *a, const struct err *err)
{
	json_t *copies = json_array();
	for (size_t i = 0; i < c->copies.n; i++)
		json_array_append_new(copies, result_to_json(&c->copies.items[i], &a->results[i]));
	return json_pack("{s:s, s:b, s:o, s:o}", "id", call_id(c), "dry_run", c->options.dry_run, "copies", copies, "error",
		err->code == ERR_NONE ? json_null()
				      : json_pack("{s:s, s:s}", "code", err_code_name(err->code), "text", err->text));
}

static void print_flags(const struct change *one)
{
	bool first = true;
	for (unsigned bit = 1; bit <= CHANGE_FLAG_ORIGINAL_CHANGED; bit <<= 1) {
		if (!(one->flags & bit & CHANGE_FLAGS_HELD))
			continue;
		printf("%s%s: %s", first ? "" : "; ", change_flag_name((enum change_flag)bit),
			change_flag_reason((enum change_flag)bit));
		first = false;
	}
}

static void print_held(const struct call *c, const struct changes *held)
{
	bool takable = false;
	printf("held back: %zu\n", held->n);
	for (size_t i = 0; i < held->n; i++) {
		cleanup_free char *path = change_path_quote("", held->items[i].path);
		printf("  %s (", path);
		print_flags(&held->items[i]);
		printf(")\n");
		takable |= !(held->items[i].flags & CHANGE_FLAG_SPECIAL);
	}
	if (takable)
		printf("to take one, look at it (bulkhead diff %s -- PATH) and name it: bulkhead apply %s -- PATH\n",
			call_id(c), call_id(c));
}

static void print_result(const struct call *c, const struct copy *one, const struct apply_result *r)
{
	cleanup_free char *source = change_path_quote("", one->changes.source ? one->changes.source : "?");
	if (!c->g->quiet) {
		for (size_t i = 0; i < r->done.n; i++) {
			cleanup_free char *path = change_path_quote("", r->done.items[i].path);
			printf("%-9s %s\n", change_kind_name(r->done.items[i].kind), path);
		}
		printf("%s to %s: %zu", c->options.dry_run ? "would be applied" : "applied", source, r->done.n);
		printf(r->already ? " (%zu were so already)\n" : "\n", r->already);
	}
	if (r->held.n > 0)
		print_held(c, &r->held);
}

static int apply_answer(const struct call *c, const struct applied *a, const struct err *err)
{
	int status = err->code == ERR_NONE ? 0 : err->code == ERR_CONFLICT ? EXIT_NO : EXIT_FAILED;
	if (c->g->json) {
		int printed = command_print_json(c->cmd, applied_to_json(c, a, err));
		return printed ? printed : status;
	}
	if (status != 0) {
		command_fail(c->cmd, err);
		return status;
	}
	for (size_t i = 0; i < c->copies.n; i++)
		if (c->copies.items[i].asked)
			print_result(c, &c->copies.items[i], &a->results[i]);
	if (c->copies.n == 0 && !c->g->quiet)
		puts("nothing was changed");
	return command_finish(c->cmd, status);
}

static int run_apply(struct globals *g, int argc, char **argv)
{
	struct err err = ERR_INIT;
	struct call c = { .cmd = &command_apply, .g = g };
	struct applied a = { 0 };
	int r = call_begin(&c, apply_options, true, true, argc, argv, &err);
	if (r != 0)
		return r < 0 ? command_fail(c.cmd, &err) : command_finish(c.cmd, 0);
	if (check_all(&c, &a, &err) == 0 && !c.options.dry_run)
		(void)!write_all(&c, &a, &err); /* told by err */
	int status = apply_answer(&c, &a, &err);
	for (size_t i = 0; i < c.copies.n; i++)
		apply_result_done(&a.results[i]);
	copies_done(&c.copies);
	return status;
}

/* ---- discard ---- */

static int discard_all(const struct call *c, size_t *ret_n, struct err *err)
{
	for (size_t i = 0; i < c->copies.n; i++) {
		const struct copy *one = &c->copies.items[i];
		if (record_copy(c, &one->changes, "discard", one->changes.source, err) < 0)
			return -1;
		int r = path_remove_tree(call_folder(c), one->name);
		if (r < 0)
			return err_sys(err, -r, "cannot remove the saved changes of %s", call_id(c));
		*ret_n += one->changes.n;
	}
	return 0;
}

static int run_discard(struct globals *g, int argc, char **argv)
{
	struct err err = ERR_INIT;
	struct call c = { .cmd = &command_discard, .g = g };
	size_t n = 0;
	int r = call_begin(&c, NULL, true, false, argc, argv, &err);
	if (r != 0)
		return r < 0 ? command_fail(c.cmd, &err) : command_finish(c.cmd, 0);
	int status;
	if (discard_all(&c, &n, &err) < 0) {
		status = command_fail(c.cmd, &err);
	} else if (g->json) {
		status = command_print_json(c.cmd, json_pack("{s:s, s:I}", "id", call_id(&c), "discarded", (json_int_t)n));
	} else {
		if (!g->quiet)
			printf("discarded: %zu change%s\n", n, n == 1 ? "" : "s");
		status = command_finish(c.cmd, 0);
	}
	copies_done(&c.copies);
	return status;
}

const struct command command_diff = {
	.name = "diff",
	.summary = "show what a run changed in its working copy",
	.usage = "usage: bulkhead diff ID [PATH…] [--stat | --name-only] [--json]\n\n"
		 "Prints a unified patch that `git apply` takes, from the saved changes of a run. Lines that begin with \"# \" "
		 "tell what git's\n"
		 "format can't (folders, devices) and what could run later outside the box, with the reason. Nothing is cut "
		 "short.\n"
		 "On a terminal, control bytes and invisible characters are written out. PATHs limit it to those and what is "
		 "below them.\n\n"
		 "  --stat         lines added and deleted of each file\n"
		 "  --name-only    the changed paths, quoted as git does\n"
		 "  --json         the list of changes, with modes, sizes, digests and flags\n",
	.run = run_diff,
};

const struct command command_apply = {
	.name = "apply",
	.summary = "keep what a run changed: all, or the named paths",
	.usage =
		"usage: bulkhead apply ID [PATH…] [--dry-run] [--json]\n\n"
		"Writes the changes into the original folder. What could run later outside the box (hooks, configuration, "
		"shell and CI files,\n"
		"set-id bits, links that leave the folder) is held back until it is named: a named folder takes what is below "
		"it but those.\n"
		"Devices, pipes and sockets are never applied. Where the original changed meanwhile, nothing at all is "
		"written, the files\n"
		"are named, and the status is 1. Can be repeated at any time; use -- before a PATH that begins with a dash.\n\n"
		"  -n, --dry-run  only say what would be done\n"
		"  --json         what was applied, held back, in conflict\n",
	.run = run_apply,
};

const struct command command_discard = {
	.name = "discard",
	.summary = "drop what a run changed",
	.usage = "usage: bulkhead discard ID [--json]\n\n"
		 "Removes the saved changes of a run for good. The record keeps what they were and that they were discarded.\n",
	.run = run_discard,
};
