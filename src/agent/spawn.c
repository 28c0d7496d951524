/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/spawn.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/close_range.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/mem.h"
#include "base/signal.h"

enum { REPORT_FD = 3, STATUS_NOT_STARTED = 127 };

/* ---- in the child ---- */

static int set_stdio(const struct spawn_spec *spec)
{
	if (dup2(spec->in, 0) < 0 || dup2(spec->out, 1) < 0 || dup2(spec->err, 2) < 0)
		return -errno;
	if (spec->tty && ioctl(0, TIOCSCTTY, 0) < 0)
		return -errno;
	return 0;
}

/* Moves the report pipe to REPORT_FD, which closes at exec, and closes everything above: whatever the agent holds or was
 * started with, nothing of it reaches a program. */
static int close_others(int *report)
{
	if (*report != REPORT_FD && dup3(*report, REPORT_FD, O_CLOEXEC) < 0)
		return -errno;
	*report = REPORT_FD;
	return syscall(SYS_close_range, REPORT_FD + 1, ~0u, 0) < 0 ? -errno : 0;
}

static int set_nofile(const struct spawn_spec *spec)
{
	struct rlimit limit = spec->nofile_inherited;
	if (spec->nofile > 0)
		limit = (struct rlimit){ .rlim_cur = spec->nofile, .rlim_max = spec->nofile };
	return setrlimit(RLIMIT_NOFILE, &limit) < 0 ? -errno : 0;
}

/* execve, and for a file without a known header the shell, as execvp(3) does it. Returns -errno. */
static int exec_file(const char *path, char *const *argv, char *const *envp)
{
	execve(path, argv, envp);
	if (errno != ENOEXEC)
		return -errno;
	size_t n = 0;
	while (argv[n])
		n++;
	char **shell = mem_alloc_array(n + 3, sizeof(*shell));
	size_t at = 0;
	shell[at++] = mem_strdup("/bin/sh");
	shell[at++] = mem_strdup(path);
	for (size_t i = 1; i < n; i++)
		shell[at++] = argv[i];
	execve(shell[0], shell, envp);
	return -errno;
}

static const char *find_path(char *const *envp)
{
	for (; *envp; envp++)
		if (str_starts(*envp, "PATH="))
			return *envp + strlen("PATH=");
	return "/usr/local/bin:/usr/bin:/bin";
}

/* Which errors of one candidate let the search go on to the next. */
static bool keep_looking(int error)
{
	return error == EACCES || error == ENOENT || error == ENOTDIR || error == ESTALE || error == ENODEV || error == ETIMEDOUT;
}

/* Returns -errno: EACCES when something of that name was there but could not be executed, ENOENT when nothing was. */
static int exec_search(char *const *argv, char *const *envp)
{
	if (argv[0][0] == '\0')
		return -ENOENT;
	if (strchr(argv[0], '/'))
		return exec_file(argv[0], argv, envp);
	bool seen = false;
	for (const char *p = find_path(envp);; p++) {
		size_t len = strcspn(p, ":");
		/* an empty element is the current folder (POSIX 8.3) */
		char *file = len ? mem_printf("%.*s/%s", (int)len, p, argv[0]) : mem_printf("./%s", argv[0]);
		int r = exec_file(file, argv, envp);
		mem_free(file);
		if (!keep_looking(-r))
			return r;
		seen = seen || r == -EACCES;
		p += len;
		if (*p == '\0')
			return seen ? -EACCES : -ENOENT;
	}
}

static int become(const struct spawn_spec *spec, int *report)
{
	int r;
	if (setsid() < 0)
		return -errno;
	if ((r = set_stdio(spec)) < 0 || (r = close_others(report)) < 0 || (r = set_nofile(spec)) < 0)
		return r;
	if (chdir(spec->cwd) < 0)
		return -errno;
	signal_reset_all();
	signal_unblock_all();
	return exec_search(spec->argv, spec->envp);
}

static _Noreturn void run_child(const struct spawn_spec *spec, int report)
{
	int error = -become(spec, &report);
	/* 4 bytes into an empty pipe: whole or not at all */
	ssize_t written = write(report, &error, sizeof(error));
	_exit(written == sizeof(error) ? STATUS_NOT_STARTED : STATUS_NOT_STARTED - 1);
}

/* ---- in the agent ---- */

pid_t spawn_start(const struct spawn_spec *spec, int *ret_report)
{
	int report[2];
	if (pipe2(report, O_CLOEXEC | O_NONBLOCK) < 0)
		return -errno;
	pid_t pid = fork();
	if (pid == 0)
		run_child(spec, report[1]);
	int error = errno;
	close(report[1]);
	if (pid < 0) {
		close(report[0]);
		return -error;
	}
	*ret_report = report[0];
	return pid;
}

int spawn_read_report(int report, int *ret_error)
{
	int error = 0;
	ssize_t n = read(report, &error, sizeof(error));
	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return 0;
	*ret_error = n == sizeof(error) ? error : 0;
	return 1;
}
