/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Escape attempts, to be made from inside a box. Each attempt is one row of a table and says how it must end, so that a missing tool, file or kernel
 * feature can't pass for a refusal: `errors` are the only errnos that count, `denied` is the system call that must be on the record.
 *
 * An attempt runs in a process of its own, whose command name is the attempt's, and ends in one of the three functions below.
 */
#pragma once

#include <stddef.h>

struct attempt {
	const char *name;          /* at most 15 characters: it is the process's name on the record */
	const char *denied;        /* system call that the record must name; NULL when the kernel refuses without a notice */
	const char *errors;        /* "EPERM|EACCES"; a signal's name for a call that kills; "ok" for an attempt that proves itself by refused_by() */
	void (*run)(void);         /* or, when NULL, the plain call below; a result that isn't negative is a success */
	long number;
	long args[6];
};
struct attempt_group {
	const char *name;
	const struct attempt *attempts;
	size_t n;
};

extern const struct attempt_group namespace_attempts, mount_attempts, process_attempts, proc_attempts, kernel_attempts, clock_attempts, socket_attempts,
	family_attempts, reach_attempts, file_attempts, privilege_attempts, device_attempts, terminal_attempts;

/* How an attempt ends. None returns. */
void __attribute__((noreturn)) refused(int error);
void __attribute__((noreturn)) refused_by(const char *what);                                  /* no errno, but shown to have had no effect */
void __attribute__((noreturn, format(printf, 1, 2))) succeeded(const char *format, ...);
void __attribute__((noreturn, format(printf, 1, 2))) broken(const char *format, ...);         /* could not even be tried: fails the test */
/* Negative: refused with errno; else succeeded. */
void __attribute__((noreturn)) conclude(long result, const char *meaning);

/* The value of KEY=VALUE on the command line; broken() when it is missing. */
const char *argument(const char *key);
long number_argument(const char *key);

/* Amounts rather than attempts: bombs.c. Each prints how far it came. */
int bomb_main(int argc, char **argv);

#define ATTEMPT_GROUP(identifier, text, rows) const struct attempt_group identifier = { text, rows, sizeof(rows) / sizeof((rows)[0]) }
