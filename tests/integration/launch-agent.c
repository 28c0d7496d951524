/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Stands in for bulkhead-agent in the launcher's tests: reads one shell command from the pipe (descriptor 3, until the writing
 * side is shut down), runs it with its output on the pipe, and ends with the command's status.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#define PIPE_FD 3

static char command[65536];
static const char *const environment[] = { "PATH=/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin", "HOME=/home/agent",
	"LANG=C.UTF-8", NULL };

static void run(void)
{
	const char *const argv[] = { "/bin/sh", "-c", command, NULL };
	dup2(PIPE_FD, 1);
	dup2(PIPE_FD, 2);
	close(PIPE_FD);
	execve(argv[0], (char *const *)(unsigned long)argv, (char *const *)(unsigned long)environment);
	_exit(127);
}

int main(void)
{
	size_t len = 0;
	ssize_t n;
	int status, last = 0;
	prctl(PR_SET_DUMPABLE, 0, 0, 0, 0); /* as the agent does: exec had made it readable again */
	while (len < sizeof(command) - 1 && (n = read(PIPE_FD, command + len, sizeof(command) - 1 - len)) > 0)
		len += (size_t)n;
	if (len == 0)
		return 0;
	pid_t child = fork();
	if (child == 0)
		run();
	/* As pid 1 it also reaps what nobody else does. */
	for (pid_t pid; (pid = wait(&status)) > 0 && pid != child;)
		;
	last = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
	return child < 0 ? 125 : last;
}
