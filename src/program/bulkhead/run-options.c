/* SPDX-License-Identifier: Apache-2.0 */
#include "program/bulkhead/run-options.h"

#include <stdlib.h>
#include <string.h>

#include "base/addr.h"
#include "base/mem.h"
#include "policy/limit.h"

const char run_usage[] =
	"usage: bulkhead run [options] [--] COMMAND [ARG…]\n"
	"\n"
	"Runs one command in a fresh sandbox: no network but what is allowed, a copy of the current folder at /workspace,\n"
	"an empty environment, limits on everything, a record of all it did. Afterwards `bulkhead diff ID` shows what it\n"
	"changed in the copy and `bulkhead apply ID` keeps it.\n"
	"\n"
	"  --policy FILE             policy to run under; options below add to it (default: the built-in policy)\n"
	"  --isolation LEVEL         auto, container, gvisor or microvm (default: auto)\n"
	"  --template NAME           what the box sees as its system; this version has `host`, a read-only view\n"
	"  --dir PATH                folder shown at /workspace (default: the current folder)\n"
	"  --dir-mode MODE           copy: changes are kept aside; ro; rw: the folder itself; none (default: copy)\n"
	"  --mount SRC:DST[:MODE]    one more folder or file: ro (default), copy or rw\n"
	"  --allow HOST[:PORT]       let it reach HOST (port 443 if not said); *.HOST for names below; may be repeated\n"
	"  --secret NAME@HOST[:HEADER]\n"
	"                            let requests to HOST carry a stored secret (`bulkhead secret set NAME`) in HEADER (if not\n"
	"                            said: authorization); the box only holds a placeholder, in $NAME; may be repeated\n"
	"  --resolver IP[:PORT]      ask this DNS server instead of the system's; may be repeated\n"
	"  --env K[=V]               set a variable, or pass on this shell's K; may be repeated\n"
	"  --cpus N                  processor time, e.g. 1.5                      (default: 2)\n"
	"  --memory SIZE             memory; there is never swap                   (default: 2GiB)\n"
	"  --pids N                  processes at once                             (default: 512)\n"
	"  --disk SIZE               all files it can write, together              (default: 1GiB)\n"
	"  --open-files N            open files of one process                     (default: 4096)\n"
	"  --output SIZE             bytes it may print                            (default: 1GiB)\n"
	"  --timeout DURATION        wall time, e.g. 90s, 15m                      (default: 15m)\n"
	"  --idle DURATION           end when it neither works nor speaks so long  (default: unlimited)\n"
	"  --no-tty                  pipes even when on a terminal\n"
	"  --json                    one JSON document on the last line of standard error\n"
	"  -q, --quiet               no closing line\n"
	"  --state DIR               where records and changes are kept\n"
	"  -h, --help\n"
	"\n"
	"Each limit also takes the word `unlimited`. A limit that this machine can't enforce is refused, never ignored.\n"
	"\n"
	"Exit status: the command's own; 128+N when signal N ended it; 124 out of time; 125 Bulkhead failed or refused; 126 not\n"
	"executable; 127 not found; 137 a limit ended it (the reason is on standard error).\n";

static char **push(char **list, size_t *n, char *s)
{
	list = mem_grow_array(list, *n + 2, sizeof(*list));
	list[(*n)++] = s;
	list[*n] = NULL;
	return list;
}

static int set_policy(void *ctx, const char *v, struct err *err)
{
	((struct run_options *)ctx)->policy_file = v;
	return 0;
}

static int set_isolation(void *ctx, const char *v, struct err *err)
{
	enum isolation_level level;
	if (!str_eq(v, "auto") && isolation_level_parse(v, &level) < 0)
		return err_set(err, ERR_USAGE, "--isolation takes auto, container, gvisor or microvm, not \"%.60s\"", v);
	((struct run_options *)ctx)->isolation = v;
	return 0;
}

