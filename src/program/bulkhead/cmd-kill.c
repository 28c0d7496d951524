/* SPDX-License-Identifier: Apache-2.0 */
/* bulkhead kill: ends sandboxes now. First by their supervisor, which tears down and records; when that doesn't answer, without
 * it. */
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/pidfd.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/mem.h"
#include "base/text.h"
#include "program/bulkhead/command.h"
#include "program/bulkhead/reap.h"
#include "sandbox/sandbox.h"
#include "store/state.h"

#define END_WAIT_NS (10 * NS_PER_S)
#define KILL_WAIT_NS (2 * NS_PER_S)
#define BEGIN_WAIT_MS 1000 /* for a supervisor that has its lock and not yet written its pid */

struct target {
	char id[SANDBOX_ID_LEN + 1];
	int pidfd; /* of its supervisor; -1 when that is gone */
	const char *how;
	bool nothing_done; /* it had ended before: no duration to tell */
	uint64_t started_ns, took_ns;
	struct err err;
};

struct kill_run {
	struct globals *g;
	struct state *state;
	bool all;
	struct target *targets;
	size_t n;
};

static int set_all(void *ctx, const char *value, struct err *err)
{
	((struct kill_run *)ctx)->all = true;
	return 0;
}

static void add_target(struct kill_run *k, const char *id)
{
	k->targets = mem_grow_array(k->targets, k->n + 1, sizeof(*k->targets));
	struct target *t = &k->targets[k->n++];
	*t = (struct target){ .pidfd = -1, .err = ERR_INIT };
	memcpy(t->id, id, strlen(id) + 1);
}

static int add_live(void *ctx, const char *id, const struct sandbox_state *st)
{
	struct kill_run *k = ctx;
	if (state_is_live(k->state, id))
		add_target(k, id);
	return 0;
}

static int add_named(struct kill_run *k, const char *name, struct err *err)
{
	struct sandbox_dir *d;
	if (state_sandbox_open(k->state, name, false, &d, err) < 0)
		return -1;
	add_target(k, sandbox_dir_id(d));
	sandbox_dir_free(d);
	return 0;
}

/* Its pid, as it wrote it itself; waits a moment for one that is just beginning. */
static pid_t supervisor_pid(struct kill_run *k, const char *id, struct err *err)
{
	struct sandbox_dir *d;
	struct sandbox_state st;
	int r = -1;
	if (state_sandbox_open(k->state, id, false, &d, err) < 0)
		return -1;
	for (int ms = 0; r < 0 && ms < BEGIN_WAIT_MS; ms += 10) {
		r = sandbox_state_read(d, &st, err);
		if (r < 0)
			poll(NULL, 0, 10);
	}
	sandbox_dir_free(d);
	if (r < 0)
		return -1;
	pid_t pid = st.supervisor_pid;
	sandbox_state_done(&st);
	return pid > 0 ? pid : err_set(err, ERR_CORRUPT, "the state of sandbox %s names no supervisor", id);
}

static int signal_supervisor(int pidfd, int number)
{
	siginfo_t si = { .si_signo = number, .si_code = SI_QUEUE };
	si.si_pid = getpid();
	si.si_uid = getuid();
	si.si_value.sival_int = (int)SANDBOX_KILL_COOKIE;
	return (int)syscall(SYS_pidfd_send_signal, pidfd, number, &si, 0);
}

/* A pid alone may be someone else's by now. While the lock is held its owner lives, so the pid in its state is its own: looked
 * at after the pidfd was opened, that can't change any more. */
static int order_end(struct kill_run *k, struct target *t)
{
	t->started_ns = time_monotonic_ns();
	int held = state_sandbox_held(k->state, t->id, &t->err);
	if (held <= 0)
		return held;
	pid_t pid = supervisor_pid(k, t->id, &t->err);
	if (pid < 0)
		return -1;
	cleanup_fd int pidfd = (int)syscall(SYS_pidfd_open, pid, 0);
	held = state_sandbox_held(k->state, t->id, &t->err);
	if (held <= 0)
		return held;
	if (pidfd < 0 || signal_supervisor(pidfd, SIGTERM) < 0)
		return err_sys(&t->err, errno, "cannot signal the supervisor of sandbox %s (process %d)", t->id, (int)pid);
	/* One that was stopped on its terminal could not obey. */
	signal_supervisor(pidfd, SIGCONT);
	t->pidfd = fd_steal(&pidfd);
	return 0;
}

static bool wait_gone(int pidfd, uint64_t until_ns)
{
	struct pollfd p = { .fd = pidfd, .events = POLLIN };
	for (uint64_t now = time_monotonic_ns(); now < until_ns; now = time_monotonic_ns())
		if (poll(&p, 1, (int)((until_ns - now) / NS_PER_MS) + 1) > 0)
			return true;
	return false;
}

