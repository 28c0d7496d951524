/* SPDX-License-Identifier: Apache-2.0 */
/* From options to a plan: policy, mounts, spec. Everything is resolved and validated before anything is made. */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/mem.h"
#include "policy/limit.h"
#include "program/bulkhead/policy-file.h"
#include "program/bulkhead/run-options.h"
#include "sandbox/trust.h"

#define WORKSPACE "/workspace"
#define BOX_HOME "/home/agent"

/* ---- policy ---- */

static int read_policy(const char *file, struct policy **ret, struct err *err)
{
	cleanup_free char *warning = NULL;
	if (policy_file_read(file, ret, &warning, err) < 0)
		return -1;
	if (warning) {
		struct err w;
		err_set(&w, ERR_NONE, "%s", warning);
		err_print("bulkhead run", &w);
	}
	return 0;
}

static bool is_or_contains(const char *dir, const char *path)
{
	size_t n = strlen(dir);
	return strncmp(dir, path, n) == 0 && (path[n] == '\0' || path[n] == '/' || n == 1);
}

/* A folder nobody named explicitly must not hand over a whole home with its keys. */
static int check_default_dir(const char *dir, bool given, struct err *err)
{
	const char *home = getenv("HOME");
	cleanup_free char *real_home = home && *home ? realpath(home, NULL) : NULL;
	if (str_eq(dir, "/"))
		return err_set(err, ERR_USAGE, "the folder / can't be the working copy; change to a project's folder, or name one with --dir, or use --dir-mode none");
	if (!given && real_home && is_or_contains(dir, real_home))
		return err_set(err, ERR_USAGE, "the current folder %s is or holds your home with its keys and settings; change to a project's folder, name it with --dir %s, "
					       "or use --dir-mode none", dir, dir);
	return 0;
}

static int add_dir(const struct run_options *o, struct policy *p, struct err *err)
{
	if (o->dir_none)
		return 0;
	if (p->n_mounts > 0 && !o->dir_given && !o->dir_mode_given)
		return 0; /* the policy's own list of files */
	const char *dir = o->dir ? o->dir : ".";
	cleanup_free char *real = realpath(dir, NULL);
	if (!real)
		return err_sys(err, errno, "cannot use %s as the working folder", dir);
	if (check_default_dir(real, o->dir_given, err) < 0)
		return -1;
	return policy_add_mount(p, real, WORKSPACE, o->dir_mode, err);
}

int run_options_policy(const struct run_options *o, struct policy **ret, struct err *err)
{
	struct policy *p = NULL;
	if (read_policy(o->policy_file, &p, err) < 0)
		return -1;
	int r = add_dir(o, p, err);
	for (size_t i = 0; r == 0 && i < o->n_limits; i++)
		r = limit_set(&p->limits, o->limits[i].name, o->limits[i].value, err);
	for (size_t i = 0; r == 0 && i < o->n_mounts; i++)
		r = policy_add_mount(p, o->mounts[i].source, o->mounts[i].target, o->mounts[i].mode, err);
	for (size_t i = 0; r == 0 && i < o->n_allow; i++)
		r = policy_add_allow(p, o->allow[i], err);
	for (size_t i = 0; r == 0 && i < o->n_secrets; i++)
		r = policy_add_secret(p, o->secrets[i], err);
	if (r < 0) {
		policy_free(p);
		return -1;
	}
	policy_seal(p);
	*ret = p;
	return 0;
}

/* ---- spec ---- */

