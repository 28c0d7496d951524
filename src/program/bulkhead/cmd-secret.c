/* SPDX-License-Identifier: Apache-2.0 */
/* bulkhead secret: values that sandboxes use and never hold. Written from standard input, never shown again. */
#include <errno.h>
#include <string.h>
#include <termios.h>
#include <time.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/mem.h"
#include "base/text.h"
#include "program/bulkhead/command.h"
#include "program/bulkhead/secret-notify.h"
#include "secrets/placeholder.h"
#include "secrets/secret.h"
#include "store/state.h"

struct secret_options {
	bool helper;
	const char *sandbox; /* of revoke */
};

static int set_helper(void *ctx, const char *value, struct err *err)
{
	((struct secret_options *)ctx)->helper = true;
	return 0;
}

static int set_sandbox(void *ctx, const char *value, struct err *err)
{
	((struct secret_options *)ctx)->sandbox = value;
	return 0;
}

static int check_name(const char *name, struct err *err)
{
	if (secret_name_valid(name))
		return 0;
	return err_set(err, ERR_USAGE, "\"%.100s\" can't be the name of a secret: a letter, then up to %u letters, digits and \"._-\"", name,
		SECRET_NAME_MAX - 1);
}

/* ---- the value ---- */

/* To the end of standard input; one newline at the end isn't part of it. */
static int read_value(struct buf *b, struct err *err)
{
	uint8_t chunk[4096];
	for (;;) {
		ssize_t n = read(STDIN_FILENO, chunk, sizeof(chunk));
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return err_sys(err, errno, "cannot read the value from standard input");
		if (n == 0)
			break;
		int r = buf_append(b, chunk, (size_t)n);
		mem_wipe(chunk, sizeof(chunk));
		if (r < 0)
			return err_set(err, ERR_LIMIT, "the value is longer than %u bytes", SECRET_VALUE_MAX);
	}
	if (b->len && b->data[b->len - 1] == '\n')
		b->len--;
	return 0;
}

static int read_line(const char *prompt, struct buf *b, struct err *err)
{
	fprintf(stderr, "%s", prompt);
	for (;;) {
		char c;
		ssize_t n = read(STDIN_FILENO, &c, 1);
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return err_sys(err, errno, "cannot read the value from the terminal");
		if (n == 0 || c == '\n')
			break;
		if (buf_append(b, &c, 1) < 0)
			return err_set(err, ERR_LIMIT, "the value is longer than %u bytes", SECRET_VALUE_MAX);
	}
	fputc('\n', stderr);
	return 0;
}

/* Twice, unseen. */
static int ask_value(struct buf *b, struct err *err)
{
	struct termios shown, hidden;
	struct buf again;
	if (tcgetattr(STDIN_FILENO, &shown) < 0)
		return err_sys(err, errno, "cannot hide what is typed");
	hidden = shown;
	hidden.c_lflag &= ~(tcflag_t)ECHO;
	if (tcsetattr(STDIN_FILENO, TCSAFLUSH, &hidden) < 0)
		return err_sys(err, errno, "cannot hide what is typed");
	buf_init(&again, SECRET_VALUE_MAX + 1);
	int r = read_line("Value (not shown): ", b, err);
	if (r == 0)
		r = read_line("Once more: ", &again, err);
	tcsetattr(STDIN_FILENO, TCSAFLUSH, &shown);
	if (r == 0 && (b->len != again.len || (b->len && memcmp(b->data, again.data, b->len) != 0)))
		r = err_set(err, ERR_INVALID, "the two values differ; nothing was stored");
	buf_wipe_free(&again);
	return r;
}

static int store_value(struct secret_store *store, const char *name, struct err *err)
{
	struct buf value;
	buf_init(&value, SECRET_VALUE_MAX + 1);
	int r = isatty(STDIN_FILENO) ? ask_value(&value, err) : read_value(&value, err);
	if (r == 0)
		r = secret_value_check(value.data ? value.data : (const uint8_t *)"", value.len, err);
	if (r == 0)
		r = secret_store_set(store, name, value.data, value.len, err);
	buf_wipe_free(&value);
	return r;
}

/* ---- verbs ---- */

typedef int (*verb_fn)(struct globals *g, const struct secret_options *o, char **operands, int n, struct err *err);

