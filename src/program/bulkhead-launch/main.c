/* SPDX-License-Identifier: Apache-2.0 */
/* bulkhead-launch: builds one box and is gone. Started by the supervisor with the protocol's socket as descriptor 3
 * (isolate/launch.h). */
#include <stdio.h>
#include <sys/socket.h>

#include "base/log.h"
#include "isolate/container/build.h"
#include "isolate/launch.h"

int main(void)
{
	int type = 0;
	socklen_t len = sizeof(type);
	log_init("bulkhead-launch");
	if (getsockopt(LAUNCH_FD, SOL_SOCKET, SO_TYPE, &type, &len) < 0 || type != SOCK_SEQPACKET) {
		fputs("bulkhead-launch: this program is started by `bulkhead run`; descriptor 3 isn't its socket\n", stderr);
		return 125;
	}
	return build_serve();
}
