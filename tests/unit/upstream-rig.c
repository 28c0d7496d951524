/* SPDX-License-Identifier: Apache-2.0 */
#include "upstream-rig.h"

#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <sodium.h>

#include "audit/event.h"
#include "audit/message.h"
#include "base/fd.h"
#include "base/mem.h"
#include "base/text.h"
#include "event/child.h"
#include "gate/policy-file.h"
#include "gate/upstream-link.h"
#include "policy/request.h"

#define PATIENCE_NS (20 * NS_PER_S)
#define TICK_NS (5 * NS_PER_MS)

static const char hosts_text[] = "127.0.0.1 api.example other.example a.example b.example\n127.0.0.2 two.example\n10.1.2.3 private.example\n";

static void add_line(struct http_head *head, const char *line)
{
	char name[128];
	const char *colon = strstr(line, ": ");
	assert_non_null(colon);
	snprintf(name, sizeof(name), "%.*s", (int)(colon - line), line);
	assert_int_equal(http_head_add(head, name, colon + 2, strlen(colon + 2)), 0);
}

static const char *field_text(const struct http_head *head, const char *name)
{
	static char text[4][20000];
	static unsigned turn;
	const struct http_field *f = http_head_get(head, name);
	char *out = text[turn++ % 4];
	snprintf(out, sizeof(text[0]), "%.*s", f ? (int)f->value.len : 0, f && f->value.len ? f->value.p : "");
	return out;
}

/* ---- servers ---- */

static void served_push(struct served *s)
{
	size_t piece = s->server->script.piece ? s->server->script.piece : SIZE_MAX;
	while (s->stream && s->out.len) {
		size_t n = http_stream_send_data(s->stream, s->out.data, s->out.len < piece ? s->out.len : piece);
		if (n == 0)
			return;
		buf_consume(&s->out, n);
	}
	if (s->stream && s->finish && !s->out.len) {
		struct http_head trailers;
		s->finish = false;
		http_head_init(&trailers);
		if (s->server->script.trailer)
			add_line(&trailers, s->server->script.trailer);
		assert_int_equal(http_stream_send_end(s->stream, s->server->script.trailer ? &trailers : NULL), 0);
		http_head_free(&trailers);
	}
}

static void cut_connection(struct connection *c)
{
	c->channel = channel_free(c->channel);
}

static void on_cut(void *ctx)
{
	struct connection *c = ctx;
	cut_connection(c);
}

void served_answer(struct served *s, const struct script *script)
{
	struct http_head head;
	struct err err;
	s->answered = true;
	if (script->hang_up) {
		loop_defer(s->server->rig->loop, on_cut, s->connection);
		return;
	}
	if (!script->status)
		return;
	bool upgrade = s->head.protocol.len > 0;
	http_head_init(&head);
	head.status = script->status;
	for (size_t i = 0; i < ARRAY_LEN(script->fields) && script->fields[i]; i++)
		add_line(&head, script->fields[i]);
	size_t len = script->echo ? s->body.len : script->len;
	head.has_length = script->has_length;
	head.length = len;
	bool end = !upgrade && len == 0 && !script->trailer && !script->echo;
	if (http_stream_send_head(s->stream, &head, end, &err) < 0)
		fail_msg("the server can't answer: %s", err.text);
	http_head_free(&head);
	if (end)
		return;
	size_t n = script->cut ? script->cut : len;
	buf_append(&s->out, script->echo ? s->body.data : script->body, n);
	s->finish = !upgrade && !script->cut;
	served_push(s);
	channel_kick(s->connection->channel);
	if (script->cut) {
		/* What was said goes out first. */
		struct buf last;
		buf_init(&last, URIG_BYTES_MAX);
		loop_defer(s->server->rig->loop, on_cut, s->connection);
		buf_free(&last);
	}
}

const char *served_field(const struct served *s, const char *name) { return field_text(&s->head, name); }

static void react(struct served *s)
{
	if (s->answered || !s->stream)
		return;
	if (s->server->on_request)
		s->server->on_request(s);
	else
		served_answer(s, &s->server->script);
}

