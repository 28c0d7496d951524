/* SPDX-License-Identifier: Apache-2.0 */
/* DNS and connections, in a network namespace that looks like a box's: loopback only, with the synthetic nets local to it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <arpa/inet.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/rtnetlink.h>
#include <net/if.h>
#include <poll.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "agent-harness.h"
#include "base/fd.h"
#include "base/mem.h"
#include "base/text.h"
#include "net/dns.h"
#include "wire/capture.h"

enum { TEST_SKIPPED = 77, LITERAL_PORT = 5432 };

static const struct ip literal_v4 = { .family = AF_INET, .bytes = { 192, 0, 2, 9 } };

/* ---- a box's network ---- */

static int loopback_up(void)
{
	struct ifreq r = { .ifr_name = "lo", .ifr_flags = IFF_UP | IFF_RUNNING };
	int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	int result = ioctl(fd, SIOCSIFFLAGS, &r);
	close(fd);
	return result;
}

static void add_attribute(struct nlmsghdr *n, unsigned short type, const void *data, size_t len)
{
	struct rtattr *a = (struct rtattr *)((char *)n + NLMSG_ALIGN(n->nlmsg_len));
	a->rta_type = type;
	a->rta_len = (unsigned short)RTA_LENGTH(len);
	memcpy(RTA_DATA(a), data, len);
	n->nlmsg_len = NLMSG_ALIGN(n->nlmsg_len) + RTA_ALIGN(a->rta_len);
}

/* ip route add local NET/PREFIX dev lo */
static int add_local_route(int family, const void *net, unsigned char prefix)
{
	struct { struct nlmsghdr n; struct rtmsg r; char attributes[128]; } m = {
		.n = { .nlmsg_len = NLMSG_LENGTH(sizeof(struct rtmsg)), .nlmsg_type = RTM_NEWROUTE,
			.nlmsg_flags = NLM_F_REQUEST | NLM_F_CREATE | NLM_F_ACK },
		.r = { .rtm_family = (unsigned char)family, .rtm_dst_len = prefix, .rtm_table = RT_TABLE_LOCAL, .rtm_protocol = RTPROT_STATIC,
			.rtm_scope = RT_SCOPE_HOST, .rtm_type = RTN_LOCAL },
	};
	struct { struct nlmsghdr n; struct nlmsgerr e; char rest[256]; } answer;
	uint32_t index = if_nametoindex("lo");
	add_attribute(&m.n, RTA_DST, net, family == AF_INET ? 4 : 16);
	add_attribute(&m.n, RTA_OIF, &index, sizeof(index));
	int fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_ROUTE);
	int ok = send(fd, &m, m.n.nlmsg_len, 0) > 0 && recv(fd, &answer, sizeof(answer), 0) > 0 && answer.n.nlmsg_type == NLMSG_ERROR &&
		answer.e.error == 0;
	close(fd);
	return ok ? 0 : -1;
}

static int make_network(void)
{
	struct in_addr v4;
	struct in6_addr v6;
	inet_pton(AF_INET, CAPTURE_V4_NET, &v4);
	inet_pton(AF_INET6, CAPTURE_V6_NET, &v6);
	if (unshare(CLONE_NEWUSER | CLONE_NEWNET) < 0 || loopback_up() < 0)
		return -1;
	return add_local_route(AF_INET, &v4, CAPTURE_V4_PREFIX) | add_local_route(AF_INET6, &v6, CAPTURE_V6_PREFIX) |
		add_local_route(AF_INET, literal_v4.bytes, 32);
}

/* ---- a program in the box ---- */

static size_t make_query(uint8_t out[512], uint16_t id, const char *dotted, unsigned type)
{
	static const uint8_t header[] = { 1, 0, 0, 1, 0, 0, 0, 0, 0, 0 };
	size_t n = 0;
	out[n++] = (uint8_t)(id >> 8);
	out[n++] = (uint8_t)id;
	memcpy(out + n, header, sizeof(header));
	n += sizeof(header);
	while (*dotted) {
		size_t label = strcspn(dotted, ".");
		out[n++] = (uint8_t)label;
		memcpy(out + n, dotted, label);
		n += label;
		dotted += label + (dotted[label] == '.');
	}
	memcpy(out + n, (uint8_t[]){ 0, (uint8_t)(type >> 8), (uint8_t)type, 0, 1 }, 5);
	return n + 5;
}

