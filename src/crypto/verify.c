/* SPDX-License-Identifier: Apache-2.0 */
/* Why a server's certificate is refused, in a sentence. Everything in a certificate comes from outside: it is escaped. */
#include <openssl/err.h>
#include <openssl/x509v3.h>
#include <stdio.h>
#include <string.h>

#include "base/text.h"
#include "crypto/internal.h"

#define NAMES_SHOWN 4
#define NAMES_TEXT_MAX 320u
#define AUTHORITY_TEXT_MAX 160u
#define TIME_TEXT_MAX 40u

static const char *time_text(const ASN1_TIME *when, char out[TIME_TEXT_MAX])
{
	struct tm tm;
	if (!when || !ASN1_TIME_to_tm(when, &tm)) {
		snprintf(out, TIME_TEXT_MAX, "a date that cannot be read");
		return out;
	}
	snprintf(out, TIME_TEXT_MAX, "%04d-%02d-%02d %02d:%02d UTC", tm.tm_year + 1900, tm.tm_mon + 1, tm.tm_mday, tm.tm_hour, tm.tm_min);
	return out;
}

/* The common name, else the organisation, of a distinguished name. */
static const char *authority_text(const X509_NAME *name, char out[AUTHORITY_TEXT_MAX])
{
	static const int fields[] = { NID_commonName, NID_organizationName, NID_organizationalUnitName };
	for (size_t i = 0; name && i < sizeof(fields) / sizeof(fields[0]); i++) {
		int at = X509_NAME_get_index_by_NID(name, fields[i], -1);
		ASN1_STRING *value = at < 0 ? NULL : X509_NAME_ENTRY_get_data(X509_NAME_get_entry(name, at));
		unsigned char *utf8 = NULL;
		int len = value ? ASN1_STRING_to_UTF8(&utf8, value) : -1;
		if (len > 0) {
			text_escape(utf8, (size_t)len, out, AUTHORITY_TEXT_MAX);
			OPENSSL_free(utf8);
			return out;
		}
		OPENSSL_free(utf8);
	}
	snprintf(out, AUTHORITY_TEXT_MAX, "without a name");
	return out;
}

static bool name_text(const GENERAL_NAME *name, char *out, size_t out_len)
{
	int type;
	const ASN1_STRING *value = GENERAL_NAME_get0_value(name, &type);
	if (type == GEN_DNS) {
		text_escape(ASN1_STRING_get0_data(value), (size_t)ASN1_STRING_length(value), out, out_len);
		return true;
	}
	int len = type == GEN_IPADD ? ASN1_STRING_length(value) : 0;
	if (len != 4 && len != 16)
		return false;
	struct ip ip = { .family = len == 4 ? AF_INET : AF_INET6 };
	memcpy(ip.bytes, ASN1_STRING_get0_data(value), (size_t)len);
	char text[IP_TEXT_MAX];
	snprintf(out, out_len, "%s", ip_format(&ip, text));
	return true;
}

/* "a.example, b.example and 3 more"; false when it is for no name or address at all. */
static bool names_text(X509 *x, char out[NAMES_TEXT_MAX])
{
	GENERAL_NAMES *names = X509_get_ext_d2i(x, NID_subject_alt_name, NULL, NULL);
	int shown = 0, left_out = 0;
	size_t at = 0;
	out[0] = '\0';
	for (int i = 0; i < sk_GENERAL_NAME_num(names); i++) {
		char one[72];
		if (!name_text(sk_GENERAL_NAME_value(names, i), one, sizeof(one)))
			continue;
		if (shown == NAMES_SHOWN) {
			left_out++;
			continue;
		}
		at += (size_t)snprintf(out + at, NAMES_TEXT_MAX - at, "%s%s", shown++ ? ", " : "", one);
	}
	if (left_out)
		snprintf(out + at, NAMES_TEXT_MAX - at, " and %d more", left_out);
	GENERAL_NAMES_free(names);
	return shown > 0;
}

static void say_names(const struct host *host, X509 *x, char *out, size_t out_len)
{
	char names[NAMES_TEXT_MAX];
	if (x && names_text(x, names))
		snprintf(out, out_len, "it is for %s, not %s", names, host->text);
	else
		snprintf(out, out_len, "it names no host or address it is for (a common name does not count)");
}

