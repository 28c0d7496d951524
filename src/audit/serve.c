/* SPDX-License-Identifier: Apache-2.0 */
#include "audit/serve.h"

#include <endian.h>
#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "audit/client.h"
#include "audit/message.h"
#include "audit/text.h"
#include "base/buf.h"
#include "base/fd.h"
#include "base/mem.h"
#include "base/text.h"

#define BATCH_MAX 64u /* events of one source before the next has its turn */
#define N_SOURCES 3u

struct source {
	enum audit_source source;
	int fd; /* -1 once it ended */
	bool bye;
	uint64_t answers[AUDIT_ANSWERS_MAX]; /* written, not yet told: at most this many, then nothing more is read */
	unsigned n_answers;
};

struct server {
	struct record_writer *w;
	bool failed;
	struct err failure;
	struct source sources[N_SOURCES];
	uint8_t *message;
};

/* A peer that doesn't read its answers gets them late; one that is gone shows at the next recv. */
static void tell_failed(int fd, const struct err *why)
{
	struct buf b;
	buf_init(&b, AUDIT_ANSWER_MAX);
	if (fd >= 0 && buf_put_u32(&b, AUDIT_FAILED) == 0 && buf_put_u32(&b, why->code) == 0 &&
		buf_put_u32(&b, (uint32_t)why->sys) == 0 && buf_append(&b, why->text, strlen(why->text)) == 0)
		(void)!send(fd, b.data, b.len, MSG_DONTWAIT | MSG_NOSIGNAL);
	buf_free(&b);
}

void audit_refuse(const struct audit_sockets *sockets, const struct err *why)
{
	tell_failed(sockets->supervisor, why);
	tell_failed(sockets->gate, why);
	tell_failed(sockets->upstream, why);
}

static void send_answers(struct source *s)
{
	uint8_t head[4] = { 0, 0, 0, AUDIT_WRITTEN };
	uint64_t wire[AUDIT_ANSWERS_MAX];
	if (s->n_answers == 0 || s->fd < 0)
		return;
	for (unsigned i = 0; i < s->n_answers; i++)
		wire[i] = htobe64(s->answers[i]);
	struct iovec iov[2] = { { head, sizeof(head) }, { wire, s->n_answers * sizeof(wire[0]) } };
	struct msghdr msg = { .msg_iov = iov, .msg_iovlen = 2 };
	/* Would block: they stay, and the loop waits for room. Any other failure is a peer that is gone: its end of file
	 * follows. */
	if (sendmsg(s->fd, &msg, MSG_DONTWAIT | MSG_NOSIGNAL) >= 0 || errno != EAGAIN)
		s->n_answers = 0;
}

/* From here on nothing is written: what is in the log is whole, and everyone who waits for an answer gets this one. */
static void fail_all(struct server *v, const struct err *why)
{
	v->failed = true;
	v->failure = *why;
	for (unsigned i = 0; i < N_SOURCES; i++) {
		send_answers(&v->sources[i]);
		v->sources[i].n_answers = 0;
		tell_failed(v->sources[i].fd, why);
	}
}

static void append_own(struct server *v, json_t *fields)
{
	struct err err = ERR_INIT;
	uint64_t seq;
	if (!v->failed &&
		record_writer_append(v->w, AUDIT_FROM_AUDITOR, AUDIT_LOST, fields, NULL, 0, time_realtime_ns(), &seq, &err) < 0)
		fail_all(v, &err);
	json_decref(fields);
}

static void record_lost(struct server *v, const struct source *s, const char *reason, const char *text)
{
	json_t *fields = json_pack("{s:s, s:s}", "source", audit_source_name(s->source), "reason", reason);
	if (text)
		json_object_set_new(fields, "text", audit_text_json(text, strlen(text)));
	append_own(v, fields);
}

static void source_close(struct source *s)
{
	send_answers(s);
	fd_close(&s->fd);
}

/* The other side does what our client never does: it is not ours any more. */
static void source_breach(struct server *v, struct source *s, const struct err *why)
{
	send_answers(s);
	tell_failed(s->fd, why);
	record_lost(v, s, "protocol", why->text);
	source_close(s);
}

static void source_ended(struct server *v, struct source *s)
{
	/* The supervisor's goodbye is the end of the sandbox on the record: nobody else could record that. */
	bool in_order = s->source == AUDIT_FROM_SUPERVISOR ? record_writer_settled(v->w) : s->bye;
	if (!in_order)
		record_lost(v, s, s->bye ? "ended early" : "died", NULL);
	source_close(s);
}

