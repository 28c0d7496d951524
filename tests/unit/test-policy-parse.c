/* SPDX-License-Identifier: Apache-2.0 */
/* The policy file: what is accepted and what it means, and for each mistake its place and its sentence. */
#include "base/text.h"
#include "policy-help.h"
#include "policy/request.h"

#define H TEST_HEAD /* three lines; the next is line 4 */
#define NET H "network:\n  - "

static void everything_together(void **state)
{
	struct policy *p = policy_of("\xef\xbb\xbf# comment\nversion: 1\nname: support-agent\nowner: it@example.com\nreview_by: 2027-02-28\n"
		"isolation: { minimum: microvm, allow_emulation: false }\ntemplate: host\n"
		"lifetime: { timeout: 15m, idle: 5m, on_timeout: kill }\n"
		"limits: { cpus: 1.5, memory: 512MiB, processes: 128, disk: 1GiB, output: 64MiB,\n"
		"          egress_requests: 1000, egress_bytes: 100MiB, connections: 64, open_files: unlimited }\n"
		"files:\n  - { source: ., target: /workspace, mode: copy }\n  - { source: /data, target: /data, mode: ro }\n"
		"network:\n  - { host: api.github.com }\n  - { host: \"*.cdn.example.net\", ports: [443, 80] }\n"
		"  - { host: db.internal, ports: [5432], private: true }\n  - { host: \"2606:4700::1111\" }\n"
		"record: { output: false, bodies: false }\n");
	assert_string_equal(p->name, "support-agent");
	assert_string_equal(p->owner, "it@example.com");
	assert_string_equal(p->review_by, "2027-02-28");
	assert_string_equal(p->template_name, "host");
	assert_int_equal(p->minimum, ISOLATION_MICROVM);
	assert_false(p->builtin);
	assert_false(p->record_output);
	assert_int_equal(p->limits.cpus_milli, 1500);
	assert_int_equal(p->limits.memory, 512ULL << 20);
	assert_int_equal(p->limits.processes, 128);
	assert_int_equal(p->limits.disk, 1ULL << 30);
	assert_int_equal(p->limits.output, 64ULL << 20);
	assert_int_equal(p->limits.egress_requests, 1000);
	assert_int_equal(p->limits.egress_bytes, 100ULL << 20);
	assert_int_equal(p->limits.connections, 64);
	assert_int_equal(p->limits.open_files, POLICY_UNLIMITED);
	assert_int_equal(p->limits.timeout_ns, 15 * 60 * NS_PER_S);
	assert_int_equal(p->limits.idle_ns, 5 * 60 * NS_PER_S);
	assert_int_equal(p->n_mounts, 2);
	assert_int_equal(p->mounts[1].mode, MOUNT_RO);
	assert_int_equal(p->n_rules, 4);
	assert_int_equal(p->rules[0].ports[0], 443);
	assert_int_equal(p->rules[0].n_ports, 1);
	assert_int_equal(p->rules[0].line, 15);
	assert_true(p->rules[1].wildcard);
	assert_string_equal(p->rules[1].name.text, "cdn.example.net");
	assert_string_equal(p->rules[1].text, "*.cdn.example.net");
	assert_true(p->rules[2].private_ok);
	assert_true(p->rules[3].is_address);
	policy_free(p);
}

static void what_is_left_out_is_the_builtin(void **state)
{
	struct policy *p = policy_of(H), *b = policy_builtin();
	assert_memory_equal(&p->limits, &b->limits, sizeof(p->limits));
	assert_int_equal(p->n_rules, 0);
	assert_int_equal(p->n_mounts, 0);
	assert_true(p->record_output);
	assert_int_equal(b->limits.cpus_milli, 2000);
	assert_int_equal(b->limits.idle_ns, POLICY_UNLIMITED);
	assert_int_equal(b->limits.timeout_ns, 15 * 60 * NS_PER_S);
	policy_free(p);
	policy_free(b);
}

struct mistake {
	const char *yaml;
	enum err_code code;
	const char *place; /* "LINE:COLUMN: " */
	const char *says;
};

