/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The policy: model, parser, decisions. Pure: no I/O, no clock, no global state. Facts in, verdict and reason out.
 * The YAML form is DESIGN section 5; docs/policy.md is the reference.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/addr.h"
#include "base/err.h"
#include "policy/reason.h"

#define POLICY_TEXT_MAX (256u * 1024u)
#define POLICY_RULES_MAX 1024u
#define POLICY_PORTS_MAX 64u
#define POLICY_MOUNTS_MAX 64u
#define POLICY_HASH_SIZE 32u
#define POLICY_CANONICAL_MAX (16u * 1024u * 1024u) /* of the canonical form: lock files may pin many files */
#define POLICY_UNLIMITED UINT64_MAX

/* Weakest first; comparable with <. */
enum isolation_level {
	ISOLATION_CONTAINER = 0,
	ISOLATION_GVISOR,
	ISOLATION_MICROVM,
	ISOLATION_LEVEL_MAX,
};
const char *isolation_level_name(enum isolation_level level);
int isolation_level_parse(const char *name, enum isolation_level *ret); /* 0 or -1 */

enum mount_mode { MOUNT_COPY = 0, MOUNT_RO, MOUNT_RW, MOUNT_MODE_MAX };
const char *mount_mode_name(enum mount_mode mode);
int mount_mode_parse(const char *name, enum mount_mode *ret);

enum on_timeout { ON_TIMEOUT_KILL = 0 };

/* POLICY_UNLIMITED is an explicit choice ("unlimited" in YAML and on the command line), never a default. */
struct policy_limits {
	uint64_t cpus_milli;      /* 1000 = one cpu */
	uint64_t memory;          /* bytes; swap is always 0 */
	uint64_t processes;
	uint64_t disk;            /* bytes, all writable places inside together */
	uint64_t open_files;      /* for each process */
	uint64_t output;          /* bytes of stdout and stderr together */
	uint64_t egress_requests;
	uint64_t egress_bytes;    /* both directions together */
	uint64_t connections;     /* at once */
	uint64_t timeout_ns;      /* wall time */
	uint64_t idle_ns;
};

struct policy_mount {
	char *source;             /* as written; resolved by the caller against the current folder */
	char *target;             /* absolute, normalised */
	enum mount_mode mode;
};

struct network_rule {
	bool is_address;          /* host is a literal address */
	bool wildcard;            /* "*.name": one or more whole labels in front of `name`; the apex is not included */
	struct hostname name;     /* without the "*." */
	struct ip address;
	uint16_t ports[POLICY_PORTS_MAX];
	unsigned n_ports;         /* never 0: the default is 443 */
	bool private_ok;          /* `private: true`: the address floor doesn't apply */
	unsigned line;            /* in the policy file; 0 for --allow */
	char *text;               /* the host as written, for messages */
	struct request_rule *request; /* policy/request.h; NULL: every byte to this place is allowed unseen (a tunnel) */
	struct rule_limits *limits;   /* budgets of this rule; NULL: only the sandbox's */
};

/* What happens when a placeholder is seen where it has no business. */
enum canary_action { CANARY_DENY = 0, CANARY_KILL, CANARY_RECORD, CANARY_ACTION_MAX }; /* deny: that request, recorded; record: let it pass, recorded */
const char *canary_action_name(enum canary_action action);
int canary_action_parse(const char *name, enum canary_action *ret); /* 0 or -1 */

struct policy {
	char *name, *owner, *review_by, *region, *template_name, *budget;
	bool strict;
	unsigned version;
	enum isolation_level minimum;
	bool allow_emulation;
	enum on_timeout on_timeout;
	struct policy_limits limits;
	struct policy_mount *mounts;
	size_t n_mounts;
	struct network_rule *rules;
	size_t n_rules;
	bool record_output;       /* default true */
	enum canary_action canary; /* `detect: { canary: deny | kill | record }` */
	bool builtin;
	uint8_t hash[POLICY_HASH_SIZE]; /* BLAKE2b-256 of the canonical JSON form; set by policy_seal */
};

