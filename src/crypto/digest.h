/* SPDX-License-Identifier: Apache-2.0 */
/* Hashes of bodies in flight (OpenSSL EVP). */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"

#define DIGEST_SIZE_MAX 64u

enum digest_kind { DIGEST_SHA256 = 0, DIGEST_SHA384, DIGEST_SHA512, DIGEST_SHA1, DIGEST_MD5, DIGEST_KINDS };

size_t digest_size(enum digest_kind kind);
struct digest;
struct digest *digest_new(enum digest_kind kind);  /* NULL: the library doesn't have it */
void digest_update(struct digest *d, const void *p, size_t len);
void digest_final(struct digest *d, uint8_t ret[DIGEST_SIZE_MAX]); /* once */
struct digest *digest_free(struct digest *d);
