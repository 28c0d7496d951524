/* SPDX-License-Identifier: Apache-2.0 */
#include "sandbox/control-client.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>

#include "base/fd.h"
#include "base/text.h"
#include "gate/policy-file.h"

/* More than the supervisor gives the halves of the gate. */
#define ANSWER_WITHIN_MS 20000

static int dial(int dirfd, struct err *err)
{
	struct sockaddr_un sa = { .sun_family = AF_UNIX };
	cleanup_fd int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
	snprintf(sa.sun_path, sizeof(sa.sun_path), "/proc/self/fd/%d/" CONTROL_FILE, dirfd);
	if (fd < 0)
		return err_sys(err, errno, "cannot make a socket");
	if (connect(fd, (struct sockaddr *)&sa, sizeof(sa)) == 0)
		return fd_steal(&fd);
	if (errno == ENOENT || errno == ECONNREFUSED)
		return err_set(err, ERR_NOT_FOUND, "the sandbox is not running");
	return err_sys(err, errno, "cannot reach the supervisor of the sandbox");
}

static int take_answer(const void *p, size_t n, struct control_msg_ok *ret, struct err *err)
{
	uint32_t type;
	if (control_msg_type(p, n, &type) == 0 && type == CONTROL_OK)
		return control_msg_ok_decode(p, n, ret, err);
	struct err said;
	if (control_msg_failed_decode(p, n, &said, err) < 0)
		return -1;
	return err_set(err, said.code, "%s", said.text);
}

static int ask(int dirfd, const struct buf *b, int with_fd, struct control_msg_ok *ret, struct err *err)
{
	uint8_t answer[CONTROL_MESSAGE_MAX];
	cleanup_fd int fd = dial(dirfd, err);
	if (fd < 0)
		return -1;
	ssize_t n = fd_send(fd, b->data, b->len, &with_fd, with_fd >= 0 ? 1 : 0);
	if (n < 0)
		return err_sys(err, (int)-n, "cannot ask the supervisor of the sandbox");
	struct pollfd p = { .fd = fd, .events = POLLIN };
	int ready;
	while ((ready = poll(&p, 1, ANSWER_WITHIN_MS)) < 0 && errno == EINTR)
		;
	if (ready == 0)
		return err_set(err, ERR_TIMEOUT, "the supervisor of the sandbox did not answer within %d s", ANSWER_WITHIN_MS / 1000);
	n = recv(fd, answer, sizeof(answer), MSG_DONTWAIT);
	if (n <= 0)
		return err_set(err, ERR_CLOSED, "the sandbox ended before it answered");
	return take_answer(answer, (size_t)n, ret, err);
}

int control_ask_policy(int dirfd, uint64_t generation, const struct policy *p, struct control_msg_ok *ret, struct err *err)
{
	struct gate_msg_policy m = { .generation = generation };
	struct buf b;
	cleanup_fd int fd = policy_fd_make(p, &m.policy_len, err);
	if (fd < 0)
		return -1;
	buf_init(&b, CONTROL_MESSAGE_MAX);
	control_msg_policy_encode(&b, &m);
	int r = ask(dirfd, &b, fd, ret, err);
	buf_free(&b);
	return r;
}

int control_ask_secret(int dirfd, enum control_request request, const char *name, struct control_msg_ok *ret, struct err *err)
{
	struct control_msg_secret m = { 0 };
	struct buf b;
	strncpy(m.name, name, SECRET_NAME_MAX);
	buf_init(&b, CONTROL_MESSAGE_MAX);
	control_msg_secret_encode(&b, request, &m);
	int r = ask(dirfd, &b, -1, ret, err);
	buf_free(&b);
	return r;
}
