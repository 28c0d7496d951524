/* SPDX-License-Identifier: Apache-2.0 */
/* nghttp2 copies the names and values of each head it sends; some of them are secret. What it gives back is wiped. */
#include <malloc.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "net/http2-conn.h"

static void *take(size_t size, void *ctx) { return malloc(size); }
static void *take_zeroed(size_t n, size_t size, void *ctx) { return calloc(n, size); }

static void give_back(void *p, void *ctx)
{
	if (p)
		mem_wipe(p, malloc_usable_size(p));
	free(p);
}

static void *resize(void *p, size_t size, void *ctx)
{
	void *fresh = malloc(size);
	size_t had = p ? malloc_usable_size(p) : 0;
	if (!fresh)
		return NULL;
	if (had)
		memcpy(fresh, p, had < size ? had : size);
	give_back(p, ctx);
	return fresh;
}

nghttp2_mem *http2_memory(void)
{
	static nghttp2_mem memory = { NULL, take, give_back, take_zeroed, resize };
	return &memory;
}
