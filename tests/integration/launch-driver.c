/* SPDX-License-Identifier: Apache-2.0 */
/*
 * launch-driver [OPTIONS] COMMAND: builds one box with isolate/ alone and runs a shell command in it through launch-agent.c.
 * Prints what the command printed; denied system calls as "DENIED name"; exits with the command's status, 125 with a sentence
 * when there was no box.
 */
#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/mem.h"
#include "base/text.h"
#include "event/child.h"
#include "event/loop.h"
#include "isolate/cgroup.h"
#include "isolate/isolate.h"
#include "isolate/notify.h"

struct driver {
	struct loop *loop;
	struct spec spec;
	int fds[SPEC_SOURCES_MAX], files[SPEC_FILES_MAX];
	const char *command;
	struct box box;
	struct notify *notify;
	struct loop_io *io, *end;
	int pipe_fd;
	bool upper, usage, quiet, hold;
	uint64_t begun, ready;
};

static void fail(const struct err *err)
{
	fprintf(stderr, "launch-driver: [%s] %s\n", err_code_name(err->code), err->text);
	exit(125);
}

static void on_denied(void *ctx, const struct syscall_denial *d)
{
	(void)ctx;
	printf("DENIED %s by %s\n", d->name, d->command);
	fflush(stdout);
}

static void on_output(void *ctx, int fd, int ready)
{
	struct driver *d = ctx;
	char data[65536];
	(void)ready;
	ssize_t n = read(fd, data, sizeof(data));
	if (n > 0 && write(1, data, (size_t)n) == n)
		return;
	d->io = loop_io_remove(d->io);
}

/* What the box had of the copies: overlay's upper folders, and whole ones. */
static void print_upper(struct driver *d)
{
	char command[160];
	fflush(stdout);
	int fd = dup(d->box.upper_fd); /* without close-on-exec */
	snprintf(command, sizeof(command),
		"for d in up whole; do cd /proc/self/fd/%d/$d && find . -printf \"%%y %%m %%U $d %%p\\n\" | sort -k4; done", fd);
	if (system(command) != 0)
		fprintf(stderr, "launch-driver: can't list the upper folder\n");
	close(fd);
}

static void on_end(void *ctx, int fd, int ready)
{
	struct driver *d = ctx;
	struct err err = ERR_INIT;
	int status = 0;
	(void)ready;
	d->end = loop_io_remove(d->end);
	while (d->io)
		on_output(d, d->pipe_fd, LOOP_READ);
	child_wait(fd, &status);
	if (d->upper)
		print_upper(d);
	if (d->usage && d->box.cgroup) {
		struct cgroup_usage u;
		if (cgroup_usage(d->box.cgroup, &u, &err) == 0)
			printf("USAGE cpu_ms=%llu peak_mib=%llu oom_kills=%llu pids_denied=%llu\n",
				(unsigned long long)(u.cpu_ns / 1000000), (unsigned long long)(u.memory_peak >> 20),
				(unsigned long long)u.oom_kills, (unsigned long long)u.pids_denied);
	}
	d->notify = notify_free(d->notify);
	d->box.notify_fd = -1;
	if (box_kill(&d->box, 5 * NS_PER_S, &err) < 0 || box_teardown(&d->box, &err) < 0)
		fail(&err);
	if (!d->quiet)
		fprintf(stderr, "launch-driver: ready after %.2f ms, all %.2f ms\n", (double)(d->ready - d->begun) / 1e6,
			(double)(time_monotonic_ns() - d->begun) / 1e6);
	loop_quit(d->loop, WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status));
}

static void on_ready(void *ctx, struct box *box, const struct err *failure)
{
	struct driver *d = ctx;
	struct err err = ERR_INIT;
	if (!box)
		fail(failure);
	d->ready = time_monotonic_ns();
	d->box = *box;
	d->notify = notify_new(d->loop, box->notify_fd, on_denied, d, &err);
	if (!d->notify)
		fail(&err);
	d->io = loop_io_add(d->loop, d->pipe_fd, LOOP_READ, on_output, d);
	d->end = loop_io_add(d->loop, box->pidfd, LOOP_READ, on_end, d);
	if (d->hold) {
		printf("PID %d\nID %s\n", (int)box->pid, box->id);
		fflush(stdout);
	}
	fd_write_full(d->pipe_fd, d->command, strlen(d->command));
	shutdown(d->pipe_fd, SHUT_WR);
}

/* SRC:DST:MODE */
static void add_mount(struct driver *d, char *text)
{
	char *dst = strchr(text, ':'), *mode = dst ? strchr(dst + 1, ':') : NULL;
	struct stat st;
	if (!mode || d->spec.n_mounts == SPEC_MOUNTS_MAX)
		exit(2);
	*dst++ = '\0';
	*mode++ = '\0';
	d->spec.mounts = mem_grow_array(d->spec.mounts, d->spec.n_mounts + 1, sizeof(*d->spec.mounts));
	struct spec_mount *m = &d->spec.mounts[d->spec.n_mounts];
	int fd = open(text, O_PATH | O_CLOEXEC);
	*m = (struct spec_mount){ .target = mem_strdup(dst) };
	if (fd < 0 || fstat(fd, &st) < 0 || mount_mode_parse(mode, &m->mode) < 0) {
		fprintf(stderr, "launch-driver: %s: %s\n", text, strerror(errno));
		exit(2);
	}
	m->owner_uid = st.st_uid;
	m->owner_gid = st.st_gid;
	m->is_file = !S_ISDIR(st.st_mode);
	d->fds[d->spec.n_mounts++] = fd;
}

