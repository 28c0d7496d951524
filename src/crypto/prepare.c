/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the library would do lazily is done here, before confinement: afterwards no file can be opened. Its built-in provider
 * needs none; what remains are the configuration file (never read), the random source (getrandom) and the C library's time zone.
 */
#include <openssl/err.h>
#include <openssl/rand.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "base/mem.h"
#include "crypto/internal.h"

/* Forward secrecy and authenticated encryption; towards the box nothing else, as its clients are of our time. */
#define SERVER_CIPHERS "ECDHE+AESGCM:ECDHE+CHACHA20"

static SSL_CTX *server_context;

SSL_CTX *tls_server_context(void)
{
	return server_context;
}

int crypto_err(struct err *err, const char *format, ...)
{
	unsigned long e = ERR_peek_last_error();
	const char *reason = e ? ERR_reason_error_string(e) : NULL;
	char text[512];
	va_list ap;
	va_start(ap, format);
	vsnprintf(text, sizeof(text), format, ap);
	va_end(ap);
	ERR_clear_error();
	bool memory = e && ERR_GET_REASON(e) == ERR_R_MALLOC_FAILURE;
	return err_set(err, memory ? ERR_MEMORY : ERR_UNSUPPORTED, "%s: %s", text,
		reason ? reason : "the cryptographic library gives no reason");
}

int host_parse(const char *text, struct host *ret, struct err *err)
{
	size_t len = strlen(text);
	struct ip ip;
	if (ip_parse(text, len, &ip) == 0) {
		char out[IP_TEXT_MAX];
		*ret = (struct host){ .is_ip = true };
		snprintf(ret->text, sizeof(ret->text), "%s", ip_format(&ip, out));
		return 0;
	}
	struct hostname name;
	if (hostname_parse(text, len, &name, err) < 0)
		return -1;
	*ret = (struct host){ .is_ip = false };
	memcpy(ret->text, name.text, sizeof(ret->text));
	return 0;
}

SSL_CTX *tls_context_new(const SSL_METHOD *method, const char *ciphers, struct err *err)
{
	SSL_CTX *ctx = SSL_CTX_new(method);
	if (!ctx) {
		crypto_err(err, "cannot prepare TLS");
		return NULL;
	}
	SSL_CTX_set_security_level(ctx, 2);
	SSL_CTX_set_options(ctx, SSL_OP_NO_COMPRESSION | SSL_OP_NO_RENEGOTIATION | SSL_OP_NO_TICKET | SSL_OP_CIPHER_SERVER_PREFERENCE |
		SSL_OP_PRIORITIZE_CHACHA | SSL_OP_CLEANSE_PLAINTEXT);
	SSL_CTX_set_mode(ctx, SSL_MODE_RELEASE_BUFFERS);
	/* A resumed session would skip what a full handshake checks: the name, the certificate, the leaf. */
	SSL_CTX_set_session_cache_mode(ctx, SSL_SESS_CACHE_OFF);
	if (SSL_CTX_set_min_proto_version(ctx, TLS1_2_VERSION) && SSL_CTX_set_max_proto_version(ctx, TLS1_3_VERSION) &&
		SSL_CTX_set_num_tickets(ctx, 0) && SSL_CTX_set_cipher_list(ctx, ciphers))
		return ctx;
	crypto_err(err, "cannot prepare TLS");
	SSL_CTX_free(ctx);
	return NULL;
}

static int prepare_random(struct err *err)
{
	uint8_t bytes[16];
	/* Two generators: one for what is shown, one for keys. Each is seeded at its first use. */
	if (RAND_bytes(bytes, sizeof(bytes)) == 1 && RAND_priv_bytes(bytes, sizeof(bytes)) == 1)
		return 0;
	return crypto_err(err, "cannot seed the random number generator");
}

static int prepare_server(struct err *err)
{
	server_context = tls_context_new(TLS_server_method(), SERVER_CIPHERS, err);
	if (!server_context)
		return -1;
	SSL_CTX_set_cert_cb(server_context, tls_certificate_callback, NULL);
	SSL_CTX_set_alpn_select_cb(server_context, tls_alpn_callback, NULL);
	return 0;
}

int tls_prepare(struct err *err)
{
	if (server_context)
		return 0;
	/* No handler at exit: it would free what a process that ends anyway gives back to the kernel. */
	if (!OPENSSL_init_ssl(OPENSSL_INIT_NO_LOAD_CONFIG | OPENSSL_INIT_NO_ATEXIT, NULL))
		return crypto_err(err, "cannot start the TLS library");
	/* The first conversion of any time reads the time zone file, UTC or not. */
	tzset();
	if (!tls_bio_method())
		return crypto_err(err, "cannot prepare TLS");
	if (prepare_random(err) < 0)
		return -1;
	return prepare_server(err);
}
