/* SPDX-License-Identifier: Apache-2.0 */
/* Certificates as RFC 5280 and the strictest of the clients (OpenSSL's x509_strict, GnuTLS, NSS, Go, Java) want them. */
#include <openssl/err.h>
#include <openssl/rand.h>
#include <openssl/x509v3.h>
#include <stdio.h>
#include <string.h>

#include "crypto/internal.h"

#define SERIAL_LEN 20u       /* RFC 5280 section 4.1.2.2: at most 20 octets */
#define COMMON_NAME_MAX 64u  /* ub-common-name */
#define HOUR 3600L
#define DAY (24 * HOUR)

/* Positive, and of full length. */
static bool set_serial(X509 *x)
{
	uint8_t bytes[SERIAL_LEN];
	if (RAND_bytes(bytes, sizeof(bytes)) != 1)
		return false;
	bytes[0] = (uint8_t)((bytes[0] & 0x3f) | 0x40);
	BIGNUM *number = BN_bin2bn(bytes, sizeof(bytes), NULL);
	bool ok = number && BN_to_ASN1_INTEGER(number, X509_get_serialNumber(x));
	BN_free(number);
	return ok;
}

static bool add_extension(X509 *x, X509V3_CTX *ctx, int nid, const char *value)
{
	X509_EXTENSION *e = X509V3_EXT_conf_nid(NULL, ctx, nid, value);
	bool ok = e && X509_add_ext(x, e, -1);
	X509_EXTENSION_free(e);
	return ok;
}

static bool add_name(X509_NAME *name, const char *field, const char *value)
{
	return X509_NAME_add_entry_by_txt(name, field, MBSTRING_UTF8, (const unsigned char *)value, -1, -1, 0);
}

static bool set_subject(X509 *x, const char *common_name)
{
	X509_NAME *name = X509_get_subject_name(x);
	return add_name(name, "O", "Bulkhead") && (!common_name || add_name(name, "CN", common_name));
}

static bool fill_authority(X509 *x, EVP_PKEY *key, const char *sandbox_id)
{
	char common_name[COMMON_NAME_MAX + 1];
	snprintf(common_name, sizeof(common_name), "Bulkhead sandbox %s", sandbox_id);
	X509V3_CTX ctx;
	X509V3_set_ctx(&ctx, x, x, NULL, NULL, 0);
	X509V3_set_ctx_nodb(&ctx);
	return X509_set_version(x, X509_VERSION_3) && set_serial(x) && set_subject(x, common_name) &&
		X509_set_issuer_name(x, X509_get_subject_name(x)) && X509_gmtime_adj(X509_getm_notBefore(x), -DAY) &&
		X509_gmtime_adj(X509_getm_notAfter(x), MINT_DAYS * DAY) && X509_set_pubkey(x, key) &&
		add_extension(x, &ctx, NID_basic_constraints, "critical,CA:TRUE,pathlen:0") &&
		add_extension(x, &ctx, NID_key_usage, "critical,keyCertSign,cRLSign") &&
		add_extension(x, &ctx, NID_subject_key_identifier, "hash") &&
		add_extension(x, &ctx, NID_authority_key_identifier, "keyid:always") && X509_sign(x, key, EVP_sha256());
}

X509 *leaf_make_authority(EVP_PKEY *key, const char *sandbox_id, struct err *err)
{
	X509 *x = X509_new();
	if (x && fill_authority(x, key, sandbox_id))
		return x;
	crypto_err(err, "cannot make the certificate authority of the sandbox");
	X509_free(x);
	return NULL;
}

/* The host was parsed: its text holds nothing that the extension's syntax could take for more than one value. */
static bool add_san(X509 *x, X509V3_CTX *ctx, const struct host *host)
{
	char value[sizeof(host->text) + sizeof("DNS:")];
	snprintf(value, sizeof(value), "%s:%s", host->is_ip ? "IP" : "DNS", host->text);
	return add_extension(x, ctx, NID_subject_alt_name, value);
}

static bool fill_leaf(X509 *x, X509 *authority, EVP_PKEY *authority_key, EVP_PKEY *key, bool rsa, const struct host *host)
{
	X509V3_CTX ctx;
	X509V3_set_ctx(&ctx, authority, x, NULL, NULL, 0);
	X509V3_set_ctx_nodb(&ctx);
	const char *usage = rsa ? "critical,digitalSignature,keyEncipherment" : "critical,digitalSignature";
	/* A common name is only for people's eyes: the names that count are in the SAN. */
	return X509_set_version(x, X509_VERSION_3) && set_serial(x) &&
		set_subject(x, strlen(host->text) <= COMMON_NAME_MAX ? host->text : NULL) &&
		X509_set_issuer_name(x, X509_get_subject_name(authority)) && X509_gmtime_adj(X509_getm_notBefore(x), -HOUR) &&
		X509_set1_notAfter(x, X509_get0_notAfter(authority)) && X509_set_pubkey(x, key) &&
		add_extension(x, &ctx, NID_basic_constraints, "critical,CA:FALSE") && add_extension(x, &ctx, NID_key_usage, usage) &&
		add_extension(x, &ctx, NID_ext_key_usage, "serverAuth") && add_extension(x, &ctx, NID_subject_key_identifier, "hash") &&
		add_extension(x, &ctx, NID_authority_key_identifier, "keyid:always") && add_san(x, &ctx, host) &&
		X509_sign(x, authority_key, EVP_sha256());
}

X509 *leaf_make(X509 *authority, EVP_PKEY *authority_key, EVP_PKEY *key, bool rsa, const struct host *host, struct err *err)
{
	X509 *x = X509_new();
	if (x && fill_leaf(x, authority, authority_key, key, rsa, host))
		return x;
	crypto_err(err, "cannot make a certificate for %s", host->text);
	X509_free(x);
	return NULL;
}
