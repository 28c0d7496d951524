/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Secrets as they lie on disk and in memory. Written once from stdin, sealed to the store's public key; there is no way to read one back: only
 * bulkhead-upstream opens sealed bytes, after it has confined itself, from descriptors that its supervisor passes on unread.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/err.h"

#define SECRET_NAME_MAX 64u                /* [A-Za-z][A-Za-z0-9_.-]* */
#define SECRET_VALUE_MIN 8u                /* shorter ones can't be told from ordinary bytes in responses */
#define SECRET_VALUE_MAX (16u * 1024u)
#define SECRET_FILE_MAX (64u * 1024u)
#define SECRETS_MAX 64u                    /* of one sandbox */
#define SECRET_KEY_SIZE 64u                /* of the key file: crypto_box secret key, then public key */

bool secret_name_valid(const char *name);
/* Printable ASCII without blanks at the ends, of the right length, nothing that can't stand in a header: 0 or -1 + sentence. */
int secret_value_check(const void *p, size_t len, struct err *err);

/* A value in memory: on pages of its own that are left out of core files, locked as far as RLIMIT_MEMLOCK goes (beyond that it is no error: the system's swap may
 * then see it), read-only, wiped when freed, never printed. */
struct secret_value;
/* Checks (secret_value_check). NULL + err. */
struct secret_value *secret_value_new(const void *p, size_t len, struct err *err);
struct secret_value *secret_value_free(struct secret_value *v);
const uint8_t *secret_value_bytes(const struct secret_value *v, size_t *ret_len);
/* Reads one to the end of `fd`, or with `line` to the end of a line; one newline at its end (LF or CRLF) is left out. 0, or -1: ERR_CLOSED when nothing came. */
int secret_value_read(int fd, bool line, struct secret_value **ret, struct err *err);
bool secret_value_equal(const struct secret_value *a, const struct secret_value *b);

enum secret_kind { SECRET_STATIC, SECRET_HELPER };

/* What a sealed file says besides the value; readable without the key. */
struct secret_about {
	char name[SECRET_NAME_MAX + 1];
	enum secret_kind kind;
	uint64_t created_ns, changed_ns;   /* realtime */
	uint64_t generation;               /* counts from 1 with each `set` */
	char **helper;                     /* HELPER: command (absolute path) and arguments, NULL-terminated; else NULL */
};
void secret_about_done(struct secret_about *a);
const char *secret_kind_name(enum secret_kind kind); /* "static", "helper" */

/* File form: "bulkhead-secret 1\n", one line of JSON (secret_about), the sealed box (crypto_box_seal of value; none for HELPER). The JSON is bound
 * to the sealed value (its hash is sealed with it), so that a value can't be put under another name. */
int secret_file_encode(struct buf *out, const struct secret_about *about, const void *value, size_t len, const uint8_t public_key[32], struct err *err);
int secret_file_about(const void *p, size_t len, struct secret_about *ret, struct err *err);
/* For a HELPER *ret is NULL: it has no value. Free both with secret_about_done and secret_value_free. */
int secret_file_open(const void *p, size_t len, const uint8_t key[SECRET_KEY_SIZE], struct secret_about *ret_about, struct secret_value **ret, struct err *err);

/* What a helper printed: one JSON object {"value": "…", "expires_at": "RFC 3339" | "expires_in": seconds}, at most SECRET_FILE_MAX. Neither: not kept beyond
 * one use. *ret_expires_ns is realtime, 0: at once. */
int secret_helper_parse(const void *p, size_t len, uint64_t now_ns, struct secret_value **ret, uint64_t *ret_expires_ns, struct err *err);

/* ---- the store: a folder (0700) of such files (NAME.secret) and the key (0600), below the state folder ---- */

#define SECRETS_FOLDER "secrets"
#define SECRETS_KEY_FILE "key"
/* Path of another key file: so that it can lie on another disk, or come from the host's credential store. */
#define SECRETS_KEY_ENV "BULKHEAD_SECRETS_KEY"
#define SECRETS_STORED_MAX 1024u

struct secret_store;
/* Refuses a folder or a key of another owner, or that group or others may use in any way. Without `create`, a missing folder is an empty
 * store. NULL + err. */
struct secret_store *secret_store_open(int state_dir_fd, bool create, struct err *err);
struct secret_store *secret_store_free(struct secret_store *s);
/* Make the key on first use. Atomic: the old value stays until the new one is on disk. Concurrent ones wait for each other. Only the public half of the key is
 * read. */
int secret_store_set(struct secret_store *s, const char *name, const void *value, size_t len, struct err *err);
int secret_store_set_helper(struct secret_store *s, const char *name, char *const argv[], struct err *err);
/* ERR_NOT_FOUND when there is none. */
int secret_store_remove(struct secret_store *s, const char *name, struct err *err);
/* Sorted by name. Free with secret_about_list_free. A damaged file is an error that names it. */
int secret_store_list(struct secret_store *s, struct secret_about **ret, size_t *ret_n, struct err *err);
void secret_about_list_free(struct secret_about *list, size_t n);
/* Descriptors for bulkhead-upstream, at offset 0; *ret_about is what may be known. A HELPER needs no key: *ret_key_fd is -1. ERR_NOT_FOUND: there is no such secret. */
int secret_store_descriptors(struct secret_store *s, const char *name, int *ret_file_fd, int *ret_key_fd, struct secret_about *ret_about, struct err *err);
/* For bulkhead-upstream: reads what descriptors of the store hold. The key goes to memory that is wiped; call secret_key_done. */
struct secret_key { uint8_t *bytes; };      /* SECRET_KEY_SIZE bytes, in memory as of secret_value */
int secret_key_read(int fd, struct secret_key *ret, struct err *err);
void secret_key_done(struct secret_key *k);
int secret_file_read(int fd, const struct secret_key *key, struct secret_about *ret_about, struct secret_value **ret, struct err *err);
