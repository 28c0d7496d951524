/* SPDX-License-Identifier: Apache-2.0 */
/* Channels over socket pairs, with TLS and without, of both versions. */
#include <errno.h>
#include <malloc.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/mem.h"
#include "base/text.h"
#include "http-rig.h"
#include "net/channel.h"

struct end {
	struct channel *ch;
	enum http_version version;
	enum http_role role;
	const struct http_conn_ops *http_ops;
	void *http_ctx;
	unsigned closed, secured, faults;
	enum http_fault fault;
	struct err err;
	uint64_t in, out;
	bool free_when_closed, answer_faults;
};

static struct loop *loop;
static struct mint *mint;
static struct tls_roots *roots;

static struct http_conn *make_http(struct end *e)
{
	struct http_conn_config config = { .version = e->version, .role = e->role, .scheme = "https" };
	return http_conn_new(&config, e->http_ops, e->http_ctx);
}

static void on_secure(void *ctx)
{
	struct end *e = ctx;
	e->secured++;
	assert_string_equal(tls_alpn(channel_tls(e->ch)), e->version == HTTP_2 ? "h2" : "http/1.1");
	channel_start(e->ch, make_http(e));
}

static void on_closed(void *ctx, const struct err *err)
{
	struct end *e = ctx;
	e->closed++;
	e->err = *err;
	if (e->free_when_closed)
		e->ch = channel_free(e->ch);
}

static void on_fault(void *ctx, enum http_fault fault)
{
	struct end *e = ctx;
	struct http_head h;
	e->faults++;
	e->fault = fault;
	if (!e->answer_faults)
		return;
	http_head_init(&h);
	h.status = 400;
	assert_int_equal(http_conn_last_words(channel_http(e->ch), &h, "no\n", 3), 0);
	http_head_free(&h);
}

static void on_bytes(void *ctx, size_t in, size_t out)
{
	struct end *e = ctx;
	e->in += in;
	e->out += out;
}

static const struct channel_ops ops = { on_secure, on_closed, on_fault, on_bytes };

static void end_open(struct end *e, int fd, bool with_tls, enum http_version version, enum http_role role)
{
	struct tls *tls = NULL;
	struct err err = ERR_INIT;
	const char *alpn = version == HTTP_2 ? "h2" : "http/1.1";
	if (with_tls)
		tls = role == HTTP_SERVER ? tls_server_new(mint, "box.example", alpn, &err) : tls_client_new(roots, "box.example", alpn, &err);
	if (with_tls && !tls)
		fail_msg("%s", err.text);
	e->version = version;
	e->role = role;
	e->ch = channel_new(loop, fd, tls, NULL, 0, &ops, e);
	if (!with_tls)
		channel_start(e->ch, make_http(e));
}

struct both { struct end client, server; struct rig_server app; };

static void both_open(struct both *b, bool with_tls, enum http_version version)
{
	int fds[2];
	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, fds), 0);
	rig_seen_init(&b->app.last);
	b->client.http_ops = &rig_client_ops;
	b->server.http_ops = &rig_server_ops;
	b->server.http_ctx = &b->app;
	end_open(&b->client, fds[0], with_tls, version, HTTP_CLIENT);
	end_open(&b->server, fds[1], with_tls, version, HTTP_SERVER);
	while (!channel_http(b->client.ch) || !channel_http(b->server.ch))
		loop_run_once(loop, true);
}

static void both_free(struct both *b)
{
	b->client.ch = channel_free(b->client.ch);
	b->server.ch = channel_free(b->server.ch);
	rig_seen_free(&b->app.last);
}

/* Everything that happens without anybody acting. */
static void settle(void)
{
	for (int quiet = 0; quiet < 20; quiet++)
		loop_run_once(loop, false);
}

static void start(struct rig_client *c, struct both *b, const char *method, const char *path, uint64_t body, bool ends)
{
	struct http_head h;
	rig_request(&h, method, path);
	if (strcmp(method, "CONNECT") == 0) {
		http_head_set(&h, &h.protocol, "websocket", 9);
		http_head_add(&h, "sec-websocket-version", "13", 2);
	}
	rig_client_start(c, channel_http(b->client.ch), &h, body, ends);
	http_head_free(&h);
	channel_kick(b->client.ch);
}

typedef void (*case_fn)(struct both *b, struct rig_client *c);

static void each_way(case_fn fn)
{
	for (int tls = 0; tls <= 1; tls++)
		for (int version = HTTP_1; version <= HTTP_2; version++) {
			struct both b = { 0 };
			struct rig_client c = { 0 };
			rig_seen_init(&c.seen);
			print_message("# %s, HTTP/%d\n", tls ? "TLS" : "plain", version);
			both_open(&b, tls, version);
			fn(&b, &c);
			both_free(&b);
			rig_seen_free(&c.seen);
		}
}

