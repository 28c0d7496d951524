/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A body that a lock file pins: hashed on its way, and its end held back until the hash is known. Whoever gets all of it got what is pinned; what is
 * not that never becomes whole.
 */
#include "gate/intercept/internal.h"

#include "base/mem.h"

#define TAIL 4096u /* held back: enough that no archive or script is usable without it */

int pinned_begin(struct pin_check *c, const struct pin *pins, size_t n)
{
	*c = (struct pin_check){ .pins = mem_alloc_array(n, sizeof(*pins)), .n = n };
	memcpy(c->pins, pins, n * sizeof(*pins));
	buf_init(&c->tail, TAIL + HTTP_WINDOW + 65536u);
	for (size_t i = 0; i < n; i++) {
		enum digest_kind kind = (enum digest_kind)pins[i].kind;
		if (!c->digests[kind] && !(c->digests[kind] = digest_new(kind)))
			return -1;
	}
	return 0;
}

void pinned_done(struct pin_check *c)
{
	for (size_t i = 0; i < DIGEST_KINDS; i++)
		c->digests[i] = c->digests[i] ? digest_free(c->digests[i]) : NULL;
	c->pins = mem_free(c->pins);
	buf_free(&c->tail);
}

int pinned_data(struct pin_check *c, const uint8_t *p, size_t len, struct buf *out)
{
	for (size_t i = 0; i < DIGEST_KINDS; i++)
		if (c->digests[i])
			digest_update(c->digests[i], p, len);
	if (buf_append(&c->tail, p, len) < 0)
		return -1;
	size_t over = c->tail.len > TAIL ? c->tail.len - TAIL : 0;
	if (over && buf_append(out, c->tail.data, over) < 0)
		return -1;
	buf_consume(&c->tail, over);
	return 0;
}

bool pinned_end(struct pin_check *c, struct buf *out)
{
	uint8_t digest[DIGEST_KINDS][DIGEST_SIZE_MAX];
	bool match = false;
	for (size_t i = 0; i < DIGEST_KINDS; i++)
		if (c->digests[i])
			digest_final(c->digests[i], digest[i]);
	for (size_t i = 0; i < c->n; i++)
		match |= memcmp(c->pins[i].digest, digest[c->pins[i].kind], digest_size((enum digest_kind)c->pins[i].kind)) == 0;
	return match && buf_append(out, c->tail.data, c->tail.len) == 0;
}
