/* SPDX-License-Identifier: Apache-2.0 */
#include "policy/parse.h"

static int parse_minimum(const struct node *key, const struct node *value, void *into, struct err *err)
{
	const char *name;
	char shown[NODE_SHOWN_MAX];
	if (node_string(value, "minimum", TEXT_FIELD_MAX, &name, err) < 0)
		return -1;
	if (isolation_level_parse(name, &((struct policy *)into)->minimum) < 0)
		return node_error(value, err, ERR_INVALID, "`minimum` must be container, gvisor or microvm, and is \"%s\"",
			node_show(value, shown));
	return 0;
}

static int parse_allow_emulation(const struct node *key, const struct node *value, void *into, struct err *err)
{
	return node_bool(value, "allow_emulation", &((struct policy *)into)->allow_emulation, err);
}

static const struct key isolation_keys[] = {
	{ "minimum", parse_minimum, NULL },
	{ "allow_emulation", parse_allow_emulation, NULL },
	{ 0 },
};

int parse_isolation(const struct node *key, const struct node *value, void *into, struct err *err)
{
	return keys_parse(value, "isolation", isolation_keys, into, err);
}
