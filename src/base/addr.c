/* SPDX-License-Identifier: Apache-2.0 */
#include "base/addr.h"

#include <arpa/inet.h>
#include <stdio.h>
#include <string.h>

#include "base/text.h"

#define LABEL_MAX 63

static bool is_digit(char c)
{
	return c >= '0' && c <= '9';
}

static bool is_hex(char c)
{
	return is_digit(c) || (c >= 'a' && c <= 'f');
}

static bool is_letter_or_digit(char c)
{
	return is_digit(c) || (c >= 'a' && c <= 'z');
}

/* ASCII only: tolower() would ask the locale. */
static char fold(char c)
{
	return c >= 'A' && c <= 'Z' ? (char)(c - 'A' + 'a') : c;
}

static const char *check_label(const char *label, size_t len)
{
	if (len == 0)
		return "it has an empty label";
	if (len > LABEL_MAX)
		return "a label is longer than 63 bytes";
	if (label[0] == '-' || label[len - 1] == '-')
		return "a label begins or ends with a hyphen";
	for (size_t i = 0; i < len; i++)
		if (!is_letter_or_digit(label[i]) && label[i] != '-')
			return "only letters, digits and hyphens may stand between the dots";
	return NULL;
}

/* Some parser would take a name that ends like this for an IPv4 address (127.1, 0x7f000001, 2130706433). */
static bool is_number(const char *label, size_t len)
{
	bool hex = len >= 2 && label[0] == '0' && label[1] == 'x';
	for (size_t i = hex ? 2 : 0; i < len; i++)
		if (hex ? !is_hex(label[i]) : !is_digit(label[i]))
			return false;
	return true;
}

static const char *check_labels(struct hostname *name)
{
	const char *label = name->text;
	name->labels = 0;
	for (;;) {
		size_t len = strcspn(label, ".");
		const char *why = check_label(label, len);
		if (why)
			return why;
		name->labels++;
		if (label[len] == '\0')
			return is_number(label, len) ? "it ends in a number, which some programs read as an IP address" : NULL;
		label += len + 1;
	}
}

static int refuse(struct err *err, const void *data, size_t len, const char *why)
{
	char shown[96];
	text_escape(data, len, shown, sizeof(shown));
	return err_set(err, ERR_INVALID, "\"%s\" is not a host name: %s", shown, why);
}

int hostname_parse(const void *data, size_t len, struct hostname *ret, struct err *err)
{
	const char *p = data;
	size_t kept = len > 0 && p[len - 1] == '.' ? len - 1 : len;
	if (kept == 0)
		return refuse(err, data, len, "it is empty");
	if (kept > HOSTNAME_MAX)
		return refuse(err, data, len, "it is longer than 253 bytes");
	struct hostname name = { .len = (uint8_t)kept };
	for (size_t i = 0; i < kept; i++) {
		if (p[i] == '\0')
			return refuse(err, data, len, "it contains a NUL byte");
		name.text[i] = fold(p[i]);
	}
	const char *why = check_labels(&name);
	if (why)
		return refuse(err, data, len, why);
	*ret = name;
	return 0;
}

bool hostname_equal(const struct hostname *a, const struct hostname *b)
{
	return a->len == b->len && memcmp(a->text, b->text, a->len) == 0;
}

static size_t ip_size(const struct ip *ip)
{
	return ip->family == AF_INET ? 4 : 16;
}

int ip_parse(const void *data, size_t len, struct ip *ret)
{
	char text[IP_TEXT_MAX];
	if (len == 0 || len >= sizeof(text) || memchr(data, 0, len))
		return -1;
	memcpy(text, data, len);
	text[len] = '\0';
	/* inet_pton takes four decimal parts without leading zeros and nothing shorter, and no zone: what inet_aton and
	 * getaddrinfo accept beyond that must not be an address here. */
	struct ip ip = { .family = memchr(text, ':', len) ? AF_INET6 : AF_INET };
	if (inet_pton(ip.family, text, ip.bytes) != 1)
		return -1;
	*ret = ip;
	return 0;
}