static int open_mount(const struct policy_mount *m, struct sandbox_mount *ret, struct spec_mount *ret_spec, struct err *err)
{
	struct stat st;
	char *real = realpath(m->source, NULL);
	if (!real)
		return err_sys(err, errno, "cannot mount %s at %s", m->source, m->target);
	int fd = open(real, O_PATH | O_CLOEXEC);
	if (fd < 0 || fstat(fd, &st) < 0) {
		int e = errno;
		free(real);
		fd_close(&fd);
		return err_sys(err, e, "cannot open %s, to be mounted at %s", m->source, m->target);
	}
	ret->source = real;
	ret->fd = fd;
	*ret_spec = (struct spec_mount){
		.target = mem_strdup(m->target), .mode = m->mode, .is_file = S_ISREG(st.st_mode), .owner_uid = st.st_uid, .owner_gid = st.st_gid,
	};
	if (!S_ISREG(st.st_mode) && !S_ISDIR(st.st_mode))
		return err_set(err, ERR_USAGE, "%s is neither a folder nor a regular file, so it can't be mounted", m->source);
	if (S_ISREG(st.st_mode) && m->mode == MOUNT_COPY)
		return err_set(err, ERR_USAGE, "%s is a file: mode copy is for folders; use ro or rw, or mount its folder", m->source);
	return 0;
}

/* Parents first, so that a mount inside another one lands on top of it. */
static int compare_target(const void *a, const void *b)
{
	const struct policy_mount *const *x = a, *const *y = b;
	return strcmp((*x)->target, (*y)->target);
}

static int fill_mounts(const struct policy *p, struct sandbox_config *c, struct err *err)
{
	cleanup_free const struct policy_mount **order = mem_alloc_array(p->n_mounts + 1, sizeof(*order));
	for (size_t i = 0; i < p->n_mounts; i++)
		order[i] = &p->mounts[i];
	qsort(order, p->n_mounts, sizeof(*order), compare_target);
	c->mounts = mem_alloc_array(p->n_mounts + 1, sizeof(*c->mounts));
	c->spec.mounts = mem_alloc_array(p->n_mounts + 1, sizeof(*c->spec.mounts));
	for (size_t i = 0; i < p->n_mounts; i++) {
		c->mounts[i].fd = -1;
		c->spec.n_mounts = i + 1;
		if (open_mount(order[i], &c->mounts[i], &c->spec.mounts[i], err) < 0)
			return -1;
	}
	return 0;
}

/* Of the mounts only folders count. */
static const char *workdir_of(const struct sandbox_config *c)
{
	const struct spec_mount *only = NULL;
	size_t n = 0;
	for (size_t i = 0; i < c->spec.n_mounts; i++) {
		const struct spec_mount *m = &c->spec.mounts[i];
		if (m->is_file)
			continue;
		if (str_eq(m->target, WORKSPACE))
			return WORKSPACE;
		only = m;
		n++;
	}
	return n == 1 ? only->target : BOX_HOME;
}

int run_options_config(const struct run_options *o, const struct policy *p, const char *id, struct sandbox_config *ret, struct err *err)
{
	ret->policy = p;
	strncpy(ret->spec.id, id, SANDBOX_ID_LEN);
	ret->spec.privileged = geteuid() == 0;
	ret->spec.limits = p->limits;
	ret->spec.hostname = mem_strdup(id);
	ret->spec.host_uname = mem_strdup("");
	ret->spec.egress = true;
	for (size_t i = 0; i < p->n_rules && ret->spec.n_routes < SPEC_ROUTES_MAX; i++)
		if (p->rules[i].is_address)
			ret->spec.routes[ret->spec.n_routes++] = p->rules[i].address;
	for (size_t i = 0; i < o->n_resolvers; i++) {
		ret->resolvers = mem_grow_array(ret->resolvers, i + 2, sizeof(char *));
		ret->resolvers[i] = mem_strdup(o->resolvers[i]);
		ret->resolvers[i + 1] = NULL;
	}
	if (fill_mounts(p, ret, err) < 0)
		return -1;
	ret->spec.workdir = mem_strdup(workdir_of(ret));
	return 0;
}

/* ---- environment ---- */

static bool has_variable(char *const *env, const char *name)
{
	size_t n = strlen(name);
	for (size_t i = 0; env && env[i]; i++)
		if (strncmp(env[i], name, n) == 0 && env[i][n] == '=')
			return true;
	return false;
}

