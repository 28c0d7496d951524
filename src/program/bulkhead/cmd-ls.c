/* SPDX-License-Identifier: Apache-2.0 */
/* bulkhead ls: the sandboxes of this state folder. */
#include <inttypes.h>
#include <string.h>

#include "audit/text.h"
#include "base/mem.h"
#include "base/text.h"
#include "program/bulkhead/command.h"
#include "program/bulkhead/show.h"
#include "store/state.h"

#define SHORT_LIST 20u
#define COMMAND_COLUMNS 48u
#define CELL_MAX 512u

enum column { COL_ID, COL_LEVEL, COL_PHASE, COL_AGE, COL_COMMAND, COL_FILES, COL_EGRESS, COL_DENIED, COL_END, COLUMNS };

static const char *const titles[COLUMNS] = { "ID", "LEVEL", "PHASE", "AGE", "COMMAND", "FILES", "EGRESS", "DENIED", "END" };

struct row {
	struct buf cells[COLUMNS];
};

struct listing {
	struct state *state;
	bool all;
	uint64_t now;
	size_t seen, left_out;
	json_t *json; /* NULL: a table */
	struct row *rows;
	size_t n;
};

static int set_all(void *ctx, const char *value, struct err *err)
{
	*(bool *)ctx = true;
	return 0;
}

/* A killed supervisor can't write that it is gone. */
static enum sandbox_phase real_phase(struct listing *l, const char *id, const struct sandbox_state *st)
{
	bool over = st->phase == PHASE_ENDED || st->phase == PHASE_LOST;
	return over || state_sandbox_held(l->state, id, NULL) == 1 ? st->phase : PHASE_LOST;
}

static bool has_status(enum sandbox_phase phase, const struct sandbox_state *st)
{
	return phase == PHASE_ENDED && st->exit_status >= 0;
}

static void fill_end(struct buf *b, enum sandbox_phase phase, const struct sandbox_state *st)
{
	enum reason reason = phase == PHASE_LOST && st->end_reason == REASON_NONE ? REASON_SUPERVISOR_LOST : st->end_reason;
	if (phase != PHASE_ENDED && phase != PHASE_LOST)
		buf_printf(b, "-");
	else if (has_status(phase, st) && reason == REASON_NONE)
		buf_printf(b, "exit %d", st->exit_status);
	else if (has_status(phase, st))
		buf_printf(b, "exit %d, %s", st->exit_status, reason_name(reason));
	else
		buf_printf(b, "%s", reason_name(reason));
}

static void add_row(struct listing *l, const char *id, enum sandbox_phase phase, const struct sandbox_state *st)
{
	char age[TEXT_SIZE_MAX];
	l->rows = mem_grow_array(l->rows, l->n + 1, sizeof(*l->rows));
	struct buf *c = l->rows[l->n++].cells;
	for (unsigned i = 0; i < COLUMNS; i++)
		buf_init(&c[i], CELL_MAX);
	buf_printf(&c[COL_ID], "%s", id);
	buf_printf(&c[COL_LEVEL], "%s", isolation_level_name(st->level));
	buf_printf(&c[COL_PHASE], "%s", sandbox_phase_name(phase));
	buf_printf(&c[COL_AGE], "%s", text_format_duration(l->now > st->created_ns ? l->now - st->created_ns : 0, age));
	show_words(&c[COL_COMMAND], st->argv);
	show_cut(&c[COL_COMMAND], COMMAND_COLUMNS);
	buf_printf(&c[COL_FILES], "%" PRIu64, st->files_changed);
	buf_printf(&c[COL_EGRESS], "%" PRIu64, st->egress_allowed);
	buf_printf(&c[COL_DENIED], "%" PRIu64, st->egress_denied);
	fill_end(&c[COL_END], phase, st);
}

static json_t *text_or_null(const char *s)
{
	return s ? audit_text_json(s, strlen(s)) : json_null();
}

static json_t *time_or_null(uint64_t ns)
{
	char text[TEXT_SIZE_MAX];
	return ns ? json_string(text_format_time(ns, text)) : json_null();
}

static void add_json(struct listing *l, const char *id, enum sandbox_phase phase, const struct sandbox_state *st)
{
	json_t *argv = json_array();
	for (char **a = st->argv; a && *a; a++)
		json_array_append_new(argv, audit_text_json(*a, strlen(*a)));
	json_array_append_new(
		l->json, json_pack("{s:s, s:s, s:s, s:o, s:o, s:o, s:I, s:I, s:I, s:o, s:o, s:o, s:o, s:o}", "id", id, "level",
				 isolation_level_name(st->level), "phase", sandbox_phase_name(phase), "created",
				 time_or_null(st->created_ns), "ended", time_or_null(st->ended_ns), "command", argv,
				 "files_changed", (json_int_t)st->files_changed, "egress_allowed",
				 (json_int_t)st->egress_allowed, "egress_denied", (json_int_t)st->egress_denied, "exit_status",
				 has_status(phase, st) ? json_integer(st->exit_status) : json_null(), "end_reason",
				 st->end_reason == REASON_NONE ? json_null() : json_string(reason_name(st->end_reason)),
				 "policy", text_or_null(st->policy_name), "policy_hash", text_or_null(st->policy_hash),
				 "workdir", text_or_null(st->workdir_source)));
}