static int connect_to(const struct ip *ip, uint16_t port, int type)
{
	struct sockaddr_storage sa;
	socklen_t len;
	int fd = socket(ip->family, type | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	assert_true(fd >= 0);
	ip_to_sockaddr(ip, port, &sa, &len);
	if (connect(fd, (struct sockaddr *)&sa, len) < 0 && errno != EINPROGRESS) {
		close(fd);
		return -errno;
	}
	return fd;
}

static bool ready(int fd, short events)
{
	struct pollfd p = { .fd = fd, .events = events };
	return poll(&p, 1, 0) > 0;
}

static const struct ip lo_v4 = { .family = AF_INET, .bytes = { 127, 0, 0, 1 } };
static const struct ip lo_v6 = { .family = AF_INET6, .bytes = { [15] = 1 } };

struct answer {
	unsigned rcode, n;
	struct ip ip; /* of the last record */
	uint8_t raw[1500];
	size_t len;
};

static void read_answer(struct answer *a, uint16_t id)
{
	assert_true(a->len >= 12);
	assert_int_equal(a->raw[0] << 8 | a->raw[1], id);
	a->rcode = a->raw[3] & 0xf;
	a->n = (unsigned)a->raw[6] << 8 | a->raw[7];
	size_t size = a->n && a->len > 16 ? (size_t)a->raw[a->len - 5] : 0;
	a->ip = (struct ip){ 0 };
	if (a->n && size == 4 && a->raw[a->len - 6] == 0) {
		a->ip.family = AF_INET;
		memcpy(a->ip.bytes, a->raw + a->len - 4, 4);
	} else if (a->n && a->len > 28) {
		a->ip.family = AF_INET6;
		memcpy(a->ip.bytes, a->raw + a->len - 16, 16);
	}
}

static struct answer ask_at(struct harness *h, const struct ip *server, const char *name, unsigned type)
{
	static uint16_t id;
	struct answer a;
	uint8_t query[512];
	size_t len = make_query(query, ++id, name, type);
	int fd = connect_to(server, HARNESS_DNS_PORT, SOCK_DGRAM);
	assert_int_equal(send(fd, query, len, 0), (ssize_t)len);
	harness_until(h, ready(fd, POLLIN));
	ssize_t n = recv(fd, a.raw, sizeof(a.raw), 0);
	assert_true(n > 0);
	a.len = (size_t)n;
	close(fd);
	read_answer(&a, id);
	return a;
}

static struct answer ask(struct harness *h, const char *name, unsigned type)
{
	return ask_at(h, &lo_v4, name, type);
}

static struct side_stream *last_opened(struct harness *h)
{
	return h->streams[h->n_streams - 1];
}

/* Connects and waits for the stream that comes of it. */
static int enter(struct harness *h, const struct ip *ip, uint16_t port, struct side_stream **ret)
{
	unsigned before = h->n_opened;
	int fd = connect_to(ip, port, SOCK_STREAM);
	assert_true(fd >= 0);
	harness_until(h, h->n_opened == before + 1);
	*ret = last_opened(h);
	return fd;
}

static int connect_error(struct harness *h, int fd)
{
	int error = 0;
	socklen_t len = sizeof(error);
	if (fd < 0)
		return -fd;
	harness_until(h, ready(fd, POLLOUT));
	getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &len);
	close(fd);
	return error;
}

/* ---- life ---- */

static int start(void **state, const struct wire_config *config)
{
	struct harness *h = harness_start();
	h->answer_queries = true;
	harness_configure(h, config);
	*state = h;
	return 0;
}

static int setup(void **state)
{
	struct wire_config config = { .egress = true, .proxy_port = HARNESS_PROXY_PORT, .exec_max = 4, .n_literals = 1,
		.literals = { { literal_v4, LITERAL_PORT } } };
	start(state, &config);
	/* CONFIG is followed before anything after it */
	struct run r = RUN((struct harness *)*state, &(struct run_options){ .no_stdin = true }, "true");
	return run_finish(&r);
}

static int teardown(void **state)
{
	harness_stop(*state);
	return 0;
}

/* ---- DNS ---- */

