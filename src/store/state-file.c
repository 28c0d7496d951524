/* SPDX-License-Identifier: Apache-2.0 */
/* state.json: what `ls` shows of one sandbox. */
#include <inttypes.h>
#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#include "audit/text.h"
#include "base/fd.h"
#include "base/mem.h"
#include "store/internal.h"

static const char *const phase_names[SANDBOX_PHASE_MAX] = {
	[PHASE_STARTING] = "starting",
	[PHASE_RUNNING] = "running",
	[PHASE_ENDING] = "ending",
	[PHASE_ENDED] = "ended",
	[PHASE_LOST] = "lost",
};

const char *sandbox_phase_name(enum sandbox_phase phase)
{
	return (unsigned)phase < SANDBOX_PHASE_MAX ? phase_names[phase] : "unknown";
}

static int phase_parse(const char *name, enum sandbox_phase *ret)
{
	for (unsigned i = 0; name && i < SANDBOX_PHASE_MAX; i++)
		if (str_eq(phase_names[i], name)) {
			*ret = (enum sandbox_phase)i;
			return 0;
		}
	return -1;
}

void sandbox_state_done(struct sandbox_state *st)
{
	for (char **a = st->argv; a && *a; a++)
		mem_free(*a);
	mem_free(st->argv);
	mem_free(st->policy_name);
	mem_free(st->policy_hash);
	mem_free(st->workdir_source);
	*st = (struct sandbox_state){ .exit_status = -1 };
}

/* ---- write ---- */

static json_t *text_or_null(const char *s)
{
	return s ? audit_text_json(s, strlen(s)) : json_null();
}

/* A command line can have megabytes. */
static json_t *argv_json(char *const *argv)
{
	json_t *a = json_array();
	size_t bytes = 0;
	for (; argv && *argv; argv++) {
		size_t len = strlen(*argv);
		if (bytes + len > ARGV_KEPT_MAX) {
			json_array_append_new(a, json_string("…"));
			break;
		}
		bytes += len;
		json_array_append_new(a, audit_text_json(*argv, len));
	}
	return a;
}

int sandbox_state_write(struct sandbox_dir *d, const struct sandbox_state *st, struct err *err)
{
	json_t *root = json_pack("{s:s, s:I, s:I, s:I, s:s, s:o, s:o, s:o, s:i, s:s, s:I, s:I, s:I, s:o}", "phase",
		sandbox_phase_name(st->phase), "created_ns", (json_int_t)st->created_ns, "ended_ns", (json_int_t)st->ended_ns,
		"supervisor_pid", (json_int_t)st->supervisor_pid, "level", isolation_level_name(st->level), "policy_name",
		text_or_null(st->policy_name), "policy_hash", text_or_null(st->policy_hash), "argv", argv_json(st->argv),
		"exit_status", st->exit_status, "end_reason", reason_name(st->end_reason), "files_changed",
		(json_int_t)st->files_changed, "egress_allowed", (json_int_t)st->egress_allowed, "egress_denied",
		(json_int_t)st->egress_denied, "workdir_source", text_or_null(st->workdir_source));
	char *text = root ? json_dumps(root, JSON_COMPACT | JSON_SORT_KEYS) : NULL;
	json_decref(root);
	if (!text)
		return err_set(err, ERR_MEMORY, "out of memory while noting the state of sandbox %s", d->id);
	int r = fd_replace_file_at(d->fd, STATE_FILE, text, strlen(text), 0600, false, err);
	free(text);
	return r < 0 ? err_wrap(err, "sandbox %s", d->id) : 0;
}

/* ---- read ---- */

static char *get_text(const json_t *root, const char *key)
{
	return audit_text_decode(json_object_get(root, key), NULL);
}

static uint64_t get_count(const json_t *root, const char *key)
{
	json_int_t v = json_integer_value(json_object_get(root, key));
	return v < 0 ? 0 : (uint64_t)v;
}

static char **get_argv(const json_t *root)
{
	const json_t *a = json_object_get(root, "argv");
	size_t n = json_array_size(a);
	char **argv = mem_alloc_array(n + 1, sizeof(*argv));
	for (size_t i = 0; i < n; i++) {
		argv[i] = audit_text_decode(json_array_get(a, i), NULL);
		if (!argv[i])
			argv[i] = mem_strdup("");
	}
	return argv;
}

static int parse_root(const json_t *root, struct sandbox_state *ret, struct err *err)
{
	struct sandbox_state st = { 0 };
	const char *level = json_string_value(json_object_get(root, "level"));
	const char *reason = json_string_value(json_object_get(root, "end_reason"));
	if (phase_parse(json_string_value(json_object_get(root, "phase")), &st.phase) < 0 || !level ||
		isolation_level_parse(level, &st.level) < 0 || !json_is_integer(json_object_get(root, "created_ns")) ||
		!json_is_integer(json_object_get(root, "exit_status")))
		return err_set(err, ERR_CORRUPT, STATE_FILE " is not as this version writes it");
	st.end_reason = reason ? reason_from_name(reason) : REASON_NONE;
	st.created_ns = get_count(root, "created_ns");
	st.ended_ns = get_count(root, "ended_ns");
	st.supervisor_pid = (pid_t)json_integer_value(json_object_get(root, "supervisor_pid"));
	st.exit_status = (int)json_integer_value(json_object_get(root, "exit_status"));
	st.files_changed = get_count(root, "files_changed");
	st.egress_allowed = get_count(root, "egress_allowed");
	st.egress_denied = get_count(root, "egress_denied");
	st.policy_name = get_text(root, "policy_name");
	st.policy_hash = get_text(root, "policy_hash");
	st.workdir_source = get_text(root, "workdir_source");
	st.argv = get_argv(root);
	*ret = st;
	return 0;
}

int sandbox_state_load(int dirfd, struct sandbox_state *ret, struct err *err)
{
	cleanup_free char *text = NULL;
	size_t len;
	if (fd_read_regular_at(dirfd, STATE_FILE, STATE_FILE_MAX, &text, &len, err) < 0)
		return -1;
	json_error_t why;
	json_t *root = json_loadb(text, len, JSON_REJECT_DUPLICATES, &why);
	if (!root)
		return err_set(err, ERR_CORRUPT, STATE_FILE " is not JSON (near byte %d)", why.position);
	int r = parse_root(root, ret, err);
	json_decref(root);
	return r;
}

int sandbox_state_read(struct sandbox_dir *d, struct sandbox_state *ret, struct err *err)
{
	return sandbox_state_load(d->fd, ret, err) < 0 ? err_wrap(err, "sandbox %s", d->id) : 0;
}
