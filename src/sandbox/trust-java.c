/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Java's keystore in its own form, JKS, which every Java reads, also where its default is PKCS#12 (keystore.type.compat). Big-endian:
 *   u32 0xfeedfeed | u32 version 2 | u32 n, n × entry | SHA-1 over the password in UTF-16, a constant and all before
 *   entry of a trusted certificate: u32 2 | UTF alias | u64 milliseconds since 1970 | UTF "X.509" | u32 length | DER;  UTF: u16 length, bytes
 */
#include <stdio.h>
#include <string.h>

#include "base/mem.h"
#include "sandbox/trust-internal.h"

#define JKS_MAGIC 0xfeedfeedu
#define JKS_VERSION 2u
#define JKS_HEAD 12u
#define JKS_TRUSTED 2u
#define JKS_CERT_TYPE "X.509"
#define BUNDLE_CERTS_MAX 4096u
#define BUNDLE_CERT_MAX (64u * 1024u)

static int put_utf(struct buf *b, const char *s)
{
	return buf_put_u16(b, (uint16_t)strlen(s)) < 0 || buf_append(b, s, strlen(s)) < 0 ? -1 : 0;
}

static int put_entry(struct buf *b, const char *alias, const void *der, size_t len)
{
	return buf_put_u32(b, JKS_TRUSTED) < 0 || put_utf(b, alias) < 0 || buf_put_u64(b, 0) < 0 || put_utf(b, JKS_CERT_TYPE) < 0 ||
			       buf_put_bytes(b, der, len) < 0
		       ? -1
		       : 0;
}

static int put_head(struct buf *b, uint32_t n)
{
	return buf_put_u32(b, JKS_MAGIC) < 0 || buf_put_u32(b, JKS_VERSION) < 0 || buf_put_u32(b, n) < 0 ? -1 : 0;
}

/* The host's entries as they are. 1, or 0: it is in another form. */
static int put_host(struct buf *b, const void *host, size_t len)
{
	struct cursor c = cursor_make(host, len);
	if (len < JKS_HEAD + SHA1_SIZE || cursor_u32(&c) != JKS_MAGIC || cursor_u32(&c) != JKS_VERSION)
		return 0;
	uint32_t n = cursor_u32(&c);
	if (n == UINT32_MAX)
		return 0;
	return put_head(b, n + 1) < 0 || buf_append(b, c.p, c.left - SHA1_SIZE) < 0 ? -1 : 1;
}

static uint32_t count_certs(const char *bundle)
{
	uint32_t n = 0;
	struct buf der;
	buf_init(&der, BUNDLE_CERT_MAX);
	while (n < BUNDLE_CERTS_MAX && trust_pem_next(&bundle, &der))
		n++;
	buf_free(&der);
	return n;
}

static int put_bundle(struct buf *b, const char *bundle)
{
	uint32_t n = count_certs(bundle);
	char alias[24];
	struct buf der;
	buf_init(&der, BUNDLE_CERT_MAX);
	int r = put_head(b, n + 1);
	for (uint32_t i = 0; r == 0 && i < n; i++) {
		trust_pem_next(&bundle, &der);
		snprintf(alias, sizeof(alias), "host-%u", i);
		r = put_entry(b, alias, der.data, der.len);
	}
	buf_free(&der);
	return r;
}

/* Programs that give a password give "changeit", everywhere; most give none, and Java doesn't look at the digest then. */
static int put_digest(struct buf *b)
{
	static const char password[] = "changeit", constant[] = "Mighty Aphrodite";
	uint8_t digest[SHA1_SIZE];
	struct buf all;
	buf_init(&all, b->len + 64);
	int r = 0;
	for (const char *c = password; *c; c++)
		r |= buf_put_u16(&all, (uint16_t)*c);
	r |= buf_append(&all, constant, strlen(constant)) | buf_append(&all, b->data, b->len);
	if (r == 0)
		trust_sha1(all.data, all.len, digest);
	buf_free(&all);
	return r < 0 || buf_append(b, digest, sizeof(digest)) < 0 ? -1 : 0;
}

int trust_java(struct buf *ret, const struct trust_cert *ca, const void *host, size_t host_len, const char *bundle)
{
	int r = put_host(ret, host, host_len);
	if (r == 0)
		r = put_bundle(ret, bundle);
	return r < 0 || put_entry(ret, TRUST_NAME, ca->der, ca->len) < 0 || put_digest(ret) < 0 ? -1 : 0;
}
