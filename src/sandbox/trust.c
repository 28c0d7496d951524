/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which files: every bundle that the host has, with the authority behind its certificates; the authority alone, by name and by OpenSSL's
 * hash; Java's keystore and NSS's database where the host has Java and NSS.
 *
 * Distributions lay these out with links (/etc/ssl/certs is a link on Fedora, the bundle is one on Arch). A file goes where the host's own really is
 * when that is in a folder that the box shows, so that all links to it keep leading there; else in the place of the link.
 */
#include "sandbox/trust.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/mem.h"
#include "sandbox/trust-internal.h"

#define HOST_FILE_MAX (SPEC_FILE_SIZE_MAX - 64u * 1024u)
#define CERTS "etc/ssl/certs"
#define BUNDLE CERTS "/ca-certificates.crt"

const struct trust_variable trust_variables[] = {
	/* Node.js and Deno have roots compiled in; this one comes in addition. */
	{ "NODE_EXTRA_CA_CERTS", "/" CERTS "/" TRUST_NAME ".pem" },
	/* Python packages bring a bundle, in place of which this one is taken: httpx; requests, and with it pip and the AWS libraries; gRPC. */
	{ "SSL_CERT_FILE", "/" BUNDLE },
	{ "REQUESTS_CA_BUNDLE", "/" BUNDLE },
	{ "GRPC_DEFAULT_SSL_ROOTS_FILE_PATH", "/" BUNDLE },
	{ NULL, NULL },
};

struct store {
	struct spec *spec;
	int *fds;
	int root;
	char root_path[PATH_MAX];
	const char *ca_pem;
	struct trust_cert ca;
};

/* ---- places ---- */

static int path_of(int fd, char ret[PATH_MAX])
{
	char link[40];
	snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
	ssize_t n = readlink(link, ret, PATH_MAX - 1);
	if (n <= 0)
		return -errno;
	ret[n] = '\0';
	return 0;
}

/* Where the host's `path` really is, without a slash in front. -ENOENT and the like when it isn't. */
static int real_path(const struct store *s, const char *path, char ret[PATH_MAX])
{
	char absolute[PATH_MAX];
	size_t root = str_eq(s->root_path, "/") ? 0 : strlen(s->root_path);
	cleanup_fd int fd = path_open_in_root(s->root, path, O_PATH, 0);
	int r = fd < 0 ? fd : path_of(fd, absolute);
	if (r < 0)
		return r;
	if (strncmp(absolute, s->root_path, root) != 0 || absolute[root] != '/')
		return -ENOENT;
	snprintf(ret, PATH_MAX, "%s", absolute + root + 1);
	return 0;
}

static bool is_shown(const char *path)
{
	static const char *const folders[] = { CERTS "/", "etc/pki/tls/certs/", "etc/pki/ca-trust/extracted/" };
	for (size_t i = 0; i < ARRAY_LEN(folders); i++)
		if (str_starts(path, folders[i]))
			return true;
	return false;
}

/* Where a file with the name `path` goes: the host's real file, its real folder, or the name as it is. NULL: nowhere that the box shows. */
static char *place_of(const struct store *s, const char *path)
{
	char real[PATH_MAX], folder[PATH_MAX];
	const char *base = strrchr(path, '/') + 1;
	if (real_path(s, path, real) == 0 && is_shown(real))
		return mem_strdup(real);
	snprintf(folder, sizeof(folder), "%.*s", (int)(base - path - 1), path);
	cleanup_free char *in_folder = real_path(s, folder, real) == 0 ? mem_printf("%s/%s", real, base) : NULL;
	if (in_folder && is_shown(in_folder))
		return mem_steal(&in_folder);
	return is_shown(path) ? mem_strdup(path) : NULL;
}

static bool exists(const struct store *s, const char *path)
{
	cleanup_fd int fd = path_open_in_root(s->root, path, O_PATH, 0);
	return fd >= 0;
}

/* ---- files ---- */

static int to_memory(const void *data, size_t len, struct err *err)
{
	cleanup_fd int fd = memfd_create("bulkhead-trust", MFD_CLOEXEC);
	int r = fd < 0 ? -errno : fd_write_full(fd, data, len);
	return r < 0 ? err_sys(err, -r, "can't make the sandbox's certificates") : fd_steal(&fd);
}

