/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <openssl/pem.h>
#include <openssl/x509v3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/mem.h"
#include "crypto/internal.h"
#include "tls-rig.h"

static char dir[] = "/tmp/roots.XXXXXX";
static struct rig_pair first, second; /* two authorities of one name: keys change */
static char *first_pem, *second_pem;

/* A configuration that would leave the library without any algorithm: whoever sets our environment must not choose what we trust. */
static void set_hostile_configuration(void)
{
	static const char text[] = "openssl_conf = init\n[init]\nproviders = list\n[list]\nbase = base\n[base]\nactivate = 1\n";
	char path[64];
	int fd = memfd_create("openssl.cnf", 0);
	assert_true(fd >= 0 && write(fd, text, sizeof(text) - 1) == (ssize_t)sizeof(text) - 1);
	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	setenv("OPENSSL_CONF", path, 1);
}

static int start(void **state)
{
	set_hostile_configuration();
	struct err err = ERR_INIT;
	const struct rig_cert ca = { .common_name = "Test Authority", .basic = "critical,CA:TRUE" };
	if (tls_prepare(&err) < 0 || !mkdtemp(dir))
		return -1;
	first = rig_make(&ca, NULL);
	second = rig_make(&ca, NULL);
	first_pem = rig_pem(first.x509);
	second_pem = rig_pem(second.x509);
	return 0;
}

static int stop(void **state)
{
	rig_pair_done(&first);
	rig_pair_done(&second);
	mem_free(first_pem);
	mem_free(second_pem);
	return rmdir(dir);
}

static const char *in_dir(const char *name)
{
	static char path[128];
	snprintf(path, sizeof(path), "%s/%s", dir, name);
	return path;
}

static void put(const char *name, const char *a, const char *b, const char *c)
{
	FILE *f = fopen(in_dir(name), "we");
	assert_non_null(f);
	fprintf(f, "%s%s%s", a, b, c);
	fclose(f);
}

static void name_places(const char *file, const char *folders)
{
	file ? setenv("SSL_CERT_FILE", file, 1) : unsetenv("SSL_CERT_FILE");
	folders ? setenv("SSL_CERT_DIR", folders, 1) : unsetenv("SSL_CERT_DIR");
}

static struct tls_roots *read_roots(void)
{
	struct err err = ERR_INIT;
	struct tls_roots *r = tls_roots_read(&err);
	if (!r)
		fail_msg("%s", err.text);
	return r;
}

static void refused(const char *part, const char *other_part)
{
	struct err err = ERR_INIT;
	assert_null(tls_roots_read(&err));
	if (!strstr(err.text, part) || !strstr(err.text, other_part))
		fail_msg("\"%s\" lacks \"%s\" or \"%s\"", err.text, part, other_part);
}

static bool verifies(const struct tls_roots *roots, const struct rig_pair *issuer)
{
	struct rig_pair leaf = rig_make(&(struct rig_cert){ .san = "DNS:a.example" }, issuer);
	struct rig_peer p = rig_server(&leaf, NULL);
	struct tls *t = tls_client_new(roots, "a.example", "", NULL);
	bool open = rig_run(t, &p, 4096);
	assert_int_equal(tls_error_is_certificate(t), !open);
	tls_free(t);
	rig_peer_done(&p);
	rig_pair_done(&leaf);
	return open;
}

static void test_file(void **state)
{
	put("file", "A remark.\n", first_pem, "another remark\n");
	name_places(in_dir("file"), NULL);
	struct tls_roots *r = read_roots();
	assert_true(verifies(r, &first));
	assert_false(verifies(r, &second));
	/* Nothing is read later. */
	assert_int_equal(unlink(in_dir("file")), 0);
	assert_true(verifies(r, &first));
	tls_roots_free(r);
}

static void test_two_keys_of_one_name(void **state)
{
	put("file", first_pem, second_pem, "");
	name_places(in_dir("file"), NULL);
	struct tls_roots *r = read_roots();
	assert_true(verifies(r, &second));
	assert_true(verifies(r, &first));
	assert_true(verifies(r, &second));
	tls_roots_free(r);
	/* One in the base, one besides. */
	put("file", first_pem, "", "");
	r = read_roots();
	struct tls_roots *with = tls_roots_with(r, second_pem, strlen(second_pem), NULL);
	assert_non_null(with);
	assert_true(verifies(with, &first));
	assert_true(verifies(with, &second));
	assert_false(verifies(r, &second));
	tls_roots_free(with);
	tls_roots_free(r);
	unlink(in_dir("file"));
}

