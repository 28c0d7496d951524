/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The sandbox's secrets: their placeholders, their values of now, and the values they had before, which are still taken out of answers. A value is
 * fixed (from a sealed file) or comes from a helper: fetched when a request needs it, kept until shortly before it expires, one call for all who wait.
 */
#pragma once

#include "event/loop.h"
#include "gate/config-message.h"
#include "secrets/scan.h"
#include "secrets/secret.h"

#define VAULT_OLD_MAX 32u             /* earlier values that are still looked for; a helper makes no more that haven't expired */
#define VAULT_RETRY_S 2u              /* a helper that failed isn't asked again before */

struct vault;
struct vault_wait;

/* A value on its way into a request. It is gone (vault_bytes: NULL) once its secret is revoked, whoever holds it. */
struct vault_value;

/* Runs the helper of `name`; vault_helped answers. */
typedef void (*vault_help_fn)(void *ctx, uint64_t call, const char *name);
/* The value (a reference, the callee's: vault_release), or NULL and a sentence. The wait is over. */
typedef void (*vault_fn)(void *ctx, struct vault_value *value, const char *why);

struct vault *vault_new(struct loop *loop, const struct gate_placeholder *placeholders, unsigned n, vault_help_fn help, void *ctx);
struct vault *vault_free(struct vault *v);  /* wipes; waits are dropped. Accepts NULL */
unsigned vault_count(const struct vault *v);
int vault_find(const struct vault *v, const char *name); /* an id, or -1 */
const char *vault_name(const struct vault *v, unsigned id);
const char *vault_placeholder(const struct vault *v, unsigned id);

/* The sealed file and the key (-1: there is none, as a helper makes the value), by descriptors that stay the caller's. */
int vault_load(struct vault *v, const char *name, int file_fd, int key_fd, struct err *err);
/* Bits of the secrets that are revoked, until a value comes again. */
uint64_t vault_revoked(const struct vault *v);
/* The id, or -1: not one of ours. Waits are told; held values are wiped. */
int vault_revoke(struct vault *v, const char *name);
/* Takes fd; -1: the helper wasn't started. */
void vault_helped(struct vault *v, uint64_t call, int fd);

/* The value at once (a reference), or NULL: then fn is called from the loop unless *ret_wait is dropped. */
struct vault_value *vault_want(struct vault *v, unsigned id, vault_fn fn, void *ctx, struct vault_wait **ret_wait);
struct vault_wait *vault_drop(struct vault_wait *w);                      /* accepts NULL; returns NULL */
struct vault_value *vault_release(struct vault_value *value);             /* accepts NULL; returns NULL */
const uint8_t *vault_bytes(const struct vault_value *value, size_t *ret_len);
uint64_t vault_generation(const struct vault_value *value);

/* Everything that must be found in answers now. It changes with `epoch`. Ids are those of the secrets. */
struct scan_set *vault_scan(const struct vault *v);
uint64_t vault_epoch(const struct vault *v);
