/* SPDX-License-Identifier: Apache-2.0 */
#include "store/state.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/mem.h"
#include "store/internal.h"

#define SYSTEM_STATE "/var/lib/bulkhead"

static const char *env(const char *name)
{
	const char *v = secure_getenv(name);
	return v && *v ? v : NULL;
}

/* The specification of XDG folders says that relative values are to be ignored. */
static char *default_path(struct err *err)
{
	const char *xdg = env("XDG_STATE_HOME"), *home = env("HOME");
	if (geteuid() == 0)
		return mem_strdup(SYSTEM_STATE);
	if (xdg && xdg[0] == '/')
		return path_join(xdg, "bulkhead");
	if (home && home[0] == '/')
		return path_join(home, ".local/state/bulkhead");
	err_set(err, ERR_USAGE, "there is no place for the state folder: HOME is not set; set it, or use --state DIR");
	return NULL;
}

static char *choose_path(const char *option, struct err *err)
{
	const char *named = option ? option : env("BULKHEAD_STATE");
	return named ? mem_strdup(named) : default_path(err);
}

/* mkdir -p along a path that the user named: the links in it are the user's own. */
static int make_path(const char *path)
{
	cleanup_free char *p = mem_strdup(path);
	for (char *slash = p + 1; (slash = strchr(slash, '/')); slash++) {
		*slash = '\0';
		if (mkdir(p, 0700) < 0 && errno != EEXIST)
			return -errno;
		*slash = '/';
	}
	return mkdir(p, 0700) < 0 && errno != EEXIST ? -errno : 0;
}

static int open_folder(const char *path, struct err *err)
{
	int fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (fd < 0 && errno == ENOENT) {
		int r = make_path(path);
		if (r < 0)
			return err_sys(err, -r, "cannot create the state folder %s; name another with --state DIR", path);
		fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	}
	if (fd < 0)
		return err_sys(err, errno, "cannot open the state folder %s; name another with --state DIR", path);
	return fd;
}

/* Who can write here can forge locks, records and what `apply` writes into the user's tree. */
static int check_folder(int fd, const char *path, struct err *err)
{
	struct stat st;
	if (fstat(fd, &st) < 0)
		return err_sys(err, errno, "cannot look at the state folder %s", path);
	if (st.st_uid != geteuid())
		return err_set(err, ERR_DENIED,
			"the state folder %s belongs to user %u, not to you (user %u); name another with --state DIR", path,
			(unsigned)st.st_uid, (unsigned)geteuid());
	if (st.st_mode & (S_IWGRP | S_IWOTH))
		return err_set(err, ERR_DENIED, "others may write to the state folder %s (mode %03o); run: chmod go-w %s", path,
			(unsigned)(st.st_mode & 0777), path);
	return 0;
}

int state_open(const char *option, struct state **ret, struct err *err)
{
	cleanup_free char *path = choose_path(option, err);
	if (!path)
		return -1;
	cleanup_fd int fd = open_folder(path, err);
	if (fd < 0 || check_folder(fd, path, err) < 0)
		return -1;
	struct state *s = mem_alloc(sizeof(*s));
	s->fd = fd_steal(&fd);
	s->path = mem_steal(&path);
	*ret = s;
	return 0;
}

struct state *state_free(struct state *s)
{
	if (!s)
		return NULL;
	fd_close(&s->fd);
	mem_free(s->path);
	return mem_free(s);
}

const char *state_path(const struct state *s)
{
	return s->path;
}

int state_dirfd(const struct state *s)
{
	return s->fd;
}

const char *entry_path(const char *folder, const char *id, char out[ENTRY_PATH_MAX])
{
	snprintf(out, ENTRY_PATH_MAX, "%s/%s", folder, id);
	return out;
}

int state_make_folders(struct state *s, struct err *err)
{
	if ((mkdirat(s->fd, SANDBOXES_FOLDER, 0700) < 0 && errno != EEXIST) ||
		(mkdirat(s->fd, LIVE_FOLDER, 0700) < 0 && errno != EEXIST))
		return err_sys(err, errno, "cannot create folders in the state folder %s", s->path);
	return 0;
}

int state_each_id(struct state *s, const char *folder, int (*fn)(void *ctx, const char *id), void *ctx, struct err *err)
{
	int fd = path_open_beneath(s->fd, folder, O_RDONLY | O_DIRECTORY, 0);
	if (fd == -ENOENT)
		return 0;
	DIR *d = fd < 0 ? NULL : fdopendir(fd);
	if (!d)
		return err_sys(err, fd < 0 ? -fd : errno, "cannot read %s/%s", s->path, folder);
	for (struct dirent *e; (e = readdir(d));)
		if (sandbox_id_valid(e->d_name) && fn(ctx, e->d_name) != 0)
			break;
	closedir(d);
	return 0;
}
