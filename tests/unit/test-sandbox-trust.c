/* SPDX-License-Identifier: Apache-2.0 */
/* A trust store for hosts laid out as Debian, Fedora, Arch and an empty one lay them out; what is wrong with a certificate or a host's file. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/mem.h"
#include "sandbox/trust-internal.h"
#include "sandbox/trust.h"

/* openssl req -x509 -newkey ec …; hashes and lengths as `openssl x509 -hash` and -outform der tell them. */
static const char one[] = /* CN=Bulkhead sandbox abcdefgh2345 */
	"-----BEGIN CERTIFICATE-----\n"
	"MIIBpjCCAUugAwIBAgIUSrO0feDt+j7AnDIsmabqDzblIs0wCgYIKoZIzj0EAwIw\n"
	"KDEmMCQGA1UEAwwdQnVsa2hlYWQgc2FuZGJveCBhYmNkZWZnaDIzNDUwHhcNMjYx\n"
	"MTMwMjI1MDIxWhcNMzYxMTI3MjI1MDIxWjAoMSYwJAYDVQQDDB1CdWxraGVhZCBz\n"
	"YW5kYm94IGFiY2RlZmdoMjM0NTBZMBMGByqGSM49AgEGCCqGSM49AwEHA0IABGAI\n"
	"6INhBVFki4OY8JX6UCIKJnKsnceskC4SeFmS8/S2QnYij1kB6SIgGhK9ZBsuLCLQ\n"
	"lRPG/T78AXz52pYqx2CjUzBRMB0GA1UdDgQWBBSblQLMhEidGTlKtY9zgswexXh/\n"
	"nTAfBgNVHSMEGDAWgBSblQLMhEidGTlKtY9zgswexXh/nTAPBgNVHRMBAf8EBTAD\n"
	"AQH/MAoGCCqGSM49BAMCA0kAMEYCIQCxyfTRlOD/yN/Z0k6NB9TUimR/NxG3T9MO\n"
	"pCYdZVx4YQIhALSAmRWNpaOSJXHtzz/Yevcl1UBeVIlDXZ8Pos6Yhr5E\n"
	"-----END CERTIFICATE-----\n";
#define ONE_HASH 0xcb8e45a4u
#define ONE_LENGTH 426u
static const char two[] = /* C=DE, O=Bulk   Head, OU= Two words , CN=Mixed CASE */
	"-----BEGIN CERTIFICATE-----\n"
	"MIIB8TCCAZegAwIBAgIUeb2ur5jOCJtToVZzyYHHwDBRXCswCgYIKoZIzj0EAwIw\n"
	"TjELMAkGA1UEBhMCREUxFDASBgNVBAoMC0J1bGsgICBIZWFkMRQwEgYDVQQLDAsg\n"
	"VHdvIHdvcmRzIDETMBEGA1UEAwwKTWl4ZWQgQ0FTRTAeFw0yNjExMzAyMjUwMjFa\n"
	"Fw0zNjExMjcyMjUwMjFaME4xCzAJBgNVBAYTAkRFMRQwEgYDVQQKDAtCdWxrICAg\n"
	"SGVhZDEUMBIGA1UECwwLIFR3byB3b3JkcyAxEzARBgNVBAMMCk1peGVkIENBU0Uw\n"
	"WTATBgcqhkjOPQIBBggqhkjOPQMBBwNCAAShhXwLj6dZpRyKkq2GMrDFkpNWytXw\n"
	"nUz5jw1nUMYTWAQli4EAKKZfz6J3hzZBNAhWU6aUa7y3y6qmH+FAXYz0o1MwUTAd\n"
	"BgNVHQ4EFgQUfOsO0nydnNwtxSQbkxMisjXz48owHwYDVR0jBBgwFoAUfOsO0nyd\n"
	"nNwtxSQbkxMisjXz48owDwYDVR0TAQH/BAUwAwEB/zAKBggqhkjOPQQDAgNIADBF\n"
	"AiAm1Hf5wjda+X3G6BoH5gohVHRCdSrhRvs2N8xWWKo0UQIhAPiI2/DerjpHo4y4\n"
	"R9njHrJfxL0uYD3a3CK5cH2Kivub\n"
	"-----END CERTIFICATE-----\n";
