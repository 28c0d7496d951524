/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Credential helpers: commands of the user's own that print a secret. They run outside the box, as the user, when the upstream half asks. What they print on
 * standard output goes through a pipe whose other end the upstream half gets: nothing of it is read here. Their complaints (standard error) are kept,
 * bounded, for the end of the run; the record only has how they ended, since a complaint may quote what it shouldn't.
 *
 * One at a time for each secret; later calls wait. A helper has a minute, and no longer than the sandbox.
 */
#include "sandbox/internal.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/mem.h"
#include "base/text.h"
#include "event/child.h"

#define HELPER_NS (60 * NS_PER_S)
#define COMPLAINT_MAX 1024u
#define CALLS_MAX 64u /* running and waiting */

struct helper_call {
	struct helpers *helpers;
	struct helper_call *next;      /* in order of asking */
	uint64_t call;
	char name[SECRET_NAME_MAX + 1];
	pid_t pid;                     /* 0: waits */
	int pidfd, complaint_fd;
	struct loop_io *io, *complaint_io;
	struct loop_timer *deadline;
	struct buf complaint;
	uint64_t started_ns;
	bool out_of_time;
};

struct helpers {
	struct sandbox *sandbox;
	struct helper_call *calls;
	unsigned n;
};

static void start_next(struct helpers *h, const char *name);

static void call_free(struct helper_call *c)
{
	for (struct helper_call **p = &c->helpers->calls; *p; p = &(*p)->next)
		if (*p == c) {
			*p = c->next;
			c->helpers->n--;
			break;
		}
	loop_io_remove(c->io);
	loop_io_remove(c->complaint_io);
	loop_timer_free(c->deadline);
	fd_close(&c->pidfd);
	fd_close(&c->complaint_fd);
	buf_free(&c->complaint);
	mem_free(c);
}

/* Still a child of ours that nobody has waited for, so the number is its own, and that of its process group. */
static void call_kill(struct helper_call *c)
{
	kill(-c->pid, SIGKILL);
}

/* ---- the end of one ---- */

static void read_complaint(struct helper_call *c)
{
	char piece[512];
	ssize_t n;
	while ((n = read(c->complaint_fd, piece, sizeof(piece))) > 0) {
		size_t room = COMPLAINT_MAX - c->complaint.len;
		buf_append(&c->complaint, piece, (size_t)n < room ? (size_t)n : room);
	}
	if (n == 0 || errno != EAGAIN)
		c->complaint_io = loop_io_remove(c->complaint_io);
}

static void on_complaint(void *ctx, int fd, int ready)
{
	read_complaint(ctx);
}

static void describe(const struct helper_call *c, int status, char *out, size_t room)
{
	char took[TEXT_SIZE_MAX];
	text_format_duration(time_monotonic_ns() - c->started_ns, took);
	if (c->out_of_time)
		snprintf(out, room, "killed after %s: it has %u s", took, (unsigned)(HELPER_NS / NS_PER_S));
	else if (WIFSIGNALED(status))
		snprintf(out, room, "ended by signal %d after %s", WTERMSIG(status), took);
	else
		snprintf(out, room, "exit %d after %s", WEXITSTATUS(status), took);
}

/* The last failure is what the caller is told at the end of the run, with the first line of the complaint. That a revoked secret has no helper is none. */
static void keep_complaint(struct helper_call *c, const char *detail)
{
	struct sandbox *s = c->helpers->sandbox;
	char text[400] = "";
	if (grants_find(s->grants, c->name)->revoked)
		return;
	const char *end = c->complaint.len ? memchr(c->complaint.data, '\n', c->complaint.len) : NULL;
	size_t len = end ? (size_t)(end - (const char *)c->complaint.data) : c->complaint.len;
	if (len > 0)
		text_escape((const char *)c->complaint.data, len, text, sizeof(text));
	mem_free(s->helper_complaint);
	s->helper_complaint = mem_printf("the helper of the secret \"%s\" failed (%s)%s%s", c->name, detail, *text ? ": " : "", text);
	s->result.helper_complaint = s->helper_complaint;
}

static void on_helper_ended(void *ctx, int fd, int ready)
{
	struct helper_call *c = ctx;
	struct helpers *h = c->helpers;
	char name[SECRET_NAME_MAX + 1], detail[128];
	int status = 0;
	call_kill(c); /* what it left running would hold its output open */
	child_wait(c->pidfd, &status);
	read_complaint(c);
	bool ok = WIFEXITED(status) && WEXITSTATUS(status) == 0 && !c->out_of_time;
	describe(c, status, detail, sizeof(detail));
	events_secret(h->sandbox, grants_find(h->sandbox->grants, c->name), "helper", ok, detail, NULL, NULL);
	if (!ok)
		keep_complaint(c, detail);
	memcpy(name, c->name, sizeof(name));
	call_free(c);
	start_next(h, name);
}

static void on_out_of_time(void *ctx)
{
	struct helper_call *c = ctx;
	c->out_of_time = true;
	call_kill(c);
}

/* ---- the beginning of one ---- */

