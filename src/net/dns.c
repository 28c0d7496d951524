/* SPDX-License-Identifier: Apache-2.0 */
#include "net/dns.h"

#include <string.h>

#include "base/buf.h"

enum { HEADER_SIZE = 12, LABEL_MAX = 63, RECORDS_MAX = 8, OPT_SIZE = 11 };

enum {
	FLAG_QR = 0x8000,
	FLAG_TC = 0x0200,
	FLAG_RD = 0x0100,
	FLAG_RA = 0x0080,
	FLAG_CD = 0x0010,
	OPCODE_SHIFT = 11,
};

/* ---- parsing ---- */

/* One uncompressed name. Pointers have no use in a query with one question, and are where parsers of DNS break. */
static int take_name(struct cursor *c, uint8_t out[DNS_NAME_WIRE_MAX], uint8_t *ret_len)
{
	size_t used = 0;
	for (;;) {
		uint8_t n = cursor_u8(c);
		if (c->bad || n > LABEL_MAX || used + 1 + n > DNS_NAME_WIRE_MAX)
			return -1;
		out[used++] = n;
		if (n == 0)
			break;
		const uint8_t *label = cursor_take(c, n);
		if (!label)
			return -1;
		memcpy(out + used, label, n);
		used += n;
	}
	*ret_len = (uint8_t)used;
	return 0;
}

static int take_question(struct cursor *c, struct dns_query *q)
{
	struct dns_query parsed = *q;
	if (take_name(c, parsed.name, &parsed.name_len) < 0)
		return -1;
	parsed.qtype = cursor_u16(c);
	parsed.qclass = cursor_u16(c);
	if (c->bad)
		return -1;
	*q = parsed;
	return 0;
}

/* A record of the additional section: OPT is understood, others are skipped. */
static int take_additional(struct cursor *c, struct dns_query *q)
{
	uint8_t name[DNS_NAME_WIRE_MAX], name_len;
	if (take_name(c, name, &name_len) < 0)
		return -1;
	uint16_t type = cursor_u16(c), class = cursor_u16(c);
	uint32_t ttl = cursor_u32(c);
	uint16_t len = cursor_u16(c);
	cursor_take(c, len);
	if (c->bad)
		return -1;
	if (type != DNS_TYPE_OPT)
		return 0;
	if (q->edns || name_len != 1) /* one OPT only, owned by the root (RFC 6891, 6.1.1 and 6.1.2) */
		return -1;
	q->edns = true;
	q->edns_version = (uint8_t)(ttl >> 16);
	q->udp_size = class < DNS_UDP_CLASSIC_MAX ? DNS_UDP_CLASSIC_MAX : class;
	return 0;
}

enum dns_parse dns_query_parse(const void *data, size_t len, struct dns_query *ret, enum dns_rcode *ret_rcode)
{
	struct cursor c = cursor_make(data, len);
	*ret = (struct dns_query){ .id = cursor_u16(&c), .udp_size = DNS_UDP_CLASSIC_MAX };
	uint16_t flags = cursor_u16(&c), questions = cursor_u16(&c), answers = cursor_u16(&c);
	uint16_t authorities = cursor_u16(&c), additionals = cursor_u16(&c);
	if (c.bad || (flags & FLAG_QR)) /* answering answers is how two servers talk for ever */
		return DNS_PARSE_DROP;
	ret->opcode = (flags >> OPCODE_SHIFT) & 0xf;
	ret->recursion_desired = flags & FLAG_RD;
	ret->checking_disabled = flags & FLAG_CD;
	*ret_rcode = DNS_NOTIMP;
	if (ret->opcode != 0)
		return DNS_PARSE_ERROR;
	*ret_rcode = DNS_FORMERR;
	if (questions != 1 || answers || authorities || additionals > RECORDS_MAX || take_question(&c, ret) < 0)
		return DNS_PARSE_ERROR;
	for (uint16_t i = 0; i < additionals; i++)
		if (take_additional(&c, ret) < 0)
			return DNS_PARSE_ERROR;
	if (!cursor_done(&c))
		return DNS_PARSE_ERROR;
	*ret_rcode = DNS_BADVERS;
	if (ret->edns_version != 0)
		return DNS_PARSE_ERROR;
	*ret_rcode = DNS_REFUSED;
	if (ret->qclass != DNS_CLASS_IN)
		return DNS_PARSE_ERROR;
	*ret_rcode = DNS_NOERROR;
	return DNS_PARSE_OK;
}

