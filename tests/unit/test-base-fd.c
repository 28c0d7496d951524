/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/mem.h"

static char folder[64];
static int dir = -1;

static int make_folder(void **state)
{
	strcpy(folder, "/tmp/test-base-fd-XXXXXX");
	if (!mkdtemp(folder))
		return -1;
	dir = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	return dir < 0 ? -1 : 0;
}

static int remove_folder(void **state)
{
	fd_close(&dir);
	int tmp = open("/tmp", O_PATH | O_DIRECTORY);
	int r = path_remove_tree(tmp, strrchr(folder, '/') + 1);
	fd_close(&tmp);
	return r;
}

static void put(const char *name, const char *text)
{
	struct err err;
	assert_int_equal(fd_replace_file_at(dir, name, text, strlen(text), 0644, false, &err), 0);
}

static void put_link(const char *target, const char *name)
{
	assert_int_equal(symlinkat(target, dir, name), 0);
}

static unsigned count_open(void)
{
	unsigned n = 0;
	DIR *d = opendir("/proc/self/fd");
	while (readdir(d))
		n++;
	closedir(d);
	return n;
}

static void close_and_flags(void **state)
{
	int fd = dup(0);
	assert_int_equal(fd_set_cloexec(fd, true), 0);
	assert_int_equal(fcntl(fd, F_GETFD), FD_CLOEXEC);
	assert_int_equal(fd_set_cloexec(fd, false), 0);
	assert_int_equal(fcntl(fd, F_GETFD), 0);
	int raw = fd;
	errno = 77;
	fd_close(&fd);
	assert_int_equal(errno, 77);
	assert_int_equal(fd, -1);
	assert_int_equal(fcntl(raw, F_GETFD), -1);
	fd_close(&fd);
	assert_int_equal(fd_set_nonblock(-1, true), -EBADF);
	int p[2];
	assert_int_equal(pipe2(p, O_CLOEXEC), 0);
	assert_int_equal(fd_set_nonblock(p[0], true), 0);
	assert_true(fcntl(p[0], F_GETFL) & O_NONBLOCK);
	assert_int_equal(fd_set_nonblock(p[0], false), 0);
	assert_false(fcntl(p[0], F_GETFL) & O_NONBLOCK);
	fd_close(&p[0]);
	fd_close(&p[1]);
}

static void full_transfers(void **state)
{
	int p[2];
	char out[200000], in[200000];
	assert_int_equal(pipe2(p, O_CLOEXEC), 0);
	memset(out, 'q', sizeof(out));
	pid_t pid = fork();
	if (pid == 0)
		_exit(fd_write_full(p[1], out, sizeof(out)) == 0 ? 0 : 1);
	close(p[1]);
	assert_int_equal(fd_read_full(p[0], in, sizeof(in)), 0);
	assert_memory_equal(in, out, sizeof(in));
	assert_int_equal(fd_read_full(p[0], in, 1), -ENODATA);
	close(p[0]);
	int status;
	waitpid(pid, &status, 0);
	assert_int_equal(status, 0);
	assert_int_equal(fd_read_full(-1, in, 1), -EBADF);
	assert_int_equal(fd_write_full(-1, in, 1), -EBADF);
}

static void read_file(void **state)
{
	char *data = NULL;
	size_t len = 0;
	struct err err = ERR_INIT;
	put("f", "hello");
	assert_int_equal(fd_read_file_at(dir, "f", 5, &data, &len, &err), 0);
	assert_int_equal(len, 5);
	assert_string_equal(data, "hello");
	data = mem_free(data);
	assert_int_equal(fd_read_file_at(dir, "f", 4, &data, &len, &err), -1);
	assert_int_equal(err.code, ERR_LIMIT);
	assert_null(data);
	assert_int_equal(fd_read_file_at(dir, "missing", 4, &data, &len, &err), -1);
	assert_int_equal(err.sys, ENOENT);
	assert_int_equal(fd_read_file_at(AT_FDCWD, "/proc/self/status", 1 << 20, &data, &len, &err), 0);
	assert_true(len > 100 && strlen(data) == len);
	mem_free(data);
	put("empty", "");
	assert_int_equal(fd_read_file_at(dir, "empty", 0, &data, &len, &err), 0);
	assert_int_equal(len, 0);
	mem_free(data);
	assert_int_equal(fd_read_file_at(dir, "f", 0, &data, &len, &err), -1);
	cleanup_free char *big = mem_alloc(100001);
	memset(big, 'x', 100000);
	put("big", big);
	assert_int_equal(fd_read_file_at(dir, "big", 100000, &data, &len, &err), 0);
	assert_int_equal(len, 100000);
	mem_free(data);
	assert_int_equal(fd_read_file_at(dir, "big", 99999, &data, &len, &err), -1);
}

