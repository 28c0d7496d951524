/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The flat form. Big-endian, in this order:
 *   u32 magic "BSPC" | u16 version 2 | id (12 bytes) | u8 privileged | u32 host_id_base | hostname | workdir | host_uname
 *   u16 n, n × mount:  target | u8 mode | u8 is_file | u32 owner_uid | u32 owner_gid
 *   u16 n = 11, n × u64 limit in the order of the table in policy/limit.c
 *   u8 egress | u16 n, n × route:  u8 4 or 6 | 4 or 16 bytes
 *   u16 n, n × path of a file
 * Text is a u32 length and its bytes. Flags are 0 or 1, and nothing follows the end.
 */
#include <string.h>

#include "base/mem.h"
#include "policy/limit.h"
#include "policy/target.h"
#include "spec/spec.h"

#define SPEC_MAGIC 0x42535043u
#define SPEC_VERSION 2u
#define NAME_BYTES_MAX 256u

void spec_done(struct spec *s)
{
	for (size_t i = 0; i < s->n_mounts; i++)
		mem_free(s->mounts[i].target);
	mem_free(s->mounts);
	for (size_t i = 0; i < s->n_files; i++)
		mem_free(s->files[i]);
	mem_free(s->files);
	mem_free(s->hostname);
	mem_free(s->workdir);
	mem_free(s->host_uname);
	*s = (struct spec){ 0 };
}

static int put_mounts(struct buf *out, const struct spec *s)
{
	int r = buf_put_u16(out, (uint16_t)s->n_mounts);
	for (size_t i = 0; i < s->n_mounts; i++) {
		const struct spec_mount *m = &s->mounts[i];
		r |= buf_put_str(out, m->target);
		r |= buf_put_u8(out, (uint8_t)m->mode);
		r |= buf_put_u8(out, m->is_file);
		r |= buf_put_u32(out, m->owner_uid);
		r |= buf_put_u32(out, m->owner_gid);
	}
	return r;
}

static int put_limits(struct buf *out, const struct policy_limits *l)
{
	int r = buf_put_u16(out, LIMIT_KINDS);
	for (size_t i = 0; i < LIMIT_KINDS; i++)
		r |= buf_put_u64(out, limit_get(l, &limit_kinds[i]));
	return r;
}

static int put_routes(struct buf *out, const struct spec *s)
{
	int r = buf_put_u8(out, s->egress) | buf_put_u16(out, (uint16_t)s->n_routes);
	for (size_t i = 0; i < s->n_routes; i++) {
		bool v4 = s->routes[i].family == AF_INET;
		r |= buf_put_u8(out, v4 ? 4 : 6);
		r |= buf_append(out, s->routes[i].bytes, v4 ? 4 : 16);
	}
	return r;
}

static int put_files(struct buf *out, const struct spec *s)
{
	int r = buf_put_u16(out, (uint16_t)s->n_files);
	for (size_t i = 0; i < s->n_files; i++)
		r |= buf_put_str(out, s->files[i]);
	return r;
}

int spec_encode(struct buf *out, const struct spec *s)
{
	if (s->n_mounts > SPEC_MOUNTS_MAX || s->n_routes > SPEC_ROUTES_MAX || s->n_files > SPEC_FILES_MAX)
		return -1;
	int r = buf_put_u32(out, SPEC_MAGIC) | buf_put_u16(out, SPEC_VERSION) | buf_append(out, s->id, SANDBOX_ID_LEN);
	r |= buf_put_u8(out, s->privileged) | buf_put_u32(out, s->host_id_base);
	r |= buf_put_str(out, s->hostname) | buf_put_str(out, s->workdir) | buf_put_str(out, s->host_uname);
	r |= put_mounts(out, s) | put_limits(out, &s->limits) | put_routes(out, s) | put_files(out, s);
	return r < 0 ? -1 : 0;
}

static bool take_flag(struct cursor *c)
{
	uint8_t v = cursor_u8(c);
	if (v > 1)
		c->bad = true;
	return v == 1;
}

