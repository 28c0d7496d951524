/* SPDX-License-Identifier: Apache-2.0 */
/*
 * An agent in a child process outside any box, and the host's end of its pipe.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/buf.h"
#include "event/loop.h"
#include "wire/messages.h"
#include "wire/mux.h"

enum { HARNESS_STREAMS = 4096, HARNESS_NAMES = 512, HARNESS_DNS_PORT = 5353, HARNESS_SKIPPED = 77, HARNESS_PROXY_PORT = 3128 };

/* One stream as the host sees it. */
struct side_stream {
	struct harness *h;
	struct mux_stream *s;  /* NULL once closed */
	uint32_t id;
	struct buf got;
	uint64_t received;     /* bytes, also those not kept */
	bool keep, hold;       /* keep the bytes in `got`; give no credit */
	bool eof, reset, writable;
	uint32_t reset_reason;
	struct wire_egress_open opened; /* for the box's streams */
};

struct harness {
	pid_t agent;
	struct loop *loop;
	struct mux *mux;
	bool hello, closed;
	enum err_code closed_code;
	uint32_t next_execution;
	struct side_stream *streams[HARNESS_STREAMS];
	unsigned n_streams;
	unsigned n_opened; /* by the box */
	struct wire_exec_started started[HARNESS_STREAMS];
	struct wire_exec_exited exited[HARNESS_STREAMS];
	bool is_started[HARNESS_STREAMS], is_exited[HARNESS_STREAMS];
	struct wire_name_query queries[HARNESS_NAMES];
	unsigned n_queries;
	bool answer_queries;   /* by the rule in on_query */
	struct wire_failed failed;
	bool is_failed;
};

/* Starts an agent and waits for its HELLO. */
struct harness *harness_start(void);
/* The same as pid 1 of a pid namespace, or NULL when that can't be had here. h->agent is a stand-in that ends with the
 * agent's status. */
struct harness *harness_start_as_init(void);
/* SHUTDOWN, waits for the agent's end; checks that it ended well. */
void harness_stop(struct harness *h);
/* Forgets the pipe without a word, as when the host dies. Returns the agent's wait status. */
int harness_abandon(struct harness *h);
void harness_configure(struct harness *h, const struct wire_config *c);
void harness_send(struct harness *h, uint16_t type, const void *body, size_t len);
void harness_answer(struct harness *h, uint32_t query, bool allowed, const uint16_t *ports, uint16_t n);

/* Runs the loop until the condition holds; fails the test when it doesn't within a (generous) time. */
#define harness_until(h, condition)                          \
	do {                                                 \
		harness_deadline(h);                         \
		while (!(condition))                         \
			harness_step(h, #condition);         \
	} while (0)
void harness_deadline(struct harness *h);
void harness_step(struct harness *h, const char *what);

struct side_stream *harness_open(struct harness *h, bool keep);

/* An execution with its streams. */
struct run {
	struct harness *h;
	uint32_t number;
	struct side_stream *in, *out, *err; /* in and err may be NULL */
};
struct run_options {
	const char *cwd;
	const char *const *envp;
	bool no_stdin, tty, one_stream; /* one_stream: with tty, input on the stream of the output */
	uint16_t rows, columns;
	uint64_t nofile;
	bool drop; /* count the output, don't keep it */
};
struct run harness_run(struct harness *h, const struct run_options *o, const char *const *argv);
#define RUN(h, o, ...) harness_run((h), (o), (const char *const[]){ __VA_ARGS__, NULL })
/* Waits for its end and the end of its output. Returns the wait status, or -errno when it didn't start. */
int run_finish(struct run *r);
const char *run_output(struct run *r); /* of stdout, as text */
/* Feeds bytes to the input, waiting for room. */
void run_feed(struct run *r, const void *data, size_t len);
void run_feed_eof(struct run *r);