static void test_folder(void **state)
{
	char hashed[32], list[256];
	snprintf(hashed, sizeof(hashed), "%08lx.0", X509_NAME_hash_ex(X509_get_subject_name(first.x509), NULL, NULL, NULL));
	put(hashed, first_pem, "", "");
	put("not-looked-at.pem", second_pem, "", "");
	snprintf(list, sizeof(list), "/nonexistent:%s", dir);
	name_places(NULL, list);
	struct tls_roots *r = read_roots();
	assert_true(verifies(r, &first));
	assert_false(verifies(r, &second));
	tls_roots_free(r);
	unlink(in_dir(hashed));
	unlink(in_dir("not-looked-at.pem"));
	name_places(NULL, dir);
	refused("no certificate of an authority is in $SSL_CERT_FILE (not set) or $SSL_CERT_DIR (/tmp/roots.", "cannot be verified");
}

static void test_bad_files(void **state)
{
	name_places(in_dir("missing"), NULL);
	refused("missing", "No such file");
	put("empty", "", "", "");
	name_places(in_dir("empty"), NULL);
	refused("no certificate of an authority is in $SSL_CERT_FILE", "empty");
	unlink(in_dir("empty"));
	put("broken", first_pem, "-----BEGIN CERTIFICATE-----\nMIIB!!!\n-----END CERTIFICATE-----\n", "");
	name_places(in_dir("broken"), NULL);
	refused("broken", "number 2");
	unlink(in_dir("broken"));
	put("cut", first_pem, "-----BEGIN CERTIFICATE-----\nMIIB", "");
	name_places(in_dir("cut"), NULL);
	refused("cut", "number 2");
	unlink(in_dir("cut"));
	/* Other kinds of block are no authorities. */
	put("other", "-----BEGIN X509 CRL-----\nAAAA\n-----END X509 CRL-----\n", "", "");
	name_places(in_dir("other"), NULL);
	refused("no certificate of an authority", "other");
	unlink(in_dir("other"));
}

/* What is no certificate inside a well-formed block vouches for nothing, whatever name it is asked under. */
static void test_rubbish_inside(void **state)
{
	static const char *const rubbish[] = { "AAAA", "MAA=", "MAIwAA==", "MIIBAA==", "MCAwHgIBATAAMAAwADAAMAA=", "////" };
	for (size_t i = 0; i < ARRAY_LEN(rubbish); i++) {
		char block[128];
		snprintf(block, sizeof(block), "-----BEGIN CERTIFICATE-----\n%s\n-----END CERTIFICATE-----\n", rubbish[i]);
		put("file", block, first_pem, block);
		name_places(in_dir("file"), NULL);
		struct tls_roots *r = read_roots();
		assert_true(verifies(r, &first));
		assert_false(verifies(r, &second));
		tls_roots_free(r);
		assert_int_equal(tls_check_pem(block, strlen(block), NULL), -1);
	}
	unlink(in_dir("file"));
}

/* Every authority of this host is found by its name, which we read ourselves: the library, which reads whole certificates, agrees. */
static void test_host(void **state)
{
	name_places(NULL, NULL);
	struct tls_roots *r = read_roots();
	X509_STORE *store = SSL_CTX_get_cert_store(tls_roots_context(r));
	X509_STORE_CTX *ctx = X509_STORE_CTX_new();
	assert_int_equal(X509_STORE_CTX_init(ctx, store, NULL, NULL), 1);
	BIO *bio = BIO_new_file("/etc/ssl/certs/ca-certificates.crt", "r");
	if (!bio)
		skip();
	/* None is parsed before it is asked for: that would take most of the start. */
	assert_int_equal(sk_X509_OBJECT_num(X509_STORE_get0_objects(store)), 0);
	unsigned seen = 0;
	for (X509 *x; (x = PEM_read_bio_X509(bio, NULL, NULL, NULL)); X509_free(x), seen++) {
		STACK_OF(X509) *found = X509_STORE_CTX_get1_certs(ctx, X509_get_subject_name(x));
		bool same = false;
		for (int i = 0; i < sk_X509_num(found); i++)
			same |= X509_cmp(sk_X509_value(found, i), x) == 0;
		assert_true(same);
		assert_true(sk_X509_OBJECT_num(X509_STORE_get0_objects(store)) <= (int)seen + 3);
		sk_X509_pop_free(found, X509_free);
	}
	assert_true(seen > 10);
	assert_int_equal(seen, sk_X509_OBJECT_num(X509_STORE_get0_objects(store)));
	BIO_free(bio);
	X509_STORE_CTX_free(ctx);
	assert_false(verifies(r, &first));
	tls_roots_free(r);
}

