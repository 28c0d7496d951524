/* SPDX-License-Identifier: Apache-2.0 */
/* Names of sandboxes: they become parts of paths, host names and cgroup names, so their alphabet is the smallest common one. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include "spec/spec.h"

static const char letters[] = "abcdefghijklmnopqrstuvwxyz234567"; /* 32: five bits a character, nothing to reject */

/* The kernel's random numbers can't fail for so few bytes once it has booted; an id that others could guess or meet must not be made. */
static void random_bytes(uint8_t *out, size_t len)
{
	ssize_t n;
	do
		n = getrandom(out, len, 0);
	while (n < 0 && errno == EINTR);
	if (n != (ssize_t)len)
		abort();
}

void sandbox_id_new(char out[SANDBOX_ID_LEN + 1])
{
	uint8_t random[SANDBOX_ID_LEN];
	/* The first must be a letter: drawn again until it is one, so that all ids stay equally likely. */
	do
		random_bytes(random, sizeof(random));
	while ((random[0] & 31) >= 26);
	for (unsigned i = 0; i < SANDBOX_ID_LEN; i++)
		out[i] = letters[random[i] & 31];
	out[SANDBOX_ID_LEN] = '\0';
}

bool sandbox_id_valid(const char *s)
{
	if (!s || strnlen(s, SANDBOX_ID_LEN + 1) != SANDBOX_ID_LEN || s[0] < 'a' || s[0] > 'z')
		return false;
	for (unsigned i = 1; i < SANDBOX_ID_LEN; i++)
		if (!(s[i] >= 'a' && s[i] <= 'z') && !(s[i] >= '0' && s[i] <= '9'))
			return false;
	return true;
}