static int spawn(struct helper_call *c, const struct grant *grant, int out, int complaint, struct err *err)
{
	const struct sandbox *s = c->helpers->sandbox;
	const char *path = getenv("PATH"), *home = getenv("HOME");
	cleanup_free char *id = mem_printf("BULKHEAD_SANDBOX_ID=%s", s->spec.id), *secret = mem_printf("BULKHEAD_SECRET=%s", c->name);
	cleanup_free char *path_text = mem_printf("PATH=%s", path ? path : "/usr/bin:/bin"), *home_text = mem_printf("HOME=%s", home ? home : "/");
	char *env[] = { id, secret, path_text, home_text, NULL };
	struct child_fd fds[] = { { out, STDOUT_FILENO }, { complaint, STDERR_FILENO } };
	struct child_spec spec = { .path = grant->about.helper[0], .argv = grant->about.helper, .envp = env, .fds = fds, .n_fds = ARRAY_LEN(fds),
		.death_signal = SIGKILL, .new_session = true };
	return child_start(&spec, &c->pid, &c->pidfd, err);
}

/* Returns the end of the pipe that the upstream half reads, or -1. */
static int start(struct helper_call *c, const struct grant *grant, struct err *err)
{
	struct loop *loop = c->helpers->sandbox->loop;
	int out[2], complaint[2];
	if (pipe2(out, O_CLOEXEC) < 0)
		return err_sys(err, errno, "cannot make a pipe");
	if (pipe2(complaint, O_CLOEXEC) < 0) {
		fd_close(&out[0]);
		fd_close(&out[1]);
		return err_sys(err, errno, "cannot make a pipe");
	}
	int r = spawn(c, grant, out[1], complaint[1], err);
	fd_close(&out[1]);
	fd_close(&complaint[1]);
	if (r < 0) {
		fd_close(&out[0]);
		fd_close(&complaint[0]);
		return -1;
	}
	c->started_ns = time_monotonic_ns();
	c->complaint_fd = complaint[0];
	fd_set_nonblock(c->complaint_fd, true);
	c->io = loop_io_add(loop, c->pidfd, LOOP_READ, on_helper_ended, c);
	c->complaint_io = loop_io_add(loop, c->complaint_fd, LOOP_READ, on_complaint, c);
	c->deadline = loop_timer_new(loop, on_out_of_time, c);
	loop_timer_set(c->deadline, HELPER_NS, 0);
	return out[0];
}

/* Says no to the upstream half, which then has no value to put in. */
static void refuse(struct helper_call *c, const struct err *why)
{
	struct sandbox *s = c->helpers->sandbox;
	const struct grant *grant = grants_find(s->grants, c->name);
	events_secret(s, grant, "helper", false, why->text, NULL, NULL);
	keep_complaint(c, why->text);
	upstream_link_helped(s->upstream, c->call, -1, NULL);
	call_free(c);
}

static void begin(struct helper_call *c)
{
	struct sandbox *s = c->helpers->sandbox;
	const struct grant *grant = grants_find(s->grants, c->name);
	struct err err;
	int fd = -1;
	if (grant->revoked)
		err_set(&err, ERR_DENIED, "it was revoked");
	else if (!grant->about.helper)
		err_set(&err, ERR_CONFLICT, "it has no helper any more");
	else
		fd = start(c, grant, &err);
	if (fd < 0)
		refuse(c, &err);
	else
		upstream_link_helped(s->upstream, c->call, fd, NULL); /* lost: on_lost tells, and the sandbox ends */
}

static bool is_running(const struct helpers *h, const char *name)
{
	for (const struct helper_call *c = h->calls; c; c = c->next)
		if (c->pid && str_eq(c->name, name))
			return true;
	return false;
}

/* Each refused one makes room for the next. */
static void start_next(struct helpers *h, const char *name)
{
	struct helper_call *c = h->calls;
	while (c && !is_running(h, name)) {
		struct helper_call *next = c->next;
		if (str_eq(c->name, name))
			begin(c);
		c = next;
	}
}

int helpers_ask(struct sandbox *s, uint64_t call, const char *name, struct err *err)
{
	struct helpers *h = s->helpers;
	if (!grants_find(s->grants, name))
		return err_set(err, ERR_PROTOCOL, "the upstream half asked for the helper of a secret that isn't granted");
	if (s->phase >= SB_ENDING)
		return 0;
	if (!h) {
		h = s->helpers = mem_alloc(sizeof(*h));
		h->sandbox = s;
	}
	if (h->n == CALLS_MAX)
		return err_set(err, ERR_PROTOCOL, "the upstream half asks for helpers without end");
	struct helper_call *c = mem_alloc(sizeof(*c)), **tail = &h->calls;
	c->helpers = h;
	c->call = call;
	c->pidfd = c->complaint_fd = -1;
	strncpy(c->name, name, SECRET_NAME_MAX);
	buf_init(&c->complaint, COMPLAINT_MAX);
	while (*tail)
		tail = &(*tail)->next;
	*tail = c;
	h->n++;
	start_next(h, name);
	return 0;
}

void helpers_stop(struct sandbox *s, const char *name)
{
	for (struct helper_call *c = s->helpers ? s->helpers->calls : NULL; c; c = c->next)
		if (c->pid && str_eq(c->name, name))
			call_kill(c);
}

void helpers_free(struct helpers *h)
{
	if (!h)
		return;
	while (h->calls) {
		struct helper_call *c = h->calls;
		int status;
		if (c->pid) {
			call_kill(c);
			child_wait(c->pidfd, &status);
			events_secret(h->sandbox, grants_find(h->sandbox->grants, c->name), "helper", false, "ended with the sandbox", NULL, NULL);
		}
		call_free(c);
	}
	mem_free(h);
}
