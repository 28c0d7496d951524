/* SPDX-License-Identifier: Apache-2.0 */
#include "crypto/digest.h"

#include <openssl/err.h>
#include <openssl/evp.h>

#include "base/mem.h"

struct digest {
	EVP_MD_CTX *ctx;
	bool failed;
};

static const struct {
	const char *name;
	size_t size;
} kinds[DIGEST_KINDS] = {
	[DIGEST_SHA256] = { "SHA2-256", 32 },
	[DIGEST_SHA384] = { "SHA2-384", 48 },
	[DIGEST_SHA512] = { "SHA2-512", 64 },
	[DIGEST_SHA1] = { "SHA1", 20 },
	[DIGEST_MD5] = { "MD5", 16 },
};

size_t digest_size(enum digest_kind kind)
{
	return kinds[kind].size;
}

/* Looked up once: the library's own look-up by name takes longer than hashing a small body. */
static const EVP_MD *method(enum digest_kind kind)
{
	static EVP_MD *methods[DIGEST_KINDS];
	if (!methods[kind])
		methods[kind] = EVP_MD_fetch(NULL, kinds[kind].name, NULL);
	return methods[kind];
}

struct digest *digest_new(enum digest_kind kind)
{
	struct digest *d = mem_alloc(sizeof(*d));
	const EVP_MD *md = method(kind);
	d->ctx = EVP_MD_CTX_new();
	if (md && d->ctx && EVP_DigestInit_ex2(d->ctx, md, NULL) == 1)
		return d;
	ERR_clear_error();
	return digest_free(d);
}

void digest_update(struct digest *d, const void *p, size_t len)
{
	if (EVP_DigestUpdate(d->ctx, p, len) != 1)
		d->failed = true;
}

/* A hash that went wrong must equal no pinned one: all zero, which no known input has. */
void digest_final(struct digest *d, uint8_t ret[DIGEST_SIZE_MAX])
{
	unsigned len = 0;
	memset(ret, 0, DIGEST_SIZE_MAX);
	if (EVP_DigestFinal_ex(d->ctx, ret, &len) != 1 || d->failed)
		memset(ret, 0, DIGEST_SIZE_MAX);
	ERR_clear_error();
}

struct digest *digest_free(struct digest *d)
{
	if (!d)
		return NULL;
	EVP_MD_CTX_free(d->ctx);
	return mem_free(d);
}
