/* SPDX-License-Identifier: Apache-2.0 */
/* bulkhead doctor: what works here, found out by doing it; where something doesn't, why, and the smallest fix. */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/mem.h"
#include "base/text.h"
#include "event/loop.h"
#include "isolate/cgroup.h"
#include "isolate/isolate.h"
#include "isolate/probe.h"
#include "program/bulkhead/command.h"

#define KILL_TIMEOUT_NS (5 * NS_PER_S)
/* An id range that no sandbox is given: only this one box uses it, and it is gone in a moment. */
#define PROBE_ID_BASE 0x7fff0000u

struct report {
	struct probe_row levels[ISOLATION_LEVEL_MAX], limits[PROBE_ROWS_MAX], features[PROBE_ROWS_MAX],
		restrictions[PROBE_ROWS_MAX], kvm;
	size_t n_limits, n_features, n_restrictions;
};

struct trial {
	struct loop *loop;
	struct err err;
	uint64_t begun, took;
	bool ok;
};

static void on_ready(void *ctx, struct box *box, const struct err *failure)
{
	struct trial *t = ctx;
	t->took = time_monotonic_ns() - t->begun;
	if (box)
		t->ok = box_kill(box, KILL_TIMEOUT_NS, &t->err) == 0 && box_teardown(box, &t->err) == 0;
	else
		t->err = *failure;
	loop_quit(t->loop, 0);
}

/* A real box over a copy of an empty folder, built by the real launcher up to the running agent, then killed and checked to be
 * gone. */
static void try_container(struct trial *t, const char *folder)
{
	const uint64_t off = POLICY_UNLIMITED;
	bool root = geteuid() == 0;
	char target[] = "/workspace", hostname[] = "doctor", nothing[] = "";
	struct spec_mount mount = { .target = target, .mode = MOUNT_COPY, .owner_uid = geteuid(), .owner_gid = getegid() };
	struct spec spec = { .privileged = root,
		.host_id_base = root ? PROBE_ID_BASE : 0,
		.hostname = hostname,
		.workdir = target,
		.mounts = &mount,
		.n_mounts = 1,
		.host_uname = nothing,
		.egress = true,
		.limits = { off, off, off, 1u << 20, off, off, off, off, off, off, off } };
	cleanup_fd int fd = open(folder, O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (fd < 0) {
		err_sys(&t->err, errno, "can't open %s", folder);
		return;
	}
	sandbox_id_new(spec.id);
	t->begun = time_monotonic_ns();
	int pair[2];
	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) < 0) {
		err_sys(&t->err, errno, "can't make the pipe between host and box");
		return;
	}
	cleanup_fd int host_end = pair[0];
	cleanup_fd int box_end = pair[1];
	t->loop = loop_new();
	if (isolate_container.start(t->loop, &spec, &fd, box_end, on_ready, t, &t->err) == 0)
		loop_run(t->loop);
	loop_free(t->loop);
}

static void container_row(struct probe_row *row)
{
	struct trial t = { 0 };
	char folder[PATH_MAX], text[TEXT_SIZE_MAX];
	const char *tmp = getenv("TMPDIR");
	*row = (struct probe_row){ .name = "container" };
	snprintf(folder, sizeof(folder), "%s/bulkhead-doctor-XXXXXX", tmp && *tmp == '/' ? tmp : "/tmp");
	if (!mkdtemp(folder)) {
		snprintf(row->detail, sizeof(row->detail), "can't create a folder to try with: %s", strerror(errno));
		return;
	}
	try_container(&t, folder);
	rmdir(folder);
	row->ok = t.ok;
	snprintf(row->detail, sizeof(row->detail), "%s%s", t.ok ? "a box was built and removed; built in " : t.err.text,
		t.ok ? text_format_duration(t.took, text) : "");
}

static bool on_path(const char *program)
{
	const char *path = getenv("PATH");
	for (const char *p = path; p && *p;) {
		size_t len = strcspn(p, ":");
		char file[PATH_MAX];
		snprintf(file, sizeof(file), "%.*s/%s", (int)len, p, program);
		if (len > 0 && access(file, X_OK) == 0)
			return true;
		p += len + (p[len] == ':');
	}
	return false;
}