static void read_regular_file(void **state)
{
	char *data = NULL;
	size_t len = 0;
	struct err err = ERR_INIT;
	put("own", "hello");
	assert_int_equal(fd_read_regular_at(dir, "own", 5, &data, &len, &err), 0);
	assert_string_equal(data, "hello");
	data = mem_free(data);
	assert_int_equal(fd_read_regular_at(dir, "own", 4, &data, &len, &err), -1);
	assert_int_equal(err.code, ERR_LIMIT);
	assert_int_equal(mkfifoat(dir, "pipe", 0600), 0);
	assert_int_equal(fd_read_regular_at(dir, "pipe", 5, &data, &len, &err), -1); /* and doesn't wait for a writer */
	assert_int_equal(err.code, ERR_CORRUPT);
	assert_int_equal(symlinkat("own", dir, "link"), 0);
	assert_int_equal(fd_read_regular_at(dir, "link", 5, &data, &len, &err), -1);
	assert_int_equal(err.sys, ELOOP);
	assert_null(data);
}

static void write_kernel_file(void **state)
{
	struct err err = ERR_INIT;
	char text[8] = "";
	put("knob", "aaaaaa");
	assert_int_equal(fd_write_file_at(dir, "knob", "bbb", &err), 0);
	int fd = openat(dir, "knob", O_RDONLY);
	assert_int_equal(read(fd, text, sizeof(text)), 6); /* no truncation: it is a knob */
	close(fd);
	assert_memory_equal(text, "bbbaaa", 6);
	assert_int_equal(fd_write_file_at(dir, "nothing", "x", &err), -1); /* never creates */
	assert_int_equal(err.sys, ENOENT);
	assert_int_equal(fd_write_file_at(AT_FDCWD, "/dev/full", "x", &err), -1);
	assert_int_equal(err.sys, ENOSPC);
}

static unsigned count_entries(const char *name)
{
	unsigned n = 0;
	DIR *d = fdopendir(openat(dir, name, O_RDONLY | O_DIRECTORY));
	for (struct dirent *e; (e = readdir(d));)
		n += !str_eq(e->d_name, ".") && !str_eq(e->d_name, "..");
	closedir(d);
	return n;
}

static void replace_file(void **state)
{
	struct err err = ERR_INIT;
	struct stat st;
	char *data;
	size_t len;
	mkdirat(dir, "rep", 0700);
	assert_int_equal(fd_replace_file_at(dir, "rep/a", "one", 3, 0600, true, &err), 0);
	assert_int_equal(fd_replace_file_at(dir, "rep/a", "two!", 4, 0644, false, &err), 0);
	assert_int_equal(fstatat(dir, "rep/a", &st, 0), 0);
	assert_int_equal(st.st_mode & 0777, 0644);
	assert_int_equal(fd_read_file_at(dir, "rep/a", 10, &data, &len, &err), 0);
	assert_string_equal(data, "two!");
	mem_free(data);
	/* A link is replaced, not followed; a failure leaves nothing behind. */
	put_link("a", "rep/link");
	assert_int_equal(fd_replace_file_at(dir, "rep/link", "x", 1, 0600, false, &err), 0);
	assert_int_equal(fstatat(dir, "rep/link", &st, AT_SYMLINK_NOFOLLOW), 0);
	assert_true(S_ISREG(st.st_mode));
	mkdirat(dir, "rep/d", 0700);
	assert_int_equal(fd_replace_file_at(dir, "rep/d", "x", 1, 0600, false, &err), -1);
	assert_int_equal(err.sys, EISDIR);
	assert_int_equal(count_entries("rep"), 3);
	assert_int_equal(fd_replace_file_at(dir, "none/a", "x", 1, 0600, false, &err), -1);
}

