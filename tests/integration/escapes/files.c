/* SPDX-License-Identifier: Apache-2.0 */
/* Files of the host, descriptors that leaked, links that cross. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "probe.h"

extern char **environ;

static void write_new(const char *path) { conclude(open(path, O_WRONLY | O_CREAT, 0644), path); }
static void write_old(const char *path) { conclude(open(path, O_WRONLY), path); }
static void read_file(const char *path) { conclude(open(path, O_RDONLY), path); }

static void usr_new(void) { write_new("/usr/bin/escape"); }
static void usr_old(void) { write_old("/usr/bin/env"); }
static void usr_remove(void) { conclude(unlink("/usr/bin/env"), "/usr/bin/env"); }
static void usr_open_dir(void) { write_new(argument("writable")); } /* a folder of the host that anybody may write to */
static void etc_new(void) { write_new("/etc/ld.so.preload"); }
static void etc_passwd(void) { write_old("/etc/passwd"); }
static void root_new(void) { write_new("/escape"); }
static void proc_exe(void) { conclude(open("/proc/self/exe", O_WRONLY), "its own program"); }
static void shadow(void) { read_file("/etc/shadow"); }
static void shadow_above(void) { read_file("/../../../../etc/shadow"); }
static void shadow_proc_root(void) { read_file("/proc/self/root/../etc/shadow"); }
static void shadow_proc_cwd(void) { read_file("/proc/self/cwd/../../../etc/shadow"); }
static void root_home(void) { conclude(open("/root", O_RDONLY | O_DIRECTORY), "/root"); }
static void host_secret(void) { read_file(argument("secret")); }
static void host_etc(void) { read_file(argument("etc")); }
static void host_owned(void) { read_file(argument("owned")); }
static void var_lib(void) { conclude(open("/var/lib", O_RDONLY | O_DIRECTORY), "/var/lib"); }
static void sys_files(void) { conclude(open("/sys/kernel", O_RDONLY | O_DIRECTORY), "/sys/kernel"); }
static void boot(void) { conclude(open("/boot", O_RDONLY | O_DIRECTORY), "/boot"); }

static void ssh_keys(void)
{
	char path[256];
	snprintf(path, sizeof(path), "%s/.ssh", getenv("HOME") ? getenv("HOME") : "");
	conclude(open(path, O_RDONLY | O_DIRECTORY), path);
}

static void other_homes(void)
{
	DIR *d = opendir("/home");
	if (!d)
		refused(errno);
	for (struct dirent *e; (e = readdir(d));)
		if (e->d_name[0] != '.' && strcmp(e->d_name, "agent") != 0)
			succeeded("/home shows %s", e->d_name);
	refused_by("no home but its own");
}

static void environment(void)
{
	for (char **e = environ; *e; e++)
		if (strstr(*e, argument("token")) || strncmp(*e, "SSH_AUTH_SOCK=", 14) == 0)
			succeeded("the environment holds %s", *e);
	refused_by("nothing of the caller's");
}

/* 0, 1, 2 and the descriptor that lists them. */
static void descriptors(void)
{
	char path[32], target[256];
	DIR *d = opendir("/proc/self/fd");
	if (!d)
		broken("/proc/self/fd can't be listed");
	for (struct dirent *e; (e = readdir(d));) {
		int fd = atoi(e->d_name);
		if (e->d_name[0] == '.' || fd <= 2 || fd == dirfd(d))
			continue;
		snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
		ssize_t n = readlink(path, target, sizeof(target) - 1);
		target[n > 0 ? n : 0] = '\0';
		succeeded("descriptor %d is %s", fd, target);
	}
	refused_by("0, 1 and 2 only");
}

/* The standard descriptors are the box's own pipes, whatever the caller's were: nothing to open anew, and no folder to climb out of. */
static void standard_descriptors(void)
{
	for (int fd = 0; fd <= 2; fd++) {
		char path[32];
		struct stat st;
		snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
		if (fstat(fd, &st) < 0)
			broken("descriptor %d is closed", fd);
		if (!S_ISFIFO(st.st_mode))
			succeeded("descriptor %d isn't a pipe of the box", fd);
		if (fchdir(fd) == 0)
			succeeded("descriptor %d is a folder", fd);
	}
	refused_by("pipes of the box");
}