static void test_allowed_and_denied(void **state)
{
	struct harness *h = *state;
	char text[IP_TEXT_MAX];
	struct answer a = ask(h, "API.allowed.example", DNS_TYPE_A);
	assert_int_equal(a.rcode, DNS_NOERROR);
	assert_int_equal(a.n, 1);
	assert_string_equal(ip_format(&a.ip, text), "198.18.0.1");
	a = ask_at(h, &lo_v6, "api.allowed.example", DNS_TYPE_AAAA);
	assert_string_equal(ip_format(&a.ip, text), "fd00:b011:4ead::1");
	assert_int_equal(h->n_queries, 1); /* the second time it was known */
	assert_string_equal(h->queries[0].name.text, "api.allowed.example");
	a = ask(h, "other.allowed.example", DNS_TYPE_A);
	assert_string_equal(ip_format(&a.ip, text), "198.18.0.2");
	a = ask(h, "evil.example", DNS_TYPE_A);
	assert_int_equal(a.rcode, DNS_NXDOMAIN);
	assert_int_equal(a.n, 0);
	a = ask(h, "evil.example", DNS_TYPE_A);
	assert_int_equal(h->n_queries, 4); /* each denial is asked for, so that it is on the record */
}

static void test_other_types(void **state)
{
	static const unsigned types[] = { 2, 5, 6, 15, 16, 33, 64, 65, 257 };
	struct harness *h = *state;
	for (size_t i = 0; i < ARRAY_LEN(types); i++) {
		struct answer a = ask(h, "a.allowed.example", types[i]);
		assert_int_equal(a.rcode, DNS_NOERROR);
		assert_int_equal(a.n, 0);
	}
	struct answer a = ask(h, "a.allowed.example", DNS_TYPE_ANY);
	assert_int_equal(a.n, 1);
	a = ask(h, "evil.example", 65);
	assert_int_equal(a.rcode, DNS_NXDOMAIN);
}

static void test_answered_without_asking(void **state)
{
	static const struct { const char *name; unsigned type, rcode, n; } cases[] = {
		{ "localhost", DNS_TYPE_A, DNS_NOERROR, 1 }, { "x.localhost", DNS_TYPE_AAAA, DNS_NOERROR, 1 },
		{ "localhost", 16, DNS_NOERROR, 0 }, { "1.0.0.127.in-addr.arpa", DNS_TYPE_PTR, DNS_NOERROR, 1 },
		{ "8.8.8.8.in-addr.arpa", DNS_TYPE_PTR, DNS_NXDOMAIN, 0 }, { "1.0.18.198.in-addr.arpa", DNS_TYPE_PTR, DNS_NXDOMAIN, 0 },
		{ "_http._tcp.allowed.example", 33, DNS_NXDOMAIN, 0 }, { "a b.allowed.example", DNS_TYPE_A, DNS_REFUSED, 0 },
		{ "", 2, DNS_REFUSED, 0 }, { "1.2.3.4", DNS_TYPE_A, DNS_REFUSED, 0 }, { "-a.allowed.example", DNS_TYPE_A, DNS_REFUSED, 0 },
	};
	struct harness *h = *state;
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		struct answer a = ask(h, cases[i].name, cases[i].type);
		assert_int_equal(a.rcode, cases[i].rcode);
		assert_int_equal(a.n, cases[i].n);
	}
	assert_int_equal(h->n_queries, 0);
	struct answer a = ask(h, "x.localhost", DNS_TYPE_AAAA);
	assert_true(ip_equal(&a.ip, &lo_v6));
}

static void test_reverse_of_a_known_name(void **state)
{
	struct harness *h = *state;
	ask(h, "api.allowed.example", DNS_TYPE_A);
	struct answer a = ask(h, "1.0.18.198.in-addr.arpa", DNS_TYPE_PTR);
	assert_int_equal(a.n, 1);
	assert_memory_equal(a.raw + a.len - 21, "\3api\7allowed\7example", 21);
	a = ask(h, "1.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.d.a.e.4.1.1.0.b.0.0.d.f.ip6.arpa", DNS_TYPE_PTR);
	assert_int_equal(a.n, 1);
}

static int dns_over_tcp(struct harness *h, const uint8_t *data, size_t len)
{
	int fd = connect_to(&lo_v4, HARNESS_DNS_PORT, SOCK_STREAM);
	harness_until(h, ready(fd, POLLOUT));
	assert_int_equal(send(fd, data, len, MSG_NOSIGNAL), (ssize_t)len);
	return fd;
}

