/* SPDX-License-Identifier: Apache-2.0 */
#include "crypto/mint.h"

#include <openssl/err.h>
#include <openssl/pem.h>
#include <string.h>

#include "base/mem.h"
#include "crypto/internal.h"

#define RSA_BITS 2048u

struct leaf {
	char *host;
	X509 *x509;
	uint64_t used; /* the mint's clock at the last use */
	enum mint_key key;
};

struct mint {
	EVP_PKEY *authority_key;
	X509 *authority;
	char *pem;
	/* One for all leaves of a kind: they live and die together, in one process. RSA's is made when first asked for. */
	EVP_PKEY *keys[2];
	struct leaf leaves[MINT_LEAVES_MAX];
	unsigned n_leaves;
	uint64_t clock;
};

static char *pem_of(X509 *x)
{
	BIO *bio = BIO_new(BIO_s_mem());
	char *data = NULL;
	char *pem = NULL;
	if (bio && PEM_write_bio_X509(bio, x)) {
		long len = BIO_get_mem_data(bio, &data);
		pem = mem_strndup(data, (size_t)len);
	}
	BIO_free(bio);
	return pem;
}

struct mint *mint_new(const char *sandbox_id, struct err *err)
{
	struct mint *m = mem_alloc(sizeof(*m));
	m->authority_key = EVP_EC_gen("P-256");
	m->keys[MINT_ECDSA] = EVP_EC_gen("P-256");
	if (!m->authority_key || !m->keys[MINT_ECDSA]) {
		crypto_err(err, "cannot make the keys of the sandbox's certificate authority");
		return mint_free(m);
	}
	m->authority = leaf_make_authority(m->authority_key, sandbox_id, err);
	if (!m->authority)
		return mint_free(m);
	m->pem = pem_of(m->authority);
	if (!m->pem) {
		crypto_err(err, "cannot write down the sandbox's certificate authority");
		return mint_free(m);
	}
	return m;
}

static void leaf_done(struct leaf *l)
{
	X509_free(l->x509);
	mem_free(l->host);
	*l = (struct leaf){ 0 };
}

struct mint *mint_free(struct mint *m)
{
	if (!m)
		return NULL;
	for (unsigned i = 0; i < m->n_leaves; i++)
		leaf_done(&m->leaves[i]);
	EVP_PKEY_free(m->keys[MINT_ECDSA]);
	EVP_PKEY_free(m->keys[MINT_RSA]);
	EVP_PKEY_free(m->authority_key);
	X509_free(m->authority);
	mem_free(m->pem);
	return mem_free(m);
}

const char *mint_ca_pem(const struct mint *m)
{
	return m->pem;
}

static EVP_PKEY *key_of(struct mint *m, enum mint_key kind, struct err *err)
{
	if (!m->keys[kind])
		m->keys[kind] = EVP_RSA_gen(RSA_BITS);
	if (!m->keys[kind])
		crypto_err(err, "cannot make an RSA key for the sandbox");
	return m->keys[kind];
}

static struct leaf *find(struct mint *m, const char *host, enum mint_key kind)
{
	for (unsigned i = 0; i < m->n_leaves; i++)
		if (m->leaves[i].key == kind && str_eq(m->leaves[i].host, host))
			return &m->leaves[i];
	return NULL;
}

/* A free place, or that of the one not used for longest. */
static struct leaf *place(struct mint *m)
{
	if (m->n_leaves < MINT_LEAVES_MAX)
		return &m->leaves[m->n_leaves++];
	struct leaf *oldest = &m->leaves[0];
	for (unsigned i = 1; i < m->n_leaves; i++)
		if (m->leaves[i].used < oldest->used)
			oldest = &m->leaves[i];
	leaf_done(oldest);
	return oldest;
}

/* Nobody would accept what it signs. */
static int check_age(const struct mint *m, struct err *err)
{
	if (X509_cmp_current_time(X509_get0_notAfter(m->authority)) > 0)
		return 0;
	return err_set(err, ERR_UNSUPPORTED, "the sandbox's certificate authority is %d days old and no longer valid: "
		"start a new sandbox", MINT_DAYS);
}

static struct leaf *make(struct mint *m, const struct host *host, enum mint_key kind, EVP_PKEY *key, struct err *err)
{
	X509 *x = leaf_make(m->authority, m->authority_key, key, kind == MINT_RSA, host, err);
	if (!x)
		return NULL;
	struct leaf *l = place(m);
	*l = (struct leaf){ .host = mem_strdup(host->text), .x509 = x, .key = kind };
	return l;
}

int mint_leaf(struct mint *m, const char *host, enum mint_key kind, void **ret_x509, void **ret_pkey, struct err *err)
{
	struct host parsed;
	if (host_parse(host, &parsed, err) < 0 || check_age(m, err) < 0)
		return -1;
	EVP_PKEY *key = key_of(m, kind, err);
	if (!key)
		return -1;
	struct leaf *l = find(m, parsed.text, kind);
	if (!l)
		l = make(m, &parsed, kind, key, err);
	if (!l)
		return -1;
	l->used = ++m->clock;
	*ret_x509 = l->x509;
	*ret_pkey = key;
	return 0;
}
