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

/* What a client offers, and what it must get. */
struct offer {
	const char *what;
	int version;
	const char *ciphers, *signatures, *groups;
	int key; /* EVP_PKEY_EC or EVP_PKEY_RSA */
};

static const struct offer offers[] = {
	{ "1.3", TLS1_3_VERSION, NULL, NULL, NULL, EVP_PKEY_EC },
	{ "1.2", TLS1_2_VERSION, NULL, NULL, NULL, EVP_PKEY_EC },
	{ "1.3, RSA only", TLS1_3_VERSION, NULL, "RSA-PSS+SHA256", NULL, EVP_PKEY_RSA },
	{ "1.3, ECDSA but not on P-256", TLS1_3_VERSION, NULL, "ECDSA+SHA384:RSA-PSS+SHA256", NULL, EVP_PKEY_RSA },
	{ "1.3, without the curve P-256 for the exchange", TLS1_3_VERSION, NULL, NULL, "X25519", EVP_PKEY_EC },
	{ "1.2, RSA ciphers only", TLS1_2_VERSION, "ECDHE-RSA-AES128-GCM-SHA256", NULL, NULL, EVP_PKEY_RSA },
	{ "1.2, RSA signatures only", TLS1_2_VERSION, NULL, "RSA+SHA256:RSA-PSS+SHA256", NULL, EVP_PKEY_RSA },
	{ "1.2, without the curve P-256", TLS1_2_VERSION, NULL, NULL, "X25519", EVP_PKEY_RSA },
	{ "1.2, ECDSA ciphers only", TLS1_2_VERSION, "ECDHE-ECDSA-CHACHA20-POLY1305", NULL, NULL, EVP_PKEY_EC },
	{ "1.2, ECDSA with SHA-1 only", TLS1_2_VERSION, "ECDHE-ECDSA-AES128-GCM-SHA256:ECDHE-RSA-AES128-GCM-SHA256:@SECLEVEL=0",
		"RSA+SHA256:ECDSA+SHA1", NULL, EVP_PKEY_RSA },
	{ "1.2, SHA-384 signatures", TLS1_2_VERSION, NULL, "ECDSA+SHA384", NULL, EVP_PKEY_EC },
};

static void limit_peer(struct rig_peer *p, const struct offer *o)
{
	SSL_set_min_proto_version(p->ssl, o->version);
	SSL_set_max_proto_version(p->ssl, o->version);
	assert_true(!o->ciphers || SSL_set_cipher_list(p->ssl, o->ciphers));
	assert_true(!o->signatures || SSL_set1_sigalgs_list(p->ssl, o->signatures));
	assert_true(!o->groups || SSL_set1_groups_list(p->ssl, o->groups));
}

/* The peer checks our leaf as strictly as the library can (x509_strict, the host's name). */
static void try_offer(const struct offer *o, const char *host, const char *peer_alpn, const char *agreed)
{
	struct rig_peer p = rig_client(mint_ca_pem(mint), host);
	limit_peer(&p, o);
	if (peer_alpn)
		assert_int_equal(SSL_set_alpn_protos(p.ssl, (const unsigned char *)peer_alpn, (unsigned)strlen(peer_alpn)), 0);
	struct tls *t = server(host, "h2,http/1.1");
	if (!rig_run(t, &p, 4096))
		fail_msg("%s, %s: %s; the client: %s", o->what, host, tls_error(t)->text,
			X509_verify_cert_error_string(SSL_get_verify_result(p.ssl)));
	assert_string_equal(tls_alpn(t), agreed);
	assert_int_equal(SSL_version(p.ssl), o->version);
	assert_int_equal(EVP_PKEY_get_base_id(X509_get0_pubkey(SSL_get0_peer_certificate(p.ssl))), o->key);
	tls_free(t);
	rig_peer_done(&p);
}

static void test_every_client_is_served(void **state)
{
	static const char *const hosts[] = { "a.example", "192.0.2.7", "2001:db8::7" };
	for (size_t i = 0; i < ARRAY_LEN(offers); i++)
		for (size_t h = 0; h < ARRAY_LEN(hosts); h++) {
			try_offer(&offers[i], hosts[h], NULL, "");
			try_offer(&offers[i], hosts[h], "\x02h2\x08http/1.1", "h2");
			try_offer(&offers[i], hosts[h], "\x08http/1.1\x02h2", "h2");
			try_offer(&offers[i], hosts[h], "\x08http/1.1", "http/1.1");
			try_offer(&offers[i], hosts[h], "\x06spdy/3\x03h2c", "");
		}
}