static void on_served_head(void *ctx, struct http_stream *stream, const struct http_head *head, bool end)
{
	struct connection *c = ctx;
	struct served *s = mem_alloc(sizeof(*s));
	*s = (struct served){ .server = c->server, .connection = c, .stream = stream, .ended = end, .next = c->server->served };
	http_head_init(&s->head);
	assert_int_equal(http_head_copy(&s->head, head), 0);
	buf_init(&s->body, URIG_BYTES_MAX);
	buf_init(&s->out, URIG_BYTES_MAX);
	c->server->served = s;
	c->server->n_served++;
	c->served++;
	http_stream_set_ctx(stream, s);
	if (end || head->protocol.len)
		react(s);
}

static void on_served_data(void *ctx, struct http_stream *stream, const uint8_t *p, size_t len)
{
	struct served *s = http_stream_ctx(stream);
	buf_append(&s->body, p, len);
	if (s->head.protocol.len && s->server->script.echo) {
		buf_append(&s->out, p, len);
		served_push(s);
	}
	http_stream_credit(stream, len);
}

static void on_served_end(void *ctx, struct http_stream *stream, const struct http_head *trailers)
{
	struct served *s = http_stream_ctx(stream);
	s->ended = true;
	react(s);
}

static void on_served_drain(void *ctx, struct http_stream *stream) { served_push(http_stream_ctx(stream)); }

static void on_served_close(void *ctx, struct http_stream *stream, enum http_fault fault)
{
	struct served *s = http_stream_ctx(stream);
	s->stream = NULL;
}

static void on_connection_closed(void *ctx, const struct err *err)
{
	struct connection *c = ctx;
	c->channel = channel_free(c->channel);
}

static void start_http(struct connection *c, enum http_version version)
{
	static const struct http_conn_ops ops = { on_served_head, on_served_data, on_served_end, on_served_drain, on_served_close };
	struct http_conn_config config = { .version = version, .role = HTTP_SERVER, .scheme = c->server->mint ? "https" : "http" };
	channel_start(c->channel, http_conn_new(&config, &ops, c));
}

static void on_connection_secure(void *ctx)
{
	struct connection *c = ctx;
	start_http(c, str_eq(tls_alpn(channel_tls(c->channel)), "h2") ? HTTP_2 : HTTP_1);
}

