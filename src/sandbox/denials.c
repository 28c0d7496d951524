/* SPDX-License-Identifier: Apache-2.0 */
/*
 * System calls that the list refused. The first of each kind go on the record one by one; a flood becomes counts, flushed once a second and at the
 * end, so that no attempt is lost and no attempt can fill the disk.
 */
#include "sandbox/internal.h"

#include <string.h>

#include "audit/text.h"
#include "base/mem.h"
#include "base/text.h"

#define DENIALS_SINGLE 16u       /* of each system call */
#define DENIALS_KINDS 512u
#define DENIALS_FLUSH_NS NS_PER_S

struct denial_kind {
	int number;
	const char *name;
	char command[17];
	pid_t pid;
	uint64_t seen, unrecorded;
};

struct denial_log {
	struct sandbox *sandbox;
	struct denial_kind kinds[DENIALS_KINDS];
	unsigned n;
	struct loop_timer *timer;
	bool timer_on;
};

static void record(struct denial_log *d, const struct denial_kind *k, uint64_t count)
{
	events_send(d->sandbox, AUDIT_DENIAL,
		json_pack("{s:s,s:o,s:i,s:I}", "syscall", k->name, "command", audit_text_json(k->command, strlen(k->command)), "pid", (int)k->pid,
			"count", (json_int_t)count),
		NULL, NULL);
}

void denial_log_flush(struct denial_log *d)
{
	for (unsigned i = 0; i < d->n; i++) {
		if (d->kinds[i].unrecorded)
			record(d, &d->kinds[i], d->kinds[i].unrecorded);
		d->kinds[i].unrecorded = 0;
	}
}

static void on_timer(void *ctx)
{
	struct denial_log *d = ctx;
	d->timer_on = false;
	denial_log_flush(d);
}

struct denial_log *denial_log_new(struct sandbox *s)
{
	struct denial_log *d = mem_alloc(sizeof(*d));
	d->sandbox = s;
	d->timer = loop_timer_new(s->loop, on_timer, d);
	return d;
}

/* System call numbers are few; the last slot gathers whatever wouldn't fit. */
static struct denial_kind *kind_of(struct denial_log *d, const struct syscall_denial *one)
{
	for (unsigned i = 0; i < d->n; i++)
		if (d->kinds[i].number == one->number)
			return &d->kinds[i];
	if (d->n == DENIALS_KINDS)
		return &d->kinds[DENIALS_KINDS - 1];
	struct denial_kind *k = &d->kinds[d->n++];
	k->number = one->number;
	k->name = one->name;
	return k;
}

void denial_log_add(struct denial_log *d, const struct syscall_denial *one)
{
	struct denial_kind *k = kind_of(d, one);
	memcpy(k->command, one->command, sizeof(k->command));
	k->command[sizeof(k->command) - 1] = '\0';
	k->pid = one->pid;
	d->sandbox->result.syscalls_denied++;
	if (k->seen++ < DENIALS_SINGLE) {
		record(d, k, 1);
		return;
	}
	k->unrecorded++;
	if (!d->timer_on)
		loop_timer_set(d->timer, DENIALS_FLUSH_NS, 0);
	d->timer_on = true;
}

struct denial_log *denial_log_free(struct denial_log *d)
{
	if (d)
		loop_timer_free(d->timer);
	return mem_free(d);
}