static void test_server_refuses_the_past(void **state)
{
	static const struct offer old[] = {
		{ "1.1", TLS1_1_VERSION, "DEFAULT@SECLEVEL=0", NULL, NULL, 0 },
		{ "static RSA", TLS1_2_VERSION, "AES128-GCM-SHA256", NULL, NULL, 0 },
		{ "CBC", TLS1_2_VERSION, "ECDHE-ECDSA-AES128-SHA", NULL, NULL, 0 },
		{ "SHA-1 signatures", TLS1_2_VERSION, "ECDHE-ECDSA-AES128-GCM-SHA256:@SECLEVEL=0", "ECDSA+SHA1", NULL, 0 },
	};
	static const char *const said[] = { "the client that asks for a.example speaks no version of TLS that is still safe (1.2 or 1.3)",
		"knows no cipher that is still safe", "knows no cipher that is still safe", "no shared signature algorithms" };
	for (size_t i = 0; i < ARRAY_LEN(old); i++) {
		struct rig_peer p = rig_client(mint_ca_pem(mint), "a.example");
		limit_peer(&p, &old[i]);
		struct tls *t = server("a.example", "");
		assert_false(rig_run(t, &p, 4096));
		assert_int_equal(tls_state(t), TLS_FAILED);
		if (!strstr(tls_error(t)->text, said[i]))
			fail_msg("%s: %s", old[i].what, tls_error(t)->text);
		assert_false(tls_error_is_certificate(t));
		tls_free(t);
		rig_peer_done(&p);
	}
}

static void test_client_that_distrusts_us(void **state)
{
	char *pem = rig_pem(authority.x509);
	struct rig_peer p = rig_client(pem, "a.example");
	struct tls *t = server("a.example", "");
	assert_false(rig_run(t, &p, 4096));
	assert_int_equal(tls_state(t), TLS_FAILED);
	assert_non_null(strstr(tls_error(t)->text, "does not trust the certificate authority of the sandbox"));
	tls_free(t);
	rig_peer_done(&p);
	mem_free(pem);
}

/* No ticket, no second handshake on a connection: each would skip a check. */
static void test_no_resumption(void **state)
{
	for (size_t i = 0; i < 2; i++) {
		struct rig_peer p = rig_client(mint_ca_pem(mint), "a.example");
		limit_peer(&p, &offers[i]);
		struct tls *t = server("a.example", "");
		assert_true(rig_run(t, &p, 4096));
		char byte;
		assert_true(SSL_read(p.ssl, &byte, 1) <= 0);
		assert_false(SSL_SESSION_has_ticket(SSL_get0_session(p.ssl)));
		assert_false(SSL_SESSION_is_resumable(SSL_get0_session(p.ssl)) && offers[i].version == TLS1_3_VERSION);
		/* An orderly end on both sides: a session cut short is never kept. */
		SSL_shutdown(p.ssl);
		tls_close(t);
		rig_run(t, &p, 4096);
		tls_read(t, &byte, 1);
		assert_int_equal(tls_state(t), TLS_ENDED);
		tls_free(t);
		SSL_SESSION *session = SSL_get1_session(p.ssl);
		rig_peer_done(&p);

		p = rig_client(mint_ca_pem(mint), "a.example");
		limit_peer(&p, &offers[i]);
		SSL_set_session(p.ssl, session);
		t = server("a.example", "");
		assert_true(rig_run(t, &p, 4096));
		assert_false(SSL_session_reused(p.ssl));
		tls_free(t);
		rig_peer_done(&p);
		SSL_SESSION_free(session);
	}
}

static void test_no_renegotiation(void **state)
{
	/* a client that wants one */
	char byte;
	struct rig_peer p = rig_client(mint_ca_pem(mint), "a.example");
	limit_peer(&p, &offers[1]);
	struct tls *t = server("a.example", "");
	assert_true(rig_run(t, &p, 4096));
	assert_true(SSL_renegotiate(p.ssl));
	SSL_do_handshake(p.ssl);
	rig_run(t, &p, 4096);
	tls_read(t, &byte, 1);
	assert_in_range(tls_output_pending(t), 1, 64); /* an alert, no hello */
	tls_free(t);
	rig_peer_done(&p);
	/* a server that wants one */
	struct rig_pair leaf = rig_make(&(struct rig_cert){ .san = "DNS:a.example" }, &authority);
	p = rig_server(&leaf, NULL);
	SSL_set_max_proto_version(p.ssl, TLS1_2_VERSION);
	t = client(test_roots, "a.example", "");
	assert_true(rig_run(t, &p, 4096));
	assert_true(SSL_renegotiate(p.ssl));
	SSL_do_handshake(p.ssl);
	rig_run(t, &p, 4096);
	tls_read(t, &byte, 1);
	assert_in_range(tls_output_pending(t), 1, 64);
	ERR_clear_error();
	tls_free(t);
	rig_peer_done(&p);
	rig_pair_done(&leaf);
}

/* Who made the server's certificate. */
enum issuer {
	BY_AUTHORITY,         /* trusted */
	BY_ITSELF,
	BY_STRANGER,          /* not trusted, not sent */
	BY_STRANGER_SENT,
	BY_INTERMEDIATE,      /* sent */
	BY_INTERMEDIATE_KEPT, /* not sent */
	BY_NO_AUTHORITY,      /* a server's certificate of the trusted authority */
	BY_EXPIRED_INTERMEDIATE,
	BY_TOO_LONG_A_PATH,
};

struct server_case {
	const char *what, *host;
	enum issuer issuer;
	struct rig_cert leaf;
	const char *sentence; /* NULL: it is valid */
};