/* Opens state and store, and runs `change`; then tells the sandboxes that hold the secret, and says what was done. */
static int change(struct globals *g, const char *name, enum control_request request, const char *done, char **helper, struct err *err)
{
	struct state *state;
	if (state_open(g->state, &state, err) < 0)
		return -1;
	struct secret_store *store = secret_store_open(state_dirfd(state), request == CONTROL_SECRET_CHANGED, err);
	int r = -1;
	if (store && request == CONTROL_SECRET_REVOKE)
		r = secret_store_remove(store, name, err);
	else if (store)
		r = helper ? secret_store_set_helper(store, name, helper, err) : store_value(store, name, err);
	secret_store_free(store);
	if (r == 0) {
		json_t *document = g->json ? json_pack("{s:s, s:s}", "secret", name, "done", done) : NULL;
		if (!g->json && !g->quiet)
			printf("%s: %s\n", name, done);
		r = secret_notify_report(&command_secret, g, state, request, name, NULL, document);
		if (document) {
			int printed = command_print_json(&command_secret, document);
			r = r ? r : printed;
		}
	}
	state_free(state);
	return r;
}

static int verb_set(struct globals *g, const struct secret_options *o, char **operands, int n, struct err *err)
{
	if (check_name(operands[0], err) < 0)
		return -1;
	if (!o->helper && n > 1)
		return err_set(err, ERR_USAGE, "a value is never given as an argument, where other users and the shell's history see it; give it on standard "
			"input: bulkhead secret set %s <FILE", operands[0]);
	if (o->helper && n < 2)
		return err_set(err, ERR_USAGE, "--helper needs the command: bulkhead secret set %s --helper -- COMMAND [ARG…]", operands[0]);
	if (!o->helper)
		return change(g, operands[0], CONTROL_SECRET_CHANGED, "stored", NULL, err);
	char **helper = mem_alloc_array((size_t)n, sizeof(*helper)); /* the operands end with n, not with NULL */
	memcpy(helper, operands + 1, (size_t)(n - 1) * sizeof(*helper));
	int r = change(g, operands[0], CONTROL_SECRET_CHANGED, "its helper is stored", helper, err);
	mem_free(helper);
	return r;
}

static int verb_rm(struct globals *g, const struct secret_options *o, char **operands, int n, struct err *err)
{
	if (n != 1)
		return err_set(err, ERR_USAGE, "secret rm needs the name of one secret: bulkhead secret rm NAME");
	return check_name(operands[0], err) < 0 ? -1 : change(g, operands[0], CONTROL_SECRET_REVOKE, "removed", NULL, err);
}

static int verb_revoke(struct globals *g, const struct secret_options *o, char **operands, int n, struct err *err)
{
	if (n != 1)
		return err_set(err, ERR_USAGE, "secret revoke needs the name of one secret: bulkhead secret revoke NAME [--sandbox ID]");
	return check_name(operands[0], err) < 0 ? -1 : secret_revoke(&command_secret, g, operands[0], o->sandbox);
}

static json_t *about_json(const struct secret_about *a)
{
	json_t *one = json_pack("{s:s, s:s, s:I, s:I, s:I}", "name", a->name, "kind", a->kind == SECRET_HELPER ? "helper" : "static", "generation",
		(json_int_t)a->generation, "created_ns", (json_int_t)a->created_ns, "changed_ns", (json_int_t)a->changed_ns);
	json_t *helper = a->helper ? json_array() : NULL;
	for (char **p = a->helper; p && *p; p++)
		json_array_append_new(helper, json_string(*p));
	if (helper)
		json_object_set_new(one, "helper", helper);
	return one;
}

static void print_about(const struct secret_about *a)
{
	char when[32], variable[SECRET_NAME_MAX + 1];
	time_t t = (time_t)(a->changed_ns / NS_PER_S);
	struct tm tm;
	strftime(when, sizeof(when), "%Y-%m-%d %H:%M:%S", localtime_r(&t, &tm));
	placeholder_variable(a->name, variable);
	printf("%-24s %-7s generation %-4llu changed %s  $%s\n", a->name, a->kind == SECRET_HELPER ? "helper" : "static",
		(unsigned long long)a->generation, when, variable);
}

