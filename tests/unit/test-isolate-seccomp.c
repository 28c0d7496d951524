/* SPDX-License-Identifier: Apache-2.0 */
/* The generated filter, run by a small interpreter of classic BPF over calls that must and must not go through. */
#include <errno.h>
#include <linux/audit.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <fcntl.h>

#include <setjmp.h>
#include <stdarg.h>
#include <cmocka.h>

#include "base/mem.h"
#include "isolate/common/seccomp.h"

#ifdef __x86_64__
#define ARCH AUDIT_ARCH_X86_64
#define OTHER_ARCH AUDIT_ARCH_I386
#else
#define ARCH AUDIT_ARCH_AARCH64
#define OTHER_ARCH AUDIT_ARCH_ARM
#endif
#define ALLOW SECCOMP_RET_ALLOW
#define NOTIFY SECCOMP_RET_USER_NOTIF
#define KILL SECCOMP_RET_KILL_PROCESS
#define ERRNO(e) (SECCOMP_RET_ERRNO | (e))

static uint32_t run(const struct seccomp_data *data)
{
	size_t len;
	const struct sock_filter *code = seccomp_program_get(&len);
	uint32_t a = 0;
	for (size_t pc = 0; pc < len; pc++) {
		const struct sock_filter *f = &code[pc];
		switch (f->code) {
		case BPF_LD | BPF_W | BPF_ABS:
			assert_true(f->k % 4 == 0 && f->k < sizeof(*data));
			memcpy(&a, (const uint8_t *)data + f->k, 4);
			break;
		case BPF_ALU | BPF_AND | BPF_K:
			a &= f->k;
			break;
		case BPF_JMP | BPF_JEQ | BPF_K:
			pc += a == f->k ? f->jt : f->jf;
			break;
		case BPF_JMP | BPF_JGE | BPF_K:
			pc += a >= f->k ? f->jt : f->jf;
			break;
		case BPF_JMP | BPF_JA:
			pc += f->k;
			break;
		case BPF_RET | BPF_K:
			return f->k;
		default:
			fail_msg("unknown instruction %#x", f->code);
		}
	}
	fail_msg("ran off the end");
	return 0;
}

static uint32_t judge(int nr, uint64_t a0, uint64_t a1, uint64_t a2, uint64_t a3)
{
	const struct seccomp_data data = { .nr = nr, .arch = ARCH, .args = { a0, a1, a2, a3 } };
	return run(&data);
}

