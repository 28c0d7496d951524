/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The working copy after the run: what an overlay's upper folder says was changed, compared with the original; saved, shown,
 * applied, dropped. Everything in the upper folder was shaped by the box: names, links, modes, devices, sizes are hostile. It
 * is read beneath descriptors only, no link is followed. Overlay form (Linux Documentation/filesystems/overlayfs.rst): whiteout
 * = character device 0:0; opaque folder = xattr user.overlay.opaque or trusted.overlay.opaque = "y"; metacopy and redirect_dir
 * are off, so a renamed folder is a delete and an add.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include <jansson.h>

#include "base/err.h"

enum change_kind {
	CHANGE_ADDED = 0,
	CHANGE_MODIFIED,
	CHANGE_DELETED,
	CHANGE_MODE,
	CHANGE_TYPE,
	CHANGE_RENAMED,
	CHANGE_KIND_MAX
};
enum file_kind { FILE_REGULAR = 0, FILE_FOLDER, FILE_LINK, FILE_FIFO, FILE_SOCKET, FILE_DEVICE, FILE_NONE, FILE_KIND_MAX };

/* What could run later outside the box. */
enum change_flag {
	CHANGE_FLAG_GIT_HOOK =
		1 << 0, /* …/.git/hooks/…, core.hooksPath targets, .husky, .githooks at any depth; also bare repositories */
	CHANGE_FLAG_GIT_CONFIG = 1 << 1, /* .git/config, .git/info/attributes, .gitmodules, .gitattributes, worktree config */
	CHANGE_FLAG_SHELL_RC = 1 << 2,	 /* .bashrc, .profile, .zshrc, .envrc, … */
	CHANGE_FLAG_CI = 1 << 3,	 /* .github/workflows, .gitlab-ci.yml, Jenkinsfile, .circleci, … */
	CHANGE_FLAG_EDITOR = 1 << 4,	 /* .vscode/tasks.json|launch.json|settings.json, .idea, .vim, .editorconfig isn't */
	CHANGE_FLAG_BUILD = 1 << 5,	 /* package.json, Makefile, setup.py …: shown, not held back */
	CHANGE_FLAG_SETID = 1 << 6,
	CHANGE_FLAG_ESCAPING_LINK = 1 << 7,	/* a link whose target leaves the tree or is absolute */
	CHANGE_FLAG_SPECIAL = 1 << 8,		/* device, fifo, socket, a file beyond 4 TiB: never applied */
	CHANGE_FLAG_AGENT_CONFIG = 1 << 9,	/* .claude, .mcp.json, .cursor, AGENTS.md …: what another agent obeys */
	CHANGE_FLAG_EXECUTABLE = 1 << 10,	/* became executable: shown, not held back */
	CHANGE_FLAG_ORIGINAL_CHANGED = 1 << 11, /* the original changed since the run began: apply refuses */
};
/* Those that apply only takes when the path is named. */
#define CHANGE_FLAGS_HELD                                                                                                      \
	(CHANGE_FLAG_GIT_HOOK | CHANGE_FLAG_GIT_CONFIG | CHANGE_FLAG_SHELL_RC | CHANGE_FLAG_CI | CHANGE_FLAG_EDITOR |          \
		CHANGE_FLAG_SETID | CHANGE_FLAG_ESCAPING_LINK | CHANGE_FLAG_SPECIAL | CHANGE_FLAG_AGENT_CONFIG)
const char *change_kind_name(enum change_kind kind);
const char *change_flag_name(enum change_flag one);   /* "git-hook" … */
const char *change_flag_reason(enum change_flag one); /* why it is told: "git runs it" … */
const char *file_kind_name(enum file_kind kind);

struct change {
	char *path;            /* relative to the mount, '/'-separated; any bytes but NUL */
	char *from;            /* CHANGE_RENAMED: the old path (same content, one deleted, one added) */
	enum change_kind kind;
	enum file_kind before, after;
	mode_t mode_before, mode_after;
	uint64_t size_before, size_after;
	char *link_after;      /* target, for links */
	unsigned flags;
	/* identity of the original when the change was collected, for conflict detection */
	bool orig_exists;
	uint64_t orig_ino, orig_size;
	int64_t orig_mtime_ns, orig_ctime_ns;
	char orig_digest[65];  /* of the original's content, only where it has several names (its ctime then changes without a
				  change of content); "" else */
	char digest[65];       /* BLAKE2b-256 hex of the new content of a regular file; "" else */
	bool digest_sparse;    /* the file has more than 1 MiB of holes: the digest is of its data blocks (image/content.h) */
	int64_t mtime_ns;      /* of the new file or link; apply keeps it */
};

