/* SPDX-License-Identifier: Apache-2.0 */
/*
 * bulkhead-audit: the only writer of a sandbox's record. Takes typed events from the supervisor and both halves of the gate, each on its own
 * socket, appends them to the chain, answers. Ends when its sources have ended, whatever happened to them.
 */
#include <sys/resource.h>
#include <errno.h>
#include <fcntl.h>
#include <jansson.h>
#include <signal.h>
#include <sodium.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "audit/client.h"
#include "audit/serve.h"
#include "base/fd.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/text.h"
#include "program/bulkhead-audit/syscalls.h"
#include "program/common/confine.h"

enum { EXIT_FAILED = 125 };

static bool is_open(int fd)
{
	return fcntl(fd, F_GETFD) >= 0;
}

/* The terminal's signals and the parent's death end the sources; the record of that end is what we stay for. */
static void outlive(void)
{
	static const int signals[] = { SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGPIPE, SIGXFSZ };
	prctl(PR_SET_PDEATHSIG, 0, 0, 0, 0);
	for (size_t i = 0; i < ARRAY_LEN(signals); i++)
		signal(signals[i], SIG_IGN);
}

/* Everything that opens files or asks the kernel on first use does so now. */
static int prepare_libraries(struct err *err)
{
	const void *random = (const void *)getauxval(AT_RANDOM);
	char when[TEXT_SIZE_MAX];
	size_t seed = 0;
	if (random)
		memcpy(&seed, random, sizeof(seed));
	json_object_seed(seed);
	text_format_time(time_realtime_ns(), when);
	return sodium_init() < 0 ? err_set(err, ERR_SYSTEM, "cannot prepare the hash function") : 0;
}

/* Three sockets, the folder (closed by then), two files; poll(2) wants a limit that is not below the number of its entries. */
#define DESCRIPTORS_MAX 16

/* Its files are open. Afterwards it can read its sockets, append to its two files, and end. */
static int confine_finish(struct err *err)
{
	struct rlimit few = { DESCRIPTORS_MAX, DESCRIPTORS_MAX };
	if (confine_drop_user(err) < 0 || confine_drop_capabilities(err) < 0 || confine_close_paths(err) < 0)
		return -1;
	if (setrlimit(RLIMIT_NOFILE, &few) < 0)
		return err_sys(err, errno, "cannot limit descriptors");
	return syscalls_restrict(err);
}

static int open_record(struct record_writer **ret, uint64_t *ret_cut, struct err *err)
{
	if (confine_begin(err) < 0 || prepare_libraries(err) < 0 || record_writer_open(AUDIT_DIR_FD, ret, ret_cut, err) < 0)
		return -1;
	close(AUDIT_DIR_FD);
	return confine_finish(err);
}

int main(void)
{
	struct err err = ERR_INIT;
	struct record_writer *w = NULL;
	uint64_t cut;
	struct audit_sockets sockets = { .supervisor = AUDIT_SUPERVISOR_FD };
	sockets.gate = is_open(AUDIT_GATE_FD) ? AUDIT_GATE_FD : -1;
	sockets.upstream = is_open(AUDIT_UPSTREAM_FD) ? AUDIT_UPSTREAM_FD : -1;
	log_init("bulkhead-audit");
	outlive();
	if (!is_open(AUDIT_SUPERVISOR_FD) || !is_open(AUDIT_DIR_FD)) {
		err_set(&err, ERR_USAGE,
			"this program is started by bulkhead, with a socket and a folder; use `bulkhead run` instead");
		err_print("bulkhead-audit", &err);
		return EXIT_FAILED;
	}
	if (open_record(&w, &cut, &err) < 0) {
		audit_refuse(&sockets, &err);
		log_info("%s", err.text);
		return EXIT_FAILED;
	}
	/* The sources were told; they print it. */
	int served = audit_serve(w, &sockets, cut, &err);
	if (served < 0)
		log_info("%s", err.text);
	/* After the last answer: nobody waits for the disk. Until then the log survives the death of any process, from here on
	 * that of the machine. */
	int synced = record_writer_finish(w, &err);
	record_writer_free(w);
	/* Nobody is left to be told. */
	if (synced < 0)
		err_print("bulkhead-audit", &err);
	return served < 0 || synced < 0 ? EXIT_FAILED : 0;
}
