/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A certificate authority for one sandbox: made in memory, never stored, gone with the process. Valid from a day ago; can make no
 * further authorities. Its leaves are complete (RFC 5280): SAN (DNS or IP, never only CN), AKI, SKI, key usage, serverAuth, 20-byte
 * random serials, valid from an hour ago to the authority's end.
 */
#pragma once

#include <stddef.h>

#include "base/err.h"

#define MINT_DAYS 30 /* the authority and its leaves; afterwards mint_leaf says so */
#define MINT_LEAVES_MAX 256u /* kept; the least recently used goes first */

struct mint;

/* A fresh P-256 authority ("Bulkhead sandbox ID"), 30 days. */
struct mint *mint_new(const char *sandbox_id, struct err *err);
struct mint *mint_free(struct mint *m);         /* keys are wiped; accepts NULL */
const char *mint_ca_pem(const struct mint *m);  /* the authority's certificate, public */

enum mint_key { MINT_ECDSA, MINT_RSA };
/* For the server side: the leaf for a name or an address's text. OpenSSL's X509 and EVP_PKEY, owned by the mint, valid until the next
 * call. The first for RSA makes that key, which takes 0.1 to 0.3 s. */
int mint_leaf(struct mint *m, const char *host, enum mint_key key, void **ret_x509, void **ret_pkey, struct err *err);
