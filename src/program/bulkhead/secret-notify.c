/* SPDX-License-Identifier: Apache-2.0 */
#include "program/bulkhead/secret-notify.h"

#include <poll.h>
#include <string.h>

#include "audit/text.h"
#include "base/mem.h"
#include "base/text.h"
#include "sandbox/control-client.h"
#include "secrets/secret.h"

#define AGAIN_MS 20
#define STARTING_NS (30 * NS_PER_S) /* as long as a sandbox may take to start */

struct notice {
	struct state *state;
	enum control_request request;
	const char *name;
	struct secret_notified *result;
};

static void add(struct secret_notified *n, const char *id, const struct err *failure)
{
	json_t *one = json_pack("{s:s, s:b}", "id", id, "took", failure == NULL);
	if (failure)
		json_object_set_new(one, "error", audit_text_json(failure->text, strlen(failure->text)));
	json_array_append_new(n->list, one);
	*(failure ? &n->failed : &n->took) += 1;
}

/*
 * One that has its live entry and no socket is starting or ending, one that says CONFLICT is starting, or just does something else: both are asked again. Whoever may hold
 * the old value must not be missed.
 */
static int ask(struct notice *n, struct sandbox_dir *d, struct control_msg_ok *ret, struct err *err)
{
	uint64_t end = time_monotonic_ns() + STARTING_NS;
	for (;;) {
		int r = control_ask_secret(sandbox_dir_fd(d), n->request, n->name, ret, err);
		bool again = r < 0 && (err->code == ERR_NOT_FOUND || err->code == ERR_CONFLICT || err->code == ERR_CLOSED);
		if (!again || time_monotonic_ns() > end)
			return r;
		if (state_sandbox_held(n->state, sandbox_dir_id(d), NULL) <= 0)
			return err_set(err, ERR_NOT_FOUND, "sandbox %s is not running", sandbox_dir_id(d));
		poll(NULL, 0, AGAIN_MS);
	}
}

static int notify(struct notice *n, const char *id_or_prefix, struct err *err)
{
	struct control_msg_ok ok;
	struct sandbox_dir *d;
	struct err failure = ERR_INIT;
	if (state_sandbox_open(n->state, id_or_prefix, false, &d, err) < 0)
		return -1;
	int r = ask(n, d, &ok, &failure);
	if (r < 0 && failure.code != ERR_NOT_FOUND)
		add(n->result, sandbox_dir_id(d), &failure);
	else if (r == 0 && ok.count > 0)
		add(n->result, sandbox_dir_id(d), NULL);
	sandbox_dir_free(d);
	return r < 0 && failure.code == ERR_NOT_FOUND ? err_set(err, failure.code, "%s", failure.text) : 0;
}

/* One that is gone meanwhile needs to know nothing. */
static int notify_live(void *ctx, const char *id)
{
	notify(ctx, id, NULL);
	return 0;
}

int secret_notify(struct state *s, enum control_request request, const char *name, const char *only, struct secret_notified *ret, struct err *err)
{
	struct secret_notified result = { .list = json_array() };
	struct notice n = { s, request, name, &result };
	int r = only ? notify(&n, only, err) : state_live(s, notify_live, &n, err);
	if (r < 0)
		json_decref(result.list);
	else
		*ret = result;
	return r;
}

static void say(const struct globals *g, enum control_request request, const char *name, const struct secret_notified *n)
{
	const char *what = request == CONTROL_SECRET_CHANGED ? "has the new value" : "holds it no more";
	if (g->json || g->quiet || (n->took == 0 && request == CONTROL_SECRET_CHANGED))
		return;
	if (n->took == 1)
		printf("%s: 1 running sandbox %s\n", name, what);
	else
		printf("%s: %u running sandboxes %s\n", name, n->took, request == CONTROL_SECRET_CHANGED ? "have the new value" : "hold it no more");
}

static void complain(const struct command *cmd, const json_t *list)
{
	size_t i;
	json_t *one;
	json_array_foreach((json_t *)list, i, one) {
		size_t len;
		struct err err;
		cleanup_free char *text = audit_text_decode(json_object_get(one, "error"), &len);
		if (!text)
			continue;
		err_set(&err, ERR_CONFLICT, "sandbox %s: %s", json_string_value(json_object_get(one, "id")), text);
		command_fail(cmd, &err);
	}
}

int secret_notify_report(const struct command *cmd, const struct globals *g, struct state *s, enum control_request request, const char *name, const char *only,
	json_t *document)
{
	struct secret_notified n;
	struct err err = ERR_INIT;
	if (secret_notify(s, request, name, only, &n, &err) < 0)
		return command_fail(cmd, &err);
	say(g, request, name, &n);
	complain(cmd, n.list);
	if (document)
		json_object_set(document, "sandboxes", n.list);
	json_decref(n.list);
	return n.failed ? EXIT_FAILED : 0;
}

static bool is_stored(struct state *s, const char *name)
{
	struct secret_about *list = NULL;
	struct err err;
	size_t n = 0;
	bool found = false;
	struct secret_store *store = secret_store_open(state_dirfd(s), false, &err);
	if (store && secret_store_list(store, &list, &n, &err) < 0)
		found = true; /* it can't be said that it isn't */
	for (size_t i = 0; i < n; i++)
		found |= str_eq(list[i].name, name);
	secret_about_list_free(list, n);
	secret_store_free(store);
	return found || !store;
}

/* A slip in the name must not look like a revocation. */
static int check_known(const struct command *cmd, struct state *s, const char *name, const json_t *document)
{
	struct err err;
	if (json_array_size(json_object_get(document, "sandboxes")) > 0 || is_stored(s, name))
		return 0;
	err_set(&err, ERR_NOT_FOUND, "no running sandbox holds a secret %s, and none is stored; `bulkhead secret ls` lists them", name);
	return command_fail(cmd, &err);
}

int secret_revoke(const struct command *cmd, const struct globals *g, const char *name, const char *only)
{
	struct state *s = NULL;
	struct err err = ERR_INIT;
	if (!secret_name_valid(name))
		return err_set(&err, ERR_USAGE, "\"%.80s\" is no name of a secret", name), command_fail(cmd, &err);
	if (state_open(g->state, &s, &err) < 0)
		return command_fail(cmd, &err);
	json_t *document = json_pack("{s:s}", "name", name);
	int status = secret_notify_report(cmd, g, s, CONTROL_SECRET_REVOKE, name, only, document);
	if (status == 0)
		status = check_known(cmd, s, name, document);
	int printed = g->json ? command_print_json(cmd, json_incref(document)) : command_finish(cmd, 0);
	json_decref(document);
	state_free(s);
	return status ? status : printed;
}
