/* SPDX-License-Identifier: Apache-2.0 */
/* For the files of this folder: values that are made in place. */
#pragma once

#include "secrets/secret.h"

int sodium_ready(struct err *err);
/* secret_name_valid with a sentence. */
int secret_name_check(const char *name, struct err *err);
/* len bytes, zero, to be written through secret_value_fill and then closed with secret_value_seal. Unchecked. NULL + err. */
struct secret_value *secret_value_alloc(size_t len, struct err *err);
uint8_t *secret_value_fill(struct secret_value *v);
void secret_value_seal(struct secret_value *v);
