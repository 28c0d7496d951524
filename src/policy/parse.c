/* SPDX-License-Identifier: Apache-2.0 */
/* The policy file as a whole. */
#include "policy/parse.h"

#include <string.h>

#include "base/mem.h"
#include "base/text.h"
#include "policy/shadow.h"

static const struct key top_keys[] = {
	{ "version", parse_version, NULL },
	{ "name", parse_name, NULL },
	{ "owner", parse_owner, NULL },
	{ "review_by", parse_review_by, NULL },
	{ "strict", parse_strict, NULL },
	{ "isolation", parse_isolation, NULL },
	{ "template", parse_template, NULL },
	{ "region", parse_region, NULL },
	{ "lifetime", parse_lifetime, NULL },
	{ "limits", parse_limits, NULL },
	{ "files", parse_files, NULL },
	{ "network", parse_network, NULL },
	{ "record", parse_record, NULL },
	{ "tools", NULL, "and know that every tool in the box has the rights of the box" },
	{ "detect", parse_detect, NULL },
	{ 0 },
};

static int require(const struct node *root, const char *key, const char *example, struct err *err)
{
	if (node_get(root, key))
		return 0;
	return node_error(root, err, ERR_INVALID, "`%s` is missing; add for example `%s: %s`", key, key, example);
}

static int parse_root(const struct node *root, struct policy *p, struct err *err)
{
	/* The version first: of a newer file, it is the thing to say. */
	const struct node *version = node_get(root, "version");
	if (version && parse_version(NULL, version, p, err) < 0)
		return -1;
	if (keys_parse(root, "policy", top_keys, p, err) < 0 || require(root, "version", "1", err) < 0 ||
		require(root, "name", "build-agent", err) < 0 || require(root, "owner", "it-security@example.com", err) < 0)
		return -1;
	return 0;
}

/* The built-in values without the built-in's identity: what the file leaves out stays. */
static struct policy *blank(void)
{
	struct policy *p = policy_builtin();
	p->name = mem_free(p->name);
	p->builtin = false;
	return p;
}

/* Both in one, where there are two. */
static char *join_warnings(char *a, char *b)
{
	if (!a || !b)
		return a ? a : b;
	char *both = mem_printf("%s; %s", a, b);
	mem_free(a);
	mem_free(b);
	return both;
}

int policy_parse(const char *text, size_t len, const char *file, const char *now_date,
	struct policy **ret, char **ret_warning, struct err *err)
{
	char shown[256];
	struct node *root;
	char *warning = NULL;
	text_escape(file, strlen(file), shown, sizeof(shown));
	if (node_load(text, len, shown, &root, err) < 0)
		return -1;
	struct policy *p = blank();
	int r = parse_root(root, p, err);
	if (r == 0)
		r = review_check(p, root, now_date, &warning, err);
	node_free(root);
	if (r < 0) {
		policy_free(p);
		return -1;
	}
	warning = join_warnings(warning, shadow_warning(p, shown));
	policy_seal(p);
	*ret = p;
	if (ret_warning)
		*ret_warning = mem_steal(&warning);
	mem_free(warning);
	return 0;
}