static void echo(struct both *b, struct rig_client *c)
{
	start(c, b, "POST", "/echo", 8u << 20, true);
	while (c->stream)
		loop_run_once(loop, true);
	assert_int_equal(c->seen.fault, HTTP_FAULT_NONE);
	assert_int_equal(c->seen.bytes, 8u << 20);
	assert_int_equal(c->seen.sum, c->sum);
	assert_true(b->client.out > 8u << 20);
	settle();
	assert_int_equal(b->client.out, b->server.in);
	assert_int_equal(b->client.in, b->server.out);
	channel_finish(b->client.ch, 10 * NS_PER_S);
	while (!b->client.closed || !b->server.closed)
		loop_run_once(loop, true);
	assert_int_equal(b->client.err.code, ERR_NONE);
	assert_int_equal(b->server.err.code, ERR_NONE);
	assert_int_equal(b->client.closed, 1);
	assert_int_equal(b->server.closed, 1);
}

static void bodies_cross_and_the_end_is_orderly(void **state) { each_way(echo); }

static void stall(struct both *b, struct rig_client *c)
{
	c->lazy = true;
	start(c, b, "POST", "/echo", 32u << 20, true);
	settle();
	while (c->seen.bytes < HTTP_WINDOW)
		loop_run_once(loop, true);
	settle();
	uint64_t sent = c->sent;
	settle();
	assert_int_equal(c->sent, sent);
	assert_int_equal(c->seen.bytes, HTTP_WINDOW);
	assert_true(sent < 8u << 20);
	while (c->stream) {
		http_stream_credit(c->stream, c->uncredited);
		c->uncredited = 0;
		channel_kick(b->client.ch);
		loop_run_once(loop, true);
	}
	assert_int_equal(c->seen.sum, c->sum);
	assert_int_equal(c->seen.bytes, 32u << 20);
}

static void a_reader_that_waits_holds_the_writer(void **state) { each_way(stall); }

static void vanish(struct both *b, struct rig_client *c)
{
	start(c, b, "POST", "/echo", 1000, false);
	while (c->seen.bytes < 1000)
		loop_run_once(loop, true);
	b->server.ch = channel_free(b->server.ch); /* without a word */
	assert_int_equal(b->app.closes, 1);
	assert_int_equal(b->app.last.fault, HTTP_CANCELLED);
	assert_int_equal(b->server.closed, 0);
	while (!b->client.closed)
		loop_run_once(loop, true);
	assert_int_equal(c->seen.closes, 1);
	assert_int_equal(c->seen.fault, HTTP_TRUNCATED);
	assert_int_not_equal(b->client.err.code, ERR_NONE);
}

static void a_peer_that_vanishes_is_told(void **state) { each_way(vanish); }

static void websocket(struct both *b, struct rig_client *c)
{
	settle();
	start(c, b, "CONNECT", "/chat", 1000, false);
	while (c->seen.bytes < 1000)
		loop_run_once(loop, true);
	assert_int_equal(http_stream_send_end(c->stream, NULL), 0);
	channel_kick(b->client.ch);
	while (c->stream)
		loop_run_once(loop, true);
	assert_true(c->seen.ended);
	assert_int_equal(c->seen.fault, HTTP_FAULT_NONE);
	assert_int_equal(b->app.last.fault, HTTP_FAULT_NONE);
}

static void one_direction_ends_before_the_other(void **state) { each_way(websocket); }

static void cut(struct both *b, struct rig_client *c)
{
	settle();
	start(c, b, "CONNECT", "/hold", 0, false);
	while (!b->app.held)
		loop_run_once(loop, true);
	struct http_head h;
	http_head_init(&h);
	h.status = 200;
	assert_int_equal(http_stream_send_head(b->app.held, &h, false, NULL), 0);
	http_head_free(&h);
	assert_int_equal(http_stream_send_data(b->app.held, "half", 4), 4);
	channel_kick(b->server.ch);
	while (c->seen.bytes < 4)
		loop_run_once(loop, true);
	http_stream_reset(b->app.held, HTTP_TRUNCATED);
	channel_kick(b->server.ch);
	while (c->stream)
		loop_run_once(loop, true);
	assert_int_equal(c->seen.fault, HTTP_TRUNCATED);
}

static void a_cut_is_not_taken_for_the_end(void **state)
{
	/* Plain HTTP/1 over a socket pair has no way to say it: TCP resets. */
	for (int version = HTTP_1; version <= HTTP_2; version++) {
		struct both b = { 0 };
		struct rig_client c = { 0 };
		both_open(&b, true, version);
		cut(&b, &c);
		both_free(&b);
		rig_seen_free(&c.seen);
	}
}