static void opens_beneath_only(void **state)
{
	mkdirat(dir, "b", 0755);
	mkdirat(dir, "b/c", 0755);
	put("b/c/f", "in");
	put_link("f", "b/c/link");
	put_link("c", "b/dirlink");
	put_link("/etc/passwd", "b/absolute");
	static const struct { const char *path; int error; } cases[] = {
		{ "b/c/f", 0 }, { "b//c/./f", 0 }, { "b/../b/c/f", EXDEV }, { "..", EXDEV }, { "b/c/..", EXDEV }, { "/etc/passwd", EXDEV },
		{ "b/c/link", ELOOP }, { "b/dirlink/f", ELOOP }, { "b/absolute", ELOOP }, { "", ENOENT }, { "b/none", ENOENT },
		{ "b/c/f/x", ENOTDIR }, { "b/..c", ENOENT },
	};
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		int fd = path_open_beneath(dir, cases[i].path, O_RDONLY, 0);
		if (cases[i].error == 0) {
			assert_true(fd >= 0);
			assert_int_equal(fcntl(fd, F_GETFD), FD_CLOEXEC);
			close(fd);
		} else {
			assert_int_equal(fd, -cases[i].error);
		}
	}
	int fd = path_open_beneath(dir, "b/new", O_WRONLY | O_CREAT | O_EXCL, 0640);
	assert_true(fd >= 0);
	struct stat st;
	fstat(fd, &st);
	assert_int_equal(st.st_mode & 0777 & ~0640, 0);
	close(fd);
	cleanup_fd int proc = open("/proc/self", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	assert_int_equal(path_open_beneath(proc, "root", O_RDONLY, 0), -ELOOP); /* magic link */
}

static void opens_in_root(void **state)
{
	mkdirat(dir, "r", 0755);
	mkdirat(dir, "r/etc", 0755);
	put("r/etc/passwd", "box");
	put_link("/etc/passwd", "r/link");
	put_link("../../../../etc/passwd", "r/up");
	cleanup_fd int root = openat(dir, "r", O_PATH | O_DIRECTORY | O_CLOEXEC);
	static const char *const paths[] = { "link", "up", "/etc/passwd", "../../etc/passwd" };
	for (size_t i = 0; i < ARRAY_LEN(paths); i++) {
		char text[8] = "";
		cleanup_fd int fd = path_open_in_root(root, paths[i], O_RDONLY, 0);
		assert_true(fd >= 0);
		assert_int_equal(read(fd, text, sizeof(text)), 3);
		assert_string_equal(text, "box");
	}
	assert_int_equal(path_open_in_root(root, "etc/shadow", O_RDONLY, 0), -ENOENT);
}

static void makes_folders_beneath(void **state)
{
	struct stat st;
	assert_int_equal(path_mkdir_beneath(dir, "m/n//o/", 0700), 0);
	assert_int_equal(path_mkdir_beneath(dir, "m/./n/o", 0700), 0);
	assert_int_equal(fstatat(dir, "m/n/o", &st, 0), 0);
	assert_true(S_ISDIR(st.st_mode));
	mkdirat(dir, "outside", 0755);
	put_link("../outside", "m/trap");
	assert_int_equal(path_mkdir_beneath(dir, "m/trap/x", 0700), -ELOOP);
	assert_int_equal(fstatat(dir, "outside/x", &st, 0), -1);
	put("m/file", "");
	assert_int_equal(path_mkdir_beneath(dir, "m/file/x", 0700), -ENOTDIR);
	assert_int_equal(path_mkdir_beneath(dir, "m/../q", 0700), -EXDEV);
	assert_int_equal(path_mkdir_beneath(dir, "/tmp/q", 0700), -EXDEV);
	assert_int_equal(path_mkdir_beneath(dir, "", 0700), 0);
}

