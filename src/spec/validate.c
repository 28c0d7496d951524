/* SPDX-License-Identifier: Apache-2.0 */
/* A description that passes here can be built as it stands; both sides of the launcher's socket check it. */
#include <stdio.h>
#include <string.h>

#include "base/mem.h"
#include "base/text.h"
#include "policy/limit.h"
#include "policy/target.h"
#include "spec/spec.h"

#define SHOWN_MAX 200
#define TARGETS_BYTES_MAX (SPEC_ENCODED_MAX / 2) /* so that what is valid also fits its flat form */

static int check_names(const struct spec *s, struct err *err)
{
	struct hostname name;
	char shown[SHOWN_MAX];
	if (!sandbox_id_valid(s->id))
		return err_set(err, ERR_INVALID, "the sandbox id must be %u lower-case letters and digits, the first a letter",
			SANDBOX_ID_LEN);
	/* 64: the kernel's __NEW_UTS_LEN. */
	if (!s->hostname || strlen(s->hostname) > 64 || hostname_parse(s->hostname, strlen(s->hostname), &name, NULL) < 0)
		return err_set(err, ERR_INVALID, "the host name of the sandbox must be a DNS name of at most 64 characters");
	if (s->host_uname && *s->host_uname)
		return err_set(err, ERR_INVALID, "the field host_uname is reserved and must be empty");
	if (!path_is_normal(s->workdir))
		return err_set(err, ERR_INVALID,
			"the working folder \"%s\" must be an absolute path without empty, \".\" or \"..\" parts",
			s->workdir ? text_escape(s->workdir, strlen(s->workdir), shown, sizeof(shown)) : "");
	return 0;
}

static int check_ids(const struct spec *s, struct err *err)
{
	/* Below the range are the ids of the machine's own users; the last id means "none". */
	if (s->privileged && (s->host_id_base < SPEC_ID_RANGE || s->host_id_base > UINT32_MAX - SPEC_ID_RANGE))
		return err_set(err, ERR_INVALID, "the host ids of the sandbox must lie between %u and %u, and begin at %u",
			SPEC_ID_RANGE, UINT32_MAX - 1, (unsigned)s->host_id_base);
	return 0;
}

static int check_mount(const struct spec_mount *m, struct err *err)
{
	if (!m->target)
		return err_set(err, ERR_INVALID, "a mount has no target");
	if (target_check(m->target, err) < 0)
		return -1;
	char shown[SHOWN_MAX];
	text_escape(m->target, strlen(m->target), shown, sizeof(shown));
	if ((unsigned)m->mode >= MOUNT_MODE_MAX)
		return err_set(err, ERR_INVALID, "the mount on \"%s\" has no valid mode", shown);
	if (m->is_file && m->mode == MOUNT_COPY)
		return err_set(err, ERR_INVALID,
			"the mount on \"%s\" is a single file, which can't be a copy; use ro or rw, or its folder", shown);
	if (m->owner_uid == (uid_t)-1 || m->owner_gid == (gid_t)-1)
		return err_set(err, ERR_INVALID, "the source of the mount on \"%s\" has no owner", shown);
	return 0;
}

/* Two mounts may nest, the outer one first and a folder; they may not be the same place. */
static int check_pair(const struct spec_mount *before, const struct spec_mount *after, struct err *err)
{
	char a[SHOWN_MAX], b[SHOWN_MAX];
	text_escape(before->target, strlen(before->target), a, sizeof(a));
	text_escape(after->target, strlen(after->target), b, sizeof(b));
	if (str_eq(before->target, after->target))
		return err_set(err, ERR_INVALID, "two mounts have the target \"%s\"; give each its own", a);
	if (path_is_within(before->target, after->target))
		return err_set(err, ERR_INVALID,
			"the mount on \"%s\" would hide the one on \"%s\", which comes before it; the outer one must come first",
			b, a);
	if (before->is_file && path_is_within(after->target, before->target))
		return err_set(err, ERR_INVALID, "the mount on \"%s\" lies below \"%s\", which is a file", b, a);
	return 0;
}