/* ---- freeing from inside ---- */

static void freeing_head(void *ctx, struct http_stream *s, const struct http_head *head, bool end)
{
	struct end *e = ctx;
	e->ch = channel_free(e->ch);
}

static void freeing_data(void *ctx, struct http_stream *s, const uint8_t *p, size_t len)
{
	fail_msg("nothing is heard of a channel that was freed");
}

static void no_end(void *ctx, struct http_stream *s, const struct http_head *trailers) { }
static void no_drain(void *ctx, struct http_stream *s) { }
static void counting_close(void *ctx, struct http_stream *s, enum http_fault fault) { ((struct end *)ctx)->faults++; }

static const struct http_conn_ops freeing_ops = { freeing_head, freeing_data, no_end, no_drain, counting_close };

static void channels_may_be_freed_from_inside(void **state)
{
	for (int tls = 0; tls <= 1; tls++)
		for (int version = HTTP_1; version <= HTTP_2; version++) {
			struct both b = { 0 };
			struct rig_client c = { 0 };
			both_open(&b, tls, version);
			both_free(&b);
			int fds[2];
			assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, fds), 0);
			b = (struct both){ .client.http_ops = &rig_client_ops, .server.http_ops = &freeing_ops };
			b.server.http_ctx = &b.server;
			b.client.free_when_closed = true;
			end_open(&b.client, fds[0], tls, version, HTTP_CLIENT);
			end_open(&b.server, fds[1], tls, version, HTTP_SERVER);
			while (!channel_http(b.client.ch) || !channel_http(b.server.ch))
				loop_run_once(loop, true);
			start(&c, &b, "POST", "/echo", 100, true);
			while (!b.client.closed)
				loop_run_once(loop, true);
			assert_null(b.client.ch);
			assert_null(b.server.ch);
			assert_int_equal(b.server.faults, 1);
			assert_int_equal(b.server.closed, 0);
			assert_int_equal(c.seen.fault, HTTP_TRUNCATED);
			rig_seen_free(&c.seen);
		}
}

/* ---- raw peers ---- */

static int raw_server(struct both *b, const void *early, size_t len)
{
	int fds[2];
	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, fds), 0);
	*b = (struct both){ .server = { .http_ops = &rig_server_ops, .version = HTTP_1, .role = HTTP_SERVER } };
	b->server.http_ctx = &b->app;
	rig_seen_init(&b->app.last);
	b->server.ch = channel_new(loop, fds[1], NULL, early, len, &ops, &b->server);
	channel_start(b->server.ch, make_http(&b->server));
	return fds[0];
}

static void say(int fd, const char *text)
{
	assert_int_equal(write(fd, text, strlen(text)), strlen(text));
}

static void read_all(int fd, char *out, size_t size)
{
	size_t at = 0;
	for (;;) {
		loop_run_once(loop, false);
		ssize_t n = read(fd, out + at, size - 1 - at);
		if (n == 0)
			break;
		if (n > 0)
			at += (size_t)n;
		else
			assert_int_equal(errno, EAGAIN);
	}
	out[at] = 0;
}

static void a_fault_is_answered_before_the_end(void **state)
{
	struct both b;
	char out[1000];
	int fd = raw_server(&b, NULL, 0);
	b.server.answer_faults = true;
	say(fd, "GET / HTTP/1.1\r\nHost : a\r\n\r\nrest");
	read_all(fd, out, sizeof(out));
	assert_string_equal(out, "HTTP/1.1 400 Bad Request\r\nContent-Length: 3\r\nConnection: close\r\n\r\nno\n");
	assert_int_equal(b.server.faults, 1);
	assert_int_equal(b.server.fault, HTTP_MALFORMED);
	assert_int_equal(b.app.requests, 0);
	close(fd);
	while (!b.server.closed)
		loop_run_once(loop, true);
	assert_int_equal(b.server.err.code, ERR_PROTOCOL);
	both_free(&b);
}

static void bytes_read_before_come_first(void **state)
{
	struct both b;
	char out[1000];
	int fd = raw_server(&b, "GET / HTTP/1.1\r\nHo", 18);
	const char *rest = "st: a\r\n\r\nGET /denied HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n";
	say(fd, rest);
	read_all(fd, out, sizeof(out));
	assert_string_equal(out, "HTTP/1.1 200 OK\r\nX-Answer: yes\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n"
		"HTTP/1.1 403 Forbidden\r\nX-Answer: yes\r\nContent-Length: 0\r\nConnection: close\r\n\r\n");
	assert_int_equal(b.app.requests, 2);
	close(fd);
	both_free(&b);
}

