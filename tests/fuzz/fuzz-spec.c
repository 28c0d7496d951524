/* SPDX-License-Identifier: Apache-2.0 */
/* The bytes are taken as the launcher takes them. What is accepted is valid and writes itself as the very same bytes. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "spec/spec.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct spec s;
	struct buf again;
	if (spec_decode(data, size, &s, NULL) < 0)
		return 0;
	buf_init(&again, SPEC_ENCODED_MAX);
	if (spec_validate(&s, NULL) < 0 || spec_encode(&again, &s) < 0 || again.len != size || memcmp(again.data, data, size) != 0)
		abort();
	buf_free(&again);
	spec_done(&s);
	return 0;
}
