/* SPDX-License-Identifier: Apache-2.0 */
/* bulkhead run: one command in a fresh sandbox, without a daemon. */
#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/text.h"
#include "isolate/isolate.h"
#include "policy/request.h"
#include "program/bulkhead/reap.h"
#include "program/bulkhead/run-options.h"
#include "program/bulkhead/run-report.h"
#include "program/bulkhead/terminal.h"
#include "sandbox/sandbox.h"
#include "store/state.h"

struct run {
	struct globals *globals;
	struct run_options options;
	char **argv;
	struct state *state;
	struct sandbox_dir *dir;
	struct policy *policy;
	const struct grants *grants;   /* the sandbox's */
	int id_range_fd;
	struct loop *loop;
	struct loop_io *signals;
	int signal_fd;
	struct sandbox *sandbox;
	struct execution *execution;
	bool tty;
	bool ready;
	struct sandbox_state shown;    /* state.json */
	struct run_report report;
	int status;
};

/* ---- state shown by `ls` ---- */

static int write_state(struct run *r, struct err *err)
{
	return sandbox_state_write(r->dir, &r->shown, err);
}

static void show_policy(struct run *r, const struct policy *p)
{
	char hash[POLICY_HASH_SIZE * 2 + 1];
	text_hex(p->hash, POLICY_HASH_SIZE, hash);
	mem_free(r->shown.policy_name);
	mem_free(r->shown.policy_hash);
	r->shown.policy_name = mem_strdup(p->name ? p->name : "");
	r->shown.policy_hash = mem_strdup(hash);
}

static void fill_state(struct run *r)
{
	r->shown = (struct sandbox_state){
		.phase = PHASE_STARTING, .created_ns = time_realtime_ns(), .supervisor_pid = getpid(), .level = ISOLATION_CONTAINER,
		.exit_status = -1,
	};
	show_policy(r, r->policy);
	size_t n = 0;
	while (r->argv[n])
		n++;
	r->shown.argv = mem_alloc_array(n + 1, sizeof(char *));
	for (size_t i = 0; i < n; i++)
		r->shown.argv[i] = mem_strdup(r->argv[i]);
	if (r->policy->n_mounts > 0 && r->policy->mounts[0].mode == MOUNT_COPY)
		r->shown.workdir_source = mem_strdup(r->policy->mounts[0].source);
}

/* ---- the command ---- */

static void on_exit_status(void *ctx, const struct execution_result *result)
{
	struct run *r = ctx;
	r->execution = NULL;
	r->report.exec = *result;
	r->report.executed = true;
	terminal_restore();
	sandbox_end(r->sandbox, REASON_NONE);
}

/* Asked for at once: the sandbox holds it back until all stands and its start is on the record. */
static void ask(struct run *r)
{
	static const struct execution_ops ops = { .on_exit = on_exit_status };
	struct err err;
	char **env = run_options_env(&r->options, r->grants, sandbox_id(r->sandbox), policy_inspects(r->policy), r->tty);
	struct execution_spec spec = {
		.argv = r->argv, .envp = env, .cwd = sandbox_workdir(r->sandbox), .tty = r->tty,
		.stdin_fd = fd_dup_nonblock(STDIN_FILENO), .stdout_fd = fd_dup_nonblock(STDOUT_FILENO),
		.stderr_fd = r->tty ? -1 : fd_dup_nonblock(STDERR_FILENO),
	};
	terminal_size(&spec.rows, &spec.columns);
	if (r->tty)
		terminal_raw();
	r->execution = sandbox_exec(r->sandbox, &spec, &ops, r, &err);
	if (!r->execution)
		sandbox_abort(r->sandbox, &err);
	for (size_t i = 0; env[i]; i++)
		mem_free(env[i]);
	mem_free(env);
}

static void on_ready(void *ctx)
{
	struct run *r = ctx;
	struct err err;
	r->ready = true;
	r->shown.phase = PHASE_RUNNING;
	if (write_state(r, &err) < 0)
		sandbox_abort(r->sandbox, &err);
}

static void on_policy(void *ctx, const struct policy *p)
{
	struct run *r = ctx;
	struct err err;
	show_policy(r, p);
	if (write_state(r, &err) < 0)
		sandbox_abort(r->sandbox, &err);
}