static const struct server_case server_cases[] = {
	{ "valid", "a.example", BY_AUTHORITY, { .san = "DNS:a.example" }, NULL },
	{ "valid, RSA", "a.example", BY_AUTHORITY, { .san = "DNS:a.example", .rsa = true }, NULL },
	{ "valid among others", "b.example", BY_AUTHORITY, { .san = "DNS:a.example,DNS:b.example" }, NULL },
	{ "valid, other case", "a.example", BY_AUTHORITY, { .san = "DNS:A.Example" }, NULL },
	{ "valid, intermediate", "a.example", BY_INTERMEDIATE, { .san = "DNS:a.example" }, NULL },
	{ "valid, wildcard", "x.a.example", BY_AUTHORITY, { .san = "DNS:*.a.example" }, NULL },
	{ "valid IPv4", "192.0.2.1", BY_AUTHORITY, { .san = "IP:192.0.2.1" }, NULL },
	{ "valid IPv6", "2001:db8::1", BY_AUTHORITY, { .san = "IP:2001:db8::1" }, NULL },
	{ "no basic constraints", "a.example", BY_AUTHORITY, { .san = "DNS:a.example", .basic = "" }, NULL },
	{ "expired", "a.example", BY_AUTHORITY, { .san = "DNS:a.example", .from = -90000, .to = -3600 }, ": it expired on 20" },
	{ "not yet valid", "a.example", BY_AUTHORITY, { .san = "DNS:a.example", .from = 3600, .to = 86400 }, ": it is not valid before 20" },
	{ "self-signed", "a.example", BY_ITSELF, { .san = "DNS:a.example" }, "not trusted here: itself (self-signed)" },
	{ "stranger", "a.example", BY_STRANGER, { .san = "DNS:a.example" }, "an authority that is not trusted here, \"Some Stranger\"" },
	{ "stranger, sent", "a.example", BY_STRANGER_SENT, { .san = "DNS:a.example" }, "an authority that is not trusted here, \"Some Stranger\"" },
	{ "intermediate kept", "a.example", BY_INTERMEDIATE_KEPT, { .san = "DNS:a.example" }, "\"Intermediate\" (or the server does not send" },
	{ "issuer is no authority", "a.example", BY_NO_AUTHORITY, { .san = "DNS:a.example" }, "not allowed to make others" },
	{ "path too long", "a.example", BY_TOO_LONG_A_PATH, { .san = "DNS:a.example" }, "not allowed to make others" },
	{ "intermediate expired", "a.example", BY_EXPIRED_INTERMEDIATE, { .san = "DNS:a.example" }, ": the certificate of its authority expired on 20" },
	{ "wrong name", "a.example", BY_AUTHORITY, { .san = "DNS:b.example,DNS:c.example" }, ": it is for b.example, c.example, not a.example" },
	{ "many wrong names", "a.example", BY_AUTHORITY, { .san = "DNS:b.x,DNS:c.x,DNS:d.x,DNS:e.x,DNS:f.x,IP:192.0.2.9" }, "e.x and 2 more, not a.example" },
	{ "suffix", "a.example", BY_AUTHORITY, { .san = "DNS:a.example.org" }, "not a.example" },
	{ "parent", "x.a.example", BY_AUTHORITY, { .san = "DNS:a.example" }, "it is for a.example, not x.a.example" },
	{ "leading dot", "x.a.example", BY_AUTHORITY, { .san = "DNS:.a.example" }, "not x.a.example" },
	{ "wildcard, two labels", "y.x.a.example", BY_AUTHORITY, { .san = "DNS:*.a.example" }, "it is for *.a.example, not y.x.a.example" },
	{ "wildcard, no label", "a.example", BY_AUTHORITY, { .san = "DNS:*.a.example" }, "not a.example" },
	{ "wildcard of everything", "a.example", BY_AUTHORITY, { .san = "DNS:*" }, "not a.example" },
	{ "wildcard of a top level", "a.example", BY_AUTHORITY, { .san = "DNS:*.example" }, "not a.example" },
	{ "partial wildcard", "www.a.example", BY_AUTHORITY, { .san = "DNS:w*.a.example" }, "not www.a.example" },
	{ "wildcard inside", "x.y.example", BY_AUTHORITY, { .san = "DNS:x.*.example" }, "not x.y.example" },
	{ "wildcard in an internationalised label", "xn--ab.a.example", BY_AUTHORITY, { .san = "DNS:xn--*.a.example" }, "not xn--ab.a.example" },
	{ "common name only", "a.example", BY_AUTHORITY, { .common_name = "a.example" }, "a common name does not count" },
	{ "common name besides", "a.example", BY_AUTHORITY, { .common_name = "a.example", .san = "DNS:b.example" }, "not a.example" },
	{ "a URI is no name", "a.example", BY_AUTHORITY, { .common_name = "a.example", .san = "URI:https://a.example/" }, "a common name does not count" },
	{ "wrong IPv4", "192.0.2.1", BY_AUTHORITY, { .san = "IP:192.0.2.2" }, "it is for 192.0.2.2, not 192.0.2.1" },
	{ "wrong IPv6", "2001:db8::1", BY_AUTHORITY, { .san = "IP:2001:db8::2" }, "it is for 2001:db8::2, not 2001:db8::1" },
	{ "address as a name", "192.0.2.1", BY_AUTHORITY, { .san = "DNS:192.0.2.1" }, "not 192.0.2.1" },
	{ "address as a common name", "192.0.2.1", BY_AUTHORITY, { .common_name = "192.0.2.1" }, "a common name does not count" },
	{ "IPv4 for the mapped IPv6", "192.0.2.1", BY_AUTHORITY, { .san = "IP:::ffff:192.0.2.1" }, "not 192.0.2.1" },
	{ "wildcard for an address", "192.0.2.1", BY_AUTHORITY, { .san = "DNS:*.0.2.1" }, "not 192.0.2.1" },
	{ "for clients", "a.example", BY_AUTHORITY, { .san = "DNS:a.example", .usage = "clientAuth" }, ": it is not meant for servers" },
	{ "small key", "a.example", BY_AUTHORITY, { .san = "DNS:a.example", .rsa = true, .rsa_bits = 1024 }, "too weak" },
	{ "weak signature", "a.example", BY_AUTHORITY, { .san = "DNS:a.example", .sha1 = true }, "too weak" },
	{ "names that write on terminals", "a.example", BY_AUTHORITY, { .san = "DNS:\x1b[31mred" }, "\\x1b[31mred" },
};

