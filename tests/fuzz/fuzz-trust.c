/* SPDX-License-Identifier: Apache-2.0 */
/* The bytes are a certificate as the gate might send it, and a keystore as it might lie on the host. Whatever is made of them stays within its bounds. */
#include <sodium.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "sandbox/trust-internal.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void make_all(const struct trust_cert *c, const uint8_t *data, size_t size)
{
	struct buf java, certs;
	uint32_t hash;
	buf_init(&java, 1u << 20);
	buf_init(&certs, 1u << 20);
	trust_cert_hash(c, &hash, NULL);
	if (trust_java(&java, c, data, size, "") < 0 || java.len < c->len)
		abort();
	if (trust_nss_certs(&certs, c) == 0 && certs.len != 3 * 4096)
		abort();
	buf_free(&java);
	buf_free(&certs);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct trust_cert c;
	if (size > 2 * TRUST_CERT_MAX)
		return 0;
	/* As text, */
	char *text = mem_strndup((const char *)data, size);
	if (trust_cert_parse(&c, text, NULL) == 0)
		make_all(&c, data, size);
	mem_free(text);
	/* and as the bytes inside, which a fuzzer would not find through base64. */
	size_t n = sodium_base64_encoded_len(size, sodium_base64_VARIANT_ORIGINAL);
	char *base64 = mem_alloc(n);
	sodium_bin2base64(base64, n, data, size, sodium_base64_VARIANT_ORIGINAL);
	char *pem = mem_printf("-----BEGIN CERTIFICATE-----\n%s\n-----END CERTIFICATE-----\n", base64);
	if (trust_cert_parse(&c, pem, NULL) == 0)
		make_all(&c, data, size);
	mem_free(pem);
	mem_free(base64);
	return 0;
}