#define TWO_HASH 0x13ef8829u
static const char unicode[] = /* CN=Zürich */
	"-----BEGIN CERTIFICATE-----\n"
	"MIIBejCCAR+gAwIBAgIUfDrS4PlpdeU4N8M9DmIntKPwK90wCgYIKoZIzj0EAwIw\n"
	"EjEQMA4GA1UEAwwHWsO8cmljaDAeFw0yNjExMzAyMjUwMjFaFw0zNjExMjcyMjUw\n"
	"MjFaMBIxEDAOBgNVBAMMB1rDvHJpY2gwWTATBgcqhkjOPQIBBggqhkjOPQMBBwNC\n"
	"AARvtjzceVGMp7UltdhDXCOF7ejkaUHFN/5jG76ELet3qI0WHppnPLH5AFzwU343\n"
	"5yDyPg23wsGRfDDYSWgn29dGo1MwUTAdBgNVHQ4EFgQUtHfT7sBNlJmcVAHH1gQH\n"
	"MJCm3MgwHwYDVR0jBBgwFoAUtHfT7sBNlJmcVAHH1gQHMJCm3MgwDwYDVR0TAQH/\n"
	"BAUwAwEB/zAKBggqhkjOPQQDAgNJADBGAiEA+AeYscLCviLoEvH5TuEa7Hfht0O2\n"
	"Vk7av1i3HpPfdpYCIQCdn3ofHK40mc3L7nUVhj2996bNYWFF3+6C7Wb0wKyQGA==\n"
	"-----END CERTIFICATE-----\n";
static const char multi[] = /* two attributes in one part */
	"-----BEGIN CERTIFICATE-----\n"
	"MIIBgDCCASegAwIBAgIUXLo6xBUTUwsJziOTs70kZIuCT64wCgYIKoZIzj0EAwIw\n"
	"FjEUMAgGA1UEAwwBYTAIBgNVBAoMAWIwHhcNMjYxMTMwMjI1MDIyWhcNMzYxMTI3\n"
	"MjI1MDIyWjAWMRQwCAYDVQQDDAFhMAgGA1UECgwBYjBZMBMGByqGSM49AgEGCCqG\n"
	"SM49AwEHA0IABGN5DPlf1jtwLNbnxd0zuWnD2o4/X9ymo/JXYQdnv/w0gnthyneE\n"
	"grPRVnz1IGgSOJ84jWPRkQvl77RhS7V0PWijUzBRMB0GA1UdDgQWBBQEAQ54HpQx\n"
	"EVESHhLJ2eGW0l9ZGDAfBgNVHSMEGDAWgBQEAQ54HpQxEVESHhLJ2eGW0l9ZGDAP\n"
	"BgNVHRMBAf8EBTADAQH/MAoGCCqGSM49BAMCA0cAMEQCIEuHnj+ny+anEPv8iAlF\n"
	"rxcgUl0caFi5//hxvWeM8V5hAiApixMx6f+mQ9hOmi4/dzyqoYOy5ek79stbadlu\n"
	"ukyuXA==\n"
	"-----END CERTIFICATE-----\n";

/* ---- a host ---- */

static int make_root(void **state)
{
	char path[] = "/tmp/bulkhead-trust-XXXXXX";
	assert_non_null(mkdtemp(path));
	int *root = malloc(sizeof(*root));
	*root = open(path, O_PATH | O_DIRECTORY | O_CLOEXEC);
	*state = root;
	return *root < 0;
}

static int remove_root(void **state)
{
	int *root = *state;
	char link[40], path[4096];
	snprintf(link, sizeof(link), "/proc/self/fd/%d", *root);
	ssize_t n = readlink(link, path, sizeof(path) - 1);
	path[n > 0 ? n : 0] = '\0';
	close(*root);
	free(root);
	cleanup_fd int tmp = open("/tmp", O_PATH | O_DIRECTORY | O_CLOEXEC);
	return n <= 0 || path_remove_tree(tmp, path + strlen("/tmp/")) < 0;
}

static void make_folder(int root, const char *path)
{
	char parent[256];
	snprintf(parent, sizeof(parent), "%.*s", (int)(strrchr(path, '/') - path), path);
	assert_int_equal(path_mkdir_beneath(root, parent, 0755), 0);
}

