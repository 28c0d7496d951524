/* SPDX-License-Identifier: Apache-2.0 */
#include "program/bulkhead/secret-notify.h"

#include <poll.h>
#include <string.h>

#include "audit/text.h"
#include "base/mem.h"
#include "base/text.h"
#include "sandbox/control-client.h"

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
