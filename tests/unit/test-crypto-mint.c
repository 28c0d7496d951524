/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/x509v3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/mem.h"
#include "crypto/mint.h"
#include "crypto/tls.h"
#include "tls-rig.h"

static time_t ahead; /* of the real time */

/* In place of the C library's, also for OpenSSL: certificates must be seen to age. */
time_t time(time_t *ret)
{
	struct timespec now;
	clock_gettime(CLOCK_REALTIME, &now);
	if (ret)
		*ret = now.tv_sec + ahead;
	return now.tv_sec + ahead;
}

static struct mint *mint;
static X509 *authority;

static X509 *parse(const char *pem)
{
	BIO *bio = BIO_new_mem_buf(pem, -1);
	X509 *x = PEM_read_bio_X509(bio, NULL, NULL, NULL);
	BIO_free(bio);
	return x;
}

static int start(void **state)
{
	struct err err = ERR_INIT;
	if (tls_prepare(&err) < 0 || !(mint = mint_new("abcdefgh", &err)))
		return -1;
	authority = parse(mint_ca_pem(mint));
	return authority ? 0 : -1;
}

static int stop(void **state)
{
	X509_free(authority);
	mint_free(mint);
	return 0;
}

static X509 *leaf(struct mint *m, const char *host, enum mint_key key)
{
	void *x = NULL, *k = NULL;
	struct err err = ERR_INIT;
	if (mint_leaf(m, host, key, &x, &k, &err) < 0)
		fail_msg("%s: %s", host, err.text);
	assert_int_equal(X509_check_private_key(x, k), 1);
	return x;
}

static bool is_critical(X509 *x, int nid)
{
	int at = X509_get_ext_by_NID(x, nid, -1);
	assert_true(at >= 0);
	assert_int_equal(X509_get_ext_by_NID(x, nid, at), -1); /* once */
	return X509_EXTENSION_get_critical(X509_get_ext(x, at));
}

static void name_is(const X509_NAME *name, const char *organisation, const char *common_name)
{
	char text[128] = "";
	assert_true(X509_NAME_get_text_by_NID((X509_NAME *)name, NID_organizationName, text, sizeof(text)) > 0);
	assert_string_equal(text, organisation);
	int len = X509_NAME_get_text_by_NID((X509_NAME *)name, NID_commonName, text, sizeof(text));
	if (common_name)
		assert_string_equal(text, common_name);
	else
		assert_int_equal(len, -1);
}

/* The limit lies `seconds` from now, give or take the test's own minute. */
static void time_is(const ASN1_TIME *limit, long seconds)
{
	int days, rest;
	assert_int_equal(ASN1_TIME_diff(&days, &rest, NULL, limit), 1);
	long got = days * 86400L + rest;
	assert_true(got > seconds - 60 && got < seconds + 60);
}

static void serial_is_long(X509 *x)
{
	const ASN1_INTEGER *serial = X509_get0_serialNumber(x);
	assert_int_equal(ASN1_STRING_length(serial), 20);
	assert_int_equal(ASN1_STRING_get0_data(serial)[0] & 0x80, 0);
}

static void test_authority(void **state)
{
	assert_int_equal(X509_get_version(authority), X509_VERSION_3);
	name_is(X509_get_subject_name(authority), "Bulkhead", "Bulkhead sandbox abcdefgh");
	name_is(X509_get_issuer_name(authority), "Bulkhead", "Bulkhead sandbox abcdefgh");
	time_is(X509_get0_notBefore(authority), -86400);
	time_is(X509_get0_notAfter(authority), MINT_DAYS * 86400L);
	serial_is_long(authority);
	assert_true(is_critical(authority, NID_basic_constraints));
	assert_true(is_critical(authority, NID_key_usage));
	assert_false(is_critical(authority, NID_subject_key_identifier));
	assert_int_equal(X509_check_ca(authority), 1);
	assert_int_equal(X509_get_pathlen(authority), 0);
	assert_int_equal(X509_get_key_usage(authority), KU_KEY_CERT_SIGN | KU_CRL_SIGN);
	assert_non_null(X509_get0_subject_key_id(authority));
	assert_int_equal(X509_verify(authority, X509_get0_pubkey(authority)), 1);
	assert_int_equal(EVP_PKEY_get_bits(X509_get0_pubkey(authority)), 256);
	assert_int_equal(X509_get_ext_count(authority), 4);
	assert_null(strstr(mint_ca_pem(mint), "PRIVATE"));
}

