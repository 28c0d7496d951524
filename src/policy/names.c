/* SPDX-License-Identifier: Apache-2.0 */
/* Words of the policy language and their enumerators. */
#include "base/mem.h"
#include "policy/policy.h"

static const char *const levels[] = {
	[ISOLATION_CONTAINER] = "container",
	[ISOLATION_GVISOR] = "gvisor",
	[ISOLATION_MICROVM] = "microvm",
};
_Static_assert(ARRAY_LEN(levels) == ISOLATION_LEVEL_MAX, "each level has a name");

static const char *const modes[] = {
	[MOUNT_COPY] = "copy",
	[MOUNT_RO] = "ro",
	[MOUNT_RW] = "rw",
};
_Static_assert(ARRAY_LEN(modes) == MOUNT_MODE_MAX, "each mode has a name");

static const char *const canaries[] = {
	[CANARY_DENY] = "deny",
	[CANARY_KILL] = "kill",
	[CANARY_RECORD] = "record",
};
_Static_assert(ARRAY_LEN(canaries) == CANARY_ACTION_MAX, "each action has a name");

static int word_find(const char *const *words, unsigned n, const char *name)
{
	for (unsigned i = 0; name && i < n; i++)
		if (str_eq(words[i], name))
			return (int)i;
	return -1;
}

const char *isolation_level_name(enum isolation_level level)
{
	return (unsigned)level < ISOLATION_LEVEL_MAX ? levels[level] : "unknown";
}

int isolation_level_parse(const char *name, enum isolation_level *ret)
{
	int i = word_find(levels, ARRAY_LEN(levels), name);
	if (i < 0)
		return -1;
	*ret = (enum isolation_level)i;
	return 0;
}

const char *mount_mode_name(enum mount_mode mode)
{
	return (unsigned)mode < MOUNT_MODE_MAX ? modes[mode] : "unknown";
}

int mount_mode_parse(const char *name, enum mount_mode *ret)
{
	int i = word_find(modes, ARRAY_LEN(modes), name);
	if (i < 0)
		return -1;
	*ret = (enum mount_mode)i;
	return 0;
}

const char *canary_action_name(enum canary_action action)
{
	return (unsigned)action < CANARY_ACTION_MAX ? canaries[action] : "unknown";
}

int canary_action_parse(const char *name, enum canary_action *ret)
{
	int i = word_find(canaries, ARRAY_LEN(canaries), name);
	if (i < 0)
		return -1;
	*ret = (enum canary_action)i;
	return 0;
}
