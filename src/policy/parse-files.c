/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "policy/parse.h"
#include "policy/target.h"

struct file_entry {
	const char *source, *target; /* in the tree */
	enum mount_mode mode;
};

static int parse_source(const struct node *key, const struct node *value, void *into, struct err *err)
{
	return node_string(value, "source", TARGET_MAX - 1, &((struct file_entry *)into)->source, err);
}

static int parse_target(const struct node *key, const struct node *value, void *into, struct err *err)
{
	return node_string(value, "target", TARGET_MAX - 1, &((struct file_entry *)into)->target, err);
}

static int parse_mode(const struct node *key, const struct node *value, void *into, struct err *err)
{
	const char *text;
	char shown[NODE_SHOWN_MAX];
	if (node_string(value, "mode", TEXT_FIELD_MAX, &text, err) < 0)
		return -1;
	if (mount_mode_parse(text, &((struct file_entry *)into)->mode) < 0)
		return node_error(
			value, err, ERR_INVALID, "`mode` must be copy, ro or rw, and is \"%s\"", node_show(value, shown));
	return 0;
}

static const struct key file_keys[] = {
	{ "source", parse_source, NULL },
	{ "target", parse_target, NULL },
	{ "mode", parse_mode, NULL },
	{ 0 },
};

static int parse_file(const struct node *item, struct policy *p, struct err *err)
{
	struct file_entry e = { .mode = MOUNT_COPY };
	if (keys_parse(item, "files", file_keys, &e, err) < 0)
		return -1;
	if (!e.source || !e.target)
		return node_error(item, err, ERR_INVALID,
			"an entry of `files` needs `source` and `target`, as in { source: ., target: /workspace, mode: copy }");
	if (policy_add_mount(p, e.source, e.target, e.mode, err) < 0)
		return node_wrap(item, err);
	return 0;
}

int parse_files(const struct node *key, const struct node *value, void *into, struct err *err)
{
	if (node_want(value, "files", NODE_LIST, err) < 0)
		return -1;
	for (size_t i = 0; i < value->n_items; i++)
		if (parse_file(value->items[i], into, err) < 0)
			return -1;
	return 0;
}
