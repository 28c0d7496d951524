/* SPDX-License-Identifier: Apache-2.0 */
#include "spec-help.h"

static void refused(struct spec *s, const char *says)
{
	struct err err = ERR_INIT;
	if (spec_validate(s, &err) == 0)
		fail_msg("accepted, expected \"%s\"", says);
	if (!strstr(err.text, says))
		fail_msg("\"%s\" is missing in: %s", says, err.text);
	spec_done(s);
}

static void set(char **field, const char *value)
{
	mem_free(*field);
	*field = mem_strdup(value);
}

static void full_is_valid(void **state)
{
	struct spec s = spec_full();
	struct err err = ERR_INIT;
	if (spec_validate(&s, &err) < 0)
		fail_msg("%s", err.text);
	spec_done(&s);
	assert_null(s.hostname);
	assert_int_equal(s.n_mounts, 0);
}

static void names(void **state)
{
	struct spec s = spec_full();
	s.id[0] = '/';
	refused(&s, "sandbox id");
	static const char *const hostnames[] = { NULL, "", "a b", "x\ny", "1.2.3.4",
		"aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa.aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa.aaaa" };
	for (size_t i = 0; i < ARRAY_LEN(hostnames); i++) {
		s = spec_full();
		set(&s.hostname, hostnames[i]);
		refused(&s, "host name of the sandbox");
	}
	static const char *const workdirs[] = { NULL, "", "workspace", "/a/../b", "/a//b", "/a/.", "/a/" };
	for (size_t i = 0; i < ARRAY_LEN(workdirs); i++) {
		s = spec_full();
		set(&s.workdir, workdirs[i]);
		refused(&s, "working folder");
	}
	s = spec_full();
	set(&s.host_uname, "x");
	refused(&s, "reserved");
}

static void id_range(void **state)
{
	static const uid_t bad[] = { 0, 1000, 65535, UINT32_MAX, UINT32_MAX - 65535 };
	for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
		struct spec s = spec_full();
		s.host_id_base = bad[i];
		refused(&s, "host ids");
	}
	struct spec s = spec_full();
	s.host_id_base = UINT32_MAX - 65536;
	assert_int_equal(spec_validate(&s, NULL), 0);
	s.privileged = false;
	s.host_id_base = 0;
	assert_int_equal(spec_validate(&s, NULL), 0);
	spec_done(&s);
}

static void mount_targets(void **state)
{
	static const struct { const char *target, *says; } bad[] = {
		{ "/", "whole box" }, { "", "absolute" }, { "work", "absolute" }, { "/w/../etc", "absolute" }, { "//etc", "absolute" },
		{ "/proc", "belongs" }, { "/proc/1", "belongs" }, { "/dev/shm", "belongs" }, { "/sys/fs", "belongs" }, { "/etc/x", "belongs" },
		{ "/usr", "belongs" }, { "/bin/x", "belongs" }, { "/sbin", "belongs" }, { "/lib", "belongs" }, { "/lib32/x", "belongs" },
		{ "/lib64", "belongs" }, { "/libx32", "belongs" }, { "/boot", "belongs" },
		{ "/workspace", "two mounts" }, { "/workspace/file/x", "which is a file" },
	};
	for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
		struct spec s = spec_full();
		add_mount(&s, bad[i].target, MOUNT_RO, false);
		refused(&s, bad[i].says);
	}
	static const char *const good[] = { "/library", "/procs", "/home/user/x", "/opt", "/workspace2", "/workspace/dir" };
	for (size_t i = 0; i < ARRAY_LEN(good); i++) {
		struct spec s = spec_full();
		add_mount(&s, good[i], MOUNT_RO, false);
		assert_int_equal(spec_validate(&s, NULL), 0);
		spec_done(&s);
	}
}

static void mount_order_and_kind(void **state)
{
	struct spec s = spec_full();
	add_mount(&s, "/a/b", MOUNT_RO, false);
	add_mount(&s, "/a", MOUNT_RO, false);
	refused(&s, "outer one must come first");
	s = spec_full();
	add_mount(&s, "/f", MOUNT_COPY, true);
	refused(&s, "single file");
	s = spec_full();
	s.mounts[0].mode = (enum mount_mode)9;
	refused(&s, "no valid mode");
	s = spec_full();
	s.mounts[0].owner_uid = (uid_t)-1;
	refused(&s, "no owner");
	s = spec_full();
	for (unsigned i = 0; s.n_mounts <= SPEC_MOUNTS_MAX; i++) {
		char target[16];
		snprintf(target, sizeof(target), "/m%u", i);
		add_mount(&s, target, MOUNT_RO, false);
	}
	refused(&s, "more than 64 mounts");
	s = spec_full();
	char longest[4001] = "/";
	memset(longest + 1, 'x', sizeof(longest) - 2);
	for (unsigned i = 0; i < 40; i++) {
		longest[1] = (char)('a' + i % 26);
		longest[2] = (char)('a' + i / 26);
		add_mount(&s, longest, MOUNT_RO, false);
	}
	refused(&s, "choose shorter ones");
}

static void limits(void **state)
{
	struct spec s = spec_full();
	s.limits.memory = 0;
	refused(&s, "`memory` is 0");
	s = spec_full();
	s.limits.timeout_ns = UINT64_MAX - 1;
	refused(&s, "`timeout` must lie between");
	s = spec_full();
	memset(&s.limits, 0xff, sizeof(s.limits));
	assert_int_equal(spec_validate(&s, NULL), 0);
	spec_done(&s);
}

static void routes(void **state)
{
	static const char *const bad[] = { "0.0.0.0", "224.0.0.1", "255.255.255.255", "::", "ff02::1" };
	for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
		struct spec s = spec_full();
		add_route(&s, bad[i]);
		refused(&s, "no route of the sandbox");
	}
	struct spec s = spec_full();
	s.routes[0].family = 99;
	refused(&s, "neither IPv4 nor IPv6");
	s = spec_full();
	s.egress = false;
	refused(&s, "no egress");
	s = spec_full();
	s.n_routes = SPEC_ROUTES_MAX + 1;
	refused(&s, "more than 64 addresses");
}

static void files(void **state)
{
	static const char *const bad[] = { "", "/etc/ssl/certs/x", "etc/ssl/certs", "etc/ssl/certs/", "etc/passwd", "etc/ssl/certs/../../passwd", "etc/ssl/certs//x",
		"etc/ssl/certs/./x", "etc/pki/nssdb/x", "home", "home/", "home/../x", "usr/lib/x", "homes/x", NULL };
	for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
		struct spec s = spec_full();
		add_file(&s, bad[i]);
		refused(&s, "no file of ours belongs");
	}
	struct spec s = spec_full();
	add_file(&s, "home/.pki/nssdb/cert9.db");
	refused(&s, "one place");
	s = spec_full();
	for (unsigned i = 0; s.n_files <= SPEC_FILES_MAX; i++) {
		char path[24];
		snprintf(path, sizeof(path), "home/%u", i);
		add_file(&s, path);
	}
	refused(&s, "more than 16 files");
	s = spec_full();
	add_file(&s, "etc/pki/tls/certs/x");
	add_file(&s, "etc/pki/ca-trust/extracted/pem/x.pem");
	assert_int_equal(spec_validate(&s, NULL), 0);
	spec_done(&s);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(full_is_valid),
		cmocka_unit_test(names),
		cmocka_unit_test(id_range),
		cmocka_unit_test(mount_targets),
		cmocka_unit_test(mount_order_and_kind),
		cmocka_unit_test(limits),
		cmocka_unit_test(routes),
		cmocka_unit_test(files),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
