/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Is /dev/kvm good for a guest? A file that opens proves nothing: nested and paravirtual KVM exist that emulate most
 * instructions, or die at ones that every stock kernel uses. So a guest of four instructions counts down, and the time tells:
 * about a tenth of a millisecond where the processor runs it, a few milliseconds on nested hardware virtualisation, 150 ms and
 * more where it is emulated.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/kvm.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/text.h"
#include "isolate/common/probe-internal.h"
#include "isolate/probe.h"

#define ROUNDS 100000u
#define USABLE_NS (30 * NS_PER_MS)
#define GUEST_AT 0x1000u
#define GUEST_SIZE 0x1000u

/* Real mode, 32-bit operands: mov ecx, ROUNDS; again: dec ecx; jnz again; hlt */
static const uint8_t guest[] = { 0x66, 0xb9, ROUNDS & 0xff, ROUNDS >> 8 & 0xff, ROUNDS >> 16 & 0xff, ROUNDS >> 24, 0x66, 0x49,
	0x75, 0xfc, 0xf4 };

static int create_vcpu(int vm, struct err *err)
{
	void *memory = mmap(NULL, GUEST_SIZE, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (memory == MAP_FAILED)
		return err_sys(err, errno, "no memory for a guest");
	memcpy(memory, guest, sizeof(guest));
	struct kvm_userspace_memory_region region = {
		.guest_phys_addr = GUEST_AT, .memory_size = GUEST_SIZE, .userspace_addr = (uintptr_t)memory
	};
	if (ioctl(vm, KVM_SET_USER_MEMORY_REGION, &region) < 0)
		return err_sys(err, errno, "KVM takes no memory for a guest");
	int vcpu = ioctl(vm, KVM_CREATE_VCPU, 0);
	return vcpu < 0 ? err_sys(err, errno, "KVM creates no virtual processor") : vcpu;
}

static int set_registers(int vcpu, struct err *err)
{
	struct kvm_sregs sregs;
	struct kvm_regs regs = { .rip = GUEST_AT, .rflags = 2 };
	if (ioctl(vcpu, KVM_GET_SREGS, &sregs) < 0)
		return err_sys(err, errno, "KVM tells no registers");
	sregs.cs.base = 0;
	sregs.cs.selector = 0;
	if (ioctl(vcpu, KVM_SET_SREGS, &sregs) < 0 || ioctl(vcpu, KVM_SET_REGS, &regs) < 0)
		return err_sys(err, errno, "KVM takes no registers");
	return 0;
}

static int run_timed(int kvm, int vcpu, struct err *err)
{
	int size = ioctl(kvm, KVM_GET_VCPU_MMAP_SIZE, 0);
	struct kvm_run *run = size > 0 ? mmap(NULL, (size_t)size, PROT_READ | PROT_WRITE, MAP_SHARED, vcpu, 0) : MAP_FAILED;
	if (run == MAP_FAILED)
		return err_sys(err, errno, "KVM's run area can't be mapped");
	uint64_t begun = time_monotonic_ns();
	if (ioctl(vcpu, KVM_RUN, 0) < 0)
		return err_sys(err, errno, "KVM doesn't run a guest");
	uint64_t took = time_monotonic_ns() - begun;
	if (run->exit_reason != KVM_EXIT_HLT)
		return err_set(err, ERR_UNSUPPORTED,
			"a guest of four instructions ended with exit reason %u instead of halting", run->exit_reason);
	if (took > USABLE_NS)
		return err_set(err, ERR_UNSUPPORTED,
			"%u rounds of a loop took %.0f ms (a processor needs less than 1 ms): instructions are emulated one by "
			"one, so a "
			"stock guest kernel won't run%s",
			ROUNDS, (double)took / NS_PER_MS,
			access("/sys/module/kvm_pvm", F_OK) == 0 ? "; this is kvm_pvm, a paravirtual KVM" : "");
	return 0;
}

static int run_guest(struct err *err)
{
#ifndef __x86_64__
	return err_set(err, ERR_UNSUPPORTED, "the probe knows x86-64 only");
#endif
	cleanup_fd int kvm = open("/dev/kvm", O_RDWR | O_CLOEXEC);
	if (kvm < 0)
		return errno == ENOENT ? err_set(err, ERR_UNSUPPORTED,
						 "there is no /dev/kvm: no hardware virtualisation here, or the kvm module "
						 "isn't loaded")
				       : err_sys(err, errno, "can't open /dev/kvm (is this user in the group kvm?)");
	if (ioctl(kvm, KVM_GET_API_VERSION, 0) != KVM_API_VERSION)
		return err_set(err, ERR_UNSUPPORTED, "/dev/kvm speaks another version");
	cleanup_fd int vm = ioctl(kvm, KVM_CREATE_VM, 0);
	if (vm < 0)
		return err_sys(err, errno, "KVM creates no virtual machine");
	cleanup_fd int vcpu = create_vcpu(vm, err);
	if (vcpu < 0 || set_registers(vcpu, err) < 0)
		return -1;
	return run_timed(kvm, vcpu, err);
}

void probe_kvm(struct probe_row *ret)
{
	struct err err = ERR_INIT;
	*ret = (struct probe_row){ .name = "kvm", .need = PROBE_WANTED };
	ret->ok = probe_in_child(run_guest, 5 * NS_PER_S, &err) == 0;
	if (ret->ok)
		snprintf(ret->detail, sizeof(ret->detail), "runs a guest at the processor's speed");
	else
		snprintf(ret->detail, sizeof(ret->detail), "%s%s",
			access("/dev/kvm", F_OK) == 0 ? "/dev/kvm is there, but: " : "", err.text);
}
