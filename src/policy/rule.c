/* SPDX-License-Identifier: Apache-2.0 */
#include "policy/rule.h"

#include <string.h>

#include "base/mem.h"
#include "base/text.h"
#include "policy/floor.h"
#include "policy/request-rule.h"

#define SHOWN_MAX 128

static bool all_ascii(const char *s, size_t len)
{
	for (size_t i = 0; i < len; i++)
		if ((unsigned char)s[i] >= 0x80)
			return false;
	return true;
}

/* "https://user@host:443/path" -> "host:443", for the hint. */
static const char *authority_of(const char *s, size_t len, size_t *ret_len)
{
	const char *slashes = memmem(s, len, "//", 2);
	const char *start = slashes ? slashes + 2 : s;
	size_t left = len - (size_t)(start - s), n = 0;
	while (n < left && !strchr("/?#", start[n]))
		n++;
	const char *at = memrchr(start, '@', n);
	if (at) {
		n -= (size_t)(at + 1 - start);
		start = at + 1;
	}
	*ret_len = n;
	return start;
}

/* What a person most likely meant, said before the strict parsers say less. */
static int refuse_shapes(const char *s, size_t len, const char *shown, struct err *err)
{
	char part[SHOWN_MAX];
	if (len == 0)
		return err_set(err, ERR_INVALID, "the host is empty; write a name such as api.example.com");
	if (memchr(s, '\0', len))
		return err_set(err, ERR_INVALID, "the host \"%s\" contains a NUL byte; write a plain name", shown);
	if (!all_ascii(s, len))
		return err_set(err, ERR_INVALID,
			"the host \"%s\" is written in Unicode; write its ASCII form, in which such labels begin with xn-- (A-label)",
			shown);
	if (memchr(s, '/', len)) {
		size_t n;
		const char *a = authority_of(s, len, &n);
		return err_set(err, ERR_INVALID, "the host \"%s\" is a URL or has a path; write only the host: %s", shown,
			text_escape(a, n, part, sizeof(part)));
	}
	if (s[0] == '[')
		return err_set(err, ERR_INVALID, "write the address \"%s\" without brackets", shown);
	return 0;
}

static bool is_localhost(const struct hostname *name)
{
	return str_eq(name->text, "localhost") || str_ends(name->text, ".localhost");
}

/* A wildcard over one label opens a whole top-level domain, unless the label is set apart for private use. */
static bool wildcard_too_wide(const struct hostname *name)
{
	static const char *const private_use[] = { "internal", "local", "lan", "test" };
	for (size_t i = 0; i < ARRAY_LEN(private_use); i++)
		if (str_eq(name->text, private_use[i]))
			return false;
	return name->labels < 2;
}

static int parse_name(const char *s, size_t len, const char *shown, struct network_rule *r, struct err *err)
{
	if (len == 1 && s[0] == '*')
		return err_set(err, ERR_INVALID,
			"the host \"*\" would allow every host; name the hosts, or a domain as in *.example.com");
	if (len > 2 && s[0] == '*' && s[1] == '.') {
		r->wildcard = true;
		s += 2;
		len -= 2;
	}
	if (memchr(s, '*', len))
		return err_set(err, ERR_INVALID,
			"in the host \"%s\" the * must stand alone in front of the first dot, once, as in *.example.com",
			shown);
	if (memchr(s, ':', len))
		return err_set(err, ERR_INVALID,
			"the host \"%s\" has a port or is not a valid address; write the name alone, and the port in `ports`",
			shown);
	if (hostname_parse(s, len, &r->name, err) < 0)
		return -1;
	if (is_localhost(&r->name))
		return err_set(err, ERR_INVALID,
			"the host \"%s\" means the box itself; for a service of this machine name its address with `private: true`",
			shown);
	if (r->wildcard && wildcard_too_wide(&r->name))
		return err_set(err, ERR_INVALID,
			"the host \"%s\" would allow a whole top-level domain; name a domain as in *.example.com", shown);
	return 0;
}

int rule_parse_host(const char *s, size_t len, struct network_rule *ret, struct err *err)
{
	struct network_rule r = { 0 };
	char shown[SHOWN_MAX];
	text_escape(s, len, shown, sizeof(shown));
	if (refuse_shapes(s, len, shown, err) < 0)
		return -1;
	if (ip_parse(s, len, &r.address) == 0) {
		struct ip plain = ip_unmap(&r.address);
		char text[IP_TEXT_MAX];
		if (plain.family != r.address.family)
			return err_set(err, ERR_INVALID, "write the IPv4 address %s instead of \"%s\"", ip_format(&plain, text),
				shown);
		r.is_address = true;
	} else if (parse_name(s, len, shown, &r, err) < 0) {
		return -1;
	}
	r.text = mem_strndup(s, len);
	*ret = r;
	return 0;
}

int rule_parse_spec(const char *spec, struct network_rule *ret, uint16_t *ret_port, struct err *err)
{
	size_t len = strlen(spec), host_len;
	const char *host;
	char shown[SHOWN_MAX];
	struct ip bare;
	*ret_port = 0;
	if (strstr(spec, "//") || ip_parse(spec, len, &bare) == 0)
		return rule_parse_host(spec, len, ret, err);
	if (hostport_split(spec, len, &host, &host_len, ret_port) < 0)
		return err_set(err, ERR_INVALID, "\"%s\" is not HOST or HOST:PORT with a port between 1 and 65535",
			text_escape(spec, len, shown, sizeof(shown)));
	return rule_parse_host(host, host_len, ret, err);
}

static int check_reachable(const struct network_rule *r, struct err *err)
{
	char text[IP_TEXT_MAX];
	if (!r->is_address)
		return 0;
	struct floor_verdict floor = floor_judge(&r->address);
	if (floor.reason == REASON_NONE || (floor.liftable && r->private_ok))
		return 0;
	ip_format(&r->address, text);
	if (!floor.liftable)
		return err_set(err, ERR_INVALID, "no rule can open the address %s (%s); remove the rule", text,
			reason_name(floor.reason));
	return err_set(err, ERR_INVALID,
		"the address %s is not a public one (%s); a rule in a policy file with `private: true` is needed to open it",
		text, reason_name(floor.reason));
}

int policy_add_rule(struct policy *p, struct network_rule *rule, struct err *err)
{
	int r = check_reachable(rule, err);
	if (r == 0)
		r = rule_check(p, rule, err);
	if (r == 0 && p->n_rules >= POLICY_RULES_MAX)
		r = err_set(err, ERR_LIMIT, "there are more than %u network rules; use *.domain rules", POLICY_RULES_MAX);
	if (r < 0) {
		rule_done(rule);
		return -1;
	}
	p->rules = mem_grow_array(p->rules, p->n_rules + 1, sizeof(*p->rules));
	p->rules[p->n_rules++] = *rule;
	return 0;
}

bool rule_matches_name(const struct network_rule *r, const struct hostname *name)
{
	if (r->is_address)
		return false;
	if (!r->wildcard)
		return hostname_equal(&r->name, name);
	/* Whole labels only: the byte in front of the common end is a dot, and at least one label stands before it. */
	if (name->len < r->name.len + 2u)
		return false;
	size_t at = name->len - r->name.len;
	return name->text[at - 1] == '.' && memcmp(name->text + at, r->name.text, r->name.len) == 0;
}

bool rule_has_port(const struct network_rule *r, uint16_t port)
{
	for (unsigned i = 0; i < r->n_ports; i++)
		if (r->ports[i] == port)
			return true;
	return false;
}