static const struct mistake mistakes[] = {
	/* the form of the file */
	{ "", ERR_INVALID, "1:1: ", "is empty" },
	{ "# nothing\n", ERR_INVALID, "1:1: ", "is empty" },
	{ "[]\n", ERR_INVALID, "1:1: ", "must be a map" },
	{ "just text\n", ERR_INVALID, "1:1: ", "must be a map" },
	{ H "limits:\n\t- x\n", ERR_INVALID, "5:1: ", "a tab can't indent" },
	{ H "limits: {\n", ERR_INVALID, "5:1: ", "not valid YAML" },
	{ H "network:\n  - { host: *.example.com }\n", ERR_INVALID, "5:14: ", "needs quotes" },
	{ H "network:\n  - host: *.example.com\n", ERR_INVALID, "5:12: ", "needs quotes" },
	{ H "name: again\n", ERR_INVALID, "4:1: ", "`name` is already given in line 2" },
	{ H "limits: { memory: 1GiB, memory: 2GiB }\n", ERR_INVALID, "4:25: ", "already given in line 4" },
	{ H "--- \nversion: 1\n", ERR_INVALID, "4:1: ", "a second document" },
	{ "%YAML 1.1\n---\n" H, ERR_INVALID, "1:1: ", "directive" },
	{ "version: &v 1\nname: x\n", ERR_INVALID, "1:10: ", "an anchor" },
	{ H "limits: &l { memory: 1GiB }\n", ERR_INVALID, "4:9: ", "an anchor" },
	{ H "files: &l []\n", ERR_INVALID, "4:8: ", "an anchor" },
	{ H "owner2: *v\n", ERR_INVALID, "4:9: ", "an alias" },
	{ "version: !!int 1\nname: x\n", ERR_INVALID, "1:10: ", "a tag" },
	{ H "limits: !x { memory: 1GiB }\n", ERR_INVALID, "4:9: ", "a tag" },
	{ H "record: ! {}\n", ERR_INVALID, "4:9: ", "a tag" },
	{ H "<<: {}\n", ERR_INVALID, "4:1: ", "unknown key" },
	{ H "? [a]\n: b\n", ERR_INVALID, "4:3: ", "a key must be a word" },
	{ H "x: [[[[[[[[[[[]]]]]]]]]]]\n", ERR_LIMIT, "4:13: ", "nested" },
	{ H "owner2: \"a\\0b\"\n", ERR_INVALID, "4:9: ", "NUL" },
	{ H "x: \"\xff\"\n", ERR_INVALID, "4:5: ", "UTF-8" },
	/* keys */
	{ H "limts: {}\n", ERR_INVALID, "4:1: ", "unknown key `limts` in policy; did you mean `limits`?" },
	{ H "netwrok: []\n", ERR_INVALID, "4:1: ", "did you mean `network`?" },
	{ H "limits: { memry: 1GiB }\n", ERR_INVALID, "4:11: ", "unknown key `memry` in limits; did you mean `memory`?" },
	{ H "limits: { timeout: 1m }\n", ERR_INVALID, "4:11: ", "unknown key `timeout` in limits" },
	{ H "zzzzzz: 1\n", ERR_INVALID, "4:1: ", "unknown key `zzzzzz` in policy; remove it" },
	{ NET "{ host: a.org, port: [443] }\n", ERR_INVALID, "5:20: ", "did you mean `ports`?" },
	{ H "\"\\e[2J\": 1\n", ERR_INVALID, "4:1: ", "unknown key `\\x1b[2J`" },
	/* identity */
	{ "name: t\nowner: o\n", ERR_INVALID, "1:1: ", "`version` is missing" },
	{ "version: 1\nowner: o\n", ERR_INVALID, "1:1: ", "`name` is missing" },
	{ "version: 1\nname: t\n", ERR_INVALID, "1:1: ", "`owner` is missing" },
	{ "future: 1\nversion: 2\n", ERR_UNSUPPORTED, "2:10: ", "version 1, and this one says 2" },
	{ "version: \"1\"\n", ERR_INVALID, "1:10: ", "without quotes" },
	{ "version: one\n", ERR_INVALID, "1:10: ", "whole number" },
	{ "version: 1\nname: \"a b\"\nowner: o\n", ERR_INVALID, "2:7: ", "`name` may have" },
	{ "version: 1\nname: ~\nowner: o\n", ERR_INVALID, "2:7: ", "`name` has no value" },
	{ "version: 1\nname:\nowner: o\n", ERR_INVALID, "2:6: ", "`name` has no value" },
	{ "version: 1\nname: [t]\nowner: o\n", ERR_INVALID, "2:7: ", "must be a single value, and is a list" },
	{ "version: 1\nname: t\nowner: \"a\\nb\"\n", ERR_INVALID, "3:8: ", "control characters" },
	{ H "review_by: 2027-02-29\n", ERR_INVALID, "4:12: ", "must be a day" },
	{ H "review_by: tomorrow\n", ERR_INVALID, "4:12: ", "must be a day" },
	{ H "strict: yes\n", ERR_INVALID, "4:9: ", "must be true or false" },
	{ H "strict: \"true\"\n", ERR_INVALID, "4:9: ", "without quotes" },
	{ H "strict: true\nreview_by: 2026-11-29\n", ERR_DENIED, "5:12: ", "reviewed by 2026-11-29" },
	{ H "template: node20\n", ERR_UNSUPPORTED, "4:11: ", "only `host`" },
	{ H "region: eu-central-1\n", ERR_UNSUPPORTED, "4:9: ", "no region label" },
	{ H "isolation: { minimum: vm }\n", ERR_INVALID, "4:23: ", "container, gvisor or microvm" },
	{ H "isolation: container\n", ERR_INVALID, "4:12: ", "must be a map" },
	/* lifetime and limits */
	{ H "lifetime: { timeout: 31m }\n", ERR_INVALID, "4:22: ", "needs a reason" },
	{ H "lifetime: { timeout: unlimited }\n", ERR_INVALID, "4:22: ", "needs a reason" },
	{ H "lifetime: { timeout: 900 }\n", ERR_INVALID, "4:22: ", "a duration such as" },
	{ H "lifetime: { timeout: 0s }\n", ERR_INVALID, "4:22: ", "above 0" },
	{ H "lifetime: { on_timeout: pause }\n", ERR_UNSUPPORTED, "4:25: ", "on_timeout: kill" },
	{ H "lifetime: { timeout: 2h, budget: \"\" }\n", ERR_INVALID, "4:34: ", "`budget`" },
	{ H "limits: { memory: 0 }\n", ERR_INVALID, "4:19: ", "would allow nothing" },
	{ H "limits: { memory: 1KiB }\n", ERR_INVALID, "4:19: ", "must lie between" },
	{ H "limits: { memory: lots }\n", ERR_INVALID, "4:19: ", "a size such as 512MiB" },
	{ H "limits: { memory: -1 }\n", ERR_INVALID, "4:19: ", "a size such as" },
	{ H "limits: { memory: Unlimited }\n", ERR_INVALID, "4:19: ", "a size such as" },
	{ H "limits: { cpus: 0.0001 }\n", ERR_INVALID, "4:17: ", "at most three decimals" },
	{ H "limits: { cpus: 1e3 }\n", ERR_INVALID, "4:17: ", "at most three decimals" },
	{ H "limits: { cpus: 0 }\n", ERR_INVALID, "4:17: ", "would allow nothing" },
	{ H "limits: { processes: 1.5 }\n", ERR_INVALID, "4:22: ", "a whole number" },
	{ H "limits: { processes: 18446744073709551615 }\n", ERR_INVALID, "4:22: ", "whole number" },
	{ H "limits: { connections: 18446744073709551614 }\n", ERR_INVALID, "4:24: ", "must lie between" },
	/* files */
	{ H "files: { source: . }\n", ERR_INVALID, "4:8: ", "must be a list" },
	{ H "files:\n  - { source: . }\n", ERR_INVALID, "5:5: ", "needs `source` and `target`" },
	{ H "files:\n  - { source: ., target: work }\n", ERR_INVALID, "5:5: ", "absolute path" },
	{ H "files:\n  - { source: ., target: /a/../b }\n", ERR_INVALID, "5:5: ", "absolute path" },
	{ H "files:\n  - { source: ., target: /a/ }\n", ERR_INVALID, "5:5: ", "absolute path" },
	{ H "files:\n  - { source: ., target: / }\n", ERR_INVALID, "5:5: ", "the whole box" },
	{ H "files:\n  - { source: ., target: /proc/self }\n", ERR_INVALID, "5:5: ", "belongs to the box" },
	{ H "files:\n  - { source: ., target: /etc }\n", ERR_INVALID, "5:5: ", "belongs to the box" },
	{ H "files:\n  - { source: ., target: /w, mode: readonly }\n", ERR_INVALID, "5:36: ", "copy, ro or rw" },
	{ H "files:\n  - { source: ., target: /w }\n  - { source: /a, target: /w }\n", ERR_INVALID, "6:5: ", "two mounts" },
	{ H "files:\n  - { source: ., target: /w, tools: x }\n", ERR_INVALID, "5:30: ", "unknown key `tools` in files" },
	/* hosts */
	{ NET "{ host: \"*\" }\n", ERR_INVALID, "5:13: ", "would allow every host" },
	{ NET "{ host: \"*foo.com\" }\n", ERR_INVALID, "5:13: ", "must stand alone" },
	{ NET "{ host: \"a.*.com\" }\n", ERR_INVALID, "5:13: ", "must stand alone" },
	{ NET "{ host: \"*.*.com\" }\n", ERR_INVALID, "5:13: ", "must stand alone" },
	{ NET "{ host: \"*.\" }\n", ERR_INVALID, "5:13: ", "must stand alone" },
	{ NET "{ host: \"*.com\" }\n", ERR_INVALID, "5:13: ", "whole top-level domain" },
	{ NET "{ host: \"https://api.example.com/v1\" }\n", ERR_INVALID, "5:13: ", "write only the host: api.example.com" },
	{ NET "{ host: \"https://u@evil.org/x@y\" }\n", ERR_INVALID, "5:13: ", "write only the host: evil.org" },
	{ NET "{ host: example.com/path }\n", ERR_INVALID, "5:13: ", "write only the host: example.com" },
	{ NET "{ host: \"example.com:443\" }\n", ERR_INVALID, "5:13: ", "the port in `ports`" },
	{ NET "{ host: localhost }\n", ERR_INVALID, "5:13: ", "means the box itself" },
	{ NET "{ host: \"*.localhost\" }\n", ERR_INVALID, "5:13: ", "means the box itself" },
	{ NET "{ host: b\xc3\xbc" "cher.example }\n", ERR_INVALID, "5:13: ", "xn--" },
	{ NET "{ host: under_score.example.com }\n", ERR_INVALID, "5:13: ", "not a host name" },
	{ NET "{ host: 0x7f000001 }\n", ERR_INVALID, "5:13: ", "not a host name" },
	{ NET "{ host: 2130706433 }\n", ERR_INVALID, "5:13: ", "not a host name" },
	{ NET "{ host: 127.1 }\n", ERR_INVALID, "5:13: ", "not a host name" },
	{ NET "{ host: 010.0.0.1 }\n", ERR_INVALID, "5:13: ", "not a host name" },
	{ NET "{ host: \"[2606:4700::1]\" }\n", ERR_INVALID, "5:13: ", "without brackets" },
	{ NET "{ host: \"::ffff:8.8.8.8\" }\n", ERR_INVALID, "5:13: ", "8.8.8.8" },
	{ NET "{ host: \"fe80::1%eth0\" }\n", ERR_INVALID, "5:13: ", "not a valid address" },
	{ NET "{ host: 10.0.0.1 }\n", ERR_INVALID, "5:13: ", "private: true" },
	{ NET "{ host: 169.254.169.254 }\n", ERR_INVALID, "5:13: ", "address_metadata" },
	{ NET "{ host: 224.0.0.1, private: true }\n", ERR_INVALID, "5:13: ", "no rule can open" },
	{ NET "{ host: 0.0.0.0, private: true }\n", ERR_INVALID, "5:13: ", "no rule can open" },
	{ NET "{ host: \"2002:808:808::1\", private: true }\n", ERR_INVALID, "5:13: ", "no rule can open" },
	{ NET "{ ports: [443] }\n", ERR_INVALID, "5:5: ", "needs `host`" },
	{ NET "api.example.com\n", ERR_INVALID, "5:5: ", "must be a map, as in" },
	/* ports */
	{ NET "{ host: a.org, ports: 443 }\n", ERR_INVALID, "5:27: ", "must be a list, as in [443]" },
	{ NET "{ host: a.org, ports: [] }\n", ERR_INVALID, "5:27: ", "1 to 64 ports" },
	{ NET "{ host: a.org, ports: [0] }\n", ERR_INVALID, "5:28: ", "from 1 to 65535" },
	{ NET "{ host: a.org, ports: [65536] }\n", ERR_INVALID, "5:28: ", "from 1 to 65535" },
	{ NET "{ host: a.org, ports: [0443] }\n", ERR_INVALID, "5:28: ", "from 1 to 65535" },
	{ NET "{ host: a.org, ports: [\"443\"] }\n", ERR_INVALID, "5:28: ", "without quotes" },
	{ NET "{ host: a.org, ports: [8000-8100] }\n", ERR_INVALID, "5:28: ", "from 1 to 65535" },
	{ NET "{ host: a.org, ports: [22:22] }\n", ERR_INVALID, "5:28: ", "from 1 to 65535" },
	{ NET "{ host: a.org, ports: [443, 443] }\n", ERR_INVALID, "5:33: ", "listed twice" },
	/* requests */
	{ NET "{ host: a.org, methods: GET }\n", ERR_INVALID, "5:29: ", "must be a list, as in [GET, POST]" },
	{ NET "{ host: a.org, methods: [] }\n", ERR_INVALID, "5:29: ", "1 to 32 values" },
	{ NET "{ host: a.org, methods: [get] }\n", ERR_INVALID, "5:30: ", "write it in capitals" },
	{ NET "{ host: a.org, methods: [GET, GET] }\n", ERR_INVALID, "5:35: ", "listed twice" },
	{ NET "{ host: a.org, methods: [CONNECT] }\n", ERR_INVALID, "5:30: ", "opens tunnels" },
	{ NET "{ host: a.org, methods: [\"G T\"] }\n", ERR_INVALID, "5:30: ", "not a method" },
	{ NET "{ host: a.org, method: [GET] }\n", ERR_INVALID, "5:20: ", "did you mean `methods`?" },
	{ NET "{ host: a.org, paths: [] }\n", ERR_INVALID, "5:27: ", "1 to 256 values" },
	{ NET "{ host: a.org, paths: [x] }\n", ERR_INVALID, "5:28: ", "must begin with a slash" },
	{ NET "{ host: a.org, paths: [/a, /b/../c] }\n", ERR_INVALID, "5:32: ", "no request could ever match" },
	{ NET "{ host: a.org, paths: [\"/a**\"] }\n", ERR_INVALID, "5:28: ", "a segment of its own" },
	{ NET "{ host: a.org, paths: [\"/a?b\"] }\n", ERR_INVALID, "5:28: ", "with `query`" },
	{ NET "{ host: a.org, paths: [[/a]] }\n", ERR_INVALID, "5:28: ", "a single value" },
	{ NET "{ host: a.org, query: [a] }\n", ERR_INVALID, "5:27: ", "must be a map" },
	{ NET "{ host: a.org, query: {} }\n", ERR_INVALID, "5:27: ", "says nothing" },
	{ NET "{ host: a.org, query: { \"a[]\": x } }\n", ERR_INVALID, "5:29: ", "not a key of a query" },
	{ NET "{ host: a.org, query: { a: x, A: y } }\n", ERR_INVALID, "5:35: ", "listed twice" },
	{ NET "{ host: a.org, query: { a: } }\n", ERR_INVALID, "5:32: ", "has no value" },
	{ NET "{ host: a.org, headers: { Host: b.org } }\n", ERR_INVALID, "5:31: ", "written by Bulkhead itself" },
	{ NET "{ host: a.org, headers: { \"a b\": x } }\n", ERR_INVALID, "5:31: ", "not the name of a header" },
	{ NET "{ host: a.org, headers: { X-A: x, x-a: y } }\n", ERR_INVALID, "5:39: ", "listed twice" },
	{ NET "{ host: a.org, inspect: yes }\n", ERR_INVALID, "5:29: ", "true or false" },
	{ NET "{ host: a.org, inspect: false, methods: [GET] }\n", ERR_INVALID, "5:29: ", "contradicts" },
	/* secrets */
	{ NET "{ host: a.org, secret: github }\n", ERR_INVALID, "5:28: ", "must be a map" },
	{ NET "{ host: a.org, secret: { header: X-Key } }\n", ERR_INVALID, "5:28: ", "needs `name`" },
	{ NET "{ host: a.org, secret: { name: g } }\n", ERR_INVALID, "5:28: ", "needs its place" },
	{ NET "{ host: a.org, secret: { name: 1g, header: X-Key } }\n", ERR_INVALID, "5:36: ", "not the name of a secret" },
	{ NET "{ host: a.org, secret: { name: ../x, header: X-Key } }\n", ERR_INVALID, "5:36: ", "not the name of a secret" },
	{ NET "{ host: a.org, secret: { name: g, header: X-Key, query: key } }\n", ERR_INVALID, "5:54: ", "one place" },
	{ NET "{ host: a.org, secret: { name: g, body: true, query: key } }\n", ERR_INVALID, "5:51: ", "one place" },
	{ NET "{ host: a.org, secret: { name: g, body: false } }\n", ERR_INVALID, "5:45: ", "can only be true" },
	{ NET "{ host: a.org, secret: { name: g, header: User-Agent } }\n", ERR_INVALID, "5:47: ", "servers repeat" },
	{ NET "{ host: a.org, secret: { name: g, header: Content-Length } }\n", ERR_INVALID, "5:47: ", "written by Bulkhead itself" },
	{ NET "{ host: a.org, secret: { name: g, header: X-Key, value: plain } }\n", ERR_INVALID, "5:61: ", "{} stands once" },
	{ NET "{ host: a.org, secret: { name: g, header: X-Key, value: \"{} {}\" } }\n", ERR_INVALID, "5:61: ", "{} stands once" },
	{ NET "{ host: a.org, secret: { name: g, header: X-Key, value: \"\xc3\xa9 {}\" } }\n", ERR_INVALID, "5:61: ", "{} stands once" },
	{ NET "{ host: a.org, secret: { name: g, query: key, value: \"{}\" } }\n", ERR_INVALID, "5:28: ", "`value` belongs to a `header`" },
	{ NET "{ host: a.org, secret: { name: g, header: X-Key, env: 1X } }\n", ERR_INVALID, "5:59: ", "not the name of an environment variable" },
	{ NET "{ host: a.org, secret: { name: g, header: X-Key, env: LD_PRELOAD } }\n", ERR_INVALID, "5:59: ", "steers the programs" },
	{ NET "{ host: a.org, secret: { name: g, header: X-Key, envv: X } }\n", ERR_INVALID, "5:54: ", "did you mean `env`?" },
	{ NET "{ host: \"*.a.org\", secret: { name: g, header: X-Key } }\n", ERR_INVALID, "5:32: ", "every host of \"*.a.org\"" },
	{ NET "{ host: a.org, ports: [443, 80], secret: { name: g, header: X-Key } }\n", ERR_INVALID, "5:46: ", "port 80 has none" },
	{ NET "{ host: 8.8.8.8, secret: { name: g, header: X-Key } }\n", ERR_INVALID, "5:30: ", "nobody certifies" },
	{ NET "{ host: a.org, secret: { name: a-b, header: X } }\n  - { host: b.org, secret: { name: a.b, header: X } }\n", ERR_INVALID, "6:28: ", "in the variable A_B" },
	{ NET "{ host: a.org, secret: { name: a, header: X, env: T } }\n  - { host: b.org, secret: { name: t, header: X } }\n", ERR_INVALID, "6:28: ", "in the variable T" },
	/* authorities, registries, git, budgets */
	{ NET "{ host: a.org, ca: }\n", ERR_INVALID, "5:24: ", "has no value" },
	{ NET "{ host: a.org, registry: npm }\n", ERR_INVALID, "5:30: ", "must be a map" },
	{ NET "{ host: a.org, registry: {} }\n", ERR_INVALID, "5:30: ", "needs `protocol`" },
	{ NET "{ host: a.org, registry: { packages: [x], protocol: gem } }\n", ERR_INVALID, "5:57: ", "npm, pypi or apt" },
	{ NET "{ host: a.org, registry: { protocol: npm, base: npm } }\n", ERR_INVALID, "5:53: ", "without a slash at the end" },
	{ NET "{ host: a.org, registry: { protocol: npm, base: /npm/ } }\n", ERR_INVALID, "5:53: ", "without a slash at the end" },
	{ NET "{ host: a.org, registry: { protocol: npm, base: \"/*\" } }\n", ERR_INVALID, "5:53: ", "plain path" },
	{ NET "{ host: a.org, registry: { protocol: npm, packages: [a b] } }\n", ERR_INVALID, "5:58: ", "not the name of a package" },
	{ NET "{ host: a.org, registry: { protocol: npm }, git: { repositories: [a/b] } }\n", ERR_INVALID, "5:5: ", "write two rules" },
	{ NET "{ host: a.org, git: { push: true } }\n", ERR_INVALID, "5:5: ", "needs `repositories`" },
	{ NET "{ host: a.org, git: { repositories: [a/b.git] } }\n", ERR_INVALID, "5:42: ", "without .git" },
	{ NET "{ host: a.org, git: { repositories: [/a/b] } }\n", ERR_INVALID, "5:42: ", "not a repository" },
	{ NET "{ host: a.org, git: { repositories: [https://a.org/b] } }\n", ERR_INVALID, "5:42: ", "not a repository" },
	{ NET "{ host: a.org, limits: { requests: 0 } }\n", ERR_INVALID, "5:40: ", "at least 1" },
	{ NET "{ host: a.org, limits: { bytes_up: lots } }\n", ERR_INVALID, "5:40: ", "a size such as" },
	{ NET "{ host: a.org, limits: { connections: 65537 } }\n", ERR_INVALID, "5:43: ", "a whole number" },
	{ NET "{ host: a.org, limits: { rate: 10 } }\n", ERR_INVALID, "5:36: ", "10/s, 600/m or 1000/h" },
	{ NET "{ host: a.org, limits: { rate: 0/s } }\n", ERR_INVALID, "5:36: ", "10/s" },
	{ NET "{ host: a.org, limits: { rate: 10/sec } }\n", ERR_INVALID, "5:36: ", "10/s" },
	{ NET "{ host: a.org, limits: { bytes: 10 } }\n", ERR_INVALID, "5:30: ", "unknown key `bytes` in limits" },
	/* known, but not enforced */
	{ NET "{ host: a.org, approve: { wait: 2m } }\n", ERR_UNSUPPORTED, "5:20: ", "`approve` is not enforced" },
	{ H "tools: { shell: allow }\n", ERR_UNSUPPORTED, "4:1: ", "`tools` is not enforced" },
	{ H "detect: { denied_egress: { count: 20 } }\n", ERR_UNSUPPORTED, "4:11: ", "`denied_egress` is not enforced by this version of Bulkhead, so the policy is refused; remove it, " },
	{ H "detect: { canary: pause }\n", ERR_INVALID, "4:19: ", "deny, kill or record" },
	{ H "record: { bodies: true }\n", ERR_UNSUPPORTED, "4:11: ", "`bodies` is not enforced" },
	{ H "record: { redact: [email] }\n", ERR_UNSUPPORTED, "4:11: ", "`redact` is not enforced" },
	{ H "record: { retain: 90d }\n", ERR_UNSUPPORTED, "4:11: ", "`retain` is not enforced" },
};

