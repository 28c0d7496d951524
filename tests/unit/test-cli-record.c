/* SPDX-License-Identifier: Apache-2.0 */
/* ls, log, audit verify, gc and kill on a made-up state folder: no box is needed to show, check, reap or signal. */
#include "unit/audit-fixture.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <sys/wait.h>

#include "store/state.h"

#define ID_A "abcdefghijk1"
#define ID_B "abxdefghijk2"
#define KILL_COOKIE 0x6b696c6c

static const char *program;

struct answer {
	int status;
	char out[16384], err[4096];
	size_t out_len;
};

static void read_back(struct folder *f, const char *name, char *out, size_t room, size_t *ret_len)
{
	size_t len;
	cleanup_free char *text = slurp(f->fd, name, &len);
	assert_true(len < room);
	memcpy(out, text, len + 1);
	if (ret_len)
		*ret_len = len;
}

/* Words of `args` are split by the shell; ids and options only. */
static struct answer bulkhead(struct folder *f, const char *args)
{
	struct answer a;
	char command[1024];
	snprintf(command, sizeof(command), "%s --state %s/state %s >%s/out 2>%s/err", program, f->path, args, f->path, f->path);
	int status = system(command);
	assert_true(WIFEXITED(status));
	a.status = WEXITSTATUS(status);
	read_back(f, "out", a.out, sizeof(a.out), &a.out_len);
	read_back(f, "err", a.err, sizeof(a.err), NULL);
	return a;
}

static void expect(const char *text, const char *part)
{
	if (!strstr(text, part))
		fail_msg("there is no \"%s\" in:\n%s", part, text);
}

static void expect_not(const char *text, const char *part)
{
	if (strstr(text, part))
		fail_msg("there is \"%s\" in:\n%s", part, text);
}

static struct state *open_state(struct folder *f)
{
	struct state *s = NULL;
	struct err err;
	char path[128];
	snprintf(path, sizeof(path), "%s/state", f->path);
	assert_int_equal(state_open(path, &s, &err), 0);
	return s;
}

static struct sandbox_dir *begin(struct state *s, const char *id, enum sandbox_phase phase, uint64_t created_ns)
{
	static char first[] = "npm", second[] = "run \x1b[31mred\xff";
	char *argv[] = { first, second, NULL };
	struct sandbox_dir *d = NULL;
	struct err err;
	struct sandbox_state st = {
		.phase = phase, .created_ns = created_ns, .supervisor_pid = getpid(), .argv = argv, .exit_status = -1
	};
	if (phase == PHASE_ENDED) {
		st.exit_status = 137;
		st.end_reason = REASON_LIMIT_MEMORY;
		st.ended_ns = created_ns + 1;
		st.files_changed = 11;
		st.egress_denied = 22;
	}
	assert_int_equal(state_sandbox_create(s, id, &d, &err), 0);
	assert_int_equal(sandbox_state_write(d, &st, &err), 0);
	return d;
}

static void write_events(int dirfd)
{
	uint64_t cut;
	struct record_writer *w = open_writer(dirfd, &cut);
	append(w, AUDIT_FROM_SUPERVISOR, AUDIT_SANDBOX_START, fields_start(), NULL, 0);
	append(w, AUDIT_FROM_SUPERVISOR, AUDIT_EXEC_START,
		json_pack("{s:i, s:[s,s,{s:s}], s:b}", "execution", 1, "argv", "npm", "in stall\n\x1b[2J", "base64",
			"/w==", "tty", 0),
		NULL, 0);
	append(w, AUDIT_FROM_GATE, AUDIT_EGRESS, fields_egress(), NULL, 0);
	append(w, AUDIT_FROM_SUPERVISOR, AUDIT_OUTPUT, fields_output(7), "a\0\x1b[1mb", 7);
	json_t *to_stderr = fields_output(4);
	json_object_set_new(to_stderr, "stream", json_string("stderr"));
	append(w, AUDIT_FROM_SUPERVISOR, AUDIT_OUTPUT, to_stderr, "oops", 4);
	append(w, AUDIT_FROM_SUPERVISOR, AUDIT_SANDBOX_END, fields_end(), NULL, 0);
	record_writer_free(w);
}

static void make_ended(struct folder *f)
{
	struct state *s = open_state(f);
	struct err err;
	struct sandbox_dir *d = begin(s, ID_A, PHASE_ENDED, time_realtime_ns());
	write_events(sandbox_dir_fd(d));
	assert_int_equal(state_sandbox_ended(s, d, &err), 0);
	sandbox_dir_free(d);
	state_free(s);
}