static const struct {
	int nr;
	uint64_t a0, a1, a2, a3;
	uint32_t wanted;
} cases[] = {
	{ SYS_read, 0, 0, 0, 0, ALLOW },
	{ SYS_write, 1, 0, 0, 0, ALLOW },
	{ SYS_execve, 0, 0, 0, 0, ALLOW },
	{ SYS_exit_group, 0, 0, 0, 0, ALLOW },
	{ SYS_execveat, 0, 0, 0, 0, ALLOW },
	{ SYS_sendmsg, 0, 0, 0, 0, ALLOW },
	{ SYS_futex, 0, 0, 0, 0, ALLOW },
	{ SYS_rseq, 0, 0, 0, 0, ALLOW },
	{ SYS_clone, 0x01200011, 0, 0, 0, ALLOW },
	{ SYS_clone, 0x3d0f00, 0, 0, 0, ALLOW }, /* fork, pthread_create */
	{ SYS_clone, 0x10000000, 0, 0, 0, NOTIFY },
	{ SYS_clone, 0x20000, 0, 0, 0, NOTIFY },
	{ SYS_clone, 0x40000011, 0, 0, 0, NOTIFY },
	{ SYS_clone, 0xffffffff10000011, 0, 0, 0, NOTIFY },
	{ SYS_clone, 0x1000000001200011, 0, 0, 0, ALLOW }, /* high bits say nothing */
	{ SYS_clone3, 0, 0, 0, 0, ERRNO(ENOSYS) },
	{ SYS_openat2, 0, 0, 0, 0, ERRNO(ENOSYS) },
	{ SYS_unshare, 0x400, 0, 0, 0, ALLOW },
	{ SYS_unshare, 0x10000000, 0, 0, 0, NOTIFY },
	{ SYS_unshare, 0x80, 0, 0, 0, NOTIFY },
	{ SYS_setns, 0, 0, 0, 0, NOTIFY },
	{ SYS_mount, 0, 0, 0, 0, NOTIFY },
	{ SYS_umount2, 0, 0, 0, 0, NOTIFY },
	{ SYS_bpf, 0, 0, 0, 0, NOTIFY },
	{ SYS_move_mount, 0, 0, 0, 0, NOTIFY },
	{ SYS_open_tree, 0, 0, 0, 0, NOTIFY },
	{ SYS_mount_setattr, 0, 0, 0, 0, NOTIFY },
	{ SYS_ptrace, 0, 0, 0, 0, NOTIFY },
	{ SYS_keyctl, 0, 0, 0, 0, NOTIFY },
	{ SYS_userfaultfd, 0, 0, 0, 0, NOTIFY },
	{ SYS_kexec_load, 0, 0, 0, 0, NOTIFY },
	{ SYS_io_uring_setup, 0, 0, 0, 0, NOTIFY },
	{ SYS_io_uring_enter, 0, 0, 0, 0, NOTIFY },
	{ SYS_io_uring_register, 0, 0, 0, 0, NOTIFY },
	{ SYS_ioctl, 0, 0x5401, 0, 0, ALLOW },
	{ SYS_ioctl, 0, 0x5412, 0, 0, NOTIFY },
	{ SYS_ioctl, 0, 0x541c, 0, 0, NOTIFY },
	{ SYS_ioctl, 0, 0xabcd000000005412, 0, 0, NOTIFY },
	{ SYS_ioctl, 0, 0xffffffff0000541c, 0, 0, NOTIFY },
	{ SYS_ioctl, 0, 0xffffffff80045430, 0, 0, ALLOW },
	{ SYS_socket, AF_UNIX, SOCK_STREAM, 0, 0, ALLOW },
	{ SYS_socket, AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, 0, ALLOW },
	{ SYS_socket, AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, 0, ALLOW },
	{ SYS_socket, AF_INET6, SOCK_DGRAM, 17, 0, ALLOW },
	{ SYS_socket, AF_INET, SOCK_STREAM, 6, 0, ALLOW },
	{ SYS_socket, AF_INET, SOCK_STREAM, 17, 0, NOTIFY },
	{ SYS_socket, AF_INET, SOCK_RAW, 1, 0, NOTIFY },
	{ SYS_socket, AF_INET, 10, 0, 0, NOTIFY },
	{ SYS_socket, AF_INET, SOCK_STREAM, 132, 0, NOTIFY },
	{ SYS_socket, AF_INET, SOCK_STREAM, 262, 0, ERRNO(EPROTONOSUPPORT) },
	{ SYS_socket, AF_PACKET, SOCK_RAW, 0, 0, NOTIFY },
	{ SYS_socket, 40, SOCK_STREAM, 0, 0, NOTIFY },
	{ SYS_socket, 38, SOCK_SEQPACKET, 0, 0, NOTIFY },
	{ SYS_socket, 0x100000001, SOCK_STREAM, 0, 0, ALLOW },
	{ SYS_socket, AF_NETLINK, SOCK_RAW, 0, 0, ALLOW },
	{ SYS_socket, AF_NETLINK, SOCK_RAW, 4, 0, NOTIFY },
	{ SYS_socketpair, AF_UNIX, 1, 0, 0, ALLOW },
	{ SYS_socketpair, AF_INET, 1, 0, 0, NOTIFY },
	{ SYS_fchmod, 3, 0755, 0, 0, ALLOW },
	{ SYS_fchmod, 3, 04755, 0, 0, NOTIFY },
	{ SYS_fchmod, 3, 02755, 0, 0, NOTIFY },
	{ SYS_fchmod, 3, 01777, 0, 0, ALLOW },
	{ SYS_fchmodat, 3, 0, 06755, 0, NOTIFY },
	{ SYS_openat, 3, 0, O_CREAT | O_WRONLY, 0644, ALLOW },
	{ SYS_openat, 3, 0, O_CREAT, 04644, NOTIFY },
	{ SYS_openat, 3, 0, O_RDONLY, 07777, ALLOW },
	{ SYS_openat, 3, 0, O_TMPFILE | O_RDWR, 04600, NOTIFY },
	{ SYS_mknodat, 3, 0, S_IFIFO | 0644, 0, ALLOW },
	{ SYS_mknodat, 3, 0, S_IFCHR | 0644, 0, NOTIFY },
	{ SYS_mknodat, 3, 0, S_IFBLK, 0, NOTIFY },
	{ SYS_mknodat, 3, 0, S_IFREG | 04755, 0, NOTIFY },
	{ SYS_mknodat, 3, 0, S_IFSOCK | 0644, 0, ALLOW },
	{ SYS_seccomp, 1, 0, 0, 0, ALLOW },
	{ SYS_seccomp, 1, 8, 0, 0, NOTIFY },
	{ SYS_seccomp, 1, 9, 0, 0, NOTIFY },
	{ SYS_seccomp, 2, 0, 0, 0, ALLOW },
	{ SYS_personality, 0xffffffff, 0, 0, 0, ALLOW },
	{ SYS_personality, 0x0400000, 0, 0, 0, ERRNO(EPERM) },
	{ SYS_personality, 0, 0, 0, 0, ALLOW },
	{ SYS_prlimit64, 0, 4, 0, 0x1000, ALLOW },
	{ SYS_prlimit64, 0, 4, 0x1000, 0, ERRNO(0) },
	{ SYS_prlimit64, 0, 4, 0x200000000, 0, ERRNO(0) },
	{ SYS_prlimit64, 0, 7, 0x1000, 0, ALLOW },
	{ SYS_setrlimit, 4, 0, 0, 0, ERRNO(0) },
	{ SYS_setrlimit, 7, 0, 0, 0, ALLOW },
	{ SYS_io_setup, 0, 0, 0, 0, ERRNO(ENOSYS) },
	{ 1000, 0, 0, 0, 0, ERRNO(ENOSYS) },
	{ 5000, 0, 0, 0, 0, ERRNO(ENOSYS) },
	{ 452, 0, 0, 0, 0, ERRNO(ENOSYS) },
	{ 0x40000000 | SYS_read, 0, 0, 0, 0, NOTIFY },
	{ -1, 0, 0, 0, 0, NOTIFY },
#ifdef __x86_64__
	{ SYS_open, 0, O_CREAT, 04755, 0, NOTIFY },
	{ SYS_creat, 0, 04755, 0, 0, NOTIFY },
	{ SYS_chmod, 0, 04755, 0, 0, NOTIFY },
	{ SYS_open, 0, 0, 0, 0, ALLOW },
	{ SYS_mknod, 0, S_IFCHR, 0, 0, NOTIFY },
	{ SYS_iopl, 3, 0, 0, 0, NOTIFY },
	{ SYS_fork, 0, 0, 0, 0, ALLOW },
	{ SYS_vfork, 0, 0, 0, 0, ALLOW },
	{ SYS_modify_ldt, 1, 0, 0, 0, ERRNO(EPERM) },
	{ SYS_arch_prctl, 0x1002, 0, 0, 0, ALLOW },
#endif
};