static void test_check_pem(void **state)
{
	static const char key[] = "-----BEGIN PRIVATE KEY-----\nAAAA\n-----END PRIVATE KEY-----\n";
	static const char trusted[] = "-----BEGIN TRUSTED CERTIFICATE-----\nAAAA\n-----END TRUSTED CERTIFICATE-----\n";
	const struct { const char *a, *b, *c; int want; } cases[] = {
		{ first_pem, "", "", 0 },
		{ first_pem, second_pem, "", 0 },
		{ " \r\n\t", first_pem, "\n\n", 0 },
		{ "", "", "", -1 },
		{ "\n", "", "", -1 },
		{ "no certificate", "", "", -1 },
		{ "a remark\n", first_pem, "", -1 },
		{ first_pem, "a remark\n", second_pem, -1 },
		{ first_pem, key, "", -1 },
		{ key, first_pem, "", -1 },
		{ trusted, "", "", -1 },
		{ first_pem, trusted, first_pem, -1 },
		{ first_pem, "-----BEGIN CERTIFICATE-----\n", "", -1 },
		{ "-----BEGIN CERTIFICATE-----\n", first_pem, "", -1 },
		{ "-----BEGIN CERTIFICATE-----\n-----END CERTIFICATE-----\n", "", "", -1 },
		{ "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n", "", "", -1 },
		{ "-----END CERTIFICATE-----\n", "", "", -1 },
		{ "-----BEGIN CERTIFICATE-----x\nAAAA\n-----END CERTIFICATE-----\n", "", "", -1 },
		{ "-----BEGIN CERTIFICATE-----", "", "", -1 },
	};
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		cleanup_free char *pem = mem_printf("%s%s%s", cases[i].a, cases[i].b, cases[i].c);
		struct err err = ERR_INIT;
		if (tls_check_pem(pem, strlen(pem), &err) != cases[i].want)
			fail_msg("case %zu: %s", i, err.text);
		assert_int_equal(err.code, cases[i].want ? ERR_INVALID : ERR_NONE);
	}
	cleanup_free char *zero = mem_printf("%s %s", first_pem, second_pem);
	zero[strlen(first_pem)] = '\0';
	assert_int_equal(tls_check_pem(zero, strlen(first_pem) + 1 + strlen(second_pem), NULL), -1);
}

/* All bytes behind the certificate inside its block are refused too. */
static void test_bytes_behind(void **state)
{
	uint8_t *der = NULL;
	int len = i2d_X509(first.x509, &der);
	BIO *bio = BIO_new(BIO_s_mem());
	uint8_t *longer = mem_alloc((size_t)len + 1);
	memcpy(longer, der, (size_t)len);
	PEM_write_bio(bio, PEM_STRING_X509, "", longer, len + 1);
	char *pem;
	long pem_len = BIO_get_mem_data(bio, &pem);
	assert_int_equal(tls_check_pem(pem, (size_t)pem_len, NULL), -1);
	assert_null(tls_roots_with(NULL, pem, (size_t)pem_len, NULL));
	BIO_free(bio);
	mem_free(longer);
	OPENSSL_free(der);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_file),
		cmocka_unit_test(test_two_keys_of_one_name),
		cmocka_unit_test(test_folder),
		cmocka_unit_test(test_bad_files),
		cmocka_unit_test(test_rubbish_inside),
		cmocka_unit_test(test_host),
		cmocka_unit_test(test_check_pem),
		cmocka_unit_test(test_bytes_behind),
	};
	return cmocka_run_group_tests(tests, start, stop);
}
