/* SPDX-License-Identifier: Apache-2.0 */
/* What the supervisor puts on the record, and how each event looks. Strings that came from the box are stored as text_json does: UTF-8 as it is, else base64. */
#include "sandbox/internal.h"

#include <string.h>
#include <unistd.h>
#include <sys/wait.h>

#include <sodium.h>

#include "audit/text.h"
#include "base/fd.h"
#include "base/mem.h"
#include "base/text.h"

static void on_sent_failed(struct sandbox *s, const struct err *err)
{
	struct err e = *err;
	err_wrap(&e, "the record can't be written, so nothing may run");
	if (s->result.end_reason == REASON_NONE)
		s->result.end_reason = REASON_RECORD_UNAVAILABLE;
	sandbox_fail(s, &e);
	/* An end that can't be recorded is not waited for. */
	if (s->ending.collected) {
		s->ending.recorded = true;
		teardown_step(s);
	}
}

void events_send(struct sandbox *s, enum audit_type type, json_t *fields, audit_done_fn done, void *ctx)
{
	struct err err;
	if (!s->audit) {
		json_decref(fields);
		return;
	}
	if (audit_client_send(s->audit, type, fields, NULL, 0, done, ctx, &err) < 0)
		on_sent_failed(s, &err);
}

/*
 * An event has a ceiling (AUDIT_MESSAGE_MAX), a command line may be longer. Strings beyond the budget are recorded by how many they are, their length and
 * one digest over all of them, each with its NUL; a single long one also by its beginning.
 */
#define STRINGS_BUDGET (48u * 1024u)
#define STRING_SHOWN 512u

static json_t *rest_json(char *const *rest)
{
	crypto_generichash_state state;
	uint8_t digest[32];
	char hex[65];
	uint64_t bytes = 0, count = 0;
	size_t shown = strnlen(rest[0], STRING_SHOWN);
	crypto_generichash_init(&state, NULL, 0, sizeof(digest));
	for (; rest[count]; count++) {
		size_t len = strlen(rest[count]);
		crypto_generichash_update(&state, (const unsigned char *)rest[count], len + 1);
		bytes += len;
	}
	crypto_generichash_final(&state, digest, sizeof(digest));
	text_hex(digest, sizeof(digest), hex);
	/* Not in the middle of a character. */
	while (shown > 0 && ((unsigned char)rest[0][shown] & 0xc0) == 0x80)
		shown--;
	return json_pack("{s:o,s:I,s:I,s:s}", "begins", audit_text_json(rest[0], shown), "strings", (json_int_t)count, "bytes", (json_int_t)bytes,
		"blake2b", hex);
}

static json_t *strings_json(char *const *list)
{
	json_t *a = json_array();
	size_t used = 0;
	for (size_t i = 0; list && list[i]; i++) {
		size_t len = strlen(list[i]);
		used += len + 8;
		if (used > STRINGS_BUDGET) {
			json_array_append_new(a, rest_json(list + i));
			break;
		}
		json_array_append_new(a, audit_text_json(list[i], len));
	}
	return a;
}

static json_t *limit_json(uint64_t value)
{
	return value == POLICY_UNLIMITED ? json_string("unlimited") : json_integer((json_int_t)value);
}

static json_t *limits_json(const struct policy_limits *l)
{
	return json_pack("{s:o,s:o,s:o,s:o,s:o,s:o,s:o,s:o,s:o,s:o,s:o}", "cpus_milli", limit_json(l->cpus_milli), "memory", limit_json(l->memory),
		"processes", limit_json(l->processes), "disk", limit_json(l->disk), "open_files", limit_json(l->open_files), "output",
		limit_json(l->output), "egress_requests", limit_json(l->egress_requests), "egress_bytes", limit_json(l->egress_bytes), "connections",
		limit_json(l->connections), "timeout_ns", limit_json(l->timeout_ns), "idle_ns", limit_json(l->idle_ns));
}

static json_t *mounts_json(const struct sandbox *s)
{
	json_t *a = json_array();
	for (size_t i = 0; i < s->spec.n_mounts; i++)
		json_array_append_new(a, json_pack("{s:o,s:s,s:s}", "source", audit_text_json(s->mounts[i].source, strlen(s->mounts[i].source)),
			"target", s->spec.mounts[i].target, "mode", mount_mode_name(s->spec.mounts[i].mode)));
	return a;
}

void events_start(struct sandbox *s, audit_done_fn done)
{
	char hash[POLICY_HASH_SIZE * 2 + 1];
	text_hex(s->policy->hash, POLICY_HASH_SIZE, hash);
	json_t *f = json_pack("{s:s,s:s,s:s,s:s,s:s,s:s,s:o,s:o,s:I,s:s}", "id", s->spec.id, "level", isolation_level_name(s->result.level),
		"policy_hash", hash, "policy", s->policy->name ? s->policy->name : "", "template",
		s->policy->template_name ? s->policy->template_name : "host", "workdir", s->spec.workdir, "mounts", mounts_json(s), "limits",
		limits_json(&s->spec.limits), "user", (json_int_t)getuid(), "version", BULKHEAD_VERSION);
	events_send(s, AUDIT_SANDBOX_START, f, done, s);
}

void events_ready(struct sandbox *s)
{
	json_t *probes = json_pack("{s:b,s:b}", "egress_refused", s->got_probe, "agent_hello", s->got_hello);
	events_send(s, AUDIT_SANDBOX_READY,
		json_pack("{s:s,s:o,s:I}", "level", isolation_level_name(s->box.level), "probes", probes, "start_ns",
			(json_int_t)s->result.ready_after_ns),
		NULL, NULL);
}