static void on_denied(void *ctx, const struct sandbox_denial *d)
{
	run_report_denied(&((struct run *)ctx)->report, d);
}

static void on_canary(void *ctx, const struct sandbox_canary *c)
{
	run_report_canary(&((struct run *)ctx)->report, c);
}

static int exit_status(void *ctx, const struct sandbox_result *result)
{
	return run_report_status(&((struct run *)ctx)->report, result);
}

static void on_ended(void *ctx, const struct sandbox_result *result)
{
	struct run *r = ctx;
	struct err err;
	terminal_restore();
	r->status = run_report_status(&r->report, result);
	r->shown.phase = PHASE_ENDED;
	r->shown.ended_ns = time_realtime_ns();
	r->shown.level = result->level;
	r->shown.exit_status = r->status;
	r->shown.end_reason = result->end_reason;
	r->shown.files_changed = result->files_added + result->files_modified + result->files_deleted;
	r->shown.egress_allowed = result->egress_allowed;
	r->shown.egress_denied = result->egress_denied;
	if (write_state(r, &err) < 0 || (result->clean && state_sandbox_ended(r->state, r->dir, &err) < 0))
		err_print("bulkhead run", &err);
	run_report_print(&r->report, result, r->globals, r->argv, r->status);
	loop_quit(r->loop, 1);
}

/* ---- signals ---- */

/* `bulkhead kill` marks its SIGTERM, so that it isn't taken for one meant for the command. */
static bool is_kill_order(const struct signalfd_siginfo *si)
{
	return si->ssi_signo == SIGTERM && si->ssi_code == SI_QUEUE && (uint32_t)si->ssi_int == SANDBOX_KILL_COOKIE;
}

static void forward(struct run *r, int signal_number)
{
	if (r->execution && r->ready) {
		sandbox_record_signal(r->sandbox, signal_number, true);
		execution_signal(r->execution, signal_number);
		return;
	}
	/* Nothing runs yet: the wish is clear. */
	sandbox_end(r->sandbox, REASON_KILLED);
}

static void on_signal(void *ctx, int fd, int ready)
{
	struct run *r = ctx;
	struct signalfd_siginfo si;
	while (read(fd, &si, sizeof(si)) == (ssize_t)sizeof(si)) {
		uint16_t rows, columns;
		if (is_kill_order(&si)) {
			sandbox_end(r->sandbox, REASON_KILLED);
		} else if (si.ssi_signo == SIGWINCH) {
			terminal_size(&rows, &columns);
			if (r->execution && r->tty)
				execution_resize(r->execution, rows, columns);
		} else {
			forward(r, (int)si.ssi_signo);
		}
	}
}

static int watch_signals(struct run *r, struct err *err)
{
	r->signal_fd = loop_signalfd(err, SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGUSR1, SIGUSR2, SIGWINCH, 0);
	if (r->signal_fd < 0)
		return -1;
	r->signals = loop_io_add(r->loop, r->signal_fd, LOOP_READ, on_signal, r);
	return 0;
}

/* ---- the whole ---- */

static int check_isolation(const struct run *r, struct err *err)
{
	enum isolation_level asked = ISOLATION_CONTAINER;
	if (!str_eq(r->options.isolation, "auto"))
		isolation_level_parse(r->options.isolation, &asked);
	if (asked < r->policy->minimum && !str_eq(r->options.isolation, "auto"))
		return err_set(err, ERR_DENIED, "the policy asks for at least %s, and --isolation %s is weaker; leave the option out or take a stronger level",
			isolation_level_name(r->policy->minimum), r->options.isolation);
	if (asked > ISOLATION_CONTAINER || r->policy->minimum > ISOLATION_CONTAINER)
		return err_set(err, ERR_UNSUPPORTED, "%s isolation is asked for and this version has only `container`; nothing was run (a weaker box is never given instead)",
			isolation_level_name(asked > r->policy->minimum ? asked : r->policy->minimum));
	return 0;
}

