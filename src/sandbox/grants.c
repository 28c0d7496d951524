/* SPDX-License-Identifier: Apache-2.0 */
#include "sandbox/grants.h"

#include <string.h>

#include "base/fd.h"
#include "base/mem.h"
#include "policy/request.h"

static const struct secret_binding *binding_of(const struct policy *p, size_t rule)
{
	return p->rules[rule].request ? p->rules[rule].request->secret : NULL;
}

static void variable_of(const struct secret_binding *b, char out[SECRET_NAME_MAX + 1])
{
	if (b->variable)
		strncpy(out, b->variable, SECRET_NAME_MAX);
	else
		placeholder_variable(b->name, out);
	out[SECRET_NAME_MAX] = '\0';
}

struct grant *grants_find(const struct grants *g, const char *name)
{
	for (size_t i = 0; g && i < g->n; i++)
		if (str_eq(g->list[i].name, name))
			return &g->list[i];
	return NULL;
}

static bool holds_variable(const struct grant *grant, const char *variable)
{
	for (size_t i = 0; i < grant->n_variables; i++)
		if (str_eq(grant->variables[i], variable))
			return true;
	return false;
}

/* That no two secrets share one is the policy's own rule. */
static int add_variable(struct grant *grant, const char *variable, struct err *err)
{
	if (holds_variable(grant, variable))
		return 0;
	if (grant->n_variables == GRANT_VARIABLES_MAX)
		return err_set(err, ERR_LIMIT, "the secret \"%s\" would be in more than %u variables", grant->name, GRANT_VARIABLES_MAX);
	grant->variables[grant->n_variables++] = mem_strdup(variable);
	return 0;
}

static struct grant *add_grant(struct grants *g, const char *name)
{
	g->list = mem_grow_array(g->list, g->n + 1, sizeof(*g->list));
	struct grant *grant = &g->list[g->n++];
	*grant = (struct grant){ .file_fd = -1, .key_fd = -1 };
	strncpy(grant->name, name, SECRET_NAME_MAX);
	placeholder_new(name, grant->placeholder);
	return grant;
}

static int add_binding(struct grants *g, const struct secret_binding *b, struct err *err)
{
	char variable[SECRET_NAME_MAX + 1];
	struct grant *grant = grants_find(g, b->name);
	if (!grant && g->n == SECRETS_MAX)
		return err_set(err, ERR_LIMIT, "the policy binds more than %u secrets, which one sandbox can't hold", SECRETS_MAX);
	if (!grant)
		grant = add_grant(g, b->name);
	variable_of(b, variable);
	return add_variable(grant, variable, err);
}

int grant_open(const struct grants *g, struct grant *grant, struct err *err)
{
	struct secret_about about;
	int file_fd, key_fd;
	if (secret_store_descriptors(g->store, grant->name, &file_fd, &key_fd, &about, err) < 0)
		return err_wrap(err, "the policy binds the secret \"%s\"", grant->name);
	secret_about_done(&grant->about);
	fd_close(&grant->file_fd);
	fd_close(&grant->key_fd);
	grant->about = about;
	grant->file_fd = file_fd;
	grant->key_fd = key_fd;
	return 0;
}

int grants_reopen(struct grants *g, struct err *err)
{
	for (size_t i = 0; g && i < g->n; i++)
		if (grant_open(g, &g->list[i], err) < 0)
			return -1;
	return 0;
}

static int open_all(struct grants *g, int state_dirfd, struct err *err)
{
	g->store = secret_store_open(state_dirfd, false, err);
	return g->store ? grants_reopen(g, err) : -1;
}

int grants_new(const struct policy *p, int state_dirfd, struct grants **ret, struct err *err)
{
	struct grants *g = mem_alloc(sizeof(*g));
	int r = 0;
	for (size_t i = 0; r == 0 && i < p->n_rules; i++)
		if (binding_of(p, i))
			r = add_binding(g, binding_of(p, i), err);
	if (r == 0 && g->n > 0)
		r = open_all(g, state_dirfd, err);
	if (r < 0 || g->n == 0)
		g = grants_free(g);
	if (r == 0)
		*ret = g;
	return r;
}

int grants_cover(const struct grants *g, const struct policy *p, struct err *err)
{
	for (size_t i = 0; i < p->n_rules; i++) {
		char variable[SECRET_NAME_MAX + 1];
		const struct secret_binding *b = binding_of(p, i);
		if (!b)
			continue;
		const struct grant *grant = grants_find(g, b->name);
		if (!grant)
			return err_set(err, ERR_UNSUPPORTED, "the secret \"%s\" was not granted to this sandbox when it started, so no placeholder of it is in there; start a new "
							     "sandbox with this policy", b->name);
		variable_of(b, variable);
		if (!holds_variable(grant, variable))
			return err_set(err, ERR_UNSUPPORTED, "the environment of a running sandbox can't be changed, so the secret \"%s\" can't be put in the variable %s; start a "
							     "new sandbox with this policy", b->name, variable);
	}
	return 0;
}

struct grants *grants_free(struct grants *g)
{
	if (!g)
		return NULL;
	for (size_t i = 0; i < g->n; i++) {
		struct grant *grant = &g->list[i];
		for (size_t v = 0; v < grant->n_variables; v++)
			mem_free(grant->variables[v]);
		secret_about_done(&grant->about);
		fd_close(&grant->file_fd);
		fd_close(&grant->key_fd);
	}
	mem_free(g->list);
	if (g->store)
		secret_store_free(g->store);
	return mem_free(g);
}
