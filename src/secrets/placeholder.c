/* SPDX-License-Identifier: Apache-2.0 */
#include "secrets/placeholder.h"

#include <stdio.h>
#include <string.h>

#include <sodium.h>

#define RANDOM_LETTERS 32u

void placeholder_new(const char *name, char out[PLACEHOLDER_MAX])
{
	static const char letters[] = "0123456789abcdefghijklmnopqrstuvwxyz"; /* of one case: names are judged in lower case, and it is to be found in them */
	char random[RANDOM_LETTERS + 1];
	for (unsigned i = 0; i < RANDOM_LETTERS; i++)
		random[i] = letters[randombytes_uniform(sizeof(letters) - 1)];
	random[RANDOM_LETTERS] = '\0';
	snprintf(out, PLACEHOLDER_MAX, "bulkhead-%.*s-%s", (int)SECRET_NAME_MAX, name, random);
}

void placeholder_variable(const char *name, char out[SECRET_NAME_MAX + 1])
{
	size_t i;
	for (i = 0; name[i] && i < SECRET_NAME_MAX; i++) {
		char c = name[i];
		bool digit = c >= '0' && c <= '9';
		out[i] = c >= 'a' && c <= 'z' ? (char)(c - 'a' + 'A') : digit || (c >= 'A' && c <= 'Z') ? c : '_';
	}
	out[i] = '\0';
}