static void each_mistake_has_its_place_and_sentence(void **state)
{
	for (size_t i = 0; i < ARRAY_LEN(mistakes); i++) {
		const struct mistake *m = &mistakes[i];
		struct err err = ERR_INIT;
		struct policy *p = NULL;
		char *warning = NULL, prefix[64];
		snprintf(prefix, sizeof(prefix), "p.yaml:%s", m->place);
		if (policy_parse(m->yaml, strlen(m->yaml), "p.yaml", TEST_DATE, &p, &warning, &err) == 0)
			fail_msg("accepted:\n%s", m->yaml);
		assert_null(p);
		assert_null(warning);
		if (err.code != m->code || strncmp(err.text, prefix, strlen(prefix)) != 0 || !strstr(err.text, m->says))
			fail_msg("%s\n-> %s: %s\nexpected %s at %s: …%s…", m->yaml, err_code_name(err.code), err.text, err_code_name(m->code), m->place,
				m->says);
	}
}

static void review_date(void **state)
{
	static const char yaml[] = H "review_by: 2026-11-29\n";
	struct policy *p = NULL;
	char *warning = NULL;
	assert_int_equal(policy_parse(yaml, strlen(yaml), "p.yaml", "2026-11-29", &p, &warning, NULL), 0);
	assert_null(warning);
	p = policy_free(p);
	assert_int_equal(policy_parse(yaml, strlen(yaml), "p.yaml", "2026-11-30", &p, &warning, NULL), 0);
	assert_non_null(warning);
	assert_non_null(strstr(warning, "2026-11-29"));
	assert_non_null(strstr(warning, "o@example.com"));
	mem_free(warning);
	policy_free(p);
}