static void joins(void **state)
{
	cleanup_free char *path = path_join("a", "b/c");
	assert_string_equal(path, "a/b/c");
}

static void removes_trees(void **state)
{
	struct stat st;
	assert_int_equal(path_mkdir_beneath(dir, "t/a/b", 0755), 0);
	mkdirat(dir, "keep", 0755);
	put("keep/precious", "x");
	put("t/a/b/f", "x");
	put_link("../keep", "t/link");
	put_link("../../keep/precious", "t/a/link");
	mkfifoat(dir, "t/fifo", 0600);
	mkdirat(dir, "t/locked", 0755);
	put("t/locked/f", "x");
	assert_int_equal(fchmodat(dir, "t/locked", 0000, 0), 0);
	mkdirat(dir, "t/readonly", 0755);
	put("t/readonly/f", "x");
	assert_int_equal(fchmodat(dir, "t/readonly", 0500, 0), 0);
	assert_int_equal(path_remove_tree(dir, "t"), 0);
	assert_int_equal(fstatat(dir, "t", &st, AT_SYMLINK_NOFOLLOW), -1);
	assert_int_equal(fstatat(dir, "keep/precious", &st, 0), 0);
	assert_int_equal(path_remove_tree(dir, "t"), 0); /* missing is fine */
	put_link("keep", "toplink");
	assert_int_equal(path_remove_tree(dir, "toplink"), 0);
	assert_int_equal(fstatat(dir, "keep/precious", &st, 0), 0);
	put("plain", "x");
	assert_int_equal(path_remove_tree(dir, "plain"), 0);
	assert_int_equal(fstatat(dir, "plain", &st, 0), -1);
}

static void removes_trees_deeper_than_any_table(void **state)
{
	const int depth = 3000;
	mkdirat(dir, "deep", 0755);
	int at = openat(dir, "deep", O_RDONLY | O_DIRECTORY);
	for (int i = 0; i < depth; i++) {
		assert_int_equal(mkdirat(at, "d", 0755), 0);
		assert_int_equal(mkdirat(at, "e", 0700), 0);
		int next = openat(at, "d", O_RDONLY | O_DIRECTORY);
		assert_true(next >= 0);
		close(at);
		at = next;
	}
	close(at);
	/* With few descriptors left, as in a process that serves many sandboxes. */
	struct rlimit before, few = { .rlim_cur = count_open() + 50 };
	getrlimit(RLIMIT_NOFILE, &before);
	few.rlim_max = before.rlim_max;
	setrlimit(RLIMIT_NOFILE, &few);
	int r = path_remove_tree(dir, "deep");
	setrlimit(RLIMIT_NOFILE, &before);
	assert_int_equal(r, 0);
	struct stat st;
	assert_int_equal(fstatat(dir, "deep", &st, 0), -1);
}

static void removes_locked_trees_as_ordinary_user(void **state)
{
	if (getuid() != 0)
		skip(); /* the test above does it then */
	assert_int_equal(fchmod(dir, 0777), 0);
	pid_t pid = fork();
	if (pid == 0) {
		if (setresgid(65534, 65534, 65534) < 0 || setresuid(65534, 65534, 65534) < 0)
			_exit(1);
		if (path_mkdir_beneath(dir, "user/locked/inner", 0755) < 0 || fchmodat(dir, "user/locked", 0000, 0) < 0)
			_exit(2);
		_exit(path_remove_tree(dir, "user") == 0 ? 0 : 3);
	}
	int status;
	waitpid(pid, &status, 0);
	assert_int_equal(status, 0);
}

