/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The table of names and their synthetic addresses (wire/capture.h), both ways. Bounded: when it is full the name that was
 * not asked for the longest makes room, but never one with a live connection, and never one whose address a program may
 * still remember.
 */
#pragma once

#include <stdint.h>

#include "base/addr.h"

#define NAMES_MAX 4096u
/* For so long after its last answer a name keeps its addresses: a multiple of the answer's life. */
#define NAMES_REMEMBERED_NS (60ULL * 1000000000ULL)

struct name {
	struct hostname host;
	struct ip v4, v6;
	uint64_t asked_ns;        /* last answered */
	unsigned connections;     /* live; kept by egress.c */
	void *listeners;          /* egress.c's, freed through names_new's on_remove */
	/* private */
	unsigned index;
	struct name *next_in_bucket;
};

struct names;

struct names *names_new(void (*on_remove)(void *ctx, struct name *n), void *ctx);
struct names *names_free(struct names *t); /* accepts NULL; returns NULL */
struct name *names_find(const struct names *t, const struct hostname *host);      /* or NULL */
struct name *names_find_ip(const struct names *t, const struct ip *ip);           /* or NULL */
/* The entry for `host`, a fresh one when there is none. NULL when the table is full of names that can't be removed. */
struct name *names_get(struct names *t, const struct hostname *host, uint64_t now_ns);
void names_remove(struct names *t, struct name *n);
/* Removes the name that was not asked for the longest, if it may go. 0 or -1. */
int names_recycle(struct names *t, uint64_t now_ns);