static int add(void *ctx, const char *id, const struct sandbox_state *st)
{
	struct listing *l = ctx;
	enum sandbox_phase phase = real_phase(l, id, st);
	/* What still runs is never left out. */
	if (!l->all && l->seen >= SHORT_LIST && (phase == PHASE_ENDED || phase == PHASE_LOST)) {
		l->left_out++;
		return 0;
	}
	l->seen++;
	if (l->json)
		add_json(l, id, phase, st);
	else
		add_row(l, id, phase, st);
	return 0;
}

static void print_cell(const char *text, size_t len, size_t width, bool last)
{
	int pad = last ? 0 : (int)(width - show_width(text, len)) + 2;
	printf("%.*s%*s", (int)len, text, pad, "");
}

static void print_table(const struct listing *l)
{
	size_t widths[COLUMNS];
	for (unsigned c = 0; c < COLUMNS; c++) {
		widths[c] = strlen(titles[c]);
		for (size_t i = 0; i < l->n; i++) {
			size_t w = show_width((const char *)l->rows[i].cells[c].data, l->rows[i].cells[c].len);
			widths[c] = w > widths[c] ? w : widths[c];
		}
	}
	for (unsigned c = 0; c < COLUMNS; c++)
		print_cell(titles[c], strlen(titles[c]), widths[c], c == COLUMNS - 1);
	putchar('\n');
	for (size_t i = 0; i < l->n; i++) {
		for (unsigned c = 0; c < COLUMNS; c++)
			print_cell(
				(const char *)l->rows[i].cells[c].data, l->rows[i].cells[c].len, widths[c], c == COLUMNS - 1);
		putchar('\n');
	}
}

static int print_listing(struct listing *l, const struct globals *g)
{
	if (l->json)
		return command_print_json(&command_ls,
			json_pack("{s:o, s:I}", "sandboxes", json_incref(l->json), "left_out", (json_int_t)l->left_out));
	if (l->n > 0)
		print_table(l);
	else if (!g->quiet)
		fprintf(stderr, "no sandboxes in %s\n", state_path(l->state));
	if (l->left_out > 0 && !g->quiet)
		fprintf(stderr, "%zu older ones are not shown: bulkhead ls --all\n", l->left_out);
	return command_finish(&command_ls, 0);
}

static void done(struct listing *l)
{
	for (size_t i = 0; i < l->n; i++)
		for (unsigned c = 0; c < COLUMNS; c++)
			buf_free(&l->rows[i].cells[c]);
	mem_free(l->rows);
	json_decref(l->json);
	state_free(l->state);
}

static int run(struct globals *g, int argc, char **argv)
{
	struct listing l = { .now = time_realtime_ns() };
	const struct option_spec specs[] = { { 'a', "all", NULL, set_all }, { 0 } };
	struct err err = ERR_INIT;
	char **rest;
	int n;
	bool help;
	if (command_options(&command_ls, g, specs, &l.all, false, argc, argv, &rest, &n, &help, &err) < 0)
		return command_fail(&command_ls, &err);
	if (help)
		return command_finish(&command_ls, 0);
	if (n > 0) {
		err_set(&err, ERR_USAGE, "ls takes no arguments, and got \"%.100s\"; `bulkhead log ID` tells of one sandbox",
			rest[0]);
		return command_fail(&command_ls, &err);
	}
	l.json = g->json ? json_array() : NULL;
	int r = state_open(g->state, &l.state, &err);
	if (r == 0)
		r = state_list(l.state, add, &l, &err);
	int status = r < 0 ? command_fail(&command_ls, &err) : print_listing(&l, g);
	done(&l);
	return status;
}

const struct command command_ls = {
	.name = "ls",
	.summary = "list sandboxes, running and ended",
	.usage = "usage: bulkhead ls [--all] [--json]\n\n"
		 "Lists what runs and the newest of what has ended: id, isolation level, phase, age, command, changed files,\n"
		 "allowed and denied connections, how it ended. \"lost\" is a sandbox whose supervisor was killed.\n\n"
		 "  -a, --all    all, not only the newest 20\n"
		 "      --json   one JSON document\n",
	.run = run,
};
