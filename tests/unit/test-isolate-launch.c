/* SPDX-License-Identifier: Apache-2.0 */
/* Messages between supervisor, launcher and clone. */
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>
#include <cmocka.h>

#include "base/fd.h"
#include "base/mem.h"
#include "isolate/launch.h"

struct pair {
	int a, b;
};

static struct pair make_pair(void)
{
	int fds[2];
	assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, fds), 0);
	return (struct pair){ fds[0], fds[1] };
}

static void close_pair(struct pair *p)
{
	fd_close(&p->a);
	fd_close(&p->b);
}

static int receive_all(int sock, struct launch_message *m, struct err *err)
{
	int r;
	while ((r = launch_receive(sock, m, err)) == 0)
		;
	return r;
}

static int count_open(void)
{
	int n = 0;
	for (int fd = 0; fd < 1024; fd++)
		n += fcntl(fd, F_GETFD) >= 0;
	return n;
}

static void send_and_check(size_t n_fds, size_t len)
{
	int fds[LAUNCH_FDS_MAX];
	struct pair p = make_pair();
	struct buf body;
	struct launch_message m;
	struct err err = ERR_INIT;
	buf_init(&body, LAUNCH_MESSAGE_MAX);
	memset(buf_reserve(&body, len), 'x', len);
	buf_commit(&body, len);
	for (size_t i = 0; i < n_fds; i++)
		fds[i] = open(i % 2 ? "/dev/null" : "/dev/zero", O_RDONLY | O_CLOEXEC);
	assert_int_equal(launch_send(p.a, &body, fds, n_fds, &err), 0);
	launch_message_init(&m);
	assert_int_equal(receive_all(p.b, &m, &err), 1);
	assert_int_equal(m.n_fds, n_fds);
	assert_int_equal(m.body.len, len);
	assert_memory_equal(m.body.data, body.data, len);
	for (size_t i = 0; i < n_fds; i++) {
		struct stat ours, theirs;
		assert_int_equal(fstat(fds[i], &ours), 0);
		assert_int_equal(fstat(m.fds[i], &theirs), 0);
		assert_int_equal(ours.st_rdev, theirs.st_rdev);
		assert_true(fcntl(m.fds[i], F_GETFD) & FD_CLOEXEC);
		fd_close(&fds[i]);
	}
	launch_message_done(&m);
	buf_free(&body);
	close_pair(&p);
}

static void test_any_number_of_descriptors(void **state)
{
	(void)state;
	int before = count_open();
	send_and_check(0, 4);
	send_and_check(1, 1);
	send_and_check(FD_PASS_MAX, 100);
	send_and_check(FD_PASS_MAX + 1, 100);
	send_and_check(LAUNCH_FDS_MAX, 60000);
	assert_int_equal(count_open(), before);
}

static void test_malformed(void **state)
{
	(void)state;
	static const uint8_t too_many[] = { 0, 0, 1, 0, 'x' }, too_short[] = { 0, 0 };
	static const struct {
		const void *data;
		size_t len;
	} pieces[] = { { too_many, sizeof(too_many) }, { too_short, sizeof(too_short) } };
	for (size_t i = 0; i < ARRAY_LEN(pieces); i++) {
		struct pair p = make_pair();
		struct launch_message m;
		struct err err = ERR_INIT;
		launch_message_init(&m);
		assert_int_equal(fd_send(p.a, pieces[i].data, pieces[i].len, NULL, 0), (ssize_t)pieces[i].len);
		assert_int_equal(receive_all(p.b, &m, &err), -1);
		assert_int_equal(err.code, ERR_PROTOCOL);
		launch_message_done(&m);
		close_pair(&p);
	}
}

static void test_more_than_announced(void **state)
{
	(void)state;
	int before = count_open();
	static const uint8_t one[] = { 0, 0, 0, 1, 'x' };
	struct pair p = make_pair();
	struct launch_message m;
	struct err err = ERR_INIT;
	int fds[2] = { p.a, p.b };
	launch_message_init(&m);
	assert_int_equal(fd_send(p.a, one, sizeof(one), fds, 2), sizeof(one));
	assert_int_equal(receive_all(p.b, &m, &err), -1);
	assert_int_equal(err.code, ERR_PROTOCOL);
	launch_message_done(&m);
	close_pair(&p);
	assert_int_equal(count_open(), before);
}

static void test_cut_off(void **state)
{
	(void)state;
	static const uint8_t two[] = { 0, 0, 0, 2 };
	struct pair p = make_pair();
	struct launch_message m;
	struct err err = ERR_INIT;
	launch_message_init(&m);
	assert_int_equal(fd_send(p.a, two, sizeof(two), &p.a, 1), sizeof(two));
	fd_close(&p.a);
	/* The first piece is there, the second never comes: an end is seen once the copy of the sender in the message is closed
	 * too. */
	assert_int_equal(launch_receive(p.b, &m, &err), 0);
	fd_close(&m.fds[0]);
	assert_int_equal(launch_receive(p.b, &m, &err), -1);
	assert_int_equal(err.code, ERR_CLOSED);
	launch_message_done(&m);
	close_pair(&p);
}

/* Last words are heard although the one who said them left a message of ours unread. */
static void test_last_words(void **state)
{
	(void)state;
	struct pair p = make_pair();
	struct launch_message m;
	struct buf body;
	struct err err = ERR_INIT;
	buf_init(&body, 64);
	buf_put_u32(&body, 7);
	assert_int_equal(launch_send(p.a, &body, NULL, 0, &err), 0);
	assert_int_equal(launch_send(p.b, &body, NULL, 0, &err), 0);
	fd_close(&p.b);
	launch_message_init(&m);
	assert_int_equal(launch_receive(p.a, &m, &err), 1);
	assert_int_equal(m.body.len, 4);
	launch_message_done(&m);
	launch_message_init(&m);
	assert_int_equal(launch_receive(p.a, &m, &err), -1);
	assert_int_equal(err.code, ERR_CLOSED);
	launch_message_done(&m);
	buf_free(&body);
	close_pair(&p);
}

static void test_failed_round_trip(void **state)
{
	(void)state;
	struct err in = ERR_INIT, out = ERR_INIT;
	struct buf b;
	err_sys(&in, 28, "can't write %s", "it");
	buf_init(&b, 4096);
	assert_int_equal(launch_failed_encode(&b, &in), 0);
	struct cursor c = cursor_make(b.data, b.len);
	assert_int_equal(cursor_u32(&c), LAUNCH_ANSWER_FAILED);
	launch_failed_decode(&c, &out);
	assert_int_equal(out.code, in.code);
	assert_int_equal(out.sys, 28);
	assert_string_equal(out.text, in.text);
	/* Nonsense becomes an error all the same, never success. */
	c = cursor_make("\0\0\0\0\0\0\0\0", 8);
	launch_failed_decode(&c, &out);
	assert_int_equal(out.code, ERR_PROTOCOL);
	c = cursor_make("", 0);
	launch_failed_decode(&c, &out);
	assert_int_not_equal(out.code, ERR_NONE);
	buf_free(&b);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_any_number_of_descriptors),
		cmocka_unit_test(test_malformed),
		cmocka_unit_test(test_more_than_announced),
		cmocka_unit_test(test_cut_off),
		cmocka_unit_test(test_last_words),
		cmocka_unit_test(test_failed_round_trip),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
