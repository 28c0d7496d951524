/* SPDX-License-Identifier: Apache-2.0 */
/* Shared by the tests of spec/: a description that is valid and uses every field. */
#pragma once

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "base/mem.h"
#include "spec/spec.h"

static inline void add_mount(struct spec *s, const char *target, enum mount_mode mode, bool is_file)
{
	s->mounts = mem_grow_array(s->mounts, s->n_mounts + 1, sizeof(*s->mounts));
	s->mounts[s->n_mounts++] = (struct spec_mount){ mem_strdup(target), mode, is_file, 1000, 1001 };
}

static inline void add_route(struct spec *s, const char *text)
{
	assert_int_equal(ip_parse(text, strlen(text), &s->routes[s->n_routes++]), 0);
}

static inline void add_file(struct spec *s, const char *path)
{
	s->files = mem_grow_array(s->files, s->n_files + 1, sizeof(*s->files));
	s->files[s->n_files++] = mem_strdup(path);
}

static inline struct spec spec_full(void)
{
	struct policy *p = policy_builtin();
	struct spec s = { .id = "abcdefgh2345", .privileged = true, .host_id_base = 1u << 20, .egress = true, .limits = p->limits };
	s.hostname = mem_strdup("abcdefgh2345");
	s.workdir = mem_strdup("/workspace");
	s.host_uname = mem_strdup("");
	add_mount(&s, "/workspace", MOUNT_COPY, false);
	add_mount(&s, "/workspace/file", MOUNT_RO, true);
	add_mount(&s, "/data", MOUNT_RW, false);
	add_route(&s, "10.0.0.1");
	add_route(&s, "2606:4700::1111");
	add_file(&s, "etc/ssl/certs/ca-certificates.crt");
	add_file(&s, "home/.pki/nssdb/cert9.db");
	policy_free(p);
	return s;
}
