/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a box trusts when its TLS is looked into: the host's roots and the sandbox's own authority, in every form that common clients look for
 * (docs/trust.md). All of it is public and lives in memory files only; the launcher lays them over the host's certificates and into
 * the box's home (spec.h: files). Clients that carry their own roots are told by environment variables where these are.
 */
#pragma once

#include "base/err.h"
#include "spec/spec.h"

/* Adds to spec->files what a box needs to trust `ca_pem` (one certificate), and puts the descriptors of the contents, the caller's to close, into
 * fds[0 … spec->n_files-1]. host_root: where the host's /etc and /usr are looked for, "/" but in tests. The spec has no files before.
 * On failure nothing is left in fds. */
int trust_add(struct spec *spec, int fds[SPEC_FILES_MAX], const char *ca_pem, int host_root, struct err *err);

struct trust_variable { const char *name, *value; };
/* For the environment of such a box; ends with a NULL name. */
extern const struct trust_variable trust_variables[];
