/* SPDX-License-Identifier: Apache-2.0 */
#include "program/bulkhead/run-report.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "audit/text.h"
#include "base/fd.h"
#include "base/mem.h"
#include "base/text.h"

enum { STATUS_TIME = 124, STATUS_NOT_EXECUTABLE = 126, STATUS_NOT_FOUND = 127, STATUS_LIMIT = 137 };

void run_report_denied(struct run_report *r, const struct sandbox_denial *d)
{
	for (unsigned i = 0; i < r->n_denials; i++)
		if (r->denials[i].port == d->port && r->denials[i].reason == d->reason && str_eq(r->denials[i].host, d->host)) {
			r->denials[i].count++;
			return;
		}
	if (r->n_denials == RUN_DENIALS_SHOWN) {
		r->denials_beyond++;
		return;
	}
	snprintf(r->denials[r->n_denials].host, sizeof(r->denials[0].host), "%s", d->host);
	r->denials[r->n_denials].port = d->port;
	r->denials[r->n_denials].reason = d->reason;
	r->denials[r->n_denials++].count = 1;
}

void run_report_canary(struct run_report *r, const struct sandbox_canary *c)
{
	if (r->canary.secret[0])
		return;
	snprintf(r->canary.secret, sizeof(r->canary.secret), "%s", c->secret);
	snprintf(r->canary.host, sizeof(r->canary.host), "%s", c->host);
	r->canary.port = c->port;
}

static bool limit_seen(const struct sandbox_result *s, enum reason limit)
{
	return s->limits_hit & SANDBOX_LIMIT_BIT(limit);
}

/* The kernel's out-of-memory killer took the command itself. */
static bool killed_for_memory(const struct run_report *r, const struct sandbox_result *s)
{
	return limit_seen(s, REASON_LIMIT_MEMORY) && r->executed && r->exec.started && !r->exec.lost && WIFSIGNALED(r->exec.wait_status) &&
		WTERMSIG(r->exec.wait_status) == SIGKILL;
}

static int status_of_exec(const struct execution_result *e)
{
	if (!e->started)
		return e->exec_error == ENOENT || e->exec_error == ENOTDIR ? STATUS_NOT_FOUND : STATUS_NOT_EXECUTABLE;
	return WIFSIGNALED(e->wait_status) ? 128 + WTERMSIG(e->wait_status) : WEXITSTATUS(e->wait_status);
}

int run_report_status(const struct run_report *r, const struct sandbox_result *s)
{
	if (s->end_reason == REASON_LIMIT_TIME || s->end_reason == REASON_LIMIT_IDLE)
		return STATUS_TIME;
	if (s->end_reason == REASON_LIMIT_MEMORY || s->end_reason == REASON_LIMIT_OUTPUT || s->end_reason == REASON_KILLED ||
		s->end_reason == REASON_CANARY)
		return STATUS_LIMIT;
	if (s->failed || !r->executed || r->exec.lost)
		return EXIT_FAILED;
	int status = killed_for_memory(r, s) ? STATUS_LIMIT : status_of_exec(&r->exec);
	return status == 0 && r->exec.write_error ? EXIT_FAILED : status;
}

static void print_reason(enum reason reason)
{
	struct err err;
	err_set(&err, ERR_LIMIT, "%s: %s", reason_name(reason), reason_text(reason));
	err_print("bulkhead run", &err);
}

static void print_sentence(const char *text)
{
	struct err err;
	err_set(&err, ERR_NONE, "%s", text);
	err_print("bulkhead run", &err);
}

static void print_limits(const struct sandbox_result *s)
{
	for (enum reason l = REASON_BUDGET_RATE; l <= REASON_LIMIT_OUTPUT; l++)
		if (limit_seen(s, l))
			print_reason(l);
	if (s->end_reason == REASON_KILLED || s->end_reason == REASON_CANARY)
		print_reason(s->end_reason);
}

static void explain_not_started(const struct run_report *r, char *const *argv, struct err *err)
{
	char name[512];
	text_escape(argv[0], strlen(argv[0]), name, sizeof(name));
	if (r->exec.exec_error == ENOENT)
		err_set(err, ERR_NOT_FOUND, "there is no command \"%s\" in the sandbox; it sees this machine's /usr and the working copy, and not this shell's PATH "
					    "(--env PATH=... sets one)", name);
	else
		err_sys(err, r->exec.exec_error, "cannot execute \"%s\" in the sandbox", name);
}