struct chain {
	struct rig_pair leaf, above, top;
	X509 *sent;
};

static struct chain make_chain(const struct server_case *c)
{
	static const struct rig_cert ca = { .common_name = "Intermediate", .basic = "critical,CA:TRUE" };
	static const struct rig_cert expired = { .common_name = "Intermediate", .basic = "critical,CA:TRUE", .from = -90000, .to = -3600 };
	static const struct rig_cert stranger = { .common_name = "Some Stranger", .basic = "critical,CA:TRUE" };
	static const struct rig_cert no_ca = { .common_name = "Just a server", .san = "DNS:b.example" };
	static const struct rig_cert none_below = { .common_name = "None below", .basic = "critical,CA:TRUE,pathlen:0" };
	struct chain chain = { 0 };
	const struct rig_pair *issuer = &chain.above;
	switch (c->issuer) {
	case BY_AUTHORITY:
		issuer = &authority;
		break;
	case BY_ITSELF:
		issuer = NULL;
		break;
	case BY_STRANGER:
	case BY_STRANGER_SENT:
		chain.above = rig_make(&stranger, NULL);
		break;
	case BY_INTERMEDIATE:
	case BY_INTERMEDIATE_KEPT:
		chain.above = rig_make(&ca, &authority);
		break;
	case BY_NO_AUTHORITY:
		chain.above = rig_make(&no_ca, &authority);
		break;
	case BY_EXPIRED_INTERMEDIATE:
		chain.above = rig_make(&expired, &authority);
		break;
	case BY_TOO_LONG_A_PATH:
		chain.top = rig_make(&none_below, &authority);
		chain.above = rig_make(&ca, &chain.top);
		break;
	}
	chain.leaf = rig_make(&c->leaf, issuer);
	if (c->issuer != BY_STRANGER && c->issuer != BY_INTERMEDIATE_KEPT)
		chain.sent = chain.above.x509;
	return chain;
}

static void try_server(const struct server_case *c, int version)
{
	struct chain chain = make_chain(c);
	struct rig_peer p = rig_server(&chain.leaf, chain.sent);
	if (chain.top.x509)
		assert_int_equal(SSL_add1_chain_cert(p.ssl, chain.top.x509), 1);
	SSL_set_max_proto_version(p.ssl, version);
	struct tls *t = client(test_roots, c->host, "");
	bool open = rig_run(t, &p, 4096);
	if (open != !c->sentence)
		fail_msg("%s: %s (%s)", c->what, open ? "was accepted" : "was refused", tls_error(t)->text);
	if (c->sentence) {
		assert_int_equal(tls_state(t), TLS_FAILED);
		assert_true(tls_error_is_certificate(t));
		char start_of[400];
		snprintf(start_of, sizeof(start_of), "the certificate of %s is not valid: ", c->host);
		if (strncmp(tls_error(t)->text, start_of, strlen(start_of)) != 0 || !strstr(tls_error(t)->text, c->sentence))
			fail_msg("%s: \"%s\" lacks \"%s\"", c->what, tls_error(t)->text, c->sentence);
		assert_int_equal(tls_write(t, "secret", 6), -1);
		assert_int_equal(tls_feed(t, "x", 1), -1);
	}
	tls_free(t);
	rig_peer_done(&p);
	rig_pair_done(&chain.leaf);
	rig_pair_done(&chain.above);
	rig_pair_done(&chain.top);
}

static void test_servers(void **state)
{
	for (size_t i = 0; i < ARRAY_LEN(server_cases); i++) {
		try_server(&server_cases[i], TLS1_3_VERSION);
		try_server(&server_cases[i], TLS1_2_VERSION);
	}
}

