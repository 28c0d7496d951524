/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What may stand in a head, whichever version brought it: one set of rules for reading and for writing, so that nothing that
 * one version can say slips into the other as something else.
 */
#pragma once

#include "base/err.h"
#include "net/http.h"

enum http_field_class {
	FIELD_PLAIN,
	FIELD_HOST,       /* said by `authority` */
	FIELD_LENGTH,     /* said by `has_length` */
	FIELD_TE,         /* kept as "trailers" only */
	FIELD_CONNECTION, /* of one connection only: taken out */
	FIELD_DISGUISED,  /* a framing name spelt with '_': CGI-like servers would read it as the real one */
};

enum http_field_class http_field_class(const char *name, size_t len); /* lower case */
bool http_is_token(const char *p, size_t len);
bool http_is_value(const char *p, size_t len);     /* no controls but tab, no white space around */
bool http_is_authority(const char *p, size_t len); /* host[:port], nothing else */
bool http_is_target(const char *p, size_t len);    /* path and query, or "*" */
/* The same place, said twice? Letter case and the scheme's own port don't count. */
bool http_authority_same(struct http_text scheme, struct http_text a, struct http_text b);
/* Fields that change what a message means come before the body or not at all. */
bool http_trailer_allowed(const char *name, size_t len);
/* Only digits, no more than 18. 0 or -1. */
int http_length_parse(const char *p, size_t len, uint64_t *ret);
/* Does a comma-separated list have the (lower-case) word? */
bool http_list_has(const char *list, size_t len, const char *word);

/* Can it be sent as what it shall be? 0, or -1 with a sentence. */
int http_request_check(const struct http_head *h, bool end, struct err *err);
int http_response_check(const struct http_head *h, bool end, struct err *err);
int http_trailers_check(const struct http_head *h, struct err *err);
/* A response without a body, whatever its fields say. */
bool http_is_bodiless(unsigned status, bool to_head);

/* ---- for the codecs: filling a head without checking what was checked already ---- */

/* Room for what is to come, so that a head costs two allocations. 0, or -1: too large. */
int http_head_reserve(struct http_head *h, size_t bytes, size_t fields);
/* The name is written in lower case. NULL: too large. */
struct http_field *http_head_push(struct http_head *h, const char *name, size_t name_len, const char *value, size_t value_len);
/* The last push, if it is a further cookie, becomes a part of the first (RFC 9113 8.2.3): both versions say it alike. 0, or
 * -1: too large. */
int http_head_join_cookie(struct http_head *h);
/* Takes back the last push. */
void http_head_pop(struct http_head *h);
