/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One reason code for a decision, the same in a 403 body, in the record, on stderr and in --json.
 * The names are stable; new ones are added at the end of their group.
 */
#pragma once

enum reason {
	REASON_NONE = 0,
	REASON_ALLOWED,               /* a rule allows it */
	/* egress, by name and port */
	REASON_NO_RULE,               /* default deny: no rule names this host */
	REASON_PORT_NOT_ALLOWED,      /* a rule names the host, not this port */
	REASON_BAD_NAME,              /* not a host name that policy can judge */
	REASON_ADDRESS_LITERAL,       /* an address instead of a name, and no rule names that address */
	/* egress, by address after resolution: the floor */
	REASON_ADDRESS_LOOPBACK,
	REASON_ADDRESS_PRIVATE,
	REASON_ADDRESS_LINK_LOCAL,
	REASON_ADDRESS_METADATA,
	REASON_ADDRESS_MULTICAST,
	REASON_ADDRESS_RESERVED,
	REASON_ADDRESS_HOST,          /* one of the host's own addresses */
	/* egress, by what was said on the connection */
	REASON_TLS_NAME_MISMATCH,     /* SNI differs from the name asked for */
	REASON_TLS_NAME_MISSING,      /* no SNI */
	REASON_TLS_MALFORMED,
	REASON_HTTP_HOST_MISMATCH,    /* Host differs from the name asked for */
	REASON_HTTP_HOST_MISSING,
	REASON_HTTP_MALFORMED,        /* smuggling shapes included */
	REASON_HTTP_VERSION,          /* cleartext HTTP/2, HTTP/0.9 and others that can't be judged */
	REASON_PROTOCOL_MISMATCH,     /* port 443 without TLS, port 80 without HTTP */
	REASON_PROXY_MALFORMED,       /* the proxy entrance got something it can't judge */
	/* egress, by request (policy/request.h) */
	REASON_METHOD_NOT_ALLOWED,
	REASON_PATH_NOT_ALLOWED,
	REASON_PATH_AMBIGUOUS,        /* a path that servers read in different ways */
	REASON_QUERY_NOT_ALLOWED,
	REASON_HEADER_NOT_ALLOWED,
	REASON_PACKAGE_NOT_ALLOWED,
	REASON_REPOSITORY_NOT_ALLOWED,
	REASON_PUSH_NOT_ALLOWED,
	REASON_NOT_PINNED,            /* a lock file names what may be fetched, and not this */
	REASON_DIGEST_MISMATCH,       /* what came isn't what the lock file pins */
	/* egress, by secrets */
	REASON_SECRET_NEEDS_TLS,      /* only a verified connection gets a secret */
	REASON_SECRET_UNAVAILABLE,    /* not set, its helper failed, or revoked */
	REASON_SECRET_MISPLACED,      /* a placeholder on its way to a place that it isn't bound to: a canary */
	REASON_FOREIGN_CREDENTIAL,    /* a bound header holds another credential than the placeholder */
	REASON_RESPONSE_UNREADABLE,   /* its coding can't be taken off, so secrets in it couldn't be found */
	/* egress, by the server */
	REASON_UPSTREAM_CERTIFICATE,  /* could not prove who it is */
	REASON_UPSTREAM_PROTOCOL,     /* broke HTTP or TLS */
	REASON_SERVER_CLOSED,         /* ended before its answer was whole */
	REASON_CLIENT_CLOSED,         /* the program in the box gave the request up */
	REASON_HTTP_ABUSE,            /* floods of resets, pings, settings, continuations */
	/* egress, by budget */
	REASON_BUDGET_RATE,
	REASON_BUDGET_CONNECTIONS,
	REASON_BUDGET_REQUESTS,
	REASON_BUDGET_BYTES,
	/* egress, not policy */
	REASON_RESOLVE_FAILED,
	REASON_CONNECT_FAILED,
	REASON_RECORD_UNAVAILABLE,    /* the record can't be written: nothing is allowed */
	/* limits and ends of a sandbox */
	REASON_LIMIT_MEMORY,
	REASON_LIMIT_PROCESSES,
	REASON_LIMIT_DISK,
	REASON_LIMIT_OPEN_FILES,
	REASON_LIMIT_TIME,
	REASON_LIMIT_IDLE,
	REASON_LIMIT_OUTPUT,
	REASON_KILLED,                /* by a person or program with the right to */
	REASON_SUPERVISOR_LOST,
	REASON_SYSCALL_DENIED,        /* an escape attempt that the system call list refused */
	REASON_POLICY_CHANGED,        /* a newer generation of the policy doesn't allow it any more */
	REASON_SECRET_REVOKED,
	REASON_CANARY,                /* the policy ends a sandbox whose placeholder went astray */
	REASON_MAX,
};

/* Stable identifier, e.g. "no_rule". Never NULL. */
const char *reason_name(enum reason reason);
/* What it means and what to do, one sentence without a final newline. Never NULL. */
const char *reason_text(enum reason reason);
/* By identifier; REASON_NONE when unknown. */
enum reason reason_from_name(const char *name);
