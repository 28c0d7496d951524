/* SPDX-License-Identifier: Apache-2.0 */
/* Lock files, one reader each. Inside policy/ only. Each adds pins, and packages where `add_packages`. */
#pragma once

#include "policy/request.h"

struct lock_target {
	struct network_rule *rule;
	bool add_packages;   /* the rule names none itself */
};

int lock_read_npm(struct lock_target *t, const char *text, size_t len, struct err *err);
int lock_read_pypi(struct lock_target *t, const char *text, size_t len, struct err *err);
int lock_read_apt(struct lock_target *t, const char *text, size_t len, struct err *err);

/* "/x/y" of a host as a pin's path (path_match_form, encoded slashes decoded); NULL when it is ambiguous. mem_free. */
char *lock_pin_path(const char *path, size_t len);
