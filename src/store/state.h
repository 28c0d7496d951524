/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The state folder of the command line tool (no daemon): one folder for each sandbox, with a write-ahead intent so that
 * whatever a killed run left behind is found and removed by the next command.
 *
 *   STATE/                  0700   flock'd shared while a sandbox is begun, exclusively to judge what is stale:
 *                                  nothing half begun is ever taken for dead
 *     sandboxes/ID/         0700   state.json, policy.json, record.jsonl, output.bin, changes/, and
 *         lock                     locked by the supervisor for as long as it lives
 *     live/ID                      one empty file for each sandbox not yet known to have ended: written before
 *                                  anything else is made, removed last
 *
 * As root, host id ranges are reserved host-wide: /run/bulkhead/ids/N, flock'd.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/err.h"
#include "spec/spec.h"

struct state;
struct sandbox_dir;

/* Opens (creating) the state folder: `option` (--state) or $BULKHEAD_STATE or /var/lib/bulkhead as root, else
 * $XDG_STATE_HOME/bulkhead, else ~/.local/state/bulkhead. Refuses a folder that others may write. */
int state_open(const char *option, struct state **ret, struct err *err);
struct state *state_free(struct state *s);
const char *state_path(const struct state *s);
int state_dirfd(const struct state *s);

/* Begins a sandbox: live entry, folder, lock. The handle holds the lock until sandbox_dir_free. */
int state_sandbox_create(struct state *s, const char *id, struct sandbox_dir **ret, struct err *err);
/* Opens an existing one. ID may be shortened to an unambiguous prefix (at least 3 characters). With `lock`, fails with
 * ERR_CONFLICT while its supervisor lives. */
int state_sandbox_open(struct state *s, const char *id_or_prefix, bool lock, struct sandbox_dir **ret, struct err *err);
struct sandbox_dir *sandbox_dir_free(struct sandbox_dir *d);
int sandbox_dir_fd(const struct sandbox_dir *d);
const char *sandbox_dir_id(const struct sandbox_dir *d);
/* All is cleaned: removes the live entry. */
int state_sandbox_ended(struct state *s, struct sandbox_dir *d, struct err *err);
/* The same by full id, for an entry whose folder was never made. A missing entry is fine. */
int state_live_remove(struct state *s, const char *id, struct err *err);
/* Not yet known to have ended (starting, running, or left behind by a killed supervisor). By full id. */
bool state_is_live(const struct state *s, const char *id);
/* Does a process hold the sandbox's lock? A missing folder or lock counts as no. 1, 0, or -1. */
int state_sandbox_held(struct state *s, const char *id, struct err *err);

/* What `ls` shows; kept in state.json, replaced whole at each step. Strings owned. */
enum sandbox_phase { PHASE_STARTING = 0, PHASE_RUNNING, PHASE_ENDING, PHASE_ENDED, PHASE_LOST, SANDBOX_PHASE_MAX };
const char *sandbox_phase_name(enum sandbox_phase phase);
struct sandbox_state {
	enum sandbox_phase phase;
	uint64_t created_ns, ended_ns; /* realtime */
	pid_t supervisor_pid;
	enum isolation_level level;
	char *policy_name;
	char *policy_hash;	/* hex */
	char **argv;		/* NULL-terminated */
	int exit_status;	/* as `run` exits; -1 while running */
	enum reason end_reason; /* REASON_NONE when the command ended by itself */
	uint64_t files_changed, egress_allowed, egress_denied;
	char *workdir_source; /* host path of the working copy's original, or NULL */
};
int sandbox_state_write(struct sandbox_dir *d, const struct sandbox_state *st, struct err *err);
int sandbox_state_read(struct sandbox_dir *d, struct sandbox_state *ret, struct err *err); /* free with sandbox_state_done */
void sandbox_state_done(struct sandbox_state *st);

/* All sandboxes, newest first. fn returning non-zero stops. A folder whose state can't be read is passed with st->phase =
 * PHASE_LOST. */
int state_list(
	struct state *s, int (*fn)(void *ctx, const char *id, const struct sandbox_state *st), void *ctx, struct err *err);
/* Each live entry, by full id, in no order; fn returning non-zero stops. Cost is proportional to live entries. */
int state_live(struct state *s, int (*fn)(void *ctx, const char *id), void *ctx, struct err *err);
/* Live entries whose supervisor is gone (lock free). Cost is proportional to live entries. Free each id and the array with
 * mem_free. */
int state_stale(struct state *s, char ***ret_ids, size_t *ret_n, struct err *err);
/* Removes a whole ended sandbox folder. ERR_CONFLICT while it is in use (its lock is held, or it has a live entry). */
int state_sandbox_remove(struct state *s, const char *id, struct err *err);

/* As root: reserves one range of SPEC_ID_RANGE host ids, held by the returned descriptor until it is closed (also by death). */
int state_id_range_reserve(uid_t *ret_base, int *ret_fd, struct err *err);
