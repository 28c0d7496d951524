/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The certificates that servers are verified by. Parsing all of a host's bundle (about 140) takes the library 16 ms, which each
 * start of a sandbox would wait for, and a verification looks at one or two. So the bundle is read and cut into certificates at
 * once, but each is parsed only when a verification asks for an authority of its name.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/x509v3.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/mem.h"
#include "crypto/internal.h"

#define BUNDLE_MAX (16u * 1024 * 1024)
#define CERTIFICATES_MAX 4096u
/* Forward secrecy; CBC only for servers of the years before 2014 that know no better. */
#define CLIENT_CIPHERS "ECDHE+AESGCM:ECDHE+CHACHA20:DHE+AESGCM:DHE+CHACHA20:ECDHE+AES:!aNULL:!eNULL"

struct root {
	uint8_t *der;
	size_t len;
	X509_NAME *subject; /* NULL until first looked at */
};

struct tls_roots {
	SSL_CTX *ctx;
	const struct tls_roots *base;
	struct root *list;
	size_t n;
};

SSL_CTX *tls_roots_context(const struct tls_roots *r)
{
	return r->ctx;
}

/* Steps into (or over) the next element, which must have this tag; NULL-safe chain for a fixed path through a certificate. */
static bool element(const uint8_t **p, const uint8_t **end, int tag, bool enter)
{
	long len;
	int got, class;
	const uint8_t *q = *p;
	int flags = ASN1_get_object(&q, &len, &got, &class, *end - q);
	if ((flags & 0x80) || got != tag)
		return false;
	if (enter)
		*end = q + len;
	*p = enter ? q : q + len;
	return true;
}

/* RFC 5280 section 4.1: the subject is the sixth element of the first sequence; the version before it is optional. */
static X509_NAME *parse_subject(const struct root *r)
{
	const uint8_t *p = r->der, *end = r->der + r->len;
	if (!element(&p, &end, V_ASN1_SEQUENCE, true) || !element(&p, &end, V_ASN1_SEQUENCE, true))
		return NULL;
	const uint8_t *start = p;
	if (!element(&p, &end, 0, false)) /* [0] version */
		p = start;
	if (!element(&p, &end, V_ASN1_INTEGER, false) || !element(&p, &end, V_ASN1_SEQUENCE, false) ||
		!element(&p, &end, V_ASN1_SEQUENCE, false) || !element(&p, &end, V_ASN1_SEQUENCE, false))
		return NULL;
	return d2i_X509_NAME(NULL, &p, end - p);
}

/* Nothing is taken for a certificate because of its name only: it is parsed here, and verified with like any other. */
static X509 *load(const struct root *r, X509_STORE *store)
{
	const uint8_t *p = r->der;
	X509 *x = d2i_X509(NULL, &p, (long)r->len);
	if (x && !X509_STORE_add_cert(store, x)) {
		X509_free(x);
		x = NULL;
	}
	return x;
}

/* All of that name: keys change under one name. The store keeps them; the last is returned, borrowed. */
static X509 *load_named(struct tls_roots *r, X509_STORE *store, const X509_NAME *name)
{
	X509 *found = NULL;
	for (size_t i = 0; i < r->n; i++) {
		if (!r->list[i].subject)
			r->list[i].subject = parse_subject(&r->list[i]);
		if (!r->list[i].subject || X509_NAME_cmp(r->list[i].subject, name) != 0)
			continue;
		X509 *x = load(&r->list[i], store);
		if (!x)
			continue;
		X509_free(x); /* the store's reference stays */
		found = x;
	}
	return found;
}

/* The store asks here only for names that it holds no certificate of. */
static int look_up(X509_LOOKUP *lookup, X509_LOOKUP_TYPE type, const X509_NAME *name, X509_OBJECT *ret)
{
	if (type != X509_LU_X509)
		return 0;
	X509 *found = NULL;
	for (struct tls_roots *r = X509_LOOKUP_get_method_data(lookup); r; r = (struct tls_roots *)r->base) {
		X509 *x = load_named(r, X509_LOOKUP_get_store(lookup), name);
		found = x ? x : found;
	}
	ERR_clear_error();
	if (!found || !X509_OBJECT_set1_X509(ret, found))
		return 0;
	X509_free(found); /* the caller takes a reference of its own and expects a borrowed one here, as from the library's look-ups */
	return 1;
}

static X509_LOOKUP_METHOD *lookup_method(void)
{
	static X509_LOOKUP_METHOD *method;
	if (!method) {
		method = X509_LOOKUP_meth_new("certificates in memory");
		if (method)
			X509_LOOKUP_meth_set_get_by_subject(method, look_up);
	}
	return method;
}

