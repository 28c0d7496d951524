/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The secrets that a policy binds, as one sandbox has them: each with a placeholder of its own, and the variables of the box that hold it. Nothing here is
 * a value: values go from the store to the upstream half of the gate as descriptors that nobody reads on the way.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "base/err.h"
#include "policy/policy.h"
#include "secrets/placeholder.h"
#include "secrets/secret.h"

#define GRANT_VARIABLES_MAX 16u

struct grant {
	char name[SECRET_NAME_MAX + 1];
	char placeholder[PLACEHOLDER_MAX];
	char *variables[GRANT_VARIABLES_MAX];  /* names */
	size_t n_variables;
	struct secret_about about;             /* of the value that was loaded last */
	int file_fd, key_fd;                   /* sealed value and key, until they were handed over; else -1 */
	bool revoked;                          /* for good, in this sandbox */
};

struct grants {
	struct secret_store *store;
	struct grant *list;
	size_t n;
};

/*
 * Collects what the policy binds and opens it in the store below the state folder. *ret is NULL when the policy binds nothing. A secret that isn't stored, and too many
 * of them, are refused.
 */
int grants_new(const struct policy *p, int state_dirfd, struct grants **ret, struct err *err);
struct grants *grants_free(struct grants *g); /* accepts NULL */
struct grant *grants_find(const struct grants *g, const char *name); /* NULL: not granted; accepts g NULL */
/* Opens what the store has now, for rotation. */
int grant_open(const struct grants *g, struct grant *grant, struct err *err);
/* The same for all, once the sandbox can be found by whoever rotates one: what was replaced before that is not missed. */
int grants_reopen(struct grants *g, struct err *err);
/* Is all that the policy binds already granted, in the same variables? -1: names the first that isn't, and the fix. */
int grants_cover(const struct grants *g, const struct policy *p, struct err *err);