/* The longest run of at least two zero groups, the first of equals (RFC 5952 section 4.2). */
static unsigned longest_zero_run(const uint16_t groups[8], unsigned *ret_start)
{
	unsigned best = 0;
	for (unsigned i = 0; i < 8; i++) {
		unsigned n = 0;
		while (i + n < 8 && groups[i + n] == 0)
			n++;
		if (n > best) {
			best = n;
			*ret_start = i;
		}
		i += n;
	}
	return best >= 2 ? best : 0;
}

static bool has_prefix(const struct ip *ip, const uint8_t *prefix, size_t len)
{
	return memcmp(ip->bytes, prefix, len) == 0;
}

static const uint8_t prefix_mapped[12] = { [10] = 0xff, [11] = 0xff };

static void format_v6(const struct ip *ip, char *out)
{
	uint16_t groups[8];
	for (unsigned i = 0; i < 8; i++)
		groups[i] = (uint16_t)(ip->bytes[2 * i] << 8 | ip->bytes[2 * i + 1]);
	unsigned start = 8, run = longest_zero_run(groups, &start), at = 0;
	if (run == 0)
		start = 8;
	for (unsigned i = 0; i < 8;) {
		if (i == start) {
			at += (unsigned)snprintf(out + at, IP_TEXT_MAX - at, "::");
			i += run;
			continue;
		}
		const char *colon = i == 0 || i == start + run ? "" : ":";
		at += (unsigned)snprintf(out + at, IP_TEXT_MAX - at, "%s%x", colon, groups[i++]);
	}
}

const char *ip_format(const struct ip *ip, char out[IP_TEXT_MAX])
{
	const uint8_t *b = ip->bytes;
	if (ip->family == AF_INET)
		snprintf(out, IP_TEXT_MAX, "%u.%u.%u.%u", b[0], b[1], b[2], b[3]);
	else if (has_prefix(ip, prefix_mapped, sizeof(prefix_mapped)))
		snprintf(out, IP_TEXT_MAX, "::ffff:%u.%u.%u.%u", b[12], b[13], b[14], b[15]);
	else
		format_v6(ip, out);
	return out;
}

bool ip_equal(const struct ip *a, const struct ip *b)
{
	return a->family == b->family && memcmp(a->bytes, b->bytes, ip_size(a)) == 0;
}

void ip_to_sockaddr(const struct ip *ip, uint16_t port, struct sockaddr_storage *ret, socklen_t *ret_len)
{
	memset(ret, 0, sizeof(*ret));
	if (ip->family == AF_INET) {
		struct sockaddr_in *in = (struct sockaddr_in *)ret;
		in->sin_family = AF_INET;
		in->sin_port = htons(port);
		memcpy(&in->sin_addr, ip->bytes, 4);
		*ret_len = sizeof(*in);
	} else {
		struct sockaddr_in6 *in6 = (struct sockaddr_in6 *)ret;
		in6->sin6_family = AF_INET6;
		in6->sin6_port = htons(port);
		memcpy(&in6->sin6_addr, ip->bytes, 16);
		*ret_len = sizeof(*in6);
	}
}

int ip_from_sockaddr(const struct sockaddr *sa, struct ip *ret, uint16_t *ret_port)
{
	struct ip ip = { .family = sa->sa_family };
	uint16_t port;
	if (sa->sa_family == AF_INET) {
		const struct sockaddr_in *in = (const struct sockaddr_in *)sa;
		memcpy(ip.bytes, &in->sin_addr, 4);
		port = ntohs(in->sin_port);
	} else if (sa->sa_family == AF_INET6) {
		const struct sockaddr_in6 *in6 = (const struct sockaddr_in6 *)sa;
		memcpy(ip.bytes, &in6->sin6_addr, 16);
		port = ntohs(in6->sin6_port);
	} else {
		return -1;
	}
	*ret = ip;
	if (ret_port)
		*ret_port = port;
	return 0;
}

