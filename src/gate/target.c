/* SPDX-License-Identifier: Apache-2.0 */
#include "gate/target.h"

#include <stdio.h>
#include <string.h>

#include "base/text.h"

void target_from_ip(const struct ip *ip, uint16_t port, struct gate_target *ret)
{
	struct gate_target t = { .literal = true, .ip = *ip, .port = port };
	ip_format(ip, t.text);
	*ret = t;
}

enum reason target_from_name(const void *data, size_t len, uint16_t port, struct gate_target *ret)
{
	struct ip ip;
	if (ip_parse(data, len, &ip) == 0) {
		target_from_ip(&ip, port, ret);
		return REASON_NONE;
	}
	struct gate_target t = { .port = port };
	bool good = hostname_parse(data, len, &t.name, NULL) == 0;
	if (good)
		memcpy(t.text, t.name.text, sizeof(t.name.text));
	else
		text_escape(data, len, t.text, sizeof(t.text));
	*ret = t;
	return good ? REASON_NONE : REASON_BAD_NAME;
}

enum reason target_from_authority(const void *data, size_t len, uint16_t fallback, struct gate_target *ret)
{
	const char *host;
	size_t host_len;
	uint16_t port;
	bool good = hostport_split(data, len, &host, &host_len, &port) == 0;
	if (good && port == 0)
		port = fallback;
	if (!good || port == 0) {
		struct gate_target t = { 0 };
		text_escape(data, len, t.text, sizeof(t.text));
		*ret = t;
		return REASON_PROXY_MALFORMED;
	}
	return target_from_name(host, host_len, port, ret);
}

bool target_matches_host(const struct gate_target *t, const void *data, size_t len)
{
	struct gate_target other;
	if (target_from_name(data, len, t->port, &other) != REASON_NONE || other.literal != t->literal)
		return false;
	return t->literal ? ip_equal(&t->ip, &other.ip) : hostname_equal(&t->name, &other.name);
}

bool target_matches_authority(const struct gate_target *t, const void *data, size_t len)
{
	const char *host;
	size_t host_len;
	uint16_t port;
	if (hostport_split(data, len, &host, &host_len, &port) < 0 || (port != 0 && port != t->port))
		return false;
	return target_matches_host(t, host, host_len);
}

const char *target_host_header(const struct gate_target *t, char out[TARGET_HOST_MAX])
{
	bool brackets = t->literal && t->ip.family == AF_INET6;
	int n = snprintf(out, TARGET_HOST_MAX, brackets ? "[%s]" : "%s", t->text);
	if (t->port != 80)
		snprintf(out + n, TARGET_HOST_MAX - (size_t)n, ":%u", t->port);
	return out;
}