static void say_time(X509 *x, bool expired, int depth, char *out, size_t out_len)
{
	char when[TIME_TEXT_MAX];
	const ASN1_TIME *limit = !x ? NULL : expired ? X509_get0_notAfter(x) : X509_get0_notBefore(x);
	snprintf(out, out_len, "%s %s %s", depth > 0 ? "the certificate of its authority" : "it",
		expired ? "expired on" : "is not valid before", time_text(limit, when));
}

static void say_authority(X509 *x, const char *how, char *out, size_t out_len)
{
	char authority[AUTHORITY_TEXT_MAX];
	snprintf(out, out_len, "it was made by an authority that is not trusted here, \"%s\"%s; if it is yours, give its certificate as the rule's ca",
		authority_text(x ? X509_get_issuer_name(x) : NULL, authority), how);
}

static void say(const struct host *host, X509 *x, int error, int depth, char *out, size_t out_len)
{
	switch (error) {
	case X509_V_ERR_CERT_HAS_EXPIRED:
	case X509_V_ERR_CERT_NOT_YET_VALID:
		say_time(x, error == X509_V_ERR_CERT_HAS_EXPIRED, depth, out, out_len);
		break;
	case X509_V_ERR_HOSTNAME_MISMATCH:
	case X509_V_ERR_IP_ADDRESS_MISMATCH:
		say_names(host, x, out, out_len);
		break;
	case X509_V_ERR_DEPTH_ZERO_SELF_SIGNED_CERT:
		snprintf(out, out_len, "it was made by an authority that is not trusted here: itself (self-signed); if it is yours, give it as the rule's ca");
		break;
	case X509_V_ERR_SELF_SIGNED_CERT_IN_CHAIN:
		say_authority(x, "", out, out_len);
		break;
	case X509_V_ERR_UNABLE_TO_GET_ISSUER_CERT:
	case X509_V_ERR_UNABLE_TO_GET_ISSUER_CERT_LOCALLY:
	case X509_V_ERR_UNABLE_TO_VERIFY_LEAF_SIGNATURE:
		say_authority(x, " (or the server does not send an intermediate certificate)", out, out_len);
		break;
	case X509_V_ERR_INVALID_CA:
	case X509_V_ERR_PATH_LENGTH_EXCEEDED:
	case X509_V_ERR_KEYUSAGE_NO_CERTSIGN:
		snprintf(out, out_len, "it was made with a certificate that is not allowed to make others");
		break;
	case X509_V_ERR_INVALID_PURPOSE:
		snprintf(out, out_len, "it is not meant for servers");
		break;
	case X509_V_ERR_EE_KEY_TOO_SMALL:
	case X509_V_ERR_CA_KEY_TOO_SMALL:
	case X509_V_ERR_CA_MD_TOO_WEAK:
		snprintf(out, out_len, "its keys or signatures are too weak (%s)", X509_verify_cert_error_string(error));
		break;
	default:
		snprintf(out, out_len, "%s", X509_verify_cert_error_string(error));
	}
}

void tls_certificate_sentence(const struct host *host, X509_STORE_CTX *store, int error, int depth, struct err *err)
{
	char why[640];
	say(host, X509_STORE_CTX_get_current_cert(store), error, depth, why, sizeof(why));
	err_set(err, ERR_DENIED, "the certificate of %s is not valid: %s", host->text, why);
}

/* The first reason ends it: there is no way to go on. */
int tls_verify_callback(int ok, X509_STORE_CTX *store)
{
	if (ok)
		return 1;
	SSL *ssl = X509_STORE_CTX_get_ex_data(store, SSL_get_ex_data_X509_STORE_CTX_idx());
	struct tls *t = SSL_get_app_data(ssl);
	if (t->state == TLS_FAILED)
		return 0;
	struct err err = ERR_INIT;
	tls_certificate_sentence(&t->host, store, X509_STORE_CTX_get_error(store), X509_STORE_CTX_get_error_depth(store), &err);
	tls_fail(t, err.code, "%s", err.text);
	t->cert_error = true;
	return 0;
}
