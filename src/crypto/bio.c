/* SPDX-License-Identifier: Apache-2.0 */
/* The library's view of a connection: two queues in place of a socket. */
#include <openssl/bio.h>
#include <string.h>

#include "crypto/internal.h"

int queue_append(struct queue *q, const void *p, size_t len)
{
	if (q->start && len > q->buf.cap - q->buf.len) {
		buf_consume(&q->buf, q->start);
		q->start = 0;
	}
	return buf_append(&q->buf, p, len);
}

void queue_consume(struct queue *q, size_t len)
{
	q->start += len;
	if (q->start < q->buf.len)
		return;
	q->start = 0;
	buf_clear(&q->buf);
}

void queue_release(struct queue *q)
{
	if (queue_len(q) == 0) {
		q->start = 0;
		buf_free(&q->buf);
	}
}

static int bio_read(BIO *bio, char *p, size_t len, size_t *ret)
{
	struct tls *t = BIO_get_data(bio);
	BIO_clear_retry_flags(bio);
	size_t n = queue_len(&t->in);
	if (n == 0) {
		if (!t->in_end)
			BIO_set_retry_read(bio);
		return 0;
	}
	if (n > len)
		n = len;
	memcpy(p, queue_data(&t->in), n);
	queue_consume(&t->in, n);
	*ret = n;
	return 1;
}

/* All or nothing: there is no peer to wait for here, and a ceiling reached is an error. */
static int bio_write(BIO *bio, const char *p, size_t len, size_t *ret)
{
	struct tls *t = BIO_get_data(bio);
	BIO_clear_retry_flags(bio);
	if (queue_append(&t->out, p, len) < 0)
		return 0;
	t->wrote = true;
	*ret = len;
	return 1;
}

static long bio_ctrl(BIO *bio, int command, long number, void *p)
{
	struct tls *t = BIO_get_data(bio);
	switch (command) {
	case BIO_CTRL_FLUSH:
		return 1;
	case BIO_CTRL_EOF:
		return t->in_end && queue_len(&t->in) == 0;
	default:
		return 0;
	}
}

BIO_METHOD *tls_bio_method(void)
{
	static BIO_METHOD *method;
	if (method)
		return method;
	method = BIO_meth_new(BIO_get_new_index() | BIO_TYPE_SOURCE_SINK, "queues");
	if (!method)
		return NULL;
	BIO_meth_set_read_ex(method, bio_read);
	BIO_meth_set_write_ex(method, bio_write);
	BIO_meth_set_ctrl(method, bio_ctrl);
	return method;
}
