/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The database of NSS (Chromium and others): cert9.db with a certificate and the trust in it, key4.db with nothing. Written as they are, without
 * libsqlite3, which every run would pay for; they are SQLite files of one page a table and a page an index. While no password has been
 * set, NSS expects no signature on the trust.
 *
 * https://www.sqlite.org/fileformat2.html: page 1 has the file's head and the schema; cells fill a page from its end.
 */
#include <stdio.h>
#include <string.h>

#include "base/mem.h"
#include "sandbox/trust-internal.h"

#define PAGE 4096u
#define FILE_HEAD 100u
#define PAGE_HEAD 8u
#define PAGES_MAX 8u
#define TABLE_LEAF 0x0d
#define INDEX_LEAF 0x0a

/* ---- a SQLite file ---- */

struct page {
	uint8_t data[PAGE];
	size_t head; /* where the page's head is */
	unsigned n;
	size_t start; /* of the cells' part */
};

struct database {
	struct page pages[PAGES_MAX]; /* 0: the schema */
	unsigned n;
	bool bad;
};

static void put16(uint8_t *p, size_t v)
{
	p[0] = (uint8_t)(v >> 8);
	p[1] = (uint8_t)v;
}

static void put32(uint8_t *p, uint32_t v)
{
	put16(p, v >> 16);
	put16(p + 2, v & 0xffff);
}

/* 1 to 3 bytes, for values below 2^21. */
static int put_varint(struct buf *b, size_t v)
{
	if (v >= 1u << 14 && buf_put_u8(b, (uint8_t)(0x80 | v >> 14)) < 0)
		return -1;
	if (v >= 1u << 7 && buf_put_u8(b, (uint8_t)(0x80 | (v >> 7 & 0x7f))) < 0)
		return -1;
	return buf_put_u8(b, (uint8_t)(v & 0x7f));
}

static unsigned add_page(struct database *d, uint8_t type)
{
	if (d->n == PAGES_MAX) {
		d->bad = true;
		return 0;
	}
	struct page *p = &d->pages[d->n];
	*p = (struct page){ .head = d->n == 0 ? FILE_HEAD : 0, .start = PAGE };
	p->data[p->head] = type;
	return d->n++;
}

static void add_cell(struct database *d, unsigned page, const struct buf *cell)
{
	struct page *p = &d->pages[page];
	size_t pointers = p->head + PAGE_HEAD + 2 * p->n;
	if (pointers + 2 + cell->len > p->start) { /* nothing of ours is so long */
		d->bad = true;
		return;
	}
	p->start -= cell->len;
	memcpy(p->data + p->start, cell->data, cell->len);
	put16(p->data + pointers, p->start);
	p->n++;
	put16(p->data + p->head + 3, p->n);
}

/* A record: types of all columns, then their bytes. */
struct record { struct buf types, body; };

static void record_begin(struct record *r)
{
	buf_init(&r->types, PAGE);
	buf_init(&r->body, PAGE);
}

static void record_null(struct record *r)
{
	buf_put_u8(&r->types, 0);
}

static void record_number(struct record *r, uint8_t v)
{
	buf_put_u8(&r->types, 1);
	buf_put_u8(&r->body, v);
}

static void record_bytes(struct record *r, const void *p, size_t len, bool text)
{
	put_varint(&r->types, 2 * len + (text ? 13 : 12));
	buf_append(&r->body, p, len);
}

static void record_text(struct record *r, const char *s)
{
	record_bytes(r, s, strlen(s), true);
}

/* Ends the record as a cell: of a table with its row's number, of an index (row 0) without. */
static void record_add(struct database *d, unsigned page, struct record *r, unsigned row)
{
	struct buf cell;
	size_t head = r->types.len + (r->types.len + 1 < 0x80 ? 1 : 2);
	buf_init(&cell, PAGE);
	int failed = put_varint(&cell, head + r->body.len);
	if (row > 0)
		failed |= put_varint(&cell, row);
	failed |= put_varint(&cell, head) | buf_append(&cell, r->types.data, r->types.len) | buf_append(&cell, r->body.data, r->body.len);
	if (failed)
		d->bad = true;
	else
		add_cell(d, page, &cell);
	buf_free(&cell);
	buf_free(&r->types);
	buf_free(&r->body);
}

static void add_schema(struct database *d, const char *type, const char *name, const char *table, unsigned page, const char *sql)
{
	struct record r;
	record_begin(&r);
	record_text(&r, type);
	record_text(&r, name);
	record_text(&r, table);
	record_number(&r, (uint8_t)(page + 1));
	if (sql)
		record_text(&r, sql);
	else
		record_null(&r);
	record_add(d, 0, &r, d->pages[0].n + 1);
}