static void san_is(X509 *x, int type, const void *value, size_t len)
{
	GENERAL_NAMES *names = X509_get_ext_d2i(x, NID_subject_alt_name, NULL, NULL);
	assert_int_equal(sk_GENERAL_NAME_num(names), 1);
	int got;
	const ASN1_STRING *s = GENERAL_NAME_get0_value(sk_GENERAL_NAME_value(names, 0), &got);
	assert_int_equal(got, type);
	assert_int_equal(ASN1_STRING_length(s), len);
	assert_memory_equal(ASN1_STRING_get0_data(s), value, len);
	GENERAL_NAMES_free(names);
}

static void leaf_is_complete(X509 *x, bool rsa)
{
	assert_int_equal(X509_get_version(x), X509_VERSION_3);
	assert_int_equal(X509_NAME_cmp(X509_get_issuer_name(x), X509_get_subject_name(authority)), 0);
	time_is(X509_get0_notBefore(x), -3600);
	assert_int_equal(ASN1_TIME_compare(X509_get0_notAfter(x), X509_get0_notAfter(authority)), 0);
	serial_is_long(x);
	assert_true(is_critical(x, NID_basic_constraints));
	assert_int_equal(X509_check_ca(x), 0);
	assert_true(is_critical(x, NID_key_usage));
	assert_int_equal(X509_get_key_usage(x), KU_DIGITAL_SIGNATURE | (rsa ? KU_KEY_ENCIPHERMENT : 0));
	is_critical(x, NID_ext_key_usage);
	assert_int_equal(X509_get_extended_key_usage(x), XKU_SSL_SERVER);
	assert_int_equal(X509_check_purpose(x, X509_PURPOSE_SSL_SERVER, 0), 1);
	assert_false(is_critical(x, NID_subject_alt_name));
	assert_non_null(X509_get0_subject_key_id(x));
	assert_int_equal(ASN1_OCTET_STRING_cmp(X509_get0_authority_key_id(x), X509_get0_subject_key_id(authority)), 0);
	assert_int_equal(X509_get_ext_count(x), 6);
	assert_int_equal(X509_verify(x, X509_get0_pubkey(authority)), 1);
	assert_int_equal(EVP_PKEY_get_base_id(X509_get0_pubkey(x)), rsa ? EVP_PKEY_RSA : EVP_PKEY_EC);
	assert_int_equal(EVP_PKEY_get_bits(X509_get0_pubkey(x)), rsa ? 2048 : 256);
	assert_int_equal(X509_get_signature_nid(x), NID_ecdsa_with_SHA256);
}

static void test_leaves(void **state)
{
	static const uint8_t v6[16] = { 0x20, 1, 0x0d, 0xb8, [15] = 7 };
	for (enum mint_key key = MINT_ECDSA; key <= MINT_RSA; key++) {
		X509 *x = leaf(mint, "a.example", key);
		leaf_is_complete(x, key == MINT_RSA);
		san_is(x, GEN_DNS, "a.example", 9);
		name_is(X509_get_subject_name(x), "Bulkhead", "a.example");
		x = leaf(mint, "192.0.2.7", key);
		leaf_is_complete(x, key == MINT_RSA);
		san_is(x, GEN_IPADD, "\xc0\x00\x02\x07", 4);
		x = leaf(mint, "2001:DB8:0::7", key);
		leaf_is_complete(x, key == MINT_RSA);
		san_is(x, GEN_IPADD, v6, sizeof(v6));
	}
}

/* The longest name there is does not fit into a common name; the one in the SAN is whole. */
static void test_long_names(void **state)
{
	char host[254];
	for (size_t i = 0; i < sizeof(host) - 1; i++)
		host[i] = i % 50 == 49 ? '.' : 'a';
	host[sizeof(host) - 1] = '\0';
	X509 *x = leaf(mint, host, MINT_ECDSA);
	leaf_is_complete(x, false);
	san_is(x, GEN_DNS, host, strlen(host));
	name_is(X509_get_subject_name(x), "Bulkhead", NULL);
	host[64] = '\0';
	host[62] = 'a';
	x = leaf(mint, host, MINT_ECDSA);
	name_is(X509_get_subject_name(x), "Bulkhead", host);
}

