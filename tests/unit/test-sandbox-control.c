/* SPDX-License-Identifier: Apache-2.0 */
/* The messages between commands and a running sandbox, and the command's side against a made-up supervisor. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <fcntl.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/fd.h"
#include "base/mem.h"
#include "gate/policy-file.h"
#include "sandbox/control-client.h"

static struct buf b;

static void fresh(void)
{
	buf_free(&b);
	buf_init(&b, CONTROL_MESSAGE_MAX);
}

static void messages_come_through(void **state)
{
	struct control_msg_secret secret = { "github" }, secret_out;
	struct control_msg_ok ok = { 3, 1ull << 40 }, ok_out;
	struct gate_msg_policy policy = { 0, 77 }, policy_out;
	struct err why, why_out = ERR_INIT;
	fresh();
	assert_int_equal(control_msg_secret_encode(&b, CONTROL_SECRET_REVOKE, &secret), 0);
	assert_int_equal(control_msg_secret_decode(b.data, b.len, CONTROL_SECRET_REVOKE, &secret_out, NULL), 0);
	assert_string_equal(secret_out.name, "github");
	/* A rotation is no revocation. */
	assert_int_equal(control_msg_secret_decode(b.data, b.len, CONTROL_SECRET_CHANGED, &secret_out, NULL), -1);
	fresh();
	control_msg_ok_encode(&b, &ok);
	assert_int_equal(control_msg_ok_decode(b.data, b.len, &ok_out, NULL), 0);
	assert_memory_equal(&ok, &ok_out, sizeof(ok));
	fresh();
	control_msg_policy_encode(&b, &policy);
	assert_int_equal(control_msg_policy_decode(b.data, b.len, &policy_out, NULL), 0);
	assert_memory_equal(&policy, &policy_out, sizeof(policy));
	fresh();
	err_set(&why, ERR_CONFLICT, "it is just being changed");
	control_msg_failed_encode(&b, &why);
	assert_int_equal(control_msg_failed_decode(b.data, b.len, &why_out, NULL), 0);
	assert_int_equal(why_out.code, ERR_CONFLICT);
	assert_string_equal(why_out.text, why.text);
}

/* Every prefix, and one byte more. */
static void what_is_off_is_refused(void **state)
{
	struct control_msg_secret secret;
	struct control_msg_ok ok = { 1, 2 };
	struct err why;
	fresh();
	buf_put_u32(&b, CONTROL_SECRET_CHANGED);
	buf_put_str(&b, "npm");
	for (size_t i = 0; i < b.len; i++)
		assert_int_equal(control_msg_secret_decode(b.data, i, CONTROL_SECRET_CHANGED, &secret, NULL), -1);
	buf_put_u8(&b, 0);
	assert_int_equal(control_msg_secret_decode(b.data, b.len, CONTROL_SECRET_CHANGED, &secret, NULL), -1);
	fresh();
	buf_put_u32(&b, CONTROL_SECRET_CHANGED);
	buf_put_bytes(&b, "a\0b", 3);
	assert_int_equal(control_msg_secret_decode(b.data, b.len, CONTROL_SECRET_CHANGED, &secret, NULL), -1);
	fresh();
	buf_put_u32(&b, CONTROL_SECRET_CHANGED);
	buf_put_str(&b, "");
	assert_int_equal(control_msg_secret_decode(b.data, b.len, CONTROL_SECRET_CHANGED, &secret, NULL), -1);
	fresh();
	control_msg_ok_encode(&b, &ok);
	for (size_t i = 0; i < b.len; i++)
		assert_int_equal(control_msg_ok_decode(b.data, i, &ok, NULL), -1);
	static const uint32_t codes[] = { ERR_NONE, ERR_CODE_MAX, UINT32_MAX };
	for (size_t i = 0; i < ARRAY_LEN(codes); i++) {
		fresh();
		buf_put_u32(&b, CONTROL_FAILED);
		buf_put_u32(&b, codes[i]);
		buf_put_str(&b, "no");
		assert_int_equal(control_msg_failed_decode(b.data, b.len, &why, NULL), -1);
	}
	buf_free(&b);
}

/* ---- the command's side ---- */

struct fixture { char path[64]; int fd; };

