/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Memory. Sizes that a hostile peer can influence go through buf.h, which has ceilings and reports
 * failure. For our own small, bounded objects an allocation failure ends the process with one sentence
 * and status 125: every process here serves one sandbox, and ending it tears that sandbox down (fail closed).
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <string.h>

void *mem_alloc(size_t size);                         /* zeroed; never NULL */
void *mem_alloc_array(size_t count, size_t size);     /* zeroed; overflow-checked */
void *mem_grow_array(void *p, size_t count, size_t size); /* realloc; new bytes are not zeroed */
char *mem_strdup(const char *s);                      /* NULL gives NULL */
char *mem_strndup(const char *s, size_t n);           /* copies at most n bytes and terminates */
char *mem_printf(const char *format, ...) __attribute__((format(printf, 1, 2)));
void mem_wipe(void *p, size_t size);                  /* not optimised away */
void *mem_free(void *p);                              /* frees; returns NULL for p = mem_free(p) */

static inline bool str_eq(const char *a, const char *b) { return strcmp(a, b) == 0; }
bool str_starts(const char *s, const char *prefix);
bool str_ends(const char *s, const char *suffix);

/* Scope cleanup for heap pointers: cleanup_free char *s = …; hand over with mem_steal(&s). */
void mem_cleanup_free(void *pp);
#define cleanup_free __attribute__((cleanup(mem_cleanup_free)))
#define mem_steal(pp) __extension__({ __typeof__(*(pp)) stolen_ = *(pp); *(pp) = NULL; stolen_; })

#define ARRAY_LEN(a) (sizeof(a) / sizeof((a)[0]))
#define CONTAINER_OF(ptr, type, member) ((type *)((char *)(ptr) - offsetof(type, member)))