static int check_mounts(const struct spec *s, struct err *err)
{
	if (s->n_mounts > SPEC_MOUNTS_MAX)
		return err_set(err, ERR_LIMIT, "the sandbox has more than %u mounts", SPEC_MOUNTS_MAX);
	size_t bytes = 0;
	for (size_t i = 0; i < s->n_mounts; i++) {
		if (check_mount(&s->mounts[i], err) < 0)
			return -1;
		bytes += strlen(s->mounts[i].target);
	}
	if (bytes > TARGETS_BYTES_MAX)
		return err_set(err, ERR_LIMIT, "the targets of the mounts have more than %u KiB together; choose shorter ones",
			TARGETS_BYTES_MAX / 1024);
	for (size_t i = 0; i < s->n_mounts; i++)
		for (size_t j = i + 1; j < s->n_mounts; j++)
			if (check_pair(&s->mounts[i], &s->mounts[j], err) < 0)
				return -1;
	return 0;
}

static int check_route(const struct ip *ip, struct err *err)
{
	char text[IP_TEXT_MAX];
	static const uint8_t none[16];
	if (ip->family != AF_INET && ip->family != AF_INET6)
		return err_set(err, ERR_INVALID, "a route of the sandbox is neither IPv4 nor IPv6");
	bool multicast = ip->family == AF_INET ? ip->bytes[0] >= 224 : ip->bytes[0] == 0xff;
	if (multicast || memcmp(ip->bytes, none, ip->family == AF_INET ? 4 : 16) == 0)
		return err_set(err, ERR_INVALID, "no route of the sandbox can lead to %s", ip_format(ip, text));
	return 0;
}

static int check_routes(const struct spec *s, struct err *err)
{
	if (s->n_routes > SPEC_ROUTES_MAX)
		return err_set(err, ERR_LIMIT, "the policy names more than %u addresses; use host names", SPEC_ROUTES_MAX);
	if (s->n_routes && !s->egress)
		return err_set(err, ERR_INVALID, "the sandbox has routes but no egress");
	for (size_t i = 0; i < s->n_routes; i++)
		if (check_route(&s->routes[i], err) < 0)
			return -1;
	return 0;
}

/* Nothing but certificates of the host is ever covered, and nothing but the box's own home is added to. */
static int check_file(const char *path, struct err *err)
{
	static const char *const places[] = { "etc/ssl/certs/", "etc/pki/tls/certs/", "etc/pki/ca-trust/extracted/", "home/" };
	char absolute[TARGET_MAX + 2], shown[SHOWN_MAX];
	for (size_t i = 0; path && i < ARRAY_LEN(places); i++) {
		int n = snprintf(absolute, sizeof(absolute), "/%s", path);
		if (str_starts(path, places[i]) && n < (int)sizeof(absolute) && path_is_normal(absolute))
			return 0;
	}
	return err_set(err, ERR_INVALID, "no file of ours belongs at \"%s\" of the box",
		path ? text_escape(path, strlen(path), shown, sizeof(shown)) : "");
}

static int check_files(const struct spec *s, struct err *err)
{
	if (s->n_files > SPEC_FILES_MAX)
		return err_set(err, ERR_LIMIT, "the sandbox has more than %u files of ours", SPEC_FILES_MAX);
	for (size_t i = 0; i < s->n_files; i++) {
		if (check_file(s->files[i], err) < 0)
			return -1;
		for (size_t j = 0; j < i; j++)
			if (str_eq(s->files[i], s->files[j]))
				return err_set(err, ERR_INVALID, "two files of ours have one place in the box, %s", s->files[i]);
	}
	return 0;
}

int spec_validate(const struct spec *s, struct err *err)
{
	if (check_names(s, err) < 0 || check_ids(s, err) < 0 || check_mounts(s, err) < 0 || limits_check(&s->limits, err) < 0)
		return -1;
	return check_routes(s, err) < 0 || check_files(s, err) < 0 ? -1 : 0;
}
