/* SPDX-License-Identifier: Apache-2.0 */
#include "base/mem.h"
#include "policy/parse.h"
#include "policy/request-rule.h"
#include "policy/rule.h"

static int parse_host(const struct node *key, const struct node *value, void *into, struct err *err)
{
	struct network_rule *rule = into, host;
	const char *text;
	/* Rules may come in any order of keys, so only what the host says is taken over. */
	if (node_string(value, "host", HOSTNAME_MAX + 2, &text, err) < 0)
		return -1;
	if (rule_parse_host(text, value->len, &host, err) < 0)
		return node_wrap(value, err);
	rule->is_address = host.is_address;
	rule->wildcard = host.wildcard;
	rule->name = host.name;
	rule->address = host.address;
	rule->text = host.text;
	return 0;
}

static int parse_ports(const struct node *key, const struct node *value, void *into, struct err *err)
{
	struct network_rule *rule = into;
	if (value->kind != NODE_LIST)
		return node_error(value, err, ERR_INVALID, "`ports` must be a list, as in [443]");
	if (value->n_items == 0 || value->n_items > POLICY_PORTS_MAX)
		return node_error(value, err, ERR_INVALID, "`ports` must list 1 to %u ports, and lists %zu", POLICY_PORTS_MAX,
			value->n_items);
	for (size_t i = 0; i < value->n_items; i++) {
		uint64_t port;
		if (node_number(value->items[i], "ports", 1, 65535, &port, err) < 0)
			return -1;
		if (rule_has_port(rule, (uint16_t)port))
			return node_error(
				value->items[i], err, ERR_INVALID, "the port %u is listed twice; remove one", (unsigned)port);
		rule->ports[rule->n_ports++] = (uint16_t)port;
	}
	return 0;
}

static int parse_private(const struct node *key, const struct node *value, void *into, struct err *err)
{
	return node_bool(value, "private", &((struct network_rule *)into)->private_ok, err);
}

static const struct key rule_keys[] = {
	{ "host", parse_host, NULL },
	{ "ports", parse_ports, NULL },
	{ "private", parse_private, NULL },
	{ "inspect", parse_inspect, NULL },
	{ "methods", parse_methods, NULL },
	{ "paths", parse_paths, NULL },
	{ "query", parse_query, NULL },
	{ "headers", parse_headers, NULL },
	{ "secret", parse_secret, NULL },
	{ "ca", parse_ca, NULL },
	{ "registry", parse_registry, NULL },
	{ "git", parse_git, NULL },
	{ "limits", parse_rule_limits, NULL },
	{ "approve", NULL, "and know that nobody will be asked; or remove the rule" },
	{ 0 },
};

/* What was said about requests needs them to be seen. */
static int check_inspect(const struct node *item, const struct network_rule *rule, struct err *err)
{
	const struct node *inspect = node_get(item, "inspect");
	if (inspect && str_eq(inspect->text, "false") && rule->request)
		return node_error(inspect, err, ERR_INVALID,
			"`inspect: false` contradicts the rest of the rule, which can only be enforced by looking into the requests; remove it");
	return 0;
}

static int finish_rule(const struct node *item, struct policy *p, struct network_rule *rule, struct err *err)
{
	const struct node *secret = node_get(item, "secret");
	if (!rule->text)
		return node_error(item, err, ERR_INVALID,
			"an entry of `network` needs `host`, as in { host: api.example.com, ports: [443] }");
	if (rule->n_ports == 0)
		rule->ports[rule->n_ports++] = RULE_PORT_DEFAULT;
	if (check_inspect(item, rule, err) < 0)
		return -1;
	return rule_check(p, rule, err) < 0 ? node_wrap(secret ? secret : item, err) : 0;
}

static int parse_rule(const struct node *item, struct policy *p, struct err *err)
{
	struct network_rule rule = { .line = item->line };
	if (item->kind != NODE_MAP)
		return node_error(item, err, ERR_INVALID,
			"an entry of `network` must be a map, as in { host: api.example.com, ports: [443] }");
	if (keys_parse(item, "network", rule_keys, &rule, err) < 0 || finish_rule(item, p, &rule, err) < 0) {
		rule_done(&rule);
		return -1;
	}
	if (policy_add_rule(p, &rule, err) < 0)
		return node_wrap(node_get(item, "host"), err);
	return 0;
}

int parse_network(const struct node *key, const struct node *value, void *into, struct err *err)
{
	if (node_want(value, "network", NODE_LIST, err) < 0)
		return -1;
	for (size_t i = 0; i < value->n_items; i++)
		if (parse_rule(value->items[i], into, err) < 0)
			return -1;
	return 0;
}
