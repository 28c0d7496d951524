/* SPDX-License-Identifier: Apache-2.0 */
/* What the server side chooses once it has read the client's hello: the certificate and the application protocol. */
#include <openssl/err.h>
#include <openssl/ssl.h>

#include "crypto/internal.h"

#define GROUPS_MAX 128         /* more than exist: whoever sends such a list gets RSA */
#define SIG_ECDSA 3            /* RFC 5246 section 7.4.1.4.1 */
#define HASH_SHA256 4
#define HASH_SHA512 6

static bool offers_ecdsa_cipher(SSL *ssl)
{
	STACK_OF(SSL_CIPHER) *list = SSL_get_client_ciphers(ssl);
	for (int i = 0; i < sk_SSL_CIPHER_num(list); i++)
		if (SSL_CIPHER_get_auth_nid(sk_SSL_CIPHER_value(list, i)) == NID_auth_ecdsa)
			return true;
	return false;
}

/* Before TLS 1.3 the groups also say which curves a certificate may use; no list means any. */
static bool offers_p256(SSL *ssl)
{
	int groups[GROUPS_MAX];
	int n = SSL_get1_groups(ssl, NULL);
	if (n <= 0 || n > GROUPS_MAX)
		return n <= 0;
	SSL_get1_groups(ssl, groups);
	for (int i = 0; i < n; i++)
		if (groups[i] == NID_X9_62_prime256v1)
			return true;
	return false;
}

/* TLS 1.3 ties the curve to the hash: only ecdsa_secp256r1_sha256 fits our key. */
static bool offers_ecdsa_signature(SSL *ssl, unsigned char hash_max)
{
	int n = SSL_get_sigalgs(ssl, -1, NULL, NULL, NULL, NULL, NULL);
	for (int i = 0; i < n; i++) {
		unsigned char sig = 0, hash = 0;
		if (SSL_get_sigalgs(ssl, i, NULL, NULL, NULL, &sig, &hash) > 0 && sig == SIG_ECDSA && hash >= HASH_SHA256 &&
			hash <= hash_max)
			return true;
	}
	return false;
}

static bool takes_ecdsa(SSL *ssl)
{
	if (SSL_version(ssl) >= TLS1_3_VERSION)
		return offers_ecdsa_signature(ssl, HASH_SHA256);
	return offers_ecdsa_signature(ssl, HASH_SHA512) && offers_ecdsa_cipher(ssl) && offers_p256(ssl);
}

int tls_certificate_callback(SSL *ssl, void *unused)
{
	struct tls *t = SSL_get_app_data(ssl);
	void *x509 = NULL, *key = NULL;
	struct err err = ERR_INIT;
	if (mint_leaf(t->mint, t->host.text, takes_ecdsa(ssl) ? MINT_ECDSA : MINT_RSA, &x509, &key, &err) < 0) {
		tls_fail(t, err.code, "%s", err.text);
		return 0;
	}
	return SSL_use_certificate(ssl, x509) == 1 && SSL_use_PrivateKey(ssl, key) == 1;
}

/* Ours decide the order. A client that offers none of ours goes on without: it is then spoken to as one that offers nothing. */
int tls_alpn_callback(SSL *ssl, const unsigned char **ret, unsigned char *ret_len, const unsigned char *in, unsigned in_len,
	void *unused)
{
	struct tls *t = SSL_get_app_data(ssl);
	const struct alpn_list *ours = &t->alpn_ours;
	for (size_t i = 0; i < ours->len; i += 1u + ours->wire[i])
		for (unsigned j = 0; j < in_len && j + in[j] < in_len; j += 1u + in[j])
			if (in[j] == ours->wire[i] && memcmp(in + j + 1, ours->wire + i + 1, in[j]) == 0) {
				*ret = in + j + 1;
				*ret_len = in[j];
				return SSL_TLSEXT_ERR_OK;
			}
	return SSL_TLSEXT_ERR_NOACK;
}