static void a_client_that_goes_away_is_noticed(void **state)
{
	struct both b;
	int fd = raw_server(&b, NULL, 0);
	say(fd, "GET /hold HTTP/1.1\r\nHost: a\r\n\r\n");
	while (!b.app.held)
		loop_run_once(loop, true);
	close(fd);
	while (!b.server.closed)
		loop_run_once(loop, true);
	assert_int_equal(b.app.closes, 1);
	assert_int_equal(b.app.last.fault, HTTP_CANCELLED);
	both_free(&b);
	/* Also with a further request behind, which nobody has looked at. */
	fd = raw_server(&b, NULL, 0);
	say(fd, "GET /hold HTTP/1.1\r\nHost: a\r\n\r\nGET / HT");
	close(fd);
	while (!b.server.closed)
		loop_run_once(loop, true);
	assert_int_equal(b.app.last.fault, HTTP_CANCELLED);
	both_free(&b);
}

static void silence_ends_a_channel(void **state)
{
	struct both b;
	int fd = raw_server(&b, NULL, 0);
	channel_set_idle(b.server.ch, 20 * NS_PER_MS);
	say(fd, "GET /hold HT");
	while (!b.server.closed)
		loop_run_once(loop, true);
	assert_int_equal(b.server.err.code, ERR_TIMEOUT);
	close(fd);
	both_free(&b);
}

static void an_unanswered_request_is_not_the_clients_silence(void **state)
{
	struct both b;
	int fd = raw_server(&b, NULL, 0);
	channel_set_idle(b.server.ch, 5 * NS_PER_MS);
	say(fd, "GET /hold HTTP/1.1\r\nHost: a\r\n\r\n");
	while (!b.app.held)
		loop_run_once(loop, true);
	uint64_t until = time_monotonic_ns() + 50 * NS_PER_MS;
	while (time_monotonic_ns() < until)
		loop_run_once(loop, false);
	assert_int_equal(b.server.closed, 0);
	close(fd);
	both_free(&b);
}

enum { IDLE_CHANNELS = 400 };

static size_t in_use(void) { return mallinfo2().uordblks; }

static void idle_channels_are_small(void **state)
{
#ifdef __SANITIZE_ADDRESS__
	skip();
#endif
	static struct both many[IDLE_CHANNELS];
	static int fds[IDLE_CHANNELS];
	char byte;
	size_t before = in_use();
	for (size_t i = 0; i < IDLE_CHANNELS; i++) {
		fds[i] = raw_server(&many[i], NULL, 0);
		channel_set_idle(many[i].server.ch, 3600 * NS_PER_S);
		say(fds[i], "GET / HTTP/1.1\r\nHost: a\r\n\r\n");
	}
	for (size_t i = 0; i < IDLE_CHANNELS; i++) {
		while (many[i].app.closes == 0)
			loop_run_once(loop, true);
		rig_seen_free(&many[i].app.last);
		assert_int_equal(read(fds[i], &byte, 1), 1);
	}
	settle();
	size_t each = (in_use() - before) / IDLE_CHANNELS;
	print_message("# an idle HTTP/1 channel: %zu bytes\n", each);
	assert_true(each <= 2048);
	for (size_t i = 0; i < IDLE_CHANNELS; i++) {
		close(fds[i]);
		both_free(&many[i]);
	}
}

static int set_up(void **state)
{
	struct err err = ERR_INIT;
	loop = loop_new();
	if (tls_prepare(&err) < 0 || !(mint = mint_new("test", &err)))
		fail_msg("%s", err.text);
	const char *pem = mint_ca_pem(mint);
	roots = tls_roots_with(NULL, pem, strlen(pem), &err);
	if (!roots)
		fail_msg("%s", err.text);
	return 0;
}

static int tear_down(void **state)
{
	tls_roots_free(roots);
	mint_free(mint);
	loop_free(loop);
	return 0;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(bodies_cross_and_the_end_is_orderly),
		cmocka_unit_test(a_reader_that_waits_holds_the_writer),
		cmocka_unit_test(a_peer_that_vanishes_is_told),
		cmocka_unit_test(one_direction_ends_before_the_other),
		cmocka_unit_test(a_cut_is_not_taken_for_the_end),
		cmocka_unit_test(channels_may_be_freed_from_inside),
		cmocka_unit_test(a_fault_is_answered_before_the_end),
		cmocka_unit_test(bytes_read_before_come_first),
		cmocka_unit_test(a_client_that_goes_away_is_noticed),
		cmocka_unit_test(silence_ends_a_channel),
		cmocka_unit_test(an_unanswered_request_is_not_the_clients_silence),
		cmocka_unit_test(idle_channels_are_small),
	};
	return cmocka_run_group_tests(tests, set_up, tear_down);
}
