/* SPDX-License-Identifier: Apache-2.0 */
/* Byte 0: how the owner behaves; byte 1, bit 0: the role. The rest comes from the peer. */
#include "http-fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	if (size >= 2)
		fuzz_conn(HTTP_1, data[1] & 1 ? HTTP_CLIENT : HTTP_SERVER, data[0], data + 2, size - 2);
	return 0;
}