struct changes {
	struct change *items;  /* sorted by path (bytes) */
	size_t n;
	uint64_t bytes;        /* of added and modified regular files */
	char *source;          /* host path of the original; set by the caller before changes_save. NULL: not told */
	uint64_t nonce;        /* random: names of temporary files while applying, that the box can't have guessed */
};
void changes_done(struct changes *c);

/* Compares upper with the original. started_realtime_ns: originals whose ctime is later get CHANGE_FLAG_ORIGINAL_CHANGED. A
 * copied-up file that is equal to its original (content, mode, kind) is no change. At most max_items (more: ERR_LIMIT, nothing
 * is cut short silently). lower_fd is the same view that the overlay had (id-mapped), or the original itself; source is its path
 * on the host, by which absolute paths in git's configuration are found below it (NULL: they are not). */
int changes_collect(
	int upper_fd, int lower_fd, const char *source, uint64_t started_realtime_ns, size_t max_items, struct changes *ret,
	struct err *err);

/* The same where the box had no overlay but a whole copy: what isn't there was deleted. Pipes, sockets and devices of the
 * original were never in the copy, so their absence says nothing. */
int changes_collect_whole(
	int copy_fd, int original_fd, const char *source, uint64_t started_realtime_ns, size_t max_items, struct changes *ret,
	struct err *err);

/* Copies what is needed to show and apply later to dirfd/name (created; an unfinished earlier one is replaced):
 * "manifest.jsonl" and "files/DIGEST" (each content once, mode 0600, under a name that the box had no say in; links are in the
 * manifest). Durable order: files first, manifest last by rename. Sparse files stay sparse. On failure nothing is left. */
int changes_save(const struct changes *c, int upper_fd, int dirfd, const char *name, struct err *err);
/* ERR_NOT_FOUND when nothing (whole) was saved; ERR_CORRUPT when the manifest doesn't parse. */
int changes_load(int dirfd, const char *name, struct changes *ret, struct err *err);

/* Unified patch (git style: a/ b/, modes, renames, deletions, "Binary files differ"); control bytes in names quoted as git
 * does. fn gets pieces; non-zero stops. Lines that begin with "# " stand between the patches: flags with their reason, and what
 * git's format can't say (folders, devices); `git apply` skips them. paths: NULL or NULL-terminated prefixes to show. 0, -1, or
 * what fn returned. */
enum diff_style {
	DIFF_PLAIN = 0,	  /* bytes as they are: for programs and files */
	DIFF_VISIBLE = 1, /* for terminals: control bytes and invisible or direction-changing characters are written out, so
			     that no content can hide a line */
	DIFF_COLOUR = 2,  /* ANSI colours; implies DIFF_VISIBLE */
};
int changes_diff(const struct changes *c, int dirfd, const char *name, int original_fd, char *const *paths, unsigned style,
	int (*fn)(void *ctx, const void *data, size_t len), void *ctx, struct err *err);
/* Lines added and deleted of each change, without the text. */
struct change_stat { uint64_t added, deleted; bool binary; };
int changes_stat(const struct changes *c, int dirfd, const char *name, int original_fd, char *const *paths,
	int (*fn)(void *ctx, const struct change *one, const struct change_stat *stat), void *ctx, struct err *err);
json_t *changes_to_json(const struct changes *c);
json_t *change_to_json(const struct change *one);
/* A path as a JSON string, or as {"base64": …} where it isn't UTF-8. */
json_t *change_text_to_json(const char *text);
/* The path is one of `paths` or below one (NULL: always). A rename is found by both names. */
bool change_selected(const struct change *one, char *const *paths);
/* As git quotes: in double quotes with C escapes where there are control bytes, quotes, backslashes or bytes over 0x7f; else as
 * it is. Free with mem_free. */
char *change_path_quote(const char *prefix, const char *path);

struct apply_result {
	size_t applied;
	size_t already;            /* of those: were so already (an earlier apply, or the same change made by hand) */
	struct changes done;       /* what was applied (dry run: would be) */
	struct changes held;       /* flagged and not named; special files always */
	struct changes conflicts;  /* the original changed meanwhile: nothing at all was applied */
};
void apply_result_done(struct apply_result *r);
/* Applies all or the named paths (a named folder takes everything below it but the held ones, which must be named exactly; the
 * folders that a named file needs come along). First checks everything, then puts each file in its place by exchange beneath
 * original_fd and looks at what came out. As root, new files belong to whom their folder belongs, changed ones to whom they
 * belonged. Idempotent: can be repeated after being killed. With conflicts nothing is written and -1 with ERR_CONFLICT names
 * the files. *ret is always set: free it with apply_result_done, on failure too. */
int changes_apply(const struct changes *c, int dirfd, const char *name, int original_fd, char *const *paths, bool dry_run,
	struct apply_result *ret, struct err *err);
