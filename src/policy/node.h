/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The small part of YAML that a policy may use, as a tree whose every node knows its line and column. One document of maps,
 * lists and scalars; no anchors, aliases, tags, directives or duplicate keys, so that what a person reads is what the program
 * reads.
 * Ceilings: POLICY_TEXT_MAX bytes, YAML_DEPTH_MAX levels, YAML_NODES_MAX nodes, YAML_KEYS_MAX keys in one map.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"

#define YAML_DEPTH_MAX 10u
#define YAML_NODES_MAX 32768u
#define YAML_KEYS_MAX 64u

enum node_kind { NODE_SCALAR, NODE_LIST, NODE_MAP };

struct node {
	const char *file;      /* for messages; the caller's, outlives the tree */
	enum node_kind kind;
	unsigned line, column; /* from 1 */
	bool plain;            /* scalar without quotes: may be a number, true, false or nothing */
	char *text;            /* scalar; NUL-terminated */
	size_t len;
	struct node **items;   /* list: the items; map: key, value, key, value, … */
	size_t n_items, cap;
};

/* Reads one document. `file` appears in sentences as given. Free with node_free. */
int node_load(const char *text, size_t len, const char *file, struct node **ret, struct err *err);
struct node *node_free(struct node *n); /* accepts NULL; returns NULL */

/* Both put "FILE:LINE:COLUMN: " in front of the sentence and return -1. */
int node_error(const struct node *n, struct err *err, enum err_code code, const char *format, ...)
	__attribute__((format(printf, 4, 5)));
int node_wrap(const struct node *n, struct err *err);

#define NODE_SHOWN_MAX 96
/* The node for a message: its text made harmless and cut, or "a list", "a map". Returns out. */
const char *node_show(const struct node *n, char out[NODE_SHOWN_MAX]);

/* Typed reading; `key` names the value in sentences. */
int node_want(const struct node *n, const char *key, enum node_kind kind, struct err *err);
int node_bool(const struct node *n, const char *key, bool *ret, struct err *err);
/* Printable text of 1 to `max` bytes; in place. */
int node_string(const struct node *n, const char *key, size_t max, const char **ret, struct err *err);
/* An unquoted decimal number without leading zeros in [min, max]. */
int node_number(const struct node *n, const char *key, uint64_t min, uint64_t max, uint64_t *ret, struct err *err);
/* As node_string with a fresh copy in *field. */
int node_copy(const struct node *n, const char *key, size_t max, char **field, struct err *err);

/* The value of a map's key, or NULL. */
const struct node *node_get(const struct node *map, const char *key);

/* One known key of a map: either read by `parse`, or known and refused (`refused` says what to do instead). */
struct key {
	const char *name;
	int (*parse)(const struct node *key, const struct node *value, void *into, struct err *err);
	const char *refused;
};

/* Reads a map by its table (ended by a NULL name), in the order of the file. `where` names the map in sentences. */
int keys_parse(const struct node *map, const char *where, const struct key *keys, void *into, struct err *err);
/* A `parse` that refuses with ERR_UNSUPPORTED: for keys whose table entry has `refused`. */
int key_refuse(const struct node *key, const char *instead, struct err *err);