static void on_accept(void *ctx, int fd, int ready)
{
	static const struct channel_ops ops = { .on_secure = on_connection_secure, .on_closed = on_connection_closed };
	struct user *s = ctx;
	struct err err;
	int conn = accept4(fd, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
	if (conn < 0)
		return;
	struct connection *c = mem_alloc(sizeof(*c));
	*c = (struct connection){ .server = s, .next = s->connections };
	s->connections = c;
	s->n_connections++;
	struct tls *tls = s->mint ? tls_server_new(s->mint, s->leaf, s->alpn, &err) : NULL;
	if (s->mint && !tls)
		fail_msg("%s", err.text);
	c->channel = channel_new(s->rig->loop, conn, tls, NULL, 0, &ops, c);
	if (!tls)
		start_http(c, HTTP_1);
}

struct user *urig_server(struct urig *r, struct mint *mint, const char *leaf, const char *alpn)
{
	struct sockaddr_in sa = { .sin_family = AF_INET, .sin_addr = { htonl(INADDR_LOOPBACK) } };
	socklen_t len = sizeof(sa);
	struct user *s = mem_alloc(sizeof(*s)), **end = &r->servers;
	*s = (struct user){ .rig = r, .mint = mint, .leaf = leaf, .alpn = alpn ? alpn : "", .script = { .status = 200, .has_length = true } };
	s->fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	assert_int_equal(bind(s->fd, (struct sockaddr *)&sa, sizeof(sa)), 0);
	assert_int_equal(listen(s->fd, 1024), 0);
	getsockname(s->fd, (struct sockaddr *)&sa, &len);
	s->port = ntohs(sa.sin_port);
	s->io = loop_io_add(r->loop, s->fd, LOOP_READ, on_accept, s);
	while (*end)
		end = &(*end)->next;
	return *end = s;
}

void server_hang_up(struct user *s)
{
	for (struct connection *c = s->connections; c; c = c->next)
		if (c->channel)
			channel_finish(c->channel, NS_PER_S);
}

/* ---- supervisor ---- */

static void take_message(struct urig *r, const uint8_t *p, size_t n)
{
	uint32_t type = 0;
	struct gate_msg_policy_set done;
	assert_int_equal(upstream_msg_type(p, n, &type), 0);
	switch (type) {
	case UPSTREAM_READY:
		assert_int_equal(upstream_msg_ready_decode(p, n, NULL), 0);
		r->ready = true;
		break;
	case UPSTREAM_DONE_POLICY:
		assert_int_equal(upstream_msg_policy_set_decode(p, n, &done, NULL), 0);
		assert_int_equal(done.generation, r->generation);
		r->cut = done.cut;
		r->policy_set = true;
		break;
	case UPSTREAM_HELP:
		assert_int_equal(upstream_msg_help_decode(p, n, &r->help, NULL), 0);
		r->n_help++;
		break;
	case UPSTREAM_LOADED:
		assert_int_equal(upstream_msg_loaded_decode(p, n, &r->loaded, NULL), 0);
		r->n_loaded++;
		break;
	default:
		fail_msg("a message of unknown type %u", type);
	}
}

static void on_control(void *ctx, int fd, int ready)
{
	struct urig *r = ctx;
	static uint8_t message[UPSTREAM_MESSAGE_MAX];
	ssize_t n;
	while ((n = recv(fd, message, sizeof(message), MSG_DONTWAIT)) > 0)
		take_message(r, message, (size_t)n);
	if (n == 0 || (errno != EAGAIN && errno != EINTR)) {
		r->control_eof = true;
		r->control_io = loop_io_remove(r->control_io);
	}
}

void urig_send(struct urig *r, struct buf *b, const int *fds, size_t n_fds)
{
	while (fd_send(r->control, b->data, b->len, fds, n_fds) < 0)
		urig_step(r, "room in the control socket");
	buf_free(b);
}

static int read_ca(void *ctx, const char *path, size_t max, char **ret_text, size_t *ret_len, struct err *err)
{
	struct urig *r = ctx;
	*ret_text = mem_strdup(mint_ca_pem(r->mint));
	*ret_len = strlen(*ret_text);
	return 0;
}

static void put_ports(struct urig *r, const char *network, char *out, size_t room)
{
	size_t n = 0;
	for (const char *p = network; *p; p++) {
		struct user *s = r->servers;
		if (*p != '@') {
			n += (size_t)snprintf(out + n, room - n, "%c", *p);
			continue;
		}
		for (int i = *++p - '0'; i > 0; i--)
			s = s->next;
		n += (size_t)snprintf(out + n, room - n, "%u", s->port);
	}
}

/* A descriptor with the policy, and its length. */
static int policy_fd(struct urig *r, const char *network, uint64_t *ret_len)
{
	char yaml[16384], rules[12000], *warning = NULL;
	struct policy *p = NULL;
	struct err err = ERR_INIT;
	put_ports(r, network ? network : "[]", rules, sizeof(rules));
	snprintf(yaml, sizeof(yaml), "version: 1\nname: rig\nowner: o@example.com\nreview_by: 2099-01-01\nnetwork: %s\n", rules);
	if (policy_parse(yaml, strlen(yaml), "rig.yaml", "2026-11-30", &p, &warning, &err) < 0 || policy_load_files(p, read_ca, r, &err) < 0)
		fail_msg("%s\n%s", err.text, yaml);
	mem_free(warning);
	policy_seal(p);
	int fd = policy_fd_make(p, ret_len, &err);
	if (fd < 0)
		fail_msg("%s", err.text);
	policy_free(p);
	return fd;
}

static void send_config(struct urig *r, const char *network, const char *const *secrets)
{
	struct gate_msg_config m = { 0 };
	int fd = policy_fd(r, network, &m.policy_len);
	memset(m.sandbox, '0', SANDBOX_ID_LEN);
	for (; secrets && secrets[m.n_placeholders]; m.n_placeholders++) {
		struct gate_placeholder *p = &m.placeholders[m.n_placeholders];
		snprintf(p->name, sizeof(p->name), "%s", secrets[m.n_placeholders]);
		placeholder_new(p->name, p->text);
		memcpy(r->placeholders[m.n_placeholders], p->text, sizeof(p->text));
	}
	struct buf b;
	buf_init(&b, UPSTREAM_MESSAGE_MAX);
	assert_int_equal(upstream_msg_config_encode(&b, &m), 0);
	urig_send(r, &b, &fd, 1);
	fd_close(&fd);
}

void urig_policy(struct urig *r, const char *network)
{
	struct gate_msg_policy m = { .generation = ++r->generation };
	int fd = policy_fd(r, network, &m.policy_len);
	struct buf b;
	r->policy_set = false;
	buf_init(&b, 256);
	assert_int_equal(upstream_msg_policy_encode(&b, &m), 0);
	urig_send(r, &b, &fd, 1);
	fd_close(&fd);
	URIG_WAIT(r, r->policy_set);
}

static int memory_file(const void *p, size_t len)
{
	int fd = memfd_create("rig", MFD_CLOEXEC);
	assert_true(fd >= 0);
	assert_int_equal(fd_write_full(fd, p, len), 0);
	return fd;
}

static void send_secret(struct urig *r, const char *name, const struct secret_about *about, const char *value, bool with_key)
{
	struct buf file, b;
	struct err err;
	buf_init(&file, SECRET_FILE_MAX);
	if (secret_file_encode(&file, about, value, value ? strlen(value) : 0, r->key + SECRET_KEY_SIZE - 32, &err) < 0)
		fail_msg("%s", err.text);
	struct upstream_msg_secret m = { 0 };
	snprintf(m.name, sizeof(m.name), "%s", name);
	int fds[2] = { memory_file(file.data, file.len), memory_file(r->key, sizeof(r->key)) };
	unsigned before = r->n_loaded;
	buf_init(&b, 256);
	assert_int_equal(upstream_msg_secret_encode(&b, &m), 0);
	urig_send(r, &b, fds, with_key ? 2 : 1);
	fd_close(&fds[0]);
	fd_close(&fds[1]);
	buf_free(&file);
	URIG_WAIT(r, r->n_loaded > before);
}

void urig_secret(struct urig *r, const char *name, const char *value, uint64_t generation)
{
	urig_secret_in(r, name, name, value, generation);
}

void urig_secret_in(struct urig *r, const char *name, const char *inside, const char *value, uint64_t generation)
{
	struct secret_about about = { .kind = SECRET_STATIC, .created_ns = 1, .changed_ns = 1, .generation = generation };
	snprintf(about.name, sizeof(about.name), "%s", inside);
	send_secret(r, name, &about, value, true);
}

void urig_helper_secret(struct urig *r, const char *name)
{
	char command[] = "/bin/helper", *argv[] = { command, NULL };
	struct secret_about about = { .kind = SECRET_HELPER, .created_ns = 1, .changed_ns = 1, .generation = 1, .helper = argv };
	snprintf(about.name, sizeof(about.name), "%s", name);
	send_secret(r, name, &about, NULL, false);
}

static void say_helped(struct urig *r, uint64_t call, int fd)
{
	struct upstream_msg_helped m = { .call = call, .started = fd >= 0 };
	struct buf b;
	buf_init(&b, 64);
	assert_int_equal(upstream_msg_helped_encode(&b, &m), 0);
	urig_send(r, &b, &fd, fd >= 0 ? 1 : 0);
}

int urig_helped_pipe(struct urig *r, uint64_t call)
{
	int ends[2];
	assert_int_equal(pipe2(ends, O_CLOEXEC), 0);
	say_helped(r, call, ends[0]);
	fd_close(&ends[0]);
	return ends[1];
}

void urig_helped(struct urig *r, uint64_t call, const char *output)
{
	if (!output) {
		say_helped(r, call, -1);
		return;
	}
	int fd = urig_helped_pipe(r, call);
	assert_int_equal(fd_write_full(fd, output, strlen(output)), 0);
	fd_close(&fd);
}

void urig_revoke(struct urig *r, const char *name)
{
	struct upstream_msg_revoke m = { 0 };
	struct buf b;
	snprintf(m.name, sizeof(m.name), "%s", name);
	buf_init(&b, 256);
	assert_int_equal(upstream_msg_revoke_encode(&b, &m), 0);
	urig_send(r, &b, NULL, 0);
}

/* ---- auditor ---- */

static void answer_audit(struct urig *r)
{
	while (r->audit_owed && !r->audit_hold && r->audit >= 0) {
		struct buf b;
		buf_init(&b, 16);
		buf_put_u32(&b, AUDIT_WRITTEN);
		buf_put_u64(&b, r->audit_seq + 1);
		ssize_t n = send(r->audit, b.data, b.len, MSG_DONTWAIT | MSG_NOSIGNAL);
		buf_free(&b);
		if (n < 0)
			break;
		r->audit_seq++;
		r->audit_owed--;
	}
}

static void take_event(struct urig *r, const uint8_t *p, size_t n)
{
	struct cursor c = cursor_make(p, n);
	uint32_t type = cursor_u32(&c);
	if (type == AUDIT_BYE)
		return;
	size_t len = cursor_u32(&c);
	json_t *fields = json_loadb((const char *)cursor_take(&c, len), len, 0, NULL);
	struct err err = ERR_INIT;
	assert_non_null(fields);
	assert_true(audit_type_allowed((enum audit_type)type, AUDIT_FROM_UPSTREAM));
	if (audit_fields_check((enum audit_type)type, fields, &err) < 0)
		fail_msg("the auditor would refuse it: %s", err.text);
	json_object_set_new(fields, "type", json_string(audit_type_name((enum audit_type)type)));
	json_array_append_new(r->events, fields);
	r->audit_owed++;
}

static void on_audit(void *ctx, int fd, int ready)
{
	struct urig *r = ctx;
	static uint8_t message[256 * 1024];
	ssize_t n;
	while ((n = recv(fd, message, sizeof(message), MSG_DONTWAIT)) > 0)
		take_event(r, message, (size_t)n);
	if (n == 0 || errno != EAGAIN) {
		r->audit_eof = true;
		r->audit_io = loop_io_remove(r->audit_io);
		return;
	}
	answer_audit(r);
}

void urig_audit_release(struct urig *r)
{
	r->audit_hold = false;
	answer_audit(r);
}

void urig_audit_fail(struct urig *r)
{
	r->audit_io = loop_io_remove(r->audit_io);
	fd_close(&r->audit);
}

size_t urig_count(const struct urig *r, const char *type)
{
	size_t n = 0, i;
	json_t *e;
	json_array_foreach(r->events, i, e)
		n += str_eq(urig_text(e, "type"), type);
	return n;
}

const json_t *urig_last(const struct urig *r, const char *type)
{
	for (size_t i = json_array_size(r->events); i-- > 0;)
		if (str_eq(urig_text(json_array_get(r->events, i), "type"), type))
			return json_array_get(r->events, i);
	fail_msg("no %s was recorded", type);
	return NULL;
}

const char *urig_text(const json_t *event, const char *key)
{
	const char *s = json_string_value(json_object_get(event, key));
	return s ? s : "";
}

int64_t urig_number(const json_t *event, const char *key)
{
	const json_t *v = json_object_get(event, key);
	return json_is_integer(v) ? json_integer_value(v) : -1;
}

/* ---- the front half ---- */

static void call_push(struct call *c)
{
	while (c->stream && c->out.len) {
		size_t n = http_stream_send_data(c->stream, c->out.data, c->out.len);
		if (n == 0)
			return;
		buf_consume(&c->out, n);
	}
	if (c->stream && c->out_ends && !c->out.len) {
		c->out_ends = false;
		assert_int_equal(http_stream_send_end(c->stream, NULL), 0);
	}
}

static void on_call_head(void *ctx, struct http_stream *s, const struct http_head *head, bool end)
{
	struct call *c = http_stream_ctx(s);
	if (head->status < 200) {
		c->interim++;
		return;
	}
	c->answered = true;
	c->ended = end;
	assert_int_equal(http_head_copy(&c->head, head), 0);
}

static void on_call_data(void *ctx, struct http_stream *s, const uint8_t *p, size_t len)
{
	struct call *c = http_stream_ctx(s);
	buf_append(&c->body, p, len);
	if (c->hold)
		c->uncredited += len;
	else
		http_stream_credit(s, len);
}

static void on_call_end(void *ctx, struct http_stream *s, const struct http_head *trailers)
{
	struct call *c = http_stream_ctx(s);
	c->ended = true;
	if (trailers) {
		c->has_trailers = true;
		assert_int_equal(http_head_copy(&c->trailers, trailers), 0);
	}
}

static void on_call_drain(void *ctx, struct http_stream *s) { call_push(http_stream_ctx(s)); }

static void on_call_close(void *ctx, struct http_stream *s, enum http_fault fault)
{
	struct call *c = http_stream_ctx(s);
	c->stream = NULL;
	c->closed = true;
	c->fault = fault;
}

struct call *urig_send_head(struct urig *r, struct http_head *head, bool end)
{
	struct err err;
	struct call *c = mem_alloc(sizeof(*c));
	*c = (struct call){ .rig = r, .next = r->calls };
	http_head_init(&c->head);
	http_head_init(&c->trailers);
	buf_init(&c->body, URIG_BYTES_MAX);
	buf_init(&c->out, URIG_BYTES_MAX);
	r->calls = c;
	c->stream = http_stream_open(channel_http(r->link), head, end, &err);
	if (!c->stream)
		fail_msg("%s", err.text);
	http_stream_set_ctx(c->stream, c);
	http_head_free(head);
	channel_kick(r->link);
	return c;
}

static void begin_head(struct http_head *head, const char *method, const char *scheme, const char *authority, const char *path, uint64_t flow)
{
	char id[24];
	http_head_init(head);
	http_head_set(head, &head->method, method, strlen(method));
	http_head_set(head, &head->scheme, scheme, strlen(scheme));
	http_head_set(head, &head->authority, authority, strlen(authority));
	http_head_set(head, &head->path, path, strlen(path));
	snprintf(id, sizeof(id), "%llu", (unsigned long long)flow);
	http_head_add(head, LINK_FIELD_FLOW, id, strlen(id));
}

struct call *urig_open(struct urig *r, uint64_t flow, const char *scheme, const char *authority, const char *alpn)
{
	struct http_head head;
	begin_head(&head, LINK_METHOD_OPEN, scheme, authority, "/", flow);
	http_head_add(&head, LINK_FIELD_ALPN, alpn, strlen(alpn));
	return urig_send_head(r, &head, false);
}

struct call *urig_request(struct urig *r, uint64_t flow, const char *method, const char *scheme, const char *authority, const char *path,
	const char *const *fields, const void *body, size_t len)
{
	struct http_head head;
	begin_head(&head, method, scheme, authority, path, flow);
	for (size_t i = 0; fields && fields[i]; i++)
		add_line(&head, fields[i]);
	head.has_length = body != NULL;
	head.length = len;
	struct call *c = urig_send_head(r, &head, !body);
	if (body)
		call_send(c, body, len, true);
	return c;
}

void call_send(struct call *c, const void *p, size_t len, bool end)
{
	buf_append(&c->out, p, len);
	c->out_ends = end;
	call_push(c);
	channel_kick(c->rig->link);
}

void call_credit(struct call *c)
{
	if (c->stream && c->uncredited)
		http_stream_credit(c->stream, c->uncredited);
	c->uncredited = 0;
	c->hold = false;
	channel_kick(c->rig->link);
}

void call_reset(struct call *c)
{
	if (c->stream)
		http_stream_reset(c->stream, HTTP_CANCELLED);
	channel_kick(c->rig->link);
}

const char *call_field(const struct call *c, const char *name) { return field_text(&c->head, name); }

bool call_body_is(const struct call *c, const char *text)
{
	return c->body.len == strlen(text) && (!c->body.len || memcmp(c->body.data, text, c->body.len) == 0);
}

bool call_has(const struct call *c, const char *text) { return c->body.len && memmem(c->body.data, c->body.len, text, strlen(text)); }

static void on_link_closed(void *ctx, const struct err *err)
{
	struct urig *r = ctx;
	r->link_closed = true;
}

static void start_link(struct urig *r, int fd)
{
	static const struct channel_ops ops = { .on_closed = on_link_closed };
	static const struct http_conn_ops http = { on_call_head, on_call_data, on_call_end, on_call_drain, on_call_close };
	static const struct http_conn_config config = { .version = HTTP_2, .role = HTTP_CLIENT, .scheme = "", .max_streams = LINK_STREAMS_MAX, .max_resets = UINT64_MAX };
	fd_set_nonblock(fd, true);
	r->link = channel_new(r->loop, fd, NULL, NULL, 0, &ops, r);
	channel_start(r->link, http_conn_new(&config, &http, r));
}

/* ---- the rig itself ---- */

static uint64_t deadline;

void urig_patience(void) { deadline = time_monotonic_ns() + PATIENCE_NS; }

void urig_step(struct urig *r, const char *what)
{
	if (deadline == 0)
		urig_patience();
	if (time_monotonic_ns() > deadline)
		fail_msg("waited in vain for: %s", what);
	loop_run_once(r->loop, true);
}

void urig_settle(struct urig *r)
{
	urig_patience();
	for (int i = 0; i < 20; i++)
		urig_step(r, "quiet");
}

static void on_tick(void *ctx) { answer_audit(ctx); }

struct urig *urig_new(void)
{
	static bool prepared;
	struct err err;
	if (!prepared && (sodium_init() < 0 || tls_prepare(&err) < 0))
		fail_msg("cannot prepare the libraries");
	prepared = true;
	struct urig *r = mem_alloc(sizeof(*r));
	r->loop = loop_new();
	r->tick = loop_timer_new(r->loop, on_tick, r);
	loop_timer_set(r->tick, TICK_NS, TICK_NS);
	r->events = json_array();
	r->control = r->audit = -1;
	r->mint = mint_new("rig", &err);
	assert_non_null(r->mint);
	crypto_box_keypair(r->key + SECRET_KEY_SIZE - 32, r->key);
	return r;
}

static void make_sockets(struct urig *r, int theirs[3])
{
	int control[2], audit[2], link[2];
	assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, control), 0);
	assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, audit), 0);
	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, link), 0);
	r->control = control[0];
	r->audit = audit[0];
	r->control_io = loop_io_add(r->loop, r->control, LOOP_READ, on_control, r);
	r->audit_io = loop_io_add(r->loop, r->audit, LOOP_READ, on_audit, r);
	start_link(r, link[0]);
	theirs[0] = control[1];
	theirs[1] = audit[1];
	theirs[2] = link[1];
}