static void put(int root, const char *path, const void *data, size_t len)
{
	make_folder(root, path);
	cleanup_fd int fd = openat(root, path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
	assert_true(fd >= 0);
	assert_int_equal(fd_write_full(fd, data, len), 0);
}

static void put_text(int root, const char *path, const char *text)
{
	put(root, path, text, strlen(text));
}

static void put_link(int root, const char *path, const char *target)
{
	make_folder(root, path);
	assert_int_equal(symlinkat(target, root, path), 0);
}

/* ---- what came of it ---- */

struct result { struct spec spec; int fds[SPEC_FILES_MAX]; };

static struct result made(int root, const char *pem)
{
	struct result r = { 0 };
	struct err err = ERR_INIT;
	if (trust_add(&r.spec, r.fds, pem, root, &err) < 0)
		fail_msg("%s", err.text);
	for (size_t i = r.spec.n_files; i < SPEC_FILES_MAX; i++)
		assert_int_equal(r.fds[i], -1);
	return r;
}

static void done(struct result *r)
{
	for (size_t i = 0; i < SPEC_FILES_MAX; i++)
		fd_close(&r->fds[i]);
	spec_done(&r->spec);
}

static char *content(const struct result *r, const char *path, size_t *ret_len)
{
	for (size_t i = 0; i < r->spec.n_files; i++) {
		struct stat st;
		if (!str_eq(r->spec.files[i], path))
			continue;
		assert_int_equal(fstat(r->fds[i], &st), 0);
		char *data = mem_alloc((size_t)st.st_size + 1);
		assert_int_equal(pread(r->fds[i], data, (size_t)st.st_size, 0), st.st_size);
		if (ret_len)
			*ret_len = (size_t)st.st_size;
		return data;
	}
	fail_msg("there is no %s", path);
	return NULL;
}

static void assert_content(const struct result *r, const char *path, const char *wanted)
{
	cleanup_free char *got = content(r, path, NULL);
	assert_string_equal(got, wanted);
}

/* The files, each a place that the launcher takes, and no others. */
static void assert_files(const struct result *r, const char *const *wanted, size_t n)
{
	struct spec s = r->spec;
	for (size_t i = 0; i < n; i++)
		mem_free(content(r, wanted[i], NULL));
	assert_int_equal(s.n_files, n);
	for (size_t i = 0; i < n; i++)
		for (size_t j = 0; j < i; j++)
			assert_string_not_equal(s.files[i], s.files[j]);
}
#define assert_exactly(r, ...) \
	assert_files(r, (const char *const[]){ __VA_ARGS__ }, sizeof((const char *const[]){ __VA_ARGS__ }) / sizeof(char *))

/* ---- layouts ---- */

static void debian(void **state)
{
	int root = *(int *)*state;
	put_text(root, "usr/share/ca-certificates/host.crt", two);
	put_link(root, "etc/ssl/certs/host.pem", "/usr/share/ca-certificates/host.crt");
	put_text(root, "etc/ssl/certs/ca-certificates.crt", two);
	struct result r = made(root, one);
	assert_exactly(&r, "etc/ssl/certs/ca-certificates.crt", "etc/ssl/certs/bulkhead-sandbox.pem", "etc/ssl/certs/cb8e45a4.0");
	cleanup_free char *both = mem_printf("%s%s", two, one);
	assert_content(&r, "etc/ssl/certs/ca-certificates.crt", both);
	assert_content(&r, "etc/ssl/certs/bulkhead-sandbox.pem", one);
	assert_content(&r, "etc/ssl/certs/cb8e45a4.0", one);
	done(&r);
}

/* A bundle that doesn't end its last line, and somebody else's certificate under our hash. */
static void neighbours(void **state)
{
	int root = *(int *)*state;
	put(root, "etc/ssl/certs/ca-certificates.crt", two, strlen(two) - 1);
	put_text(root, "etc/ssl/certs/cb8e45a4.0", two);
	put_link(root, "etc/ssl/certs/cb8e45a4.1", "cb8e45a4.0");
	struct result r = made(root, one);
	cleanup_free char *both = mem_printf("%s%s", two, one);
	assert_content(&r, "etc/ssl/certs/ca-certificates.crt", both);
	assert_exactly(&r, "etc/ssl/certs/ca-certificates.crt", "etc/ssl/certs/bulkhead-sandbox.pem", "etc/ssl/certs/cb8e45a4.2");
	done(&r);
}

/* Files go where the links lead, so that the links need no change. */
static void fedora(void **state)
{
	int root = *(int *)*state;
	put_text(root, "etc/pki/ca-trust/extracted/pem/tls-ca-bundle.pem", two);
	put_text(root, "etc/pki/ca-trust/extracted/openssl/ca-bundle.trust.crt", "# trust\n");
	put_text(root, "etc/pki/ca-trust/extracted/java/cacerts", "\x30 some PKCS#12");
	put_link(root, "etc/pki/tls/certs/ca-bundle.crt", "/etc/pki/ca-trust/extracted/pem/tls-ca-bundle.pem");
	put_link(root, "etc/pki/tls/certs/ca-bundle.trust.crt", "/etc/pki/ca-trust/extracted/openssl/ca-bundle.trust.crt");
	put_link(root, "etc/ssl/certs", "../pki/tls/certs");
	struct result r = made(root, one);
	assert_exactly(&r, "etc/pki/tls/certs/ca-certificates.crt", "etc/pki/ca-trust/extracted/pem/tls-ca-bundle.pem",
		"etc/pki/ca-trust/extracted/openssl/ca-bundle.trust.crt", "etc/pki/tls/certs/bulkhead-sandbox.pem", "etc/pki/tls/certs/cb8e45a4.0",
		"etc/pki/ca-trust/extracted/java/cacerts");
	cleanup_free char *both = mem_printf("%s%s", two, one), *trust = mem_printf("# trust\n%s", one);
	assert_content(&r, "etc/pki/ca-trust/extracted/pem/tls-ca-bundle.pem", both);
	assert_content(&r, "etc/pki/ca-trust/extracted/openssl/ca-bundle.trust.crt", trust);
	/* Not Fedora's own name, but the one that our variables name: with the host's roots, too. */
	assert_content(&r, "etc/pki/tls/certs/ca-certificates.crt", both);
	done(&r);
}

/* The bundle is a link to where the box doesn't look: a file takes the link's place. */
static void arch(void **state)
{
	int root = *(int *)*state;
	put_text(root, "etc/ca-certificates/extracted/tls-ca-bundle.pem", two);
	put_link(root, "etc/ssl/certs/ca-certificates.crt", "../../ca-certificates/extracted/tls-ca-bundle.pem");
	struct result r = made(root, one);
	cleanup_free char *both = mem_printf("%s%s", two, one);
	assert_content(&r, "etc/ssl/certs/ca-certificates.crt", both);
	assert_exactly(&r, "etc/ssl/certs/ca-certificates.crt", "etc/ssl/certs/bulkhead-sandbox.pem", "etc/ssl/certs/cb8e45a4.0");
	done(&r);
}

/* The whole folder is one: what the box would see of it is nothing but ours. */
static void suse(void **state)
{
	int root = *(int *)*state;
	put_text(root, "var/lib/ca-certificates/pem/host.pem", two);
	put_text(root, "var/lib/ca-certificates/ca-bundle.pem", two);
	put_link(root, "etc/ssl/certs", "/var/lib/ca-certificates/pem");
	put_link(root, "etc/ssl/ca-bundle.pem", "/var/lib/ca-certificates/ca-bundle.pem");
	struct result r = made(root, one);
	cleanup_free char *both = mem_printf("%s%s", two, one);
	assert_content(&r, "etc/ssl/certs/ca-certificates.crt", both);
	assert_exactly(&r, "etc/ssl/certs/ca-certificates.crt", "etc/ssl/certs/bulkhead-sandbox.pem", "etc/ssl/certs/cb8e45a4.0");
	done(&r);
}

static void no_certificates(void **state)
{
	int root = *(int *)*state;
	struct result r = made(root, one);
	assert_content(&r, "etc/ssl/certs/ca-certificates.crt", one);
	assert_exactly(&r, "etc/ssl/certs/ca-certificates.crt", "etc/ssl/certs/bulkhead-sandbox.pem", "etc/ssl/certs/cb8e45a4.0");
	done(&r);
}

/* Links of the host that lead in circles, or to nothing, count as nothing. */
static void broken_links(void **state)
{
	int root = *(int *)*state;
	put_link(root, "etc/ssl/certs/ca-certificates.crt", "ca-certificates.crt");
	put_link(root, "etc/pki/tls/certs/ca-bundle.crt", "/nowhere");
	struct result r = made(root, one);
	assert_content(&r, "etc/ssl/certs/ca-certificates.crt", one);
	done(&r);
}

/* ---- Java ---- */

static uint32_t u32(const char *p)
{
	struct cursor c = cursor_make(p, 4);
	return cursor_u32(&c);
}

/* The number of entries; every one is looked at, and the digest. */
static uint32_t check_keystore(const char *data, size_t len, const char *last_alias)
{
	static const char prefix[] = "\0c\0h\0a\0n\0g\0e\0i\0tMighty Aphrodite";
	struct cursor c = cursor_make(data, len - SHA1_SIZE);
	uint8_t digest[SHA1_SIZE];
	char alias[64] = "";
	assert_int_equal(cursor_u32(&c), 0xfeedfeed);
	assert_int_equal(cursor_u32(&c), 2);
	uint32_t n = cursor_u32(&c);
	for (uint32_t i = 0; i < n; i++) {
		size_t bytes;
		assert_int_equal(cursor_u32(&c), 2);
		uint16_t name = cursor_u16(&c);
		snprintf(alias, sizeof(alias), "%.*s", name, (const char *)cursor_take(&c, name));
		cursor_u64(&c);
		assert_int_equal(cursor_u16(&c), 5);
		assert_memory_equal(cursor_take(&c, 5), "X.509", 5);
		assert_non_null(cursor_bytes(&c, 65536, &bytes));
		assert_int_equal(bytes, i + 1 == n ? ONE_LENGTH : bytes);
	}
	assert_true(cursor_done(&c));
	assert_string_equal(alias, last_alias);
	struct buf all;
	buf_init(&all, 1u << 20);
	assert_int_equal(buf_append(&all, prefix, sizeof(prefix) - 1), 0);
	assert_int_equal(buf_append(&all, data, len - SHA1_SIZE), 0);
	trust_sha1(all.data, all.len, digest);
	assert_memory_equal(digest, data + len - SHA1_SIZE, SHA1_SIZE);
	buf_free(&all);
	return n;
}

static void java(void **state)
{
	int root = *(int *)*state;
	size_t len;
	cleanup_free char *bundle = mem_printf("# comment\n%s-----BEGIN CERTIFICATE-----\n!\n-----END CERTIFICATE-----\n%s", two, unicode);
	put_text(root, "etc/ssl/certs/ca-certificates.crt", bundle);
	put_text(root, "etc/ssl/certs/java/cacerts", "\x30 some PKCS#12");
	struct result r = made(root, one);
	char *store = content(&r, "etc/ssl/certs/java/cacerts", &len);
	assert_int_equal(check_keystore(store, len, "bulkhead-sandbox"), 3); /* of the bundle: two certificates and something broken */
	done(&r);

	/* A keystore of its own form is added to. */
	put(root, "etc/ssl/certs/java/cacerts", store, len);
	put_text(root, "etc/ssl/certs/ca-certificates.crt", "");
	r = made(root, one);
	size_t longer;
	cleanup_free char *again = content(&r, "etc/ssl/certs/java/cacerts", &longer);
	assert_int_equal(check_keystore(again, longer, "bulkhead-sandbox"), 4);
	assert_memory_equal(again + 12, store + 12, len - 12 - SHA1_SIZE);
	mem_free(store);
	done(&r);

	/* A Java without a keystore of the distribution's. */
	assert_int_equal(unlinkat(root, "etc/ssl/certs/java/cacerts", 0), 0);
	put_text(root, "usr/lib/jvm/some/release", "");
	r = made(root, one);
	cleanup_free char *fresh = content(&r, "etc/ssl/certs/java/cacerts", &len);
	assert_int_equal(check_keystore(fresh, len, "bulkhead-sandbox"), 1);
	done(&r);
}

/* A keystore cut anywhere is still taken as bytes, and never past its end. */
static void java_cut(void **state)
{
	struct trust_cert ca;
	struct buf whole, again;
	assert_int_equal(trust_cert_parse(&ca, one, NULL), 0);
	buf_init(&whole, 1u << 20);
	assert_int_equal(trust_java(&whole, &ca, "", 0, two), 0);
	for (size_t n = 0; n <= whole.len; n++) {
		uint8_t *cut = mem_alloc(n ? n : 1);
		memcpy(cut, whole.data, n);
		buf_init(&again, 1u << 20);
		assert_int_equal(trust_java(&again, &ca, cut, n, two), 0);
		assert_true(u32((const char *)again.data + 8) == (n < 32 ? 2u : 3u));
		buf_free(&again);
		mem_free(cut);
	}
	buf_free(&whole);
}

/* ---- NSS ---- */

static void nss(void **state)
{
	int root = *(int *)*state;
	size_t len;
	struct trust_cert ca;
	put_text(root, "usr/lib64/libnss3.so", "");
	struct result r = made(root, one);
	assert_exactly(&r, "etc/ssl/certs/ca-certificates.crt", "etc/ssl/certs/bulkhead-sandbox.pem", "etc/ssl/certs/cb8e45a4.0", "home/.pki/nssdb/cert9.db",
		"home/.pki/nssdb/key4.db");
	assert_int_equal(trust_cert_parse(&ca, one, NULL), 0);
	cleanup_free char *certs = content(&r, "home/.pki/nssdb/cert9.db", &len);
	assert_memory_equal(certs, "SQLite format 3", 16);
	assert_int_equal(len, 3 * 4096);
	assert_int_equal(u32(certs + 28) * 4096, len);
	assert_non_null(memmem(certs, len, ca.der, ca.len));
	cleanup_free char *keys = content(&r, "home/.pki/nssdb/key4.db", &len);
	assert_memory_equal(keys, "SQLite format 3", 16);
	assert_int_equal(len, 5 * 4096);
	assert_null(memmem(keys, len, ca.subject.p, ca.subject.len));
	done(&r);
}

/* The largest certificate that is taken at all: it fits, or is refused; nothing is written beyond a page. */
static void nss_large(void **state)
{
	struct trust_cert ca;
	assert_int_equal(trust_cert_parse(&ca, one, NULL), 0);
	for (size_t name = 0; name <= TRUST_CERT_MAX; name += 64) {
		struct buf b;
		ca.len = TRUST_CERT_MAX;
		ca.subject = ca.issuer = (struct slice){ ca.der, name };
		buf_init(&b, 1u << 20);
		int r = trust_nss_certs(&b, &ca);
		assert_int_equal(r, name < 450 ? 0 : r);
		assert_int_equal(b.len, r < 0 ? 0 : 3 * 4096);
		buf_free(&b);
	}
}

/* ---- certificates ---- */

static void hashes(void **state)
{
	struct trust_cert c;
	uint32_t hash;
	assert_int_equal(trust_cert_parse(&c, one, NULL), 0);
	assert_int_equal(c.len, ONE_LENGTH);
	assert_int_equal(trust_cert_hash(&c, &hash, NULL), 0);
	assert_int_equal(hash, ONE_HASH);
	assert_int_equal(trust_cert_parse(&c, two, NULL), 0);
	assert_int_equal(trust_cert_hash(&c, &hash, NULL), 0);
	assert_int_equal(hash, TWO_HASH);
	/* Names that need more than we do are refused, not guessed. */
	struct err err = ERR_INIT;
	assert_int_equal(trust_cert_parse(&c, unicode, NULL), 0);
	assert_int_equal(trust_cert_hash(&c, &hash, &err), -1);
	assert_non_null(strstr(err.text, "plain text"));
	assert_int_equal(trust_cert_parse(&c, multi, NULL), 0);
	assert_int_equal(trust_cert_hash(&c, &hash, NULL), -1);
}

static void refused(int root, const char *pem, const char *says)
{
	struct spec s = { 0 };
	int fds[SPEC_FILES_MAX];
	struct err err = ERR_INIT;
	assert_int_equal(trust_add(&s, fds, pem, root, &err), -1);
	if (!strstr(err.text, says))
		fail_msg("\"%s\" is missing in: %s", says, err.text);
	for (size_t i = 0; i < SPEC_FILES_MAX; i++)
		assert_int_equal(fds[i], -1);
	spec_done(&s);
}

static void bad_certificates(void **state)
{
	int root = *(int *)*state;
	cleanup_free char *twice = mem_printf("%s%s", one, one), *behind = mem_printf("%sx", one), *before = mem_printf("x%s", one);
	cleanup_free char *cut = mem_strndup(one, strlen(one) - 30), *no_base64 = mem_strdup(one);
	no_base64[40] = '!';
	const char *const bad[] = { "", "x", twice, behind, before, cut, no_base64, "-----BEGIN CERTIFICATE-----\n-----END CERTIFICATE-----\n",
		"-----BEGIN CERTIFICATE-----\nMAA=\n-----END CERTIFICATE-----\n" };
	for (size_t i = 0; i < ARRAY_LEN(bad); i++)
		refused(root, bad[i], "not one X.509 certificate");
	refused(root, unicode, "plain text");
}

static void bad_host_files(void **state)
{
	int root = *(int *)*state;
	make_folder(root, "etc/ssl/certs/x");
	assert_int_equal(mkfifoat(root, "etc/ssl/certs/ca-certificates.crt", 0644), 0);
	refused(root, one, "/etc/ssl/certs/ca-certificates.crt are not a regular file");
	assert_int_equal(unlinkat(root, "etc/ssl/certs/ca-certificates.crt", 0), 0);
	put_text(root, "etc/ssl/certs/ca-certificates.crt", "");
	cleanup_fd int fd = path_open_beneath(root, "etc/ssl/certs/ca-certificates.crt", O_WRONLY, 0);
	assert_int_equal(ftruncate(fd, SPEC_FILE_SIZE_MAX), 0);
	refused(root, one, "of at most 15 MiB");
}

static void sha1(void **state)
{
	static const struct { const char *text, *digest; } cases[] = {
		{ "", "da39a3ee5e6b4b0d3255bfef95601890afd80709" },
		{ "abc", "a9993e364706816aba3e25717850c26c9cd0d89d" },
		{ "abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq", "84983e441c3bd26ebaae4aa1f95129e5e54670f1" },
		{ "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa", "b05d71c64979cb95fa74a33cdb31a40d258ae02e" },
		{ "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa", "c1c8bbdc22796e28c0e15163d20899b65621d65a" },
		{ "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa", "c2db330f6083854c99d4b5bfb6e8f29f201be699" },
		{ "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa", "03f09f5b158a7a8cdad920bddc29b81c18a551f5" },
		{ "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa", "0098ba824b5c16427bd7a1122a5a442a25ec644d" },
		{ "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa", "11655326c708d70319be2610e8a57d9a5b959d3b" },
		{ "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa", "ee971065aaa017e0632a8ca6c77bb3bf8b1dfc56" },
		{ "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa", "f34c1488385346a55709ba056ddd08280dd4c6d6" },
		{ "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa", "ad5b3fdbcb526778c2839d2f151ea753995e26a0" },
	};
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		uint8_t digest[SHA1_SIZE];
		char hex[2 * SHA1_SIZE + 1];
		trust_sha1(cases[i].text, strlen(cases[i].text), digest);
		for (size_t k = 0; k < SHA1_SIZE; k++)
			snprintf(hex + 2 * k, 3, "%02x", digest[k]);
		assert_string_equal(hex, cases[i].digest);
	}
}

static void variables(void **state)
{
	size_t n = 0;
	for (const struct trust_variable *v = trust_variables; v->name; v++, n++)
		assert_true(str_starts(v->value, "/etc/ssl/certs/"));
	assert_true(n > 0);
}

#define WITH_ROOT(f) cmocka_unit_test_setup_teardown(f, make_root, remove_root)

int main(void)
{
	const struct CMUnitTest tests[] = {
		WITH_ROOT(debian), WITH_ROOT(neighbours), WITH_ROOT(fedora), WITH_ROOT(arch), WITH_ROOT(suse), WITH_ROOT(no_certificates), WITH_ROOT(broken_links),
		WITH_ROOT(java), cmocka_unit_test(java_cut), WITH_ROOT(nss), cmocka_unit_test(nss_large), cmocka_unit_test(hashes), WITH_ROOT(bad_certificates),
		WITH_ROOT(bad_host_files), cmocka_unit_test(sha1), cmocka_unit_test(variables),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