static int add(struct tls_roots *r, uint8_t *der, long len, struct err *err)
{
	if (r->n == CERTIFICATES_MAX)
		return err_set(err, ERR_LIMIT, "more than %u certificates", CERTIFICATES_MAX);
	if ((r->n & (r->n - 1)) == 0) /* doubled whenever it is full: at powers of two */
		r->list = mem_grow_array(r->list, r->n ? r->n * 2 : 1, sizeof(*r->list));
	r->list[r->n++] = (struct root){ .der = der, .len = (size_t)len };
	return 0;
}

/* The certificates among the blocks of a PEM text. What stands between blocks is remark. */
static int add_pem(struct tls_roots *r, const char *text, size_t len, struct err *err)
{
	BIO *bio = BIO_new_mem_buf(text, (int)len);
	if (!bio)
		return crypto_err(err, "cannot read certificates");
	int status = 0;
	char *name = NULL, *header = NULL;
	uint8_t *der = NULL;
	long der_len = 0;
	while (status == 0 && PEM_read_bio(bio, &name, &header, &der, &der_len)) {
		bool wanted = str_eq(name, PEM_STRING_X509) || str_eq(name, PEM_STRING_X509_OLD);
		if (wanted)
			status = add(r, der, der_len, err);
		if (!wanted || status < 0)
			OPENSSL_free(der);
		OPENSSL_free(name);
		OPENSSL_free(header);
	}
	BIO_free(bio);
	bool broken = status == 0 && ERR_GET_REASON(ERR_peek_last_error()) != PEM_R_NO_START_LINE;
	ERR_clear_error();
	return broken ? err_set(err, ERR_INVALID, "certificate number %zu in it cannot be read", r->n + 1) : status;
}

static int read_file(struct tls_roots *r, int dir, const char *path, struct err *err)
{
	char *text = NULL;
	size_t len = 0;
	if (fd_read_file_at(dir, path, BUNDLE_MAX, &text, &len, err) < 0)
		return -1;
	int status = add_pem(r, text, len, err);
	mem_free(text);
	return status < 0 ? err_wrap(err, "the file of certificates %s", path) : 0;
}

/* As the library names them for its own look-ups: eight hexadecimal digits, a dot, a number. */
static bool is_hashed_name(const char *name)
{
	const char digits[] = "0123456789";
	return strspn(name, "0123456789abcdef") == 8 && name[8] == '.' && name[9] && name[9 + strspn(name + 9, digits)] == '\0';
}

static int read_hashed(struct tls_roots *r, const char *path, struct err *err)
{
	DIR *dir = opendir(path);
	if (!dir)
		return err_sys(err, errno, "cannot open the folder of certificates %s", path);
	int status = 0;
	for (struct dirent *e; status == 0 && (e = readdir(dir));)
		if (is_hashed_name(e->d_name))
			status = read_file(r, dirfd(dir), e->d_name, err);
	closedir(dir);
	return status < 0 ? err_wrap(err, "the folder of certificates %s", path) : 0;
}

/* A colon-separated list of folders, as in $SSL_CERT_DIR. */
static int read_folders(struct tls_roots *r, const char *list, struct err *err)
{
	int status = 0;
	cleanup_free char *copy = mem_strdup(list);
	char *rest = copy;
	for (char *path; status == 0 && (path = strsep(&rest, ":"));)
		if (*path && access(path, F_OK) == 0)
			status = read_hashed(r, path, err);
	return status;
}

static int read_named(struct tls_roots *r, const char *file, const char *folders, struct err *err)
{
	if (file && *file && read_file(r, AT_FDCWD, file, err) < 0)
		return -1;
	if (folders && *folders && read_folders(r, folders, err) < 0)
		return -1;
	if (r->n == 0)
		return err_set(err, ERR_NOT_FOUND,
			"no certificate of an authority is in $SSL_CERT_FILE (%s) or $SSL_CERT_DIR (%s): servers cannot be verified",
			file && *file ? file : "not set", folders && *folders ? folders : "not set");
	return 0;
}

/* One file where there is one: a folder takes 150 opens for the same. The library's own place comes first; the others are those
 * of the distributions, for a program that was built on another one. */
static int read_host(struct tls_roots *r, struct err *err)
{
	const char *const files[] = { X509_get_default_cert_file(), "/etc/ssl/certs/ca-certificates.crt",
		"/etc/pki/tls/certs/ca-bundle.crt", "/etc/ssl/ca-bundle.pem", "/etc/ssl/cert.pem" };
	for (size_t i = 0; i < ARRAY_LEN(files) && r->n == 0; i++)
		if (access(files[i], F_OK) == 0 && read_file(r, AT_FDCWD, files[i], err) < 0)
			return -1;
	if (r->n == 0 && read_folders(r, X509_get_default_cert_dir(), err) < 0)
		return -1;
	if (r->n == 0)
		return err_set(err, ERR_NOT_FOUND, "no certificate of an authority was found in %s, %s or the usual places: "
			"servers cannot be verified; install the package ca-certificates or set SSL_CERT_FILE", files[0], X509_get_default_cert_dir());
	return 0;
}

