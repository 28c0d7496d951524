/* SPDX-License-Identifier: Apache-2.0 */
/* More rights: ids, capabilities, set-id programs. */
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <linux/capability.h>
#include <linux/securebits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/fsuid.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "probe.h"

static int fresh(const char *path)
{
	int fd = open(path, O_RDWR | O_CREAT | O_TRUNC, 0755);
	if (fd < 0)
		broken("%s can't be created: %s", path, strerror(errno));
	return fd;
}

static void chmod_setuid(void)
{
	fresh("/tmp/set");
	conclude(chmod("/tmp/set", 04755), "a set-uid file");
}
static void chmod_setgid(void)
{
	fresh("/workspace/set");
	conclude(chmod("/workspace/set", 02755), "a set-gid file in the copy");
}
static void fchmod_setuid(void) { conclude(fchmod(fresh("/tmp/set"), 06755), "a set-id file"); }
static void fchmodat_setuid(void)
{
	fresh("/tmp/set");
	conclude(fchmodat(AT_FDCWD, "/tmp/set", 04755, 0), "a set-uid file");
}
#ifndef SYS_fchmodat2
#define SYS_fchmodat2 452
#endif
static void fchmodat2_setuid(void)
{
	fresh("/tmp/set");
	conclude(syscall(SYS_fchmodat2, AT_FDCWD, "/tmp/set", 04755, 0), "a set-uid file");
}
static void open_setuid(void) { conclude(syscall(SYS_openat, AT_FDCWD, "/tmp/set-open", O_CREAT | O_WRONLY, 04755), "a set-uid file"); }
static void tmpfile_setuid(void) { conclude(syscall(SYS_openat, AT_FDCWD, "/tmp", O_TMPFILE | O_WRONLY, 04755), "a set-uid file without a name"); }
static void mknod_setuid(void) { conclude(syscall(SYS_mknodat, AT_FDCWD, "/tmp/set-node", S_IFREG | 04755, 0), "a set-uid file"); }
static void mkdir_setgid(void)
{
	struct stat st;
	if (mkdir("/tmp/set-folder", 02755) < 0 || stat("/tmp/set-folder", &st) < 0)
		refused(errno);
	if (st.st_mode & 06000)
		succeeded("a set-gid folder");
	refused_by("the kernel drops the bit");
}

static void become_root(void) { conclude(setresuid(0, 0, 0), "uid 0"); }
static void become_root_group(void) { conclude(setresgid(0, 0, 0), "gid 0"); }
static void become_other(void) { conclude(setresuid(1001, 1001, 1001), "another user of the box"); }
static void file_system_id(void)
{
	setfsuid(0);
	if (setfsuid((uid_t)-1) == 0)
		succeeded("file system uid 0");
	errno = EPERM;
	refused(errno);
}
static void more_groups(void)
{
	const gid_t groups[] = { 0, 4, 6 };
	conclude(setgroups(3, groups), "groups root, adm and disk");
}
static void chown_root(void)
{
	fresh("/tmp/owned");
	conclude(chown("/tmp/owned", 0, 0), "a file of root's");
}
static void raise_capabilities(void)
{
	struct __user_cap_header_struct head = { .version = _LINUX_CAPABILITY_VERSION_3 };
	struct __user_cap_data_struct all[2] = { { ~0u, ~0u, 0 }, { ~0u, ~0u, 0 } };
	conclude(syscall(SYS_capset, &head, all), "capabilities");
}
static void ambient(void) { conclude(prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_RAISE, CAP_NET_RAW, 0, 0), "an ambient capability"); }
static void securebits(void) { conclude(prctl(PR_SET_SECUREBITS, 0, 0, 0, 0), "securebits were changed"); }
static void raise_limit(void)
{
	const struct rlimit limit = { RLIM_INFINITY, RLIM_INFINITY };
	conclude(setrlimit(RLIMIT_NOFILE, &limit), "more open files than the limit");
}
static void raise_core(void)
{
	const struct rlimit limit = { RLIM_INFINITY, RLIM_INFINITY };
	struct rlimit now = { RLIM_INFINITY, RLIM_INFINITY };
	/* Answered as done, because programs that switch core files off mustn't fail; so what counts is what is in force. */
	setrlimit(RLIMIT_CORE, &limit);
	if (getrlimit(RLIMIT_CORE, &now) < 0 || now.rlim_cur > 1 || now.rlim_max > 1)
		succeeded("core files of up to %lu bytes", now.rlim_max);
	refused_by("no core files");
}
static void any_capability(void)
{
	struct __user_cap_header_struct head = { .version = _LINUX_CAPABILITY_VERSION_3 };
	struct __user_cap_data_struct have[2] = { 0 };
	if (syscall(SYS_capget, &head, have) < 0)
		broken("capget failed");
	if (have[0].permitted | have[1].permitted | have[0].effective | have[1].effective | have[0].inheritable | have[1].inheritable)
		succeeded("permitted %08x%08x", have[1].permitted, have[0].permitted);
	for (int cap = 0; cap < 41; cap++)
		if (prctl(PR_CAPBSET_READ, cap, 0, 0, 0) == 1)
			succeeded("capability %d is in the bounding set", cap);
	refused_by("no capability in any set");
}

