/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What bulkhead-gate and bulkhead-inspect have in common: they read the system's resolver configuration and own addresses, confine themselves, and only
 * then listen: no byte of the box is read before.
 */
#include "program/bulkhead-gate/gate-program.h"

#include <fcntl.h>
#include <jansson.h>
#include <sodium.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/resource.h>
#include <unistd.h>

#include "base/log.h"
#include "base/mem.h"
#include "gate/gate.h"
#include "gate/protocol.h"
#include "program/bulkhead-gate/syscalls.h"
#include "program/common/confine.h"

enum { EXIT_FAILED = 125 };

static bool is_open(int fd) { return fcntl(fd, F_GETFD) >= 0; }

/* Each flow needs two descriptors; the box's limits are counted elsewhere. */
static void raise_descriptors(void)
{
	struct rlimit r;
	if (getrlimit(RLIMIT_NOFILE, &r) == 0 && r.rlim_cur < r.rlim_max) {
		r.rlim_cur = r.rlim_max;
		setrlimit(RLIMIT_NOFILE, &r);
	}
}

/* Everything that opens files or asks the kernel on first use does so now. */
static int prepare_libraries(struct err *err)
{
	const void *random = (const void *)getauxval(AT_RANDOM);
	size_t seed = 0;
	if (random)
		memcpy(&seed, random, sizeof(seed)); /* it isn't aligned */
	json_object_seed(seed | 1);
	return sodium_init() < 0 ? err_set(err, ERR_SYSTEM, "cannot prepare the hash function") : 0;
}

/* Nothing works after this but the sockets, new connections to internet addresses, memory and time. */
static int confine_finish(struct err *err)
{
	if (confine_drop_user(err) < 0 || confine_drop_capabilities(err) < 0 || confine_close_paths(err) < 0)
		return -1;
	return syscalls_restrict(err);
}

static struct gate *start(const struct gate_program *p, struct loop *loop, struct err *err)
{
	struct gate_system system;
	if (confine_begin(err) < 0 || prepare_libraries(err) < 0 || (p->prepare && p->prepare(GATE_LINK_FD, err) < 0) ||
		gate_system_read(&system, err) < 0)
		return NULL;
	raise_descriptors();
	struct gate *g = gate_new(loop, GATE_CONTROL_FD, GATE_AUDIT_FD, &system, p->interceptor, err);
	if (g && confine_finish(err) < 0)
		g = gate_free(g);
	return g;
}

int gate_program_run(const struct gate_program *p)
{
	struct err err = ERR_INIT;
	log_init(p->name);
	if (!is_open(GATE_CONTROL_FD) || !is_open(GATE_AUDIT_FD) || (p->prepare && !is_open(GATE_LINK_FD))) {
		err_set(&err, ERR_USAGE, "this program is started by bulkhead, with its sockets; use `bulkhead run` instead");
		err_print(p->name, &err);
		return EXIT_FAILED;
	}
	struct loop *loop = loop_new();
	struct gate *g = start(p, loop, &err);
	if (!g) {
		err_print(p->name, &err);
		return EXIT_FAILED;
	}
	int status = loop_run(loop);
	if (status != 0)
		err_print(p->name, gate_failure(g));
	/* Cuts the flows, records their ends, says goodbye to the auditor. */
	gate_free(g);
	loop_free(loop);
	return status == 0 ? 0 : EXIT_FAILED;
}