static int set_up(struct tls_roots *r, struct err *err)
{
	r->ctx = tls_context_new(TLS_client_method(), CLIENT_CIPHERS, err);
	if (!r->ctx)
		return -1;
	X509_LOOKUP *lookup = lookup_method() ? X509_STORE_add_lookup(SSL_CTX_get_cert_store(r->ctx), lookup_method()) : NULL;
	if (!lookup || !X509_LOOKUP_set_method_data(lookup, r))
		return crypto_err(err, "cannot prepare the verification of servers");
	SSL_CTX_set_verify(r->ctx, SSL_VERIFY_PEER, tls_verify_callback);
	SSL_CTX_set_verify_depth(r->ctx, 10);
	return 0;
}

struct tls_roots *tls_roots_read(struct err *err)
{
	struct tls_roots *r = mem_alloc(sizeof(*r));
	const char *file = getenv("SSL_CERT_FILE"), *folders = getenv("SSL_CERT_DIR");
	bool named = (file && *file) || (folders && *folders);
	if (set_up(r, err) < 0 || (named ? read_named(r, file, folders, err) : read_host(r, err)) < 0)
		return tls_roots_free(r);
	return r;
}

/* One certificate to the last byte, with a key that the library knows. */
static bool is_whole(const struct root *root)
{
	const uint8_t *p = root->der;
	X509 *x = d2i_X509(NULL, &p, (long)root->len);
	bool whole = x && p == root->der + root->len && X509_get0_pubkey(x);
	X509_free(x);
	ERR_clear_error();
	return whole;
}

/* The block that must begin at p. */
static int add_block(struct tls_roots *r, const char *p, size_t left, size_t *ret_len, struct err *err)
{
	static const char begin[] = "-----BEGIN CERTIFICATE-----", end[] = "-----END CERTIFICATE-----";
	bool begins = left >= sizeof(begin) && memcmp(p, begin, sizeof(begin) - 1) == 0;
	const char *last = begins ? memmem(p, left, end, sizeof(end) - 1) : NULL;
	if (!last)
		return err_set(err, ERR_INVALID, "there is something besides whole \"%s\" blocks in it", begin);
	size_t len = (size_t)(last - p) + sizeof(end) - 1, before = r->n;
	if (add_pem(r, p, len, err) < 0)
		return -1;
	if (r->n != before + 1 || !is_whole(&r->list[before]))
		return err_set(err, ERR_INVALID, "certificate number %zu in it cannot be read", before + 1);
	*ret_len = len;
	return 0;
}

static size_t skip_space(const char *text, size_t len, size_t at)
{
	while (at < len && strchr(" \t\r\n", text[at]))
		at++;
	return at;
}

/* White space and whole certificates, nothing else: a key that was pasted along must not be carried around unnoticed. */
static int parse_strictly(struct tls_roots *r, const char *pem, size_t len, struct err *err)
{
	if (len > BUNDLE_MAX || (len && memchr(pem, 0, len)))
		return err_set(err, ERR_INVALID, "it is too large or no text");
	for (size_t at = 0, block = 0; (at = skip_space(pem, len, at)) < len; at += block)
		if (add_block(r, pem + at, len - at, &block, err) < 0)
			return -1;
	return r->n ? 0 : err_set(err, ERR_INVALID, "there is no certificate in it");
}

struct tls_roots *tls_roots_with(const struct tls_roots *base, const char *pem, size_t len, struct err *err)
{
	struct tls_roots *r = mem_alloc(sizeof(*r));
	r->base = base;
	if (set_up(r, err) < 0 || parse_strictly(r, pem, len, err) < 0)
		return tls_roots_free(r);
	return r;
}

int tls_check_pem(const char *pem, size_t len, struct err *err)
{
	struct tls_roots *r = mem_alloc(sizeof(*r));
	int status = parse_strictly(r, pem, len, err);
	tls_roots_free(r);
	return status;
}

struct tls_roots *tls_roots_free(struct tls_roots *r)
{
	if (!r)
		return NULL;
	SSL_CTX_free(r->ctx);
	for (size_t i = 0; i < r->n; i++) {
		OPENSSL_free(r->list[i].der);
		X509_NAME_free(r->list[i].subject);
	}
	mem_free(r->list);
	return mem_free(r);
}