static int print_list(struct globals *g, const struct secret_about *list, size_t n)
{
	json_t *all = json_array();
	for (size_t i = 0; i < n; i++) {
		if (g->json)
			json_array_append_new(all, about_json(&list[i]));
		else
			print_about(&list[i]);
	}
	if (n == 0 && !g->json && !g->quiet)
		printf("no secrets are stored; `bulkhead secret set NAME` stores one\n");
	if (g->json)
		return command_print_json(&command_secret, json_pack("{s:o}", "secrets", all));
	json_decref(all);
	return command_finish(&command_secret, 0);
}

static int verb_ls(struct globals *g, const struct secret_options *o, char **operands, int n, struct err *err)
{
	struct secret_about *list = NULL;
	size_t count = 0;
	struct state *state;
	if (n > 0)
		return err_set(err, ERR_USAGE, "secret ls takes no names, and got \"%.100s\"", operands[0]);
	if (state_open(g->state, &state, err) < 0)
		return -1;
	struct secret_store *store = secret_store_open(state_dirfd(state), false, err);
	int r = store ? secret_store_list(store, &list, &count, err) : -1;
	if (r == 0)
		r = print_list(g, list, count);
	secret_about_list_free(list, count);
	secret_store_free(store);
	state_free(state);
	return r;
}

static const struct {
	const char *name;
	verb_fn run;
	bool helper, sandbox, named; /* which options it takes; needs an operand */
} verbs[] = {
	{ "set", verb_set, true, false, true },
	{ "ls", verb_ls, false, false, false },
	{ "rm", verb_rm, false, false, true },
	{ "revoke", verb_revoke, false, true, true },
};

static int dispatch(struct globals *g, const struct secret_options *o, char **rest, int n, struct err *err)
{
	for (size_t i = 0; n > 0 && i < ARRAY_LEN(verbs); i++) {
		if (!str_eq(rest[0], verbs[i].name))
			continue;
		if ((o->helper && !verbs[i].helper) || (o->sandbox && !verbs[i].sandbox))
			return err_set(err, ERR_USAGE, "secret %s doesn't take %s", rest[0], o->helper ? "--helper" : "--sandbox");
		if (verbs[i].named && n < 2)
			return err_set(err, ERR_USAGE, "secret %s needs the name of a secret: bulkhead secret %s NAME", rest[0], rest[0]);
		return verbs[i].run(g, o, rest + 1, n - 1, err);
	}
	return err_set(err, ERR_USAGE, "secret needs one of set, ls, rm and revoke: bulkhead secret set NAME");
}

static int run(struct globals *g, int argc, char **argv)
{
	struct secret_options o = { 0 };
	const struct option_spec specs[] = { { 0, "helper", NULL, set_helper }, { 0, "sandbox", "ID", set_sandbox }, { 0 } };
	struct err err = ERR_INIT;
	char **rest;
	int n;
	bool help;
	if (command_options(&command_secret, g, specs, &o, false, argc, argv, &rest, &n, &help, &err) < 0)
		return command_fail(&command_secret, &err);
	if (help)
		return command_finish(&command_secret, 0);
	int status = dispatch(g, &o, rest, n, &err);
	return status < 0 ? command_fail(&command_secret, &err) : status;
}

const struct command command_secret = {
	.name = "secret",
	.summary = "keep values that sandboxes use and never hold",
	.usage = "usage: bulkhead secret set NAME <FILE\n"
		 "       bulkhead secret set NAME --helper -- COMMAND [ARG…]\n"
		 "       bulkhead secret ls\n"
		 "       bulkhead secret rm NAME\n"
		 "       bulkhead secret revoke NAME [--sandbox ID]\n\n"
		 "set reads the value from standard input (a terminal is asked, unseen) and seals it; it can be replaced, and never read back.\n"
		 "A newline at its end is left out. Running sandboxes that use the secret get the new value at once.\n"
		 "With --helper a command is stored instead, which is run outside the box when a value is needed and prints\n"
		 "{\"value\": \"…\", \"expires_in\": SECONDS} (or \"expires_at\": \"RFC 3339\").\n"
		 "ls shows names, kinds and times. rm removes a secret, also from running sandboxes.\n"
		 "revoke takes it from running sandboxes, or from one, and cuts what had used it; it stays stored.\n"
		 "A box gets a placeholder in a variable (shown by ls), and the gate puts the value in where a policy binds it.\n\n"
		 "      --helper       what follows -- is a command that prints the value\n"
		 "      --sandbox ID   only in this sandbox\n"
		 "      --json         one JSON document\n",
	.run = run,
};
