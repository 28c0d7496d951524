/* SPDX-License-Identifier: Apache-2.0 */
/* bulkhead audit verify: is a record whole, in order and as it was written? */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <string.h>
#include <unistd.h>

#include "audit/record.h"
#include "base/fd.h"
#include "base/mem.h"
#include "base/text.h"
#include "program/bulkhead/command.h"
#include "store/state.h"

static int open_by_id(const struct globals *g, const char *id, struct err *err)
{
	struct state *s;
	struct sandbox_dir *d;
	if (state_open(g->state, &s, err) < 0)
		return -1;
	int r = state_sandbox_open(s, id, false, &d, err);
	int fd = -1;
	if (r == 0) {
		fd = fcntl(sandbox_dir_fd(d), F_DUPFD_CLOEXEC, 0);
		if (fd < 0)
			err_sys(err, errno, "cannot open the folder of sandbox %s", sandbox_dir_id(d));
		sandbox_dir_free(d);
	}
	state_free(s);
	return fd;
}

/* With a slash in it, or "." and "..", it is a folder: a record can be checked anywhere, without the state that it came from.
 */
static int open_named(const struct globals *g, const char *name, struct err *err)
{
	if (!strchr(name, '/') && name[0] != '.')
		return open_by_id(g, name, err);
	int fd = open(name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	return fd < 0 ? err_sys(err, errno, "cannot open the folder %s", name) : fd;
}

static int print_verdict(const struct globals *g, const char *name, const struct record_verdict *v)
{
	char size[TEXT_SIZE_MAX];
	int status = v->intact ? 0 : EXIT_NO;
	if (g->json) {
		int printed = command_print_json(&command_audit,
			json_pack("{s:s, s:b, s:b, s:b, s:b, s:I, s:I, s:s, s:I, s:I, s:s}", "record", name, "intact",
				v->intact, "complete", v->complete, "torn", v->torn, "lost", v->lost, "records",
				(json_int_t)v->records, "output_bytes", (json_int_t)v->output_bytes, "head", v->head,
				"torn_bytes", (json_int_t)v->torn_bytes, "bad_line", (json_int_t)v->bad_line, "text", v->text));
		return printed ? printed : status;
	}
	if (!g->quiet) {
		printf("%s: %s\n", v->intact ? "intact" : "NOT INTACT", v->text);
		printf("output checked: %s\nhead: %s (after record %" PRIu64 ")\n", text_format_size(v->output_bytes, size),
			v->head, v->last_seq);
	}
	return command_finish(&command_audit, status);
}

static int verify(const struct globals *g, const char *name)
{
	struct err err = ERR_INIT;
	struct record_verdict v;
	cleanup_fd int dirfd = open_named(g, name, &err);
	if (dirfd < 0 || record_read(dirfd, true, NULL, NULL, &v, &err) < 0)
		return command_fail(&command_audit, &err);
	return print_verdict(g, name, &v);
}

static int run(struct globals *g, int argc, char **argv)
{
	struct err err = ERR_INIT;
	char **rest;
	int n;
	bool help;
	if (command_options(&command_audit, g, NULL, NULL, false, argc, argv, &rest, &n, &help, &err) < 0)
		return command_fail(&command_audit, &err);
	if (help)
		return command_finish(&command_audit, 0);
	if (n != 2 || !str_eq(rest[0], "verify")) {
		err_set(&err, ERR_USAGE, "audit needs a verb and a sandbox: bulkhead audit verify ID");
		return command_fail(&command_audit, &err);
	}
	return verify(g, rest[1]);
}

const struct command command_audit = {
	.name = "audit",
	.summary = "check that a record is as it was written",
	.usage = "usage: bulkhead audit verify ID|FOLDER [--json]\n\n"
		 "Reads the record through, checks each hash, the order and all output bytes. Status 0: intact; 1: not, and "
		 "the first bad\n"
		 "line is named. Says also whether the record is complete (has the end of the sandbox), whether a writer was "
		 "lost, and how many\n"
		 "bytes of a torn record follow the last whole one. A name with a slash in it is a folder that holds "
		 "record.jsonl and output.bin.\n"
		 "The head is the hash over everything: kept elsewhere, it also shows whether records were cut off the end "
		 "later.\n",
	.run = run,
};
