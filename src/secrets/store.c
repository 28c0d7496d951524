/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The folder of secrets. Every change is made under a lock on the folder, as a new file that takes the old one's place: whoever is killed at any line leaves the
 * old value or the new one, and at most a temporary file, which the next change removes.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <sodium.h>

#include "base/fd.h"
#include "base/mem.h"
#include "base/text.h"
#include "secrets/file.h"
#include "secrets/key.h"
#include "secrets/value.h"

#define SUFFIX ".secret"
#define FILE_NAME_MAX (SECRET_NAME_MAX + sizeof(SUFFIX))

struct secret_store {
	int fd; /* -1: there is no folder */
	char *path;
};

static const char *file_name(const char *name, char out[FILE_NAME_MAX])
{
	size_t len = strlen(name);
	memcpy(out, name, len);
	memcpy(out + len, SUFFIX, sizeof(SUFFIX));
	return out;
}

/* ---- open ---- */

static int make_folder(int state_dir_fd, const char *path, struct err *err)
{
	if (mkdirat(state_dir_fd, SECRETS_FOLDER, 0700) < 0)
		return errno == EEXIST ? 0 : err_sys(err, errno, "cannot create the folder of secrets, %s", path);
	/* Else the folder could be gone after a crash although a value in it was synced. */
	if (fsync(state_dir_fd) < 0)
		return err_sys(err, errno, "cannot sync the state folder to disk after creating %s", path);
	return 0;
}

/* For messages: the path of the state folder as the kernel knows it, and ours below. */
static char *folder_path(int state_dir_fd)
{
	char link[sizeof("/proc/self/fd/") + 12], state[4096];
	snprintf(link, sizeof(link), "/proc/self/fd/%d", state_dir_fd);
	ssize_t n = readlink(link, state, sizeof(state) - 1);
	if (n <= 0)
		return mem_strdup(SECRETS_FOLDER);
	state[n] = '\0';
	return path_join(state, SECRETS_FOLDER);
}