/* An authority that one rule names counts for that rule's connections only, before and after. */
static void test_extra_authority_stays_apart(void **state)
{
	struct rig_pair leaf = rig_make(&(struct rig_cert){ .san = "DNS:a.example" }, &authority);
	const struct tls_roots *roots[] = { host_roots, test_roots, host_roots };
	for (size_t i = 0; i < ARRAY_LEN(roots); i++) {
		struct rig_peer p = rig_server(&leaf, NULL);
		struct tls *t = client(roots[i], "a.example", "");
		assert_int_equal(rig_run(t, &p, 4096), roots[i] == test_roots);
		assert_int_equal(tls_error_is_certificate(t), roots[i] != test_roots);
		tls_free(t);
		rig_peer_done(&p);
	}
	rig_pair_done(&leaf);
}

static void test_server_of_the_past(void **state)
{
	struct rig_pair leaf = rig_make(&(struct rig_cert){ .san = "DNS:a.example", .rsa = true }, &authority);
	struct rig_peer p = rig_server(&leaf, NULL);
	SSL_set_min_proto_version(p.ssl, TLS1_VERSION);
	SSL_set_max_proto_version(p.ssl, TLS1_1_VERSION);
	struct tls *t = client(test_roots, "a.example", "");
	assert_false(rig_run(t, &p, 4096));
	assert_int_equal(tls_error(t)->code, ERR_UNSUPPORTED);
	assert_non_null(strstr(tls_error(t)->text, "a.example speaks no version of TLS that is still safe"));
	assert_false(tls_error_is_certificate(t));
	tls_free(t);
	rig_peer_done(&p);
	rig_pair_done(&leaf);
}

/* The name goes out as SNI; an address never does (RFC 6066 section 3). */
static void test_server_name_is_sent(void **state)
{
	struct rig_pair leaf = rig_make(&(struct rig_cert){ .san = "DNS:a.example,IP:192.0.2.1" }, &authority);
	static const char *const hosts[][2] = { { "a.example", "a.example" }, { "A.Example.", "a.example" }, { "192.0.2.1", NULL } };
	for (size_t i = 0; i < ARRAY_LEN(hosts); i++) {
		struct rig_peer p = rig_server(&leaf, NULL);
		struct tls *t = client(test_roots, hosts[i][0], "");
		assert_true(rig_run(t, &p, 4096));
		const char *sent = SSL_get_servername(p.ssl, TLSEXT_NAMETYPE_host_name);
		assert_int_equal(!sent, !hosts[i][1]);
		if (sent)
			assert_string_equal(sent, hosts[i][1]);
		tls_free(t);
		rig_peer_done(&p);
	}
	rig_pair_done(&leaf);
}

static int choose(SSL *ssl, const unsigned char **ret, unsigned char *ret_len, const unsigned char *in, unsigned len, void *name)
{
	*ret = name;
	*ret_len = (unsigned char)strlen(name);
	return SSL_TLSEXT_ERR_OK;
}

static void test_alpn_of_servers(void **state)
{
	struct rig_pair leaf = rig_make(&(struct rig_cert){ .san = "DNS:a.example" }, &authority);
	static const struct { const char *offered; char chosen[12]; bool ok; } cases[] = {
		{ "h2,http/1.1", "h2", true }, { "h2,http/1.1", "http/1.1", true }, { "http/1.1", "h2", false }, { "h2", "h", false },
	};
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		struct rig_peer p = rig_server(&leaf, NULL);
		SSL_CTX_set_alpn_select_cb(p.ctx, choose, (void *)cases[i].chosen);
		struct tls *t = client(test_roots, "a.example", cases[i].offered);
		rig_run(t, &p, 4096);
		assert_int_equal(tls_state(t), cases[i].ok ? TLS_OPEN : TLS_FAILED);
		assert_string_equal(tls_alpn(t), cases[i].ok ? cases[i].chosen : "");
		tls_free(t);
		rig_peer_done(&p);
	}
	rig_pair_done(&leaf);
}

static void test_bad_arguments(void **state)
{
	static const char *const hosts[] = { "", " ", "a b", "a..b", "-a", "192.0.2.256", "[::1]", "a.example:443", "a\nb" };
	for (size_t i = 0; i < ARRAY_LEN(hosts); i++) {
		struct err err = ERR_INIT;
		assert_null(tls_client_new(test_roots, hosts[i], "", &err));
		assert_int_not_equal(err.code, ERR_NONE);
		assert_null(tls_server_new(mint, hosts[i], "", NULL));
	}
	static const char *const lists[] = { ",", "h2,", ",h2", "h2,,h2", "0123456789012345678901234567890123456789012345678901234567890123456789" };
	for (size_t i = 0; i < ARRAY_LEN(lists); i++) {
		struct err err = ERR_INIT;
		assert_null(tls_client_new(test_roots, "a.example", lists[i], &err));
		assert_int_equal(err.code, ERR_INVALID);
	}
	assert_null(tls_free(NULL));
}

/* A pair of ours whose handshake is over. */
struct pair {
	struct tls *c, *s;
};

static struct pair open_pair(void)
{
	static struct tls_roots *roots;
	struct err err = ERR_INIT;
	const char *pem = mint_ca_pem(mint);
	if (!roots)
		roots = tls_roots_with(host_roots, pem, strlen(pem), &err);
	struct pair p = { client(roots, "a.example", "h2"), server("a.example", "h2") };
	assert_true(rig_run_ours(p.c, p.s, 4096));
	return p;
}

