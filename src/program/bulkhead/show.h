/* SPDX-License-Identifier: Apache-2.0 */
/* Text for people out of data that may be hostile: nothing that reaches a terminal from here holds a control byte. */
#pragma once

#include <stddef.h>

#include "audit/record.h"
#include "base/buf.h"

/* Escaped as it is. */
void show_text(struct buf *b, const char *s, size_t len);
/* As one word of a command line: escaped, in quotes when a reader could take it for several or for none. */
void show_word(struct buf *b, const char *s, size_t len);
/* Words with spaces between them. NULL-terminated list. */
void show_words(struct buf *b, char *const *words);
/* Columns on a terminal, about: code points. */
size_t show_width(const char *s, size_t len);
/* Cuts at a whole code point so that at most `columns` are left, ending in "…" then. */
void show_cut(struct buf *b, size_t columns);

/* What a record says, on one line, without time and type. */
void show_record(struct buf *b, const struct record *r);
