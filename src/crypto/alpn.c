/* SPDX-License-Identifier: Apache-2.0 */
/* Lists of application protocols, as text and as on the wire (RFC 7301). */
#include <string.h>

#include "crypto/internal.h"

static int append(struct alpn_list *list, const char *name, size_t len)
{
	if (len == 0 || list->len + 1 + len > sizeof(list->wire))
		return -1;
	list->wire[list->len] = (uint8_t)len;
	memcpy(list->wire + list->len + 1, name, len);
	list->len = (uint8_t)(list->len + 1 + len);
	return 0;
}

int alpn_parse(const char *text, struct alpn_list *ret, struct err *err)
{
	struct alpn_list list = { 0 };
	for (const char *p = text; *p;) {
		size_t len = strcspn(p, ",");
		if (append(&list, p, len) < 0 || (p[len] == ',' && !p[len + 1]))
			return err_set(err, ERR_INVALID, "\"%s\" is no list of application protocols of at most %u bytes", text, TLS_ALPN_MAX);
		p += len + (p[len] == ',');
	}
	*ret = list;
	return 0;
}

bool alpn_contains(const struct alpn_list *list, const uint8_t *name, size_t len)
{
	for (size_t i = 0; i < list->len; i += 1u + list->wire[i])
		if (list->wire[i] == len && memcmp(list->wire + i + 1, name, len) == 0)
			return true;
	return false;
}