static int open_folder(int state_dir_fd, const char *path, bool create, int *ret_fd, struct err *err)
{
	if (create && make_folder(state_dir_fd, path, err) < 0)
		return -1;
	cleanup_fd int fd = openat(state_dir_fd, SECRETS_FOLDER, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (fd < 0 && (errno != ENOENT || create))
		return err_sys(err, errno, "cannot open the folder of secrets, %s", path);
	if (fd >= 0 && private_check(fd, true, path, err) < 0)
		return -1;
	*ret_fd = fd_steal(&fd);
	return 0;
}

struct secret_store *secret_store_open(int state_dir_fd, bool create, struct err *err)
{
	int fd;
	if (sodium_ready(err) < 0)
		return NULL;
	cleanup_free char *path = folder_path(state_dir_fd);
	if (open_folder(state_dir_fd, path, create, &fd, err) < 0)
		return NULL;
	struct secret_store *s = mem_alloc(sizeof(*s));
	s->fd = fd;
	s->path = mem_steal(&path);
	return s;
}

struct secret_store *secret_store_free(struct secret_store *s)
{
	if (!s)
		return NULL;
	fd_close(&s->fd);
	mem_free(s->path);
	return mem_free(s);
}

/* Held by the returned descriptor: a description of its own, since a lock belongs to that. fd or -1. */
static int lock(struct secret_store *s, struct err *err)
{
	cleanup_fd int fd = openat(s->fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	int r = -1;
	if (fd >= 0)
		do
			r = flock(fd, LOCK_EX);
		while (r < 0 && errno == EINTR);
	if (r < 0)
		return err_sys(err, errno, "cannot lock the folder of secrets, %s", s->path);
	return fd_steal(&fd);
}

/* ---- read ---- */

static int not_found(const char *name, struct err *err)
{
	return err_set(err, ERR_NOT_FOUND, "there is no secret \"%s\"; `bulkhead secret ls` lists them, `bulkhead secret set %s` makes it", name, name);
}

/* *ret_fd is -1 when there is none. */
static int open_file(struct secret_store *s, const char *name, int *ret_fd, struct err *err)
{
	char file[FILE_NAME_MAX];
	*ret_fd = -1;
	if (secret_name_check(name, err) < 0)
		return -1;
	if (s->fd < 0)
		return 0;
	cleanup_free char *path = path_join(s->path, file_name(name, file));
	cleanup_fd int fd = openat(s->fd, file, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY);
	if (fd < 0)
		return errno == ENOENT ? 0 : err_sys(err, errno, "cannot open %s", path);
	if (private_check(fd, false, path, err) < 0)
		return -1;
	*ret_fd = fd_steal(&fd);
	return 0;
}

/* The whole file, without moving the descriptor's position: it is handed on. */
static int read_file(int fd, struct buf *out, struct err *err)
{
	buf_init(out, SECRET_FILE_MAX + 1);
	uint8_t *p = buf_reserve(out, SECRET_FILE_MAX + 1);
	if (!p)
		return err_set(err, ERR_MEMORY, "no memory to read a secret's file");
	for (size_t len = 0;;) {
		ssize_t n = pread(fd, p + len, SECRET_FILE_MAX + 1 - len, (off_t)len);
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return err_sys(err, errno, "cannot read a secret's file");
		len += (size_t)n;
		if (n == 0 || len == SECRET_FILE_MAX + 1) {
			buf_commit(out, len);
			return 0;
		}
	}
}

static int read_about(int fd, struct secret_about *ret, struct err *err)
{
	struct buf b;
	int r = read_file(fd, &b, err);
	if (r == 0)
		r = secret_file_about(b.data, b.len, ret, err);
	buf_free(&b);
	return r;
}

/* What the file of that name says; a file that was put under another name is found out here, one whose text was changed too when it is opened. */
static int about_of(int fd, const char *name, struct secret_about *ret, struct err *err)
{
	if (read_about(fd, ret, err) < 0)
		return err_wrap(err, "secret %s", name);
	if (str_eq(ret->name, name))
		return 0;
	err_set(err, ERR_CORRUPT, "secret %s: its file says that it is %s: it was renamed; set it again", name, ret->name);
	secret_about_done(ret);
	return -1;
}

static int compare(const void *a, const void *b)
{
	return strcmp(((const struct secret_about *)a)->name, ((const struct secret_about *)b)->name);
}

static bool name_of_file(const char *file, char out[SECRET_NAME_MAX + 1])
{
	size_t len = strlen(file), tail = strlen(SUFFIX);
	if (!str_ends(file, SUFFIX) || len - tail > SECRET_NAME_MAX)
		return false;
	memcpy(out, file, len - tail);
	out[len - tail] = '\0';
	return secret_name_valid(out);
}

void secret_about_list_free(struct secret_about *list, size_t n)
{
	for (size_t i = 0; i < n; i++)
		secret_about_done(&list[i]);
	mem_free(list);
}

/* Calls fn with each name in the folder. fn gives -1 to stop. */
static int each_name(struct secret_store *s, int (*fn)(void *ctx, const char *name, struct err *err), void *ctx, struct err *err)
{
	char name[SECRET_NAME_MAX + 1];
	int r = 0;
	if (s->fd < 0)
		return 0;
	int fd = openat(s->fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *d = fd < 0 ? NULL : fdopendir(fd);
	if (!d) {
		err_sys(err, errno, "cannot read the folder of secrets, %s", s->path);
		fd_close(&fd);
		return -1;
	}
	for (struct dirent *e; r == 0 && (e = readdir(d));)
		if (name_of_file(e->d_name, name))
			r = fn(ctx, name, err);
	closedir(d);
	return r;
}

struct listing {
	struct secret_store *store;
	struct secret_about *list;
	size_t n;
};

static int add_to_list(void *ctx, const char *name, struct err *err)
{
	struct listing *l = ctx;
	struct secret_about about;
	cleanup_fd int fd = -1;
	if (open_file(l->store, name, &fd, err) < 0)
		return -1;
	if (fd < 0)
		return 0; /* removed meanwhile */
	if (about_of(fd, name, &about, err) < 0)
		return -1;
	l->list = mem_grow_array(l->list, l->n + 1, sizeof(*l->list));
	l->list[l->n++] = about;
	return 0;
}

int secret_store_list(struct secret_store *s, struct secret_about **ret, size_t *ret_n, struct err *err)
{
	struct listing l = { .store = s };
	if (each_name(s, add_to_list, &l, err) < 0) {
		secret_about_list_free(l.list, l.n);
		return -1;
	}
	if (l.n > 0)
		qsort(l.list, l.n, sizeof(*l.list), compare);
	*ret = l.list;
	*ret_n = l.n;
	return 0;
}

static int count_name(void *ctx, const char *name, struct err *err)
{
	++*(size_t *)ctx;
	return 0;
}

int secret_store_descriptors(struct secret_store *s, const char *name, int *ret_file_fd, int *ret_key_fd, struct secret_about *ret_about,
	struct err *err)
{
	cleanup_fd int fd = -1, key = -1;
	struct secret_about about;
	if (open_file(s, name, &fd, err) < 0)
		return -1;
	if (fd < 0)
		return not_found(name, err);
	if (about_of(fd, name, &about, err) < 0)
		return -1;
	int r = about.kind == SECRET_STATIC ? key_open(s->fd, s->path, &key, err) : 0;
	if (r == 0 && about.kind == SECRET_STATIC && key < 0) {
		cleanup_free char *path = key_path(s->path);
		r = err_set(err, ERR_NOT_FOUND, "the key of the secrets, %s, is missing: put its backup back, or set them again", path);
	}
	if (r < 0) {
		secret_about_done(&about);
		return -1;
	}
	*ret_file_fd = fd_steal(&fd);
	*ret_key_fd = fd_steal(&key);
	*ret_about = about;
	return 0;
}

int secret_file_read(int fd, const struct secret_key *key, struct secret_about *ret_about, struct secret_value **ret, struct err *err)
{
	struct buf b;
	int r = read_file(fd, &b, err);
	if (r == 0)
		r = secret_file_open(b.data, b.len, key->bytes, ret_about, ret, err);
	buf_free(&b);
	return r;
}

/* ---- write ---- */

/* Of changes that were killed. Only under the lock. */
static void remove_temporary(struct secret_store *s)
{
	int fd = openat(s->fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *d = fd < 0 ? NULL : fdopendir(fd);
	if (!d) {
		fd_close(&fd);
		return;
	}
	for (struct dirent *e; (e = readdir(d));)
		if (e->d_name[0] == '.' && strlen(e->d_name) > 2)
			unlinkat(s->fd, e->d_name, 0);
	closedir(d);
}

/* The key, made when nothing was ever sealed; never when there are secrets already, which a new one would not open. */
static int public_key(struct secret_store *s, uint8_t ret[32], struct err *err)
{
	cleanup_fd int fd = -1;
	size_t n = 0;
	if (key_open(s->fd, s->path, &fd, err) < 0)
		return -1;
	if (fd < 0) {
		cleanup_free char *path = key_path(s->path);
		if (each_name(s, count_name, &n, err) < 0)
			return -1;
		if (n > 0)
			return err_set(err, ERR_NOT_FOUND,
				"the key of the secrets, %s, is missing, and a new one would not open the %zu that are there; put its backup back, or "
				"remove them (bulkhead secret rm)",
				path, n);
		if (key_make(s->fd, err) < 0 || key_open(s->fd, s->path, &fd, err) < 0)
			return -1;
		if (fd < 0)
			return err_set(err, ERR_CONFLICT, "the key of the secrets, %s, is gone again", path);
	}
	return key_read_public(fd, ret, err);
}

/* Name, times and generation of what takes the old one's place. A damaged old file is no hindrance: the new one replaces it. */
static int new_about(struct secret_store *s, const char *name, struct secret_about *ret, struct err *err)
{
	cleanup_fd int fd = -1;
	struct secret_about old = { 0 };
	size_t n = 0;
	if (open_file(s, name, &fd, err) < 0)
		return -1;
	if (fd < 0 && (each_name(s, count_name, &n, err) < 0 || n >= SECRETS_STORED_MAX))
		return n >= SECRETS_STORED_MAX ? err_set(err, ERR_LIMIT, "there are %zu secrets already, the most that are kept", n) : -1;
	bool replaces = fd >= 0 && about_of(fd, name, &old, NULL) == 0;
	uint64_t now = time_realtime_ns();
	strcpy(ret->name, name); /* open_file has checked it */
	ret->created_ns = replaces ? old.created_ns : now;
	ret->changed_ns = now;
	ret->generation = replaces ? old.generation + 1 : 1;
	secret_about_done(&old);
	return 0;
}

static int write_file(struct secret_store *s, struct secret_about *about, const void *value, size_t len, struct err *err)
{
	uint8_t key[32] = { 0 };
	char file[FILE_NAME_MAX];
	struct buf out;
	if (about->kind == SECRET_STATIC && public_key(s, key, err) < 0)
		return -1;
	buf_init(&out, SECRET_FILE_MAX);
	int r = secret_file_encode(&out, about, value, len, key, err);
	if (r == 0)
		r = fd_replace_file_at(s->fd, file_name(about->name, file), out.data, out.len, 0600, true, err);
	buf_free(&out);
	return r;
}

/* argv NULL: a value. */
static int set(struct secret_store *s, const char *name, char *const argv[], const void *value, size_t len, struct err *err)
{
	struct secret_about about = { .kind = argv ? SECRET_HELPER : SECRET_STATIC };
	cleanup_fd int held = lock(s, err);
	if (held < 0)
		return -1;
	remove_temporary(s);
	if (new_about(s, name, &about, err) < 0)
		return -1;
	/* Borrowed: encoding only reads it. */
	about.helper = (char **)argv;
	return write_file(s, &about, value, len, err) < 0 ? err_wrap(err, "secret %s", name) : 0;
}

int secret_store_set(struct secret_store *s, const char *name, const void *value, size_t len, struct err *err)
{
	return secret_value_check(value, len, err) < 0 ? -1 : set(s, name, NULL, value, len, err);
}

int secret_store_set_helper(struct secret_store *s, const char *name, char *const argv[], struct err *err)
{
	return secret_helper_check(argv, err) < 0 ? -1 : set(s, name, argv, NULL, 0, err);
}

int secret_store_remove(struct secret_store *s, const char *name, struct err *err)
{
	char file[FILE_NAME_MAX];
	if (secret_name_check(name, err) < 0)
		return -1;
	if (s->fd < 0)
		return not_found(name, err);
	cleanup_fd int held = lock(s, err);
	if (held < 0)
		return -1;
	if (unlinkat(s->fd, file_name(name, file), 0) < 0)
		return errno == ENOENT ? not_found(name, err) : err_sys(err, errno, "cannot remove the secret %s", name);
	if (fsync(held) < 0)
		return err_sys(err, errno, "the secret %s is removed, but its folder cannot be synced to disk", name);
	return 0;
}