static void test_log(void **state)
{
	struct folder *f = *state;
	make_ended(f);
	struct answer a = bulkhead(f, "log abc");
	assert_int_equal(a.status, 0);
	assert_string_equal(a.err, "");
	expect(a.out, "exec.start       npm 'in stall\\x0a\\x1b[2J' '\\xff'\n");
	expect(a.out, "egress           deny a.example:443 no_rule");
	expect(a.out, "output           stdout 7 bytes at 0\n");
	expect(a.out, "sandbox.end      status 0 none");
	expect_not(a.out, "\x1b");

	a = bulkhead(f, "log abc --kind egress");
	assert_int_equal(a.status, 0);
	expect_not(a.out, "npm");
	expect(a.out, "a.example");
	a = bulkhead(f, "log abc --kind nonsense");
	assert_int_equal(a.status, 125);
	expect(a.err, "exec.start");

	a = bulkhead(f, "log --output abc");
	assert_int_equal(a.status, 0);
	assert_int_equal(a.out_len, 7);
	assert_memory_equal(a.out, "a\0\x1b[1mb", 7);
	assert_string_equal(a.err, "oops");

	size_t len;
	cleanup_free char *lines = slurp(f->fd, "state/sandboxes/" ID_A "/" RECORD_FILE, &len);
	a = bulkhead(f, "log abc --json");
	assert_int_equal(a.out_len, len);
	assert_memory_equal(a.out, lines, len);

	a = bulkhead(f, "log zzzzz");
	assert_int_equal(a.status, 125);
	a = bulkhead(f, "log");
	assert_int_equal(a.status, 125);
}

static void test_broken_log(void **state)
{
	struct folder *f = *state;
	make_ended(f);
	size_t len;
	cleanup_free char *text = slurp(f->fd, "state/sandboxes/" ID_A "/" RECORD_FILE, &len);
	char *host = strstr(text, "a.example");
	assert_non_null(host);
	*host = 'b';
	put_file(f->fd, "state/sandboxes/" ID_A "/" RECORD_FILE, text, len);
	struct answer a = bulkhead(f, "log abc");
	assert_int_equal(a.status, 1);
	expect(a.out, "npm");
	expect_not(a.out, ".example");
	expect(a.err, "line 3");
	a = bulkhead(f, "audit verify abc");
	assert_int_equal(a.status, 1);
	expect(a.out, "NOT INTACT: line 3");
	a = bulkhead(f, "audit verify abc --json");
	assert_int_equal(a.status, 1);
	expect(a.out, "\"intact\": false");
	expect(a.out, "\"bad_line\": 3");

	/* Torn is not broken. */
	*host = 'a';
	put_file(f->fd, "state/sandboxes/" ID_A "/" RECORD_FILE, text, len - 10);
	a = bulkhead(f, "log abc");
	assert_int_equal(a.status, 0);
	expect(a.err, "torn record");
	a = bulkhead(f, "audit verify abc --json");
	assert_int_equal(a.status, 0);
	expect(a.out, "\"torn\": true");
	expect(a.out, "\"complete\": false");
}

static void test_verify(void **state)
{
	struct folder *f = *state;
	make_ended(f);
	struct answer a = bulkhead(f, "audit verify abc");
	assert_int_equal(a.status, 0);
	expect(a.out, "intact: 6 records intact; it ends with the end of the sandbox");
	char args[256];
	snprintf(args, sizeof(args), "audit verify --json %s/state/sandboxes/" ID_A, f->path);
	a = bulkhead(f, args);
	assert_int_equal(a.status, 0);
	expect(a.out, "\"complete\": true");
	a = bulkhead(f, "audit verify ./nowhere");
	assert_int_equal(a.status, 125);
	a = bulkhead(f, "audit");
	assert_int_equal(a.status, 125);

	put_file(f->fd, "state/sandboxes/" ID_A "/" RECORD_BLOB_FILE, "a\0\x1b[1mbOops", 11);
	assert_int_equal(bulkhead(f, "audit verify abc").status, 1);
}