static void rules_about_requests(void **state)
{
	struct policy *p = policy_of(NET "{ host: a.org, methods: [GET, PROPFIND, M-SEARCH], paths: [\"/a/**\"], query: { Page: \"*\", \"$top\": \"5\" }, headers: { X-Team: r* },\n"
		"      secret: { name: Git.Hub-1, header: Authorization, value: \"token {}\", env: GH_TOKEN }, limits: { requests: 5, bytes_up: 1KiB, bytes_down: unlimited, rate: 3/h } }\n"
		"  - { host: a.org, secret: { name: Git.Hub-1, query: key } }\n  - { host: a.org, secret: { name: b, body: true } }\n"
		"  - { host: 8.8.8.8, ca: x.pem, secret: { name: c, header: cookie } }\n  - { host: b.org, limits: { requests: unlimited } }\n  - { host: b.org, inspect: false }\n"
		"  - { host: b.org, inspect: true }\n  - { host: r.org, registry: { packages: [Foo_Bar], protocol: pypi, base: /x/y, lock: l.txt } }\n"
		"  - { host: g.org, git: { repositories: [a/b, \"c/*\"], push: true } }\ndetect: { canary: record }\n");
	const struct request_rule *q = p->rules[0].request;
	assert_int_equal(q->n_methods, 3);
	assert_string_equal(q->methods[2], "M-SEARCH");
	assert_string_equal(q->paths[0], "/a/**");
	assert_string_equal(q->query[0].name, "Page");
	assert_string_equal(q->headers[0].name, "x-team");
	assert_string_equal(q->secret->name, "Git.Hub-1");
	assert_string_equal(q->secret->field, "authorization");
	assert_string_equal(q->secret->value, "token {}");
	assert_string_equal(q->secret->variable, "GH_TOKEN");
	const struct rule_limits *l = p->rules[0].limits;
	assert_int_equal(l->requests, 5);
	assert_int_equal(l->bytes_up, 1024);
	assert_int_equal(l->bytes_down, POLICY_UNLIMITED);
	assert_int_equal(l->connections, POLICY_UNLIMITED);
	assert_int_equal(l->rate_count, 3);
	assert_int_equal(l->rate_ns, 3600 * NS_PER_S);
	assert_int_equal(p->rules[1].request->secret->place, SECRET_IN_QUERY);
	assert_int_equal(p->rules[2].request->secret->place, SECRET_IN_BODY);
	assert_null(p->rules[2].request->secret->field);
	assert_string_equal(p->rules[3].request->ca_file, "x.pem");
	assert_null(p->rules[3].request->ca);
	assert_true(!p->rules[4].request && !p->rules[4].limits && !p->rules[5].request && p->rules[6].request);
	q = p->rules[7].request;
	assert_int_equal(q->registry, REGISTRY_PYPI);
	assert_string_equal(q->registry_base, "/x/y");
	assert_string_equal(q->packages[0], "foo-bar");
	assert_string_equal(q->lock_file, "l.txt");
	assert_true(p->rules[8].request->git->push);
	assert_int_equal(p->rules[8].request->git->n_repositories, 2);
	assert_int_equal(p->canary, CANARY_RECORD);
	policy_free(p);
	p = policy_of(H);
	assert_int_equal(p->canary, CANARY_DENY);
	policy_free(p);
}

