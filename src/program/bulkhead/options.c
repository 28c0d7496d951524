/* SPDX-License-Identifier: Apache-2.0 */
#include "program/bulkhead/command.h"

#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/mem.h"

static int set_state(struct globals *g, const char *value, struct err *err)
{
	if (!*value)
		return err_set(err, ERR_USAGE, "--state needs the path of a folder, and got an empty one");
	g->state = value;
	return 0;
}

/* Global options by long name; -1: not one of them. */
static int set_global(struct globals *g, const char *name, const char *value, bool *ret_help, struct err *err)
{
	if (str_eq(name, "state"))
		return set_state(g, value, err);
	if (str_eq(name, "json"))
		g->json = true;
	else if (str_eq(name, "quiet"))
		g->quiet = true;
	else if (str_eq(name, "help"))
		*ret_help = true;
	return 0;
}

static const struct option_spec global_specs[] = {
	{ 0, "state", "DIR", NULL },
	{ 0, "json", NULL, NULL },
	{ 'q', "quiet", NULL, NULL },
	{ 'h', "help", NULL, NULL },
	{ 0 },
};

static const struct option_spec *find_long(const struct option_spec *specs, const char *name, size_t len)
{
	for (const struct option_spec *s = specs; s && (s->name || s->letter); s++)
		if (s->name && strlen(s->name) == len && memcmp(s->name, name, len) == 0)
			return s;
	return NULL;
}

static const struct option_spec *find_short(const struct option_spec *specs, char letter)
{
	for (const struct option_spec *s = specs; s && (s->name || s->letter); s++)
		if (s->letter && s->letter == letter)
			return s;
	return NULL;
}

struct parse {
	const struct command *cmd;
	struct globals *g;
	const struct option_spec *specs;
	void *ctx;
	bool *ret_help;
};

static int take(struct parse *p, const struct option_spec *own, const struct option_spec *global, const char *value, struct err *err)
{
	if (own)
		return own->set(p->ctx, value, err);
	return set_global(p->g, global->name, value, p->ret_help, err);
}

/* One "--name[=value]"; *i moves on when the value is the next argument. */
static int parse_long(struct parse *p, int argc, char **argv, int *i, struct err *err)
{
	const char *name = argv[*i] + 2;
	const char *eq = strchr(name, '=');
	size_t len = eq ? (size_t)(eq - name) : strlen(name);
	const struct option_spec *own = find_long(p->specs, name, len);
	const struct option_spec *global = own ? NULL : find_long(global_specs, name, len);
	const struct option_spec *s = own ? own : global;
	if (!s)
		return err_set(err, ERR_USAGE, "there is no option --%.*s; `bulkhead %s --help` lists them", (int)len, name, p->cmd->name);
	if (!s->value) {
		if (eq)
			return err_set(err, ERR_USAGE, "--%s takes no value; leave out \"%s\"", s->name, eq);
		return take(p, own, global, NULL, err);
	}
	if (eq)
		return take(p, own, global, eq + 1, err);
	if (*i + 1 >= argc)
		return err_set(err, ERR_USAGE, "--%s needs a value: --%s %s", s->name, s->name, s->value);
	return take(p, own, global, argv[++*i], err);
}

static int parse_short(struct parse *p, int argc, char **argv, int *i, struct err *err)
{
	for (const char *c = argv[*i] + 1; *c; c++) {
		const struct option_spec *own = find_short(p->specs, *c);
		const struct option_spec *global = own ? NULL : find_short(global_specs, *c);
		const struct option_spec *s = own ? own : global;
		if (!s)
			return err_set(err, ERR_USAGE, "there is no option -%c; `bulkhead %s --help` lists them", *c, p->cmd->name);
		if (!s->value) {
			if (take(p, own, global, NULL, err) < 0)
				return -1;
			continue;
		}
		const char *value = c[1] ? c + 1 : (*i + 1 < argc ? argv[++*i] : NULL);
		if (!value)
			return err_set(err, ERR_USAGE, "-%c needs a value: -%c %s", *c, *c, s->value);
		return take(p, own, global, value, err);
	}
	return 0;
}

int command_options(const struct command *cmd, struct globals *g, const struct option_spec *specs, void *ctx, bool in_order,
	int argc, char **argv, char ***ret_operands, int *ret_n, bool *ret_help, struct err *err)
{
	struct parse p = { cmd, g, specs, ctx, ret_help };
	int n = 0;
	*ret_help = false;
	for (int i = 1; i < argc; i++) {
		const char *a = argv[i];
		bool operand = a[0] != '-' || a[1] == '\0';
		if (str_eq(a, "--") || (operand && in_order)) {
			for (i += operand ? 0 : 1; i < argc; i++)
				argv[n++] = argv[i];
			break;
		}
		if (operand) {
			argv[n++] = argv[i];
			continue;
		}
		if ((a[1] == '-' ? parse_long(&p, argc, argv, &i, err) : parse_short(&p, argc, argv, &i, err)) < 0)
			return -1;
		if (*ret_help) {
			fputs(cmd->usage, stdout);
			return 0;
		}
	}
	*ret_operands = argv;
	*ret_n = n;
	return 0;
}

int command_fail(const struct command *cmd, const struct err *err)
{
	char who[64];
	snprintf(who, sizeof(who), "bulkhead %s", cmd->name);
	err_print(who, err);
	return EXIT_FAILED;
}

int command_print_json(const struct command *cmd, json_t *value)
{
	int r = json_dumpf(value, stdout, JSON_INDENT(2) | JSON_SORT_KEYS | JSON_ENSURE_ASCII);
	json_decref(value);
	if (r == 0)
		fputc('\n', stdout);
	return command_finish(cmd, r == 0 ? 0 : EXIT_FAILED);
}

int command_finish(const struct command *cmd, int status)
{
	if (fflush(stdout) == 0 && !ferror(stdout))
		return status;
	/* `| head` has seen enough: nobody is there to be told of that. */
	struct pollfd reader = { .fd = STDOUT_FILENO, .events = POLLOUT };
	if (poll(&reader, 1, 0) == 1 && (reader.revents & POLLERR))
		return EXIT_FAILED;
	struct err err;
	err_set(&err, ERR_SYSTEM, "cannot write the answer to standard output: it is closed or its disk is full");
	return command_fail(cmd, &err);
}

bool command_colour(void)
{
	const char *no = getenv("NO_COLOR");
	return isatty(STDOUT_FILENO) && !(no && *no);
}
