/* SPDX-License-Identifier: Apache-2.0 */
#include "program/common/gate-process.h"

#include <fcntl.h>
#include <jansson.h>
#include <sodium.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/resource.h>

#include "program/common/confine.h"

bool gate_process_has(int fd) { return fcntl(fd, F_GETFD) >= 0; }

int gate_process_begin(struct err *err)
{
	const void *random = (const void *)getauxval(AT_RANDOM);
	size_t seed = 0;
	if (confine_begin(err) < 0)
		return -1;
	if (random)
		memcpy(&seed, random, sizeof(seed)); /* it isn't aligned */
	json_object_seed(seed | 1);
	return sodium_init() < 0 ? err_set(err, ERR_SYSTEM, "cannot prepare the cryptographic library") : 0;
}

void gate_process_raise_descriptors(void)
{
	struct rlimit r;
	if (getrlimit(RLIMIT_NOFILE, &r) == 0 && r.rlim_cur < r.rlim_max) {
		r.rlim_cur = r.rlim_max;
		setrlimit(RLIMIT_NOFILE, &r);
	}
}

int gate_process_confine(int (*restrict_calls)(struct err *err), struct err *err)
{
	if (confine_drop_user(err) < 0 || confine_drop_capabilities(err) < 0 || confine_close_paths(err) < 0)
		return -1;
	return restrict_calls(err);
}
