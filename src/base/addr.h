/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Host names and IP addresses, parsed once into a canonical value. Nothing downstream looks at the text
 * again: what was matched is what is resolved and dialled.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>
#include <netinet/in.h>

#include "base/err.h"

#define HOSTNAME_MAX 253

/* A DNS name: 1 to 127 labels of letters, digits and hyphens (LDH, RFC 1123 section 2.1; each 1-63 bytes, no hyphen at either
 * end), lower case, without the trailing dot. Never something that an address parser could read as a number: the last label
 * is not all digits and not 0x-hex (WHATWG URL "ends in a number"). */
struct hostname {
	char text[HOSTNAME_MAX + 1];
	uint8_t len;
	uint8_t labels;
};

/* Parses exactly `len` bytes (a NUL inside is an error); folds case; accepts one trailing dot. 0 or -1. */
int hostname_parse(const void *data, size_t len, struct hostname *ret, struct err *err);
bool hostname_equal(const struct hostname *a, const struct hostname *b);

struct ip {
	int family;        /* AF_INET or AF_INET6 */
	uint8_t bytes[16]; /* network order; the first 4 for AF_INET */
};

#define IP_TEXT_MAX 46
/* Only the canonical spellings: dotted quad without leading zeros; RFC 4291 IPv6 text without zone, an embedded quad allowed. 0
 * or -1. */
int ip_parse(const void *data, size_t len, struct ip *ret);
/* RFC 5952. Returns out. */
const char *ip_format(const struct ip *ip, char out[IP_TEXT_MAX]);
bool ip_equal(const struct ip *a, const struct ip *b);
void ip_to_sockaddr(const struct ip *ip, uint16_t port, struct sockaddr_storage *ret, socklen_t *ret_len);
int ip_from_sockaddr(const struct sockaddr *sa, struct ip *ret, uint16_t *ret_port); /* 0 or -1 (other family) */
/* The IPv4 address carried inside an IPv6 one (mapped, compatible, 6to4, NAT64 64:ff9b::/96 and 64:ff9b:1::/48 last 32 bits,
 * Teredo client, ISATAP); false when there is none. */
bool ip_embedded_v4(const struct ip *ip, struct ip *ret);

/* "host", "host:port", "[v6]:port" as in --allow and in CONNECT targets. The host part is returned in place, unparsed.
 * *ret_port is 0 when absent. 0 or -1. */
int hostport_split(const char *s, size_t len, const char **ret_host, size_t *ret_host_len, uint16_t *ret_port);