/* An empty table whose first column has an index, on the page behind. */
static unsigned add_table(struct database *d, const char *name, const char *sql)
{
	char index[64];
	snprintf(index, sizeof(index), "sqlite_autoindex_%s_1", name);
	unsigned page = add_page(d, TABLE_LEAF);
	add_schema(d, "table", name, name, page, sql);
	add_schema(d, "index", index, name, add_page(d, INDEX_LEAF), NULL);
	return page;
}

static void database_begin(struct database *d)
{
	d->n = 0;
	d->bad = false;
	add_page(d, TABLE_LEAF);
}

static int database_end(struct database *d, struct buf *ret)
{
	static const char magic[16] = "SQLite format 3";
	uint8_t *h = d->pages[0].data;
	memcpy(h, magic, sizeof(magic));
	put16(h + 16, PAGE);
	h[18] = h[19] = 1; /* rollback journal */
	h[21] = 64;	   /* three constants */
	h[22] = h[23] = 32;
	put32(h + 24, 1); /* change counter, and below: which one the version is of */
	put32(h + 28, d->n);
	put32(h + 40, 1);  /* schema cookie */
	put32(h + 44, 4);  /* schema format */
	put32(h + 56, 1);  /* UTF-8 */
	put32(h + 92, 1);
	put32(h + 96, 3040000); /* the version that wrote it would be this one */
	int r = d->bad ? -1 : 0;
	for (unsigned i = 0; r == 0 && i < d->n; i++) {
		put16(d->pages[i].data + d->pages[i].head + 5, d->pages[i].start);
		r = buf_append(ret, d->pages[i].data, PAGE);
	}
	return r;
}

/* ---- NSS's tables ---- */

enum attribute {
	CLASS = 0x0, TOKEN = 0x1, PRIVATE = 0x2, LABEL = 0x3, VALUE = 0x11, CERT_TYPE = 0x80, ISSUER = 0x81, SERIAL = 0x82, SUBJECT = 0x101,
	MODIFIABLE = 0x170, SERVER_AUTH = 0x4e536358, CLIENT_AUTH = 0x4e536359, CODE_SIGNING = 0x4e53635a, EMAIL = 0x4e53635b,
	STEP_UP = 0x4e536360, CERT_SHA1 = 0x4e5363b4,
};

/* A column for each attribute that softoken knows (3.87; columns that an older one doesn't know don't disturb it). VENDOR: | 0x80000000. */
#define VENDOR(n) (0x80000000u | (n))
static const uint32_t columns[] = { 0x0, 0x1, 0x2, 0x3, 0x10, 0x11, 0x12, 0x80, 0x81, 0x82, 0x83, 0x84, 0x85, 0x86, 0x87, 0x88, 0x89, 0x8a, 0x8b, 0x90,
	0x100, 0x101, 0x102, 0x103, 0x104, 0x105, 0x106, 0x107, 0x108, 0x109, 0x10a, 0x10b, 0x10c, 0x110, 0x111, 0x120, 0x121, 0x122, 0x123, 0x124, 0x125,
	0x126, 0x127, 0x128, 0x129, 0x130, 0x131, 0x132, 0x133, 0x134, 0x160, 0x161, 0x162, 0x163, 0x164, 0x165, 0x166, 0x170, 0x180, 0x181, 0x200, 0x201,
	0x202, 0x210, 0x300, 0x301, 0x302, 0x400, 0x401, 0x402, 0x403, 0x404, 0x405, 0x406, 0x480, 0x481, 0x482, 0x500, 0x501, 0x502, 0x503, 0x40000211,
	0x40000212, VENDOR(1), VENDOR(0x4e534351), VENDOR(0x4e534352), VENDOR(0x4e534353), VENDOR(0x4e534354), VENDOR(0x4e534355), VENDOR(0x4e534356),
	VENDOR(0x4e534357), VENDOR(0x4e534358), VENDOR(0x4e534364), VENDOR(0x4e534365), VENDOR(0x4e534366), VENDOR(0x4e534367), VENDOR(0x4e534368),
	VENDOR(0x4e534369), VENDOR(0x4e534373), VENDOR(0x4e534374), VENDOR(0x4e536351), VENDOR(0x4e536352), VENDOR(0x4e536353), VENDOR(0x4e536354),
	VENDOR(0x4e536355), VENDOR(0x4e536356), VENDOR(0x4e536357), VENDOR(0x4e536358), VENDOR(0x4e536359), VENDOR(0x4e53635a), VENDOR(0x4e53635b),
	VENDOR(0x4e53635c), VENDOR(0x4e53635d), VENDOR(0x4e53635e), VENDOR(0x4e53635f), VENDOR(0x4e536360), VENDOR(0x4e5363b4), VENDOR(0x4e5363b5),
	VENDOR(0x55a0db00) };