static void explain_output_lost(const struct run_report *r, const struct sandbox_result *s, struct err *err)
{
	err_sys(err, r->exec.write_error, "not all of the command's output could be written");
	err_set(err, ERR_SYSTEM, "%s; `bulkhead log %s --output` has what was recorded", err->text, s->id);
}

/* What went wrong, the gravest first; false: nothing did. */
static bool failure(const struct run_report *r, const struct sandbox_result *s, char *const *argv, struct err *err)
{
	if (s->failed)
		*err = s->err;
	else if (r->executed && !r->exec.started && !r->exec.lost)
		explain_not_started(r, argv, err);
	else if (r->exec.write_error)
		explain_output_lost(r, s, err);
	else
		return false;
	return true;
}

static const char *plural(uint64_t n)
{
	return n == 1 ? "" : "s";
}

/* The first is named: who sees the program inside fail learns the reason here. All are in --json and on the record. */
static int write_denials(const struct run_report *r, char *out, size_t out_len)
{
	char host[300], port[8] = "";
	if (r->n_denials == 0)
		return 0;
	uint64_t more = r->n_denials - 1 + r->denials_beyond;
	text_escape(r->denials[0].host, strlen(r->denials[0].host), host, sizeof(host));
	if (r->denials[0].port)
		snprintf(port, sizeof(port), ":%u", r->denials[0].port);
	return more ? snprintf(out, out_len, " (%s%s %s, and %llu more)", host, port, reason_name(r->denials[0].reason), (unsigned long long)more)
		    : snprintf(out, out_len, " (%s%s %s)", host, port, reason_name(r->denials[0].reason));
}

static int write_secrets(const struct run_report *r, const struct sandbox_result *s, char *out, size_t out_len)
{
	char host[300], port[8] = "";
	int n = 0;
	if (s->grants)
		n = snprintf(out, out_len, ", %zu secret%s granted", s->grants->n, plural(s->grants->n));
	if (s->canaries == 0)
		return n;
	text_escape(r->canary.host, strlen(r->canary.host), host, sizeof(host));
	if (r->canary.port)
		snprintf(port, sizeof(port), ":%u", r->canary.port);
	return n + snprintf(out + n, out_len - (size_t)n, ", %llu canar%s (%s on its way to %s%s)", (unsigned long long)s->canaries, s->canaries == 1 ? "y" : "ies",
		r->canary.secret, host, port);
}

static void print_line(const struct run_report *r, const struct sandbox_result *s, int status)
{
	char time_text[TEXT_SIZE_MAX], line[2048];
	uint64_t files = s->files_added + s->files_modified + s->files_deleted;
	int n = snprintf(line, sizeof(line), "bulkhead: %s %s %s, exit %d, %llu file%s changed", s->id, isolation_level_name(s->level),
		text_format_duration(s->total_ns, time_text), status, (unsigned long long)files, plural(files));
	if (s->files_flagged)
		n += snprintf(line + n, sizeof(line) - (size_t)n, " (%llu flagged)", (unsigned long long)s->files_flagged);
	n += snprintf(line + n, sizeof(line) - (size_t)n, ", egress %llu allowed %llu denied", (unsigned long long)s->egress_allowed,
		(unsigned long long)s->egress_denied);
	n += write_denials(r, line + n, sizeof(line) - (size_t)n);
	n += write_secrets(r, s, line + n, sizeof(line) - (size_t)n);
	if (s->syscalls_denied)
		n += snprintf(line + n, sizeof(line) - (size_t)n, ", %llu system call%s refused", (unsigned long long)s->syscalls_denied,
			plural(s->syscalls_denied));
	if (files)
		n += snprintf(line + n, sizeof(line) - (size_t)n, "; bulkhead diff %s", s->id);
	line[n++] = '\n';
	fd_write_full(STDERR_FILENO, line, (size_t)n);
}

static json_t *denials_json(const struct run_report *r)
{
	json_t *a = json_array();
	for (unsigned i = 0; i < r->n_denials; i++)
		json_array_append_new(a, json_pack("{s:o,s:i,s:s,s:I}", "host", audit_text_json(r->denials[i].host, strlen(r->denials[i].host)), "port",
			(int)r->denials[i].port, "reason", reason_name(r->denials[i].reason), "count", (json_int_t)r->denials[i].count));
	return a;
}