/* SRC:PATH, laid over what the box sees */
static void add_file(struct driver *d, char *text)
{
	char *path = strchr(text, ':');
	if (!path || d->spec.n_files == SPEC_FILES_MAX)
		exit(2);
	*path++ = '\0';
	d->spec.files = mem_grow_array(d->spec.files, d->spec.n_files + 1, sizeof(*d->spec.files));
	d->spec.files[d->spec.n_files] = mem_strdup(path);
	int fd = open(text, O_RDONLY | O_CLOEXEC);
	if (fd < 0) {
		fprintf(stderr, "launch-driver: %s: %s\n", text, strerror(errno));
		exit(2);
	}
	d->files[d->spec.n_files++] = fd;
}

static uint64_t number(const char *text, bool size)
{
	uint64_t v;
	if (strcmp(text, "unlimited") == 0)
		return POLICY_UNLIMITED;
	if ((size ? text_parse_size(text, &v) : text_parse_u64(text, 0, UINT64_MAX - 1, &v)) < 0)
		exit(2);
	return v;
}

static void defaults(struct driver *d)
{
	const bool root = geteuid() == 0;
	const uint64_t off = POLICY_UNLIMITED;
	*d = (struct driver){ .spec = { .privileged = root,
				      .host_id_base = root ? 0x50000000 : 0,
				      .hostname = mem_strdup("box"),
				      .workdir = mem_strdup("/"),
				      .host_uname = mem_strdup("") } };
	d->spec.limits = (struct policy_limits){ .cpus_milli = root ? 2000 : off,
		.memory = root ? 1u << 30 : off,
		.processes = 256,
		.disk = 256u << 20,
		.open_files = 4096,
		.output = off,
		.egress_requests = off,
		.egress_bytes = off,
		.connections = off,
		.timeout_ns = off,
		.idle_ns = off };
	sandbox_id_new(d->spec.id);
	d->loop = loop_new();
}

/* What a killed supervisor left, twice: the second time there is nothing. */
static int reap(const char *id)
{
	struct err err = ERR_INIT;
	unsigned first = 0, second = 0;
	if (isolate_reap(id, false, &first, &err) < 0 || isolate_reap(id, true, &second, &err) < 0)
		fail(&err);
	printf("reaped %u then %u\n", first, second);
	return 0;
}

static void parse(struct driver *d, int argc, char **argv)
{
	static const struct option options[] = { { "mount", 1, NULL, 'm' }, { "cpus", 1, NULL, 'c' },
		{ "memory", 1, NULL, 'M' }, { "pids", 1, NULL, 'p' }, { "disk", 1, NULL, 'd' }, { "egress", 0, NULL, 'e' },
		{ "upper", 0, NULL, 'u' }, { "usage", 0, NULL, 'U' }, { "quiet", 0, NULL, 'q' }, { "hold", 0, NULL, 'h' },
		{ "reap", 1, NULL, 'r' }, { "file", 1, NULL, 'f' }, { NULL, 0, NULL, 0 } };
	for (int o; (o = getopt_long(argc, argv, "", options, NULL)) != -1;) {
		switch (o) {
		case 'm':
			add_mount(d, optarg);
			break;
		case 'f':
			add_file(d, optarg);
			break;
		case 'c':
			d->spec.limits.cpus_milli = number(optarg, false);
			break;
		case 'M':
			d->spec.limits.memory = number(optarg, true);
			break;
		case 'p':
			d->spec.limits.processes = number(optarg, false);
			break;
		case 'd':
			d->spec.limits.disk = number(optarg, true);
			break;
		case 'e':
			d->spec.egress = true;
			break;
		case 'u':
			d->upper = true;
			break;
		case 'U':
			d->usage = true;
			break;
		case 'q':
			d->quiet = true;
			break;
		case 'h':
			d->hold = true;
			break;
		case 'r':
			exit(reap(optarg));
		default:
			exit(2);
		}
	}
	if (optind != argc - 1)
		exit(2);
	d->command = argv[optind];
}

int main(int argc, char **argv)
{
	static struct driver d;
	struct err err = ERR_INIT;
	defaults(&d);
	parse(&d, argc, argv);
	int pair[2];
	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) < 0)
		exit(125);
	d.pipe_fd = pair[0];
	memcpy(d.fds + d.spec.n_mounts, d.files, d.spec.n_files * sizeof(int));
	d.begun = time_monotonic_ns();
	if (isolate_container.check(&d.spec, &err) < 0 ||
		isolate_container.start(d.loop, &d.spec, d.fds, pair[1], on_ready, &d, &err) < 0)
		fail(&err);
	close(pair[1]);
	int status = loop_run(d.loop);
	spec_done(&d.spec);
	loop_free(d.loop);
	return status;
}