static void test_one_spelling(void **state)
{
	X509 *x = leaf(mint, "b.example", MINT_ECDSA);
	assert_ptr_equal(leaf(mint, "B.Example.", MINT_ECDSA), x);
	assert_ptr_equal(leaf(mint, "b.example", MINT_ECDSA), x);
	assert_ptr_not_equal(leaf(mint, "b.example", MINT_RSA), x);
	x = leaf(mint, "2001:db8::1", MINT_ECDSA);
	assert_ptr_equal(leaf(mint, "2001:DB8:0:0::1", MINT_ECDSA), x);
}

/* Nothing that isn't a host gets a certificate: neither a wildcard, nor a second value by way of the extension's syntax. */
static void test_bad_hosts(void **state)
{
	static const char *const hosts[] = { "", "*.example", "a.example,DNS:b.example", "a.example\n", "DNS:a.example", "a..example", "192.0.2.300",
		"[::1]", "a.example/24", "a b", "\xc3\xa9.example", "." };
	for (size_t i = 0; i < ARRAY_LEN(hosts); i++) {
		void *x = NULL, *k = NULL;
		struct err err = ERR_INIT;
		assert_int_equal(mint_leaf(mint, hosts[i], MINT_ECDSA, &x, &k, &err), -1);
		assert_null(x);
		assert_int_not_equal(strlen(err.text), 0);
	}
}

static void test_two_mints_share_nothing(void **state)
{
	struct err err = ERR_INIT;
	struct mint *other = mint_new("bcdefghi", &err);
	assert_non_null(other);
	X509 *theirs = parse(mint_ca_pem(other));
	X509 *x = leaf(other, "a.example", MINT_ECDSA), *ours = leaf(mint, "a.example", MINT_ECDSA);
	assert_int_not_equal(X509_verify(x, X509_get0_pubkey(authority)), 1);
	assert_int_equal(X509_verify(x, X509_get0_pubkey(theirs)), 1);
	assert_int_not_equal(EVP_PKEY_eq(X509_get0_pubkey(x), X509_get0_pubkey(ours)), 1);
	assert_int_not_equal(ASN1_INTEGER_cmp(X509_get0_serialNumber(x), X509_get0_serialNumber(ours)), 0);
	ERR_clear_error();
	X509_free(theirs);
	assert_null(mint_free(other));
	assert_null(mint_free(NULL));
}

static void test_keys_are_shared_by_leaves(void **state)
{
	void *x, *first, *second;
	for (enum mint_key key = MINT_ECDSA; key <= MINT_RSA; key++) {
		assert_int_equal(mint_leaf(mint, "k1.example", key, &x, &first, NULL), 0);
		assert_int_equal(mint_leaf(mint, "k2.example", key, &x, &second, NULL), 0);
		assert_ptr_equal(first, second);
	}
}

static ASN1_INTEGER *serial_of(struct mint *m, unsigned i)
{
	char host[32];
	snprintf(host, sizeof(host), "n%u.example", i);
	return ASN1_INTEGER_dup(X509_get0_serialNumber(leaf(m, host, MINT_ECDSA)));
}

/* Was the leaf kept? A serial number tells: it is random for each. */
static bool is_kept(struct mint *m, unsigned i, const ASN1_INTEGER *before)
{
	ASN1_INTEGER *now = serial_of(m, i);
	bool kept = ASN1_INTEGER_cmp(now, before) == 0;
	ASN1_INTEGER_free(now);
	return kept;
}

static void test_least_recently_used_goes(void **state)
{
	struct mint *m = mint_new("cdefghij", NULL);
	ASN1_INTEGER *serials[MINT_LEAVES_MAX + 1];
	for (unsigned i = 0; i < MINT_LEAVES_MAX; i++)
		serials[i] = serial_of(m, i);
	assert_true(is_kept(m, 0, serials[0])); /* used again: now 1 is the oldest */
	serials[MINT_LEAVES_MAX] = serial_of(m, MINT_LEAVES_MAX);
	assert_true(is_kept(m, 0, serials[0]));
	assert_true(is_kept(m, MINT_LEAVES_MAX, serials[MINT_LEAVES_MAX]));
	for (unsigned i = 2; i < MINT_LEAVES_MAX; i++)
		assert_true(is_kept(m, i, serials[i]));
	assert_false(is_kept(m, 1, serials[1]));
	for (unsigned i = 0; i <= MINT_LEAVES_MAX; i++)
		ASN1_INTEGER_free(serials[i]);
	mint_free(m);
}