static void test_ls(void **state)
{
	struct folder *f = *state;
	struct answer a = bulkhead(f, "ls");
	assert_int_equal(a.status, 0);
	assert_string_equal(a.out, "");
	make_ended(f);
	struct state *s = open_state(f);
	struct sandbox_dir *d = begin(s, ID_B, PHASE_RUNNING, time_realtime_ns());
	a = bulkhead(f, "ls");
	assert_int_equal(a.status, 0);
	expect(a.out, ID_A "  container  ended");
	expect(a.out, "npm 'run \\x1b[31mred\\xff'");
	expect(a.out, "  11     0       22      exit 137, limit_memory\n");
	expect(a.out, ID_B "  container  running");
	expect_not(a.out, "\x1b");
	/* The running one is newest and comes first. */
	assert_true(strstr(a.out, ID_B) < strstr(a.out, ID_A));
	a = bulkhead(f, "ls --json");
	expect(a.out, "\"end_reason\": \"limit_memory\"");
	expect(a.out, "\"base64\": ");
	sandbox_dir_free(d);
	a = bulkhead(f, "ls");
	expect(a.out, ID_B "  container  lost");
	assert_int_equal(bulkhead(f, "ls surplus").status, 125);
	state_free(s);
}

static void test_ls_short(void **state)
{
	struct folder *f = *state;
	struct state *s = open_state(f);
	struct err err;
	for (unsigned i = 0; i < 25; i++) {
		char id[SANDBOX_ID_LEN + 1];
		snprintf(id, sizeof(id), "old%09u", i);
		struct sandbox_dir *d = begin(s, id, PHASE_ENDED, 1000 + i);
		assert_int_equal(state_sandbox_ended(s, d, &err), 0);
		sandbox_dir_free(d);
	}
	/* Older than all, but running. */
	struct sandbox_dir *live = begin(s, ID_A, PHASE_RUNNING, 1);
	struct answer a = bulkhead(f, "ls");
	expect(a.out, "old000000024");
	expect(a.out, "old000000005");
	expect_not(a.out, "old000000004");
	expect(a.out, ID_A);
	expect(a.err, "5 older ones");
	a = bulkhead(f, "ls --all");
	expect(a.out, "old000000000");
	assert_string_equal(a.err, "");
	sandbox_dir_free(live);
	state_free(s);
}

static void test_gc(void **state)
{
	struct folder *f = *state;
	make_ended(f);
	struct state *s = open_state(f);
	struct sandbox_dir *d = begin(s, ID_B, PHASE_RUNNING, time_realtime_ns());
	struct answer a = bulkhead(f, "gc");
	expect(a.out, "nothing to clean up");
	uint64_t cut;
	struct record_writer *w = open_writer(sandbox_dir_fd(d), &cut);
	append(w, AUDIT_FROM_SUPERVISOR, AUDIT_SANDBOX_START, fields_start(), NULL, 0);
	record_writer_free(w);
	d = sandbox_dir_free(d);

	a = bulkhead(f, "gc --dry-run");
	assert_int_equal(a.status, 0);
	expect(a.out, ID_B);
	assert_true(state_is_live(s, ID_B));
	a = bulkhead(f, "gc --json");
	assert_int_equal(a.status, 0);
	expect(a.out, "\"record_ended\": true");
	assert_false(state_is_live(s, ID_B));
	expect(bulkhead(f, "gc").out, "nothing to clean up");
	a = bulkhead(f, "ls");
	expect(a.out, ID_B "  container  lost");
	a = bulkhead(f, "audit verify abx --json");
	assert_int_equal(a.status, 0);
	expect(a.out, "\"lost\": true");
	expect(a.out, "\"records\": 2");

	a = bulkhead(f, "gc --older-than 1h");
	expect(a.out, "nothing to clean up");
	a = bulkhead(f, "gc --older-than 1ms --dry-run");
	expect(a.out, ID_A ": would be removed");
	expect(bulkhead(f, "ls").out, ID_A);
	a = bulkhead(f, "gc --older-than 1ms");
	expect(a.out, ID_A ": removed");
	expect(a.out, ID_B ": removed");
	a = bulkhead(f, "ls --all");
	assert_string_equal(a.out, "");
	assert_int_equal(bulkhead(f, "gc --older-than soon").status, 125);
	state_free(s);
}

/* Killed before its folder was made; and one whose record is damaged: neither stands in the way for ever. */
static void test_gc_odd(void **state)
{
	struct folder *f = *state;
	struct state *s = open_state(f);
	struct sandbox_dir *d = begin(s, ID_B, PHASE_RUNNING, time_realtime_ns());
	put_file(sandbox_dir_fd(d), RECORD_FILE, "{}\n", 3);
	sandbox_dir_free(d);
	put_file(state_dirfd(s), "live/" ID_A, "", 0);
	struct answer a = bulkhead(f, "gc");
	assert_int_equal(a.status, 0);
	expect(a.out, ID_A);
	expect(a.out, "damaged");
	assert_false(state_is_live(s, ID_A) || state_is_live(s, ID_B));
	assert_int_equal(bulkhead(f, "audit verify abx").status, 1);
	state_free(s);
}

