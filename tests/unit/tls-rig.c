/* SPDX-License-Identifier: Apache-2.0 */
#include "tls-rig.h"

#include <assert.h>
#include <openssl/pem.h>
#include <openssl/x509v3.h>
#include <string.h>

#include "base/addr.h"
#include "base/mem.h"

static void add(X509 *x, X509 *issuer, int nid, const char *value)
{
	X509V3_CTX ctx;
	X509V3_set_ctx(&ctx, issuer, x, NULL, NULL, 0);
	X509V3_set_ctx_nodb(&ctx);
	X509_EXTENSION *e = X509V3_EXT_conf_nid(NULL, &ctx, nid, value);
	assert(e && X509_add_ext(x, e, -1));
	X509_EXTENSION_free(e);
}

struct rig_pair rig_make(const struct rig_cert *c, const struct rig_pair *issuer)
{
	struct rig_pair p = { X509_new(), c->rsa ? EVP_RSA_gen((unsigned)(c->rsa_bits ? c->rsa_bits : 2048)) : EVP_EC_gen("P-256") };
	assert(p.x509 && p.key);
	X509 *above = issuer ? issuer->x509 : p.x509;
	X509_set_version(p.x509, X509_VERSION_3);
	static uint64_t serial = 1000;
	ASN1_INTEGER_set_uint64(X509_get_serialNumber(p.x509), serial++);
	X509_NAME_add_entry_by_txt(X509_get_subject_name(p.x509), "CN", MBSTRING_UTF8,
		(const unsigned char *)(c->common_name ? c->common_name : "test"), -1, -1, 0);
	X509_set_issuer_name(p.x509, X509_get_subject_name(above));
	X509_gmtime_adj(X509_getm_notBefore(p.x509), c->from ? c->from : -3600);
	X509_gmtime_adj(X509_getm_notAfter(p.x509), c->to ? c->to : 86400);
	X509_set_pubkey(p.x509, p.key);
	if (!c->basic || *c->basic)
		add(p.x509, above, NID_basic_constraints, c->basic ? c->basic : "critical,CA:FALSE");
	if (!c->basic || !strstr(c->basic, "CA:TRUE"))
		add(p.x509, above, NID_ext_key_usage, c->usage ? c->usage : "serverAuth");
	add(p.x509, above, NID_subject_key_identifier, "hash");
	if (issuer)
		add(p.x509, above, NID_authority_key_identifier, "keyid:always");
	if (c->san)
		add(p.x509, above, NID_subject_alt_name, c->san);
	assert(X509_sign(p.x509, issuer ? issuer->key : p.key, c->sha1 ? EVP_sha1() : EVP_sha256()));
	return p;
}

void rig_pair_done(struct rig_pair *p)
{
	X509_free(p->x509);
	EVP_PKEY_free(p->key);
	*p = (struct rig_pair){ NULL, NULL };
}

char *rig_pem(X509 *x)
{
	BIO *bio = BIO_new(BIO_s_mem());
	char *data;
	PEM_write_bio_X509(bio, x);
	long len = BIO_get_mem_data(bio, &data);
	char *pem = mem_strndup(data, (size_t)len);
	BIO_free(bio);
	return pem;
}

static void peer_start(struct rig_peer *p)
{
	p->ssl = SSL_new(p->ctx);
	p->in = BIO_new(BIO_s_mem());
	p->out = BIO_new(BIO_s_mem());
	BIO_set_mem_eof_return(p->in, -1);
	SSL_set_bio(p->ssl, p->in, p->out);
}

struct rig_peer rig_server(const struct rig_pair *leaf, X509 *intermediate)
{
	struct rig_peer p = { SSL_CTX_new(TLS_server_method()) };
	SSL_CTX_set_security_level(p.ctx, 0);
	assert(SSL_CTX_use_certificate(p.ctx, leaf->x509) == 1 && SSL_CTX_use_PrivateKey(p.ctx, leaf->key) == 1);
	if (intermediate)
		assert(SSL_CTX_add1_chain_cert(p.ctx, intermediate) == 1);
	peer_start(&p);
	SSL_set_accept_state(p.ssl);
	return p;
}

struct rig_peer rig_client(const char *ca_pem, const char *host)
{
	struct rig_peer p = { SSL_CTX_new(TLS_client_method()) };
	BIO *bio = BIO_new_mem_buf(ca_pem, -1);
	X509 *ca = PEM_read_bio_X509(bio, NULL, NULL, NULL);
	BIO_free(bio);
	assert(ca && X509_STORE_add_cert(SSL_CTX_get_cert_store(p.ctx), ca));
	X509_free(ca);
	SSL_CTX_set_verify(p.ctx, SSL_VERIFY_PEER, NULL);
	X509_VERIFY_PARAM_set_flags(SSL_CTX_get0_param(p.ctx), X509_V_FLAG_X509_STRICT);
	peer_start(&p);
	struct ip ip;
	if (ip_parse(host, strlen(host), &ip) == 0)
		X509_VERIFY_PARAM_set1_ip_asc(SSL_get0_param(p.ssl), host);
	else {
		SSL_set1_host(p.ssl, host);
		SSL_set_tlsext_host_name(p.ssl, host);
	}
	SSL_set_connect_state(p.ssl);
	return p;
}

void rig_peer_done(struct rig_peer *p)
{
	SSL_free(p->ssl);
	SSL_CTX_free(p->ctx);
	*p = (struct rig_peer){ NULL };
}

/* One piece from ours to the peer. */
static bool move_out(struct tls *t, struct rig_peer *p, size_t chunk)
{
	struct buf b;
	buf_init(&b, chunk);
	int n = tls_pull(t, &b, chunk);
	if (n > 0)
		assert(BIO_write(p->in, b.data, n) == n);
	buf_free(&b);
	return n > 0;
}

static bool move_in(struct tls *t, struct rig_peer *p, size_t chunk)
{
	char *piece = mem_alloc(chunk);
	int n = BIO_read(p->out, piece, (int)chunk);
	if (n > 0)
		tls_feed(t, piece, (size_t)n);
	mem_free(piece);
	return n > 0;
}

bool rig_run(struct tls *t, struct rig_peer *p, size_t chunk)
{
	bool moved = true;
	while (moved) {
		if (!SSL_is_init_finished(p->ssl))
			SSL_do_handshake(p->ssl);
		moved = move_out(t, p, chunk);
		if (!SSL_is_init_finished(p->ssl))
			SSL_do_handshake(p->ssl);
		moved |= move_in(t, p, chunk);
	}
	return tls_state(t) == TLS_OPEN && SSL_is_init_finished(p->ssl);
}

static bool move_ours(struct tls *from, struct tls *to, size_t chunk)
{
	struct buf b;
	buf_init(&b, chunk);
	int n = tls_pull(from, &b, chunk);
	if (n > 0)
		tls_feed(to, b.data, (size_t)n);
	buf_free(&b);
	return n > 0;
}

bool rig_run_ours(struct tls *a, struct tls *b, size_t chunk)
{
	bool moved = true;
	while (moved) {
		moved = move_ours(a, b, chunk);
		moved |= move_ours(b, a, chunk);
	}
	return tls_state(a) == TLS_OPEN && tls_state(b) == TLS_OPEN;
}
