/* SPDX-License-Identifier: Apache-2.0 */
#include "image/text-source.h"

#include <errno.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/mem.h"
#include "image/content.h"

#define BINARY_LOOK 8000u
#define CHUNK 65536u

void source_from_text(struct source *s, char *text)
{
	*s = (struct source){ .exists = true, .text = text, .len = strlen(text), .fd = -1 };
}

static int look_for_nul(struct source *s)
{
	char start[BINARY_LOOK];
	ssize_t n = pread(s->fd, start, sizeof(start), 0);
	if (n < 0)
		return -errno;
	s->binary = memchr(start, '\0', (size_t)n) != NULL;
	return 0;
}

static int read_text(struct source *s, size_t size)
{
	s->text = mem_alloc(size + 1);
	while (s->len < size) {
		ssize_t n = pread(s->fd, s->text + s->len, size - s->len, (off_t)s->len);
		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return n < 0 ? -errno : 0;
		s->len += (size_t)n;
	}
	return 0;
}

int source_from_file(struct source *s, int fd)
{
	struct stat st;
	*s = (struct source){ .exists = true, .fd = fd };
	int r = fstat(fd, &st) < 0 ? -errno : look_for_nul(s);
	if (r == 0 && content_is_sparse(&st))
		s->binary = true;
	if (r == 0 && !s->binary && (uint64_t)st.st_size <= SOURCE_MEMORY_MAX)
		r = read_text(s, (size_t)st.st_size);
	if (r < 0)
		source_done(s);
	return r;
}

void source_done(struct source *s)
{
	mem_free(s->text);
	fd_close(&s->fd);
	*s = SOURCE_NONE;
}

int source_each(const struct source *s, int (*fn)(void *ctx, const char *data, size_t len), void *ctx)
{
	char chunk[CHUNK];
	if (!s->exists)
		return 0;
	if (s->text)
		return s->len > 0 ? fn(ctx, s->text, s->len) : 0;
	for (off_t at = 0;;) {
		ssize_t n = pread(s->fd, chunk, sizeof(chunk), at);
		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return n < 0 ? -errno : 0;
		int r = fn(ctx, chunk, (size_t)n);
		if (r != 0)
			return r;
		at += n;
	}
}

struct count { uint64_t lines; char last; };

static int count_chunk(void *ctx, const char *data, size_t len)
{
	struct count *c = ctx;
	for (const char *p = data, *end = data + len; (p = memchr(p, '\n', (size_t)(end - p))); p++)
		c->lines++;
	c->last = data[len - 1];
	return 0;
}

int source_count(struct source *s)
{
	struct count c = { 0, '\n' };
	int r = source_each(s, count_chunk, &c);
	s->lines = c.lines + (c.last != '\n');
	return r;
}