/* Of several --env with one name the last counts. */
static bool set_later(char *const *entry)
{
	size_t n = (size_t)(strchr(*entry, '=') - *entry) + 1;
	for (char *const *later = entry + 1; *later; later++)
		if (strncmp(*later, *entry, n) == 0)
			return true;
	return false;
}

static void add_variable(char ***env, size_t *n, char *const *own, const char *name, const char *value)
{
	if (!value || has_variable(own, name))
		return;
	*env = mem_grow_array(*env, *n + 2, sizeof(char *));
	(*env)[(*n)++] = mem_printf("%s=%s", name, value);
	(*env)[*n] = NULL;
}

static const char *const fixed[][2] = {
	{ "PATH", "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin" },
	{ "HOME", BOX_HOME }, { "USER", "agent" }, { "LOGNAME", "agent" }, { "SHELL", "/bin/sh" }, { "LANG", "C.UTF-8" },
	/* A convenience for programs that know proxies; capture works for those that don't. */
	{ "HTTP_PROXY", "http://127.0.0.1:3128" }, { "HTTPS_PROXY", "http://127.0.0.1:3128" },
	{ "http_proxy", "http://127.0.0.1:3128" }, { "https_proxy", "http://127.0.0.1:3128" },
	{ "NO_PROXY", "localhost,127.0.0.1,::1" }, { "no_proxy", "localhost,127.0.0.1,::1" }, { "NODE_USE_ENV_PROXY", "1" },
};

static bool is_fixed(const char *name)
{
	for (size_t i = 0; i < ARRAY_LEN(fixed); i++)
		if (str_eq(fixed[i][0], name))
			return true;
	for (const struct trust_variable *v = trust_variables; v->name; v++)
		if (str_eq(v->name, name))
			return true;
	return str_eq(name, "TERM") || str_starts(name, "BULKHEAD_") || str_starts(name, "LD_");
}

static int check_variable(const struct run_options *o, const struct grant *grant, const char *name, struct err *err)
{
	if (is_fixed(name))
		return err_set(err, ERR_INVALID, "the placeholder of the secret \"%s\" can't be in the variable %s, which means something else in a box; give it another one with `env` in the policy",
			grant->name, name);
	if (has_variable(o->env, name))
		return err_set(err, ERR_USAGE, "--env %s would hide the placeholder of the secret \"%s\": leave it out, or give the secret another variable with `env` in the policy",
			name, grant->name);
	return 0;
}

int run_options_check_variables(const struct run_options *o, const struct grants *grants, struct err *err)
{
	for (size_t i = 0; grants && i < grants->n; i++)
		for (size_t v = 0; v < grants->list[i].n_variables; v++)
			if (check_variable(o, &grants->list[i], grants->list[i].variables[v], err) < 0)
				return -1;
	return 0;
}

static void add_placeholders(char ***env, size_t *n, const struct grants *grants)
{
	for (size_t i = 0; grants && i < grants->n; i++)
		for (size_t v = 0; v < grants->list[i].n_variables; v++)
			add_variable(env, n, NULL, grants->list[i].variables[v], grants->list[i].placeholder);
}

char **run_options_env(const struct run_options *o, const struct grants *grants, const char *id, bool inspects, bool tty)
{
	char **env = NULL;
	size_t n = 0;
	for (size_t i = 0; i < ARRAY_LEN(fixed); i++)
		add_variable(&env, &n, o->env, fixed[i][0], fixed[i][1]);
	for (const struct trust_variable *v = trust_variables; inspects && v->name; v++)
		add_variable(&env, &n, o->env, v->name, v->value);
	add_variable(&env, &n, o->env, "BULKHEAD_SANDBOX", id);
	if (tty)
		add_variable(&env, &n, o->env, "TERM", getenv("TERM") ? getenv("TERM") : "dumb");
	add_placeholders(&env, &n, grants);
	for (size_t i = 0; i < o->n_env; i++) {
		if (set_later(o->env + i))
			continue;
		env = mem_grow_array(env, n + 2, sizeof(char *));
		env[n++] = mem_strdup(o->env[i]);
		env[n] = NULL;
	}
	return env;
}
