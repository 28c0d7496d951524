/* SPDX-License-Identifier: Apache-2.0 */
/* zstd (RFC 8878), windows up to 8 MiB as RFC 9659 says for HTTP. Several frames are one body. */
#define ZSTD_STATIC_LINKING_ONLY /* ZSTD_createDCtx_advanced: memory that is wiped */
#include <zstd.h>

#include "base/mem.h"
#include "secrets/unpack-codec.h"

#define WINDOW_LOG_MAX 23

struct zstd_codec {
	struct codec codec;
	ZSTD_DCtx *ctx;
};

static void *zstd_malloc(void *opaque, size_t size)
{
	return codec_malloc(size);
}

static void zstd_free(void *opaque, void *p)
{
	codec_free(p);
}

static int zstd_step(struct codec *codec, struct span_in *in, struct span_out *out, struct err *err)
{
	struct zstd_codec *c = (struct zstd_codec *)codec;
	if (codec->whole && in->len == 0)
		return 0;
	ZSTD_inBuffer i = { in->p, in->len, 0 };
	ZSTD_outBuffer o = { out->p, out->len, 0 };
	size_t r = ZSTD_decompressStream(c->ctx, &o, &i);
	*in = (struct span_in){ in->p + i.pos, in->len - i.pos };
	*out = (struct span_out){ out->p + o.pos, out->len - o.pos };
	if (ZSTD_isError(r))
		return err_set(err, ERR_PROTOCOL, "the answer is no zstd although it says so, or needs too much memory: %s", ZSTD_getErrorName(r));
	codec->whole = r == 0;
	codec->pending = r != 0 && out->len == 0;
	return 0;
}

static void zstd_codec_free(struct codec *codec)
{
	struct zstd_codec *c = (struct zstd_codec *)codec;
	ZSTD_freeDCtx(c->ctx);
	mem_free(c);
}

struct codec *codec_zstd_new(void)
{
	static const struct codec_ops ops = { .step = zstd_step, .free = zstd_codec_free };
	ZSTD_DCtx *ctx = ZSTD_createDCtx_advanced((ZSTD_customMem){ zstd_malloc, zstd_free, NULL });
	if (!ctx || ZSTD_isError(ZSTD_DCtx_setParameter(ctx, ZSTD_d_windowLogMax, WINDOW_LOG_MAX))) {
		ZSTD_freeDCtx(ctx);
		return NULL;
	}
	struct zstd_codec *c = mem_alloc(sizeof(*c));
	c->codec.ops = &ops;
	c->ctx = ctx;
	return &c->codec;
}