static void test_an_old_authority(void **state)
{
	void *x, *key;
	struct err err = ERR_INIT;
	leaf(mint, "a.example", MINT_ECDSA);
	ahead = MINT_DAYS * 86400L - 3600;
	assert_int_equal(mint_leaf(mint, "a.example", MINT_ECDSA, &x, &key, &err), 0);
	ahead = MINT_DAYS * 86400L + 3600;
	assert_int_equal(mint_leaf(mint, "a.example", MINT_ECDSA, &x, &key, &err), -1);
	assert_string_equal(err.text, "the sandbox's certificate authority is 30 days old and no longer valid: start a new sandbox");
	assert_int_equal(mint_leaf(mint, "another.example", MINT_ECDSA, &x, &key, &err), -1);
	ahead = 0;
	assert_int_equal(mint_leaf(mint, "a.example", MINT_ECDSA, &x, &key, &err), 0);
}

static void write_pem(const char *dir, const char *name, const char *pem)
{
	char path[256];
	snprintf(path, sizeof(path), "%s/%s", dir, name);
	FILE *f = fopen(path, "we");
	assert_non_null(f);
	fputs(pem, f);
	fclose(f);
}

static int run(const char *format, const char *dir, const char *name, const char *host)
{
	char command[1024];
	snprintf(command, sizeof(command), "cd %s && { %s; } >out 2>&1", dir, format);
	setenv("LEAF", name, 1);
	setenv("HOST", host, 1);
	int status = system(command);
	return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

/* Whether a tool is there is asked first: without it there is no finding, but the library's own check above was made. */
static void check_with_tools(const char *dir, const char *name, const char *host, bool is_ip)
{
	const char *openssl = is_ip ? "openssl verify -x509_strict -purpose sslserver -verify_ip $HOST -CAfile ca $LEAF" :
		"openssl verify -x509_strict -purpose sslserver -verify_hostname $HOST -CAfile ca $LEAF";
	assert_int_equal(run("command -v openssl", dir, name, host), 0);
	if (run(openssl, dir, name, host) != 0)
		fail_msg("openssl refuses the certificate for %s", host);
	assert_int_not_equal(run("openssl verify -x509_strict -verify_hostname other.example -CAfile ca $LEAF", dir, name, host), 0);
	const char *gnutls = is_ip ? "certtool --verify --verify-profile=medium --load-ca-certificate=ca --infile=$LEAF" :
		"certtool --verify --verify-profile=medium --verify-hostname=$HOST --load-ca-certificate=ca --infile=$LEAF";
	if (run("command -v certtool", dir, name, host) == 0 && run(gnutls, dir, name, host) != 0)
		fail_msg("certtool refuses the certificate for %s", host);
	if (run("command -v vfychain", dir, name, host) == 0 &&
		run("vfychain -pp -u 1 -a $LEAF -t ca", dir, name, host) != 0)
		fail_msg("vfychain refuses the certificate for %s", host);
}

static void test_with_tools(void **state)
{
	char dir[] = "/tmp/mint.XXXXXX";
	assert_non_null(mkdtemp(dir));
	write_pem(dir, "ca", mint_ca_pem(mint));
	static const char *const hosts[] = { "a.example", "192.0.2.7", "2001:db8::7",
		"a-name-that-is-longer-than-a-common-name-may-be.but-shorter-than-253.example" };
	for (size_t i = 0; i < ARRAY_LEN(hosts); i++)
		for (enum mint_key key = MINT_ECDSA; key <= MINT_RSA; key++) {
			char *pem = rig_pem(leaf(mint, hosts[i], key));
			write_pem(dir, "leaf", pem);
			mem_free(pem);
			check_with_tools(dir, "leaf", hosts[i], i == 1 || i == 2);
		}
	assert_int_equal(run("rm -f ca leaf", dir, "leaf", ""), 0);
	char out[64];
	snprintf(out, sizeof(out), "%s/out", dir);
	unlink(out);
	assert_int_equal(rmdir(dir), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_authority),
		cmocka_unit_test(test_leaves),
		cmocka_unit_test(test_long_names),
		cmocka_unit_test(test_one_spelling),
		cmocka_unit_test(test_bad_hosts),
		cmocka_unit_test(test_two_mints_share_nothing),
		cmocka_unit_test(test_keys_are_shared_by_leaves),
		cmocka_unit_test(test_least_recently_used_goes),
		cmocka_unit_test(test_an_old_authority),
		cmocka_unit_test(test_with_tools),
	};
	return cmocka_run_group_tests(tests, start, stop);
}
