/* SPDX-License-Identifier: Apache-2.0 */
/* For tests of TLS: an authority and certificates of any shape, a plain OpenSSL peer over memory, and bytes carried between it and ours. */
#pragma once

#include <openssl/ssl.h>
#include <stdbool.h>
#include <stddef.h>

#include "crypto/tls.h"

/* A certificate to be made; zero fields mean the ordinary. Times are seconds from now. */
struct rig_cert {
	const char *common_name;
	const char *san;      /* "DNS:a.example,IP:192.0.2.1"; NULL: none */
	const char *basic;    /* basicConstraints; NULL: "critical,CA:FALSE", "": none */
	const char *usage;    /* extendedKeyUsage; NULL: serverAuth */
	long from, to;        /* 0: an hour ago, a day ahead */
	bool rsa;
	int rsa_bits;
	bool sha1;
};

struct rig_pair {
	X509 *x509;
	EVP_PKEY *key;
};

/* issuer NULL: self-signed */
struct rig_pair rig_make(const struct rig_cert *c, const struct rig_pair *issuer);
void rig_pair_done(struct rig_pair *p);
char *rig_pem(X509 *x);

/* A peer of ours made of OpenSSL and two memory BIOs. */
struct rig_peer {
	SSL_CTX *ctx;
	SSL *ssl;
	BIO *in, *out;
};
struct rig_peer rig_server(const struct rig_pair *leaf, X509 *intermediate);
struct rig_peer rig_client(const char *ca_pem, const char *host);
void rig_peer_done(struct rig_peer *p);

/* Carries bytes both ways, in pieces of `chunk`, until nothing moves. Returns whether both handshakes are over. */
bool rig_run(struct tls *t, struct rig_peer *p, size_t chunk);
/* The same between two of ours. */
bool rig_run_ours(struct tls *a, struct tls *b, size_t chunk);
