/* SPDX-License-Identifier: Apache-2.0 */
/* Messages between commands and a running sandbox: what decodes must encode to the same bytes. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "sandbox/control-messages.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void same(struct buf *out, int encoded, const uint8_t *data, size_t size)
{
	if (encoded < 0 || out->len != size || memcmp(out->data, data, size) != 0)
		abort();
	buf_free(out);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	uint32_t type;
	struct gate_msg_policy policy;
	struct control_msg_secret secret;
	struct control_msg_ok ok;
	struct err failed;
	struct buf out;
	if (control_msg_type(data, size, &type) < 0)
		return 0;
	buf_init(&out, size);
	if (control_msg_policy_decode(data, size, &policy, NULL) == 0)
		same(&out, control_msg_policy_encode(&out, &policy), data, size);
	if (control_msg_ok_decode(data, size, &ok, NULL) == 0)
		same(&out, control_msg_ok_encode(&out, &ok), data, size);
	for (enum control_request r = CONTROL_SECRET_CHANGED; r <= CONTROL_SECRET_REVOKE; r++)
		if (control_msg_secret_decode(data, size, r, &secret, NULL) == 0)
			same(&out, control_msg_secret_encode(&out, r, &secret), data, size);
	/* A long sentence is cut, so this one need not come out the same; it ends in the structure. */
	if (control_msg_failed_decode(data, size, &failed, NULL) == 0 && strnlen(failed.text, sizeof(failed.text)) == sizeof(failed.text))
		abort();
	return 0;
}