static void pair_done(struct pair *p)
{
	tls_free(p->c);
	tls_free(p->s);
}

/* Moves all that waits at `from` into a buffer of its own. */
static struct buf pulled(struct tls *from)
{
	struct buf b;
	buf_init(&b, TLS_OUTPUT_MAX * 2);
	assert_true(tls_pull(from, &b, SIZE_MAX) >= 0);
	assert_int_equal(tls_output_pending(from), 0);
	return b;
}

/* Sends `total` bytes of a running pattern in writes of `piece`, carried in chunks of `chunk`; all must come, in order. */
static void send_pattern(struct tls *from, struct tls *to, size_t total, size_t piece, size_t chunk)
{
	uint8_t *data = mem_alloc(piece), *got = mem_alloc(70000);
	size_t sent = 0, seen = 0;
	while (seen < total) {
		size_t n = total - sent < piece ? total - sent : piece;
		for (size_t i = 0; i < n; i++)
			data[i] = (uint8_t)((sent + i) * 31 >> 3);
		assert_int_equal(tls_write(from, data, n), 0);
		sent += n;
		while (tls_output_pending(from)) {
			struct buf b;
			buf_init(&b, chunk);
			assert_true(tls_pull(from, &b, chunk) > 0);
			assert_int_equal(tls_feed(to, b.data, b.len), 0);
			buf_free(&b);
			for (size_t r; (r = tls_read(to, got, 70000));) {
				for (size_t i = 0; i < r; i++)
					if (got[i] != (uint8_t)((seen + i) * 31 >> 3))
						fail_msg("byte %zu differs", seen + i);
				seen += r;
			}
		}
		assert_int_equal(tls_state(to), TLS_OPEN);
	}
	assert_int_equal(seen, total);
	mem_free(data);
	mem_free(got);
}

static void test_data_both_ways(void **state)
{
	struct pair p = open_pair();
	send_pattern(p.c, p.s, 20u << 20, 65536, 65536);
	send_pattern(p.s, p.c, 20u << 20, 200000, 65536);
	for (size_t chunk = 1; chunk < 40; chunk++) {
		send_pattern(p.c, p.s, 5000, 1000, chunk);
		send_pattern(p.s, p.c, 5000, 1, chunk);
	}
	send_pattern(p.c, p.s, 1u << 20, 16384, 16385);
	send_pattern(p.s, p.c, 1u << 20, 16385, 977);
	pair_done(&p);
}

static void test_orderly_end(void **state)
{
	struct pair p = open_pair();
	assert_int_equal(tls_write(p.c, "last words", 10), 0);
	tls_close(p.c);
	tls_close(p.c); /* once more is harmless */
	assert_int_equal(tls_write(p.c, "x", 1), -1);
	struct buf b = pulled(p.c);
	assert_int_equal(tls_feed(p.s, b.data, b.len), 0);
	buf_free(&b);
	tls_feed_end(p.s);
	char text[32];
	assert_int_equal(tls_read(p.s, text, sizeof(text)), 10);
	assert_memory_equal(text, "last words", 10);
	assert_int_equal(tls_read(p.s, text, sizeof(text)), 0);
	assert_int_equal(tls_state(p.s), TLS_ENDED);
	/* Half closed: the other direction goes on. */
	assert_int_equal(tls_write(p.s, "answer", 6), 0);
	tls_close(p.s);
	b = pulled(p.s);
	assert_int_equal(tls_feed(p.c, b.data, b.len), 0);
	buf_free(&b);
	assert_int_equal(tls_read(p.c, text, sizeof(text)), 6);
	assert_int_equal(tls_read(p.c, text, sizeof(text)), 0);
	assert_int_equal(tls_state(p.c), TLS_ENDED);
	/* What comes afterwards is neither read nor kept. */
	static uint8_t more[65536];
	for (size_t fed = 0; fed <= 2 * TLS_INPUT_MAX; fed += sizeof(more))
		assert_int_equal(tls_feed(p.c, more, sizeof(more)), 0);
	assert_int_equal(tls_state(p.c), TLS_ENDED);
	pair_done(&p);
}

static void test_cut_short(void **state)
{
	/* whole records, then FIN */
	struct pair p = open_pair();
	char text[32];
	assert_int_equal(tls_write(p.s, "part", 4), 0);
	struct buf b = pulled(p.s);
	assert_int_equal(tls_feed(p.c, b.data, b.len), 0);
	buf_free(&b);
	tls_feed_end(p.c);
	assert_int_equal(tls_state(p.c), TLS_OPEN); /* what came is still there */
	assert_int_equal(tls_read(p.c, text, sizeof(text)), 4);
	assert_int_equal(tls_read(p.c, text, sizeof(text)), 0);
	assert_int_equal(tls_state(p.c), TLS_FAILED);
	assert_int_equal(tls_error(p.c)->code, ERR_CLOSED);
	assert_non_null(strstr(tls_error(p.c)->text, "a.example closed the connection without saying that it had finished"));
	pair_done(&p);
	/* nothing waiting: seen at once */
	p = open_pair();
	tls_feed_end(p.s);
	assert_int_equal(tls_state(p.s), TLS_FAILED);
	pair_done(&p);
	/* in the middle of a record */
	p = open_pair();
	assert_int_equal(tls_write(p.s, "whole record", 12), 0);
	b = pulled(p.s);
	assert_int_equal(tls_feed(p.c, b.data, b.len - 1), 0);
	buf_free(&b);
	assert_int_equal(tls_read(p.c, text, sizeof(text)), 0);
	assert_int_equal(tls_state(p.c), TLS_OPEN);
	tls_feed_end(p.c);
	assert_int_equal(tls_state(p.c), TLS_FAILED);
	pair_done(&p);
	/* in the handshake */
	struct tls *t = client(test_roots, "a.example", "");
	tls_feed_end(t);
	assert_int_equal(tls_state(t), TLS_FAILED);
	assert_string_equal(tls_error(t)->text, "a.example closed the connection in the middle of the TLS handshake");
	tls_free(t);
}

