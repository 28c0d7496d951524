/* SPDX-License-Identifier: Apache-2.0 */
#include "policy/parse.h"

static int parse_canary(const struct node *key, const struct node *value, void *into, struct err *err)
{
	const char *text;
	char shown[NODE_SHOWN_MAX];
	if (node_string(value, "canary", TEXT_FIELD_MAX, &text, err) < 0)
		return -1;
	if (canary_action_parse(text, &((struct policy *)into)->canary) < 0)
		return node_error(value, err, ERR_INVALID, "`canary` must be deny, kill or record, and is \"%s\"", node_show(value, shown));
	return 0;
}

static const struct key detect_keys[] = {
	{ "canary", parse_canary, NULL },
	{ "denied_egress", NULL, "and use `limits` and `lifetime`, which end a box by themselves" },
	{ 0 },
};

int parse_detect(const struct node *key, const struct node *value, void *into, struct err *err)
{
	return keys_parse(value, "detect", detect_keys, into, err);
}
