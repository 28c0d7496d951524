/* SPDX-License-Identifier: Apache-2.0 */
/* br (RFC 7932). Windows beyond 16 MiB ("large window") are another format and stay off. */
#include <brotli/decode.h>

#include "base/mem.h"
#include "secrets/unpack-codec.h"

struct brotli_codec {
	struct codec codec;
	BrotliDecoderState *state;
};

static void *brotli_malloc(void *opaque, size_t size)
{
	return codec_malloc(size);
}

static void brotli_free(void *opaque, void *p)
{
	codec_free(p);
}

static int brotli_step(struct codec *codec, struct span_in *in, struct span_out *out, struct err *err)
{
	struct brotli_codec *c = (struct brotli_codec *)codec;
	if (codec->whole)
		return in->len == 0 ? 0 : err_set(err, ERR_PROTOCOL, "the answer goes on after the end of its br stream");
	BrotliDecoderResult r = BrotliDecoderDecompressStream(c->state, &in->len, &in->p, &out->len, &out->p, NULL);
	codec->pending = r == BROTLI_DECODER_RESULT_NEEDS_MORE_OUTPUT;
	codec->whole = r == BROTLI_DECODER_RESULT_SUCCESS;
	if (r == BROTLI_DECODER_RESULT_ERROR)
		return err_set(err, ERR_PROTOCOL, "the answer is no br although it says so: %s",
			BrotliDecoderErrorString(BrotliDecoderGetErrorCode(c->state)));
	return 0;
}

static void brotli_codec_free(struct codec *codec)
{
	struct brotli_codec *c = (struct brotli_codec *)codec;
	BrotliDecoderDestroyInstance(c->state);
	mem_free(c);
}

struct codec *codec_brotli_new(void)
{
	static const struct codec_ops ops = { .step = brotli_step, .free = brotli_codec_free };
	BrotliDecoderState *state = BrotliDecoderCreateInstance(brotli_malloc, brotli_free, NULL);
	if (!state)
		return NULL;
	struct brotli_codec *c = mem_alloc(sizeof(*c));
	c->codec.ops = &ops;
	c->state = state;
	return &c->codec;
}
