/* SPDX-License-Identifier: Apache-2.0 */
#include "crypto/tls.h"

#include <openssl/err.h>
#include <openssl/x509v3.h>
#include <limits.h>
#include <string.h>

#include "base/mem.h"
#include "crypto/internal.h"

#define RECORD_MAX 16384u
#define RECORD_OVERHEAD 64u /* header, nonce, padding, tag; generous */

enum tls_state tls_state(const struct tls *t)
{
	return t->state;
}

const struct err *tls_error(const struct tls *t)
{
	static const struct err none = { .code = ERR_NONE };
	return t->err ? t->err : &none;
}

bool tls_error_is_certificate(const struct tls *t)
{
	return t->cert_error;
}

const char *tls_alpn(const struct tls *t)
{
	return t->alpn;
}

size_t tls_output_pending(const struct tls *t)
{
	return queue_len(&t->out);
}

struct tls *tls_free(struct tls *t)
{
	if (!t)
		return NULL;
	SSL_free(t->ssl);
	buf_free(&t->in.buf);
	buf_free(&t->out.buf);
	mem_free(t->err);
	return mem_free(t);
}

/* What was agreed, if anything. A server's answer that was never offered must not choose how we speak; the library lets it in versions
 * before 3.0.15. */
static int take_alpn(struct tls *t)
{
	const unsigned char *name = NULL;
	unsigned len = 0;
	SSL_get0_alpn_selected(t->ssl, &name, &len);
	if (len == 0)
		return 0;
	if (!alpn_contains(&t->alpn_ours, name, len))
		return tls_fail(t, ERR_PROTOCOL, "%s chose an application protocol that it was not offered", t->host.text);
	memcpy(t->alpn, name, len);
	t->alpn[len] = '\0';
	return 0;
}

/* The library has verified already, or the handshake would not be over. This is the last place to make sure of that. */
static int finish_handshake(struct tls *t)
{
	if (!t->mint && (SSL_get_verify_result(t->ssl) != X509_V_OK || !SSL_get0_peer_certificate(t->ssl))) {
		t->cert_error = true;
		return tls_fail(t, ERR_DENIED, "the certificate of %s was not verified", t->host.text);
	}
	if (take_alpn(t) < 0)
		return -1;
	t->state = TLS_OPEN;
	return 0;
}

static int handshake(struct tls *t)
{
	ERR_clear_error();
	int r = SSL_do_handshake(t->ssl);
	if (r == 1)
		return finish_handshake(t);
	if (SSL_get_error(t->ssl, r) == SSL_ERROR_WANT_READ)
		return 0;
	return tls_fail_from_library(t);
}

static struct tls *new_connection(SSL_CTX *ctx, const char *host, const char *alpn, struct err *err)
{
	struct tls *t = mem_alloc(sizeof(*t));
	buf_init(&t->in.buf, TLS_INPUT_MAX);
	buf_init(&t->out.buf, TLS_OUTPUT_MAX + TLS_HANDSHAKE_MAX);
	if (host_parse(host, &t->host, err) < 0 || alpn_parse(alpn, &t->alpn_ours, err) < 0)
		return tls_free(t);
	t->ssl = SSL_new(ctx);
	BIO *bio = t->ssl ? BIO_new(tls_bio_method()) : NULL;
	if (!bio) {
		crypto_err(err, "cannot begin a TLS connection");
		return tls_free(t);
	}
	BIO_set_data(bio, t);
	BIO_set_init(bio, 1);
	SSL_set_bio(t->ssl, bio, bio);
	SSL_set_app_data(t->ssl, t);
	return t;
}

/* Whom the certificate must be for (RFC 9525). */
static bool require_host(struct tls *t)
{
	X509_VERIFY_PARAM *param = SSL_get0_param(t->ssl);
	X509_VERIFY_PARAM_set_hostflags(param, X509_CHECK_FLAG_NO_PARTIAL_WILDCARDS | X509_CHECK_FLAG_NEVER_CHECK_SUBJECT);
	if (t->host.is_ip)
		return X509_VERIFY_PARAM_set1_ip_asc(param, t->host.text) == 1;
	return X509_VERIFY_PARAM_set1_host(param, t->host.text, 0) == 1 && SSL_set_tlsext_host_name(t->ssl, t->host.text) == 1;
}

static bool offer_alpn(struct tls *t)
{
	return t->alpn_ours.len == 0 || SSL_set_alpn_protos(t->ssl, t->alpn_ours.wire, t->alpn_ours.len) == 0;
}

struct tls *tls_client_new(const struct tls_roots *roots, const char *host, const char *alpn, struct err *err)
{
	struct tls *t = new_connection(tls_roots_context(roots), host, alpn, err);
	if (!t)
		return NULL;
	if (!require_host(t) || !offer_alpn(t)) {
		crypto_err(err, "cannot begin a TLS connection with %s", host);
		return tls_free(t);
	}
	SSL_set_connect_state(t->ssl);
	if (handshake(t) < 0) {
		if (err)
			*err = *t->err;
		return tls_free(t);
	}
	return t;
}

