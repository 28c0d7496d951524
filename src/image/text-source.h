/* SPDX-License-Identifier: Apache-2.0 */
/* One side of a comparison: the bytes of a file or link, in memory when they are few, streamed when they are many. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#define SOURCE_MEMORY_MAX (32u * 1024u * 1024u)

struct source {
	bool exists, binary;
	char *text;      /* NULL: read from fd */
	size_t len;
	int fd;
	uint64_t lines;  /* counted by source_count */
};
#define SOURCE_NONE ((struct source){ .fd = -1 })

/* Takes the text (mem_alloc'd). */
void source_from_text(struct source *s, char *text);
/* Takes the descriptor. 0 or -errno. Binary: a NUL among the first 8000 bytes (git's rule), or large holes. */
int source_from_file(struct source *s, int fd);
void source_done(struct source *s);
/* All bytes in order; fn returning non-zero stops and is returned; -errno when the file can't be read. */
int source_each(const struct source *s, int (*fn)(void *ctx, const char *data, size_t len), void *ctx);
int source_count(struct source *s);
