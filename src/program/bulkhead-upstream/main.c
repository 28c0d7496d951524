/* SPDX-License-Identifier: Apache-2.0 */
/*
 * bulkhead-upstream: the upstream half of the gate. Started by bulkhead with three sockets; docs/gate.md says what it does with them. It reads the host's roots,
 * resolver configuration and own addresses, confines itself, and only then listens: no secret and no byte of a server is read before.
 */
#include <fcntl.h>
#include <jansson.h>
#include <sodium.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/resource.h>
#include <unistd.h>

#include "base/log.h"
#include "base/mem.h"
#include "gate/upstream-protocol.h"
#include "gate/upstream/upstream.h"
#include "program/bulkhead-upstream/syscalls.h"
#include "program/common/confine.h"

enum { EXIT_FAILED = 125 };

static bool is_open(int fd) { return fcntl(fd, F_GETFD) >= 0; }

/* Each flow needs a descriptor or a few; the box's limits are counted elsewhere. */
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
	if (sodium_init() < 0)
		return err_set(err, ERR_SYSTEM, "cannot prepare the cryptographic library");
	return tls_prepare(err);
}

/* Nothing works after this but the sockets, what comes over them, new connections to internet addresses, memory and time. */
static int confine_finish(struct err *err)
{
	if (confine_drop_user(err) < 0 || confine_drop_capabilities(err) < 0 || confine_close_paths(err) < 0)
		return -1;
	return syscalls_restrict(err);
}

static struct upstream *start(struct loop *loop, struct err *err)
{
	struct upstream_system system;
	if (confine_begin(err) < 0 || prepare_libraries(err) < 0 || upstream_system_read(&system, err) < 0)
		return NULL;
	raise_descriptors();
	struct upstream *u = upstream_new(loop, UPSTREAM_CONTROL_FD, UPSTREAM_AUDIT_FD, UPSTREAM_LINK_FD, &system, err);
	if (u && confine_finish(err) < 0)
		u = upstream_free(u);
	return u;
}

int main(void)
{
	struct err err = ERR_INIT;
	log_init("bulkhead-upstream");
	if (!is_open(UPSTREAM_CONTROL_FD) || !is_open(UPSTREAM_AUDIT_FD) || !is_open(UPSTREAM_LINK_FD)) {
		err_set(&err, ERR_USAGE, "this program is started by bulkhead, with three sockets; use `bulkhead run` instead");
		err_print("bulkhead-upstream", &err);
		return EXIT_FAILED;
	}
	struct loop *loop = loop_new();
	struct upstream *u = start(loop, &err);
	if (!u) {
		err_print("bulkhead-upstream", &err);
		return EXIT_FAILED;
	}
	int status = loop_run(loop);
	if (status != 0)
		err_print("bulkhead-upstream", upstream_failure(u));
	/* Cuts the flows, wipes the secrets, says goodbye to the auditor. */
	upstream_free(u);
	loop_free(loop);
	return status == 0 ? 0 : EXIT_FAILED;
}
