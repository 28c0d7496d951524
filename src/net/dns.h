/* SPDX-License-Identifier: Apache-2.0 */
/*
 * DNS messages, as far as a server needs them that answers one question with addresses or one name (RFC 1035, 6891). The
 * queries come from untrusted programs. Strict: exactly one question, no compression pointers in a query, labels of 1-63
 * bytes, names of at most 255 bytes, nothing after the last record. No I/O, no allocation.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/addr.h"

#define DNS_NAME_WIRE_MAX 255u
#define DNS_QUERY_MAX 1232u      /* longer queries are not looked at */
#define DNS_UDP_CLASSIC_MAX 512u /* answer ceiling over UDP for a client without EDNS */
#define DNS_REPLY_MAX 1232u      /* our own ceiling, whatever the client offers: never fragmented */

enum dns_type {
	DNS_TYPE_A = 1,
	DNS_TYPE_PTR = 12,
	DNS_TYPE_AAAA = 28,
	DNS_TYPE_OPT = 41,
	DNS_TYPE_ANY = 255,
};

enum { DNS_CLASS_IN = 1 };

enum dns_rcode {
	DNS_NOERROR = 0,
	DNS_FORMERR = 1,
	DNS_SERVFAIL = 2,
	DNS_NXDOMAIN = 3,
	DNS_NOTIMP = 4,
	DNS_REFUSED = 5,
	DNS_BADVERS = 16, /* needs EDNS */
};

struct dns_query {
	uint16_t id;
	uint8_t opcode;
	bool recursion_desired, checking_disabled;
	uint16_t qtype, qclass;
	uint8_t name[DNS_NAME_WIRE_MAX]; /* wire form with the root label, letter case as it came */
	uint8_t name_len;                /* 0: there is no question to repeat in the answer */
	bool edns;
	uint8_t edns_version;
	uint16_t udp_size;               /* what the client can take over UDP; 512 without EDNS */
};

enum dns_parse {
	DNS_PARSE_OK,    /* a question that can be judged */
	DNS_PARSE_ERROR, /* answer with *ret_rcode; q is filled as far as needed for that */
	DNS_PARSE_DROP,  /* no answer at all: too short for a header, or itself an answer */
};
enum dns_parse dns_query_parse(const void *data, size_t len, struct dns_query *ret, enum dns_rcode *ret_rcode);

/* The name as dotted text ("" for the root), when every label consists of letters, digits, '-' and '_'. 0 or -1. */
int dns_name_text(const struct dns_query *q, char out[HOSTNAME_MAX + 1], size_t *ret_len);
/* The address that an in-addr.arpa or ip6.arpa name stands for. 0 or -1. */
int dns_name_reverse(const struct dns_query *q, struct ip *ret);

struct dns_reply {
	enum dns_rcode rcode;
	const struct ip *addresses;   /* A or AAAA, by family */
	size_t n_addresses;
	const struct hostname *ptr;   /* or NULL */
	uint32_t ttl;
};

/* Writes the answer to `q` into out. Records that don't fit into `room` are left out and TC is set. `room` is at least
 * DNS_UDP_CLASSIC_MAX: header, question and OPT always fit. Returns the length. */
size_t dns_reply_build(const struct dns_query *q, const struct dns_reply *r, uint8_t *out, size_t room);

/* The ceiling for an answer to `q` over UDP. */
size_t dns_reply_room_udp(const struct dns_query *q);
