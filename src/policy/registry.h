/* SPDX-License-Identifier: Apache-2.0 */
/* Ready-made rules for protocols: package registries and git hosts. Inside policy/ only. */
#pragma once

#include "policy/request.h"

struct protocol_request {
	bool reads;           /* GET or HEAD */
	bool get, post;
	const char *path;     /* in the form of comparison (path_match_form); for npm with "%2F" decoded */
	const char *query;    /* as sent */
};

/* REASON_NONE: allowed; then *ret_pins are what the answer is held against. */
enum reason registry_judge(const struct request_rule *q, const struct protocol_request *r, const struct pin **ret_pins, size_t *ret_n);
enum reason git_judge(const struct git_rule *g, const struct protocol_request *r);

/* The distribution that a file of PyPI belongs to, normalised, or false. `out` has room for the file name and a NUL. */
bool pypi_file_name(const char *file, char *out);
/* An encoded slash stands only where npm puts it: once in a segment that is "@scope%2Fname". `path` is normalised. */
bool npm_slashes_clear(const char *path);
/* "name" or "@scope/name" at s, of `len` bytes exactly. */
bool npm_name_valid(const char *s, size_t len);
