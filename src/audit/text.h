/* SPDX-License-Identifier: Apache-2.0 */
/* Strings from outside as JSON: UTF-8 as a string, anything else as {"base64": …}, so that no byte is lost and every record is
 * valid JSON. */
#pragma once

#include <stddef.h>

#include <jansson.h>

/* New reference. */
json_t *audit_text_json(const char *data, size_t len);
/* Back to bytes, NUL-terminated (free with mem_free); NULL when `value` is no such text. ret_len may be NULL. */
char *audit_text_decode(const json_t *value, size_t *ret_len);
