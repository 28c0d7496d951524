/* SPDX-License-Identifier: Apache-2.0 */
/* malloc and free for libraries that are handed secrets: what is freed is zeroed first. */
#pragma once

#include <stddef.h>

void *wipe_malloc(size_t size); /* NULL when there is no memory */
void wipe_free(void *p);
size_t wipe_size(const void *p);  /* as asked for; NULL: 0 */
