/* SPDX-License-Identifier: Apache-2.0 */
/* Shared by trust.c and the forms of a trust store (trust-*.c). */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/err.h"

#define TRUST_CERT_MAX 2048u /* of the sandbox's authority; a P-256 one has about 450 bytes */
#define TRUST_NAME "bulkhead-sandbox"

struct slice { const uint8_t *p; size_t len; };

/* A certificate taken apart as far as stores index by it; each part with its DER head. */
struct trust_cert {
	uint8_t der[TRUST_CERT_MAX];
	size_t len;
	struct slice serial, issuer, subject; /* in der */
};

/* trust-cert.c. `pem` is one certificate and nothing else. */
int trust_cert_parse(struct trust_cert *ret, const char *pem, struct err *err);
/* What OpenSSL's certificate folders are indexed by, "HASH.N": of the subject's canonical form. */
int trust_cert_hash(const struct trust_cert *c, uint32_t *ret, struct err *err);
/* The next certificate of a bundle into `der` (cleared first); advances *pem. 1, or 0 at the end. What isn't a certificate is passed over. */
int trust_pem_next(const char **pem, struct buf *der);

/* trust-java.c: a JKS keystore with `ca` in it and what `host` (a keystore: host_len bytes; may be none) has; a keystore in another form than JKS can't be added to,
 * so that the certificates of the host's `bundle` go in instead. */
int trust_java(struct buf *ret, const struct trust_cert *ca, const void *host, size_t host_len, const char *bundle);

/* trust-nss.c: the two files of an NSS database. */
int trust_nss_certs(struct buf *ret, const struct trust_cert *ca);
int trust_nss_keys(struct buf *ret);

/* trust-sha1.c. The stores name certificates by SHA-1 and rely on it for nothing. Of our own because libcrypto, were it in the program, would have
 * to be relocated at each start, of plain runs too. */
#define SHA1_SIZE 20u
void trust_sha1(const void *p, size_t len, uint8_t ret[SHA1_SIZE]);
