/* SPDX-License-Identifier: Apache-2.0 */
#include "policy/reason.h"

#include <stddef.h>

#include "base/mem.h"

static const struct {
	const char *name;
	const char *text;
} reasons[] = {
	[REASON_NONE] = { "none", "nothing was decided" },
	[REASON_ALLOWED] = { "allowed", "a rule of the policy allows it" },

	[REASON_NO_RULE] = { "no_rule",
		"no rule of the policy names this host, and what no rule names is refused; ask for a `network` rule or use --allow" },
	[REASON_PORT_NOT_ALLOWED] = { "port_not_allowed",
		"a rule of the policy names this host, but not this port; ask for the port to be added to the rule's `ports`" },
	[REASON_BAD_NAME] = { "bad_name",
		"this is not a host name that policy can judge; use letters, digits, hyphens and dots, and the xn-- form of "
		"international names" },
	[REASON_ADDRESS_LITERAL] = { "address_literal",
		"an address was used instead of a name, and no rule names that address; use the name, or ask for a rule for the address" },

	[REASON_ADDRESS_LOOPBACK] = { "address_loopback",
		"the address is the host's own loopback; a rule with `private: true` is needed to reach it" },
	[REASON_ADDRESS_PRIVATE] = { "address_private",
		"the address belongs to a private network; a rule with `private: true` is needed to reach it" },
	[REASON_ADDRESS_LINK_LOCAL] = { "address_link_local",
		"the address is link-local; a rule with `private: true` is needed to reach it" },
	[REASON_ADDRESS_METADATA] = { "address_metadata",
		"the address is a cloud metadata service, which hands out credentials; only a rule that names this very address with "
		"`private: true` opens it" },
	[REASON_ADDRESS_MULTICAST] = { "address_multicast", "the address is multicast; no rule can open it" },
	[REASON_ADDRESS_RESERVED] = { "address_reserved",
		"the address is reserved, or carries another address in a way that can't be checked; use an ordinary public address" },
	[REASON_ADDRESS_HOST] = { "address_host",
		"the address is one of this machine's own; a rule with `private: true` is needed to reach it" },

	[REASON_TLS_NAME_MISMATCH] = { "tls_name_mismatch",
		"the TLS server name (SNI) differs from the host that was asked for; connect to the host under its own name" },
	[REASON_TLS_NAME_MISSING] = { "tls_name_missing",
		"the TLS greeting has no server name (SNI), so it can't be judged; use a client that sends it" },
	[REASON_TLS_MALFORMED] = { "tls_malformed", "the TLS greeting could not be understood; use an ordinary TLS client" },
	[REASON_HTTP_HOST_MISMATCH] = { "http_host_mismatch",
		"the Host of the request differs from the host that was asked for; connect to the host under its own name" },
	[REASON_HTTP_HOST_MISSING] = { "http_host_missing",
		"the request has no Host, so it can't be judged; send exactly one" },
	[REASON_HTTP_MALFORMED] = { "http_malformed",
		"the request could be read in more than one way, so it is refused; send a plain, well-formed HTTP/1.1 request" },
	[REASON_HTTP_VERSION] = { "http_version", "this version of HTTP can't be judged without TLS; use HTTP/1.1, or https" },
	[REASON_PROTOCOL_MISMATCH] = { "protocol_mismatch",
		"this port carries another protocol than the one that was spoken; use TLS on port 443 and HTTP on port 80" },
	[REASON_PROXY_MALFORMED] = { "proxy_malformed",
		"the proxy got a request that it can't judge; use CONNECT HOST:PORT, or an absolute http:// address" },

	[REASON_METHOD_NOT_ALLOWED] = { "method_not_allowed",
		"a rule names this host, but not this method; ask for the method to be added to the rule's `methods`" },
	[REASON_PATH_NOT_ALLOWED] = { "path_not_allowed",
		"a rule names this host, but not this path; ask for the path to be added to the rule's `paths`" },
	[REASON_PATH_AMBIGUOUS] = { "path_ambiguous",
		"servers read this path in different ways (dot segments, doubled or encoded slashes, `;`), so it can't be judged; send the plain path" },
	[REASON_QUERY_NOT_ALLOWED] = { "query_not_allowed", "the query of the request is not what the rule's `query` allows" },
	[REASON_HEADER_NOT_ALLOWED] = { "header_not_allowed", "a header of the request is not what the rule's `headers` allow" },
	[REASON_PACKAGE_NOT_ALLOWED] = { "package_not_allowed",
		"the rule for this registry doesn't name this package; ask for it to be added to the rule's `packages` or lock file" },
	[REASON_REPOSITORY_NOT_ALLOWED] = { "repository_not_allowed",
		"the rule for this git host doesn't name this repository; ask for it to be added to the rule's `repositories`" },
	[REASON_PUSH_NOT_ALLOWED] = { "push_not_allowed",
		"the rule for this git host allows fetching, not pushing; ask for `push: true`" },
	[REASON_NOT_PINNED] = { "not_pinned", "the lock file of the rule doesn't pin this file; add it to the lock file outside the sandbox" },
	[REASON_DIGEST_MISMATCH] = { "digest_mismatch",
		"what the server sent is not what the lock file pins, so it was not handed over; compare the two outside the sandbox" },
	[REASON_SECRET_NEEDS_TLS] = { "secret_needs_tls", "a secret travels only over verified TLS; use https" },
	[REASON_SECRET_UNAVAILABLE] = { "secret_unavailable",
		"the secret of this rule can't be had now; see `bulkhead secret ls` and the record for the cause" },
	[REASON_SECRET_MISPLACED] = { "secret_misplaced",
		"the request carries a secret's placeholder where the policy doesn't bind it; send it only in the bound place to the bound host" },
	[REASON_FOREIGN_CREDENTIAL] = { "foreign_credential",
		"the bound header holds another credential than the placeholder; use the value of the environment variable that holds it" },
	[REASON_RESPONSE_UNREADABLE] = { "response_unreadable",
		"the answer is coded in a way in which secrets in it could not be found, so it was not handed over; ask for an uncoded answer" },
	[REASON_UPSTREAM_CERTIFICATE] = { "upstream_certificate",
		"the server could not prove that it is the host that was asked for; the rule's `ca` can name another authority" },
	[REASON_UPSTREAM_PROTOCOL] = { "upstream_protocol", "the server broke the protocol, so its answer was not handed over" },
	[REASON_SERVER_CLOSED] = { "server_closed", "the server ended before its answer was whole; try again" },
	[REASON_CLIENT_CLOSED] = { "client_closed", "the program in the sandbox gave the request up" },
	[REASON_HTTP_ABUSE] = { "http_abuse",
		"the connection was flooded with frames that ask for work and carry nothing; use an ordinary HTTP/2 client" },

	[REASON_BUDGET_RATE] = { "budget_rate",
		"the rule's rate of requests is used up for now; try again later, or ask for a higher `limits.rate`" },
	[REASON_BUDGET_CONNECTIONS] = { "budget_connections",
		"too many connections are open at once; close some, or ask for a higher `limits.connections`" },
	[REASON_BUDGET_REQUESTS] = { "budget_requests",
		"the budget of connections and requests is used up; ask for a higher `limits.egress_requests`" },
	[REASON_BUDGET_BYTES] = { "budget_bytes",
		"the budget of bytes sent and received is used up; ask for a higher `limits.egress_bytes`" },

	[REASON_RESOLVE_FAILED] = { "resolve_failed",
		"the policy allows this host, but its name could not be resolved; check the name and the machine's resolver" },
	[REASON_CONNECT_FAILED] = { "connect_failed",
		"the policy allows this host, but it did not accept the connection; check that it is up and reachable from this machine" },
	[REASON_RECORD_UNAVAILABLE] = { "record_unavailable",
		"the record can't be written, and nothing is allowed that can't be recorded; check the disk that holds the state" },

	[REASON_LIMIT_MEMORY] = { "limit_memory", "the memory limit was reached; ask for a higher `limits.memory` (--memory)" },
	[REASON_LIMIT_PROCESSES] = { "limit_processes",
		"the limit on processes was reached; ask for a higher `limits.processes` (--pids)" },
	[REASON_LIMIT_DISK] = { "limit_disk", "the limit on disk space was reached; ask for a higher `limits.disk` (--disk)" },
	[REASON_LIMIT_OPEN_FILES] = { "limit_open_files",
		"the limit on open files was reached; ask for a higher `limits.open_files` (--open-files)" },
	[REASON_LIMIT_TIME] = { "limit_time", "the time was up; ask for a longer `lifetime.timeout` (--timeout)" },
	[REASON_LIMIT_IDLE] = { "limit_idle", "nothing happened for too long; ask for a longer `lifetime.idle` (--idle)" },
	[REASON_LIMIT_OUTPUT] = { "limit_output",
		"the limit on output was reached; print less, or ask for a higher `limits.output` (--output)" },
	[REASON_KILLED] = { "killed", "it was stopped by someone with the right to" },
	[REASON_SUPERVISOR_LOST] = { "supervisor_lost",
		"the process that looked after the sandbox went away, so the sandbox was ended" },
	[REASON_POLICY_CHANGED] = { "policy_changed", "the policy was tightened while this was going on, and no longer allows it" },
	[REASON_SECRET_REVOKED] = { "secret_revoked", "a secret that this connection had used was revoked" },
	[REASON_CANARY] = { "canary", "a secret's placeholder was seen on its way to a place it has no business in, and the policy ends the sandbox then" },
	[REASON_SYSCALL_DENIED] = { "syscall_denied", "a system call that is closed in the sandbox was refused" },
};
_Static_assert(ARRAY_LEN(reasons) == REASON_MAX, "each reason has a name and a text");

const char *reason_name(enum reason reason)
{
	return (unsigned)reason < REASON_MAX ? reasons[reason].name : "unknown";
}

const char *reason_text(enum reason reason)
{
	return (unsigned)reason < REASON_MAX ? reasons[reason].text : "the reason is not known to this version of Bulkhead";
}

enum reason reason_from_name(const char *name)
{
	for (unsigned i = 0; name && i < REASON_MAX; i++)
		if (str_eq(reasons[i].name, name))
			return (enum reason)i;
	return REASON_NONE;
}
