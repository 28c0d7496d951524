/* SPDX-License-Identifier: Apache-2.0 */
/* A client's first flight, as the box can make it. A result for a prefix must never be contradicted by the whole. */
#include <stdint.h>
#include <stdlib.h>

#include "net/tls_hello.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct tls_hello h = { 0 }, half;
	size_t need = 0;
	enum tls_hello_result r = tls_hello_parse(data, size, &h, &need);
	if (r == TLS_HELLO_MORE && (need <= size || need > TLS_HELLO_INPUT_MAX + 5))
		abort();
	if (r == TLS_HELLO_COMPLETE && (h.length > size || h.name_len > TLS_SERVER_NAME_MAX || h.has_name != (h.name_len > 0)))
		abort();
	enum tls_hello_result before = tls_hello_parse(data, size / 2, &half, NULL);
	if (before != TLS_HELLO_MORE && before != r)
		abort();
	return 0;
}
