/* SPDX-License-Identifier: Apache-2.0 */
/*
 * TLS 1.2 and 1.3 over memory (OpenSSL 3): bytes in, bytes out, no sockets. Contexts read files, connections never do, so
 * contexts are made before confinement.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/err.h"
#include "crypto/mint.h"

#define TLS_ALPN_MAX 64u /* text of a list: "h2,http/1.1" */
#define TLS_INPUT_MAX (256u * 1024)     /* bytes fed and not read yet; more is a failure */
#define TLS_OUTPUT_MAX (1024u * 1024)   /* bytes for the peer that wait; tls_write takes no more */
#define TLS_HANDSHAKE_MAX (192u * 1024) /* bytes of a peer's handshake: a long chain has 20 KiB */

struct tls;
struct tls_roots; /* certificates that upstream servers are verified by */

/* Call once before confinement and before any other function of this folder: prepares the library (no configuration file, no
 * engines, random source) and opens what it would open lazily. Under confinement getrandom must stay allowed. */
int tls_prepare(struct err *err);

/* The host's roots: $SSL_CERT_FILE and $SSL_CERT_DIR where set, else OpenSSL's default file, the bundles of the distributions, and
 * OpenSSL's default folder, the first that has any; read whole now. At least one certificate, or NULL with a sentence that says
 * where was looked. */
struct tls_roots *tls_roots_read(struct err *err);
/* These and `pem` (certificates, one or more; parsed strictly) besides. The base stays the caller's and must outlive. */
struct tls_roots *tls_roots_with(const struct tls_roots *base, const char *pem, size_t len, struct err *err);
struct tls_roots *tls_roots_free(struct tls_roots *r); /* accepts NULL */
int tls_check_pem(const char *pem, size_t len, struct err *err); /* is it one or more certificates and nothing else? */

/* A connection to a server. `host` is a name or the text of an address: sent as SNI (names only) and required of the certificate
 * (RFC 9525: SAN only, no common name, no partial wildcards). alpn: comma-separated, may be "". Always verified; there is no other mode. */
struct tls *tls_client_new(const struct tls_roots *roots, const char *host, const char *alpn, struct err *err);
/* A connection from a client in the box: the leaf for `host` comes from the mint (ECDSA, or RSA for clients that offer no ECDSA).
 * alpn: what we would speak, in our order of preference; the result is the first the client offers too, or none. */
struct tls *tls_server_new(struct mint *mint, const char *host, const char *alpn, struct err *err);
struct tls *tls_free(struct tls *t); /* accepts NULL; returns NULL */

enum tls_state { TLS_HANDSHAKE, TLS_OPEN, TLS_ENDED /* peer sent close_notify */, TLS_FAILED };
enum tls_state tls_state(const struct tls *t);
const struct err *tls_error(const struct tls *t);     /* FAILED: "the certificate of HOST is not valid: it expired on …" */
bool tls_error_is_certificate(const struct tls *t);   /* the peer could not prove who it is */
const char *tls_alpn(const struct tls *t);            /* "" when none was agreed */

/* Bytes that came from the peer; drives the handshake, or keeps them for tls_read. All are taken: call tls_read until 0 after each, or
 * TLS_INPUT_MAX is reached and the connection fails. 0, or -1: FAILED. */
int tls_feed(struct tls *t, const void *p, size_t len);
/* FIN: without close_notify before, the stream was cut short (TLS_FAILED, seen once tls_read gave what came before). */
void tls_feed_end(struct tls *t);
/* Plain bytes; 0: none now. ENDED and FAILED (a forged record, a fatal alert) show in tls_state after it. */
size_t tls_read(struct tls *t, void *p, size_t len);
/* Takes plain bytes while open (also after the peer's close_notify: it may still listen); all of them, or -1 and none: no room below
 * TLS_OUTPUT_MAX, or not open. Call only while tls_output_pending is moderate. */
int tls_write(struct tls *t, const void *p, size_t len);
/* close_notify; nothing can be written afterwards, reading goes on. Before the end of the handshake there is nothing to say. */
void tls_close(struct tls *t);
/* Handshake not finished: a fatal access_denied alert instead of an answer, and FAILED (ERR_DENIED). 0, or -1: the alert can't be said any
 * more (a TLS 1.3 server has answered already: decide before the hello is fed), just close. */
int tls_refuse(struct tls *t);
/* Moves at most `max` bytes for the peer to the end of `out`; how many, or -1: they do not fit. Do it once more after FAILED: the
 * alert that tells the peer why is among them. */
int tls_pull(struct tls *t, struct buf *out, size_t max);
size_t tls_output_pending(const struct tls *t);
