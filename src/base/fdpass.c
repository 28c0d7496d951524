/* SPDX-License-Identifier: Apache-2.0 */
#include "base/fd.h"

#include <errno.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/uio.h>

union control {
	struct cmsghdr align;
	char bytes[CMSG_SPACE(FD_PASS_MAX * sizeof(int))];
};

ssize_t fd_send(int sock, const void *data, size_t len, const int *fds, size_t n_fds)
{
	if (n_fds > FD_PASS_MAX)
		return -EINVAL;
	union control control = { 0 };
	struct iovec iov = { .iov_base = (void *)data, .iov_len = len };
	struct msghdr msg = { .msg_iov = &iov, .msg_iovlen = 1 };
	if (n_fds > 0) {
		msg.msg_control = control.bytes;
		msg.msg_controllen = CMSG_SPACE(n_fds * sizeof(int));
		struct cmsghdr *c = CMSG_FIRSTHDR(&msg);
		c->cmsg_level = SOL_SOCKET;
		c->cmsg_type = SCM_RIGHTS;
		c->cmsg_len = CMSG_LEN(n_fds * sizeof(int));
		memcpy(CMSG_DATA(c), fds, n_fds * sizeof(int));
	}
	ssize_t n;
	do
		n = sendmsg(sock, &msg, MSG_NOSIGNAL);
	while (n < 0 && errno == EINTR);
	return n < 0 ? -errno : n;
}

/* Collects the descriptors of a message; those beyond `room` are closed. Returns how many there were. */
static size_t collect(struct msghdr *msg, int *fds, size_t room)
{
	size_t seen = 0;
	for (struct cmsghdr *c = CMSG_FIRSTHDR(msg); c; c = CMSG_NXTHDR(msg, c)) {
		if (c->cmsg_level != SOL_SOCKET || c->cmsg_type != SCM_RIGHTS)
			continue;
		size_t count = (c->cmsg_len - CMSG_LEN(0)) / sizeof(int);
		for (size_t i = 0; i < count; i++) {
			int fd;
			memcpy(&fd, CMSG_DATA(c) + i * sizeof(int), sizeof(int));
			if (seen < room)
				fds[seen] = fd;
			else
				fd_close(&fd);
			seen++;
		}
	}
	return seen;
}

ssize_t fd_recv(int sock, void *data, size_t len, int *ret_fds, size_t *n_fds)
{
	int fds[FD_PASS_MAX];
	size_t room = n_fds ? *n_fds : 0;
	if (room > FD_PASS_MAX)
		room = FD_PASS_MAX;
	union control control;
	struct iovec iov = { .iov_base = data, .iov_len = len };
	struct msghdr msg = { .msg_iov = &iov, .msg_iovlen = 1 };
	/* CMSG_LEN, not CMSG_SPACE: with the padding the kernel would find place for one more than asked for. */
	msg.msg_control = room ? control.bytes : NULL;
	msg.msg_controllen = room ? CMSG_LEN(room * sizeof(int)) : 0;
	ssize_t n;
	do
		n = recvmsg(sock, &msg, MSG_CMSG_CLOEXEC);
	while (n < 0 && errno == EINTR);
	if (n < 0)
		return -errno;
	size_t got = collect(&msg, fds, room);
	if ((msg.msg_flags & MSG_CTRUNC) || got > room) {
		for (size_t i = 0; i < got && i < room; i++)
			fd_close(&fds[i]);
		return -EPROTO;
	}
	if (n_fds) {
		memcpy(ret_fds, fds, got * sizeof(int));
		*n_fds = got;
	}
	return n;
}