static void take_event(struct server *v, struct source *s, struct cursor *c, uint32_t type)
{
	struct err err = ERR_INIT;
	json_error_t why;
	size_t json_len;
	const uint8_t *json = cursor_bytes(c, AUDIT_MESSAGE_MAX, &json_len);
	json_t *fields = json ? json_loadb((const char *)json, json_len, JSON_REJECT_DUPLICATES, &why) : NULL;
	uint64_t seq;
	if (!fields || c->left > AUDIT_BLOB_MAX || s->bye) {
		err_set(&err, ERR_PROTOCOL, "the %s sent what is no event", audit_source_name(s->source));
		source_breach(v, s, &err);
	} else if (record_writer_append(v->w, s->source, (enum audit_type)type, fields, c->p, c->left, time_realtime_ns(), &seq,
			   &err) == 0) {
		s->answers[s->n_answers++] = seq;
	} else if (err.code == ERR_SYSTEM || err.code == ERR_MEMORY) {
		fail_all(v, &err);
	} else {
		source_breach(v, s, &err);
	}
	json_decref(fields);
}

static void take_message(struct server *v, struct source *s, size_t len)
{
	struct cursor c = cursor_make(v->message, len);
	uint32_t type = cursor_u32(&c);
	if (type == AUDIT_BYE && cursor_done(&c))
		s->bye = true;
	else if (v->failed)
		tell_failed(s->fd, &v->failure);
	else
		take_event(v, s, &c, type);
}

static void source_read(struct server *v, struct source *s)
{
	for (unsigned i = 0; i < BATCH_MAX && s->fd >= 0 && s->n_answers < AUDIT_ANSWERS_MAX; i++) {
		ssize_t n = recv(s->fd, v->message, AUDIT_MESSAGE_MAX, MSG_DONTWAIT | MSG_TRUNC);
		/* A peer that went without reading its answers: reported once, before what it had sent, which still counts. */
		if (n < 0 && errno == ECONNRESET)
			continue;
		if (n < 0 && (errno == EAGAIN || errno == EINTR))
			break;
		if (n <= 0) {
			source_ended(v, s);
		} else if ((size_t)n > AUDIT_MESSAGE_MAX) {
			struct err err;
			err_set(&err, ERR_PROTOCOL, "the %s sent %zd bytes at once", audit_source_name(s->source), n);
			source_breach(v, s, &err);
		} else {
			take_message(v, s, (size_t)n);
		}
	}
	send_answers(s);
}

static void wait_and_work(struct server *v)
{
	struct pollfd fds[N_SOURCES];
	for (unsigned i = 0; i < N_SOURCES; i++) {
		struct source *s = &v->sources[i];
		fds[i].fd = s->fd;
		fds[i].events = (short)((s->n_answers < AUDIT_ANSWERS_MAX ? POLLIN : 0) | (s->n_answers > 0 ? POLLOUT : 0));
	}
	if (poll(fds, N_SOURCES, -1) < 0)
		return;
	for (unsigned i = 0; i < N_SOURCES; i++) {
		struct source *s = &v->sources[i];
		if (fds[i].revents & POLLOUT)
			send_answers(s);
		/* A hang-up with a full answer queue: nobody reads answers any more, what was sent is still to be written. */
		if (fds[i].revents & (POLLHUP | POLLERR))
			s->n_answers = 0;
		if (fds[i].revents & (POLLIN | POLLHUP | POLLERR))
			source_read(v, s);
	}
}

static bool any_open(const struct server *v)
{
	for (unsigned i = 0; i < N_SOURCES; i++)
		if (v->sources[i].fd >= 0)
			return true;
	return false;
}

int audit_serve(struct record_writer *w, const struct audit_sockets *sockets, uint64_t cut_bytes, struct err *err)
{
	struct server *v = mem_alloc(sizeof(*v));
	v->w = w;
	v->message = mem_alloc(AUDIT_MESSAGE_MAX);
	v->sources[0] = (struct source){ .source = AUDIT_FROM_SUPERVISOR, .fd = sockets->supervisor };
	v->sources[1] = (struct source){ .source = AUDIT_FROM_GATE, .fd = sockets->gate };
	v->sources[2] = (struct source){ .source = AUDIT_FROM_UPSTREAM, .fd = sockets->upstream };
	if (cut_bytes > 0)
		append_own(v, json_pack("{s:s, s:s, s:I}", "source", audit_source_name(AUDIT_FROM_AUDITOR), "reason", "torn",
				      "cut_bytes", (json_int_t)cut_bytes));
	while (any_open(v))
		wait_and_work(v);

	bool failed = v->failed;
	if (failed && err)
		*err = v->failure;
	mem_free(v->message);
	mem_free(v);
	return failed ? -1 : 0;
}