/* Runs a program that carries privilege, with "only ids-now", which tells what came of it. */
static void __attribute__((noreturn)) run_marked(const char *path, const char *as)
{
	if (access(path, X_OK) < 0)
		broken("%s isn't there: %s", path, strerror(errno));
	execl(path, "probe", "only", "ids-now", as, NULL);
	refused(errno);
}
static void run_setuid(void) { run_marked("/workspace/probe-setuid", "as=setuid-program"); }
static void run_capable(void) { run_marked("/workspace/probe-capable", "as=filecap-program"); }
static void ids_now(void)
{
	if (geteuid() != 1000 || getuid() != 1000 || getegid() != 1000)
		succeeded("uid %d euid %d egid %d", getuid(), geteuid(), getegid());
	any_capability();
}

/* The host's own set-id programs: without a terminal to ask on, they fail early where they can't become root. */
static void run_su(void)
{
	int status;
	pid_t pid = fork();
	if (pid == 0) {
		int null = open("/dev/null", O_RDWR);
		dup2(null, 0), dup2(null, 1), dup2(null, 2);
		execl("/usr/bin/su", "su", "root", "-c", "true", NULL);
		_exit(111);
	}
	if (pid < 0 || waitpid(pid, &status, 0) < 0)
		broken("can't run su");
	if (WIFEXITED(status) && WEXITSTATUS(status) == 111)
		broken("there is no /usr/bin/su");
	if (WIFEXITED(status) && WEXITSTATUS(status) == 0)
		succeeded("su let it be root");
	refused_by("su fails");
}

static const struct attempt rows[] = {
	{ "chmod-setuid", "chmod", "EPERM", chmod_setuid },
	{ "chmod-setgid", "chmod", "EPERM", chmod_setgid },
	{ "fchmod-setid", "fchmod", "EPERM", fchmod_setuid },
	{ "fchmodat-setuid", "fchmodat", "EPERM", fchmodat_setuid },
	{ "fchmodat2-setid", NULL, "ENOSYS", fchmodat2_setuid },
	{ "open-setuid", "openat", "EPERM", open_setuid },
	{ "tmpfile-setuid", "openat", "EPERM", tmpfile_setuid },
	{ "mknod-setuid", "mknodat", "EPERM", mknod_setuid },
	{ "mkdir-setgid", NULL, "ok", mkdir_setgid },
	{ "setresuid-0", NULL, "EPERM|EINVAL", become_root },
	{ "setresgid-0", NULL, "EPERM|EINVAL", become_root_group },
	{ "setresuid-other", NULL, "EPERM|EINVAL", become_other },
	{ "setfsuid-0", NULL, "EPERM", file_system_id },
	{ "setgroups", NULL, "EPERM", more_groups },
	{ "chown-root", NULL, "EPERM|EINVAL", chown_root },
	{ "capset", NULL, "EPERM", raise_capabilities },
	{ "cap-ambient", NULL, "EPERM", ambient },
	{ "securebits", NULL, "EPERM", securebits },
	{ "raise-nofile", NULL, "EPERM", raise_limit },
	{ "raise-core", NULL, "ok", raise_core },
	{ "capabilities", NULL, "ok", any_capability },
	{ "setuid-program", NULL, "ok", run_setuid },
	{ "filecap-program", NULL, "ok|EPERM", run_capable },
	{ "ids-now", NULL, "ok", ids_now },
	{ "su", NULL, "ok", run_su },
};
ATTEMPT_GROUP(privilege_attempts, "privilege", rows);