static void link_system(void) { conclude(link("/usr/bin/env", "/tmp/hard"), "a hard link to a file of the host"); }
static void link_workspace(void) { conclude(link("/workspace/file", "/tmp/hard"), "a hard link out of the copy"); }
static void rename_out(void) { conclude(rename("/workspace/file", "/tmp/moved"), "a file moved out of the copy"); }
static void link_by_fd(void)
{
	char path[32];
	int fd = open("/usr/bin/env", O_RDONLY);
	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	conclude(linkat(AT_FDCWD, path, AT_FDCWD, "/tmp/hard", AT_SYMLINK_FOLLOW), "a hard link by descriptor");
}
static void link_empty(void)
{
	int fd = open("/usr/bin/env", O_RDONLY);
	conclude(linkat(fd, "", AT_FDCWD, "/tmp/hard", AT_EMPTY_PATH), "a hard link by descriptor");
}
static void upper_folder(void)
{
	if (access("/up", F_OK) == 0 || access("/work", F_OK) == 0 || access("/tmp/up", F_OK) == 0)
		succeeded("overlay's own folders are in reach");
	refused(errno);
}

static void attribute(const char *name, const char *value, size_t len)
{
	int fd = open("/workspace/attribute", O_WRONLY | O_CREAT, 0644);
	if (fd < 0)
		broken("no file in the copy: %s", strerror(errno));
	conclude(fsetxattr(fd, name, value, len, 0), name);
}
static void overlay_trusted(void) { attribute("trusted.overlay.redirect", "/etc", 4); }
static void overlay_opaque(void) { attribute("trusted.overlay.opaque", "y", 1); }
/* Effective, version 2: CAP_SETUID. */
static void file_capability(void)
{
	static const uint32_t data[5] = { 0x02000001, 1u << 7, 0, 0, 0 };
	attribute("security.capability", (const char *)data, sizeof(data));
}
static void security_label(void) { attribute("security.escape", "x", 1); }

static const struct attempt rows[] = {
	{ "usr-new", NULL, "EROFS|EACCES", usr_new },
	{ "usr-write", NULL, "EROFS|EACCES", usr_old },
	{ "usr-remove", NULL, "EROFS|EACCES", usr_remove },
	{ "usr-open-folder", NULL, "EROFS", usr_open_dir },
	{ "etc-new", NULL, "EROFS|EACCES", etc_new },
	{ "etc-passwd", NULL, "EROFS|EACCES", etc_passwd },
	{ "root-new", NULL, "EROFS|EACCES", root_new },
	{ "own-program", NULL, "EROFS|EACCES|ETXTBSY", proc_exe },
	{ "shadow", NULL, "ENOENT", shadow },
	{ "shadow-dotdot", NULL, "ENOENT", shadow_above },
	{ "shadow-procroot", NULL, "ENOENT", shadow_proc_root },
	{ "shadow-proccwd", NULL, "ENOENT", shadow_proc_cwd },
	{ "root-home", NULL, "ENOENT", root_home },
	{ "host-secret", NULL, "ENOENT", host_secret },
	{ "host-etc", NULL, "ENOENT", host_etc },
	{ "host-owned", NULL, "EACCES", host_owned },
	{ "var-lib", NULL, "ENOENT", var_lib },
	{ "sys", NULL, "ENOENT", sys_files },
	{ "boot", NULL, "ENOENT", boot },
	{ "ssh-keys", NULL, "ENOENT", ssh_keys },
	{ "other-homes", NULL, "ok", other_homes },
	{ "environment", NULL, "ok", environment },
	{ "descriptors", NULL, "ok", descriptors },
	{ "std-descriptors", NULL, "ok", standard_descriptors },
	{ "link-system", NULL, "EXDEV|EPERM", link_system },
	{ "link-workspace", NULL, "EXDEV", link_workspace },
	{ "rename-out", NULL, "EXDEV", rename_out },
	{ "link-by-fd", NULL, "EXDEV|EPERM", link_by_fd },
	{ "link-empty-path", NULL, "EXDEV|EPERM|ENOENT", link_empty },
	{ "overlay-folders", NULL, "ENOENT", upper_folder },
	{ "overlay-redir", NULL, "EPERM|EOPNOTSUPP", overlay_trusted },
	{ "overlay-opaque", NULL, "EPERM|EOPNOTSUPP", overlay_opaque },
	{ "file-capability", NULL, "EPERM", file_capability },
	{ "security-label", NULL, "EPERM|EOPNOTSUPP", security_label },
};
ATTEMPT_GROUP(file_attempts, "files", rows);
