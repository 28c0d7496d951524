/* SPDX-License-Identifier: Apache-2.0 */
#include "policy/target.h"

#include <string.h>

#include "base/mem.h"
#include "base/text.h"

/* The box brings these itself: a mount there would replace what confines it, or what every program in it trusts. */
static const char *const system_folders[] = {
	"/bin", "/boot", "/dev", "/etc", "/lib", "/lib32", "/lib64", "/libx32", "/proc", "/sbin", "/sys", "/usr",
};

bool path_is_normal(const char *path)
{
	if (!path || path[0] != '/' || strlen(path) >= TARGET_MAX)
		return false;
	if (path[1] == '\0')
		return true;
	for (const char *part = path; *part;) {
		const char *name = part + 1;
		size_t n = strcspn(name, "/");
		if (n == 0 || (n == 1 && name[0] == '.') || (n == 2 && name[0] == '.' && name[1] == '.'))
			return false;
		part = name + n;
	}
	return true;
}

bool path_is_within(const char *path, const char *folder)
{
	size_t n = strlen(folder);
	if (n == 1)
		return true;
	return strncmp(path, folder, n) == 0 && (path[n] == '\0' || path[n] == '/');
}

int target_check(const char *path, struct err *err)
{
	char shown[200];
	text_escape(path, strlen(path), shown, sizeof(shown));
	if (!path_is_normal(path))
		return err_set(err, ERR_INVALID,
			"the target \"%s\" must be an absolute path without empty, \".\" or \"..\" parts, such as /workspace",
			shown);
	if (path[1] == '\0')
		return err_set(
			err, ERR_INVALID, "the target \"/\" would replace the whole box; choose a folder such as /workspace");
	for (size_t i = 0; i < ARRAY_LEN(system_folders); i++)
		if (path_is_within(path, system_folders[i]))
			return err_set(err, ERR_INVALID,
				"the target \"%s\" lies in %s, which belongs to the box itself; choose a folder such as /workspace",
				shown, system_folders[i]);
	return 0;
}
