/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <fcntl.h>
#include <linux/seccomp.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/mem.h"
#include "isolate/common/seccomp.h"
#include "isolate/notify.h"

/* The kernel may have longer structures than our headers; it says how long. */
#define STRUCT_ROOM 512

struct notify {
	int fd;
	struct loop_io *io;
	void (*on_denied)(void *ctx, const struct syscall_denial *d);
	void *ctx;
};

union request {
	struct seccomp_notif notif;
	uint8_t room[STRUCT_ROOM];
};
union response {
	struct seccomp_notif_resp resp;
	uint8_t room[STRUCT_ROOM];
};

static void read_command(pid_t pid, char out[17])
{
	char path[32];
	snprintf(path, sizeof(path), "/proc/%d/comm", (int)pid);
	out[0] = '\0';
	cleanup_fd int fd = open(path, O_RDONLY | O_CLOEXEC);
	ssize_t n = fd >= 0 ? read(fd, out, 16) : 0;
	out[n > 0 ? n : 0] = '\0';
	out[strcspn(out, "\n")] = '\0';
}

static void answer(struct notify *n, uint64_t id, int error)
{
	union response response = { 0 };
	response.resp.id = id;
	response.resp.error = -error;
	/* The caller may have been killed meanwhile: there is nobody left to answer then. */
	ioctl(n->fd, SECCOMP_IOCTL_NOTIF_SEND, &response);
}

static void on_readable(void *ctx, int fd, int ready)
{
	struct notify *n = ctx;
	union request request = { 0 };
	struct pollfd p = { .fd = fd, .events = POLLIN };
	/* Hung up without a request: the last process is gone, and asking for one would wait for ever. */
	if (poll(&p, 1, 0) > 0 && !(p.revents & POLLIN)) {
		n->io = loop_io_remove(n->io);
		return;
	}
	if (ioctl(fd, SECCOMP_IOCTL_NOTIF_RECV, &request) < 0) {
		if (errno != ENOENT && errno != EINTR && errno != EAGAIN)
			n->io = loop_io_remove(n->io);
		return;
	}
	const struct seccomp_refusal *refusal = seccomp_refusal_find(request.notif.data.nr);
	struct syscall_denial denial = {
		.number = request.notif.data.nr,
		.name = refusal ? refusal->name : "unknown",
		.pid = (pid_t)request.notif.pid,
	};
	for (size_t i = 0; i < ARRAY_LEN(denial.args); i++)
		denial.args[i] = request.notif.data.args[i];
	read_command(denial.pid, denial.command);
	answer(n, request.notif.id, refusal ? refusal->error : EPERM);
	n->on_denied(n->ctx, &denial);
}

struct notify *notify_new(struct loop *loop, int notify_fd, void (*on_denied)(void *ctx, const struct syscall_denial *d),
	void *ctx, struct err *err)
{
	struct seccomp_notif_sizes sizes;
	if (syscall(SYS_seccomp, SECCOMP_GET_NOTIF_SIZES, 0, &sizes) < 0 || sizes.seccomp_notif > STRUCT_ROOM ||
		sizes.seccomp_notif_resp > STRUCT_ROOM) {
		fd_close(&notify_fd);
		err_set(err, ERR_UNSUPPORTED, "this kernel's seccomp notifications can't be read (sizes don't fit)");
		return NULL;
	}
	struct notify *n = mem_alloc(sizeof(*n));
	*n = (struct notify){ .fd = notify_fd, .on_denied = on_denied, .ctx = ctx };
	n->io = loop_io_add(loop, notify_fd, LOOP_READ, on_readable, n);
	return n;
}

struct notify *notify_free(struct notify *n)
{
	if (!n)
		return NULL;
	n->io = loop_io_remove(n->io);
	fd_close(&n->fd);
	return mem_free(n);
}
