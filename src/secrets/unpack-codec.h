/* SPDX-License-Identifier: Apache-2.0 */
/* For the files of unpack.h: one content coding. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"

/* Bytes to take and room to fill; both shrink from the front. */
struct span_in { const uint8_t *p; size_t len; };
struct span_out { uint8_t *p; size_t len; };

struct codec;
struct codec_ops {
	/* Moves what it can. 0 or -1. Neither in nor out moved: it needs more of one. */
	int (*step)(struct codec *c, struct span_in *in, struct span_out *out, struct err *err);
	void (*free)(struct codec *c);
};
/* First member of each kind. */
struct codec {
	const struct codec_ops *ops;
	bool whole;	/* ended where one may end: nothing is missing when nothing more comes */
	bool pending;	/* it has more to give than there was room for */
};

/* For the libraries, whose windows a server chooses: all of them together within UNPACK_MEMORY_MAX (else NULL), and zeroed when freed. */
void *codec_malloc(size_t size);
void codec_free(void *p);

/* NULL: no memory. */
struct codec *codec_gzip_new(void);
struct codec *codec_deflate_new(void);
struct codec *codec_brotli_new(void);
struct codec *codec_zstd_new(void);
