/* SPDX-License-Identifier: Apache-2.0 */
/* Names, addresses and host:port from hostile text: what is accepted must be canonical, and parse to itself again. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/addr.h"
#include "base/text.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check(bool condition)
{
	if (!condition)
		abort();
}

static void fuzz_hostname(const uint8_t *data, size_t size)
{
	struct hostname name, again;
	struct err err = ERR_INIT;
	if (hostname_parse(data, size, &name, &err) < 0) {
		check(err.code == ERR_INVALID && text_is_utf8(err.text, strlen(err.text)));
		return;
	}
	check(name.len >= 1 && name.len <= HOSTNAME_MAX && strlen(name.text) == name.len && name.labels >= 1);
	for (size_t i = 0; i < name.len; i++)
		check(strchr("abcdefghijklmnopqrstuvwxyz0123456789-.", name.text[i]) != NULL);
	check(hostname_parse(name.text, name.len, &again, NULL) == 0 && hostname_equal(&name, &again) && again.labels == name.labels);
	struct ip ip;
	check(ip_parse(name.text, name.len, &ip) < 0); /* a name is never an address, too */
}

static void fuzz_ip(const uint8_t *data, size_t size)
{
	struct ip ip, again, v4;
	if (ip_parse(data, size, &ip) < 0)
		return;
	char text[IP_TEXT_MAX];
	ip_format(&ip, text);
	check(ip_parse(text, strlen(text), &again) == 0 && ip_equal(&ip, &again));
	struct sockaddr_storage ss;
	socklen_t len;
	uint16_t port;
	ip_to_sockaddr(&ip, 443, &ss, &len);
	check(ip_from_sockaddr((struct sockaddr *)&ss, &again, &port) == 0 && ip_equal(&ip, &again) && port == 443);
	if (ip_embedded_v4(&ip, &v4))
		check(ip.family == AF_INET6 && v4.family == AF_INET);
}

static void fuzz_hostport(const uint8_t *data, size_t size)
{
	const char *host;
	size_t len;
	uint16_t port;
	if (hostport_split((const char *)data, size, &host, &len, &port) < 0)
		return;
	check(host >= (const char *)data && len >= 1 && host + len <= (const char *)data + size);
	fuzz_hostname((const uint8_t *)host, len);
	fuzz_ip((const uint8_t *)host, len);
}

static void fuzz_escape(const uint8_t *data, size_t size)
{
	char out[64];
	text_escape(data, size, out, sizeof(out));
	check(strlen(out) < sizeof(out) && text_is_utf8(out, strlen(out)));
	for (const char *p = out; *p; p++)
		check((unsigned char)*p >= 0x20 && *p != 0x7f);
}

static void fuzz_numbers(const uint8_t *data, size_t size)
{
	char *text = malloc(size + 1);
	uint64_t v;
	if (!text)
		return;
	memcpy(text, data, size);
	text[size] = '\0';
	if (text_parse_duration(text, &v) == 0)
		check(v > 0);
	if (text_parse_u64(text, 5, 10, &v) == 0)
		check(v >= 5 && v <= 10);
	text_parse_size(text, &v);
	free(text);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	fuzz_hostname(data, size);
	fuzz_ip(data, size);
	fuzz_hostport(data, size);
	fuzz_escape(data, size);
	fuzz_numbers(data, size);
	return 0;
}