static int setup(void **state)
{
	struct fixture *f = mem_alloc(sizeof(*f));
	strcpy(f->path, "/tmp/bulkhead-control-XXXXXX");
	if (!mkdtemp(f->path))
		return -1;
	f->fd = open(f->path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	*state = f;
	return 0;
}

static int teardown(void **state)
{
	struct fixture *f = *state;
	unlinkat(f->fd, CONTROL_FILE, 0);
	close(f->fd);
	rmdir(f->path);
	mem_free(f);
	return 0;
}

static int serve(struct fixture *f)
{
	struct sockaddr_un sa = { .sun_family = AF_UNIX };
	int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
	snprintf(sa.sun_path, sizeof(sa.sun_path), "%s/" CONTROL_FILE, f->path);
	assert_int_equal(bind(fd, (struct sockaddr *)&sa, sizeof(sa)), 0);
	assert_int_equal(listen(fd, 1), 0);
	return fd;
}

/* A supervisor that answers one request with these bytes, or not at all. */
static pid_t answer_with(int listen_fd, const void *answer, size_t len)
{
	pid_t pid = fork();
	if (pid)
		return pid;
	uint8_t request[CONTROL_MESSAGE_MAX];
	int fds[1] = { -1 }, fd = accept(listen_fd, NULL, NULL);
	size_t n_fds = 1;
	ssize_t n = fd_recv(fd, request, sizeof(request), fds, &n_fds);
	struct gate_msg_policy m;
	bool good = n > 0;
	if (good && request[3] == CONTROL_POLICY_SET) {
		struct policy *p = NULL;
		good = control_msg_policy_decode(request, (size_t)n, &m, NULL) == 0 && n_fds == 1 && (p = policy_fd_read(fds[0], m.policy_len, NULL));
		policy_free(p);
	}
	if (len && good)
		good = send(fd, answer, len, 0) == (ssize_t)len;
	_exit(good ? 0 : 1);
}

static void reap(pid_t pid)
{
	int status;
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 0);
}

static void nobody_there(void **state)
{
	struct fixture *f = *state;
	struct control_msg_ok ok;
	struct err err = ERR_INIT;
	assert_int_equal(control_ask_secret(f->fd, CONTROL_SECRET_CHANGED, "npm", &ok, &err), -1);
	assert_int_equal(err.code, ERR_NOT_FOUND);
	/* A socket that a killed supervisor left. */
	close(serve(f));
	assert_int_equal(control_ask_secret(f->fd, CONTROL_SECRET_CHANGED, "npm", &ok, &err), -1);
	assert_int_equal(err.code, ERR_NOT_FOUND);
}

static void answers_are_taken(void **state)
{
	struct fixture *f = *state;
	struct control_msg_ok said = { 4, 2 }, ok = { 0 };
	struct err why, err = ERR_INIT;
	int fd = serve(f);
	fresh();
	control_msg_ok_encode(&b, &said);
	pid_t pid = answer_with(fd, b.data, b.len);
	assert_int_equal(control_ask_secret(f->fd, CONTROL_SECRET_REVOKE, "npm", &ok, &err), 0);
	assert_memory_equal(&said, &ok, sizeof(ok));
	reap(pid);

	struct policy *p = policy_builtin();
	policy_seal(p);
	pid = answer_with(fd, b.data, b.len);
	if (control_ask_policy(f->fd, 0, p, &ok, &err) < 0)
		fail_msg("%s", err.text);
	reap(pid);
	policy_free(p);

	fresh();
	err_set(&why, ERR_UNSUPPORTED, "`files` can't change");
	control_msg_failed_encode(&b, &why);
	pid = answer_with(fd, b.data, b.len);
	assert_int_equal(control_ask_secret(f->fd, CONTROL_SECRET_CHANGED, "npm", &ok, &err), -1);
	assert_int_equal(err.code, ERR_UNSUPPORTED);
	assert_string_equal(err.text, why.text);
	reap(pid);

	pid = answer_with(fd, "junk", 4);
	assert_int_equal(control_ask_secret(f->fd, CONTROL_SECRET_CHANGED, "npm", &ok, &err), -1);
	assert_int_equal(err.code, ERR_PROTOCOL);
	reap(pid);

	pid = answer_with(fd, NULL, 0);
	assert_int_equal(control_ask_secret(f->fd, CONTROL_SECRET_CHANGED, "npm", &ok, &err), -1);
	assert_int_equal(err.code, ERR_CLOSED);
	reap(pid);
	close(fd);
	buf_free(&b);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(messages_come_through),
		cmocka_unit_test(what_is_off_is_refused),
		cmocka_unit_test_setup_teardown(nobody_there, setup, teardown),
		cmocka_unit_test_setup_teardown(answers_are_taken, setup, teardown),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