/* ---- names ---- */

static bool plain_byte(uint8_t b)
{
	return (b >= 'a' && b <= 'z') || (b >= 'A' && b <= 'Z') || (b >= '0' && b <= '9') || b == '-' || b == '_';
}

int dns_name_text(const struct dns_query *q, char out[HOSTNAME_MAX + 1], size_t *ret_len)
{
	size_t used = 0;
	for (size_t at = 0; at < q->name_len && q->name[at] != 0; at += 1u + q->name[at]) {
		uint8_t n = q->name[at];
		if (used + n + (used > 0) > HOSTNAME_MAX)
			return -1;
		if (used > 0)
			out[used++] = '.';
		for (uint8_t i = 0; i < n; i++) {
			uint8_t b = q->name[at + 1 + i];
			if (!plain_byte(b)) /* a dot inside a label would read as two labels */
				return -1;
			out[used++] = (char)b;
		}
	}
	out[used] = '\0';
	*ret_len = used;
	return 0;
}

static uint8_t lower(uint8_t b)
{
	return b >= 'A' && b <= 'Z' ? b | 0x20 : b;
}

static bool label_is(const uint8_t *label, const char *text)
{
	size_t n = strlen(text);
	if (label[0] != n)
		return false;
	for (size_t i = 0; i < n; i++)
		if (lower(label[1 + i]) != (uint8_t)text[i])
			return false;
	return true;
}

/* Offsets of the labels; returns how many, or 0 when there are more than `room`. */
static size_t label_offsets(const struct dns_query *q, uint8_t *offsets, size_t room)
{
	size_t n = 0;
	for (size_t at = 0; at < q->name_len && q->name[at] != 0; at += 1u + q->name[at]) {
		if (n == room)
			return 0;
		offsets[n++] = (uint8_t)at;
	}
	return n;
}

static int octet_label(const uint8_t *label, uint8_t *ret)
{
	unsigned v = 0;
	if (label[0] < 1 || label[0] > 3 || (label[0] > 1 && label[1] == '0'))
		return -1;
	for (uint8_t i = 1; i <= label[0]; i++) {
		if (label[i] < '0' || label[i] > '9')
			return -1;
		v = v * 10 + (label[i] - '0');
	}
	if (v > 255)
		return -1;
	*ret = (uint8_t)v;
	return 0;
}

static int nibble_label(const uint8_t *label, uint8_t *ret)
{
	uint8_t c = lower(label[1]);
	if (label[0] != 1)
		return -1;
	if (c >= '0' && c <= '9')
		*ret = c - '0';
	else if (c >= 'a' && c <= 'f')
		*ret = (uint8_t)(c - 'a' + 10);
	else
		return -1;
	return 0;
}

static int reverse_v4(const struct dns_query *q, const uint8_t *at, struct ip *ret)
{
	struct ip ip = { .family = AF_INET };
	for (unsigned i = 0; i < 4; i++)
		if (octet_label(q->name + at[i], &ip.bytes[3 - i]) < 0)
			return -1;
	*ret = ip;
	return 0;
}

static int reverse_v6(const struct dns_query *q, const uint8_t *at, struct ip *ret)
{
	struct ip ip = { .family = AF_INET6 };
	for (unsigned i = 0; i < 32; i++) {
		uint8_t nibble;
		if (nibble_label(q->name + at[i], &nibble) < 0)
			return -1;
		ip.bytes[15 - i / 2] |= (uint8_t)(i % 2 ? nibble << 4 : nibble);
	}
	*ret = ip;
	return 0;
}

int dns_name_reverse(const struct dns_query *q, struct ip *ret)
{
	uint8_t at[34];
	size_t n = label_offsets(q, at, 34);
	if (n < 2 || !label_is(q->name + at[n - 1], "arpa"))
		return -1;
	if (n == 6 && label_is(q->name + at[4], "in-addr"))
		return reverse_v4(q, at, ret);
	if (n == 34 && label_is(q->name + at[32], "ip6"))
		return reverse_v6(q, at, ret);
	return -1;
}

/* ---- answering ---- */

/* Writes into a fixed array; `overflow` stays set once something did not fit. */
struct writer { uint8_t *out; size_t len, room; bool overflow; };

