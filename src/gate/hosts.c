/* SPDX-License-Identifier: Apache-2.0 */
#include "gate/hosts.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>

#include "base/fd.h"
#include "base/mem.h"

struct entry { struct hostname name; struct ip ip; };

struct hosts {
	struct entry *entries;
	size_t n, cap;
};

static void add(struct hosts *h, const struct hostname *name, const struct ip *ip)
{
	if (h->n == HOSTS_ENTRIES_MAX)
		return;
	if (h->n == h->cap) {
		h->cap = h->cap ? h->cap * 2 : 16;
		h->entries = mem_grow_array(h->entries, h->cap, sizeof(*h->entries));
	}
	h->entries[h->n++] = (struct entry){ *name, *ip };
}

/* The next word of a line; an empty one at its end. */
static size_t next_word(const char **p, const char *end, const char **ret)
{
	while (*p < end && strchr(" \t\r", **p))
		(*p)++;
	*ret = *p;
	while (*p < end && **p && !strchr(" \t\r", **p))
		(*p)++;
	return (size_t)(*p - *ret);
}

static void parse_line(struct hosts *h, const char *p, const char *end)
{
	const char *hash = memchr(p, '#', (size_t)(end - p));
	if (hash)
		end = hash;
	const char *word;
	size_t len = next_word(&p, end, &word);
	struct ip ip;
	if (ip_parse(word, len, &ip) < 0)
		return;
	while ((len = next_word(&p, end, &word)) > 0) {
		struct hostname name;
		if (hostname_parse(word, len, &name, NULL) == 0)
			add(h, &name, &ip);
	}
}

struct hosts *hosts_parse(const char *text, size_t len)
{
	struct hosts *h = mem_alloc(sizeof(*h));
	const char *end = text + len;
	while (text < end) {
		const char *lf = memchr(text, '\n', (size_t)(end - text));
		const char *stop = lf ? lf : end;
		parse_line(h, text, stop);
		text = lf ? lf + 1 : end;
	}
	return h;
}

struct hosts *hosts_read(const char *path, struct err *err)
{
	cleanup_free char *text = NULL;
	size_t len = 0;
	struct err e = ERR_INIT;
	if (fd_read_file_at(AT_FDCWD, path, HOSTS_TEXT_MAX, &text, &len, &e) < 0 && e.sys != ENOENT) {
		err_set(err, e.code, "%s", e.text);
		return NULL;
	}
	return hosts_parse(text ? text : "", len);
}

struct hosts *hosts_free(struct hosts *h)
{
	if (h)
		mem_free(h->entries);
	return mem_free(h);
}

size_t hosts_lookup(const struct hosts *h, const struct hostname *name, struct ip *ret, size_t room)
{
	size_t n = 0;
	for (size_t i = 0; i < h->n && n < room; i++)
		if (hostname_equal(&h->entries[i].name, name))
			ret[n++] = h->entries[i].ip;
	return n;
}
