/* SPDX-License-Identifier: Apache-2.0 */
#include "policy/parse.h"

static int parse_output(const struct node *key, const struct node *value, void *into, struct err *err)
{
	return node_bool(value, "output", &((struct policy *)into)->record_output, err);
}

static int parse_bodies(const struct node *key, const struct node *value, void *into, struct err *err)
{
	bool on;
	if (node_bool(value, "bodies", &on, err) < 0)
		return -1;
	return on ? key_refuse(key, "or write `bodies: false`", err) : 0;
}

static const struct key record_keys[] = {
	{ "output", parse_output, NULL },
	{ "bodies", parse_bodies, NULL },
	{ "redact", NULL, "and write `output: false` where the output may hold personal data" },
	{ "retain", NULL, "and delete old records yourself" },
	{ 0 },
};

int parse_record(const struct node *key, const struct node *value, void *into, struct err *err)
{
	return keys_parse(value, "record", record_keys, into, err);
}
