/* SPDX-License-Identifier: Apache-2.0 */
/* The key that secrets are sealed to: both halves in one file of 64 bytes. Whoever may read it and the folder can open every secret. */
#include "secrets/key.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <sodium.h>

#include "base/fd.h"
#include "base/mem.h"
#include "secrets/value.h"

static const char *named_key(void)
{
	const char *v = secure_getenv(SECRETS_KEY_ENV);
	return v && *v ? v : NULL;
}

char *key_path(const char *folder_path)
{
	const char *named = named_key();
	return named ? mem_strdup(named) : path_join(folder_path, SECRETS_KEY_FILE);
}

int private_check(int fd, bool folder, const char *path, struct err *err)
{
	struct stat st;
	if (fstat(fd, &st) < 0)
		return err_sys(err, errno, "cannot look at %s", path);
	if (folder ? !S_ISDIR(st.st_mode) : !S_ISREG(st.st_mode))
		return err_set(err, ERR_CORRUPT, "%s is not a %s", path, folder ? "folder" : "regular file");
	if (st.st_uid != geteuid())
		return err_set(err, ERR_DENIED, "%s belongs to user %u, not to you (user %u); secrets are only taken from files of your own", path,
			(unsigned)st.st_uid, (unsigned)geteuid());
	if (st.st_mode & 077)
		return err_set(err, ERR_DENIED, "others may use %s (mode %03o), and secrets in it may be known to them; run: chmod %s %s", path,
			(unsigned)(st.st_mode & 0777), folder ? "700" : "600", path);
	return 0;
}

int key_open(int folder_fd, const char *folder_path, int *ret_fd, struct err *err)
{
	const char *named = named_key();
	cleanup_free char *path = key_path(folder_path);
	if (named && named[0] != '/')
		return err_set(err, ERR_USAGE, "$" SECRETS_KEY_ENV " must be an absolute path, and is \"%.200s\"", named);
	cleanup_fd int fd = openat(folder_fd, named ? named : SECRETS_KEY_FILE, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY);
	if (fd < 0 && errno == ENOENT) {
		*ret_fd = -1;
		return 0;
	}
	if (fd < 0)
		return err_sys(err, errno, "cannot open the key of the secrets, %s%s", path, errno == ELOOP ? " (it must not be a link)" : "");
	struct stat st;
	if (private_check(fd, false, path, err) < 0)
		return -1;
	if (fstat(fd, &st) < 0 || st.st_size != (off_t)SECRET_KEY_SIZE)
		return err_set(err, ERR_CORRUPT, "the key of the secrets, %s, is damaged: it has not %u bytes; put its backup back", path, SECRET_KEY_SIZE);
	*ret_fd = fd_steal(&fd);
	return 0;
}

int key_make(int folder_fd, struct err *err)
{
	const char *named = named_key();
	struct secret_value *pair = secret_value_alloc(SECRET_KEY_SIZE, err);
	if (!pair)
		return -1;
	uint8_t *bytes = secret_value_fill(pair);
	crypto_box_keypair(bytes + crypto_box_SECRETKEYBYTES, bytes);
	int r = fd_replace_file_at(folder_fd, named ? named : SECRETS_KEY_FILE, bytes, SECRET_KEY_SIZE, 0600, true, err);
	secret_value_free(pair);
	return r < 0 ? err_wrap(err, "cannot make the key of the secrets") : 0;
}

int key_read_public(int fd, uint8_t ret[32], struct err *err)
{
	ssize_t n = pread(fd, ret, crypto_box_PUBLICKEYBYTES, crypto_box_SECRETKEYBYTES);
	if (n != (ssize_t)crypto_box_PUBLICKEYBYTES)
		return err_sys(err, n < 0 ? errno : EIO, "cannot read the key of the secrets");
	return 0;
}

/* ---- for the process that opens secrets ---- */

int secret_key_read(int fd, struct secret_key *ret, struct err *err)
{
	if (sodium_ready(err) < 0)
		return -1;
	uint8_t *bytes = sodium_malloc(SECRET_KEY_SIZE);
	if (!bytes)
		return err_set(err, ERR_MEMORY, "no memory for the key of the secrets");
	ssize_t n = pread(fd, bytes, SECRET_KEY_SIZE, 0);
	if (n != (ssize_t)SECRET_KEY_SIZE) {
		int e = n < 0 ? errno : EIO;
		sodium_free(bytes);
		return err_sys(err, e, "cannot read the key of the secrets");
	}
	sodium_mprotect_readonly(bytes);
	ret->bytes = bytes;
	return 0;
}

void secret_key_done(struct secret_key *k)
{
	sodium_free(k->bytes);
	k->bytes = NULL;
}
