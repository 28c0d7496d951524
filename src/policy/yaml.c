/* SPDX-License-Identifier: Apache-2.0 */
/* libyaml's events into a tree of nodes. The bytes may come from anyone: every ceiling is checked before memory is taken. */
#include "policy/node.h"

#include <string.h>
#include <yaml.h>

#include "base/mem.h"
#include "policy/policy.h"

#define cleanup_event __attribute__((cleanup(yaml_event_delete)))

struct reader {
	yaml_parser_t parser;
	const char *file;
	const char *text;
	size_t len;
	unsigned nodes;
};

static struct node at_mark(const struct reader *r, yaml_mark_t mark)
{
	return (struct node){ .file = r->file, .line = (unsigned)mark.line + 1, .column = (unsigned)mark.column + 1 };
}

/* Reader errors (encoding) carry only a byte offset. */
static struct node at_offset(const struct reader *r, size_t offset)
{
	struct node n = { .file = r->file, .line = 1, .column = 1 };
	for (size_t i = 0; i < offset && i < r->len; i++) {
		unsigned char c = (unsigned char)r->text[i];
		if (c == '\n') {
			n.line++;
			n.column = 1;
		} else if ((c & 0xc0) != 0x80) {
			n.column++;
		}
	}
	return n;
}

static int parser_error(const struct reader *r, struct err *err)
{
	const yaml_parser_t *p = &r->parser;
	const char *problem = p->problem ? p->problem : "it can't be read";
	struct node at;
	if (p->error == YAML_MEMORY_ERROR)
		return err_set(err, ERR_MEMORY, "out of memory while reading %s", r->file);
	if (p->error == YAML_READER_ERROR) {
		at = at_offset(r, p->problem_offset);
		return node_error(&at, err, ERR_INVALID, "not valid UTF-8 text: %s", problem);
	}
	at = at_mark(r, p->problem_mark);
	if (p->problem_mark.index < r->len && r->text[p->problem_mark.index] == '\t')
		return node_error(&at, err, ERR_INVALID, "a tab can't indent YAML; use spaces");
	/* `host: *.example.com`, the most likely one: YAML takes it for an alias with a name that begins with a dot. */
	if (p->problem_mark.index > 0 && p->problem_mark.index < r->len && r->text[p->problem_mark.index - 1] == '*')
		return node_error(&at, err, ERR_INVALID, "a value that begins with * needs quotes in YAML, as in \"*.example.com\"");
	return node_error(&at, err, ERR_INVALID, "not valid YAML: %s%s%s", problem, p->context ? " " : "",
		p->context ? p->context : "");
}

static int next_event(struct reader *r, yaml_event_t *ev, struct err *err)
{
	return yaml_parser_parse(&r->parser, ev) ? 0 : parser_error(r, err);
}

static int refuse_decorations(const struct reader *r, yaml_mark_t mark, const yaml_char_t *anchor, const yaml_char_t *tag,
	struct err *err)
{
	struct node at = at_mark(r, mark);
	if (anchor)
		return node_error(&at, err, ERR_INVALID, "an anchor (&name) can't be used in a policy; write the value out");
	if (tag)
		return node_error(&at, err, ERR_INVALID, "a tag (!name) can't be used in a policy; write the value without it");
	return 0;
}

static int new_node(struct reader *r, yaml_mark_t mark, enum node_kind kind, struct node **slot, struct err *err)
{
	struct node at = at_mark(r, mark);
	if (++r->nodes > YAML_NODES_MAX)
		return node_error(&at, err, ERR_LIMIT, "the policy has more than %u values", YAML_NODES_MAX);
	at.kind = kind;
	*slot = mem_alloc(sizeof(at));
	**slot = at;
	return 0;
}

static struct node **new_slot(struct node *parent)
{
	if (parent->n_items == parent->cap) {
		parent->cap = parent->cap ? parent->cap * 2 : 8;
		parent->items = mem_grow_array(parent->items, parent->cap, sizeof(*parent->items));
	}
	parent->items[parent->n_items] = NULL;
	return &parent->items[parent->n_items++];
}

static int read_scalar(struct reader *r, const yaml_event_t *ev, struct node **slot, struct err *err)
{
	if (refuse_decorations(r, ev->start_mark, ev->data.scalar.anchor, ev->data.scalar.tag, err) < 0 ||
		new_node(r, ev->start_mark, NODE_SCALAR, slot, err) < 0)
		return -1;
	struct node *n = *slot;
	n->plain = ev->data.scalar.style == YAML_PLAIN_SCALAR_STYLE;
	n->len = ev->data.scalar.length;
	n->text = mem_strndup((const char *)ev->data.scalar.value, n->len);
	if (memchr(ev->data.scalar.value, '\0', n->len))
		return node_error(n, err, ERR_INVALID, "the text contains a NUL character; remove it");
	return 0;
}

static int read_value(struct reader *r, const yaml_event_t *ev, unsigned depth, struct node **slot, struct err *err);

static int read_list(struct reader *r, struct node *list, unsigned depth, struct err *err)
{
	for (;;) {
		cleanup_event yaml_event_t ev = { 0 };
		if (next_event(r, &ev, err) < 0)
			return -1;
		if (ev.type == YAML_SEQUENCE_END_EVENT)
			return 0;
		if (read_value(r, &ev, depth + 1, new_slot(list), err) < 0)
			return -1;
	}
}