static bool is_placed(const struct store *s, const char *place)
{
	for (size_t i = 0; i < s->spec->n_files; i++)
		if (str_eq(s->spec->files[i], place))
			return true;
	return false;
}

/* Takes the place's name. */
static int add(struct store *s, char *place, const void *data, size_t len, struct err *err)
{
	struct spec *spec = s->spec;
	int fd = spec->n_files == SPEC_FILES_MAX ? err_set(err, ERR_LIMIT, "the sandbox's certificates need more than %u files", SPEC_FILES_MAX)
						  : to_memory(data, len, err);
	if (fd < 0) {
		mem_free(place);
		return -1;
	}
	spec->files = mem_grow_array(spec->files, spec->n_files + 1, sizeof(*spec->files));
	s->fds[spec->n_files] = fd;
	spec->files[spec->n_files++] = place;
	return 0;
}

/* A file of the host's, which its administrator keeps. Empty when there is none. */
static int read_host(const struct store *s, const char *path, char **ret, size_t *ret_len, struct err *err)
{
	struct stat st;
	cleanup_fd int fd = path_open_in_root(s->root, path, O_RDONLY | O_NONBLOCK, 0);
	*ret = NULL;
	*ret_len = 0;
	if (fd == -ENOENT || fd == -ENOTDIR || fd == -ELOOP)
		return 0;
	if (fd < 0 || fstat(fd, &st) < 0)
		return err_sys(err, fd < 0 ? -fd : errno, "can't read the host's certificates in /%s", path);
	if (!S_ISREG(st.st_mode) || st.st_size > (off_t)HOST_FILE_MAX)
		return err_set(err, ERR_LIMIT, "the host's certificates in /%s are not a regular file of at most %u MiB", path, HOST_FILE_MAX >> 20);
	char *data = mem_alloc((size_t)st.st_size + 1);
	int r = fd_read_full(fd, data, (size_t)st.st_size);
	if (r < 0) {
		mem_free(data);
		return err_sys(err, -r, "can't read the host's certificates in /%s", path);
	}
	*ret = data;
	*ret_len = (size_t)st.st_size;
	return 0;
}

/* ---- what common clients look for ---- */

/* The host's bundle, whatever it is called there; BUNDLE when it has none. */
static const char *host_bundle(const struct store *s)
{
	static const char *const names[] = { BUNDLE, "etc/pki/tls/certs/ca-bundle.crt", "etc/pki/ca-trust/extracted/pem/tls-ca-bundle.pem", "etc/ssl/ca-bundle.pem",
		"etc/ssl/cert.pem" };
	for (size_t i = 0; i < ARRAY_LEN(names); i++)
		if (exists(s, names[i]))
			return names[i];
	return BUNDLE;
}

/* What the host has as `source`, at `name`. */
static int add_bundle(struct store *s, const char *source, const char *name, struct err *err)
{
	cleanup_free char *host = NULL, *place = place_of(s, name);
	size_t len;
	struct buf b;
	if (!place || is_placed(s, place))
		return 0;
	if (read_host(s, source, &host, &len, err) < 0)
		return -1;
	buf_init(&b, SPEC_FILE_SIZE_MAX);
	int r = buf_append(&b, host, len);
	if (len > 0 && host[len - 1] != '\n')
		r |= buf_append(&b, "\n", 1);
	r |= buf_append(&b, s->ca_pem, strlen(s->ca_pem));
	r = r < 0 ? err_set(err, ERR_MEMORY, "out of memory for certificates") : add(s, mem_steal(&place), b.data, b.len, err);
	buf_free(&b);
	return r;
}

static int add_bundles(struct store *s, struct err *err)
{
	static const char *const names[] = { "etc/pki/tls/certs/ca-bundle.crt", "etc/pki/tls/certs/ca-bundle.trust.crt",
		"etc/pki/ca-trust/extracted/pem/tls-ca-bundle.pem", CERTS "/ca-bundle.crt" };
	if (add_bundle(s, host_bundle(s), BUNDLE, err) < 0) /* also where the host has none of this name: the variables name it */
		return -1;
	for (size_t i = 0; i < ARRAY_LEN(names); i++)
		if (exists(s, names[i]) && add_bundle(s, names[i], names[i], err) < 0)
			return -1;
	return 0;
}