static void test_cases(void **state)
{
	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		uint32_t got = judge(cases[i].nr, cases[i].a0, cases[i].a1, cases[i].a2, cases[i].a3);
		if (got != cases[i].wanted)
			fail_msg("case %zu: call %d gives %#x, wanted %#x", i, cases[i].nr, got, cases[i].wanted);
	}
}

static void test_other_architecture_kills(void **state)
{
	(void)state;
	for (int nr = 0; nr < 600; nr++) {
		const struct seccomp_data data = { .nr = nr, .arch = OTHER_ARCH };
		assert_int_equal(run(&data), KILL);
	}
}

/* Whatever asks the supervisor has a name and an answer; nothing is notified that the table doesn't know. */
static void test_every_notice_has_a_name(void **state)
{
	(void)state;
	static const uint64_t samples[] = { 0, 1, 2, 4, 8, 0x80, 0x5412, 0x541c, 06000, S_IFCHR, S_IFBLK, 0x7e020000,
		0xffffffff };
	for (int nr = 0; nr < 1024; nr++)
		for (size_t i = 0; i < ARRAY_LEN(samples) * ARRAY_LEN(samples) * ARRAY_LEN(samples); i++) {
			uint64_t a0 = samples[i % 13], a1 = samples[i / 13 % 13], a2 = samples[i / 169];
			if (judge(nr, a0, a1, a2, a2) == NOTIFY)
				assert_non_null(seccomp_refusal_find(nr));
		}
}

static void test_refusals(void **state)
{
	(void)state;
	assert_string_equal(seccomp_refusal_find(SYS_mount)->name, "mount");
	assert_int_equal(seccomp_refusal_find(SYS_mount)->error, EPERM);
	assert_int_equal(seccomp_refusal_find(SYS_io_uring_setup)->error, ENOSYS);
	assert_null(seccomp_refusal_find(SYS_read));
	assert_null(seccomp_refusal_find(-1));
}

/* The kernel's own rules for a filter: length, jumps inside, last instruction returns. */
static void test_well_formed(void **state)
{
	(void)state;
	size_t len;
	const struct sock_filter *code = seccomp_program_get(&len);
	assert_in_range(len, 10, BPF_MAXINSNS);
	for (size_t pc = 0; pc < len; pc++) {
		if (BPF_CLASS(code[pc].code) != BPF_JMP)
			continue;
		size_t far = code[pc].code == (BPF_JMP | BPF_JA) ? code[pc].k
			     : code[pc].jt > code[pc].jf	 ? code[pc].jt
								 : code[pc].jf;
		assert_true(pc + 1 + far < len);
	}
	assert_int_equal(BPF_CLASS(code[len - 1].code), BPF_RET);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_cases),
		cmocka_unit_test(test_other_architecture_kills),
		cmocka_unit_test(test_every_notice_has_a_name),
		cmocka_unit_test(test_refusals),
		cmocka_unit_test(test_well_formed),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
