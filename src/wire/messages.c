/* SPDX-License-Identifier: Apache-2.0 */
#include "wire/messages.h"

#include <signal.h>
#include <string.h>

#include "base/mem.h"

#define ERRNO_MAX 4095

/* An encoder that fails leaves nothing behind in the buffer. */
static int finish(struct buf *out, size_t before, bool ok)
{
	if (!ok)
		out->len = before;
	return ok ? 0 : -1;
}

static int decoded(bool ok, const char *what, struct err *err)
{
	return ok ? 0 : err_set(err, ERR_PROTOCOL, "the other side of the pipe sent a malformed %s message", what);
}

static bool take_bool(struct cursor *c)
{
	uint8_t v = cursor_u8(c);
	if (v > 1)
		c->bad = true;
	return v == 1;
}

static void require(struct cursor *c, bool condition)
{
	if (!condition)
		c->bad = true;
}

/* addresses */

#define FAMILY_V4 4u
#define FAMILY_V6 6u

static bool put_address(struct buf *out, const struct ip *ip)
{
	if (ip->family == AF_INET)
		return buf_put_u8(out, FAMILY_V4) == 0 && buf_append(out, ip->bytes, 4) == 0;
	return ip->family == AF_INET6 && buf_put_u8(out, FAMILY_V6) == 0 && buf_append(out, ip->bytes, 16) == 0;
}

static void take_address(struct cursor *c, struct ip *ret)
{
	uint8_t family = cursor_u8(c);
	require(c, family == FAMILY_V4 || family == FAMILY_V6);
	size_t len = family == FAMILY_V4 ? 4 : 16;
	const uint8_t *p = cursor_take(c, len);
	if (!p)
		return;
	ret->family = family == FAMILY_V4 ? AF_INET : AF_INET6;
	memcpy(ret->bytes, p, len);
}

/* hello */

int wire_hello_encode(struct buf *out, const struct wire_hello *m)
{
	size_t before = out->len;
	return finish(out, before, buf_put_u32(out, m->version) == 0 && buf_put_u32(out, m->pid_in_box) == 0);
}

int wire_hello_decode(const void *p, size_t n, struct wire_hello *ret, struct err *err)
{
	struct cursor c = cursor_make(p, n);
	struct wire_hello m = { .version = cursor_u32(&c) };
	m.pid_in_box = cursor_u32(&c);
	if (cursor_done(&c))
		*ret = m;
	return decoded(cursor_done(&c), "HELLO", err);
}

/* config */

static bool put_literals(struct buf *out, const struct wire_config *m)
{
	if (m->n_literals > WIRE_LITERALS_MAX || buf_put_u16(out, m->n_literals) < 0)
		return false;
	for (uint16_t i = 0; i < m->n_literals; i++)
		if (m->literals[i].port == 0 || !put_address(out, &m->literals[i].address)
		    || buf_put_u16(out, m->literals[i].port) < 0)
			return false;
	return true;
}

static void take_literals(struct cursor *c, struct wire_config *m)
{
	m->n_literals = cursor_u16(c);
	require(c, m->n_literals <= WIRE_LITERALS_MAX);
	for (uint16_t i = 0; !c->bad && i < m->n_literals; i++) {
		take_address(c, &m->literals[i].address);
		m->literals[i].port = cursor_u16(c);
		require(c, m->literals[i].port != 0);
	}
}

int wire_config_encode(struct buf *out, const struct wire_config *m)
{
	size_t before = out->len;
	return finish(out, before, buf_put_u8(out, m->egress) == 0 && buf_put_u16(out, m->proxy_port) == 0
				   && buf_put_u32(out, m->exec_max) == 0 && put_literals(out, m));
}

int wire_config_decode(const void *p, size_t n, struct wire_config *ret, struct err *err)
{
	struct cursor c = cursor_make(p, n);
	struct wire_config m = { .egress = take_bool(&c) };
	m.proxy_port = cursor_u16(&c);
	m.exec_max = cursor_u32(&c);
	take_literals(&c, &m);
	if (cursor_done(&c))
		*ret = m;
	return decoded(cursor_done(&c), "CONFIG", err);
}

/* failed */