struct tls *tls_server_new(struct mint *mint, const char *host, const char *alpn, struct err *err)
{
	struct tls *t = new_connection(tls_server_context(), host, alpn, err);
	if (!t)
		return NULL;
	t->mint = mint;
	SSL_set_accept_state(t->ssl);
	return t;
}

static void note_first(struct tls *t, const uint8_t *p, size_t len)
{
	while (t->first_len < sizeof(t->first) && len--)
		t->first[t->first_len++] = *p++;
}

/* A handshake is as long as its certificates; a peer that sends more than any needs is not waited for. */
static int feed_handshake(struct tls *t, size_t len)
{
	t->handshake_bytes += len;
	if (handshake(t) < 0)
		return -1;
	if (t->state == TLS_HANDSHAKE && t->handshake_bytes > TLS_HANDSHAKE_MAX)
		return tls_fail(t, ERR_LIMIT, "the TLS handshake with %s is longer than %u bytes", t->host.text, TLS_HANDSHAKE_MAX);
	return 0;
}

int tls_feed(struct tls *t, const void *p, size_t len)
{
	if (t->state == TLS_FAILED)
		return -1;
	if (t->state == TLS_ENDED)
		return 0;
	note_first(t, p, len);
	if (queue_append(&t->in, p, len) < 0)
		return tls_fail(t, ERR_LIMIT, "more than %u bytes from %s wait to be read", TLS_INPUT_MAX, t->host.text);
	return t->state == TLS_HANDSHAKE ? feed_handshake(t, len) : 0;
}

/* The library gave nothing: because nothing is there yet, at the end, or for an error. */
static void after_read(struct tls *t, int r)
{
	switch (SSL_get_error(t->ssl, r)) {
	case SSL_ERROR_WANT_READ:
		break;
	case SSL_ERROR_ZERO_RETURN:
		t->state = TLS_ENDED;
		break;
	default:
		tls_fail_from_library(t);
	}
}

void tls_feed_end(struct tls *t)
{
	t->in_end = true;
	if (t->state == TLS_HANDSHAKE)
		handshake(t);
	if (t->state != TLS_OPEN)
		return;
	/* Plain bytes that are still inside are read first; without any, the end is seen here. */
	uint8_t byte;
	ERR_clear_error();
	int r = SSL_peek(t->ssl, &byte, 1);
	if (r <= 0)
		after_read(t, r);
}

size_t tls_read(struct tls *t, void *p, size_t len)
{
	if (t->state != TLS_OPEN || len == 0)
		return 0;
	ERR_clear_error();
	int r = SSL_read(t->ssl, p, len > INT_MAX ? INT_MAX : (int)len);
	if (r > 0)
		return (size_t)r;
	after_read(t, r);
	queue_release(&t->in);
	return 0;
}

static bool has_room(const struct tls *t, size_t len)
{
	size_t pending = queue_len(&t->out);
	return pending <= TLS_OUTPUT_MAX && len + (len / RECORD_MAX + 1) * RECORD_OVERHEAD <= TLS_OUTPUT_MAX - pending;
}

int tls_write(struct tls *t, const void *p, size_t len)
{
	if ((t->state != TLS_OPEN && t->state != TLS_ENDED) || t->closed || len > TLS_OUTPUT_MAX || !has_room(t, len))
		return -1;
	if (len == 0)
		return 0;
	ERR_clear_error();
	if (SSL_write(t->ssl, p, (int)len) == (int)len)
		return 0;
	return tls_fail_from_library(t);
}

void tls_close(struct tls *t)
{
	if ((t->state != TLS_OPEN && t->state != TLS_ENDED) || t->closed)
		return;
	t->closed = true;
	ERR_clear_error();
	if (SSL_shutdown(t->ssl) < 0)
		ERR_clear_error();
}

/* The library sends alerts of its own choice only. While what we send is not encrypted yet, it is easily written by hand; a
 * TLS 1.3 server encrypts from its first answer on. */
int tls_refuse(struct tls *t)
{
	static const uint8_t alert[] = { SSL3_RT_ALERT, 3, 3, 0, 2, SSL3_AL_FATAL, SSL_AD_ACCESS_DENIED };
	if (t->state != TLS_HANDSHAKE)
		return -1;
	bool encrypted = t->wrote && SSL_version(t->ssl) >= TLS1_3_VERSION && t->mint;
	tls_fail(t, ERR_DENIED, "the TLS connection for %s was refused", t->host.text);
	return encrypted ? -1 : queue_append(&t->out, alert, sizeof(alert));
}

int tls_pull(struct tls *t, struct buf *out, size_t max)
{
	size_t n = queue_len(&t->out);
	if (n > max)
		n = max;
	if (n > INT_MAX)
		n = INT_MAX;
	if (n == 0)
		return 0;
	if (buf_append(out, queue_data(&t->out), n) < 0)
		return -1;
	queue_consume(&t->out, n);
	queue_release(&t->out);
	return (int)n;
}
