/* SPDX-License-Identifier: Apache-2.0 */
#include "image/content.h"

#include <errno.h>
#include <sodium.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/mem.h"

#define BLOCK 65536u
#define PLAIN_HOLES_MAX (1024 * 1024)
#define SPARSE_LABEL "bulkhead-sparse-v1\n"

bool content_is_sparse(const struct stat *st)
{
	return st->st_size > PLAIN_HOLES_MAX && (st->st_size - PLAIN_HOLES_MAX) / 512 > st->st_blocks;
}

/* Start of the first block at or after `pos` that may hold data; `size` when there is none. File systems that don't know holes
 * say "all data". */
static off_t next_data(int fd, off_t pos, off_t size)
{
	off_t data = lseek(fd, pos, SEEK_DATA);
	if (data < 0)
		return errno == ENXIO ? size : pos;
	data -= data % BLOCK;
	return data < pos ? pos : data;
}

/* Reads the block at pos, at most `want` bytes; short only at the end of the file. */
static ssize_t read_block(int fd, void *block, size_t want, off_t pos)
{
	size_t got = 0;
	while (got < want) {
		ssize_t n = pread(fd, (char *)block + got, want - got, pos + (off_t)got);
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return -errno;
		if (n == 0)
			break;
		got += (size_t)n;
	}
	return (ssize_t)got;
}

static size_t block_size(off_t pos, off_t size)
{
	return size - pos < (off_t)BLOCK ? (size_t)(size - pos) : BLOCK;
}

static void hash_u64(crypto_generichash_state *h, uint64_t v)
{
	uint8_t bytes[8];
	for (int i = 0; i < 8; i++)
		bytes[i] = (uint8_t)(v >> (56 - 8 * i));
	crypto_generichash_update(h, bytes, sizeof(bytes));
}

/* A running digest of either form, fed block by block with rising offsets. */
struct digest {
	crypto_generichash_state state;
	bool sparse;
	off_t pos; /* plain form: bytes hashed so far */
};

static void digest_begin(struct digest *d, bool sparse, off_t size)
{
	d->sparse = sparse;
	d->pos = 0;
	crypto_generichash_init(&d->state, NULL, 0, 32);
	if (!sparse)
		return;
	crypto_generichash_update(&d->state, (const uint8_t *)SPARSE_LABEL, sizeof(SPARSE_LABEL) - 1);
	hash_u64(&d->state, (uint64_t)size);
}

static void digest_zeroes_to(struct digest *d, off_t end)
{
	static const uint8_t zeroes[BLOCK];
	while (d->pos < end) {
		size_t n = block_size(d->pos, end);
		crypto_generichash_update(&d->state, zeroes, n);
		d->pos += (off_t)n;
	}
}

static void digest_block(struct digest *d, const uint8_t *block, size_t n, off_t pos)
{
	if (d->sparse && !sodium_is_zero(block, n)) {
		hash_u64(&d->state, (uint64_t)pos);
		crypto_generichash_update(&d->state, block, n);
	} else if (!d->sparse) {
		digest_zeroes_to(d, pos);
		crypto_generichash_update(&d->state, block, n);
		d->pos = pos + (off_t)n;
	}
}

static void digest_end(struct digest *d, off_t size, char out[DIGEST_HEX_SIZE])
{
	uint8_t hash[32];
	if (!d->sparse)
		digest_zeroes_to(d, size);
	crypto_generichash_final(&d->state, hash, sizeof(hash));
	sodium_bin2hex(out, DIGEST_HEX_SIZE, hash, sizeof(hash));
}

/* Walks the data of `from`; writes it to `to` (unless -1) and into the digest (unless NULL). */
static int walk_data(int from, off_t size, int to, struct digest *d)
{
	cleanup_free uint8_t *block = mem_alloc(BLOCK);
	for (off_t pos = next_data(from, 0, size); pos < size;) {
		ssize_t n = read_block(from, block, block_size(pos, size), pos);
		if (n < 0)
			return (int)n;
		if (n == 0)
			return -ESTALE; /* it became shorter under us */
		for (ssize_t done = 0; to >= 0 && done < n;) {
			ssize_t w = pwrite(to, block + done, (size_t)(n - done), pos + done);
			if (w < 0 && errno != EINTR)
				return -errno;
			done += w < 0 ? 0 : w;
		}
		if (d)
			digest_block(d, block, (size_t)n, pos);
		pos = next_data(from, pos + n, size);
	}
	return 0;
}

int content_digest(int fd, bool sparse, char out[DIGEST_HEX_SIZE])
{
	struct stat st;
	struct digest d;
	if (fstat(fd, &st) < 0)
		return -errno;
	digest_begin(&d, sparse, st.st_size);
	int r = walk_data(fd, st.st_size, -1, &d);
	if (r == 0)
		digest_end(&d, st.st_size, out);
	return r;
}

int content_copy(int from, int to, const char *digest, bool sparse)
{
	struct stat st;
	struct digest d;
	char hex[DIGEST_HEX_SIZE];
	if (fstat(from, &st) < 0 || ftruncate(to, st.st_size) < 0)
		return -errno;
	if (digest)
		digest_begin(&d, sparse, st.st_size);
	int r = walk_data(from, st.st_size, to, digest ? &d : NULL);
	if (r < 0 || !digest)
		return r;
	digest_end(&d, st.st_size, hex);
	return strcmp(hex, digest) == 0 ? 0 : -EBADMSG;
}

int content_equal(int a, int b)
{
	struct stat sa, sb;
	if (fstat(a, &sa) < 0 || fstat(b, &sb) < 0)
		return -errno;
	if (sa.st_size != sb.st_size)
		return 0;
	off_t size = sa.st_size;
	cleanup_free uint8_t *blocks = mem_alloc(2 * BLOCK);
	for (off_t pos = 0; pos < size;) {
		off_t da = next_data(a, pos, size), db = next_data(b, pos, size);
		pos = da < db ? da : db;
		if (pos >= size)
			break;
		ssize_t na = read_block(a, blocks, block_size(pos, size), pos);
		ssize_t nb = read_block(b, blocks + BLOCK, block_size(pos, size), pos);
		if (na < 0 || nb < 0)
			return (int)(na < 0 ? na : nb);
		if (na != nb || na == 0 || memcmp(blocks, blocks + BLOCK, (size_t)na) != 0)
			return 0;
		pos += na;
	}
	return 1;
}
