/* SPDX-License-Identifier: Apache-2.0 */
/* Rule sets of protocols: every shape of request that their clients send, and those that their servers know besides. */
#include "policy-request-help.h"

#define RULE(rest) TEST_HEAD "network:\n  - { host: h.org, " rest " }\n"
#define ASK(p, cases) ask_all(p, "h.org", cases, ARRAY_LEN(cases))

#define METHOD REASON_METHOD_NOT_ALLOWED
#define PATH REASON_PATH_NOT_ALLOWED
#define VAGUE REASON_PATH_AMBIGUOUS
#define PACKAGE REASON_PACKAGE_NOT_ALLOWED
#define REPOSITORY REASON_REPOSITORY_NOT_ALLOWED
#define PUSH REASON_PUSH_NOT_ALLOWED

static void npm(void **state)
{
	struct policy *p = policy_of(RULE("registry: { protocol: npm }"));
	static const struct expected cases[] = {
		{ "GET /left-pad", OK }, { "HEAD /left-pad", OK }, { "GET /@types%2fnode", OK }, { "GET /@types%2Fnode", OK }, { "GET /@types/node", OK }, { "GET /%40types%2fnode", OK },
		{ "GET /JSONStream", OK }, { "GET /lodash.merge", OK }, { "GET /left-pad/1.0.0", OK }, { "GET /left-pad/latest", OK }, { "GET /@types/node/20.1.0", OK },
		{ "GET /@types%2fnode/latest", OK }, { "GET /left-pad?write=true", OK }, { "GET /left-pad/-/left-pad-1.3.0.tgz", OK }, { "HEAD /left-pad/-/left-pad-1.3.0.tgz", OK },
		{ "GET /@types/node/-/node-20.1.0.tgz", OK }, { "GET /@types%2fnode/-/node-20.1.0.tgz", OK }, { "GET /@types/node/-/@types/node-20.1.0.tgz", OK },
		{ "GET /a/-/a-1.0.0-rc.1+build.tgz", OK }, { "GET /a/-/a-1.0.0%2Bb.tgz", OK },
		{ "GET /-/ping", OK }, { "GET /-/npm/v1/keys", OK }, { "GET /-/v1/search?text=x", OK }, { "GET /-/package/left-pad/dist-tags", OK }, { "GET /-/package/@types%2fnode/dist-tags", OK },
		{ "POST /-/npm/v1/security/advisories/bulk", OK }, { "POST /-/npm/v1/security/audits/quick", OK },
		/* publishing, deprecating, logging in, tokens, teams, tags */
		{ "PUT /left-pad", METHOD }, { "PUT /@types%2fnode", METHOD }, { "PUT /left-pad/-rev/1-abc", METHOD }, { "DELETE /left-pad/-rev/1-abc", METHOD }, { "DELETE /left-pad/-/left-pad-1.3.0.tgz/-rev/1", METHOD },
		{ "POST /left-pad", METHOD }, { "PATCH /left-pad", METHOD }, { "PUT /-/user/org.couchdb.user:x", METHOD }, { "POST /-/v1/login", METHOD }, { "GET /-/whoami", PATH },
		{ "POST /-/npm/v1/tokens", METHOD }, { "GET /-/npm/v1/tokens", PATH }, { "GET /-/npm/v1/user", PATH }, { "PUT /-/package/left-pad/dist-tags/latest", METHOD },
		{ "GET /-/package/left-pad/dist-tags/latest", PATH }, { "GET /-/package/left-pad/access", PATH }, { "GET /-/team/a/b/user", PATH }, { "GET /-/org/a/user", PATH }, { "GET /-/all", PATH },
		{ "GET /-/npm/v1/security/advisories/bulk", METHOD }, { "PUT /-/npm/v1/security/advisories/bulk", METHOD }, { "POST /-/npm/v1/security/audits", METHOD }, { "POST /-/npm/v1/security/advisories/bulk/x", METHOD },
		{ "POST /-/v1/search", METHOD }, { "POST /-/ping", METHOD },
		/* CouchDB, and what is no package */
		{ "GET /", PATH }, { "GET /_all_docs", PATH }, { "GET /_changes", PATH }, { "GET /_session", PATH }, { "GET /-", PATH }, { "GET /-/", PATH }, { "GET /.npmrc", PATH }, { "GET /~user", PATH },
		{ "GET /@types", PATH }, { "GET /@types/", PATH }, { "GET /@/node", PATH }, { "GET /@types/_x", PATH }, { "GET /left-pad/", PATH }, { "GET /left-pad/1.0.0/x", PATH }, { "GET /left-pad/-/", PATH },
		{ "GET /left-pad/-/other-1.3.0.tgz", PATH }, { "GET /left-pad/-/left-pad.tgz", PATH }, { "GET /left-pad/-/left-pad-1.3.0.zip", PATH }, { "GET /left-pad/-/left-pad-1.0.tgz/x", PATH },
		{ "GET /left-pad/-rev/1", PATH }, { "GET /left%20pad", PATH }, { "GET /l%C3%A9ft", PATH }, { "GET /left-pad%2f1.0.0", VAGUE }, { "GET /@types%2fnode%2f20.1.0", VAGUE }, { "GET /x@types%2fnode", VAGUE },
		{ "GET /%40types%2fnode/-/@types%2fnode-20.1.0.tgz", OK }, { "OPTIONS *", PATH },
		{ "GET /left-pad/%2e%2e/other", VAGUE }, { "GET /@types%2f..%2fx", VAGUE }, { "GET /@types%252fnode", VAGUE }, { "GET //left-pad", VAGUE }, { "GET /left-pad;x", VAGUE },
	};
	ASK(p, cases);
	policy_free(p);
}