int wire_failed_encode(struct buf *out, const struct wire_failed *m)
{
	size_t before = out->len;
	bool ok = m->code > ERR_NONE && m->code < ERR_CODE_MAX && m->text && strlen(m->text) <= WIRE_FAILED_TEXT_MAX;
	return finish(out, before, ok && buf_put_u8(out, (uint8_t)m->code) == 0 && buf_put_str(out, m->text) == 0);
}

int wire_failed_decode(const void *p, size_t n, struct wire_failed *ret, struct err *err)
{
	struct cursor c = cursor_make(p, n);
	uint8_t code = cursor_u8(&c);
	require(&c, code > ERR_NONE && code < ERR_CODE_MAX);
	char *text = cursor_strdup(&c, WIRE_FAILED_TEXT_MAX);
	if (cursor_done(&c))
		*ret = (struct wire_failed){ .code = (enum err_code)code, .text = text };
	else
		mem_free(text);
	return decoded(cursor_done(&c), "FAILED", err);
}

/* exec */

static bool put_string(struct buf *out, const char *s)
{
	return s && strlen(s) <= WIRE_STRING_MAX && buf_put_str(out, s) == 0;
}

static bool put_strings(struct buf *out, char *const *list)
{
	uint32_t count = 0;
	while (list && list[count])
		if (++count > WIRE_ARGS_MAX)
			return false;
	if (buf_put_u32(out, count) < 0)
		return false;
	for (uint32_t i = 0; i < count; i++)
		if (!put_string(out, list[i]))
			return false;
	return true;
}

static void free_strings(char **list)
{
	for (char **p = list; p && *p; p++)
		mem_free(*p);
	mem_free(list);
}

/* NULL when bad. Nothing is allocated for a count that the message can't hold: each string takes at least its length field. */
static char **take_strings(struct cursor *c)
{
	uint32_t count = cursor_u32(c);
	require(c, count <= WIRE_ARGS_MAX && count <= c->left / sizeof(uint32_t));
	if (c->bad)
		return NULL;
	char **list = mem_alloc_array(count + 1, sizeof(*list));
	for (uint32_t i = 0; i < count && !c->bad; i++)
		list[i] = cursor_strdup(c, WIRE_STRING_MAX);
	if (c->bad) {
		free_strings(list);
		return NULL;
	}
	return list;
}

/* What holds of every EXEC, whichever end we are. */
static bool exec_is_valid(const struct wire_exec *m)
{
	return m->cwd && m->cwd[0] && m->argv && m->argv[0] && m->envp && m->stdout_stream != 0
	       && m->tty == (m->stderr_stream == 0);
}

int wire_exec_encode(struct buf *out, const struct wire_exec *m)
{
	static char *none[] = { NULL };
	struct wire_exec full = *m;
	if (!full.envp)
		full.envp = none;
	size_t before = out->len;
	return finish(out, before, exec_is_valid(&full)
		      && buf_put_u32(out, m->execution) == 0
		      && buf_put_u32(out, m->stdin_stream) == 0
		      && buf_put_u32(out, m->stdout_stream) == 0
		      && buf_put_u32(out, m->stderr_stream) == 0
		      && buf_put_u8(out, m->tty) == 0
		      && buf_put_u16(out, m->rows) == 0
		      && buf_put_u16(out, m->columns) == 0
		      && buf_put_u64(out, m->nofile) == 0
		      && put_string(out, m->cwd)
		      && put_strings(out, m->argv)
		      && put_strings(out, full.envp));
}

int wire_exec_decode(const void *p, size_t n, struct wire_exec *ret, struct err *err)
{
	struct cursor c = cursor_make(p, n);
	struct wire_exec m = { .execution = cursor_u32(&c) };
	m.stdin_stream = cursor_u32(&c);
	m.stdout_stream = cursor_u32(&c);
	m.stderr_stream = cursor_u32(&c);
	m.tty = take_bool(&c);
	m.rows = cursor_u16(&c);
	m.columns = cursor_u16(&c);
	m.nofile = cursor_u64(&c);
	m.cwd = cursor_strdup(&c, WIRE_STRING_MAX);
	m.argv = take_strings(&c);
	m.envp = take_strings(&c);
	bool ok = cursor_done(&c) && exec_is_valid(&m);
	if (ok)
		*ret = m;
	else
		wire_exec_done(&m);
	return decoded(ok, "EXEC", err);
}

