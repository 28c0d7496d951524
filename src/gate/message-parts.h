/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What decoders of the supervisor's messages have in common: a message is its type, its fields, and nothing else. A field that is off makes the
 * cursor bad; the end says so once.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/err.h"

/* First u32 of a message. 0 or -1. */
int message_type(const void *p, size_t n, uint32_t *ret);
struct cursor message_begin(const void *p, size_t n, uint32_t type);
/* 0 when everything was read and `valid`; else -1 and a sentence with the message's name and its two ends ("supervisor and gate"). */
int message_end(const struct cursor *c, bool valid, const char *what, const char *between, struct err *err);

/* A byte string into a fixed array, NUL-terminated; returns its length. NULs inside are the caller's question. */
size_t message_bytes(struct cursor *c, char *out, size_t room);
/* The same for a text: a NUL inside, or less than `min` bytes, is bad. */
void message_text(struct cursor *c, char *out, size_t room, size_t min);
bool message_bool(struct cursor *c);