static void npm_named(void **state)
{
	struct policy *p = policy_of(RULE("registry: { protocol: npm, base: /repo/npm, packages: [left-pad, \"@acme/*\", \"eslint*\"] }"));
	static const struct expected cases[] = {
		{ "GET /repo/npm/left-pad", OK }, { "GET /repo/npm/@acme%2fx", OK }, { "GET /repo/npm/@acme/x/-/x-1.0.0.tgz", OK }, { "GET /repo/npm/eslint-plugin-x/1.0.0", OK },
		{ "GET /repo/npm/-/package/left-pad/dist-tags", OK }, { "GET /repo/npm/-/ping", OK },
		{ "GET /repo/npm/left-pad2", PACKAGE }, { "GET /repo/npm/Left-pad", PACKAGE }, { "GET /repo/npm/@acmeevil/x", PACKAGE }, { "GET /repo/npm/@evil/acme", PACKAGE },
		{ "GET /repo/npm/lodash/-/lodash-4.0.0.tgz", PACKAGE }, { "GET /repo/npm/-/v1/search?text=x", PACKAGE }, { "POST /repo/npm/-/npm/v1/security/advisories/bulk", PACKAGE },
		{ "POST /repo/npm/-/npm/v1/security/audits/quick", PACKAGE }, { "GET /repo/npm/-/package/lodash/dist-tags", PACKAGE },
		{ "GET /left-pad", PATH }, { "GET /repo/npmx/left-pad", PATH }, { "GET /repo/npm", PATH }, { "GET /repo/left-pad", PATH }, { "GET /repo%2fnpm/left-pad", VAGUE } };
	ASK(p, cases);
	policy_free(p);
}