static int set_template(void *ctx, const char *v, struct err *err)
{
	if (!str_eq(v, "host"))
		return err_set(err, ERR_UNSUPPORTED, "there is no template \"%.60s\": this version has only `host`, a read-only view of this machine's system folders", v);
	((struct run_options *)ctx)->template_name = v;
	return 0;
}

static int set_dir(void *ctx, const char *v, struct err *err)
{
	struct run_options *o = ctx;
	o->dir = v;
	o->dir_given = true;
	return *v ? 0 : err_set(err, ERR_USAGE, "--dir needs the path of a folder, and got an empty one");
}

static int set_dir_mode(void *ctx, const char *v, struct err *err)
{
	struct run_options *o = ctx;
	o->dir_mode_given = true;
	o->dir_none = str_eq(v, "none");
	if (o->dir_none || mount_mode_parse(v, &o->dir_mode) == 0)
		return 0;
	return err_set(err, ERR_USAGE, "--dir-mode takes copy, ro, rw or none, not \"%.60s\"", v);
}

static int set_mount(void *ctx, const char *v, struct err *err)
{
	struct run_options *o = ctx;
	const char *first = strchr(v, ':'), *second = first ? strchr(first + 1, ':') : NULL;
	struct run_mount_option m = { .mode = MOUNT_RO };
	if (!first || first == v || (second && strchr(second + 1, ':')))
		return err_set(err, ERR_USAGE, "--mount takes SOURCE:TARGET[:ro|copy|rw], not \"%.200s\"", v);
	if (second && mount_mode_parse(second + 1, &m.mode) < 0)
		return err_set(err, ERR_USAGE, "the mode of --mount %.200s must be ro, copy or rw", v);
	m.source = mem_strndup(v, (size_t)(first - v));
	m.target = second ? mem_strndup(first + 1, (size_t)(second - first - 1)) : mem_strdup(first + 1);
	o->mounts = mem_grow_array(o->mounts, o->n_mounts + 1, sizeof(*o->mounts));
	o->mounts[o->n_mounts++] = m;
	return 0;
}

static int set_allow(void *ctx, const char *v, struct err *err)
{
	struct run_options *o = ctx;
	o->allow = push(o->allow, &o->n_allow, mem_strdup(v));
	return 0;
}

static int set_resolver(void *ctx, const char *v, struct err *err)
{
	struct run_options *o = ctx;
	const char *host;
	size_t len;
	uint16_t port;
	struct ip ip;
	char text[IP_TEXT_MAX];
	if (hostport_split(v, strlen(v), &host, &len, &port) < 0 || ip_parse(host, len, &ip) < 0)
		return err_set(err, ERR_USAGE, "--resolver takes the address of a DNS server, IP or IP:PORT ([IP]:PORT for IPv6), not \"%.80s\"", v);
	ip_format(&ip, text);
	o->resolvers = push(o->resolvers, &o->n_resolvers,
		mem_printf(ip.family == AF_INET6 ? "[%s]:%u" : "%s:%u", text, port ? port : 53u));
	return 0;
}

static int set_secret(void *ctx, const char *v, struct err *err)
{
	struct run_options *o = ctx;
	o->secrets = push(o->secrets, &o->n_secrets, mem_strdup(v));
	return 0;
}

static int set_env(void *ctx, const char *v, struct err *err)
{
	struct run_options *o = ctx;
	const char *eq = strchr(v, '='), *own = eq ? NULL : getenv(v);
	if (*v == '\0' || eq == v)
		return err_set(err, ERR_USAGE, "--env takes NAME or NAME=VALUE, not \"%.80s\"", v);
	if (!eq && !own)
		return err_set(err, ERR_USAGE, "--env %.80s: this shell has no such variable; give a value with --env %.80s=VALUE", v, v);
	o->env = push(o->env, &o->n_env, eq ? mem_strdup(v) : mem_printf("%s=%s", v, own));
	return 0;
}

