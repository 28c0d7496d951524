/* SPDX-License-Identifier: Apache-2.0 */
#include "image/save.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/mem.h"
#include "image/content.h"
#include "image/list.h"
#include "image/manifest.h"
#include "image/tree.h"

#define MANIFEST "manifest.jsonl"

/* Contents are stored under their digest: names of our own making, each content once, checkable. */
static void stored_name(const struct change *one, char out[80])
{
	snprintf(out, 80, "files/%s%s", one->digest, one->digest_sparse ? ".sparse" : "");
}

static int save_content(const struct change *one, int upper_fd, int folder, struct err *err)
{
	char stored[80];
	const char *name;
	stored_name(one, stored);
	cleanup_free char *quoted = change_path_quote("", one->path);
	cleanup_fd int parent = tree_open_parent(upper_fd, one->path, &name);
	if (parent < 0)
		return err_sys(err, -parent, "cannot open the folder of the changed %s", quoted);
	cleanup_fd int from = tree_open_entry(parent, name, FILE_REGULAR, true);
	if (from < 0)
		return err_sys(err, -from, "cannot open the changed %s", quoted);
	cleanup_fd int to = openat(folder, stored, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
	if (to < 0 && errno == EEXIST)
		return 0; /* another file has the same content */
	if (to < 0)
		return err_sys(err, errno, "cannot store the changed %s", quoted);
	int r = content_copy(from, to, NULL, false);
	return r == 0 ? 0 : err_sys(err, -r, "cannot store the changed %s; free some space under the state folder", quoted);
}

static int save_all(const struct changes *c, int upper_fd, int folder, struct err *err)
{
	bool stored = false;
	struct buf manifest;
	if (mkdirat(folder, "files", 0700) < 0)
		return err_sys(err, errno, "cannot create the folder of the changed files");
	for (size_t i = 0; i < c->n; i++) {
		if (!change_is_stored(&c->items[i]))
			continue;
		stored = true;
		if (save_content(&c->items[i], upper_fd, folder, err) < 0)
			return -1;
	}
	/* The list must never be on disk without what it names. */
	if (stored && syncfs(folder) < 0)
		return err_sys(err, errno, "cannot write the changed files to disk");
	buf_init(&manifest, MANIFEST_MAX);
	int r = manifest_encode(c, &manifest, err);
	if (r == 0)
		r = fd_replace_file_at(folder, MANIFEST, manifest.data, manifest.len, 0600, stored, err);
	buf_free(&manifest);
	return r;
}

int changes_save(const struct changes *c, int upper_fd, int dirfd, const char *name, struct err *err)
{
	int r = path_remove_tree(dirfd, name);
	if (r == 0 && mkdirat(dirfd, name, 0700) < 0)
		r = -errno;
	if (r < 0)
		return err_sys(err, -r, "cannot create the folder \"%s\" for the changes", name);
	cleanup_fd int folder = path_open_beneath(dirfd, name, O_RDONLY | O_DIRECTORY, 0);
	if (folder < 0)
		r = err_sys(err, -folder, "cannot open the folder \"%s\" for the changes", name);
	else
		r = save_all(c, upper_fd, folder, err);
	if (r < 0)
		path_remove_tree(dirfd, name);
	return r;
}

int changes_load(int dirfd, const char *name, struct changes *ret, struct err *err)
{
	char *text;
	size_t len;
	struct err inner = ERR_INIT;
	cleanup_free char *path = path_join(name, MANIFEST);
	if (fd_read_regular_at(dirfd, path, MANIFEST_MAX, &text, &len, &inner) < 0) {
		if (inner.sys == ENOENT || inner.sys == ENOTDIR)
			return err_set(err, ERR_NOT_FOUND,
				"no changes are saved here: the run had no working copy, was ended before they were "
				"saved, or they were discarded");
		return err_set(err, inner.code, "cannot read the saved list of changes: %s", inner.text);
	}
	int r = manifest_decode(text, len, ret, err);
	mem_free(text);
	return r;
}

int stored_open(int dirfd, const char *name, const struct change *one, struct err *err)
{
	char stored[80];
	stored_name(one, stored);
	cleanup_free char *path = path_join(name, stored);
	struct stat st;
	int fd = path_open_beneath(dirfd, path, O_RDONLY | O_NONBLOCK, 0);
	if (fd >= 0 && fstat(fd, &st) == 0 && S_ISREG(st.st_mode))
		return fd;
	cleanup_free char *quoted = change_path_quote("", one->path);
	if (fd >= 0) {
		fd_close(&fd);
		return err_set(err, ERR_CORRUPT, "the stored content of %s is not a regular file", quoted);
	}
	return err_sys(err, -fd, "cannot open the stored content of %s", quoted);
}