static void pypi(void **state)
{
	struct policy *p = policy_of(RULE("registry: { protocol: pypi }"));
	static const struct expected cases[] = { { "GET /simple/", OK }, { "GET /simple", OK }, { "GET /simple/requests/", OK }, { "GET /simple/requests", OK }, { "HEAD /simple/requests/", OK },
		{ "GET /simple/zope.interface/", OK }, { "GET /packages/aa/bb/cc/requests-2.0-py3-none-any.whl", OK }, { "GET /packages/aa/x.whl.metadata", OK }, { "GET /pypi/requests/json", OK },
		{ "GET /pypi/requests/2.0/json", OK }, { "POST /legacy/", METHOD }, { "POST /simple/requests/", METHOD }, { "POST /pypi", METHOD }, { "PUT /packages/x.whl", METHOD }, { "GET /", PATH },
		{ "GET /legacy/", PATH }, { "GET /manage/", PATH }, { "GET /simple/a/b", PATH }, { "GET /simple/a/b/", PATH }, { "GET /simple/a%20b/", PATH }, { "GET /simple/-a/", PATH },
		{ "GET /packages/", PATH }, { "GET /packages/aa/", PATH }, { "GET /pypi/requests", PATH }, { "GET /pypi/requests/1/2/json", PATH }, { "GET /pypi//json", VAGUE }, { "GET /pypi/json", PATH },
		{ "GET /simple/../legacy/", VAGUE }, { "GET /simple/a%2fb/", VAGUE } };
	ASK(p, cases);
	policy_free(p);
	p = policy_of(RULE("registry: { protocol: pypi, packages: [Zope.Interface, \"acme_*\", foo] }"));
	static const struct expected named[] = { { "GET /simple/zope-interface/", OK }, { "GET /simple/zope.interface/", OK }, { "GET /simple/Zope__Interface/", OK }, { "GET /simple/acme-tool/", OK },
		{ "GET /simple/acme.tool", OK }, { "GET /simple/foo/", OK }, { "GET /pypi/foo/json", OK }, { "GET /pypi/foo/1.0/json", OK },
		{ "GET /packages/a/foo-1.0-py3-none-any.whl", OK }, { "GET /packages/a/foo-1.0-py3-none-any.whl.metadata", OK }, { "GET /packages/a/foo-1.0.tar.gz", OK }, { "GET /packages/a/foo-1.0.zip", OK },
		{ "GET /packages/a/zope.interface-5.0.tar.gz", OK }, { "GET /packages/a/zope_interface-5.0-cp311-cp311-manylinux_2_17_x86_64.whl", OK }, { "GET /packages/a/acme_tool-1.0.tar.gz", OK },
		{ "GET /packages/a/acme-tool-1.0.tar.gz", OK },
		{ "GET /simple/", PACKAGE }, { "GET /simple/foobar/", PACKAGE }, { "GET /simple/foo-bar/", PACKAGE }, { "GET /simple/zope/", PACKAGE }, { "GET /pypi/bar/json", PACKAGE }, { "GET /pypi/bar/1.0/json", PACKAGE },
		{ "GET /packages/a/foo-bar-1.0.tar.gz", PACKAGE }, { "GET /packages/a/foo_bar-1.0-py3-none-any.whl", PACKAGE }, { "GET /packages/a/foo-2-1.0.tar.gz", PACKAGE }, { "GET /packages/a/foo.exe", PACKAGE },
		{ "GET /packages/a/foo-1.0.exe", PACKAGE }, { "GET /packages/a/foo", PACKAGE }, { "GET /packages/foo-1.0/evil", PACKAGE }, { "GET /packages/foo-1.0.whl/bar-1.0-py3-none-any.whl", PACKAGE },
		{ "GET /packages/a/foo%20-1.0.tar.gz", PACKAGE }, { "GET /packages/a/-1.0.tar.gz", PACKAGE } };
	ASK(p, named);
	policy_free(p);
}