void urig_run(struct urig *r, const char *network, const char *const *secrets)
{
	int theirs[3];
	struct err err = ERR_INIT;
	struct upstream_system system = { 0 };
	make_sockets(r, theirs);
	system.gate.hosts = hosts_parse(hosts_text, sizeof(hosts_text) - 1);
	system.roots = tls_roots_read(&err);
	r->upstream = system.roots ? upstream_new(r->loop, theirs[0], theirs[1], theirs[2], &system, &err) : NULL;
	if (!r->upstream)
		fail_msg("%s", err.text);
	send_config(r, network, secrets);
	URIG_WAIT(r, r->ready);
}

void urig_run_program(struct urig *r, const char *path, const char *network, const char *const *secrets)
{
	int theirs[3];
	make_sockets(r, theirs);
	fflush(NULL);
	r->child = fork();
	if (r->child == 0) {
		for (int i = 0; i < 3; i++)
			dup2(theirs[i], 200 + i); /* beyond any of the rig itself */
		for (int i = 0; i < 3; i++)
			dup2(200 + i, 3 + i);
		close_range(6, ~0u, 0);
		execl(path, path, (char *)NULL);
		_exit(99);
	}
	for (int i = 0; i < 3; i++)
		fd_close(&theirs[i]);
	if (network) {
		send_config(r, network, secrets);
		URIG_WAIT(r, r->ready);
	}
}

