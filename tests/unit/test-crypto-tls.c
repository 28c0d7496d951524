/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <openssl/err.h>
#include <openssl/x509v3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "crypto/tls.h"
#include "tls-rig.h"

static struct mint *mint;
static struct tls_roots *host_roots;  /* of this machine */
static struct rig_pair authority;     /* of the test servers */
static struct tls_roots *test_roots;  /* the machine's and that */

static int start(void **state)
{
	struct err err = ERR_INIT;
	if (tls_prepare(&err) < 0 || !(host_roots = tls_roots_read(&err)) || !(mint = mint_new("abcdefgh", &err))) {
		print_error("%s\n", err.text);
		return -1;
	}
	authority = rig_make(&(struct rig_cert){ .common_name = "Test Authority", .basic = "critical,CA:TRUE" }, NULL);
	char *pem = rig_pem(authority.x509);
	test_roots = tls_roots_with(host_roots, pem, strlen(pem), &err);
	mem_free(pem);
	return test_roots ? 0 : -1;
}

static int stop(void **state)
{
	tls_roots_free(test_roots);
	tls_roots_free(host_roots);
	mint_free(mint);
	rig_pair_done(&authority);
	return 0;
}

static struct tls *client(const struct tls_roots *roots, const char *host, const char *alpn)
{
	struct err err = ERR_INIT;
	struct tls *t = tls_client_new(roots, host, alpn, &err);
	if (!t)
		fail_msg("%s", err.text);
	return t;
}

static struct tls *server(const char *host, const char *alpn)
{
	struct err err = ERR_INIT;
	struct tls *t = tls_server_new(mint, host, alpn, &err);
	if (!t)
		fail_msg("%s", err.text);
	return t;
}

static void test_ours_to_ours(void **state)
{
	struct err err = ERR_INIT;
	const char *pem = mint_ca_pem(mint);
	struct tls_roots *roots = tls_roots_with(host_roots, pem, strlen(pem), &err);
	assert_non_null(roots);
	static const char *const hosts[] = { "a.example", "192.0.2.7", "2001:db8::7", "xn--bcher-kva.example" };
	for (size_t i = 0; i < ARRAY_LEN(hosts); i++)
		for (size_t chunk = 1; chunk <= 100000; chunk = chunk < 8 ? chunk + 1 : chunk * 7) {
			struct tls *c = client(roots, hosts[i], "h2,http/1.1"), *s = server(hosts[i], "h2,http/1.1");
			bool open = rig_run_ours(c, s, chunk);
			if (!open)
				print_error("%s | %s\n", tls_error(c)->text, tls_error(s)->text);
			assert_true(open);
			assert_string_equal(tls_alpn(c), "h2");
			assert_string_equal(tls_alpn(s), "h2");
			tls_free(c);
			tls_free(s);
		}
	tls_roots_free(roots);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_ours_to_ours),
	};
	return cmocka_run_group_tests(tests, start, stop);
}