static size_t receive(struct harness *h, int fd, uint8_t *out, size_t want)
{
	size_t got = 0;
	while (got < want) {
		harness_until(h, ready(fd, POLLIN));
		ssize_t n = recv(fd, out + got, want - got, 0);
		if (n <= 0)
			break;
		got += (size_t)n;
	}
	return got;
}

static void test_tcp(void **state)
{
	struct harness *h = *state;
	uint8_t data[1100], out[1100];
	size_t n = make_query(data + 2, 77, "a.allowed.example", DNS_TYPE_A), m;
	data[0] = 0;
	data[1] = (uint8_t)n;
	n += 2;
	m = make_query(data + n + 2, 78, "evil.example", DNS_TYPE_A); /* two at once, answered in turn */
	data[n] = 0;
	data[n + 1] = (uint8_t)m;
	int fd = dns_over_tcp(h, data, n + 2 + m);
	assert_int_equal(receive(h, fd, out, 2), 2);
	size_t len = out[1];
	assert_int_equal(receive(h, fd, out, len), len);
	assert_int_equal(out[1], 77);
	assert_int_equal(out[7], 1);
	assert_int_equal(receive(h, fd, out, 2), 2);
	len = out[1];
	assert_int_equal(receive(h, fd, out, len), len);
	assert_int_equal(out[1], 78);
	assert_int_equal(out[3] & 0xf, DNS_NXDOMAIN);
	shutdown(fd, SHUT_WR);
	assert_int_equal(receive(h, fd, out, 1), 0);
	close(fd);
}

static void test_tcp_nonsense(void **state)
{
	struct harness *h = *state;
	uint8_t out[16];
	int fd = dns_over_tcp(h, (const uint8_t *)"\xff\xff" "GET / HTTP/1.1", 16);
	assert_int_equal(receive(h, fd, out, 1), 0);
	close(fd);
	fd = dns_over_tcp(h, (const uint8_t *)"\0\5hello", 7);
	assert_int_equal(receive(h, fd, out, 1), 0);
	close(fd);
	/* many silent connections don't keep others out */
	int silent[200];
	for (size_t i = 0; i < ARRAY_LEN(silent); i++)
		silent[i] = dns_over_tcp(h, (const uint8_t *)"\0", 1);
	test_tcp(state);
	for (size_t i = 0; i < ARRAY_LEN(silent); i++)
		close(silent[i]);
}

/* The same name asked for many times while the host thinks: one question to the host, an answer to each. */
static void test_questions_are_merged(void **state)
{
	struct harness *h = *state;
	uint8_t query[512], out[512];
	int fds[50];
	h->answer_queries = false;
	for (size_t i = 0; i < ARRAY_LEN(fds); i++) {
		size_t len = make_query(query, (uint16_t)i, "slow.allowed.example", DNS_TYPE_A);
		fds[i] = connect_to(&lo_v4, HARNESS_DNS_PORT, SOCK_DGRAM);
		assert_int_equal(send(fds[i], query, len, 0), (ssize_t)len);
	}
	harness_until(h, h->n_queries > 0);
	ask(h, "localhost", DNS_TYPE_A); /* meanwhile others are answered */
	harness_answer(h, h->queries[0].query, true, (uint16_t[]){ 443 }, 1);
	for (size_t i = 0; i < ARRAY_LEN(fds); i++) {
		harness_until(h, ready(fds[i], POLLIN));
		assert_true(recv(fds[i], out, sizeof(out), 0) > 12);
		assert_int_equal(out[1], i);
		close(fds[i]);
	}
	assert_int_equal(h->n_queries, 1);
	harness_answer(h, h->queries[0].query, true, NULL, 0); /* again, and one never asked */
	harness_answer(h, 4711, false, NULL, 0);
	ask(h, "localhost", DNS_TYPE_A);
	assert_false(h->closed);
}

