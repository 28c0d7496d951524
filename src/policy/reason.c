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
