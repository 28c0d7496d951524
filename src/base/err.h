/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Errors as values: a code a program can act on, an errno where the kernel gave one, and one
 * sentence for a person that names the thing, the cause and the fix.
 *
 * Contract of every fallible function in this tree:
 *  - returns 0 (or a non-negative result) on success and -1 on failure, unless its header says otherwise;
 *  - takes `struct err *err` as its last parameter and fills it on failure; `err` may be NULL;
 *  - outputs named `ret_…` are written on success only;
 *  - library code never prints and never exits. Programs print with err_print().
 */
#pragma once

#include <stddef.h>

enum err_code {
	ERR_NONE = 0,
	ERR_SYSTEM,      /* a system call failed; `sys` holds errno */
	ERR_MEMORY,      /* out of memory, or a ceiling on memory was reached */
	ERR_USAGE,       /* the caller's words are off: option, argument */
	ERR_INVALID,     /* input that doesn't parse or validate: policy, name, record */
	ERR_UNSUPPORTED, /* valid, but this version or this host can't enforce it */
	ERR_PROTOCOL,    /* the other side of a pipe broke the protocol */
	ERR_CLOSED,      /* the other side is gone */
	ERR_LIMIT,       /* a ceiling was reached */
	ERR_DENIED,      /* policy or permission says no */
	ERR_NOT_FOUND,
	ERR_EXISTS,
	ERR_CONFLICT,    /* the world changed meanwhile */
	ERR_CORRUPT,     /* stored data fails its check */
	ERR_TIMEOUT,
	ERR_CODE_MAX,
};

struct err {
	enum err_code code;
	int sys;        /* errno, or 0 */
	char text[768]; /* one sentence, no newline, always NUL-terminated; cut with "…" when too long */
};

#define ERR_INIT ((struct err){ .code = ERR_NONE })

/* Each of these returns -1, so that a failing function can `return err_set(…)`. All accept err == NULL. */
int err_set(struct err *err, enum err_code code, const char *format, ...)
	__attribute__((format(printf, 3, 4)));

/* As err_set with ERR_SYSTEM; appends ": " and strerror(sysno). ENOMEM becomes ERR_MEMORY. */
int err_sys(struct err *err, int sysno, const char *format, ...)
	__attribute__((format(printf, 3, 4)));

/* Puts "context: " in front of the sentence while the error rises. Code and sys stay. */
int err_wrap(struct err *err, const char *format, ...)
	__attribute__((format(printf, 2, 3)));

/* Short stable identifier of a code, e.g. "unsupported"; for --json. Never NULL. */
const char *err_code_name(enum err_code code);

/* Writes "PROGRAM: sentence\n" to stderr in one write(2). */
void err_print(const char *program, const struct err *err);
