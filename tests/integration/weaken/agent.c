/* SPDX-License-Identifier: Apache-2.0 */
#include <stdarg.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "weaken.h"

struct loop;
struct exec_table;

int __real_prctl(int op, ...);
long __real_syscall(long number, ...);
int __real_setrlimit64(__rlimit_resource_t resource, const struct rlimit64 *limit);
void __real_loop_quit(struct loop *loop, int status);
void __real_init_kill_all(void);
void __real_exec_kill_all(struct exec_table *t);

int __wrap_prctl(int op, ...);
long __wrap_syscall(long number, ...);
int __wrap_setrlimit64(__rlimit_resource_t resource, const struct rlimit64 *limit);
void __wrap_loop_quit(struct loop *loop, int status);
void __wrap_init_kill_all(void);
void __wrap_exec_kill_all(struct exec_table *t);

int __wrap_prctl(int op, ...)
{
	va_list list;
	unsigned long a[4];
	va_start(list, op);
	for (int i = 0; i < 4; i++)
		a[i] = va_arg(list, unsigned long);
	va_end(list);
	if (op == PR_SET_DUMPABLE && weak("dumpable"))
		return 0;
	return __real_prctl(op, a[0], a[1], a[2], a[3]);
}

long __wrap_syscall(long number, ...)
{
	va_list list;
	long a[6];
	va_start(list, number);
	for (int i = 0; i < 6; i++)
		a[i] = va_arg(list, long);
	va_end(list);
	if (number == SYS_close_range && weak("agent-close"))
		return 0;
	return __real_syscall(number, a[0], a[1], a[2], a[3], a[4], a[5]);
}

int __wrap_setrlimit64(__rlimit_resource_t resource, const struct rlimit64 *limit)
{
	if (resource == RLIMIT_NOFILE && weak("open-files"))
		return 0;
	return __real_setrlimit64(resource, limit);
}

void __wrap_init_kill_all(void)
{
	if (!weak("pipe-end"))
		__real_init_kill_all();
}

void __wrap_exec_kill_all(struct exec_table *t)
{
	if (!weak("pipe-end"))
		__real_exec_kill_all(t);
}

/* An agent that doesn't mind that its pipe is over. */
void __wrap_loop_quit(struct loop *loop, int status)
{
	while (weak("pipe-end"))
		pause();
	__real_loop_quit(loop, status);
}
