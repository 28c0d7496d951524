/* SPDX-License-Identifier: Apache-2.0 */
/* Shared by the tests of policy/: short ways to a policy. */
#pragma once

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "base/mem.h"
#include "policy/policy.h"

#define TEST_HEAD "version: 1\nname: t\nowner: o@example.com\n"
#define TEST_DATE "2026-11-30"

static inline struct policy *policy_of(const char *yaml)
{
	struct policy *p = NULL;
	struct err err = ERR_INIT;
	if (policy_parse(yaml, strlen(yaml), "p.yaml", TEST_DATE, &p, NULL, &err) < 0)
		fail_msg("refused: %s\n%s", err.text, yaml);
	return p;
}

static inline struct hostname name_of(const char *text)
{
	struct hostname name = { 0 };
	assert_int_equal(hostname_parse(text, strlen(text), &name, NULL), 0);
	return name;
}

static inline struct ip ip_of(const char *text)
{
	struct ip ip = { 0 };
	if (ip_parse(text, strlen(text), &ip) < 0)
		fail_msg("not an address: %s", text);
	return ip;
}