/* More names than may be pending: SERVFAIL for the rest, at once. */
static void test_flood_of_names(void **state)
{
	struct harness *h = *state;
	uint8_t query[512], out[512];
	char name[64];
	h->answer_queries = false;
	int fd = connect_to(&lo_v4, HARNESS_DNS_PORT, SOCK_DGRAM);
	for (unsigned i = 0; i < 256; i++) {
		snprintf(name, sizeof(name), "n%u.example", i);
		size_t len = make_query(query, (uint16_t)i, name, DNS_TYPE_A);
		assert_int_equal(send(fd, query, len, 0), (ssize_t)len);
		harness_until(h, h->n_queries == i + 1);
	}
	struct answer a = ask(h, "one-more.example", DNS_TYPE_A);
	assert_int_equal(a.rcode, DNS_SERVFAIL);
	harness_answer(h, h->queries[0].query, false, NULL, 0);
	harness_until(h, ready(fd, POLLIN));
	assert_true(recv(fd, out, sizeof(out), 0) > 12);
	h->answer_queries = true;
	a = ask(h, "one-more.example", DNS_TYPE_A);
	assert_int_equal(a.rcode, DNS_NXDOMAIN);
	close(fd);
}

static void test_host_that_never_answers(void **state)
{
	struct harness *h = *state;
	h->answer_queries = false;
	struct answer a = ask(h, "silent.allowed.example", DNS_TYPE_A);
	assert_int_equal(a.rcode, DNS_SERVFAIL);
}

/* ---- connections ---- */

static void test_connection_by_name(void **state)
{
	struct harness *h = *state;
	static const unsigned types[] = { DNS_TYPE_A, DNS_TYPE_AAAA };
	for (size_t i = 0; i < ARRAY_LEN(types); i++) {
		struct side_stream *st;
		uint8_t out[16];
		struct answer a = ask(h, "api.allowed.example", types[i]);
		int fd = enter(h, &a.ip, 8443, &st);
		assert_int_equal(st->opened.entrance, WIRE_ENTRANCE_NAME);
		assert_string_equal(st->opened.name.text, "api.allowed.example");
		assert_int_equal(st->opened.port, 8443);
		assert_int_equal(send(fd, "ping", 4, MSG_NOSIGNAL), 4);
		harness_until(h, st->received == 4);
		assert_int_equal(mux_stream_write(st->s, "pong!", 5), 5);
		assert_int_equal(receive(h, fd, out, 5), 5);
		assert_memory_equal(out, "pong!", 5);
		shutdown(fd, SHUT_WR); /* half-closed both ways, one after the other */
		harness_until(h, st->eof);
		mux_stream_write(st->s, "bye", 3);
		mux_stream_eof(st->s);
		assert_int_equal(receive(h, fd, out, 16), 3);
		close(fd);
	}
}

static void test_port_that_is_not_allowed_is_refused(void **state)
{
	struct harness *h = *state;
	struct answer a = ask(h, "api.allowed.example", DNS_TYPE_A);
	assert_int_equal(connect_error(h, connect_to(&a.ip, 80, SOCK_STREAM)), ECONNREFUSED);
	struct ip unknown = { .family = AF_INET, .bytes = { 198, 19, 7, 7 } };
	assert_int_equal(connect_error(h, connect_to(&unknown, 443, SOCK_STREAM)), ECONNREFUSED);
	assert_int_equal(h->n_opened, 0);
}

static void test_refusal_of_the_host_is_a_reset(void **state)
{
	struct harness *h = *state;
	struct side_stream *st;
	uint8_t out[4];
	struct answer a = ask(h, "api.allowed.example", DNS_TYPE_A);
	int fd = enter(h, &a.ip, 443, &st);
	mux_stream_close(st->s, MUX_RESET_REFUSED);
	harness_until(h, ready(fd, POLLIN));
	assert_int_equal(recv(fd, out, sizeof(out), 0), -1);
	assert_int_equal(errno, ECONNRESET);
	close(fd);
}

/* An answer cut short must not look like a whole one, also when the program has said all it had to say. */
static void test_reset_after_half_close_is_a_reset(void **state)
{
	struct harness *h = *state;
	struct side_stream *st;
	uint8_t out[16];
	int fd = enter(h, &lo_v4, HARNESS_PROXY_PORT, &st);
	shutdown(fd, SHUT_WR);
	harness_until(h, st->eof);
	assert_int_equal(mux_stream_write(st->s, "half", 4), 4);
	assert_int_equal(receive(h, fd, out, 4), 4);
	mux_stream_close(st->s, MUX_RESET_IO);
	harness_until(h, ready(fd, POLLIN));
	assert_int_equal(recv(fd, out, sizeof(out), 0), -1);
	assert_int_equal(errno, ECONNRESET);
	close(fd);
}