/* RLIMIT_NOFILE in the box can't exceed what this process may have. */
static int check_open_files(const struct policy_limits *l, struct err *err)
{
	struct rlimit now;
	if (l->open_files == POLICY_UNLIMITED || getrlimit(RLIMIT_NOFILE, &now) < 0 || now.rlim_max >= l->open_files)
		return 0;
	struct rlimit more = { .rlim_cur = now.rlim_cur, .rlim_max = l->open_files };
	if (setrlimit(RLIMIT_NOFILE, &more) == 0)
		return 0;
	return err_set(err, ERR_UNSUPPORTED, "the limit of %llu open files can't be given: this shell itself may have only %llu (ulimit -Hn); ask for --open-files %llu",
		(unsigned long long)l->open_files, (unsigned long long)now.rlim_max, (unsigned long long)now.rlim_max);
}

static int write_policy(struct run *r, struct err *err)
{
	cleanup_free char *json = policy_to_json(r->policy);
	return fd_replace_file_at(sandbox_dir_fd(r->dir), SANDBOX_POLICY_FILE, json, strlen(json), 0600, false, err);
}

static int prepare(struct run *r, struct sandbox_config *config, struct err *err)
{
	char id[SANDBOX_ID_LEN + 1];
	if (run_options_policy(&r->options, &r->policy, err) < 0 || check_isolation(r, err) < 0)
		return -1;
	sandbox_id_new(id);
	if (run_options_config(&r->options, r->policy, id, config, err) < 0)
		return -1;
	if (config->spec.privileged && state_id_range_reserve(&config->spec.host_id_base, &r->id_range_fd, err) < 0)
		return -1;
	if (spec_validate(&config->spec, err) < 0 || check_open_files(&config->spec.limits, err) < 0)
		return -1;
	const struct isolate_backend *backend = isolate_find(ISOLATION_CONTAINER);
	if (backend->check && backend->check(&config->spec, err) < 0)
		return -1;
	if (state_open(r->globals->state, &r->state, err) < 0 || reap_stale(r->state, false, NULL, NULL, err) < 0)
		return -1;
	if (grants_new(r->policy, state_dirfd(r->state), &config->grants, err) < 0 ||
		run_options_check_variables(&r->options, config->grants, err) < 0)
		return -1;
	r->grants = config->grants;
	if (state_sandbox_create(r->state, id, &r->dir, err) < 0 || grants_reopen(config->grants, err) < 0)
		return -1;
	config->dir = r->dir;
	fill_state(r);
	return 0;
}

/* While the launcher works; the live entry was there before it. */
static void write_files(struct run *r)
{
	struct err err;
	if (write_state(r, &err) < 0 || write_policy(r, &err) < 0)
		sandbox_abort(r->sandbox, &err);
}

static int execute(struct run *r, struct err *err)
{
	static const struct sandbox_ops ops = { .on_ready = on_ready, .on_denied = on_denied, .on_canary = on_canary, .on_policy = on_policy,
		.exit_status = exit_status, .on_ended = on_ended };
	struct sandbox_config config = { 0 };
	r->loop = loop_new();
	if (watch_signals(r, err) < 0 || prepare(r, &config, err) < 0) {
		sandbox_config_done(&config);
		return -1;
	}
	r->tty = terminal_interactive() && !r->options.no_tty;
	r->sandbox = sandbox_start(r->loop, &config, &ops, r);
	ask(r);
	write_files(r);
	loop_run(r->loop);
	return 0;
}

static void release(struct run *r)
{
	sandbox_free(r->sandbox);
	loop_io_remove(r->signals);
	fd_close(&r->signal_fd);
	if (r->loop)
		loop_free(r->loop);
	sandbox_state_done(&r->shown);
	sandbox_dir_free(r->dir);
	state_free(r->state);
	fd_close(&r->id_range_fd);
	policy_free(r->policy);
	run_options_done(&r->options);
}

static int run(struct globals *g, int argc, char **argv)
{
	struct run r = { .globals = g, .signal_fd = -1, .id_range_fd = -1, .status = EXIT_FAILED };
	struct err err = ERR_INIT;
	bool help;
	if (run_options_parse(&r.options, g, argc, argv, &r.argv, &help, &err) < 0)
		return command_fail(&command_run, &err);
	if (help)
		return command_finish(&command_run, 0);
	if (execute(&r, &err) < 0)
		run_report_refused(&err, g);
	release(&r);
	return r.status;
}

const struct command command_run = {
	.name = "run",
	.summary = "run one command in a fresh sandbox",
	.usage = run_usage,
	.run = run,
};