struct value { uint32_t attribute; const void *p; size_t len; };

static unsigned add_object_table(struct database *d, const char *name)
{
	struct buf sql;
	buf_init(&sql, PAGE);
	buf_printf(&sql, "CREATE TABLE %s (id PRIMARY KEY UNIQUE ON CONFLICT ABORT", name);
	for (size_t i = 0; i < ARRAY_LEN(columns); i++)
		buf_printf(&sql, ", a%x", columns[i]);
	if (buf_append(&sql, ")", 2) < 0)
		d->bad = true;
	unsigned page = d->bad ? 0 : add_table(d, name, (const char *)sql.data);
	buf_free(&sql);
	return page;
}

static const struct value *find_value(const struct value *values, size_t n, uint32_t attribute)
{
	for (size_t i = 0; i < n; i++)
		if (values[i].attribute == attribute)
			return &values[i];
	return NULL;
}

static void add_object(struct database *d, unsigned table, const struct value *values, size_t n)
{
	struct record r;
	unsigned row = d->pages[table].n + 1;
	record_begin(&r);
	record_number(&r, (uint8_t)row); /* NSS's handle of it */
	for (size_t i = 0; i < ARRAY_LEN(columns); i++) {
		const struct value *v = find_value(values, n, columns[i]);
		if (v)
			record_bytes(&r, v->p, v->len, false);
		else
			record_null(&r);
	}
	record_add(d, table, &r, row);
	record_begin(&r);
	record_number(&r, (uint8_t)row);
	record_number(&r, (uint8_t)row);
	record_add(d, table + 1, &r, 0);
}

#define BYTES(...) (const uint8_t[]){ __VA_ARGS__ }, sizeof((const uint8_t[]){ __VA_ARGS__ })
#define YES BYTES(1)
#define NO BYTES(0)

static void add_certificate(struct database *d, unsigned table, const struct trust_cert *ca)
{
	const struct value values[] = { { CLASS, BYTES(0, 0, 0, 1) }, { TOKEN, YES }, { PRIVATE, NO }, { LABEL, TRUST_NAME, strlen(TRUST_NAME) },
		{ VALUE, ca->der, ca->len }, { CERT_TYPE, BYTES(0, 0, 0, 0) }, { ISSUER, ca->issuer.p, ca->issuer.len },
		{ SERIAL, ca->serial.p, ca->serial.len }, { SUBJECT, ca->subject.p, ca->subject.len }, { MODIFIABLE, YES } };
	add_object(d, table, values, ARRAY_LEN(values));
}

/* May name servers, and nobody else. */
static void add_trust(struct database *d, unsigned table, const struct trust_cert *ca)
{
	uint8_t sha1[SHA1_SIZE];
	trust_sha1(ca->der, ca->len, sha1);
	const struct value values[] = { { CLASS, BYTES(0xce, 0x53, 0x43, 0x53) }, { TOKEN, YES }, { PRIVATE, NO }, { LABEL, BYTES(0xa5, 0, 0x5a) },
		{ ISSUER, ca->issuer.p, ca->issuer.len }, { SERIAL, ca->serial.p, ca->serial.len }, { MODIFIABLE, YES },
		{ VENDOR(SERVER_AUTH), BYTES(0xce, 0x53, 0x43, 0x52) },	 /* trusted delegator */
		{ VENDOR(CLIENT_AUTH), BYTES(0xce, 0x53, 0x43, 0x53) },	 /* must verify: as any other */
		{ VENDOR(CODE_SIGNING), BYTES(0xce, 0x53, 0x43, 0x53) }, { VENDOR(EMAIL), BYTES(0xce, 0x53, 0x43, 0x53) }, { VENDOR(STEP_UP), NO },
		{ VENDOR(CERT_SHA1), sha1, sizeof(sha1) } };
	add_object(d, table, values, ARRAY_LEN(values));
}

int trust_nss_certs(struct buf *ret, const struct trust_cert *ca)
{
	struct database *d = mem_alloc(sizeof(*d));
	database_begin(d);
	unsigned table = add_object_table(d, "nssPublic");
	if (!d->bad)
		add_certificate(d, table, ca);
	if (!d->bad)
		add_trust(d, table, ca);
	int r = database_end(d, ret);
	mem_free(d);
	return r;
}

int trust_nss_keys(struct buf *ret)
{
	struct database *d = mem_alloc(sizeof(*d));
	database_begin(d);
	add_object_table(d, "nssPrivate");
	add_table(d, "metaData", "CREATE TABLE metaData (id PRIMARY KEY UNIQUE ON CONFLICT REPLACE, item1, item2)");
	int r = database_end(d, ret);
	mem_free(d);
	return r;
}
