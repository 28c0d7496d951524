/* SPDX-License-Identifier: Apache-2.0 */
/* The upstream half's parts as they see one another. */
#pragma once

#include "base/text.h"
#include "gate/dial.h"
#include "gate/recorder.h"
#include "gate/relay.h"
#include "gate/resolve.h"
#include "gate/upstream-link.h"
#include "gate/upstream-messages.h"
#include "gate/upstream/answer.h"
#include "gate/upstream/table.h"
#include "gate/upstream/upstream.h"
#include "gate/upstream/vault.h"
#include "gate/verdict.h"
#include "net/channel.h"
#include "policy/request.h"

#define UPSTREAM_CONNECT_NS (30 * NS_PER_S)    /* from the first dial to the end of the handshake */
#define UPSTREAM_IDLE_NS (300 * NS_PER_S)      /* a server that owes an answer says something within */
#define UPFLOW_ORIGINS_MAX 8u                  /* connections to one place for one flow */
#define UPFLOW_AUTHORITY_MAX (HOSTNAME_MAX + 16u)
#define GATHER_MAX HTTP_WINDOW                 /* a body with a secret in it up to this size is read whole, so that its length can be said */

struct upflow;
struct exchange;
struct origin;

struct upstream {
	struct loop *loop;
	struct supervisor *supervisor;
	struct recorder *recorder;
	struct resolver *resolver;
	struct ip *host_addresses;
	struct tls_roots *roots;
	struct trust *trust;                   /* kept for the next flows to the same places */
	struct policy *policy;                 /* NULL before CONFIG */
	struct gate_facts facts;
	struct vault *vault;                   /* NULL before CONFIG */
	int link_fd;                           /* until CONFIG */
	struct channel *link;
	struct table flows, streams;           /* by flow id; by stream id: those of the link's streams that no relay has */
	struct upflow *first_flow;
	struct err failure;
};

/* upstream.c */
int upstream_configure(struct upstream *u, const struct gate_msg_config *m, int policy_fd, struct err *err);
int upstream_set_policy(struct upstream *u, const struct gate_msg_policy *m, int policy_fd, uint64_t *ret_cut, struct err *err);
void upstream_revoke(struct upstream *u, const char *name);
void upstream_fail(struct upstream *u, const struct err *err); /* ends the loop */

/* supervisor.c: the supervisor's socket */
struct supervisor *supervisor_new(struct upstream *u, int fd);
struct supervisor *supervisor_free(struct supervisor *s);
void supervisor_help(void *upstream, uint64_t call, const char *name); /* vault_help_fn */

/* trust.c: the roots that a place's servers are verified by */
struct trust *trust_for(struct upstream *u, const struct gate_target *target, struct err *err); /* a reference, or NULL */
struct trust *trust_ref(struct trust *t);
struct trust *trust_release(struct trust *t);                         /* accepts NULL; returns NULL */
const struct tls_roots *trust_roots(const struct trust *t);
void trust_forget(struct upstream *u);                                 /* another policy comes, or none any more */

/* link.c: the connection to the front half */
enum link_kind { LINK_FLOW, LINK_EXCHANGE };
/* One of the link's streams that no relay has: the one that stands for a flow, or a request whose body is still gathered. */
struct link_entry { struct table_node node; enum link_kind kind; struct http_stream *stream; };
int link_start(struct upstream *u);
void link_enter(struct upstream *u, struct link_entry *e, enum link_kind kind, struct http_stream *s);
void link_leave(struct upstream *u, struct link_entry *e);
/* The decimal flow id of a head; false: none, or not exactly one. */
bool link_flow_id(const struct http_head *head, uint64_t *ret);
/* An answer of our own: status, reason, and a sentence (or NULL). */
void link_refusal(struct http_head *head, enum reason reason, const char *detail);

