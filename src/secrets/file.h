/* SPDX-License-Identifier: Apache-2.0 */
/* For the files of this folder: what the store adds to a secret's file. */
#pragma once

#include "secrets/secret.h"

#define SECRET_HELPER_ARGS_MAX 64u
#define SECRET_HELPER_BYTES_MAX (32u * 1024u) /* of the command line */

/* The command of a helper: absolute, UTF-8, within the limits. */
int secret_helper_check(char *const argv[], struct err *err);
