/* SPDX-License-Identifier: Apache-2.0 */
/* Any bytes as a DNS query; whatever is to be answered is answered, within its ceiling, and the answer repeats the question. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "net/dns.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check(int condition)
{
	if (!condition)
		abort();
}

static void answer(const struct dns_query *q, enum dns_rcode rcode, size_t room, const struct ip *ips, size_t n, const struct hostname *ptr)
{
	uint8_t out[DNS_REPLY_MAX];
	struct dns_reply r = { .rcode = rcode, .addresses = ips, .n_addresses = n, .ptr = ptr, .ttl = 10 };
	size_t len = dns_reply_build(q, &r, out, room);
	check(len >= 12 && len <= room);
	check(out[0] == q->id >> 8 && out[1] == (q->id & 0xff) && (out[2] & 0x80));
	check(q->name_len == 0 || memcmp(out + 12, q->name, q->name_len) == 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct dns_query q;
	enum dns_rcode rcode;
	enum dns_parse parsed = dns_query_parse(data, size, &q, &rcode);
	if (parsed == DNS_PARSE_DROP)
		return 0;
	char text[HOSTNAME_MAX + 1];
	size_t len;
	struct hostname host, *ptr = NULL;
	struct ip ips[2] = { { .family = AF_INET }, { .family = AF_INET6 } };
	if (parsed == DNS_PARSE_OK && dns_name_text(&q, text, &len) == 0) {
		check(strlen(text) == len && len <= HOSTNAME_MAX);
		if (hostname_parse(text, len, &host, NULL) == 0)
			ptr = &host;
	}
	if (dns_name_reverse(&q, &ips[0]) == 0)
		check(ips[0].family == AF_INET || ips[0].family == AF_INET6);
	answer(&q, parsed == DNS_PARSE_OK ? DNS_NOERROR : rcode, dns_reply_room_udp(&q), ips, 2, ptr);
	answer(&q, rcode, DNS_UDP_CLASSIC_MAX, NULL, 0, NULL);
	return 0;
}
