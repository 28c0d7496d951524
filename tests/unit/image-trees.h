/* SPDX-License-Identifier: Apache-2.0 */
/* Trees for the tests of src/image: made by hand or at random, changed, compared. All below one scratch folder on a tmpfs. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "image/changes.h"

/* A fresh scratch folder, entered (chdir) and removed by trees_end. */
void trees_begin(void);
void trees_end(void);
/* As trees_begin, and goes on as an ordinary user until trees_end (who is root gets its rights back there). */
void trees_begin_as_user(void);
/* A private tmpfs over the scratch folder in an own mount namespace. false: not permitted here. */
bool trees_mount_tmpfs(void);
bool trees_mount_overlay(const char *lower, const char *upper, const char *work, const char *merged);

/* Paths are relative to the scratch folder; parents are made. All abort the test on failure. */
void tree_write(const char *path, const char *text);
void tree_write_bytes(const char *path, const void *data, size_t len);
void tree_folder(const char *path);
void tree_link(const char *path, const char *target);
void tree_mode(const char *path, mode_t mode);
void tree_whiteout(const char *path);
void tree_opaque(const char *path);
char *tree_read(const char *path, size_t *ret_len); /* free(3); NULL when it isn't there */
bool tree_exists(const char *path);
int tree_fd(const char *path);
void tree_run(const char *command); /* by the shell; must succeed */
uint64_t now_ns(void);
/* Lets the clock that stamps files move on, so that what was made before and after can be told apart. */
void clock_tick(void);

enum { COMPARE_MODES = 1, COMPARE_FOLDERS = 2, COMPARE_SPECIAL = 4 };
/* Prints the differences and returns their number. */
unsigned trees_compare(const char *a, const char *b, unsigned what);

/* Random trees and random changes. Names include odd ones unless `plain`. */
struct random { uint64_t state; bool plain; };
uint32_t random_below(struct random *r, uint32_t n);
void random_tree(struct random *r, const char *root, unsigned entries);
void random_changes(struct random *r, const char *root, unsigned count);

/* Collects upper against lower, saves to "state"/"changes" and loads again. */
struct changes collected(const char *upper, const char *lower, uint64_t started_ns);
/* NULL-terminated list of all paths. The strings are the changes'. Free the array with free(3). */
char **all_paths(const struct changes *c);
const struct change *change_at(const struct changes *c, const char *path);
/* The whole patch as a string (free(3)). */
char *patch_of(const struct changes *c, const char *original, char *const *paths, unsigned style);