/* Only names of environment variables: values may be confidential. */
static json_t *env_names_json(char *const *envp)
{
	json_t *a = json_array();
	for (size_t i = 0; envp && envp[i]; i++) {
		const char *eq = strchr(envp[i], '=');
		size_t len = eq ? (size_t)(eq - envp[i]) : strlen(envp[i]);
		json_array_append_new(a, audit_text_json(envp[i], len));
	}
	return a;
}

void events_exec_start(struct execution *e, const struct execution_spec *spec, audit_done_fn done)
{
	json_t *f = json_pack("{s:I,s:o,s:o,s:o,s:b}", "execution", (json_int_t)e->id, "argv", strings_json(spec->argv), "env_names",
		env_names_json(spec->envp), "cwd", audit_text_json(spec->cwd, strlen(spec->cwd)), "tty", spec->tty);
	events_send(e->sandbox, AUDIT_EXEC_START, f, done, e);
}

void events_exec_end(struct execution *e)
{
	json_t *f = json_pack("{s:I,s:I,s:I}", "execution", (json_int_t)e->id, "duration_ns", (json_int_t)e->result.duration_ns, "output_bytes",
		(json_int_t)e->result.output_bytes);
	if (e->result.lost)
		json_object_set_new(f, "error", json_string("ended with the sandbox"));
	else if (!e->result.started)
		json_object_set_new(f, "error", json_string(strerrordesc_np(e->result.exec_error)));
	else if (WIFSIGNALED(e->result.wait_status))
		json_object_set_new(f, "signal", json_integer(WTERMSIG(e->result.wait_status)));
	else
		json_object_set_new(f, "exit", json_integer(WEXITSTATUS(e->result.wait_status)));
	events_send(e->sandbox, AUDIT_EXEC_END, f, NULL, NULL);
}

void events_secret(struct sandbox *s, const struct grant *grant, const char *action, bool ok, const char *detail, audit_done_fn done, void *ctx)
{
	if (!grant)
		return;
	json_t *f = json_pack("{s:s,s:s,s:b,s:I}", "secret", grant->name, "action", action, "ok", ok, "generation", (json_int_t)grant->about.generation);
	if (detail)
		json_object_set_new(f, "detail", audit_text_json(detail, strlen(detail)));
	events_send(s, AUDIT_SECRET, f, done, ctx);
}

void events_policy(struct sandbox *s, uint64_t cut, const struct control_asker *by, audit_done_fn done)
{
	char hash[POLICY_HASH_SIZE * 2 + 1];
	uid_t uid;
	pid_t pid;
	text_hex(s->policy->hash, POLICY_HASH_SIZE, hash);
	control_asker_who(by, &uid, &pid);
	events_send(s, AUDIT_POLICY,
		json_pack("{s:I,s:s,s:I,s:s,s:{s:I,s:I}}", "generation", (json_int_t)s->generation, "policy_hash", hash, "cut", (json_int_t)cut, "policy",
			s->policy->name ? s->policy->name : "", "by", "uid", (json_int_t)uid, "pid", (json_int_t)pid),
		done, s);
}

void events_limit(struct sandbox *s, enum reason limit, uint64_t value, bool killed)
{
	events_send(s, AUDIT_LIMIT,
		json_pack("{s:s,s:o,s:s,s:b}", "limit", reason_name(limit), "value", limit_json(value), "reason", reason_text(limit), "killed", killed),
		NULL, NULL);
}

void sandbox_record_signal(struct sandbox *s, int signal_number, bool forwarded)
{
	events_send(s, AUDIT_SIGNAL, json_pack("{s:i,s:b}", "signal", signal_number, "forwarded", forwarded), NULL, NULL);
}

static void on_end_recorded(void *ctx, uint64_t seq, const struct err *err)
{
	struct sandbox *s = ctx;
	s->ending.recorded = true;
	teardown_step(s);
}

void events_end(struct sandbox *s)
{
	const struct sandbox_result *r = &s->result;
	json_t *totals = json_pack("{s:I,s:I,s:I,s:I,s:I,s:I,s:I,s:I,s:I,s:I}", "files_added", (json_int_t)r->files_added, "files_modified",
		(json_int_t)r->files_modified, "files_deleted", (json_int_t)r->files_deleted, "egress_allowed", (json_int_t)r->egress_allowed,
		"egress_denied", (json_int_t)r->egress_denied, "egress_bytes_up", (json_int_t)r->egress_bytes_up, "egress_bytes_down",
		(json_int_t)r->egress_bytes_down, "syscalls_denied", (json_int_t)r->syscalls_denied, "cpu_ns", (json_int_t)r->cpu_ns, "memory_peak",
		(json_int_t)r->memory_peak);
	if (s->inspects)
		json_object_set_new(totals, "canaries", json_integer((json_int_t)r->canaries));
	json_t *f = json_pack("{s:s,s:b,s:b,s:I,s:o}", "reason", reason_name(r->end_reason), "failed", r->failed, "clean", r->clean, "duration_ns",
		(json_int_t)r->total_ns, "totals", totals);
	json_object_set_new(f, "exit_status", json_integer(s->ops.exit_status(s->ctx, r)));
	if (r->failed)
		json_object_set_new(f, "error", audit_text_json(r->err.text, strlen(r->err.text)));
	events_send(s, AUDIT_SANDBOX_END, f, on_end_recorded, s);
}