static void free_server(struct user *s)
{
	while (s->connections) {
		struct connection *c = s->connections;
		s->connections = c->next;
		loop_defer_cancel(s->rig->loop, on_cut, c);
		channel_free(c->channel);
		mem_free(c);
	}
	while (s->served) {
		struct served *one = s->served;
		s->served = one->next;
		http_head_free(&one->head);
		buf_free(&one->body);
		buf_free(&one->out);
		mem_free(one);
	}
	loop_io_remove(s->io);
	fd_close(&s->fd);
	mem_free(s);
}

void urig_free(struct urig *r)
{
	upstream_free(r->upstream);
	channel_free(r->link);
	while (r->calls) {
		struct call *c = r->calls;
		r->calls = c->next;
		http_head_free(&c->head);
		http_head_free(&c->trailers);
		buf_free(&c->body);
		buf_free(&c->out);
		mem_free(c);
	}
	while (r->servers) {
		struct user *s = r->servers;
		r->servers = s->next;
		free_server(s);
	}
	loop_io_remove(r->control_io);
	loop_io_remove(r->audit_io);
	fd_close(&r->control);
	fd_close(&r->audit);
	if (r->child > 0) {
		kill(r->child, SIGKILL);
		waitpid(r->child, NULL, 0);
	}
	mint_free(r->mint);
	json_decref(r->events);
	loop_timer_free(r->tick);
	loop_free(r->loop);
	mem_free(r);
}
