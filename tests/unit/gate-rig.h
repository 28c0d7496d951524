/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Everything around a gate, in the test's own process and loop: supervisor, auditor, resolver, servers, and the box's ends of
 * flows. The gate itself runs in the same loop, or as the confined program (rig_new_program).
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

#include "base/buf.h"
#include "event/loop.h"
#include "gate/messages.h"

struct gate;

#define RIG_BYTES_MAX (64u * 1024u * 1024u)

/* One connection that reached a server. */
struct peer {
	struct server *server;
	int fd;
	struct loop_io *io;
	struct buf got, out;
	bool eof, replied;
	struct peer *next;
};

struct server {
	struct rig *rig;
	int fd;
	struct loop_io *io;
	uint16_t port;
	const char *greeting;    /* sent at once */
	const char *reply_after; /* when this was received … */
	const char *reply;       /* … this is sent, and then the end unless `stay` */
	bool echo, stay;
	unsigned n_peers;
	struct peer *peers;      /* newest first */
	struct server *next;
};

struct client {
	struct rig *rig;
	int fd;
	struct loop_io *io;
	struct buf got, out;
	bool eof, shut;          /* the gate's end; ours */
	struct client *next;
};

struct rig_name { const char *name, *addresses; }; /* "1.2.3.4,::1" */

struct rig {
	struct loop *loop;
	struct loop_timer *tick;
	struct gate *gate;
	pid_t child;
	int control, audit, dns;
	struct loop_io *control_io, *audit_io, *dns_io;
	uint16_t dns_port;
	const struct rig_name *names;
	unsigned dns_questions;
	json_t *events;          /* {"type": …, fields…} */
	bool audit_hold;
	unsigned audit_owed;
	uint64_t audit_seq;
	bool ready, done, control_eof, audit_eof;
	unsigned n_answers, n_denied, n_limits;
	struct gate_msg_answer answer;
	struct gate_msg_denied denied;
	struct gate_msg_limit limit;
	struct gate_msg_done totals;
	struct server *servers;
	struct client *clients;
	uint64_t flow;
};

/* `network` and `limits` are YAML below those keys (flow style), NULL for none. "@" in network stands for the port of the first
 * server: give one with rig_server first. names ends with {0}. */
struct rig *rig_start(void);
struct server *rig_server(struct rig *r, const char *address, uint16_t port); /* NULL when the port can't be had */
void rig_run(struct rig *r, const char *network, const char *limits, const struct rig_name *names);
void rig_run_program(struct rig *r, const char *path, const char *network, const char *limits, const struct rig_name *names);
void rig_free(struct rig *r);

/* Steps until expr holds; fails the test after a long while. */
void rig_step(struct rig *r, const char *what);
#define RIG_WAIT(r, expr)                       \
	do {                                    \
		rig_deadline((r), true);        \
		while (!(expr))                 \
			rig_step((r), #expr);   \
	} while (0)
void rig_deadline(struct rig *r, bool reset);
/* A few rounds in which nothing should happen. */
void rig_settle(struct rig *r);

void rig_ask(struct rig *r, const void *name, size_t len);
void rig_finish(struct rig *r);
void rig_audit_release(struct rig *r);
void rig_audit_fail(struct rig *r);
void rig_hang_up(struct rig *r);
void rig_send_raw(struct rig *r, const void *p, size_t len);

struct client *rig_open_name(struct rig *r, const char *name, uint16_t port);
struct client *rig_open_bytes(struct rig *r, const void *name, size_t len, uint16_t port);
struct client *rig_open_address(struct rig *r, const char *ip, uint16_t port);
struct client *rig_open_proxy(struct rig *r);
void client_send(struct client *c, const void *p, size_t len);
void client_say(struct client *c, const char *text);
void client_shut(struct client *c);
void client_close(struct client *c);
bool client_has(const struct client *c, const char *text);
bool peer_has(const struct peer *p, const char *text);

/* Events of a type, and the last of them. */
size_t rig_count(const struct rig *r, const char *type);
const json_t *rig_last(const struct rig *r, const char *type);
const char *rig_text(const json_t *event, const char *key);   /* "" when missing */
int64_t rig_number(const json_t *event, const char *key);     /* -1 when missing */
