/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One file a command (cmd-NAME.c), one table in main.c. Exit status: 0 done, 1 a "no" that is an answer (differences found, verification failed, refused by a
 * conflict), 125 Bulkhead failed, 2 is never used for usage errors: those are 125 too, so that `run`'s own statuses stay unmistakable.
 */
#pragma once

#include <stdbool.h>
#include <stdio.h>

#include <jansson.h>

#include "base/err.h"

enum { EXIT_NO = 1, EXIT_FAILED = 125 };

struct globals {
	const char *state;   /* --state, or NULL */
	bool json;           /* --json */
	bool quiet;          /* -q */
};

struct command {
	const char *name;     /* "run", "policy" */
	const char *summary;  /* one line for `bulkhead help` */
	const char *usage;    /* "bulkhead run [options] [--] COMMAND [ARG…]" and the option table, whole help text */
	/* argv[0] is the command's name. Global options in front of the command are already in g; the command parses its own, global ones included, with command_options. */
	int (*run)(struct globals *g, int argc, char **argv);
};

struct option_spec {
	char letter;              /* 0: none */
	const char *name;         /* long name */
	const char *value;        /* NULL: takes none; else its name in messages */
	/* Called for each occurrence; value is NULL for flags. Return -1 + err to refuse. */
	int (*set)(void *ctx, const char *value, struct err *err);
};

/* Parses options up to the first operand or "--" (in_order) or permuted (else). --state DIR, --json, -q/--quiet, -h/--help are understood everywhere: help prints
 * cmd->usage on stdout and sets *ret_help. Long options: --name VALUE, --name=VALUE; unambiguous prefixes are not accepted (scripts must not break when options are
 * added). Operands are left at the front of argv[0 … *ret_n-1]. 0 or -1 (ERR_USAGE: names the option and the fix). */
int command_options(const struct command *cmd, struct globals *g, const struct option_spec *specs, void *ctx, bool in_order,
	int argc, char **argv, char ***ret_operands, int *ret_n, bool *ret_help, struct err *err);

/* Prints "bulkhead NAME: sentence" and returns EXIT_FAILED. */
int command_fail(const struct command *cmd, const struct err *err);
/* One JSON document and a newline on stdout. Takes the reference. 0, or EXIT_FAILED when stdout can't be written. */
int command_print_json(const struct command *cmd, json_t *value);
/* Flushes stdout and reports a failed write (closed pipe, full disk): returns `status` or EXIT_FAILED. */
int command_finish(const struct command *cmd, int status);
/* stdout is a terminal and NO_COLOR is not set. */
bool command_colour(void);

extern const struct command command_run, command_diff, command_apply, command_discard, command_ls, command_log, command_audit, command_gc,
	command_doctor, command_policy, command_kill, command_secret, command_version;
