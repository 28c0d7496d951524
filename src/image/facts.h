/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a change's name alone doesn't tell: which folders are git repositories by their shape (bare ones too), and where their
 * configuration says that hooks and further configuration lie. Gathered while walking: every folder above a change is visited.
 *
 * What git obeys now is in the original, whose owner is trusted: from there included files are read as well, links and absolute
 * paths are followed, and the repository that a `.git` file names is looked at. What the box left is read by its text alone.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

struct facts {
	char **git_dirs; size_t n_git_dirs;         /* folders shaped like a git folder, whatever their name */
	char **hook_dirs; size_t n_hook_dirs;       /* core.hooksPath, and targets of a linked .git/hooks */
	char **config_files; size_t n_config_files; /* include.path */
	const char *source;                         /* host path of the original; NULL: unknown, text alone counts */
	bool following;                             /* the configuration being read is the original's */
	unsigned includes;                          /* how many files include the one being read */
	bool too_many;                              /* more than is kept: what the lists would say is then held without them */
};

/* Looks at one folder of the tree, from the box's and the original's side (-1: not there). Both are open folders. */
void facts_visit(struct facts *f, const char *path, int upper, int lower);
void facts_done(struct facts *f);

/* What a git configuration file (hostile bytes) says, with paths relative to work_tree and git_dir, both relative to the root
 * (git_dir may be absolute). Reads no other file unless `following`. */
void facts_read_config(struct facts *f, const char *text, size_t len, const char *work_tree, const char *git_dir);
/* "a/b" + "../c/./d" = "a/c/d"; NULL when it is absolute or leaves the root. Free with mem_free. */
char *facts_resolve(const char *base, const char *relative);