/* The same table that policy files are read with: a limit means the same everywhere. */
static int set_limit(void *ctx, const char *option, const char *name, const char *v, struct err *err)
{
	struct run_options *o = ctx;
	struct policy_limits checked;
	memset(&checked, 0xff, sizeof(checked));
	if (limit_set(&checked, name, v, err) < 0)
		return err_wrap(err, "--%s", option);
	o->limits = mem_grow_array(o->limits, o->n_limits + 1, sizeof(*o->limits));
	o->limits[o->n_limits++] = (struct run_limit_option){ name, v };
	return 0;
}

#define LIMIT_OPTION(function, option, name)                                     \
	static int function(void *ctx, const char *v, struct err *err)           \
	{                                                                        \
		return set_limit(ctx, option, name, v, err);                     \
	}
LIMIT_OPTION(set_cpus, "cpus", "cpus")
LIMIT_OPTION(set_memory, "memory", "memory")
LIMIT_OPTION(set_pids, "pids", "processes")
LIMIT_OPTION(set_disk, "disk", "disk")
LIMIT_OPTION(set_open_files, "open-files", "open_files")
LIMIT_OPTION(set_output, "output", "output")
LIMIT_OPTION(set_timeout, "timeout", "timeout")
LIMIT_OPTION(set_idle, "idle", "idle")

static int set_no_tty(void *ctx, const char *v, struct err *err)
{
	((struct run_options *)ctx)->no_tty = true;
	return 0;
}

static const struct option_spec specs[] = {
	{ 0, "policy", "FILE", set_policy },
	{ 0, "isolation", "LEVEL", set_isolation },
	{ 0, "template", "NAME", set_template },
	{ 0, "dir", "PATH", set_dir },
	{ 0, "dir-mode", "MODE", set_dir_mode },
	{ 0, "mount", "SOURCE:TARGET[:MODE]", set_mount },
	{ 0, "allow", "HOST[:PORT]", set_allow },
	{ 0, "resolver", "IP[:PORT]", set_resolver },
	{ 0, "secret", "NAME@HOST[:HEADER]", set_secret },
	{ 0, "env", "K[=V]", set_env },
	{ 0, "cpus", "N", set_cpus },
	{ 0, "memory", "SIZE", set_memory },
	{ 0, "pids", "N", set_pids },
	{ 0, "disk", "SIZE", set_disk },
	{ 0, "open-files", "N", set_open_files },
	{ 0, "output", "SIZE", set_output },
	{ 0, "timeout", "DURATION", set_timeout },
	{ 0, "idle", "DURATION", set_idle },
	{ 0, "no-tty", NULL, set_no_tty },
	{ 0 },
};

int run_options_parse(struct run_options *o, struct globals *g, int argc, char **argv, char ***ret_argv, bool *ret_help, struct err *err)
{
	char **operands;
	int n;
	*o = (struct run_options){ .isolation = "auto", .dir_mode = MOUNT_COPY };
	if (command_options(&command_run, g, specs, o, true, argc, argv, &operands, &n, ret_help, err) < 0)
		return -1;
	if (*ret_help)
		return 0;
	if (n == 0)
		return err_set(err, ERR_USAGE, "there is no command to run: bulkhead run [options] -- COMMAND [ARG…]");
	operands[n] = NULL;
	*ret_argv = operands;
	return 0;
}

static void free_list(char **list)
{
	for (size_t i = 0; list && list[i]; i++)
		mem_free(list[i]);
	mem_free(list);
}

void run_options_done(struct run_options *o)
{
	for (size_t i = 0; i < o->n_mounts; i++) {
		mem_free(o->mounts[i].source);
		mem_free(o->mounts[i].target);
	}
	mem_free(o->mounts);
	mem_free(o->limits);
	free_list(o->allow);
	free_list(o->secrets);
	free_list(o->env);
	free_list(o->resolvers);
}