static void test_literal_and_proxy(void **state)
{
	struct harness *h = *state;
	struct side_stream *st;
	int fd = enter(h, &literal_v4, LITERAL_PORT, &st);
	assert_int_equal(st->opened.entrance, WIRE_ENTRANCE_ADDRESS);
	assert_true(ip_equal(&st->opened.address, &literal_v4));
	assert_int_equal(st->opened.port, LITERAL_PORT);
	close(fd);
	fd = enter(h, &lo_v4, HARNESS_PROXY_PORT, &st);
	assert_int_equal(st->opened.entrance, WIRE_ENTRANCE_PROXY);
	close(fd);
	fd = enter(h, &lo_v6, HARNESS_PROXY_PORT, &st);
	assert_int_equal(st->opened.entrance, WIRE_ENTRANCE_PROXY);
	close(fd);
	assert_int_equal(h->n_queries, 0);
}

static void test_no_longer_allowed(void **state)
{
	struct harness *h = *state;
	h->answer_queries = false;
	uint8_t query[512];
	size_t len = make_query(query, 1, "turned.example", DNS_TYPE_A);
	int fd = connect_to(&lo_v4, HARNESS_DNS_PORT, SOCK_DGRAM);
	send(fd, query, len, 0);
	harness_until(h, h->n_queries == 1);
	harness_answer(h, h->queries[0].query, true, NULL, 0); /* allowed on no port: known, but nothing listens */
	harness_until(h, ready(fd, POLLIN));
	close(fd);
	struct ip first = { .family = AF_INET, .bytes = { 198, 18, 0, 1 } };
	assert_int_equal(connect_error(h, connect_to(&first, 443, SOCK_STREAM)), ECONNREFUSED);
}

/* Connections beyond the ceiling are reset; when some end, there is room again; executions never suffer. */
static void test_ceiling_of_connections(void **state)
{
	enum { MANY = 700 };
	struct harness *h = *state;
	static int fds[MANY];
	unsigned reset = 0, open = 0;
	for (unsigned i = 0; i < MANY; i++) {
		fds[i] = connect_to(&lo_v4, HARNESS_PROXY_PORT, SOCK_STREAM);
		assert_true(fds[i] >= 0);
		harness_until(h, ready(fds[i], POLLOUT));
	}
	harness_until(h, h->n_opened >= 200);
	struct run r = RUN(h, &(struct run_options){ .no_stdin = true }, "true");
	assert_int_equal(run_finish(&r), 0);
	for (unsigned i = 0; i < MANY; i++) {
		uint8_t byte;
		if (ready(fds[i], POLLIN) && recv(fds[i], &byte, 1, 0) < 0 && errno == ECONNRESET)
			reset++;
		else
			open++;
		close(fds[i]);
	}
	assert_int_equal(open, h->n_opened);
	assert_true(reset >= MANY - 512);
	unsigned before = h->n_opened;
	unsigned over = 0;
	harness_deadline(h);
	while (over < before) {
		harness_step(h, "ends of all connections");
		over = 0;
		for (unsigned i = 0; i < h->n_streams; i++)
			if (h->streams[i]->opened.stream && (h->streams[i]->eof || h->streams[i]->reset)) {
				over++;
				if (h->streams[i]->s) {
					mux_stream_close(h->streams[i]->s, MUX_RESET_CANCEL);
					h->streams[i]->s = NULL;
				}
			}
	}
	/* the agent hears of these ends in its own time */
	for (before = h->n_opened; h->n_opened == before;) {
		int fd = connect_to(&lo_v4, HARNESS_PROXY_PORT, SOCK_STREAM);
		harness_until(h, h->n_opened > before || ready(fd, POLLIN));
		close(fd);
	}
}

static unsigned count_descriptors(pid_t pid)
{
	char path[64];
	unsigned n = 0;
	snprintf(path, sizeof(path), "/proc/%d/fd", (int)pid);
	DIR *d = opendir(path);
	if (!d)
		return 0;
	while (readdir(d))
		n++;
	closedir(d);
	return n;
}