static void apt(void **state)
{
	struct policy *p = policy_of(RULE("registry: { protocol: apt, base: /debian }"));
	static const struct expected cases[] = { { "GET /debian/dists/bookworm/InRelease", OK }, { "GET /debian/dists/bookworm/main/binary-amd64/by-hash/SHA256/abc", OK },
		{ "GET /debian/pool/main/h/hello/hello_2.10-3_amd64.deb", OK }, { "HEAD /debian/pool/main/g/g%2b%2b/g%2b%2b_4%3a12_amd64.deb", OK }, { "GET /debian/pool/main/libs/libstdc++6_12_amd64.deb", OK },
		{ "POST /debian/dists/bookworm/InRelease", METHOD }, { "PUT /debian/pool/x_1.deb", METHOD }, { "GET /debian/", PATH }, { "GET /debian", PATH }, { "GET /", PATH }, { "GET /debian/dists", PATH },
		{ "GET /debian/dists/", PATH }, { "GET /debian/pool/", PATH }, { "GET /debian/pool/main/", PATH }, { "GET /debian/project/trace/x", PATH }, { "GET /other/dists/x/InRelease", PATH },
		{ "GET /debianx/dists/x/InRelease", PATH }, { "GET /debian/dists/../../etc/passwd", VAGUE }, { "GET /debian/pool%2fx_1.deb", VAGUE } };
	ASK(p, cases);
	policy_free(p);
	p = policy_of(RULE("registry: { protocol: apt, packages: [hello, \"libc6*\", \"g++-12\"] }"));
	static const struct expected named[] = { { "GET /dists/bookworm/InRelease", OK }, { "GET /pool/main/h/hello/hello_2.10-3_amd64.deb", OK }, { "GET /pool/main/g/glibc/libc6-dev_2.36-9_amd64.deb", OK },
		{ "GET /pool/main/g/gcc-12/g++-12_12.2.0_amd64.deb", OK }, { "GET /pool/main/g/gcc-12/g%2b%2b-12_12.2.0_amd64.deb", OK },
		{ "GET /pool/main/h/hello/hello-traditional_2.10_amd64.deb", PACKAGE }, { "GET /pool/main/h/hello/hello", PACKAGE }, { "GET /pool/main/h/hello_1/evil_1.deb", PACKAGE }, { "GET /pool/c/curl_1.deb", PACKAGE },
		{ "GET /pool/_1.deb", PACKAGE } };
	ASK(p, named);
	policy_free(p);
}