static int end_target(struct kill_run *k, struct target *t)
{
	bool was_live = state_is_live(k->state, t->id);
	t->how = was_live ? "was lost, cleaned up" : "had already ended";
	t->nothing_done = !was_live && t->pidfd < 0;
	if (t->pidfd >= 0) {
		t->how = "ended";
		if (!wait_gone(t->pidfd, t->started_ns + END_WAIT_NS)) {
			t->how = "killed, its supervisor did not answer";
			signal_supervisor(t->pidfd, SIGKILL);
			if (!wait_gone(t->pidfd, time_monotonic_ns() + KILL_WAIT_NS))
				return err_set(&t->err, ERR_TIMEOUT,
					"the supervisor of sandbox %s can't be killed; it hangs in the kernel", t->id);
		}
	}
	/* Its box dies with a supervisor; this verifies it, removes the cgroups and ends the record. */
	int r = state_is_live(k->state, t->id) ? reap_one(k->state, t->id, false, NULL, NULL, &t->err) : 0;
	t->took_ns = time_monotonic_ns() - t->started_ns;
	return r;
}

/* All are told before any is waited for. */
static void kill_all(struct kill_run *k)
{
	for (size_t i = 0; i < k->n; i++)
		order_end(k, &k->targets[i]);
	for (size_t i = 0; i < k->n; i++)
		if (k->targets[i].err.code == ERR_NONE)
			end_target(k, &k->targets[i]);
}

static json_t *target_json(const struct target *t)
{
	if (t->err.code != ERR_NONE)
		return json_pack("{s:s, s:s, s:s}", "id", t->id, "error", err_code_name(t->err.code), "text", t->err.text);
	return json_pack("{s:s, s:s, s:I}", "id", t->id, "how", t->how, "duration_ns", (json_int_t)t->took_ns);
}

static int print_targets(const struct kill_run *k)
{
	int status = 0;
	json_t *list = json_array();
	for (size_t i = 0; i < k->n; i++) {
		const struct target *t = &k->targets[i];
		char took[TEXT_SIZE_MAX];
		json_array_append_new(list, target_json(t));
		if (t->err.code != ERR_NONE)
			status = command_fail(&command_kill, &t->err);
		else if (!k->g->json && !k->g->quiet && t->nothing_done)
			printf("%s: %s\n", t->id, t->how);
		else if (!k->g->json && !k->g->quiet)
			printf("%s: %s (%s)\n", t->id, t->how, text_format_duration(t->took_ns, took));
	}
	if (k->n == 0 && !k->g->json && !k->g->quiet)
		printf("nothing runs\n");
	json_t *root = json_pack("{s:o}", "killed", list);
	if (k->g->json) {
		int printed = command_print_json(&command_kill, root);
		return printed ? printed : status;
	}
	json_decref(root);
	return command_finish(&command_kill, status);
}

static int choose(struct kill_run *k, char **ids, int n, struct err *err)
{
	if (k->all == (n > 0))
		return err_set(err, ERR_USAGE,
			"kill needs either ids of sandboxes or --all: bulkhead kill ID…; `bulkhead ls` lists them");
	if (state_open(k->g->state, &k->state, err) < 0)
		return -1;
	if (k->all)
		return state_list(k->state, add_live, k, err);
	for (int i = 0; i < n; i++)
		if (add_named(k, ids[i], err) < 0)
			return -1;
	return 0;
}

static int run(struct globals *g, int argc, char **argv)
{
	struct kill_run k = { .g = g };
	const struct option_spec specs[] = { { 'a', "all", NULL, set_all }, { 0 } };
	struct err err = ERR_INIT;
	char **rest;
	int n, status;
	bool help;
	if (command_options(&command_kill, g, specs, &k, false, argc, argv, &rest, &n, &help, &err) < 0)
		return command_fail(&command_kill, &err);
	if (help)
		return command_finish(&command_kill, 0);
	if (choose(&k, rest, n, &err) < 0) {
		status = command_fail(&command_kill, &err);
	} else {
		kill_all(&k);
		status = print_targets(&k);
	}
	for (size_t i = 0; i < k.n; i++)
		fd_close(&k.targets[i].pidfd);
	mem_free(k.targets);
	state_free(k.state);
	return status;
}

const struct command command_kill = {
	.name = "kill",
	.summary = "end sandboxes now",
	.usage = "usage: bulkhead kill ID…|--all [--json]\n\n"
		 "Tells each sandbox's supervisor to end it (everything in it is killed at once; changes and record are kept), "
		 "waits up to 10 s,\n"
		 "then does it without the supervisor. Prints what was done and how long it took.\n\n"
		 "  -a, --all    all that run\n"
		 "      --json   one JSON document\n",
	.run = run,
};
