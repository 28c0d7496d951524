/* SPDX-License-Identifier: Apache-2.0 */
/* Shared by the tests of requests: ask in one line. */
#pragma once

#include "policy-help.h"
#include "policy/request.h"

static struct request_path asked_path;
static struct request_verdict asked;

/* "METHOD TARGET" of an https host; fields in pairs, ended by NULL. */
static inline enum reason ask_with(const struct policy *p, const char *host, const char *line, const char *const *fields)
{
	const char *blank = strchr(line, ' ');
	struct hostname name = name_of(host);
	struct request_field list[16];
	size_t n = 0;
	for (; fields && fields[0]; fields += 2, n++)
		list[n] = (struct request_field){ fields[0], strlen(fields[0]), fields[1], strlen(fields[1]) };
	struct request_facts facts = { .name = &name, .port = 443, .tls = true, .method = line, .method_len = (size_t)(blank - line), .target = blank + 1,
		.target_len = strlen(blank + 1), .fields = list, .n_fields = n };
	asked = (struct request_verdict){ .path = &asked_path };
	policy_decide_request(p, &facts, &asked);
	assert_true(asked.verdict.allow == (asked.verdict.reason == REASON_ALLOWED));
	assert_true(asked.verdict.allow || (asked_path.path[0] == '\0' && asked.n_pins == 0));
	assert_true(!asked.verdict.allow || asked.verdict.rule >= 0);
	return asked.verdict.reason;
}

static inline enum reason ask(const struct policy *p, const char *host, const char *line)
{
	return ask_with(p, host, line, NULL);
}

struct expected { const char *line; enum reason reason; };

static inline void ask_all(const struct policy *p, const char *host, const struct expected *cases, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (ask(p, host, cases[i].line) != cases[i].reason)
			fail_msg("%s %s: %s, expected %s", host, cases[i].line, reason_name(asked.verdict.reason), reason_name(cases[i].reason));
}

#define OK REASON_ALLOWED
