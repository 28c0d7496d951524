/* SPDX-License-Identifier: Apache-2.0 */
/* The host's own table of names (/etc/hosts), read once before confinement. What doesn't parse is left out. */
#pragma once

#include <stddef.h>

#include "base/addr.h"
#include "base/err.h"

#define HOSTS_TEXT_MAX (1024u * 1024u)
#define HOSTS_ENTRIES_MAX 65536u

struct hosts;

struct hosts *hosts_parse(const char *text, size_t len);
/* A missing file is an empty table; an unreadable one is an error. NULL + err. */
struct hosts *hosts_read(const char *path, struct err *err);
struct hosts *hosts_free(struct hosts *h);
/* Fills up to `room` addresses of the name; returns how many. */
size_t hosts_lookup(const struct hosts *h, const struct hostname *name, struct ip *ret, size_t room);
