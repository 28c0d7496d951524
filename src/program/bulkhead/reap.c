/* SPDX-License-Identifier: Apache-2.0 */
#include "program/bulkhead/reap.h"

#include <errno.h>
#include <sys/wait.h>
#include <unistd.h>

#include "audit/start.h"
#include "base/fd.h"
#include "base/mem.h"
#include "base/text.h"
#include "event/child.h"
#include "isolate/isolate.h"
#include "sandbox/control-protocol.h"

/* An auditor whose supervisor goes without a word writes what there is to say; one that said it already, before it died itself,
 * adds nothing. */
static int end_record(int dirfd, struct err *err)
{
	struct audit_process p;
	int status;
	if (audit_start(dirfd, false, false, &p, err) < 0)
		return -1;
	fd_close(&p.supervisor_fd);
	int r = child_wait(p.pidfd, &status);
	fd_close(&p.pidfd);
	if (r < 0)
		return err_sys(err, -r, "cannot wait for the auditor");
	if (!WIFEXITED(status) || WEXITSTATUS(status) != 0)
		return err_set(
			err, ERR_CORRUPT, "the end can't be added to its record: the record is damaged, or its disk is full");
	return 0;
}

static int note_lost(struct sandbox_dir *d, struct err *err)
{
	struct sandbox_state st;
	/* Killed before its state was first written: `ls` shows it as lost without it. */
	if (sandbox_state_read(d, &st, NULL) < 0)
		return 0;
	int r = 0;
	if (st.phase != PHASE_ENDED && st.phase != PHASE_LOST) {
		st.phase = PHASE_LOST;
		st.end_reason = REASON_SUPERVISOR_LOST;
		st.ended_ns = time_realtime_ns();
		r = sandbox_state_write(d, &st, err);
	}
	sandbox_state_done(&st);
	return r;
}

/* With the sandbox's lock held. The live entry goes last: whatever fails or is killed before is done again. */
static int clean(struct state *s, struct sandbox_dir *d, struct reaped *r, struct err *why, struct err *err)
{
	if (isolate_reap(r->id, r->dry_run, &r->removed, err) < 0)
		return -1;
	if (r->dry_run)
		return 0;
	if (unlinkat(sandbox_dir_fd(d), CONTROL_FILE, 0) < 0 && errno != ENOENT)
		return err_sys(err, errno, "cannot remove the socket of its supervisor");
	/* The sandbox is gone whether or not that can be written down; `audit verify` tells where the record stops. */
	r->record_ended = end_record(sandbox_dir_fd(d), why) == 0;
	if (!r->record_ended)
		r->why = why->text;
	return note_lost(d, err) < 0 ? -1 : state_sandbox_ended(s, d, err);
}

/* Killed before its folder was made: then nothing else was either. */
static int forget(struct state *s, struct reaped *r, struct err *err)
{
	r->record_ended = true;
	return r->dry_run ? 0 : state_live_remove(s, r->id, err);
}

int reap_one(struct state *s, const char *id, bool dry_run, void (*fn)(void *ctx, const struct reaped *r), void *ctx,
	struct err *err)
{
	struct reaped r = { .id = id, .dry_run = dry_run };
	struct sandbox_dir *d = NULL;
	struct err why = ERR_INIT;
	int done;
	if (state_sandbox_open(s, id, true, &d, &why) == 0)
		done = state_is_live(s, id) ? clean(s, d, &r, &why, err) : 1;
	else if (why.code == ERR_NOT_FOUND)
		done = forget(s, &r, err);
	else if (why.code == ERR_CONFLICT)
		done = 1;
	else
		done = err_set(err, why.code, "%s", why.text);
	sandbox_dir_free(d);
	if (done == 0 && fn)
		fn(ctx, &r);
	return done < 0 ? err_wrap(err, "cannot clean up after sandbox %s, whose supervisor was killed", id) : 0;
}

int reap_stale(struct state *s, bool dry_run, void (*fn)(void *ctx, const struct reaped *r), void *ctx, struct err *err)
{
	char **ids;
	size_t n;
	int result = 0;
	if (state_stale(s, &ids, &n, err) < 0)
		return -1;
	for (size_t i = 0; i < n; i++) {
		struct err failed = ERR_INIT;
		if (reap_one(s, ids[i], dry_run, fn, ctx, &failed) < 0)
			result = err_set(err, failed.code, "%s", failed.text);
		mem_free(ids[i]);
	}
	mem_free(ids);
	return result;
}
