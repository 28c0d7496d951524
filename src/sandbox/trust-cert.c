/* SPDX-License-Identifier: Apache-2.0 */
/* Certificates as text and as bytes. */
#include <ctype.h>
#include <sodium.h>
#include <string.h>

#include "base/mem.h"
#include "sandbox/trust-internal.h"

#define PEM_BEGIN "-----BEGIN CERTIFICATE-----"
#define PEM_END "-----END CERTIFICATE-----"
#define WHITE " \t\r\n"
#define NAME_MAX_BYTES 1024u

enum der_tag { DER_INTEGER = 0x02, DER_OID = 0x06, DER_UTF8 = 0x0c, DER_PRINTABLE = 0x13, DER_SEQUENCE = 0x30, DER_SET = 0x31, DER_VERSION = 0xa0 };

/* ---- text ---- */

/* Text between the lines; NULL when there is no more. */
static const char *find_block(const char **pem, size_t *ret_len)
{
	const char *begin = strstr(*pem, PEM_BEGIN);
	const char *end = begin ? strstr(begin, PEM_END) : NULL;
	if (!end)
		return NULL;
	begin += strlen(PEM_BEGIN);
	*pem = end + strlen(PEM_END);
	*ret_len = (size_t)(end - begin);
	return begin;
}

static int from_base64(uint8_t *ret, size_t max, size_t *ret_len, const char *text, size_t len)
{
	return sodium_base642bin(ret, max, text, len, WHITE, ret_len, NULL, sodium_base64_VARIANT_ORIGINAL);
}

int trust_pem_next(const char **pem, struct buf *der)
{
	size_t len, got;
	const char *text;
	while ((text = find_block(pem, &len))) {
		buf_clear(der);
		void *room = buf_reserve(der, len);
		if (!room || from_base64(room, len, &got, text, len) < 0 || got == 0)
			continue;
		buf_commit(der, got);
		return 1;
	}
	return 0;
}

/* ---- bytes ---- */

/* The next element of *rest, which must have this tag. */
static int der_next(struct slice *rest, enum der_tag tag, struct slice *ret_whole, struct slice *ret_content)
{
	const uint8_t *p = rest->p;
	size_t head = 2, len;
	if (rest->len < 2 || p[0] != tag)
		return -1;
	len = p[1];
	if (p[1] & 0x80) {
		unsigned n = p[1] & 0x7f;
		if (n < 1 || n > 2 || rest->len < 2 + n)
			return -1;
		len = n == 1 ? p[2] : (size_t)p[2] << 8 | p[3];
		if (len < (n == 1 ? 0x80u : 0x100u)) /* not the shortest form */
			return -1;
		head += n;
	}
	if (len > rest->len - head)
		return -1;
	if (ret_whole)
		*ret_whole = (struct slice){ p, head + len };
	if (ret_content)
		*ret_content = (struct slice){ p + head, len };
	*rest = (struct slice){ p + head + len, rest->len - head - len };
	return 0;
}

static int take_apart(struct trust_cert *c)
{
	struct slice rest = { c->der, c->len }, cert, tbs;
	if (der_next(&rest, DER_SEQUENCE, NULL, &cert) < 0 || rest.len != 0 || der_next(&cert, DER_SEQUENCE, NULL, &tbs) < 0)
		return -1;
	if (der_next(&tbs, DER_VERSION, NULL, NULL) < 0 || der_next(&tbs, DER_INTEGER, &c->serial, NULL) < 0 ||
		der_next(&tbs, DER_SEQUENCE, NULL, NULL) < 0 || der_next(&tbs, DER_SEQUENCE, &c->issuer, NULL) < 0)
		return -1;
	return der_next(&tbs, DER_SEQUENCE, NULL, NULL) < 0 || der_next(&tbs, DER_SEQUENCE, &c->subject, NULL) < 0 ? -1 : 0;
}

