/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Everything around an upstream half, in the test's own process and loop: supervisor, auditor, front half, and servers with TLS and HTTP of both versions. The upstream half
 * runs in the same loop, or as the confined program.
 */
#pragma once

#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/types.h>

#include <cmocka.h>
#include <jansson.h>

#include "crypto/mint.h"
#include "gate/upstream-messages.h"
#include "gate/upstream/upstream.h"
#include "net/channel.h"

#define URIG_BYTES_MAX (256u * 1024u * 1024u)

struct urig;

/* ---- servers ---- */

/* One request that reached a server. */
struct served {
	struct user *server;
	struct connection *connection;
	struct http_stream *stream;  /* NULL: over */
	struct http_head head;
	struct buf body;
	bool ended, answered;
	struct buf out;              /* of the answer's body, not yet taken */
	bool finish;                 /* … and then the end */
	struct served *next;
};

struct connection {
	struct user *server;
	struct channel *channel;     /* NULL: over */
	unsigned served;
	struct connection *next;
};

/* What a server does with each request. */
struct script {
	unsigned status;             /* 0: nothing at all */
	const char *fields[12];      /* "name: value" */
	const void *body;
	size_t len;
	size_t piece;                /* bytes at once; 0: all */
	bool has_length;
	const char *trailer;         /* "name: value" */
	size_t cut;                  /* > 0: the connection dies after so many bytes of the body */
	bool echo;                   /* the body is the request's; on an upgrade byte by byte as it comes */
	bool hang_up;                /* closes without a word */
};

struct user {
	struct urig *rig;
	int fd;
	struct loop_io *io;
	uint16_t port;
	struct mint *mint;           /* NULL: plain HTTP */
	const char *leaf, *alpn;
	unsigned n_connections;
	struct connection *connections;
	struct served *served;       /* newest first */
	unsigned n_served;
	struct script script;
	void (*on_request)(struct served *s); /* instead of the script */
	struct user *next;
};
/* mint NULL: no TLS */
struct user *urig_server(struct urig *r, struct mint *mint, const char *leaf, const char *alpn);
void served_answer(struct served *s, const struct script *script);
const char *served_field(const struct served *s, const char *name); /* static memory; "" when missing */
void server_hang_up(struct user *s);  /* ends all its connections, in order */

/* ---- the front half ---- */

struct call {
	struct urig *rig;
	struct http_stream *stream;  /* NULL: over */
	unsigned interim;
	struct http_head head;
	bool answered, ended, closed;
	enum http_fault fault;
	struct buf body, out;
	bool out_ends, hold;         /* hold: no credit is given */
	size_t uncredited;
	struct http_head trailers;
	bool has_trailers;
	struct call *next;
};

struct urig {
	struct loop *loop;
	struct loop_timer *tick;
	struct upstream *upstream;
	pid_t child;
	struct mint *mint;           /* the authority that rules name by `ca` */
	int control, audit;
	struct loop_io *control_io, *audit_io;
	struct channel *link;
	bool link_closed, control_eof, audit_eof;
	json_t *events;              /* {"type": …, fields…} */
	bool audit_hold;
	unsigned audit_owed;
	uint64_t audit_seq;
	bool ready, policy_set;
	uint64_t cut, generation;
	unsigned n_loaded, n_help;
	struct upstream_msg_loaded loaded;
	struct upstream_msg_help help;
	uint8_t key[SECRET_KEY_SIZE];
	char placeholders[4][PLACEHOLDER_MAX];
	struct user *servers;
	struct call *calls;
	uint64_t flow;
};

/* names: "127.0.0.1 api.example\n…"; NULL: those of all tests. */
struct urig *urig_new(void);
/* Starts with this network policy (YAML, flow style; "@0" … are the servers' ports, newest last) and these secrets, NULL at the end. */
void urig_run(struct urig *r, const char *network, const char *const *secrets);
void urig_run_program(struct urig *r, const char *path, const char *network, const char *const *secrets);
void urig_free(struct urig *r);

void urig_step(struct urig *r, const char *what);
void urig_patience(void);
#define URIG_WAIT(r, expr)                       \
	do {                                     \
		urig_patience();                 \
		while (!(expr))                  \
			urig_step((r), #expr);   \
	} while (0)
void urig_settle(struct urig *r);

/* supervisor */
void urig_secret(struct urig *r, const char *name, const char *value, uint64_t generation);
/* A file that says it is another's. */
void urig_secret_in(struct urig *r, const char *name, const char *inside, const char *value, uint64_t generation);
void urig_helper_secret(struct urig *r, const char *name);
void urig_helped(struct urig *r, uint64_t call, const char *output); /* NULL: not started */
int urig_helped_pipe(struct urig *r, uint64_t call);                 /* the writing end */
void urig_revoke(struct urig *r, const char *name);
void urig_policy(struct urig *r, const char *network);
void urig_send(struct urig *r, struct buf *message, const int *fds, size_t n_fds);

/* auditor */
void urig_audit_release(struct urig *r);
void urig_audit_fail(struct urig *r);
size_t urig_count(const struct urig *r, const char *type);
const json_t *urig_last(const struct urig *r, const char *type);
const char *urig_text(const json_t *event, const char *key);
int64_t urig_number(const json_t *event, const char *key);

/* front half */
struct call *urig_open(struct urig *r, uint64_t flow, const char *scheme, const char *authority, const char *alpn);
/* fields: "name: value", NULL at the end, or NULL. body NULL: none. */
struct call *urig_request(struct urig *r, uint64_t flow, const char *method, const char *scheme, const char *authority, const char *path,
	const char *const *fields, const void *body, size_t len);
struct call *urig_send_head(struct urig *r, struct http_head *head, bool end);
void call_send(struct call *c, const void *p, size_t len, bool end);
void call_credit(struct call *c);
void call_reset(struct call *c);
const char *call_field(const struct call *c, const char *name);   /* static memory; "" when missing */
bool call_body_is(const struct call *c, const char *text);
bool call_has(const struct call *c, const char *text);