static void other_levels(struct report *r)
{
	struct probe_row *gvisor = &r->levels[ISOLATION_GVISOR], *microvm = &r->levels[ISOLATION_MICROVM];
	*gvisor = (struct probe_row){ .name = "gvisor" };
	snprintf(gvisor->detail, sizeof(gvisor->detail), "not supported by this version yet (runsc is %s)",
		on_path("runsc") ? "installed" : "not installed");
	*microvm = (struct probe_row){ .name = "microvm" };
	probe_kvm(&r->kvm);
	snprintf(microvm->detail, sizeof(microvm->detail), "not supported by this version yet; hardware virtualisation: %.600s",
		r->kvm.detail);
}

static void examine(struct report *r)
{
	container_row(&r->levels[ISOLATION_CONTAINER]);
	other_levels(r);
	r->n_limits = probe_limits(r->limits);
	r->n_features = probe_features(r->features);
	r->n_restrictions = probe_restrictions(r->restrictions);
}

static void print_rows(const char *title, const struct probe_row *rows, size_t n, const char *good, const char *bad)
{
	bool colour = command_colour();
	printf("%s\n", title);
	for (size_t i = 0; i < n; i++)
		printf("  %s%-12s%s %-46s %s\n", colour ? (rows[i].ok ? "\033[32m" : "\033[31m") : "", rows[i].ok ? good : bad,
			colour ? "\033[0m" : "", rows[i].name, rows[i].detail);
}

static json_t *rows_json(const struct probe_row *rows, size_t n, const char *key)
{
	json_t *list = json_array();
	for (size_t i = 0; i < n; i++)
		json_array_append_new(
			list, json_pack("{s:s, s:b, s:s}", "name", rows[i].name, key, rows[i].ok, "detail", rows[i].detail));
	return list;
}

static json_t *report_json(const struct report *r)
{
	return json_pack("{s:b, s:s, s:o, s:o, s:o, s:o}", "ready", r->levels[ISOLATION_CONTAINER].ok, "user",
		geteuid() == 0 ? "root" : "ordinary", "levels", rows_json(r->levels, ISOLATION_LEVEL_MAX, "ready"), "limits",
		rows_json(r->limits, r->n_limits, "enforced"), "features", rows_json(r->features, r->n_features, "present"),
		"restrictions", rows_json(r->restrictions, r->n_restrictions, "open"));
}

static void print_report(const struct report *r)
{
	print_rows("isolation levels, weakest first", r->levels, ISOLATION_LEVEL_MAX, "ready", "not ready");
	print_rows(geteuid() == 0 ? "limits (as root)" : "limits (as this user)", r->limits, r->n_limits, "enforced",
		"NOT enforced");
	print_rows("kernel features", r->features, r->n_features, "present", "missing");
	print_rows("restrictions of user namespaces", r->restrictions, r->n_restrictions, "open", "restricted");
}

static int run_doctor(struct globals *g, int argc, char **argv)
{
	static struct report report;
	struct err err = ERR_INIT;
	char **operands;
	int n;
	bool help;
	if (command_options(&command_doctor, g, NULL, NULL, false, argc, argv, &operands, &n, &help, &err) < 0)
		return command_fail(&command_doctor, &err);
	if (help)
		return command_finish(&command_doctor, 0);
	if (n > 0) {
		err_set(&err, ERR_USAGE, "takes no arguments, but got \"%.100s\"", operands[0]);
		return command_fail(&command_doctor, &err);
	}
	examine(&report);
	int status = report.levels[ISOLATION_CONTAINER].ok ? 0 : EXIT_NO;
	if (g->json) {
		int r = command_print_json(&command_doctor, report_json(&report));
		return r != 0 ? r : status;
	}
	print_report(&report);
	return command_finish(&command_doctor, status);
}

const struct command command_doctor = {
	.name = "doctor",
	.summary = "what works on this host, and the smallest fix for what doesn't",
	.usage = "usage: bulkhead doctor [--json]\n\n"
		 "Builds and removes a real box, tries every limit and kernel feature, and times a tiny guest on /dev/kvm.\n"
		 "Exit status: 0 when the level `container` is ready for this user, 1 when it isn't.\n",
	.run = run_doctor,
};
