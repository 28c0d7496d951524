/* SPDX-License-Identifier: Apache-2.0 */
/*
 * probe list                    table of all attempts: group, name, denied call, errors
 * probe GROUP [KEY=VALUE…]      makes all attempts of a group
 * probe only NAME [KEY=VALUE…]  makes one
 * probe bomb KIND [ARG…]        see bombs.c
 * One line each: "NAME refused ERRNO", "NAME SUCCEEDED what", "NAME broken why".
 */
#include <errno.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "probe.h"

#define ATTEMPT_SECONDS 10

static const struct attempt_group *const groups[] = { &namespace_attempts, &mount_attempts, &process_attempts, &proc_attempts, &kernel_attempts,
	&clock_attempts, &socket_attempts, &family_attempts, &reach_attempts, &file_attempts, &privilege_attempts, &device_attempts, &terminal_attempts };
#define GROUPS (sizeof(groups) / sizeof(groups[0]))

static const char *current = "probe";
static char **arguments;

static void __attribute__((noreturn)) end(const char *verdict, const char *detail)
{
	char line[512];
	int n = snprintf(line, sizeof(line), "%s %s %s\n", current, verdict, detail);
	size_t len = n < (int)sizeof(line) ? (size_t)n : sizeof(line) - 1;
	line[len - 1] = '\n';
	_exit(write(STDOUT_FILENO, line, len) == (ssize_t)len ? 0 : 1);
}

void refused(int error)
{
	const char *name = strerrorname_np(error);
	end("refused", name ? name : "?");
}

void refused_by(const char *what)
{
	char text[256];
	snprintf(text, sizeof(text), "ok (%s)", what);
	end("refused", text);
}

void succeeded(const char *format, ...)
{
	char text[256];
	va_list list;
	va_start(list, format);
	vsnprintf(text, sizeof(text), format, list);
	va_end(list);
	end("SUCCEEDED", text);
}

void broken(const char *format, ...)
{
	char text[256];
	va_list list;
	va_start(list, format);
	vsnprintf(text, sizeof(text), format, list);
	va_end(list);
	end("broken", text);
}

void conclude(long result, const char *meaning)
{
	if (result < 0)
		refused(errno);
	succeeded("%s", meaning);
}

const char *argument(const char *key)
{
	size_t len = strlen(key);
	for (char **a = arguments; a && *a; a++)
		if (strncmp(*a, key, len) == 0 && (*a)[len] == '=')
			return *a + len + 1;
	broken("argument %s= is missing", key);
}

long number_argument(const char *key)
{
	char *end_of;
	const char *text = argument(key);
	long v = strtol(text, &end_of, 10);
	if (end_of == text || *end_of)
		broken("argument %s= isn't a number", key);
	return v;
}

/* An attempt that goes on as another program keeps its name. */
static const char *name_of(const struct attempt *a)
{
	for (char **argument_at = arguments; *argument_at; argument_at++)
		if (strncmp(*argument_at, "as=", 3) == 0)
			return *argument_at + 3;
	return a->name;
}

static void make(const struct attempt *a)
{
	current = name_of(a);
	prctl(PR_SET_NAME, current);
	alarm(ATTEMPT_SECONDS);
	if (a->run) {
		a->run();
		broken("the attempt came to no end");
	}
	conclude(syscall(a->number, a->args[0], a->args[1], a->args[2], a->args[3], a->args[4], a->args[5]), "the call went through");
}

static void attempt(const struct attempt *a)
{
	int status = 0;
	pid_t pid = fork();
	if (pid == 0)
		make(a);
	if (pid < 0 || waitpid(pid, &status, 0) < 0)
		printf("%s broken %s\n", a->name, strerror(errno));
	else if (WIFSIGNALED(status))
		printf("%s %s SIG%s\n", a->name, WTERMSIG(status) == SIGSYS ? "refused" : "broken", sigabbrev_np(WTERMSIG(status)));
	else if (WEXITSTATUS(status) != 0)
		printf("%s broken status %d\n", a->name, WEXITSTATUS(status));
	fflush(stdout);
}

static int list(void)
{
	for (size_t g = 0; g < GROUPS; g++)
		for (size_t i = 0; i < groups[g]->n; i++) {
			const struct attempt *a = &groups[g]->attempts[i];
			printf("%s %s %s %s\n", groups[g]->name, a->name, a->denied ? a->denied : "-", a->errors);
		}
	return 0;
}

static int run_group(const char *name)
{
	for (size_t g = 0; g < GROUPS; g++)
		if (strcmp(groups[g]->name, name) == 0) {
			for (size_t i = 0; i < groups[g]->n; i++)
				attempt(&groups[g]->attempts[i]);
			return 0;
		}
	fprintf(stderr, "probe: there is no group %s\n", name);
	return 2;
}

static int run_one(const char *name)
{
	for (size_t g = 0; g < GROUPS; g++)
		for (size_t i = 0; i < groups[g]->n; i++)
			if (strcmp(groups[g]->attempts[i].name, name) == 0) {
				attempt(&groups[g]->attempts[i]);
				return 0;
			}
	fprintf(stderr, "probe: there is no attempt %s\n", name);
	return 2;
}

int main(int argc, char **argv)
{
	setvbuf(stdout, NULL, _IOLBF, 0);
	if (argc < 2)
		return 2;
	arguments = argv + 2;
	if (strcmp(argv[1], "list") == 0)
		return list();
	if (strcmp(argv[1], "bomb") == 0)
		return bomb_main(argc - 2, argv + 2);
	if (strcmp(argv[1], "only") == 0 && argc > 2)
		return run_one(argv[2]);
	return run_group(argv[1]);
}
