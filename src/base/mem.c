/* SPDX-License-Identifier: Apache-2.0 */
#include "base/mem.h"

#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#define EXIT_OWN_FAILURE 125

__attribute__((noreturn))
static void die_out_of_memory(void)
{
	static const char text[] = "bulkhead: out of memory; the process ends and its sandbox with it\n";
	ssize_t ignored = write(STDERR_FILENO, text, sizeof(text) - 1);
	(void)ignored;
	_exit(EXIT_OWN_FAILURE);
}

void *mem_alloc(size_t size)
{
	return mem_alloc_array(1, size);
}

void *mem_alloc_array(size_t count, size_t size)
{
	/* calloc checks the product; one byte at least, so that NULL always means failure. */
	void *p = count == 0 || size == 0 ? calloc(1, 1) : calloc(count, size);
	if (!p)
		die_out_of_memory();
	return p;
}

void *mem_grow_array(void *p, size_t count, size_t size)
{
	size_t total;
	if (__builtin_mul_overflow(count, size, &total))
		die_out_of_memory();
	void *grown = realloc(p, total ? total : 1);
	if (!grown)
		die_out_of_memory();
	return grown;
}

char *mem_strdup(const char *s)
{
	return s ? mem_strndup(s, strlen(s)) : NULL;
}

char *mem_strndup(const char *s, size_t n)
{
	size_t len = strnlen(s, n);
	char *copy = mem_alloc(len + 1);
	memcpy(copy, s, len);
	return copy;
}

char *mem_printf(const char *format, ...)
{
	char *text;
	va_list ap;
	va_start(ap, format);
	int n = vasprintf(&text, format, ap);
	va_end(ap);
	if (n < 0)
		die_out_of_memory();
	return text;
}

void mem_wipe(void *p, size_t size)
{
	if (p)
		explicit_bzero(p, size);
}

void *mem_free(void *p)
{
	free(p);
	return NULL;
}

bool str_starts(const char *s, const char *prefix)
{
	return strncmp(s, prefix, strlen(prefix)) == 0;
}

bool str_ends(const char *s, const char *suffix)
{
	size_t len = strlen(s), tail = strlen(suffix);
	return len >= tail && memcmp(s + len - tail, suffix, tail) == 0;
}

void mem_cleanup_free(void *pp)
{
	free(*(void **)pp);
}