static void test_connections_leak_nothing(void **state)
{
	struct harness *h = *state;
	struct side_stream *st;
	struct answer a = ask(h, "api.allowed.example", DNS_TYPE_A);
	unsigned before = count_descriptors(h->agent);
	for (unsigned i = 0; i < 300; i++) {
		int fd = enter(h, &a.ip, 443, &st);
		if (i % 3 == 0)
			mux_stream_close(st->s, MUX_RESET_REFUSED);
		close(fd);
		if (i % 3)
			harness_until(h, st->eof || st->reset);
		if (i % 3 && st->s)
			mux_stream_eof(st->s);
		if (i % 3 == 0)
			st->s = NULL;
	}
	harness_until(h, count_descriptors(h->agent) == before);
}

/* Few descriptors: the agent lives, resets what it can't take, and doesn't spin. */
static void test_descriptors_run_out(void **state)
{
	enum { FEW = 64, MANY = 100 };
	struct harness *h = *state;
	struct rlimit limit;
	int fds[MANY];
	assert_int_equal(prlimit(h->agent, RLIMIT_NOFILE, NULL, &limit), 0);
	limit.rlim_cur = FEW;
	assert_int_equal(prlimit(h->agent, RLIMIT_NOFILE, &limit, NULL), 0);
	for (unsigned i = 0; i < MANY; i++) {
		fds[i] = connect_to(&lo_v4, HARNESS_PROXY_PORT, SOCK_STREAM);
		harness_until(h, ready(fds[i], POLLOUT));
	}
	uint8_t byte;
	harness_until(h, ready(fds[MANY - 1], POLLIN));
	assert_int_equal(recv(fds[MANY - 1], &byte, 1, 0), -1);
	assert_int_equal(errno, ECONNRESET);
	struct run r = RUN(h, &(struct run_options){ .no_stdin = true }, "true");
	assert_int_equal(run_finish(&r), -EMFILE);
	struct answer a = ask(h, "late.allowed.example", DNS_TYPE_A);
	assert_int_equal(a.rcode, DNS_SERVFAIL);
	for (unsigned i = 0; i < MANY; i++)
		close(fds[i]);
	for (unsigned i = 0; i < h->n_streams; i++)
		if (h->streams[i]->opened.stream && h->streams[i]->s)
			mux_stream_eof(h->streams[i]->s);
	harness_until(h, count_descriptors(h->agent) < FEW / 2);
	r = RUN(h, &(struct run_options){ .no_stdin = true }, "true");
	assert_int_equal(run_finish(&r), 0);
}

/* ---- configuration that can't be followed ---- */

static void test_failure_is_told(void **state)
{
	struct wire_config config = { .egress = true, .exec_max = 4, .n_literals = 1,
		.literals = { { { .family = AF_INET, .bytes = { 203, 0, 113, 1 } }, 443 } } };
	start(state, &config);
	struct harness *h = *state;
	harness_until(h, h->is_failed);
	assert_int_equal(h->failed.code, ERR_SYSTEM);
	assert_non_null(strstr(h->failed.text, "203.0.113.1 port 443"));
	struct run r = RUN(h, &(struct run_options){ .no_stdin = true }, "true");
	assert_int_equal(run_finish(&r), -EAGAIN); /* nothing runs any more */
	harness_stop(h);
}

#define WITH_AGENT(test) cmocka_unit_test_setup_teardown(test, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		WITH_AGENT(test_allowed_and_denied), WITH_AGENT(test_other_types), WITH_AGENT(test_answered_without_asking),
		WITH_AGENT(test_reverse_of_a_known_name), WITH_AGENT(test_tcp), WITH_AGENT(test_tcp_nonsense),
		WITH_AGENT(test_questions_are_merged), WITH_AGENT(test_flood_of_names), WITH_AGENT(test_host_that_never_answers),
		WITH_AGENT(test_connection_by_name), WITH_AGENT(test_port_that_is_not_allowed_is_refused),
		WITH_AGENT(test_refusal_of_the_host_is_a_reset), WITH_AGENT(test_reset_after_half_close_is_a_reset),
		WITH_AGENT(test_literal_and_proxy), WITH_AGENT(test_no_longer_allowed),
		WITH_AGENT(test_ceiling_of_connections), WITH_AGENT(test_connections_leak_nothing), WITH_AGENT(test_descriptors_run_out),
		cmocka_unit_test(test_failure_is_told),
	};
	if (make_network() < 0) {
		fprintf(stderr, "skipped: no network namespace of our own to be had here: %s\n", strerror(errno));
		return TEST_SKIPPED;
	}
	return cmocka_run_group_tests(tests, NULL, NULL);
}