/* Where the IPv4 address sits in an IPv6 one; -1 when there is none. Sets *ret_inverted for Teredo, which flips all bits. */
static int embedded_at(const struct ip *ip, bool *ret_inverted)
{
	static const uint8_t zeros[12];
	static const uint8_t translated[12] = { [8] = 0xff, [9] = 0xff };               /* ::ffff:0:0:0/96, RFC 2765 */
	static const uint8_t nat64[12] = { 0x00, 0x64, 0xff, 0x9b };                    /* RFC 6052 */
	static const uint8_t nat64_local[6] = { 0x00, 0x64, 0xff, 0x9b, 0x00, 0x01 };   /* RFC 8215 */
	static const uint8_t teredo[4] = { 0x20, 0x01, 0x00, 0x00 };                    /* RFC 4380 */
	static const uint8_t six_to_four[2] = { 0x20, 0x02 };                           /* RFC 3056 */
	/* RFC 5214, with or without the u bit */
	static const uint8_t isatap[4] = { 0x00, 0x00, 0x5e, 0xfe };
	const uint8_t *b = ip->bytes;
	*ret_inverted = false;
	if (has_prefix(ip, prefix_mapped, 12) || has_prefix(ip, translated, 12) || has_prefix(ip, nat64, 12)
	    || has_prefix(ip, nat64_local, 6))
		return 12;
	if (has_prefix(ip, zeros, 12)) {
		/* :: and ::1 are addresses in their own right. */
		bool own = b[12] == 0 && b[13] == 0 && b[14] == 0 && b[15] <= 1;
		return own ? -1 : 12;
	}
	if (has_prefix(ip, six_to_four, 2))
		return 2;
	if (has_prefix(ip, teredo, 4)) {
		*ret_inverted = true;
		return 12;
	}
	if ((b[8] & ~0x02) == isatap[0] && memcmp(b + 9, isatap + 1, 3) == 0)
		return 12;
	return -1;
}

bool ip_embedded_v4(const struct ip *ip, struct ip *ret)
{
	bool inverted;
	int at = ip->family == AF_INET6 ? embedded_at(ip, &inverted) : -1;
	if (at < 0)
		return false;
	struct ip v4 = { .family = AF_INET };
	for (int i = 0; i < 4; i++)
		v4.bytes[i] = inverted ? (uint8_t)~ip->bytes[at + i] : ip->bytes[at + i];
	*ret = v4;
	return true;
}

/* Exactly `len` digits of a port, 1 to 65535, without a leading zero. */
static int parse_port(const char *s, size_t len, uint16_t *ret)
{
	if (len == 0 || len > 5 || s[0] == '0')
		return -1;
	uint32_t v = 0;
	for (size_t i = 0; i < len; i++) {
		if (!is_digit(s[i]))
			return -1;
		v = v * 10 + (uint32_t)(s[i] - '0');
	}
	if (v > UINT16_MAX)
		return -1;
	*ret = (uint16_t)v;
	return 0;
}

int hostport_split(const char *s, size_t len, const char **ret_host, size_t *ret_host_len, uint16_t *ret_port)
{
	const char *host = s, *host_end, *rest;
	if (len > 0 && s[0] == '[') {
		host = s + 1;
		host_end = memchr(s, ']', len);
		struct ip ip;
		/* Brackets hold an IPv6 address and nothing else: they are dropped here, so nobody later could tell. */
		if (!host_end || ip_parse(host, (size_t)(host_end - host), &ip) < 0 || ip.family != AF_INET6)
			return -1;
		rest = host_end + 1;
	} else {
		const char *colon = memchr(s, ':', len);
		host_end = rest = colon ? colon : s + len;
		if (memchr(host, '[', (size_t)(host_end - host)) || memchr(host, ']', (size_t)(host_end - host)))
			return -1;
	}
	const char *end = s + len;
	uint16_t port = 0;
	if (host_end == host)
		return -1;
	if (rest < end && (*rest != ':' || parse_port(rest + 1, (size_t)(end - rest - 1), &port) < 0))
		return -1;
	*ret_host = host;
	*ret_host_len = (size_t)(host_end - host);
	*ret_port = port;
	return 0;
}