void wire_exec_done(struct wire_exec *m)
{
	mem_free(m->cwd);
	free_strings(m->argv);
	free_strings(m->envp);
	*m = (struct wire_exec){ 0 };
}

/* exec started, exec exited, signal, resize */

int wire_exec_started_encode(struct buf *out, const struct wire_exec_started *m)
{
	size_t before = out->len;
	return finish(out, before, m->error >= 0 && m->error <= ERRNO_MAX && buf_put_u32(out, m->execution) == 0
				   && buf_put_u32(out, m->pid) == 0 && buf_put_u32(out, (uint32_t)m->error) == 0);
}

int wire_exec_started_decode(const void *p, size_t n, struct wire_exec_started *ret, struct err *err)
{
	struct cursor c = cursor_make(p, n);
	struct wire_exec_started m = { .execution = cursor_u32(&c) };
	m.pid = cursor_u32(&c);
	uint32_t error = cursor_u32(&c);
	require(&c, error <= ERRNO_MAX);
	m.error = (int32_t)error;
	if (cursor_done(&c))
		*ret = m;
	return decoded(cursor_done(&c), "EXEC_STARTED", err);
}

/* A wait status of a process that has ended: exit code in bits 8 … 15, or a signal (and the core bit) below. */
static bool is_end_status(uint32_t status)
{
	uint32_t signal = status & 0x7f;
	if (status > 0xffff)
		return false;
	return signal == 0 ? (status & 0x80) == 0 : signal != 0x7f && status <= 0xff;
}

int wire_exec_exited_encode(struct buf *out, const struct wire_exec_exited *m)
{
	size_t before = out->len;
	return finish(out, before, is_end_status((uint32_t)m->wait_status) && buf_put_u32(out, m->execution) == 0
				   && buf_put_u32(out, (uint32_t)m->wait_status) == 0);
}

int wire_exec_exited_decode(const void *p, size_t n, struct wire_exec_exited *ret, struct err *err)
{
	struct cursor c = cursor_make(p, n);
	struct wire_exec_exited m = { .execution = cursor_u32(&c) };
	uint32_t status = cursor_u32(&c);
	require(&c, is_end_status(status));
	m.wait_status = (int32_t)status;
	if (cursor_done(&c))
		*ret = m;
	return decoded(cursor_done(&c), "EXEC_EXITED", err);
}

static bool is_signal(uint32_t signal)
{
	return signal >= 1 && signal < NSIG;
}

int wire_signal_encode(struct buf *out, const struct wire_signal *m)
{
	size_t before = out->len;
	return finish(out, before, is_signal(m->signal) && buf_put_u32(out, m->execution) == 0
				   && buf_put_u32(out, m->signal) == 0);
}

int wire_signal_decode(const void *p, size_t n, struct wire_signal *ret, struct err *err)
{
	struct cursor c = cursor_make(p, n);
	struct wire_signal m = { .execution = cursor_u32(&c) };
	m.signal = cursor_u32(&c);
	require(&c, is_signal(m.signal));
	if (cursor_done(&c))
		*ret = m;
	return decoded(cursor_done(&c), "SIGNAL", err);
}

int wire_resize_encode(struct buf *out, const struct wire_resize *m)
{
	size_t before = out->len;
	return finish(out, before, buf_put_u32(out, m->execution) == 0 && buf_put_u16(out, m->rows) == 0
				   && buf_put_u16(out, m->columns) == 0);
}

int wire_resize_decode(const void *p, size_t n, struct wire_resize *ret, struct err *err)
{
	struct cursor c = cursor_make(p, n);
	struct wire_resize m = { .execution = cursor_u32(&c) };
	m.rows = cursor_u16(&c);
	m.columns = cursor_u16(&c);
	if (cursor_done(&c))
		*ret = m;
	return decoded(cursor_done(&c), "RESIZE", err);
}

/* names */

static bool put_name(struct buf *out, const struct hostname *name)
{
	return buf_put_bytes(out, name->text, name->len) == 0;
}

