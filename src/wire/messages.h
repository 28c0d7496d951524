/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Control messages between the host (supervisor) and the agent inside the box. Each has an encode and a decode function here,
 * so that both ends and the fuzzer use one table. Decoders check every length and enum; strings contain no NUL. All return 0 or
 * -1 + err.
 *
 * Order: the agent sends HELLO first, once. The host then sends CONFIG once, then any number of EXEC. One EXECUTION is named by
 * the host with a rising u32.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/addr.h"
#include "base/buf.h"
#include "base/err.h"

#define WIRE_VERSION 1u

enum wire_message {
	WIRE_HELLO = 1,        /* agent → host */
	WIRE_CONFIG,           /* host → agent */
	WIRE_EXEC,             /* host → agent */
	WIRE_EXEC_STARTED,     /* agent → host: the program was exec'd, or not (errno) */
	WIRE_EXEC_EXITED,      /* agent → host: wait status; streams may still carry data until their EOF */
	WIRE_SIGNAL,           /* host → agent: to the execution's process group */
	WIRE_RESIZE,           /* host → agent: terminal size */
	WIRE_NAME_QUERY,       /* agent → host: DNS asks for a name */
	WIRE_NAME_ANSWER,      /* host → agent */
	WIRE_EGRESS_OPEN,      /* agent → host: a program in the box connected; names a stream of the box's side */
	WIRE_SHUTDOWN,         /* host → agent: kill everything and exit */
	WIRE_FAILED,           /* agent → host: CONFIG can't be followed; nothing will run */
	WIRE_EXEC_PART,        /* host → agent: the next bytes of an EXEC too long for one message; EXEC carries the last ones */
	WIRE_MESSAGE_MAX,
};

#define WIRE_ARGS_MAX 65536u       /* arguments, environment entries */
#define WIRE_STRING_MAX 131071u    /* MAX_ARG_STRLEN of Linux, without the NUL */
#define WIRE_EXEC_MAX (768u * 1024u) /* a whole EXEC body, parts together */
#define WIRE_PORTS_MAX 64u
#define WIRE_LITERALS_MAX 64u
#define WIRE_FAILED_TEXT_MAX 1024u

struct wire_hello { uint32_t version; uint32_t pid_in_box; };

struct wire_config {
	bool egress;               /* start DNS, proxy and capture at all */
	uint16_t proxy_port;       /* on 127.0.0.1 and ::1 */
	uint32_t exec_max;         /* executions at once */
	/* addresses that the policy names: the agent listens on them, the launcher has made them local to the box */
	uint16_t n_literals;
	struct wire_literal { struct ip address; uint16_t port; } literals[WIRE_LITERALS_MAX];
};

struct wire_exec {
	uint32_t execution;
	/* host-side ids; with tty stderr_stream is 0; 0 for stdin: /dev/null */
	uint32_t stdin_stream, stdout_stream, stderr_stream;
	bool tty;
	uint16_t rows, columns;
	uint64_t nofile;           /* RLIMIT_NOFILE soft and hard; 0 leaves it */
	char *cwd;
	char **argv;               /* NULL-terminated, at least one */
	char **envp;               /* NULL-terminated */
};

struct wire_exec_started { uint32_t execution; uint32_t pid; int32_t error; /* 0, or errno of chdir/exec */ };
struct wire_exec_exited { uint32_t execution; int32_t wait_status; };
struct wire_signal { uint32_t execution; uint32_t signal; };
struct wire_resize { uint32_t execution; uint16_t rows, columns; };

struct wire_failed { enum err_code code; char *text; };

struct wire_name_query { uint32_t query; struct hostname name; };
struct wire_name_answer {
	uint32_t query;
	bool allowed;
	uint16_t n_ports;                  /* ports on which the agent must listen for that name */
	uint16_t ports[WIRE_PORTS_MAX];
};

enum wire_entrance {
	WIRE_ENTRANCE_NAME = 1,  /* transparent: the program connected to the synthetic address of `name` */
	WIRE_ENTRANCE_ADDRESS,   /* transparent: the program connected to a literal address that the policy names */
	WIRE_ENTRANCE_PROXY,     /* the program connected to the proxy port; the gate reads the request itself */
};

struct wire_egress_open {
	uint32_t stream;
	enum wire_entrance entrance;
	struct hostname name;    /* NAME */
	struct ip address;       /* ADDRESS */
	uint16_t port;           /* NAME, ADDRESS */
};

int wire_hello_encode(struct buf *out, const struct wire_hello *m);
int wire_hello_decode(const void *p, size_t n, struct wire_hello *ret, struct err *err);
int wire_config_encode(struct buf *out, const struct wire_config *m);
int wire_config_decode(const void *p, size_t n, struct wire_config *ret, struct err *err);
int wire_exec_encode(struct buf *out, const struct wire_exec *m);
int wire_exec_decode(const void *p, size_t n, struct wire_exec *ret, struct err *err); /* free with wire_exec_done */
void wire_exec_done(struct wire_exec *m);
int wire_exec_started_encode(struct buf *out, const struct wire_exec_started *m);
int wire_exec_started_decode(const void *p, size_t n, struct wire_exec_started *ret, struct err *err);
int wire_exec_exited_encode(struct buf *out, const struct wire_exec_exited *m);
int wire_exec_exited_decode(const void *p, size_t n, struct wire_exec_exited *ret, struct err *err);
int wire_signal_encode(struct buf *out, const struct wire_signal *m);
int wire_signal_decode(const void *p, size_t n, struct wire_signal *ret, struct err *err);
int wire_resize_encode(struct buf *out, const struct wire_resize *m);
int wire_resize_decode(const void *p, size_t n, struct wire_resize *ret, struct err *err);
int wire_failed_encode(struct buf *out, const struct wire_failed *m);
int wire_failed_decode(const void *p, size_t n, struct wire_failed *ret, struct err *err); /* free text with mem_free */
int wire_name_query_encode(struct buf *out, const struct wire_name_query *m);
int wire_name_query_decode(const void *p, size_t n, struct wire_name_query *ret, struct err *err);
int wire_name_answer_encode(struct buf *out, const struct wire_name_answer *m);
int wire_name_answer_decode(const void *p, size_t n, struct wire_name_answer *ret, struct err *err);
int wire_egress_open_encode(struct buf *out, const struct wire_egress_open *m);
int wire_egress_open_decode(const void *p, size_t n, struct wire_egress_open *ret, struct err *err);
