/* SPDX-License-Identifier: Apache-2.0 */
#include "secrets/wipe.h"

#include <stdalign.h>
#include <stdint.h>
#include <stdlib.h>

#include "base/mem.h"

/* The size goes in front, in as many bytes as keep the alignment. */
struct header {
	alignas(max_align_t) size_t size;
};

void *wipe_malloc(size_t size)
{
	if (size > SIZE_MAX - sizeof(struct header))
		return NULL;
	struct header *h = malloc(sizeof(*h) + size);
	if (!h)
		return NULL;
	h->size = size;
	return h + 1;
}

void wipe_free(void *p)
{
	if (!p)
		return;
	struct header *h = (struct header *)p - 1;
	mem_wipe(p, h->size);
	free(h);
}

size_t wipe_size(const void *p)
{
	return p ? ((const struct header *)p - 1)->size : 0;
}