static void git(void **state)
{
	struct policy *p = policy_of(RULE("git: { repositories: [acme/tools, \"open/*\"] }"));
	static const struct expected cases[] = {
		{ "GET /acme/tools.git/info/refs?service=git-upload-pack", OK }, { "GET /acme/tools/info/refs?service=git-upload-pack", OK }, { "POST /acme/tools.git/git-upload-pack", OK },
		{ "POST /acme/tools/git-upload-pack", OK }, { "GET /open/a/b.git/info/refs?service=git-upload-pack", OK }, { "POST /open/x/git-upload-pack", OK }, { "POST /%61cme/tools/git-upload-pack", OK },
		/* pushing, in every way */
		{ "GET /acme/tools.git/info/refs?service=git-receive-pack", PUSH }, { "POST /acme/tools.git/git-receive-pack", PUSH }, { "POST /acme/tools/git-receive-pack", PUSH },
		{ "POST /acme/tools.git/info/lfs/objects/batch", PUSH },
		/* more than one reading of the service */
		{ "GET /acme/tools/info/refs?service=git-upload-pack&service=git-receive-pack", PATH }, { "GET /acme/tools/info/refs?service=git-receive-pack&service=git-upload-pack", PATH },
		{ "GET /acme/tools/info/refs?service=git-upload-pack&x", PATH }, { "GET /acme/tools/info/refs?service=git-upload-pack;service=git-receive-pack", PATH },
		{ "GET /acme/tools/info/refs?service=git%2Dreceive-pack", PATH }, { "GET /acme/tools/info/refs?SERVICE=git-receive-pack", PATH }, { "GET /acme/tools/info/refs?service=git-upload-archive", PATH },
		/* the dumb protocol */
		{ "GET /acme/tools/info/refs", PATH }, { "GET /acme/tools/info/refs?", PATH }, { "GET /acme/tools.git/HEAD", PATH }, { "GET /acme/tools.git/objects/info/packs", PATH },
		{ "GET /acme/tools.git/objects/ab/cdef", PATH }, { "GET /acme/tools.git/objects/pack/pack-1.pack", PATH }, { "GET /acme/tools/.git/config", PATH },
		/* methods */
		{ "POST /acme/tools/info/refs?service=git-upload-pack", METHOD }, { "HEAD /acme/tools/info/refs?service=git-upload-pack", METHOD }, { "GET /acme/tools/git-upload-pack", METHOD },
		{ "PUT /acme/tools/git-receive-pack", METHOD }, { "GET /acme/tools.git/info/lfs/objects/batch", METHOD },
		/* the rest of the host */
		{ "GET /acme/tools", REPOSITORY }, { "GET /acme/tools/archive/main.zip", PATH }, { "GET /acme/tools/raw/main/x", PATH }, { "GET /", REPOSITORY }, { "GET /login", REPOSITORY }, { "POST /session", REPOSITORY },
		{ "GET /acme/tools2/info/refs?service=git-upload-pack", REPOSITORY }, { "GET /Acme/tools/info/refs?service=git-upload-pack", REPOSITORY }, { "GET /evil/tools/info/refs?service=git-upload-pack", REPOSITORY },
		{ "GET /acme/tools/x/info/refs?service=git-upload-pack", REPOSITORY }, { "GET /x/acme/tools/info/refs?service=git-upload-pack", REPOSITORY }, { "GET /info/refs?service=git-upload-pack", REPOSITORY },
		{ "POST /git-upload-pack", REPOSITORY }, { "GET /openx/a/info/refs?service=git-upload-pack", REPOSITORY }, { "GET /open/info/refs?service=git-upload-pack", REPOSITORY },
		{ "GET /acme/tools/.git/info/refs?service=git-upload-pack", REPOSITORY }, { "GET /acme/tools.git.git/info/refs?service=git-upload-pack", REPOSITORY },
		{ "POST /acme/tools%20/git-upload-pack", REPOSITORY }, { "POST /open/x%3F/git-upload-pack", REPOSITORY },
		{ "GET /acme/../evil/x/info/refs?service=git-upload-pack", VAGUE }, { "GET /acme%2ftools/info/refs?service=git-upload-pack", VAGUE }, { "GET /acme/tools//info/refs?service=git-upload-pack", VAGUE },
	};
	ASK(p, cases);
	policy_free(p);
	p = policy_of(RULE("git: { repositories: [acme/tools], push: true }"));
	static const struct expected push[] = { { "GET /acme/tools/info/refs?service=git-receive-pack", OK }, { "POST /acme/tools.git/git-receive-pack", OK }, { "POST /acme/tools.git/git-upload-pack", OK },
		{ "POST /acme/tools.git/info/lfs/objects/batch", OK }, { "POST /acme/other/git-receive-pack", REPOSITORY }, { "GET /acme/tools/git-receive-pack", METHOD },
		{ "GET /acme/tools/info/refs?service=git-receive-pack&x=1", PATH }, { "DELETE /acme/tools", REPOSITORY } };
	ASK(p, push);
	policy_free(p);
}

/* Paths and methods of the same rule hold besides. */
static void further_conditions(void **state)
{
	struct policy *p = policy_of(RULE("registry: { protocol: npm }, methods: [GET], paths: [\"/left-pad/**\"], headers: { npm-command: install }"));
	static const char *const fields[] = { "npm-command", "install", NULL };
	assert_int_equal(ask_with(p, "h.org", "GET /left-pad", fields), OK);
	assert_int_equal(ask_with(p, "h.org", "HEAD /left-pad", fields), METHOD);
	assert_int_equal(ask_with(p, "h.org", "GET /lodash", fields), PATH);
	assert_int_equal(ask(p, "h.org", "GET /left-pad"), REASON_HEADER_NOT_ALLOWED);
	policy_free(p);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(npm),
		cmocka_unit_test(npm_named),
		cmocka_unit_test(pypi),
		cmocka_unit_test(apt),
		cmocka_unit_test(git),
		cmocka_unit_test(further_conditions),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
