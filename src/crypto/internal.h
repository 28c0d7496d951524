/* SPDX-License-Identifier: Apache-2.0 */
/* Shared by the files of this folder only. */
#pragma once

#include <openssl/ssl.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/addr.h"
#include "base/buf.h"
#include "base/err.h"
#include "crypto/mint.h"
#include "crypto/tls.h"

/* What a host's text says: a name or an address, in its one canonical spelling. */
struct host {
	char text[HOSTNAME_MAX + 1];
	bool is_ip;
};
int host_parse(const char *text, struct host *ret, struct err *err);

/* err_set with the library's own reason behind it; empties the library's queue of errors. Returns -1. */
int crypto_err(struct err *err, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* The settings that both sides share. NULL: err says why. */
SSL_CTX *tls_context_new(const SSL_METHOD *method, const char *ciphers, struct err *err);
SSL_CTX *tls_server_context(void); /* made by tls_prepare */
SSL_CTX *tls_roots_context(const struct tls_roots *r);

/* Bytes that wait, with a ceiling; read from the front without moving what is behind. */
struct queue {
	struct buf buf;
	size_t start;
};
static inline size_t queue_len(const struct queue *q) { return q->buf.len - q->start; }
static inline const uint8_t *queue_data(const struct queue *q) { return q->buf.data + q->start; }
int queue_append(struct queue *q, const void *p, size_t len);
void queue_consume(struct queue *q, size_t len);
void queue_release(struct queue *q); /* an empty one keeps no memory: thousands of connections idle */

#define TLS_ALPN_WIRE_MAX (TLS_ALPN_MAX + 1)
struct alpn_list {
	uint8_t len;
	uint8_t wire[TLS_ALPN_WIRE_MAX]; /* length-prefixed names */
};
int alpn_parse(const char *text, struct alpn_list *ret, struct err *err);
bool alpn_contains(const struct alpn_list *list, const uint8_t *name, size_t len);

struct tls {
	SSL *ssl;
	struct mint *mint; /* the server side: not ours */
	struct host host;
	struct queue in;   /* from the peer, not yet seen by the library */
	struct queue out;  /* for the peer */
	struct err *err;   /* NULL until it failed */
	size_t handshake_bytes;
	size_t first_len;
	struct alpn_list alpn_ours;
	char alpn[TLS_ALPN_MAX + 1];
	enum tls_state state;
	uint8_t first[3];  /* the peer's first bytes: is it TLS at all? */
	bool in_end;       /* FIN came */
	bool wrote;        /* something of ours has been queued */
	bool closed;       /* close_notify of ours was sent */
	bool cert_error;
};

BIO_METHOD *tls_bio_method(void); /* made by tls_prepare; its data is a struct tls */

/* The certificate callbacks. */
int tls_verify_callback(int ok, X509_STORE_CTX *store);                /* client side */
int tls_certificate_callback(SSL *ssl, void *unused);                  /* server side */
int tls_alpn_callback(SSL *ssl, const unsigned char **ret, unsigned char *ret_len, const unsigned char *in, unsigned in_len,
	void *unused);

/* The peer's certificate was refused with `error` at `depth`: the sentence for `host`. */
void tls_certificate_sentence(const struct host *host, X509_STORE_CTX *store, int error, int depth, struct err *err);
/* The connection is over because of what the library's queue of errors says (or of nothing better): FAILED. Returns -1. */
int tls_fail_from_library(struct tls *t);
int tls_fail(struct tls *t, enum err_code code, const char *format, ...) __attribute__((format(printf, 3, 4)));

/* The certificates of leaf.c. */
X509 *leaf_make_authority(EVP_PKEY *key, const char *sandbox_id, struct err *err);
X509 *leaf_make(X509 *authority, EVP_PKEY *authority_key, EVP_PKEY *key, bool rsa, const struct host *host, struct err *err);