static void very_many_secrets(void **state)
{
	struct policy *p = policy_builtin();
	struct err err = ERR_INIT;
	char spec[64];
	for (unsigned i = 0; i < RULE_SECRETS_MAX; i++) {
		snprintf(spec, sizeof(spec), "s%u@a.org", i);
		assert_int_equal(policy_add_secret(p, spec, &err), 0);
	}
	assert_int_equal(policy_add_secret(p, "s0@b.org", &err), 0); /* no other one */
	assert_int_equal(policy_add_secret(p, "more@a.org", &err), -1);
	assert_int_equal(err.code, ERR_LIMIT);
	policy_free(p);
}

/* A rule behind one that lets everything through is a mistake that nothing else would show. */
static void rules_that_never_win(void **state)
{
	static const struct { const char *rules; unsigned line; } cases[] = {
		{ "  - { host: a.org }\n  - { host: a.org, methods: [GET] }\n", 6 },
		{ "  - { host: \"*.a.org\", ports: [443, 80] }\n  - { host: x.a.org, inspect: true }\n", 6 },
		{ "  - { host: \"*.a.org\" }\n  - { host: \"*.x.a.org\", inspect: true }\n", 6 },
		{ "  - { host: 8.8.8.8 }\n  - { host: b.org }\n  - { host: 8.8.8.8, inspect: true }\n", 7 },
		{ "  - { host: a.org, methods: [GET] }\n  - { host: a.org }\n", 0 },
		{ "  - { host: a.org, inspect: true }\n  - { host: a.org, methods: [GET] }\n", 0 },
		{ "  - { host: a.org }\n  - { host: a.org, ports: [443, 8443], methods: [GET] }\n", 0 },
		{ "  - { host: a.org }\n  - { host: \"*.a.org\", methods: [GET] }\n  - { host: aa.org, inspect: true }\n", 0 },
		{ "  - { host: x.a.org }\n  - { host: \"*.a.org\", methods: [GET] }\n", 0 },
		{ "  - { host: a.org }\n  - { host: a.org, limits: { requests: 3 } }\n", 0 },
	};
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		cleanup_free char *yaml = mem_printf("%snetwork:\n%s", TEST_HEAD, cases[i].rules);
		cleanup_free char *says = mem_printf(" in line %u is never asked", cases[i].line);
		char *warning = NULL;
		struct policy *p = NULL;
		assert_int_equal(policy_parse(yaml, strlen(yaml), "p.yaml", TEST_DATE, &p, &warning, NULL), 0);
		if (cases[i].line ? !warning || !strstr(warning, says) : warning != NULL)
			fail_msg("%s-> %s", cases[i].rules, warning ? warning : "no warning");
		mem_free(warning);
		policy_free(p);
	}
	static const char both[] = H "review_by: 2000-01-01\nnetwork:\n  - { host: a.org }\n  - { host: a.org, inspect: true }\n";
	struct policy *p = NULL;
	char *warning = NULL;
	assert_int_equal(policy_parse(both, strlen(both), "p.yaml", TEST_DATE, &p, &warning, NULL), 0);
	assert_true(strstr(warning, "2000-01-01") && strstr(warning, "never asked"));
	mem_free(warning);
	policy_free(p);
}