static void put(struct writer *w, const void *data, size_t len)
{
	if (w->overflow || len > w->room - w->len) {
		w->overflow = true;
		return;
	}
	memcpy(w->out + w->len, data, len);
	w->len += len;
}

static void put_u16(struct writer *w, unsigned v)
{
	put(w, (uint8_t[]){ (uint8_t)(v >> 8), (uint8_t)v }, 2);
}

static void put_u32(struct writer *w, uint32_t v)
{
	put_u16(w, v >> 16);
	put_u16(w, v & 0xffff);
}

/* A record owned by the question's name, which stands right behind the header. */
static void put_record(struct writer *w, unsigned type, uint32_t ttl, const void *data, size_t len)
{
	put_u16(w, 0xc000 | HEADER_SIZE);
	put_u16(w, type);
	put_u16(w, DNS_CLASS_IN);
	put_u32(w, ttl);
	put_u16(w, (unsigned)len);
	put(w, data, len);
}

static void put_opt(struct writer *w, enum dns_rcode rcode)
{
	put(w, "", 1);
	put_u16(w, DNS_TYPE_OPT);
	put_u16(w, DNS_REPLY_MAX);
	put_u32(w, (uint32_t)(rcode >> 4) << 24);
	put_u16(w, 0);
}

/* "a.b" as labels; hostname_parse has checked their lengths. Returns the length. */
static size_t name_to_wire(const struct hostname *name, uint8_t out[DNS_NAME_WIRE_MAX])
{
	size_t length_at = 0, used = 1;
	for (uint8_t i = 0; i < name->len; i++) {
		if (name->text[i] == '.') {
			out[length_at] = (uint8_t)(used - length_at - 1);
			length_at = used++;
		} else {
			out[used++] = (uint8_t)name->text[i];
		}
	}
	out[length_at] = (uint8_t)(used - length_at - 1);
	out[used++] = 0;
	return used;
}

static unsigned put_answers(struct writer *w, const struct dns_reply *r)
{
	unsigned n = 0;
	for (size_t i = 0; i < r->n_addresses && !w->overflow; i++, n++) {
		bool v6 = r->addresses[i].family == AF_INET6;
		put_record(w, v6 ? DNS_TYPE_AAAA : DNS_TYPE_A, r->ttl, r->addresses[i].bytes, v6 ? 16 : 4);
	}
	if (r->ptr && !w->overflow) {
		uint8_t name[DNS_NAME_WIRE_MAX];
		put_record(w, DNS_TYPE_PTR, r->ttl, name, name_to_wire(r->ptr, name));
		n++;
	}
	return n;
}

static void put_header(struct writer *w, const struct dns_query *q, enum dns_rcode rcode, bool truncated, unsigned answers)
{
	put_u16(w, q->id);
	put_u16(w, FLAG_QR | (unsigned)q->opcode << OPCODE_SHIFT | (truncated ? FLAG_TC : 0) | (q->recursion_desired ? FLAG_RD : 0) |
		FLAG_RA | (q->checking_disabled ? FLAG_CD : 0) | (rcode & 0xf));
	put_u16(w, q->name_len > 0);
	put_u16(w, answers);
	put_u16(w, 0);
	put_u16(w, q->edns);
}

size_t dns_reply_build(const struct dns_query *q, const struct dns_reply *r, uint8_t *out, size_t room)
{
	struct writer w = { .out = out, .len = HEADER_SIZE, .room = room - (q->edns ? OPT_SIZE : 0) };
	if (q->name_len > 0) {
		put(&w, q->name, q->name_len);
		put_u16(&w, q->qtype);
		put_u16(&w, q->qclass);
	}
	size_t before_answers = w.len;
	unsigned answers = put_answers(&w, r);
	bool truncated = w.overflow;
	if (truncated) { /* all or nothing: half of an address set is no use, the client asks again over TCP */
		w.len = before_answers;
		w.overflow = false;
		answers = 0;
	}
	w.room = room;
	if (q->edns)
		put_opt(&w, r->rcode);
	size_t len = w.len;
	w.len = 0;
	put_header(&w, q, r->rcode, truncated, answers);
	return len;
}

size_t dns_reply_room_udp(const struct dns_query *q)
{
	return q->udp_size > DNS_REPLY_MAX ? DNS_REPLY_MAX : q->udp_size;
}
