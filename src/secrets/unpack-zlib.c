/* SPDX-License-Identifier: Apache-2.0 */
/* gzip (several members are one body, RFC 1952 2.2) and deflate, which servers send with the zlib header as they must, or without. */
#include <string.h>

#include <zlib.h>

#include "base/mem.h"
#include "secrets/unpack-codec.h"

#define GZIP_BITS (15 + 16)
#define ZLIB_BITS 15
#define RAW_BITS (-15)
#define HEAD_SIZE 2u

struct zlib_codec {
	struct codec codec;
	z_stream z;
	bool gzip, ready;
	uint8_t head[HEAD_SIZE]; /* of deflate: tells with from without */
	size_t n_head;
};

static void *zlib_malloc(void *opaque, unsigned n, unsigned size)
{
	return codec_malloc((size_t)n * size);
}

static void zlib_free(void *opaque, void *p)
{
	codec_free(p);
}

static int start(struct zlib_codec *c, int bits, struct err *err)
{
	c->z = (z_stream){ .zalloc = zlib_malloc, .zfree = zlib_free };
	if (inflateInit2(&c->z, bits) != Z_OK)
		return err_set(err, ERR_MEMORY, "no memory to unpack an answer");
	c->ready = true;
	return 0;
}

static int failed(const struct zlib_codec *c, int r, struct err *err)
{
	const char *what = c->gzip ? "gzip" : "deflate";
	if (r == Z_MEM_ERROR)
		return err_set(err, ERR_MEMORY, "no memory to unpack an answer");
	if (r == Z_NEED_DICT)
		return err_set(err, ERR_PROTOCOL, "the answer is packed with a dictionary that %s has not", what);
	return err_set(err, ERR_PROTOCOL, "the answer is no %s although it says so: %s", what, c->z.msg ? c->z.msg : "damaged");
}

static int inflate_some(struct zlib_codec *c, struct span_in *in, struct span_out *out, struct err *err)
{
	c->z.next_in = (Bytef *)(uintptr_t)in->p;
	c->z.avail_in = (uInt)(in->len > UINT32_MAX ? UINT32_MAX : in->len);
	c->z.next_out = out->p;
	c->z.avail_out = (uInt)(out->len > UINT32_MAX ? UINT32_MAX : out->len);
	int r = inflate(&c->z, Z_NO_FLUSH);
	size_t taken = (size_t)(c->z.next_in - in->p), given = (size_t)(c->z.next_out - out->p);
	*in = (struct span_in){ in->p + taken, in->len - taken };
	*out = (struct span_out){ out->p + given, out->len - given };
	c->codec.pending = r == Z_OK && out->len == 0;
	if (r == Z_STREAM_END)
		c->codec.whole = true;
	else if (r != Z_OK && r != Z_BUF_ERROR)
		return failed(c, r, err);
	return 0;
}

/* After an end: another member, or nothing. */
static int again(struct zlib_codec *c, struct err *err)
{
	if (!c->gzip)
		return err_set(err, ERR_PROTOCOL, "the answer goes on after the end of its deflate stream");
	c->codec.whole = false;
	int r = inflateReset2(&c->z, GZIP_BITS);
	return r == Z_OK ? 0 : failed(c, r, err);
}

static int gzip_step(struct codec *codec, struct span_in *in, struct span_out *out, struct err *err)
{
	struct zlib_codec *c = (struct zlib_codec *)codec;
	if (codec->whole && in->len == 0)
		return 0;
	if (codec->whole && again(c, err) < 0)
		return -1;
	if (!c->ready && start(c, GZIP_BITS, err) < 0)
		return -1;
	return inflate_some(c, in, out, err);
}

static bool has_zlib_header(const uint8_t head[HEAD_SIZE])
{
	return (head[0] & 0x0f) == 8 && head[0] >> 4 <= 7 && (head[0] * 256u + head[1]) % 31 == 0;
}

/* Collects the first two bytes, then feeds them. */
static int deflate_start(struct zlib_codec *c, struct span_in *in, struct span_out *out, struct err *err)
{
	while (c->n_head < HEAD_SIZE && in->len > 0) {
		c->head[c->n_head++] = *in->p++;
		in->len--;
	}
	if (c->n_head < HEAD_SIZE)
		return 0;
	if (start(c, has_zlib_header(c->head) ? ZLIB_BITS : RAW_BITS, err) < 0)
		return -1;
	/* Two bytes are taken whole: no output needs more room than there is for them but a pathological one, which inflate keeps. */
	struct span_in head = { c->head, HEAD_SIZE };
	return inflate_some(c, &head, out, err);
}

static int deflate_step(struct codec *codec, struct span_in *in, struct span_out *out, struct err *err)
{
	struct zlib_codec *c = (struct zlib_codec *)codec;
	if (codec->whole)
		return in->len == 0 ? 0 : again(c, err);
	if (!c->ready && deflate_start(c, in, out, err) < 0)
		return -1;
	if (!c->ready || codec->whole)
		return 0;
	return inflate_some(c, in, out, err);
}

static void zlib_codec_free(struct codec *codec)
{
	struct zlib_codec *c = (struct zlib_codec *)codec;
	if (c->ready)
		inflateEnd(&c->z);
	mem_free(c);
}

static const struct codec_ops gzip_ops = { .step = gzip_step, .free = zlib_codec_free };
static const struct codec_ops deflate_ops = { .step = deflate_step, .free = zlib_codec_free };

struct codec *codec_gzip_new(void)
{
	struct zlib_codec *c = mem_alloc(sizeof(*c));
	c->codec.ops = &gzip_ops;
	c->gzip = true;
	return &c->codec;
}

struct codec *codec_deflate_new(void)
{
	struct zlib_codec *c = mem_alloc(sizeof(*c));
	c->codec.ops = &deflate_ops;
	return &c->codec;
}