int trust_cert_parse(struct trust_cert *ret, const char *pem, struct err *err)
{
	size_t len;
	const char *rest = pem, *text;
	*ret = (struct trust_cert){ 0 };
	rest += strspn(rest, WHITE);
	text = str_starts(rest, PEM_BEGIN) ? find_block(&rest, &len) : NULL;
	if (!text || rest[strspn(rest, WHITE)] != '\0' || from_base64(ret->der, sizeof(ret->der), &ret->len, text, len) < 0 || take_apart(ret) < 0)
		return err_set(err, ERR_PROTOCOL, "the sandbox's own certificate, as the gate sent it, is not one X.509 certificate of at most %u bytes in PEM form",
			TRUST_CERT_MAX);
	return 0;
}

/* ---- OpenSSL's hash ---- */

/* As X509_NAME_hash compares names: UTF-8, lower case, no white space around, one space for any inside. */
static int canonical_text(struct slice text, uint8_t *ret, size_t *ret_len)
{
	size_t n = 0;
	while (text.len > 0 && isspace(text.p[0]))
		text.p++, text.len--;
	while (text.len > 0 && isspace(text.p[text.len - 1]))
		text.len--;
	for (size_t i = 0; i < text.len; i++) {
		if (text.p[i] >= 0x80)
			return -1; /* needs conversions that no name of ours needs */
		if (!isspace(text.p[i]))
			ret[n++] = (uint8_t)tolower(text.p[i]);
		else if (!isspace(text.p[i - 1]))
			ret[n++] = ' ';
	}
	*ret_len = n;
	return 0;
}

/* Heads of elements shorter than 128 bytes, as all parts of our names are. */
static int put_short(struct buf *b, enum der_tag tag, const void *content, size_t len)
{
	return len >= 0x80 || buf_put_u8(b, (uint8_t)tag) < 0 || buf_put_u8(b, (uint8_t)len) < 0 || buf_append(b, content, len) < 0 ? -1 : 0;
}

/* SET { SEQUENCE { type, text } } */
static int put_canonical_part(struct buf *out, struct slice set)
{
	struct slice pair, type, text;
	uint8_t lowered[NAME_MAX_BYTES];
	size_t len;
	struct buf inner, outer;
	if (der_next(&set, DER_SEQUENCE, NULL, &pair) < 0 || set.len != 0 || der_next(&pair, DER_OID, &type, NULL) < 0)
		return -1;
	if (der_next(&pair, DER_UTF8, NULL, &text) < 0 && der_next(&pair, DER_PRINTABLE, NULL, &text) < 0)
		return -1;
	if (pair.len != 0 || text.len > sizeof(lowered) || canonical_text(text, lowered, &len) < 0)
		return -1;
	buf_init(&inner, NAME_MAX_BYTES);
	buf_init(&outer, NAME_MAX_BYTES);
	int r = buf_append(&inner, type.p, type.len) | put_short(&inner, DER_UTF8, lowered, len) |
		put_short(&outer, DER_SEQUENCE, inner.data, inner.len) | put_short(out, DER_SET, outer.data, outer.len);
	buf_free(&inner);
	buf_free(&outer);
	return r < 0 ? -1 : 0;
}

int trust_cert_hash(const struct trust_cert *c, uint32_t *ret, struct err *err)
{
	struct slice rest = c->subject, name, set;
	uint8_t digest[SHA1_SIZE];
	struct buf canonical;
	buf_init(&canonical, NAME_MAX_BYTES);
	int r = der_next(&rest, DER_SEQUENCE, NULL, &name);
	while (r == 0 && name.len > 0)
		r = der_next(&name, DER_SET, NULL, &set) < 0 || put_canonical_part(&canonical, set) < 0 ? -1 : 0;
	if (r == 0) {
		trust_sha1(canonical.data, canonical.len, digest);
		*ret = (uint32_t)digest[0] | (uint32_t)digest[1] << 8 | (uint32_t)digest[2] << 16 | (uint32_t)digest[3] << 24;
	}
	buf_free(&canonical);
	return r < 0 ? err_set(err, ERR_PROTOCOL, "the name in the sandbox's own certificate is not the plain text that the gate should have put there") : 0;
}
