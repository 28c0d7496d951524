/* SPDX-License-Identifier: Apache-2.0 */
/* For the files of this folder: the key file. */
#pragma once

#include "secrets/secret.h"

/* Opens the key file: $BULKHEAD_SECRETS_KEY, else "key" in the folder. *ret_fd is -1 when there is none; 0 or -1. */
int key_open(int folder_fd, const char *folder_path, int *ret_fd, struct err *err);
/* A fresh pair, whole and on disk, or nothing. The caller holds the store's lock and has seen that there is none. */
int key_make(int folder_fd, struct err *err);
/* The public half alone. */
int key_read_public(int fd, uint8_t ret[32], struct err *err);
/* What messages call the key file. Free with mem_free. */
char *key_path(const char *folder_path);

/* Of what the store keeps: nobody but the owner may do anything. `what` is for the sentence, which tells the fix. */
int private_check(int fd, bool folder, const char *path, struct err *err);
