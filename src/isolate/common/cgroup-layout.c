/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Finds the cgroup hierarchies. v1 has one for each controller (or two together), v2 one for all; a host that mounts both
 * ("hybrid") has its controllers in v1. Root makes its cgroups below the mount's root. An ordinary user has what was delegated:
 * the own cgroup, if its folder is writable.
 */
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/mem.h"
#include "isolate/common/cgroup-internal.h"

#define MOUNTINFO_MAX (4u * 1024u * 1024u)

/* The leaf into which a delegated cgroup's own processes were moved (cgroup_v2_delegate). */
#define ASIDE "/bulkhead-main"

static const struct {
	const char *name;
	unsigned bit;
} v1_names[] = {
	{ "cpu", CGROUP_CPU },
	{ "cpuacct", CGROUP_CPUACCT },
	{ "memory", CGROUP_MEMORY },
	{ "pids", CGROUP_PIDS },
	{ "freezer", CGROUP_FREEZER },
};

static unsigned v1_bits(const char *options)
{
	unsigned bits = 0;
	for (size_t i = 0; i < ARRAY_LEN(v1_names); i++) {
		size_t len = strlen(v1_names[i].name);
		for (const char *p = options; p; p = strchr(p, ',')) {
			p += *p == ',';
			if (strncmp(p, v1_names[i].name, len) == 0 && (p[len] == ',' || p[len] == '\0' || p[len] == '\n'))
				bits |= v1_names[i].bit;
		}
	}
	return bits;
}

/* Our own cgroup in the hierarchy: the line "N:controllers:/path" (v2: "0::/path"). */
static bool own_path(const char *text, unsigned bits, char *out, size_t out_len)
{
	for (const char *line = text; line && *line; line = strchr(line, '\n'), line = line ? line + 1 : NULL) {
		char names[128] = "", path[512] = "";
		int n = sscanf(line, "%*u:%127[^:\n]:%511[^\n]", names, path);
		if (n != 2 && (bits != 0 || sscanf(line, "0::%511[^\n]", path) != 1))
			continue;
		if (bits == 0 ? n != 2 : (v1_bits(names) & bits) != 0) {
			snprintf(out, out_len, "%s", path);
			return true;
		}
	}
	return false;
}

/* The part of `own` that lies below what is mounted; in a container the mount shows only a part of the hierarchy. */
static const char *below_root(const char *own, const char *mount_root)
{
	size_t len = strlen(mount_root);
	if (str_eq(mount_root, "/"))
		return str_eq(own, "/") ? "" : own;
	if (strncmp(own, mount_root, len) == 0 && (own[len] == '/' || own[len] == '\0'))
		return own + len;
	return NULL;
}

static char *choose_base(const char *point, const char *mount_root, const char *cgroup_text, unsigned bits, bool root)
{
	char own[512];
	if (root)
		return mem_strdup(point);
	if (!own_path(cgroup_text, bits, own, sizeof(own)))
		return NULL;
	const char *rest = below_root(own, mount_root);
	if (!rest)
		return NULL;
	char *base = mem_printf("%s%s", point, rest);
	if (str_ends(base, ASIDE))
		base[strlen(base) - strlen(ASIDE)] = '\0';
	return base;
}

static void add_place(struct cgroup_layout *l, unsigned bits, char *base)
{
	if (!base || l->n == CGROUP_HIERARCHIES_MAX) {
		mem_free(base);
		return;
	}
	l->places[l->n++] = (struct cgroup_place){ .controllers = bits, .base = base, .writable = access(base, W_OK) == 0 };
}

/* "36 35 98:0 /root /point opts … - type source superopts" */
static void read_mounts(const char *text, const char *cgroup_text, const char *type, bool as_root, struct cgroup_layout *l)
{
	for (const char *line = text; line && *line; line = strchr(line, '\n'), line = line ? line + 1 : NULL) {
		char root[512], point[512], fs[32], super[256];
		const char *dash = strstr(line, " - "), *end = strchr(line, '\n');
		if (!dash || (end && dash > end) || sscanf(dash, " - %31s %*s %255[^\n]", fs, super) != 2 || !str_eq(fs, type))
			continue;
		if (sscanf(line, "%*d %*d %*s %511s %511s", root, point) != 2)
			continue;
		bool v2 = str_eq(type, "cgroup2");
		unsigned bits = v2 ? 0 : v1_bits(super);
		if (!v2 && bits == 0)
			continue;
		unsigned have = 0;
		for (size_t i = 0; i < l->n; i++)
			have |= l->places[i].controllers;
		if (v2 ? l->n > 0 : (have & bits) != 0)
			continue; /* a second mount of the same hierarchy */
		char *base = choose_base(point, root, cgroup_text, bits, as_root);
		if (v2 && base)
			bits = cgroup_v2_controllers(base, "cgroup.controllers") | CGROUP_FREEZER | CGROUP_CPUACCT;
		add_place(l, bits, base);
	}
}

static unsigned limiting(const struct cgroup_layout *l)
{
	unsigned have = 0;
	for (size_t i = 0; i < l->n; i++)
		have |= l->places[i].controllers;
	return have & (CGROUP_CPU | CGROUP_MEMORY | CGROUP_PIDS);
}

void cgroup_layout_parse(const char *mountinfo, const char *own, bool root, struct cgroup_layout *ret)
{
	*ret = (struct cgroup_layout){ 0 };
	read_mounts(mountinfo, own, "cgroup", root, ret);
	if (limiting(ret)) {
		ret->version = CGROUP_V1;
		return;
	}
	for (size_t i = 0; i < ret->n; i++)
		mem_free(ret->places[i].base);
	*ret = (struct cgroup_layout){ 0 };
	read_mounts(mountinfo, own, "cgroup2", root, ret);
	if (ret->n > 0)
		ret->version = CGROUP_V2;
}

static void find_layout(struct cgroup_layout *l)
{
	cleanup_free char *mounts = NULL, *own = NULL;
	size_t len;
	if (fd_read_file_at(AT_FDCWD, "/proc/self/mountinfo", MOUNTINFO_MAX, &mounts, &len, NULL) < 0 ||
		fd_read_file_at(AT_FDCWD, "/proc/self/cgroup", 65536, &own, &len, NULL) < 0)
		return;
	cgroup_layout_parse(mounts, own, geteuid() == 0, l);
}

const struct cgroup_layout *cgroup_layout_get(void)
{
	static struct cgroup_layout layout;
	static bool known;
	if (!known)
		find_layout(&layout);
	known = true;
	return &layout;
}
