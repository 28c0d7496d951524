/* SPDX-License-Identifier: Apache-2.0 */
#include "policy/lock.h"

#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "policy/path.h"
#include "policy/request-rule.h"

char *lock_pin_path(const char *path, size_t len)
{
	struct request_path parsed;
	char form[REQUEST_PATH_MAX + 1];
	if (request_path_parse(path, len, true, &parsed) != REASON_NONE || parsed.has_query)
		return NULL;
	path_match_form(parsed.path, true, form);
	return mem_strdup(form);
}

static int compare_texts(const void *a, const void *b)
{
	return strcmp(*(char *const *)a, *(char *const *)b);
}

/* A lock file names most packages more than once. */
static void sort_packages(struct request_rule *q)
{
	size_t kept = 0;
	if (q->n_packages > 0)
		qsort(q->packages, q->n_packages, sizeof(*q->packages), compare_texts);
	for (size_t i = 0; i < q->n_packages; i++) {
		if (kept > 0 && str_eq(q->packages[kept - 1], q->packages[i]))
			mem_free(q->packages[i]);
		else
			q->packages[kept++] = q->packages[i];
	}
	q->n_packages = kept;
}

static int read_lock(struct lock_target *t, const char *text, size_t len, struct err *err)
{
	switch (t->rule->request->registry) {
	case REGISTRY_NPM:
		return lock_read_npm(t, text, len, err);
	case REGISTRY_PYPI:
		return lock_read_pypi(t, text, len, err);
	case REGISTRY_APT:
		return lock_read_apt(t, text, len, err);
	case REGISTRY_NONE:
	case REGISTRY_KINDS:
		break;
	}
	return err_set(err, ERR_INVALID, "a lock file belongs to a rule with `registry`");
}

int request_rule_lock(struct network_rule *r, const char *text, size_t len, struct err *err)
{
	struct request_rule *q = r->request;
	if (!q || !q->lock_file)
		return err_set(err, ERR_INVALID, "the rule has no `lock`");
	if (len > RULE_LOCK_MAX)
		return err_set(err, ERR_LIMIT, "the lock file is longer than %u MiB", RULE_LOCK_MAX / (1024 * 1024));
	if (memchr(text, '\0', len))
		return err_set(err, ERR_INVALID, "the lock file contains a NUL byte, so it is no text");
	struct lock_target t = { .rule = r, .add_packages = q->n_packages == 0 };
	if (read_lock(&t, text, len, err) < 0)
		return -1;
	if (q->n_pins == 0)
		return err_set(err, ERR_INVALID, "the lock file pins nothing for this rule, which would allow nothing");
	request_sort_pins(q);
	if (t.add_packages)
		sort_packages(q);
	return 0;
}
