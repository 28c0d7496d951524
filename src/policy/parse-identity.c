/* SPDX-License-Identifier: Apache-2.0 */
/* Who answers for the policy, until when, and where it applies. */
#include <string.h>

#include "base/mem.h"
#include "base/text.h"
#include "policy/parse.h"

#define NAME_MAX_LEN 64u

int parse_version(const struct node *key, const struct node *value, void *into, struct err *err)
{
	struct policy *p = into;
	uint64_t version;
	if (node_number(value, "version", 0, UINT32_MAX, &version, err) < 0)
		return -1;
	if (version != 1)
		return node_error(value, err, ERR_UNSUPPORTED,
			"this version of Bulkhead reads policies of version 1, and this one says %llu",
			(unsigned long long)version);
	p->version = 1;
	return 0;
}

int parse_name(const struct node *key, const struct node *value, void *into, struct err *err)
{
	struct policy *p = into;
	if (node_copy(value, "name", NAME_MAX_LEN, &p->name, err) < 0)
		return -1;
	static const char allowed[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-";
	if (strspn(p->name, allowed) != strlen(p->name))
		return node_error(
			value, err, ERR_INVALID, "`name` may have letters, digits, dots, hyphens and underscores only");
	return 0;
}

int parse_owner(const struct node *key, const struct node *value, void *into, struct err *err)
{
	return node_copy(value, "owner", TEXT_FIELD_MAX, &((struct policy *)into)->owner, err);
}

static bool leap(unsigned year)
{
	return (year % 4 == 0 && year % 100 != 0) || year % 400 == 0;
}

/* YYYY-MM-DD of a day that exists. */
static bool is_date(const char *s)
{
	static const uint8_t days[] = { 31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31 };
	unsigned v[3] = { 0 }, part = 0;
	if (strlen(s) != 10)
		return false;
	for (unsigned i = 0; i < 10; i++) {
		if (i == 4 || i == 7) {
			part++;
			if (s[i] != '-')
				return false;
		} else if (s[i] < '0' || s[i] > '9') {
			return false;
		} else {
			v[part] = v[part] * 10 + (unsigned)(s[i] - '0');
		}
	}
	if (v[0] < 1970 || v[1] < 1 || v[1] > 12 || v[2] < 1)
		return false;
	return v[2] <= days[v[1] - 1] + (v[1] == 2 && leap(v[0]) ? 1u : 0u);
}

int parse_review_by(const struct node *key, const struct node *value, void *into, struct err *err)
{
	struct policy *p = into;
	char shown[NODE_SHOWN_MAX];
	if (node_copy(value, "review_by", TEXT_FIELD_MAX, &p->review_by, err) < 0)
		return -1;
	if (!is_date(p->review_by))
		return node_error(value, err, ERR_INVALID, "`review_by` must be a day as in 2027-02-28, and is \"%s\"",
			node_show(value, shown));
	return 0;
}

int parse_strict(const struct node *key, const struct node *value, void *into, struct err *err)
{
	return node_bool(value, "strict", &((struct policy *)into)->strict, err);
}

int parse_template(const struct node *key, const struct node *value, void *into, struct err *err)
{
	const char *name;
	char shown[NODE_SHOWN_MAX];
	if (node_string(value, "template", TEXT_FIELD_MAX, &name, err) < 0)
		return -1;
	if (!str_eq(name, "host"))
		return node_error(value, err, ERR_UNSUPPORTED,
			"the template \"%s\" can't be had: this version of Bulkhead has only `host`; write `template: host` or remove it",
			node_show(value, shown));
	return 0;
}

int parse_region(const struct node *key, const struct node *value, void *into, struct err *err)
{
	const char *name;
	char shown[NODE_SHOWN_MAX];
	if (node_string(value, "region", TEXT_FIELD_MAX, &name, err) < 0)
		return -1;
	return node_error(value, err, ERR_UNSUPPORTED,
		"the policy asks for the region \"%s\", and this machine has no region label, so the policy is refused; remove `region`",
		node_show(value, shown));
}

int review_check(const struct policy *p, const struct node *root, const char *now_date, char **ret_warning, struct err *err)
{
	const struct node *value = node_get(root, "review_by");
	/* Days in this form compare as text. */
	if (!p->review_by || !value || !now_date || strcmp(now_date, p->review_by) <= 0)
		return 0;
	if (p->strict)
		return node_error(value, err, ERR_DENIED,
			"the policy was to be reviewed by %s and is `strict`, so it is refused; ask %s to review it and move the date",
			p->review_by, p->owner);
	*ret_warning = mem_printf("%s:%u:%u: the policy was to be reviewed by %s; ask %s to review it and move the date",
		value->file, value->line, value->column, p->review_by, p->owner);
	return 0;
}
