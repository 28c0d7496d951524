/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "store/state.h"

#define LIVE_FOLDER "live"
#define SANDBOXES_FOLDER "sandboxes"
#define LOCK_FILE "lock"
#define STATE_FILE "state.json"
#define STATE_FILE_MAX (1024u * 1024u)
#define ARGV_KEPT_MAX (64u * 1024u) /* bytes of the command line that `ls` can show; the record has it whole */

struct state {
	int fd;
	char *path;
};

struct sandbox_dir {
	int fd, lock_fd;
	char id[SANDBOX_ID_LEN + 1];
};

#define ENTRY_PATH_MAX (sizeof(SANDBOXES_FOLDER) + 1u + SANDBOX_ID_LEN + 1u)
/* "live/ID" or "sandboxes/ID" */
const char *entry_path(const char *folder, const char *id, char out[ENTRY_PATH_MAX]);

/* Creates "live" and "sandboxes" when they are missing. */
int state_make_folders(struct state *s, struct err *err);
/* Calls fn with each valid id in live/ or sandboxes/. A missing folder is an empty one. */
int state_each_id(struct state *s, const char *folder, int (*fn)(void *ctx, const char *id), void *ctx, struct err *err);

/* Opens a sandbox's folder by full id. fd or -errno. */
int sandbox_folder_open(const struct state *s, const char *id);
/* state.json in an open folder. */
int sandbox_state_load(int dirfd, struct sandbox_state *ret, struct err *err);
