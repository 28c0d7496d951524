/* SPDX-License-Identifier: Apache-2.0 */
/* /etc of the box: six files of our own and a list of what programs need from the host's. Anything else of it stays outside. */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/mem.h"
#include "isolate/common/mounts.h"
#include "isolate/container/build.h"

/* Shown read-only where the host has them; a link is shown as the link. Each costs 15 µs of every start, so: what programs fail
 * without. No file that can hold a credential belongs here (npmrc, pip.conf, gitconfig, wgetrc, ssl/private, ssh, apt/auth.conf
 * …). docs/architecture.md repeats this list. */
static const char *const shown[] = {
	"ld.so.cache",
	"ld.so.conf",
	"ld.so.conf.d",
	"alternatives",
	"os-release",
	"lsb-release",
	"localtime",
	"mtab",
	"ssl/certs",
	"ssl/cert.pem",
	"ssl/openssl.cnf",
	"pki/ca-trust/extracted",
	"pki/java",
	"pki/tls/certs",
	"pki/tls/cert.pem",
	"pki/tls/openssl.cnf",
	"services",
	"protocols",
	"mime.types",
	"fonts",
	"chromium.d",
	"perl",
	"python3.9",
	"python3.10",
	"python3.11",
	"python3.12",
	"python3.13",
	"java-11-openjdk",
	"java-17-openjdk",
	"java-21-openjdk",
};

static int put_file(int etc_fd, const char *name, const char *text, struct err *err)
{
	cleanup_fd int fd = openat(etc_fd, name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644);
	int r = fd < 0 ? -errno : fd_write_full(fd, text, strlen(text));
	return r < 0 ? err_sys(err, -r, "can't write /etc/%s of the box", name) : 0;
}

static int put_generated(const struct build *b, int etc_fd, struct err *err)
{
	char hosts[512], hostname[128];
	const char *name = b->spec.hostname && b->spec.hostname[0] ? b->spec.hostname : "box";
	snprintf(
		hosts, sizeof(hosts), "127.0.0.1 localhost\n::1 localhost ip6-localhost ip6-loopback\n127.0.1.1 %.64s\n", name);
	snprintf(hostname, sizeof(hostname), "%.64s\n", name);
	const struct {
		const char *name, *text;
	} files[] = {
		{ "passwd", "root:x:0:0:root:/nonexistent:/usr/sbin/nologin\nagent:x:1000:1000:agent:/home/agent:/bin/bash\n"
			    "nobody:x:65534:65534:nobody:/nonexistent:/usr/sbin/nologin\n" },
		{ "group", "root:x:0:\ntty:x:5:\nagent:x:1000:\nnogroup:x:65534:\n" },
		{ "hosts", hosts },
		{ "hostname", hostname },
		/* The agent answers; one server, tried briefly, because nothing can be lost on the way. */
		{ "resolv.conf", "nameserver 127.0.0.1\noptions ndots:0 timeout:5 attempts:1\n" },
		{ "nsswitch.conf", "passwd: files\ngroup: files\nshadow: files\nhosts: files dns\nnetworks: files\nprotocols: "
				   "files\nservices: files\n"
				   "ethers: files\nrpc: files\n" },
	};
	for (size_t i = 0; i < ARRAY_LEN(files); i++)
		if (put_file(etc_fd, files[i].name, files[i].text, err) < 0)
			return -1;
	return 0;
}

static int make_parent(int etc_fd, const char *name, struct err *err)
{
	char parent[64];
	const char *slash = strrchr(name, '/');
	if (!slash)
		return 0;
	snprintf(parent, sizeof(parent), "%.*s", (int)(slash - name), name);
	int r = path_mkdir_beneath(etc_fd, parent, 0755);
	return r < 0 ? err_sys(err, -r, "can't create /etc/%s of the box", parent) : 0;
}

static int show_link(int host_etc, int etc_fd, const char *name, struct err *err)
{
	char link[PATH_MAX];
	ssize_t n = readlinkat(host_etc, name, link, sizeof(link) - 1);
	link[n > 0 ? n : 0] = '\0';
	if (n <= 0 || symlinkat(link, etc_fd, name) < 0)
		return err_sys(err, errno, "can't copy the link /etc/%s into the box", name);
	return 0;
}

/* A folder of certificates, with ours over the host's. */
static int show_covered(const struct build *b, int host_etc, int etc_fd, const char *name, struct err *err)
{
	if (make_parent(etc_fd, name, err) < 0)
		return -1;
	if (mkdirat(etc_fd, name, 0755) < 0)
		return err_sys(err, errno, "can't create /etc/%s of the box", name);
	cleanup_fd int fd = layer_mount(b, name, faccessat(host_etc, name, F_OK, 0) == 0, err);
	return fd < 0 ? -1 : mount_attach(fd, etc_fd, name, err);
}

static int show(const struct build *b, int host_etc, int etc_fd, const char *name, struct err *err)
{
	struct stat st;
	if (layer_covers(b, name))
		return show_covered(b, host_etc, etc_fd, name, err);
	if (fstatat(host_etc, name, &st, AT_SYMLINK_NOFOLLOW) < 0)
		return errno == ENOENT || errno == ENOTDIR || errno == EACCES
			       ? 0
			       : err_sys(err, errno, "can't look at /etc/%s", name);
	if (make_parent(etc_fd, name, err) < 0)
		return -1;
	if (S_ISLNK(st.st_mode))
		return show_link(host_etc, etc_fd, name, err);
	if ((S_ISDIR(st.st_mode) ? mkdirat(etc_fd, name, 0755) : mknodat(etc_fd, name, S_IFREG | 0644, 0)) < 0)
		return err_sys(err, errno, "can't create /etc/%s of the box", name);
	cleanup_fd int fd = mount_clone(host_etc, name, true, MOUNT_SAFE_RO, -1, err);
	return fd < 0 ? -1 : mount_attach(fd, etc_fd, name, err);
}

int view_add_etc(struct build *b, struct err *err)
{
	cleanup_fd int host_etc = open("/etc", O_PATH | O_DIRECTORY | O_CLOEXEC);
	cleanup_fd int etc_fd = path_open_beneath(b->root_fd, "etc", O_RDONLY | O_DIRECTORY, 0);
	if (host_etc < 0 || etc_fd < 0)
		return err_sys(err, errno, "can't open /etc");
	if (put_generated(b, etc_fd, err) < 0)
		return -1;
	for (size_t i = 0; i < ARRAY_LEN(shown); i++)
		if (show(b, host_etc, etc_fd, shown[i], err) < 0)
			return -1;
	return 0;
}
