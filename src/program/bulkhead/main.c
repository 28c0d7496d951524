/* SPDX-License-Identifier: Apache-2.0 */
/* bulkhead: the command line. Finds the command in the table and hands over. */
#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <unistd.h>

#include "base/log.h"
#include "base/mem.h"
#include "program/bulkhead/command.h"
#include "program/bulkhead/version.h"

static int print_version(const struct globals *g)
{
	if (g->json)
		return command_print_json(&command_version, json_pack("{s:s}", "version", BULKHEAD_VERSION));
	puts("bulkhead " BULKHEAD_VERSION);
	return command_finish(&command_version, 0);
}

static int run_version(struct globals *g, int argc, char **argv)
{
	struct err err = ERR_INIT;
	char **rest;
	int n;
	bool help;
	if (command_options(&command_version, g, NULL, NULL, false, argc, argv, &rest, &n, &help, &err) < 0)
		return command_fail(&command_version, &err);
	if (help)
		return command_finish(&command_version, 0);
	if (n > 0) {
		err_set(&err, ERR_USAGE, "version takes no arguments, and got \"%.100s\"", rest[0]);
		return command_fail(&command_version, &err);
	}
	return print_version(g);
}

const struct command command_version = {
	.name = "version",
	.summary = "print the version",
	.usage = "usage: bulkhead version [--json]\n",
	.run = run_version,
};

static const struct command *const commands[] = {
#ifdef HAVE_CMD_RUN
	&command_run,
#endif
#ifdef HAVE_CMD_DIFF
	&command_diff,
	&command_apply,
	&command_discard,
#endif
#ifdef HAVE_CMD_LS
	&command_ls,
#endif
#ifdef HAVE_CMD_LOG
	&command_log,
#endif
#ifdef HAVE_CMD_KILL
	&command_kill,
#endif
#ifdef HAVE_CMD_AUDIT
	&command_audit,
#endif
#ifdef HAVE_CMD_POLICY
	&command_policy,
#endif
#ifdef HAVE_CMD_SECRET
	&command_secret,
#endif
#ifdef HAVE_CMD_DOCTOR
	&command_doctor,
#endif
#ifdef HAVE_CMD_GC
	&command_gc,
#endif
	&command_version,
};

static void print_help(FILE *out)
{
	fputs("usage: bulkhead [--state DIR] [--json] [-q] COMMAND [ARG…]\n\n"
	      "Bulkhead runs an agent's commands in disposable sandboxes: no network but what a policy names, a copy of\n"
	      "your files, a record of everything, an end at any time.\n\n",
		out);
	for (size_t i = 0; i < ARRAY_LEN(commands); i++)
		fprintf(out, "  %-9s %s\n", commands[i]->name, commands[i]->summary);
	fputs("\n`bulkhead COMMAND --help` tells more; `man bulkhead` tells all.\n", out);
}

static const struct command *find_command(const char *name)
{
	for (size_t i = 0; i < ARRAY_LEN(commands); i++)
		if (str_eq(commands[i]->name, name))
			return commands[i];
	return NULL;
}

static int no_such_command(const char *name)
{
	struct err err;
	err_set(&err, ERR_USAGE, "there is no command \"%.100s\"; `bulkhead help` lists them", name);
	err_print("bulkhead", &err);
	return EXIT_FAILED;
}

static int help(int argc, char **argv)
{
	const struct command *cmd = argc > 1 ? find_command(argv[1]) : NULL;
	if (argc > 1 && !cmd)
		return no_such_command(argv[1]);
	if (cmd)
		fputs(cmd->usage, stdout);
	else
		print_help(stdout);
	return fflush(stdout) == 0 ? 0 : EXIT_FAILED;
}

/* A closed standard descriptor would be the number that the next file we open gets: then a socket is taken for standard output. */
static void open_standard_fds(void)
{
	for (int fd = 0; fd <= 2; fd++)
		if (fcntl(fd, F_GETFD) < 0 && open("/dev/null", fd == 0 ? O_RDONLY : O_WRONLY) != fd)
			_exit(EXIT_FAILED);
}

int main(int argc, char **argv)
{
	struct globals g = { 0 };
	struct err err = ERR_INIT;
	open_standard_fds();
	log_init("bulkhead");
	/* A reader that goes away is an error of write(2), told in words, not a silent death. */
	signal(SIGPIPE, SIG_IGN);

	static const struct command top = { .name = "help", .usage = "" };
	char **rest;
	int n;
	bool asked;
	for (int i = 1; i < argc && argv[i][0] == '-'; i++) {
		if (str_eq(argv[i], "--help") || str_eq(argv[i], "-h"))
			return help(0, NULL);
		if (str_eq(argv[i], "--version"))
			return print_version(&g);
	}
	if (command_options(&top, &g, NULL, NULL, true, argc, argv, &rest, &n, &asked, &err) < 0) {
		err_print("bulkhead", &err);
		return EXIT_FAILED;
	}
	if (n == 0) {
		print_help(stderr);
		return EXIT_FAILED;
	}
	if (str_eq(rest[0], "help"))
		return help(n, rest);
	const struct command *cmd = find_command(rest[0]);
	if (!cmd)
		return no_such_command(rest[0]);
	return cmd->run(&g, n, rest);
}
