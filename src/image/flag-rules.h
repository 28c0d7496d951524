/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The table of names. A pattern matches at any depth, in lower case, component by component, with `*` within a component.
 * "x/" means everything below a folder x, and x itself where it isn't a folder (a link in its place).
 */
#pragma once

#include "image/changes.h"

struct flag_rule {
	enum change_flag flag;
	const char *const *patterns; /* NULL-terminated */
};
extern const struct flag_rule flag_rules[];
extern const size_t n_flag_rules;