/* A count, refused before anything of that size is made. */
static size_t take_count(struct cursor *c, size_t min, size_t max)
{
	size_t n = cursor_u16(c);
	if (n < min || n > max)
		c->bad = true;
	return c->bad ? 0 : n;
}

static void take_head(struct cursor *c, struct spec *s)
{
	if (cursor_u32(c) != SPEC_MAGIC || cursor_u16(c) != SPEC_VERSION)
		c->bad = true;
	const uint8_t *id = cursor_take(c, SANDBOX_ID_LEN);
	if (id)
		memcpy(s->id, id, SANDBOX_ID_LEN);
	s->privileged = take_flag(c);
	s->host_id_base = cursor_u32(c);
	s->hostname = cursor_strdup(c, NAME_BYTES_MAX);
	s->workdir = cursor_strdup(c, TARGET_MAX);
	s->host_uname = cursor_strdup(c, NAME_BYTES_MAX);
}

static void take_mounts(struct cursor *c, struct spec *s)
{
	size_t n = take_count(c, 0, SPEC_MOUNTS_MAX);
	if (n == 0)
		return;
	s->mounts = mem_alloc_array(n, sizeof(*s->mounts));
	for (s->n_mounts = 0; s->n_mounts < n && !c->bad; s->n_mounts++) {
		struct spec_mount *m = &s->mounts[s->n_mounts];
		m->target = cursor_strdup(c, TARGET_MAX);
		uint8_t mode = cursor_u8(c);
		if (mode >= MOUNT_MODE_MAX)
			c->bad = true;
		m->mode = c->bad ? MOUNT_COPY : (enum mount_mode)mode;
		m->is_file = take_flag(c);
		m->owner_uid = cursor_u32(c);
		m->owner_gid = cursor_u32(c);
	}
}

static void take_limits(struct cursor *c, struct policy_limits *l)
{
	size_t n = take_count(c, LIMIT_KINDS, LIMIT_KINDS);
	for (size_t i = 0; i < n; i++)
		limit_put(l, &limit_kinds[i], cursor_u64(c));
}

static void take_routes(struct cursor *c, struct spec *s)
{
	s->egress = take_flag(c);
	size_t n = take_count(c, 0, SPEC_ROUTES_MAX);
	for (s->n_routes = 0; s->n_routes < n && !c->bad; s->n_routes++) {
		struct ip *ip = &s->routes[s->n_routes];
		uint8_t kind = cursor_u8(c);
		if (kind != 4 && kind != 6)
			c->bad = true;
		const uint8_t *bytes = cursor_take(c, kind == 4 ? 4 : 16);
		if (!bytes)
			return;
		ip->family = kind == 4 ? AF_INET : AF_INET6;
		memcpy(ip->bytes, bytes, kind == 4 ? 4 : 16);
	}
}

static void take_files(struct cursor *c, struct spec *s)
{
	size_t n = take_count(c, 0, SPEC_FILES_MAX);
	if (n == 0)
		return;
	s->files = mem_alloc_array(n, sizeof(*s->files));
	for (s->n_files = 0; s->n_files < n && !c->bad; s->n_files++)
		s->files[s->n_files] = cursor_strdup(c, TARGET_MAX);
}

int spec_decode(const void *p, size_t n, struct spec *ret, struct err *err)
{
	struct spec s = { 0 };
	struct cursor c = cursor_make(p, n);
	if (n > SPEC_ENCODED_MAX)
		return err_set(
			err, ERR_PROTOCOL, "the description of the sandbox is longer than %u KiB", SPEC_ENCODED_MAX / 1024);
	take_head(&c, &s);
	take_mounts(&c, &s);
	take_limits(&c, &s.limits);
	take_routes(&c, &s);
	take_files(&c, &s);
	if (!cursor_done(&c)) {
		spec_done(&s);
		return err_set(err, ERR_PROTOCOL,
			"the description of the sandbox is not in the form of this version; supervisor and launcher must be of one build");
	}
	/* Nobody can take over a description without its having been judged. */
	if (spec_validate(&s, err) < 0) {
		spec_done(&s);
		return -1;
	}
	*ret = s;
	return 0;
}