static void long_timeout_with_a_reason(void **state)
{
	struct policy *p = policy_of(H "lifetime: { timeout: 2h, budget: \"nightly build\" }\n");
	assert_int_equal(p->limits.timeout_ns, 7200 * NS_PER_S);
	assert_string_equal(p->budget, "nightly build");
	p = policy_free(p);
	p = policy_of(H "lifetime: { timeout: 30m }\n");
	policy_free(p);
}

static void mounts_stand_parents_first(void **state)
{
	struct policy *p = policy_of(H "files:\n  - { source: a, target: /w/x/y, mode: ro }\n  - { source: b, target: /w, mode: ro }\n"
		"  - { source: c, target: /w/x, mode: ro }\n  - { source: d, target: /wx, mode: ro }\n");
	assert_string_equal(p->mounts[0].target, "/w");
	assert_string_equal(p->mounts[1].target, "/w/x");
	assert_string_equal(p->mounts[2].target, "/w/x/y");
	assert_string_equal(p->mounts[3].target, "/wx");
	assert_string_equal(p->mounts[1].source, "c");
	policy_free(p);
}

static void ceilings(void **state)
{
	struct err err = ERR_INIT;
	struct policy *p = NULL;
	size_t len = POLICY_TEXT_MAX + 1;
	char *big = mem_alloc(len + 1);
	memset(big, '#', len);
	assert_int_equal(policy_parse(big, len, "p.yaml", NULL, &p, NULL, &err), -1);
	assert_int_equal(err.code, ERR_LIMIT);
	/* very many values in the allowed length */
	memset(big, ',', POLICY_TEXT_MAX);
	for (size_t i = 0; i < POLICY_TEXT_MAX; i += 2)
		big[i] = 'a';
	memcpy(big, "x: [", 4);
	assert_int_equal(policy_parse(big, POLICY_TEXT_MAX, "p.yaml", NULL, &p, NULL, &err), -1);
	assert_int_equal(err.code, ERR_LIMIT);
	/* very many rules */
	p = policy_builtin();
	for (unsigned i = 0; i < POLICY_RULES_MAX; i++)
		assert_int_equal(policy_add_allow(p, "example.com", &err), 0);
	assert_int_equal(policy_add_allow(p, "example.com", &err), -1);
	assert_int_equal(err.code, ERR_LIMIT);
	policy_free(p);
	mem_free(big);
}