static void passes_descriptors(void **state)
{
	int s[2], p[2], got[FD_PASS_MAX];
	char text[16] = "";
	size_t n = FD_PASS_MAX;
	assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, s), 0);
	assert_int_equal(pipe2(p, O_CLOEXEC), 0);
	assert_int_equal(fd_send(s[0], "hi", 2, p, 2), 2);
	assert_int_equal(fd_recv(s[1], text, sizeof(text), got, &n), 2);
	assert_string_equal(text, "hi");
	assert_int_equal(n, 2);
	assert_int_equal(fcntl(got[0], F_GETFD), FD_CLOEXEC);
	assert_int_equal(write(got[1], "x", 1), 1);
	assert_int_equal(read(p[0], text, 1), 1);
	close(got[0]);
	close(got[1]);
	/* Without room for them descriptors are an error, and none leaks. */
	for (size_t room = 0; room < 3; room++) {
		unsigned before = count_open();
		int three[3] = { p[0], p[1], p[0] };
		assert_int_equal(fd_send(s[0], "hi", 2, three, 3), 2);
		n = room;
		assert_int_equal(fd_recv(s[1], text, sizeof(text), got, &n), -EPROTO);
		assert_int_equal(count_open(), before);
	}
	unsigned before = count_open();
	assert_int_equal(fd_send(s[0], "hi", 2, p, 1), 2);
	assert_int_equal(fd_recv(s[1], text, sizeof(text), NULL, NULL), -EPROTO);
	assert_int_equal(count_open(), before);
	assert_int_equal(fd_send(s[0], "yo", 2, NULL, 0), 2);
	n = 4;
	assert_int_equal(fd_recv(s[1], text, sizeof(text), got, &n), 2);
	assert_int_equal(n, 0);
	assert_int_equal(fd_send(s[0], "x", 1, p, FD_PASS_MAX + 1), -EINVAL);
	close(s[0]);
	n = 4;
	assert_int_equal(fd_recv(s[1], text, sizeof(text), got, &n), 0);
	assert_int_equal(fd_send(s[1], "x", 1, NULL, 0), -EPIPE); /* and no signal */
	close(s[1]);
	close(p[0]);
	close(p[1]);
}

static void private_nonblocking_duplicate(void **state)
{
	int p[2], s[2];
	assert_int_equal(pipe2(p, O_CLOEXEC), 0);
	for (int i = 0; i < 2; i++) {
		int own = fd_dup_nonblock(p[i]);
		assert_true(own >= 3);
		assert_true(fcntl(own, F_GETFL) & O_NONBLOCK);
		assert_int_equal(fcntl(own, F_GETFD), FD_CLOEXEC);
		assert_false(fcntl(p[i], F_GETFL) & O_NONBLOCK); /* the shared description is as it was */
		assert_int_equal(fcntl(own, F_GETFL) & O_ACCMODE, i == 0 ? O_RDONLY : O_WRONLY);
		close(own);
	}
	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, s), 0);
	int own = fd_dup_nonblock(s[0]);
	assert_true(own >= 3);
	assert_false(fcntl(s[0], F_GETFL) & O_NONBLOCK);
	close(own);
	put("offset", "abcdef");
	int file = openat(dir, "offset", O_RDONLY);
	char c;
	assert_int_equal(read(file, &c, 1), 1);
	own = fd_dup_nonblock(file);
	assert_int_equal(read(own, &c, 1), 1);
	assert_int_equal(c, 'b'); /* a file keeps its offset: "cat a - b" */
	close(own);
	close(file);
	assert_int_equal(fd_dup_nonblock(-1), -EBADF);
	for (int i = 0; i < 2; i++) {
		close(p[i]);
		close(s[i]);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(close_and_flags), cmocka_unit_test(full_transfers), cmocka_unit_test(read_file),
		cmocka_unit_test(read_regular_file),
		cmocka_unit_test(write_kernel_file), cmocka_unit_test(replace_file), cmocka_unit_test(opens_beneath_only),
		cmocka_unit_test(opens_in_root), cmocka_unit_test(makes_folders_beneath), cmocka_unit_test(joins), cmocka_unit_test(removes_trees),
		cmocka_unit_test(removes_trees_deeper_than_any_table), cmocka_unit_test(removes_locked_trees_as_ordinary_user),
		cmocka_unit_test(passes_descriptors), cmocka_unit_test(private_nonblocking_duplicate),
	};
	return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
