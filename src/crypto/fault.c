/* SPDX-License-Identifier: Apache-2.0 */
/* Why a connection ended, in a sentence: what the peer did, not what the library calls it. */
#include <openssl/err.h>
#include <stdarg.h>
#include <stdio.h>

#include "base/mem.h"
#include "crypto/internal.h"

int tls_fail(struct tls *t, enum err_code code, const char *format, ...)
{
	if (t->state == TLS_FAILED)
		return -1;
	char text[sizeof(t->err->text)];
	va_list ap;
	va_start(ap, format);
	vsnprintf(text, sizeof(text), format, ap);
	va_end(ap);
	t->state = TLS_FAILED;
	t->err = mem_alloc(sizeof(*t->err));
	return err_set(t->err, code, "%s", text);
}

/* Record types 20 to 23 of major version 3: anything else is no TLS. */
static bool looks_like_tls(const struct tls *t)
{
	return (t->first_len < 1 || (t->first[0] >= 20 && t->first[0] <= 23)) && (t->first_len < 2 || t->first[1] == 3);
}

/* The box's client does not want our certificate: it brings its own list of authorities, or pins one. */
static bool is_distrust(int alert)
{
	return alert == SSL_AD_UNKNOWN_CA || alert == SSL_AD_BAD_CERTIFICATE || alert == SSL_AD_CERTIFICATE_UNKNOWN ||
		alert == SSL_AD_UNSUPPORTED_CERTIFICATE || alert == SSL_AD_CERTIFICATE_EXPIRED;
}

static int fail_by_alert(struct tls *t, const char *who, int alert)
{
	const char *name = SSL_alert_desc_string_long(alert);
	const char *what = t->state == TLS_HANDSHAKE ? "handshake" : "connection";
	if (t->mint && is_distrust(alert))
		return tls_fail(t, ERR_CLOSED, "%s does not trust the certificate authority of the sandbox (%s): "
			"it may have a list of authorities of its own", who, name);
	if (alert == SSL_AD_PROTOCOL_VERSION)
		return tls_fail(t, ERR_UNSUPPORTED, "%s speaks no version of TLS that is still safe (1.2 or 1.3)", who);
	return tls_fail(t, ERR_CLOSED, "%s broke off the TLS %s: %s", who, what, name);
}

static int fail_by_reason(struct tls *t, const char *who, unsigned long e)
{
	int reason = ERR_GET_REASON(e);
	bool handshake = t->state == TLS_HANDSHAKE;
	if (reason > SSL_AD_REASON_OFFSET && reason < SSL_AD_REASON_OFFSET + 256)
		return fail_by_alert(t, who, reason - SSL_AD_REASON_OFFSET);
	if (reason == SSL_R_UNEXPECTED_EOF_WHILE_READING)
		return handshake ? tls_fail(t, ERR_CLOSED, "%s closed the connection in the middle of the TLS handshake", who) :
			tls_fail(t, ERR_CLOSED, "%s closed the connection without saying that it had finished: what came may be cut short", who);
	if (reason == SSL_R_UNSUPPORTED_PROTOCOL)
		return tls_fail(t, ERR_UNSUPPORTED, "%s speaks no version of TLS that is still safe (1.2 or 1.3)", who);
	if (reason == SSL_R_NO_SHARED_CIPHER)
		return tls_fail(t, ERR_UNSUPPORTED, "%s knows no cipher that is still safe", who);
	const char *text = ERR_reason_error_string(e);
	return tls_fail(t, ERR_PROTOCOL, "the TLS %s with %s failed: %s", handshake ? "handshake" : "connection", who,
		text ? text : "for a reason that the library does not give");
}

int tls_fail_from_library(struct tls *t)
{
	unsigned long e = ERR_peek_error();
	ERR_clear_error();
	char who[sizeof(t->host.text) + 32];
	snprintf(who, sizeof(who), t->mint ? "the client that asks for %s" : "%s", t->host.text);
	if (t->state == TLS_HANDSHAKE && !looks_like_tls(t))
		return tls_fail(t, ERR_PROTOCOL, "%s speaks no TLS", who);
	if (ERR_GET_LIB(e) == ERR_LIB_SSL)
		return fail_by_reason(t, who, e);
	const char *text = e ? ERR_reason_error_string(e) : NULL;
	return tls_fail(t, ERR_PROTOCOL, "the TLS connection with %s failed: %s", who, text ? text : "too much waits to be sent");
}
