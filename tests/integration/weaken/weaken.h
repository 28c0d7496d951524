/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Protections switched off, one by one, to see that the test of each notices (protections.test). The programs built here are the real ones, linked with
 * some of their functions wrapped (ld --wrap); the sources of the product hold no such switch, and nothing here is ever installed.
 *
 * BULKHEAD_WEAKEN=NAME[,NAME…] says which.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <string.h>
#include <stdlib.h>

static inline bool weak(const char *name)
{
	const char *list = getenv("BULKHEAD_WEAKEN");
	size_t len = strlen(name);
	for (const char *p = list; p; p = strchr(p, ','), p = p ? p + 1 : NULL)
		if (strncmp(p, name, len) == 0 && (p[len] == '\0' || p[len] == ','))
			return true;
	return false;
}
