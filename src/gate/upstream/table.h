/* SPDX-License-Identifier: Apache-2.0 */
/* Things found by a number; the nodes are the things' own. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct table_node { uint64_t key; struct table_node *next; };
struct table { struct table_node **buckets; size_t n_buckets, n; }; /* all zero: empty */

bool table_put(struct table *t, struct table_node *node, uint64_t key); /* false: the number is taken */
struct table_node *table_get(const struct table *t, uint64_t key);      /* or NULL */
void table_remove(struct table *t, struct table_node *node);
void table_done(struct table *t);                                       /* the nodes stay the caller's */
