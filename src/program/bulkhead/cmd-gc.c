/* SPDX-License-Identifier: Apache-2.0 */
/* bulkhead gc: cleans up after killed supervisors, and removes old sandboxes when asked to. */
#include <string.h>

#include "base/mem.h"
#include "base/text.h"
#include "program/bulkhead/command.h"
#include "program/bulkhead/reap.h"
#include "store/state.h"

struct gc {
	struct globals *g;
	struct state *state;
	bool dry_run;
	uint64_t older_than_ns; /* 0: none are removed */
	uint64_t now;
	json_t *reaped, *removed;
	struct err failed;
};

static int set_dry_run(void *ctx, const char *value, struct err *err)
{
	((struct gc *)ctx)->dry_run = true;
	return 0;
}

static int set_older_than(void *ctx, const char *value, struct err *err)
{
	if (text_parse_duration(value, &((struct gc *)ctx)->older_than_ns) == 0)
		return 0;
	return err_set(err, ERR_USAGE, "--older-than needs a duration such as 7d or 12h, not \"%.40s\"", value);
}

static void on_reaped(void *ctx, const struct reaped *r)
{
	struct gc *gc = ctx;
	json_array_append_new(gc->reaped, json_pack("{s:s, s:i, s:b, s:s*}", "id", r->id, "removed", (int)r->removed,
						  "record_ended", r->record_ended, "why", r->why));
	if (gc->g->json || gc->g->quiet)
		return;
	printf("%s: its supervisor was killed; %u leftover processes and cgroups %s\n", r->id, r->removed,
		r->dry_run ? "would be removed" : "removed");
	if (r->why)
		printf("%s: %s\n", r->id, r->why);
}

static int remove_old(void *ctx, const char *id, const struct sandbox_state *st)
{
	struct gc *gc = ctx;
	uint64_t end = st->ended_ns ? st->ended_ns : st->created_ns;
	struct err err = ERR_INIT;
	bool over = st->phase == PHASE_ENDED || st->phase == PHASE_LOST;
	if (!over || state_is_live(gc->state, id) || end > gc->now || gc->now - end < gc->older_than_ns)
		return 0;
	if (!gc->dry_run && state_sandbox_remove(gc->state, id, &err) < 0) {
		/* In use by a diff or an apply: next time. */
		if (err.code != ERR_CONFLICT)
			gc->failed = err;
		return 0;
	}
	json_array_append_new(gc->removed, json_string(id));
	if (!gc->g->json && !gc->g->quiet)
		printf("%s: %s with its record and changes\n", id, gc->dry_run ? "would be removed" : "removed");
	return 0;
}

static int collect(struct gc *gc, struct err *err)
{
	if (state_open(gc->g->state, &gc->state, err) < 0)
		return -1;
	int r = reap_stale(gc->state, gc->dry_run, on_reaped, gc, err);
	if (r == 0 && gc->older_than_ns > 0)
		r = state_list(gc->state, remove_old, gc, err);
	if (r == 0 && gc->failed.code != ERR_NONE)
		r = err_set(err, gc->failed.code, "%s", gc->failed.text);
	return r;
}

static int print_result(struct gc *gc)
{
	if (gc->g->json)
		return command_print_json(&command_gc,
			json_pack("{s:b, s:O, s:O}", "dry_run", gc->dry_run, "reaped", gc->reaped, "removed", gc->removed));
	if (json_array_size(gc->reaped) + json_array_size(gc->removed) == 0 && !gc->g->quiet)
		printf("nothing to clean up\n");
	return command_finish(&command_gc, 0);
}

static int run(struct globals *g, int argc, char **argv)
{
	struct gc gc = { .g = g, .now = time_realtime_ns(), .failed = ERR_INIT };
	const struct option_spec specs[] = { { 'n', "dry-run", NULL, set_dry_run },
		{ 0, "older-than", "DURATION", set_older_than }, { 0 } };
	struct err err = ERR_INIT;
	char **rest;
	int n;
	bool help;
	if (command_options(&command_gc, g, specs, &gc, false, argc, argv, &rest, &n, &help, &err) < 0)
		return command_fail(&command_gc, &err);
	if (help)
		return command_finish(&command_gc, 0);
	if (n > 0) {
		err_set(&err, ERR_USAGE, "gc takes no arguments, and got \"%.100s\"", rest[0]);
		return command_fail(&command_gc, &err);
	}
	gc.reaped = json_array();
	gc.removed = json_array();
	int r = collect(&gc, &err);
	int status = print_result(&gc);
	if (r < 0)
		status = command_fail(&command_gc, &err);
	json_decref(gc.reaped);
	json_decref(gc.removed);
	state_free(gc.state);
	return status;
}

const struct command command_gc = {
	.name = "gc",
	.summary = "clean up after killed supervisors; remove old sandboxes",
	.usage = "usage: bulkhead gc [--dry-run] [--older-than DURATION] [--json]\n\n"
		 "Removes what a killed run left in the system and says so in its record (`run` does that too, by the way). "
		 "With --older-than\n"
		 "also removes whole ended sandboxes: record, changes that were not applied, everything.\n\n"
		 "  -n, --dry-run               only says what would be done\n"
		 "      --older-than DURATION   30d, 12h, …: ended at least so long ago\n"
		 "      --json                  one JSON document\n",
	.run = run,
};