static json_t *limits_json(const struct sandbox_result *s)
{
	json_t *a = json_array();
	for (enum reason l = REASON_BUDGET_RATE; l <= REASON_LIMIT_OUTPUT; l++)
		if (limit_seen(s, l))
			json_array_append_new(a, json_string(reason_name(l)));
	return a;
}

static json_t *secrets_json(const struct sandbox_result *s)
{
	json_t *a = json_array();
	for (size_t i = 0; s->grants && i < s->grants->n; i++)
		json_array_append_new(a, json_pack("{s:s,s:I,s:b}", "secret", s->grants->list[i].name, "generation",
			(json_int_t)s->grants->list[i].about.generation, "revoked", (int)s->grants->list[i].revoked));
	return a;
}

static json_t *error_json(const struct err *err)
{
	return json_pack("{s:s,s:o}", "code", err_code_name(err->code), "text", audit_text_json(err->text, strlen(err->text)));
}

/* One compact document on a line of its own; takes the reference. */
static void print_last_line(json_t *o)
{
	char *text = json_dumps(o, JSON_COMPACT | JSON_SORT_KEYS | JSON_ENSURE_ASCII);
	json_decref(o);
	if (!text)
		return;
	fd_write_full(STDERR_FILENO, text, strlen(text));
	fd_write_full(STDERR_FILENO, "\n", 1);
	free(text);
}

static void print_json(const struct run_report *r, const struct sandbox_result *s, const struct err *err, int status)
{
	json_t *o = json_pack("{s:s,s:s,s:i,s:s,s:b,s:I,s:I,s:o,s:o}", "id", s->id, "level", isolation_level_name(s->level), "exit_status", status, "reason",
		reason_name(s->end_reason), "clean", s->clean, "ready_ns", (json_int_t)s->ready_after_ns, "total_ns", (json_int_t)s->total_ns, "limits",
		limits_json(s), "denials", denials_json(r));
	json_object_set_new(o, "denial_kinds_not_listed", json_integer((json_int_t)r->denials_beyond));
	json_object_set_new(o, "files", json_pack("{s:I,s:I,s:I,s:I,s:I}", "added", (json_int_t)s->files_added, "modified", (json_int_t)s->files_modified,
		"deleted", (json_int_t)s->files_deleted, "flagged", (json_int_t)s->files_flagged, "bytes", (json_int_t)s->files_bytes));
	json_object_set_new(o, "egress", json_pack("{s:I,s:I,s:I,s:I}", "allowed", (json_int_t)s->egress_allowed, "denied", (json_int_t)s->egress_denied,
		"bytes_up", (json_int_t)s->egress_bytes_up, "bytes_down", (json_int_t)s->egress_bytes_down));
	json_object_set_new(o, "usage", json_pack("{s:I,s:I,s:I,s:I}", "cpu_ns", (json_int_t)s->cpu_ns, "memory_peak", (json_int_t)s->memory_peak,
		"output_bytes", (json_int_t)r->exec.output_bytes, "syscalls_denied", (json_int_t)s->syscalls_denied));
	json_object_set_new(o, "secrets", secrets_json(s));
	json_object_set_new(o, "canaries", json_integer((json_int_t)s->canaries));
	json_object_set_new(o, "policy_generation", json_integer((json_int_t)s->policy_generation));
	if (s->helper_complaint)
		json_object_set_new(o, "helper_error", audit_text_json(s->helper_complaint, strlen(s->helper_complaint)));
	if (err)
		json_object_set_new(o, "error", error_json(err));
	print_last_line(o);
}

void run_report_refused(const struct err *err, const struct globals *g)
{
	err_print("bulkhead run", err);
	if (g->json)
		print_last_line(json_pack("{s:i,s:o}", "exit_status", EXIT_FAILED, "error", error_json(err)));
}

void run_report_print(const struct run_report *r, const struct sandbox_result *s, const struct globals *g, char *const *argv, int status)
{
	struct err err;
	bool failed = failure(r, s, argv, &err);
	print_limits(s);
	if (s->helper_complaint)
		print_sentence(s->helper_complaint);
	if (failed)
		err_print("bulkhead run", &err);
	if (g->json)
		print_json(r, s, failed ? &err : NULL, status);
	else if (!g->quiet)
		print_line(r, s, status);
}