/* upflow.c: a flow of the box: a judged place and the connections to it */
struct upflow {
	struct upstream *u;
	struct upflow *prev, *next;
	struct table_node by_id;
	struct link_entry entry;               /* the OPEN stream */
	char authority[UPFLOW_AUTHORITY_MAX + 1]; /* as OPEN said it: each request must say the same */
	char host[UPFLOW_AUTHORITY_MAX + 1];   /* as the server is told: without the scheme's own port */
	struct gate_target target;
	int rule;
	bool tls, h2, answered, pump_waits;    /* h2: the guest and the server speak it */
	struct trust *trust;
	struct ip addresses[DIAL_ADDRESSES_MAX]; /* judged; none but these are dialled */
	size_t n_addresses;
	struct resolver_lookup *lookup;
	struct origin *origins;
	unsigned n_origins;
	struct exchange *exchanges;            /* all of them */
	struct exchange *waiting, **waiting_end; /* those that need a connection */
	uint64_t secrets_used;                 /* bits by id */
	struct found *found;                   /* what was taken out of its answers */
};
void upflow_open(struct upstream *u, struct http_stream *s, const struct http_head *head);
struct upflow *upflow_find(struct upstream *u, uint64_t id);
struct upflow *upflow_of_entry(struct link_entry *e);
void upflow_gone(struct upflow *f);                              /* the front half gave it up */
void upflow_cut(struct upflow *f, enum reason reason);           /* ends it and its exchanges; f is gone */
bool upflow_rejudge(struct upflow *f);                           /* by the policy of now: false: must be cut */
/* Bits of the secrets that this flow used, or that any request to its place is given: a server may keep one, and hand it out again to a request
 * that had none. */
uint64_t upflow_secrets(const struct upflow *f);
void upflow_wait(struct upflow *f, struct exchange *x);          /* x needs a connection */
void upflow_unwait(struct upflow *f, struct exchange *x);
void upflow_pump_later(struct upflow *f);
/* From origins: it is connected; or it isn't any more, or never was (`why`: REASON_NONE when nobody was waiting for it in particular). */
void upflow_connected(struct upflow *f, struct origin *o);
void upflow_origin_lost(struct upflow *f, struct origin *o, enum reason why, const char *detail);

/* origin.c: one connection to the flow's server */
struct origin *origin_new(struct upflow *f, bool http1_only);    /* dials; tells from the loop */
struct origin *origin_free(struct origin *o);                    /* accepts NULL */
struct origin *origin_next(const struct origin *o);
const struct ip *origin_address(const struct origin *o);
bool origin_is_h2(const struct origin *o);
bool origin_connecting(const struct origin *o);
bool origin_ready(const struct origin *o, bool upgrade);         /* can take a request now */
bool origin_used(const struct origin *o);                        /* has carried a request before */
struct http_conn *origin_http(const struct origin *o);
void origin_begin(struct origin *o, bool upgrade);               /* a request is on it */
void origin_kick(struct origin *o);

/* exchange.c: one request and its answer */
void exchange_begin(struct upstream *u, struct http_stream *s, const struct http_head *head, bool end);
struct exchange *exchange_of_entry(struct link_entry *e);
void exchange_gather_data(struct exchange *x, const uint8_t *p, size_t len);
void exchange_gather_end(struct exchange *x, const struct http_head *trailers);
void exchange_gather_close(struct exchange *x);
void exchange_connect(struct exchange *x, struct origin *o);     /* o is ready */
bool exchange_wants_http1(const struct exchange *x);             /* an upgrade */
bool exchange_may_retry(const struct exchange *x, enum http_fault fault);
void exchange_retry(struct exchange *x);
void exchange_detach(struct exchange *x);                        /* its connection is gone */
void exchange_refuse(struct exchange *x, enum reason reason, const char *detail);
void exchange_drop_flow(struct exchange *x);                     /* its flow is being freed; it was refused before */
bool exchange_rejudge(struct exchange *x);                       /* false: must be cut */
struct exchange *exchange_next(const struct exchange *x);        /* of the flow */
struct exchange **exchange_waiting_link(struct exchange *x);     /* where the flow's waiting list goes on */

/* found.c: secrets that were taken out of answers, on the record: the first of each kind at once, the counts at the flow's end */
void found_note(struct upflow *f, unsigned secret, const char *spelling, const char *where);
void found_finish(struct upflow *f);
