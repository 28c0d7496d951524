/* SPDX-License-Identifier: Apache-2.0 */
#include "program/bulkhead/append-record.h"

#include <stdint.h>
#include <sys/wait.h>

#include "audit/client.h"
#include "audit/start.h"
#include "base/fd.h"
#include "event/child.h"
#include "event/loop.h"

#define ANSWER_WAIT_NS (30ull * 1000000000u)

/* The first thing that went wrong; everything after it only follows from it. */
struct outcome { struct err err; };

static void note(struct outcome *o, const struct err *err)
{
	if (err && o->err.code == ERR_NONE)
		o->err = *err;
}

static void on_done(void *ctx, uint64_t seq, const struct err *err)
{
	note(ctx, err);
}

static void on_lost(void *ctx, const struct err *err)
{
	note(ctx, err);
}

static int send_one(struct audit_client *c, enum audit_type type, json_t *fields, struct outcome *o, struct err *err)
{
	if (audit_client_send(c, type, json_incref(fields), NULL, 0, on_done, o, err) < 0 ||
		audit_client_drain(c, ANSWER_WAIT_NS, err) < 0)
		return -1;
	if (o->err.code == ERR_NONE)
		return 0;
	return err_set(err, o->err.code, "%s", o->err.text);
}

static int send_all(struct audit_process *p, enum audit_type type, const json_t *fields, struct err *err)
{
	struct outcome o = { .err = ERR_INIT };
	struct loop *loop = loop_new();
	struct audit_client *c = audit_client_new(loop, p->supervisor_fd, on_lost, &o);
	size_t i;
	json_t *one;
	int r = 0;
	json_array_foreach(fields, i, one)
	{
		r = send_one(c, type, one, &o, err);
		if (r < 0)
			break;
	}
	/* The client closed the socket: the auditor ends. */
	audit_client_free(c);
	loop_free(loop);
	return r;
}

int append_record(int dirfd, enum audit_type type, json_t *fields, struct err *err)
{
	struct audit_process p;
	int status;
	int r = audit_start(dirfd, false, false, &p, err);
	if (r == 0) {
		r = send_all(&p, type, fields, err);
		child_wait(p.pidfd, &status);
		fd_close(&p.pidfd);
		if (r == 0 && !(WIFEXITED(status) && WEXITSTATUS(status) == 0))
			r = err_set(err, ERR_SYSTEM,
				"the auditor ended badly while it wrote the record; see `bulkhead audit verify`");
	}
	json_decref(fields);
	return r < 0 ? err_wrap(err, "cannot append to the record") : 0;
}