/* Every single bit matters: nothing forged is ever read. */
static void test_forged_records(void **state)
{
	for (size_t at = 0; at < 40; at++) {
		struct pair p = open_pair();
		assert_int_equal(tls_write(p.s, "a message of some length", 24), 0);
		struct buf b = pulled(p.s);
		if (at >= b.len) {
			buf_free(&b);
			pair_done(&p);
			break;
		}
		b.data[at] ^= 1;
		tls_feed(p.c, b.data, b.len);
		buf_free(&b);
		char text[64];
		assert_int_equal(tls_read(p.c, text, sizeof(text)), 0);
		if (at != 3 && at != 4) /* a length that grew waits for more */
			assert_int_equal(tls_state(p.c), TLS_FAILED);
		pair_done(&p);
	}
}

static void test_no_tls(void **state)
{
	static const char *const words[] = { "HTTP/1.1 400 Bad Request\r\n\r\n", "SSH-2.0-OpenSSH_9.2\r\n", "220 mail ready\r\n", "\x16HTTP/1.1 200 OK\r\n" };
	for (size_t i = 0; i < ARRAY_LEN(words); i++) {
		struct tls *t = client(test_roots, "a.example", "");
		assert_int_equal(tls_feed(t, words[i], strlen(words[i])), -1);
		assert_string_equal(tls_error(t)->text, "a.example speaks no TLS");
		assert_false(tls_error_is_certificate(t));
		tls_free(t);
		t = server("a.example", "");
		assert_int_equal(tls_feed(t, words[i], strlen(words[i])), -1);
		assert_string_equal(tls_error(t)->text, "the client that asks for a.example speaks no TLS");
		tls_free(t);
	}
}

/* A peer of ill will must not make us keep or send without end. */
static void test_ceilings(void **state)
{
	/* unread input */
	struct pair p = open_pair();
	static uint8_t chunk[65536];
	int status = 0;
	unsigned fed = 0;
	while (status == 0 && fed < 64) {
		assert_int_equal(tls_write(p.s, chunk, sizeof(chunk)), 0);
		struct buf b = pulled(p.s);
		status = tls_feed(p.c, b.data, b.len);
		buf_free(&b);
		fed++;
	}
	assert_int_equal(status, -1);
	assert_int_equal(tls_error(p.c)->code, ERR_LIMIT);
	assert_true(fed <= TLS_INPUT_MAX / sizeof(chunk) + 1);
	pair_done(&p);
	/* output: refused whole, and the connection lives */
	p = open_pair();
	unsigned taken = 0;
	while (tls_write(p.c, chunk, sizeof(chunk)) == 0)
		taken++;
	assert_true(taken >= 8 && tls_output_pending(p.c) <= TLS_OUTPUT_MAX);
	assert_int_equal(tls_state(p.c), TLS_OPEN);
	struct buf b = pulled(p.c);
	buf_free(&b);
	assert_int_equal(tls_write(p.c, chunk, sizeof(chunk)), 0);
	pair_done(&p);
	/* a pull that doesn't fit takes nothing */
	p = open_pair();
	assert_int_equal(tls_write(p.c, "abc", 3), 0);
	size_t waiting = tls_output_pending(p.c);
	buf_init(&b, 2);
	assert_int_equal(tls_pull(p.c, &b, SIZE_MAX), -1);
	assert_int_equal(tls_output_pending(p.c), waiting);
	pair_done(&p);
}

/* Endless handshakes: records without content, warnings, a hello of 16 MiB. */
static void test_endless_handshakes(void **state)
{
	static const uint8_t ccs[] = { 20, 3, 3, 0, 1, 1 }, warning[] = { 21, 3, 3, 0, 2, 1, 90 }, empty[] = { 22, 3, 3, 0, 0 };
	static uint8_t hello[5 + 16000] = { 22, 3, 3, 16000 >> 8, 16000 & 255, 1, 0xff, 0xff, 0xff, 3, 3 };
	static uint8_t slow[5 + 4] = { 22, 3, 3, 0, 4, 1, 0, 0xff, 0xff };
	static const uint8_t request[] = { 22, 3, 3, 0, 4, 0, 0, 0, 0 }; /* HelloRequest: a client skips it */
	static const struct { const uint8_t *p; size_t len; } floods[] = {
		{ request, sizeof(request) },
		{ ccs, sizeof(ccs) }, { warning, sizeof(warning) }, { empty, sizeof(empty) }, { hello, sizeof(hello) }, { slow, sizeof(slow) },
	};
	for (size_t i = 0; i < ARRAY_LEN(floods); i++)
		for (int side = 0; side < 2; side++) {
			struct tls *t = side ? server("a.example", "") : client(test_roots, "a.example", "");
			size_t fed = 0;
			while (tls_feed(t, floods[i].p, floods[i].len) == 0) {
				fed += floods[i].len;
				assert_true(fed <= TLS_HANDSHAKE_MAX + sizeof(hello));
			}
			assert_int_equal(tls_state(t), TLS_FAILED);
			assert_true(tls_output_pending(t) < 4096);
			tls_free(t);
		}
}