static int check_key(const struct node *map, const struct node *key, struct err *err)
{
	char shown[NODE_SHOWN_MAX];
	if (key->kind != NODE_SCALAR)
		return node_error(key, err, ERR_INVALID, "a key must be a word, and this is %s", node_show(key, shown));
	if (map->n_items / 2 >= YAML_KEYS_MAX)
		return node_error(key, err, ERR_LIMIT, "a map has more than %u keys", YAML_KEYS_MAX);
	for (size_t i = 0; i + 1 < map->n_items; i += 2)
		if (map->items[i]->len == key->len && memcmp(map->items[i]->text, key->text, key->len) == 0)
			return node_error(key, err, ERR_INVALID, "`%s` is already given in line %u; remove one of the two",
				node_show(key, shown), map->items[i]->line);
	return 0;
}

static int read_map(struct reader *r, struct node *map, unsigned depth, struct err *err)
{
	for (;;) {
		cleanup_event yaml_event_t key = { 0 };
		cleanup_event yaml_event_t value = { 0 };
		if (next_event(r, &key, err) < 0)
			return -1;
		if (key.type == YAML_MAPPING_END_EVENT)
			return 0;
		struct node **slot = new_slot(map);
		if (read_value(r, &key, depth + 1, slot, err) < 0)
			return -1;
		/* The key itself is already counted as an item: n_items is odd here, and the pairs before it are whole. */
		if (check_key(map, *slot, err) < 0 || next_event(r, &value, err) < 0 ||
			read_value(r, &value, depth + 1, new_slot(map), err) < 0)
			return -1;
	}
}

static int read_value(struct reader *r, const yaml_event_t *ev, unsigned depth, struct node **slot, struct err *err)
{
	struct node at = at_mark(r, ev->start_mark);
	if (depth > YAML_DEPTH_MAX)
		return node_error(&at, err, ERR_LIMIT, "the policy is nested more than %u levels deep", YAML_DEPTH_MAX);
	if (ev->type == YAML_SCALAR_EVENT)
		return read_scalar(r, ev, slot, err);
	if (ev->type == YAML_SEQUENCE_START_EVENT) {
		if (refuse_decorations(r, ev->start_mark, ev->data.sequence_start.anchor, ev->data.sequence_start.tag, err) <
				0 ||
			new_node(r, ev->start_mark, NODE_LIST, slot, err) < 0)
			return -1;
		return read_list(r, *slot, depth, err);
	}
	if (ev->type == YAML_MAPPING_START_EVENT) {
		if (refuse_decorations(r, ev->start_mark, ev->data.mapping_start.anchor, ev->data.mapping_start.tag, err) < 0 ||
			new_node(r, ev->start_mark, NODE_MAP, slot, err) < 0)
			return -1;
		return read_map(r, *slot, depth, err);
	}
	return node_error(&at, err, ERR_INVALID,
		"an alias (*name) can't be used in a policy; write the value out (a host that begins with * needs quotes)");
}

static int read_document_start(struct reader *r, struct err *err)
{
	cleanup_event yaml_event_t ev = { 0 };
	struct node start = { .file = r->file, .line = 1, .column = 1 };
	if (next_event(r, &ev, err) < 0)
		return -1;
	if (ev.type != YAML_DOCUMENT_START_EVENT)
		return node_error(
			&start, err, ERR_INVALID, "the policy is empty; it needs at least `version`, `name` and `owner`");
	if (ev.data.document_start.version_directive ||
		ev.data.document_start.tag_directives.start != ev.data.document_start.tag_directives.end)
		return node_error(
			&start, err, ERR_INVALID, "a directive (%%YAML, %%TAG) can't be used in a policy; remove the line");
	return 0;
}

static int read_end(struct reader *r, struct err *err)
{
	for (;;) {
		cleanup_event yaml_event_t ev = { 0 };
		if (next_event(r, &ev, err) < 0)
			return -1;
		if (ev.type == YAML_STREAM_END_EVENT)
			return 0;
		struct node at = at_mark(r, ev.start_mark);
		if (ev.type != YAML_DOCUMENT_END_EVENT)
			return node_error(&at, err, ERR_INVALID, "a second document begins here; a policy file holds one");
	}
}

static int read_all(struct reader *r, struct node **root, struct err *err)
{
	cleanup_event yaml_event_t start = { 0 };
	cleanup_event yaml_event_t ev = { 0 };
	if (next_event(r, &start, err) < 0 || read_document_start(r, err) < 0 || next_event(r, &ev, err) < 0 ||
		read_value(r, &ev, 1, root, err) < 0)
		return -1;
	return read_end(r, err);
}

int node_load(const char *text, size_t len, const char *file, struct node **ret, struct err *err)
{
	struct reader r = { .file = file, .text = text, .len = len };
	struct node *root = NULL;
	if (len > POLICY_TEXT_MAX)
		return err_set(err, ERR_LIMIT, "%s: the policy is longer than %u KiB", file, POLICY_TEXT_MAX / 1024);
	if (len >= 3 && memcmp(text, "\xef\xbb\xbf", 3) == 0) {
		r.text += 3;
		r.len -= 3;
	}
	if (!yaml_parser_initialize(&r.parser))
		return err_set(err, ERR_MEMORY, "out of memory while reading %s", file);
	/* Said outright: two bytes at the start could turn the file into UTF-16, which not every reviewer's tool shows alike. */
	yaml_parser_set_encoding(&r.parser, YAML_UTF8_ENCODING);
	yaml_parser_set_input_string(&r.parser, (const unsigned char *)r.text, r.len);
	int result = read_all(&r, &root, err);
	yaml_parser_delete(&r.parser);
	if (result < 0) {
		node_free(root);
		return -1;
	}
	*ret = root;
	return 0;
}

struct node *node_free(struct node *n)
{
	if (!n)
		return NULL;
	for (size_t i = 0; i < n->n_items; i++)
		node_free(n->items[i]);
	mem_free(n->items);
	mem_free(n->text);
	return mem_free(n);
}