static void allow_from_the_command_line(void **state)
{
	static const struct { const char *spec; const char *text; uint16_t port; } good[] = {
		{ "api.example.com", "api.example.com", 443 }, { "api.example.com:8443", "api.example.com", 8443 },
		{ "*.example.com:80", "*.example.com", 80 }, { "8.8.8.8:53", "8.8.8.8", 53 }, { "2606:4700::1", "2606:4700::1", 443 },
		{ "[2606:4700::1]:80", "2606:4700::1", 80 },
	};
	static const char *const bad[] = { "", ":443", "example.com:0", "example.com:65536", "example.com:x", "*", "https://example.com", "10.0.0.1",
		"127.0.0.1:80", "localhost:80", "169.254.169.254", "a b", "example.com:443:443", "[::1]:80", "::1" };
	struct policy *p = policy_builtin();
	for (size_t i = 0; i < ARRAY_LEN(good); i++) {
		struct err err = ERR_INIT;
		if (policy_add_allow(p, good[i].spec, &err) < 0)
			fail_msg("%s: %s", good[i].spec, err.text);
		assert_string_equal(p->rules[i].text, good[i].text);
		assert_int_equal(p->rules[i].ports[0], good[i].port);
		assert_int_equal(p->rules[i].n_ports, 1);
		assert_int_equal(p->rules[i].line, 0);
	}
	for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
		struct err err = ERR_INIT;
		if (policy_add_allow(p, bad[i], &err) == 0)
			fail_msg("accepted: %s", bad[i]);
		assert_true(strlen(err.text) > 0);
	}
	assert_int_equal(p->n_rules, ARRAY_LEN(good));
	policy_free(p);
}