/* Each of these asks for an answer; whoever doesn't read them must not fill our memory. */
static void test_key_update_flood(void **state)
{
	struct rig_peer p = rig_client(mint_ca_pem(mint), "a.example");
	struct tls *t = server("a.example", "");
	assert_true(rig_run(t, &p, 4096));
	char bytes[4096];
	for (unsigned i = 0; i < 60000 && tls_state(t) == TLS_OPEN; i++) {
		SSL_key_update(p.ssl, SSL_KEY_UPDATE_REQUESTED);
		SSL_do_handshake(p.ssl);
		int n = BIO_read(p.out, bytes, sizeof(bytes));
		if (n > 0)
			tls_feed(t, bytes, (size_t)n);
		tls_read(t, bytes, sizeof(bytes));
		assert_true(tls_output_pending(t) <= TLS_OUTPUT_MAX + TLS_HANDSHAKE_MAX);
	}
	ERR_clear_error();
	tls_free(t);
	rig_peer_done(&p);
}

static void test_refuse(void **state)
{
	/* before the hello was looked at, and after a part of it */
	for (int part = 0; part < 2; part++) {
		struct rig_peer p = rig_client(mint_ca_pem(mint), "a.example");
		SSL_do_handshake(p.ssl);
		struct tls *t = server("a.example", "");
		if (part) {
			uint8_t some[20];
			assert_int_equal(BIO_read(p.out, some, sizeof(some)), sizeof(some));
			assert_int_equal(tls_feed(t, some, sizeof(some)), 0);
		}
		ERR_clear_error();
		assert_int_equal(tls_refuse(t), 0);
		assert_int_equal(tls_state(t), TLS_FAILED);
		assert_int_equal(tls_error(t)->code, ERR_DENIED);
		struct buf b = pulled(t);
		assert_int_equal(BIO_write(p.in, b.data, (int)b.len), (int)b.len);
		buf_free(&b);
		assert_int_not_equal(SSL_do_handshake(p.ssl), 1);
		assert_int_equal(ERR_GET_REASON(ERR_peek_error()), SSL_R_TLSV1_ALERT_ACCESS_DENIED);
		ERR_clear_error();
		tls_free(t);
		rig_peer_done(&p);
	}
	struct pair p = open_pair();
	assert_int_equal(tls_refuse(p.s), -1); /* too late */
	assert_int_equal(tls_state(p.s), TLS_OPEN);
	pair_done(&p);
}

/* What the peer is told when its certificate is refused: the alert is there to be pulled. */
static void test_alert_after_failure(void **state)
{
	struct rig_pair leaf = rig_make(&(struct rig_cert){ .san = "DNS:b.example" }, &authority);
	struct rig_peer p = rig_server(&leaf, NULL);
	struct tls *t = client(test_roots, "a.example", "");
	ERR_clear_error();
	rig_run(t, &p, 4096);
	unsigned long e = ERR_peek_last_error();
	assert_int_equal(ERR_GET_REASON(e), SSL_R_SSLV3_ALERT_BAD_CERTIFICATE);
	ERR_clear_error();
	tls_free(t);
	rig_peer_done(&p);
	rig_pair_done(&leaf);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_ours_to_ours),
		cmocka_unit_test(test_every_client_is_served),
		cmocka_unit_test(test_server_refuses_the_past),
		cmocka_unit_test(test_client_that_distrusts_us),
		cmocka_unit_test(test_no_resumption),
		cmocka_unit_test(test_no_renegotiation),
		cmocka_unit_test(test_servers),
		cmocka_unit_test(test_extra_authority_stays_apart),
		cmocka_unit_test(test_server_of_the_past),
		cmocka_unit_test(test_server_name_is_sent),
		cmocka_unit_test(test_alpn_of_servers),
		cmocka_unit_test(test_bad_arguments),
		cmocka_unit_test(test_data_both_ways),
		cmocka_unit_test(test_orderly_end),
		cmocka_unit_test(test_cut_short),
		cmocka_unit_test(test_forged_records),
		cmocka_unit_test(test_no_tls),
		cmocka_unit_test(test_ceilings),
		cmocka_unit_test(test_endless_handshakes),
		cmocka_unit_test(test_key_update_flood),
		cmocka_unit_test(test_refuse),
		cmocka_unit_test(test_alert_after_failure),
	};
	return cmocka_run_group_tests(tests, start, stop);
}
