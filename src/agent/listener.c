/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/listener.h"

#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/mem.h"
#include "base/text.h"

enum { BACKLOG = 128, ACCEPT_BATCH = 32, PAUSE_MS = 100 };

struct listener {
	struct listeners *all;
	struct listener *prev, *next;
	int fd;
	struct loop_io *io;
	listener_fn fn;
	void *ctx;
	bool *closed; /* set while accepting */
};

struct listeners {
	struct loop *loop;
	struct listener *first;
	struct loop_timer *resume;
	int spare; /* a descriptor kept back, to be able to accept and reset when there is no other */
};

/* ---- sockets ---- */

void listener_make_reset(int fd)
{
	struct linger linger = { .l_onoff = 1, .l_linger = 0 };
	setsockopt(fd, SOL_SOCKET, SO_LINGER, &linger, sizeof(linger));
}

void listener_reset(int fd)
{
	listener_make_reset(fd);
	close(fd);
}

int listener_bind(const struct ip *ip, uint16_t port, int type)
{
	struct sockaddr_storage sa;
	socklen_t len;
	const int on = 1;
	ip_to_sockaddr(ip, port, &sa, &len);
	cleanup_fd int fd = socket(ip->family, type | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	if (fd < 0)
		return -errno;
	if (type == SOCK_STREAM)
		setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
	if (ip->family == AF_INET6) {
		setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &on, sizeof(on));
		/* a local route makes a whole IPv6 net reachable here, but bind(2) looks at interface addresses only */
		setsockopt(fd, IPPROTO_IPV6, IPV6_FREEBIND, &on, sizeof(on));
	}
	if (bind(fd, (struct sockaddr *)&sa, len) < 0)
		return -errno;
	return fd_steal(&fd);
}

/* ---- accepting ---- */

static void pause_all(struct listeners *all)
{
	for (struct listener *l = all->first; l; l = l->next)
		loop_io_set(l->io, 0);
	loop_timer_set(all->resume, PAUSE_MS * NS_PER_MS, 0);
}

static void on_resume(void *ctx)
{
	struct listeners *all = ctx;
	if (all->spare < 0)
		all->spare = open("/dev/null", O_RDONLY | O_CLOEXEC);
	for (struct listener *l = all->first; l; l = l->next)
		loop_io_set(l->io, LOOP_READ);
}

/* No descriptor left for a connection: gives it the spare one for the moment it takes to reset it. False when even that
 * failed. */
static bool accept_to_reset(struct listener *l)
{
	struct listeners *all = l->all;
	fd_close(&all->spare);
	int fd = accept4(l->fd, NULL, NULL, SOCK_CLOEXEC);
	if (fd >= 0)
		listener_reset(fd);
	all->spare = open("/dev/null", O_RDONLY | O_CLOEXEC);
	if (fd >= 0 && all->spare >= 0)
		return true;
	pause_all(all);
	return false;
}

/* True when a connection was taken, or was gone already: there may be more. */
static bool accept_one(struct listener *l)
{
	const int on = 1;
	int fd = accept4(l->fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
	if (fd >= 0) {
		setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
		l->fn(l->ctx, fd);
		return true;
	}
	if (errno == EMFILE || errno == ENFILE || errno == ENOBUFS || errno == ENOMEM)
		return accept_to_reset(l);
	return errno == ECONNABORTED || errno == EINTR;
}

static void on_acceptable(void *ctx, int fd, int ready)
{
	struct listener *l = ctx;
	bool closed = false;
	l->closed = &closed;
	for (int i = 0; i < ACCEPT_BATCH; i++) {
		bool more = accept_one(l);
		if (closed)
			return;
		if (!more)
			break;
	}
	l->closed = NULL;
}

/* ---- life ---- */

struct listeners *listeners_new(struct loop *loop)
{
	struct listeners *all = mem_alloc(sizeof(*all));
	*all = (struct listeners){ .loop = loop, .spare = open("/dev/null", O_RDONLY | O_CLOEXEC) };
	all->resume = loop_timer_new(loop, on_resume, all);
	return all;
}

struct listeners *listeners_free(struct listeners *all)
{
	if (!all)
		return NULL;
	loop_timer_free(all->resume);
	fd_close(&all->spare);
	return mem_free(all);
}

int listener_open(struct listeners *all, const struct ip *ip, uint16_t port, listener_fn fn, void *ctx, struct listener **ret)
{
	int fd = listener_bind(ip, port, SOCK_STREAM);
	if (fd < 0)
		return fd;
	if (listen(fd, BACKLOG) < 0) {
		int error = errno;
		close(fd);
		return -error;
	}
	struct listener *l = mem_alloc(sizeof(*l));
	*l = (struct listener){ .all = all, .fd = fd, .fn = fn, .ctx = ctx, .next = all->first };
	if (l->next)
		l->next->prev = l;
	all->first = l;
	l->io = loop_io_add(all->loop, fd, LOOP_READ, on_acceptable, l);
	*ret = l;
	return 0;
}

struct listener *listener_close(struct listener *l)
{
	if (!l)
		return NULL;
	if (l->closed)
		*l->closed = true;
	*(l->prev ? &l->prev->next : &l->all->first) = l->next;
	if (l->next)
		l->next->prev = l->prev;
	loop_io_remove(l->io);
	fd_close(&l->fd);
	return mem_free(l);
}

uint16_t listener_port(const struct listener *l)
{
	struct sockaddr_storage sa;
	socklen_t len = sizeof(sa);
	struct ip ip;
	uint16_t port = 0;
	if (getsockname(l->fd, (struct sockaddr *)&sa, &len) == 0)
		ip_from_sockaddr((struct sockaddr *)&sa, &ip, &port);
	return port;
}
