/* SPDX-License-Identifier: Apache-2.0 */
/* From HTTP/1 heads to the head model. Private to src/net. */
#pragma once

#include "net/http-codec.h"
#include "net/http1.h"
#include "net/websocket-key.h"

struct http1_response {
	unsigned minor, status;
	struct http1_header headers[HTTP1_HEADERS_MAX];
	size_t n_headers;
	bool has_length, chunked;
	uint64_t length;
};

/* Exactly one whole head (as http1_head_scan found it). Undefined after a fault. */
enum http1_fault http1_response_parse(const void *data, size_t len, struct http1_response *ret);

/* What the connection needs to know of a message and the head doesn't say. */
struct http1_facts {
	unsigned minor;
	bool close;            /* the last message of its connection */
	bool websocket;        /* request: asks for one. Response: the protocol is switched */
	bool until_close;      /* response: the body has no end but the connection's */
	enum http1_framing framing;
	char key[WEBSOCKET_KEY_LEN + 1];
};

/* Fill an empty head. HTTP_FAULT_NONE or why not. */
enum http_fault http1_request_model(const struct http1_request *r, const struct http_conn_config *config, struct http_head *head,
	struct http1_facts *facts);
/* to_head: the request was HEAD. key: of the WebSocket that was asked for, or NULL. */
enum http_fault http1_response_model(const struct http1_response *r, bool to_head, const char *key, struct http_head *head,
	struct http1_facts *facts);
/* Lines as http1_body kept them. */
enum http_fault http1_trailers_model(const void *data, size_t len, struct http_head *head);
