/* SPDX-License-Identifier: Apache-2.0 */
#include "program/bulkhead/policy-set.h"

#include "base/mem.h"
#include "program/bulkhead/policy-file.h"
#include "sandbox/control-client.h"
#include "store/state.h"

/* What the file says, or the supervisor, is an answer; that it can't be read or nobody is there is none. */
static bool is_answer(const struct err *err)
{
	return err->code == ERR_INVALID || err->code == ERR_UNSUPPORTED || err->code == ERR_CONFLICT || err->code == ERR_LIMIT;
}

static int ask(const struct globals *g, const char *id, const struct policy *p, char ret_id[SANDBOX_ID_LEN + 1], struct control_msg_ok *ret, struct err *err)
{
	struct state *s = NULL;
	struct sandbox_dir *d = NULL;
	int r = state_open(g->state, &s, err);
	if (r == 0)
		r = state_sandbox_open(s, id, false, &d, err);
	if (r == 0) {
		snprintf(ret_id, SANDBOX_ID_LEN + 1, "%s", sandbox_dir_id(d));
		r = control_ask_policy(sandbox_dir_fd(d), 0, p, ret, err);
		if (r < 0 && err->code == ERR_NOT_FOUND)
			err_set(err, ERR_NOT_FOUND, "sandbox %s is not running, so its policy can't change any more; `bulkhead ls` lists those that run", ret_id);
	}
	sandbox_dir_free(d);
	state_free(s);
	return r;
}

static int report(const struct globals *g, const char *id, const struct control_msg_ok *ok)
{
	if (g->json)
		return command_print_json(&command_policy,
			json_pack("{s:s, s:I, s:I}", "id", id, "policy_generation", (json_int_t)ok->generation, "cut", (json_int_t)ok->count));
	if (!g->quiet)
		printf("%s: policy of generation %llu holds, %llu connection%s or request%s cut\n", id, (unsigned long long)ok->generation, (unsigned long long)ok->count,
			ok->count == 1 ? "" : "s", ok->count == 1 ? "" : "s");
	return command_finish(&command_policy, 0);
}

int policy_set(const struct globals *g, const char *id, const char *file)
{
	cleanup_free char *warning = NULL;
	struct policy *p = NULL;
	struct control_msg_ok ok;
	char whole_id[SANDBOX_ID_LEN + 1];
	struct err err = ERR_INIT;
	int r = policy_file_read(file, &p, &warning, &err);
	if (warning)
		fprintf(stderr, "bulkhead policy: warning: %s\n", warning);
	if (r == 0) {
		policy_seal(p);
		r = ask(g, id, p, whole_id, &ok, &err);
	}
	policy_free(p);
	if (r == 0)
		return report(g, whole_id, &ok);
	command_fail(&command_policy, &err);
	return is_answer(&err) ? EXIT_NO : EXIT_FAILED;
}
