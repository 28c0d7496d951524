/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <string.h>
#include <sys/socket.h>

#include "base/fd.h"
#include "isolate/launch.h"

/* Framing: the first piece is u32 number of descriptors in all | body; each further piece is empty but for one byte and its
 * descriptors. */
#define FRAME_SIZE sizeof(uint32_t)

void launch_message_init(struct launch_message *m)
{
	*m = (struct launch_message){ 0 };
	buf_init(&m->body, LAUNCH_MESSAGE_MAX);
	for (size_t i = 0; i < LAUNCH_FDS_MAX; i++)
		m->fds[i] = -1;
}

void launch_message_done(struct launch_message *m)
{
	for (size_t i = 0; i < LAUNCH_FDS_MAX; i++)
		fd_close(&m->fds[i]);
	buf_free(&m->body);
}

static size_t piece(size_t n)
{
	return n < FD_PASS_MAX ? n : FD_PASS_MAX;
}

int launch_send(int sock, const struct buf *body, const int *fds, size_t n_fds, struct err *err)
{
	struct buf frame;
	buf_init(&frame, LAUNCH_MESSAGE_MAX + FRAME_SIZE);
	if (buf_put_u32(&frame, (uint32_t)n_fds) < 0 || buf_append(&frame, body->data, body->len) < 0) {
		buf_free(&frame);
		return err_set(err, ERR_LIMIT, "a message to or from the launcher is too long (%zu bytes)", body->len);
	}
	size_t sent = piece(n_fds);
	ssize_t n = fd_send(sock, frame.data, frame.len, fds, sent);
	buf_free(&frame);
	while (n >= 0 && sent < n_fds) {
		size_t more = piece(n_fds - sent);
		n = fd_send(sock, "", 1, fds + sent, more);
		sent += more;
	}
	if (n < 0)
		return err_sys(err, (int)-n, "can't talk to the other side of the launcher's socket");
	return 0;
}

static int begin(struct launch_message *m, const uint8_t *data, size_t len, struct err *err)
{
	struct cursor c = cursor_make(data, len);
	m->announced = cursor_u32(&c);
	m->begun = true;
	if (c.bad || m->announced > LAUNCH_FDS_MAX)
		return err_set(err, ERR_PROTOCOL, "the launcher's socket carried a malformed message");
	if (buf_append(&m->body, c.p, c.left) < 0)
		return err_set(err, ERR_MEMORY, "out of memory for a launcher message");
	return 0;
}

int launch_receive(int sock, struct launch_message *m, struct err *err)
{
	size_t room = m->begun ? 1 : LAUNCH_MESSAGE_MAX + FRAME_SIZE;
	size_t n_fds = LAUNCH_FDS_MAX - m->n_fds < FD_PASS_MAX ? LAUNCH_FDS_MAX - m->n_fds : FD_PASS_MAX;
	static uint8_t data[LAUNCH_MESSAGE_MAX + FRAME_SIZE]; /* one thread; only touched as far as bytes came */
	size_t got = n_fds;
	ssize_t n = fd_recv(sock, data, room, m->fds + m->n_fds, &got);
	if (n == -ECONNRESET) {
		/* The other side ended without reading something of ours. That is said once, in front of what it had sent
		 * before. */
		got = n_fds;
		n = fd_recv(sock, data, room, m->fds + m->n_fds, &got);
	}
	int r = 0;
	if (n > 0) {
		m->n_fds += got;
		if (!m->begun)
			r = begin(m, data, (size_t)n, err);
	} else if (n == 0) {
		r = err_set(err, ERR_CLOSED, "the other side of the launcher's socket is gone");
	} else if (n != -EAGAIN) {
		r = err_sys(err, (int)-n, "can't read from the launcher's socket");
	}
	if (r < 0)
		return r;
	if (m->begun && m->n_fds > m->announced)
		return err_set(err, ERR_PROTOCOL, "more descriptors arrived on the launcher's socket than were announced");
	return m->begun && m->n_fds == m->announced;
}

int launch_failed_encode(struct buf *out, const struct err *e)
{
	return buf_put_u32(out, LAUNCH_ANSWER_FAILED) < 0 || buf_put_u32(out, e->code) < 0 ||
			       buf_put_u32(out, (uint32_t)e->sys) < 0 || buf_append(out, e->text, strlen(e->text)) < 0
		       ? -1
		       : 0;
}

void launch_failed_decode(struct cursor *c, struct err *ret)
{
	uint32_t code = cursor_u32(c), sys = cursor_u32(c);
	if (code == ERR_NONE || code >= ERR_CODE_MAX)
		code = ERR_PROTOCOL;
	err_set(ret, (enum err_code)code, "%.*s", (int)c->left, c->p ? (const char *)c->p : "");
	ret->sys = (int)sys;
}
