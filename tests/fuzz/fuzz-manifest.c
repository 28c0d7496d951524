/* SPDX-License-Identifier: Apache-2.0 */
/* The saved list of changes, and the readers of names and git configuration: bytes that a box had a say in. What is accepted
 * must encode to what decodes to the same, and hold only paths that stay below the root. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/mem.h"
#include "image/facts.h"
#include "image/flags.h"
#include "image/manifest.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check(const struct changes *c)
{
	for (size_t i = 0; i < c->n; i++) {
		const struct change *one = &c->items[i];
		if (!manifest_path_valid(one->path) || (i > 0 && strcmp(c->items[i - 1].path, one->path) >= 0))
			abort();
		(void)change_flags(one, NULL);
	}
}

static void fuzz_manifest(const uint8_t *data, size_t size)
{
	struct changes c, again;
	struct buf b;
	if (manifest_decode((const char *)data, size, &c, NULL) < 0)
		return;
	check(&c);
	buf_init(&b, MANIFEST_MAX);
	if (manifest_encode(&c, &b, NULL) < 0 || manifest_decode((const char *)b.data, b.len, &again, NULL) < 0 ||
		again.n != c.n)
		abort();
	buf_free(&b);
	changes_done(&c);
	changes_done(&again);
}

static void fuzz_config(const uint8_t *data, size_t size)
{
	struct facts f = { 0 };
	facts_read_config(&f, (const char *)data, size, "sub", "sub/.git");
	for (size_t i = 0; i < f.n_hook_dirs; i++)
		if (*f.hook_dirs[i] && !manifest_path_valid(f.hook_dirs[i]) && strlen(f.hook_dirs[i]) < 255)
			abort();
	facts_done(&f);
}

static void fuzz_path(const uint8_t *data, size_t size)
{
	char *path = mem_strndup((const char *)data, size);
	(void)flags_of_path(path, false, NULL);
	(void)link_escapes("a/b", path);
	char *quoted = change_path_quote("a/", path);
	if (strchr(quoted, '\n'))
		abort();
	mem_free(quoted);
	mem_free(path);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	fuzz_manifest(data, size);
	if (size < 4096) {
		fuzz_config(data, size);
		fuzz_path(data, size);
	}
	return 0;
}