/* A made-up supervisor: holds the sandbox until it is told to end in the way that `kill` tells. */
static void act_as_supervisor(struct folder *f, int ready, bool obey)
{
	struct err err;
	sigset_t set;
	siginfo_t si;
	alarm(60); /* whatever becomes of the test */
	sigemptyset(&set);
	sigaddset(&set, SIGTERM);
	sigprocmask(SIG_BLOCK, &set, NULL);
	struct state *s = open_state(f);
	struct sandbox_dir *d = begin(s, ID_A, PHASE_RUNNING, time_realtime_ns());
	(void)!write(ready, "x", 1);
	while (sigwaitinfo(&set, &si) < 0 && errno == EINTR)
		continue;
	if (si.si_code != SI_QUEUE || si.si_value.sival_int != KILL_COOKIE)
		_exit(2);
	if (!obey)
		_exit(3); /* ends without having cleaned up */
	_exit(state_sandbox_ended(s, d, &err) == 0 ? 0 : 1);
}

static int kill_supervisor(struct folder *f, bool obey, const char *how)
{
	int ready[2], status;
	char c;
	assert_int_equal(pipe2(ready, O_CLOEXEC), 0);
	pid_t pid = fork();
	if (pid == 0)
		act_as_supervisor(f, ready[1], obey);
	assert_int_equal(read(ready[0], &c, 1), 1);
	struct answer a = bulkhead(f, "kill abc");
	assert_int_equal(a.status, 0);
	expect(a.out, how);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFEXITED(status));
	close(ready[0]);
	close(ready[1]);
	struct state *s = open_state(f);
	assert_false(state_is_live(s, ID_A));
	state_free(s);
	return WEXITSTATUS(status);
}

static void test_kill(void **state)
{
	struct folder *f = *state;
	assert_int_equal(kill_supervisor(f, true, ID_A ": ended"), 0);
	struct answer a = bulkhead(f, "kill abc");
	assert_int_equal(a.status, 0);
	expect(a.out, "had already ended");
	expect(bulkhead(f, "kill --all").out, "nothing runs");
	assert_int_equal(bulkhead(f, "kill").status, 125);
	assert_int_equal(bulkhead(f, "kill --all abc").status, 125);
	assert_int_equal(bulkhead(f, "kill zzz").status, 125);
}

static void test_kill_unclean(void **state)
{
	struct folder *f = *state;
	assert_int_equal(kill_supervisor(f, false, ID_A ": ended"), 3);
	expect(bulkhead(f, "ls").out, ID_A "  container  lost");
}

/* The pid in the state of a dead supervisor may be anybody's: nobody is signalled. */
static void test_kill_stale_pid(void **state)
{
	struct folder *f = *state;
	struct state *s = open_state(f);
	sandbox_dir_free(begin(s, ID_A, PHASE_RUNNING, time_realtime_ns()));
	signal(SIGTERM, SIG_DFL);
	struct answer a = bulkhead(f, "kill --all");
	assert_int_equal(a.status, 0);
	expect(a.out, ID_A ": was lost, cleaned up");
	assert_false(state_is_live(s, ID_A));
	state_free(s);
}

int main(int argc, char **argv)
{
	if (argc != 2)
		return 2;
	program = argv[1];
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_log, folder_make, folder_remove),
		cmocka_unit_test_setup_teardown(test_broken_log, folder_make, folder_remove),
		cmocka_unit_test_setup_teardown(test_verify, folder_make, folder_remove),
		cmocka_unit_test_setup_teardown(test_ls, folder_make, folder_remove),
		cmocka_unit_test_setup_teardown(test_ls_short, folder_make, folder_remove),
		cmocka_unit_test_setup_teardown(test_gc, folder_make, folder_remove),
		cmocka_unit_test_setup_teardown(test_gc_odd, folder_make, folder_remove),
		cmocka_unit_test_setup_teardown(test_kill, folder_make, folder_remove),
		cmocka_unit_test_setup_teardown(test_kill_unclean, folder_make, folder_remove),
		cmocka_unit_test_setup_teardown(test_kill_stale_pid, folder_make, folder_remove),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
