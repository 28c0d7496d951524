/* SPDX-License-Identifier: Apache-2.0 */
/* The options of `run`, and what they make of a policy and a launch spec. */
#pragma once

#include "program/bulkhead/command.h"
#include "sandbox/sandbox.h"

struct run_mount_option { char *source, *target; enum mount_mode mode; };

struct run_options {
	const char *policy_file;
	const char *isolation;         /* "auto" or a level's name */
	const char *template_name;
	const char *dir;               /* NULL: the current folder */
	bool dir_none, dir_given, dir_mode_given;
	enum mount_mode dir_mode;
	struct run_mount_option *mounts;
	size_t n_mounts;
	char **allow;                  /* NULL-terminated */
	size_t n_allow;
	char **secrets;                /* NAME@HOST[:HEADER], NULL-terminated */
	size_t n_secrets;
	char **env;                    /* K=V, NULL-terminated */
	size_t n_env;
	char **resolvers;
	size_t n_resolvers;
	struct run_limit_option { const char *name, *value; } *limits; /* checked; names as in the policy */
	size_t n_limits;
	bool no_tty;
};

extern const char run_usage[];

/* Parses; *ret_argv is the command. *ret_help: help was printed. */
int run_options_parse(struct run_options *o, struct globals *g, int argc, char **argv, char ***ret_argv, bool *ret_help, struct err *err);
void run_options_done(struct run_options *o);

/* Policy file or built-in, plus options, sealed. Warnings go to stderr. */
int run_options_policy(const struct run_options *o, struct policy **ret, struct err *err);
/* Opens the mount sources and fills in the sandbox's configuration (all but policy and dir). */
int run_options_config(const struct run_options *o, const struct policy *p, const char *id, struct sandbox_config *ret, struct err *err);
/* Placeholders go into variables of their own: one that --env sets, or that every box has, is refused. grants may be NULL. */
int run_options_check_variables(const struct run_options *o, const struct grants *grants, struct err *err);
/* The command's environment, placeholders included, NULL-terminated; free each and the array with mem_free. */
char **run_options_env(const struct run_options *o, const struct grants *grants, const char *id, bool inspects, bool tty);