/* The authority by itself: under a name, and under the first free number of its hash. */
static int add_by_hash(struct store *s, const char *folder, struct err *err)
{
	uint32_t hash;
	unsigned n = 0;
	char name[64];
	snprintf(name, sizeof(name), "%s/" TRUST_NAME ".pem", folder);
	char *place = place_of(s, name);
	if (!place || is_placed(s, place)) {
		mem_free(place);
		return 0;
	}
	if (add(s, place, s->ca_pem, strlen(s->ca_pem), err) < 0 || trust_cert_hash(&s->ca, &hash, err) < 0)
		return -1;
	do
		snprintf(name, sizeof(name), "%s/%08x.%u", folder, hash, n++);
	while (exists(s, name));
	place = place_of(s, name);
	return place ? add(s, place, s->ca_pem, strlen(s->ca_pem), err) : 0;
}

static int add_hashes(struct store *s, struct err *err)
{
	static const char fedora[] = "etc/pki/tls/certs";
	if (add_by_hash(s, CERTS, err) < 0)
		return -1;
	return exists(s, fedora) ? add_by_hash(s, fedora, err) : 0;
}

static int add_keystore(struct store *s, const char *name, struct err *err)
{
	cleanup_free char *place = place_of(s, name), *host = NULL, *bundle = NULL;
	size_t len, bundle_len;
	struct buf b;
	if (!place || is_placed(s, place))
		return 0;
	if (read_host(s, name, &host, &len, err) < 0 || read_host(s, host_bundle(s), &bundle, &bundle_len, err) < 0)
		return -1;
	buf_init(&b, SPEC_FILE_SIZE_MAX);
	int r = trust_java(&b, &s->ca, host ? host : "", len, bundle ? bundle : "") < 0 ? err_set(err, ERR_MEMORY, "out of memory for Java's certificates")
											: add(s, mem_steal(&place), b.data, b.len, err);
	buf_free(&b);
	return r;
}

/* Debian's keystore, which is also made where there is some Java without it; Fedora's. */
static int add_java(struct store *s, struct err *err)
{
	static const char debian[] = CERTS "/java/cacerts", fedora[] = "etc/pki/ca-trust/extracted/java/cacerts";
	if ((exists(s, debian) || exists(s, "usr/lib/jvm")) && add_keystore(s, debian, err) < 0)
		return -1;
	return exists(s, fedora) ? add_keystore(s, fedora, err) : 0;
}

static int add_nss(struct store *s, struct err *err)
{
	static const char *const libraries[] = { "usr/lib/x86_64-linux-gnu/libnss3.so", "usr/lib/aarch64-linux-gnu/libnss3.so", "usr/lib64/libnss3.so",
		"usr/lib/libnss3.so" };
	bool found = false;
	struct buf certs, keys;
	for (size_t i = 0; !found && i < ARRAY_LEN(libraries); i++)
		found = exists(s, libraries[i]);
	if (!found)
		return 0;
	buf_init(&certs, SPEC_FILE_SIZE_MAX);
	buf_init(&keys, SPEC_FILE_SIZE_MAX);
	int r = trust_nss_certs(&certs, &s->ca) < 0 || trust_nss_keys(&keys) < 0
			? err_set(err, ERR_PROTOCOL, "the sandbox's own certificate is too large for an NSS database")
			: add(s, mem_strdup("home/.pki/nssdb/cert9.db"), certs.data, certs.len, err);
	if (r == 0)
		r = add(s, mem_strdup("home/.pki/nssdb/key4.db"), keys.data, keys.len, err);
	buf_free(&certs);
	buf_free(&keys);
	return r;
}

int trust_add(struct spec *spec, int fds[SPEC_FILES_MAX], const char *ca_pem, int host_root, struct err *err)
{
	struct store s = { .spec = spec, .fds = fds, .root = host_root, .ca_pem = ca_pem };
	for (size_t i = 0; i < SPEC_FILES_MAX; i++)
		fds[i] = -1;
	int r = path_of(host_root, s.root_path);
	if (r < 0)
		return err_sys(err, -r, "can't find the host's certificates");
	if (trust_cert_parse(&s.ca, ca_pem, err) < 0)
		return -1;
	if (add_bundles(&s, err) == 0 && add_hashes(&s, err) == 0 && add_java(&s, err) == 0 && add_nss(&s, err) == 0)
		return 0;
	for (size_t i = 0; i < SPEC_FILES_MAX; i++)
		fd_close(&fds[i]);
	return -1;
}