static void mounts_from_the_command_line(void **state)
{
	struct policy *p = policy_builtin();
	struct err err = ERR_INIT;
	assert_int_equal(policy_add_mount(p, "/a", "/w", MOUNT_RW, &err), 0);
	assert_int_equal(policy_add_mount(p, "/a\xff", "/x", MOUNT_RW, &err), -1);
	assert_int_equal(err.code, ERR_UNSUPPORTED);
	assert_int_equal(policy_add_mount(p, "", "/x", MOUNT_RW, &err), -1);
	assert_int_equal(policy_add_mount(p, "/a", "/usr/local", MOUNT_RW, &err), -1);
	assert_int_equal(policy_add_mount(p, "/a", "/w", MOUNT_RO, &err), -1);
	assert_int_equal(p->n_mounts, 1);
	for (unsigned i = 1; i < POLICY_MOUNTS_MAX; i++) {
		char target[32];
		snprintf(target, sizeof(target), "/m%u", i);
		assert_int_equal(policy_add_mount(p, "/a", target, MOUNT_COPY, &err), 0);
	}
	assert_int_equal(policy_add_mount(p, "/a", "/more", MOUNT_COPY, &err), -1);
	assert_int_equal(err.code, ERR_LIMIT);
	policy_free(p);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(everything_together),
		cmocka_unit_test(what_is_left_out_is_the_builtin),
		cmocka_unit_test(each_mistake_has_its_place_and_sentence),
		cmocka_unit_test(rules_about_requests),
		cmocka_unit_test(very_many_secrets),
		cmocka_unit_test(rules_that_never_win),
		cmocka_unit_test(review_date),
		cmocka_unit_test(long_timeout_with_a_reason),
		cmocka_unit_test(mounts_stand_parents_first),
		cmocka_unit_test(ceilings),
		cmocka_unit_test(allow_from_the_command_line),
		cmocka_unit_test(mounts_from_the_command_line),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