/* The built-in default: no network, container, 15 min, cpus 2, memory 2 GiB, 512 processes, disk 1 GiB, 4096 open files, output 1 GiB,
 * no idle limit (unlimited), egress 10000 requests, 1 GiB, 256 connections. Free with policy_free. */
struct policy *policy_builtin(void);
struct policy *policy_free(struct policy *p); /* accepts NULL; returns NULL */

/* Parses and validates YAML. On failure the sentence begins with "FILE:LINE:COLUMN: ". Unknown keys, duplicate keys, anchors/aliases/tags, several
 * documents and wrong types are errors. Keys that are known but not enforced by this version (approve, tools, detect.denied_egress,
 * record.bodies, record.redact, record.retain, …) are refused with ERR_UNSUPPORTED by name. Limits that the file leaves out have the
 * built-in default. Files that the policy names (`ca`, `lock`) are read afterwards, by policy_load_files (request.h). `now_date` ("2026-11-30") judges review_by: past it, ret_warning is a sentence (free with mem_free), and with `strict: true` an error.
 * A rule that can never win is a warning too. */
int policy_parse(const char *text, size_t len, const char *file, const char *now_date,
	struct policy **ret, char **ret_warning, struct err *err);

/* Adds what the command line says. `spec` is HOST[:PORT]; default port 443. */
int policy_add_allow(struct policy *p, const char *spec, struct err *err);
/* NAME@HOST[:HEADER]: a rule for that host at port 443 whose requests carry the secret in HEADER (default: authorization). It stands in front
 * of the first rule that would let every request to the host through unseen, behind those that judge requests. Call it after policy_add_allow. */
int policy_add_secret(struct policy *p, const char *spec, struct err *err);
int policy_add_mount(struct policy *p, const char *source, const char *target, enum mount_mode mode, struct err *err);

/* Canonical JSON (sorted keys, no white space), for hashing, storing and `--json`. Free with mem_free. policy_seal computes p->hash from it. */
char *policy_to_json(const struct policy *p);
void policy_seal(struct policy *p);

/* Reads back exactly what policy_to_json wrote (the gate gets its policy so); strict: anything else is ERR_INVALID. Ceiling POLICY_CANONICAL_MAX. */
struct policy *policy_from_json(const char *text, size_t len, struct err *err);

/* ---- decisions ---- */

struct verdict {
	bool allow;
	enum reason reason;
	int rule;                 /* index of the rule that won, or -1 */
};

/* May the box know that this name exists, and on which ports is it reachable? Port 0: any. Order: deny floor by name has no case; then rules;
 * then default deny. When several rules name the host, the one that allows the port wins, the first such. */
struct verdict policy_decide_name(const struct policy *p, const struct hostname *name, uint16_t port);
/* The union of ports of all rules that match the name. Returns how many (≤ room). */
unsigned policy_ports_of(const struct policy *p, const struct hostname *name, uint16_t *ret_ports, unsigned room);
/* A connection to a literal address. Allowed only when a rule names exactly that address (and `private: true` where the floor would refuse). */
struct verdict policy_decide_address(const struct policy *p, const struct ip *ip, uint16_t port);
/* Does the rule lead to this place: by name, or by address and past the floor? `ip` counts when `name` is NULL. */
bool rule_opens(const struct network_rule *r, const struct hostname *name, const struct ip *ip, uint16_t port);
/* After resolution: may this address be dialled for a connection that `rule` allowed? `host_addresses` are the machine's own. */
struct verdict policy_decide_dial(const struct policy *p, int rule, const struct ip *ip,
	const struct ip *host_addresses, size_t n_host_addresses);

/* The floor by itself: REASON_NONE when the address is ordinary and public. Judges IPv4 inside IPv6 as IPv4. */
enum reason floor_classify(const struct ip *ip);

/* One or more lines for people: the rule that wins (file line, text) or why nothing does, and how to ask for it. Free with mem_free. */
char *policy_explain_verdict(const struct policy *p, const struct verdict *v, const char *host, uint16_t port);