/* Only the canonical spelling: what arrives is what was meant, and nobody can write one name in two ways. */
static void take_name(struct cursor *c, struct hostname *ret)
{
	size_t len = 0;
	const uint8_t *p = cursor_bytes(c, HOSTNAME_MAX, &len);
	if (!p)
		return;
	require(c, hostname_parse(p, len, ret, NULL) == 0 && ret->len == len && memcmp(ret->text, p, len) == 0);
}

int wire_name_query_encode(struct buf *out, const struct wire_name_query *m)
{
	size_t before = out->len;
	return finish(out, before, buf_put_u32(out, m->query) == 0 && put_name(out, &m->name));
}

int wire_name_query_decode(const void *p, size_t n, struct wire_name_query *ret, struct err *err)
{
	struct cursor c = cursor_make(p, n);
	struct wire_name_query m = { .query = cursor_u32(&c) };
	take_name(&c, &m.name);
	if (cursor_done(&c))
		*ret = m;
	return decoded(cursor_done(&c), "NAME_QUERY", err);
}

static bool ports_are_valid(const struct wire_name_answer *m)
{
	if (m->n_ports > WIRE_PORTS_MAX || (!m->allowed && m->n_ports > 0))
		return false;
	for (uint16_t i = 0; i < m->n_ports; i++)
		if (m->ports[i] == 0)
			return false;
	return true;
}

int wire_name_answer_encode(struct buf *out, const struct wire_name_answer *m)
{
	size_t before = out->len;
	bool ok = ports_are_valid(m) && buf_put_u32(out, m->query) == 0 && buf_put_u8(out, m->allowed) == 0
		  && buf_put_u16(out, m->n_ports) == 0;
	for (uint16_t i = 0; ok && i < m->n_ports; i++)
		ok = buf_put_u16(out, m->ports[i]) == 0;
	return finish(out, before, ok);
}

int wire_name_answer_decode(const void *p, size_t n, struct wire_name_answer *ret, struct err *err)
{
	struct cursor c = cursor_make(p, n);
	struct wire_name_answer m = { .query = cursor_u32(&c) };
	m.allowed = take_bool(&c);
	m.n_ports = cursor_u16(&c);
	require(&c, m.n_ports <= WIRE_PORTS_MAX);
	for (uint16_t i = 0; !c.bad && i < m.n_ports; i++)
		m.ports[i] = cursor_u16(&c);
	bool ok = cursor_done(&c) && ports_are_valid(&m);
	if (ok)
		*ret = m;
	return decoded(ok, "NAME_ANSWER", err);
}

/* egress */

int wire_egress_open_encode(struct buf *out, const struct wire_egress_open *m)
{
	size_t before = out->len;
	bool ok = m->stream != 0 && buf_put_u32(out, m->stream) == 0 && buf_put_u8(out, (uint8_t)m->entrance) == 0;
	switch (m->entrance) {
	case WIRE_ENTRANCE_NAME:
		ok = ok && m->port != 0 && put_name(out, &m->name) && buf_put_u16(out, m->port) == 0;
		break;
	case WIRE_ENTRANCE_ADDRESS:
		ok = ok && m->port != 0 && put_address(out, &m->address) && buf_put_u16(out, m->port) == 0;
		break;
	case WIRE_ENTRANCE_PROXY:
		break;
	default:
		ok = false;
	}
	return finish(out, before, ok);
}

int wire_egress_open_decode(const void *p, size_t n, struct wire_egress_open *ret, struct err *err)
{
	struct cursor c = cursor_make(p, n);
	struct wire_egress_open m = { .stream = cursor_u32(&c) };
	uint8_t entrance = cursor_u8(&c);
	require(&c, m.stream != 0 && entrance >= WIRE_ENTRANCE_NAME && entrance <= WIRE_ENTRANCE_PROXY);
	m.entrance = (enum wire_entrance)entrance;
	if (entrance == WIRE_ENTRANCE_NAME)
		take_name(&c, &m.name);
	else if (entrance == WIRE_ENTRANCE_ADDRESS)
		take_address(&c, &m.address);
	if (entrance != WIRE_ENTRANCE_PROXY) {
		m.port = cursor_u16(&c);
		require(&c, m.port != 0);
	}
	if (cursor_done(&c))
		*ret = m;
	return decoded(cursor_done(&c), "EGRESS_OPEN", err);
}
