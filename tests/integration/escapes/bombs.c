/* SPDX-License-Identifier: Apache-2.0 */
/*
 * bomb memory MIB         touches so much            "memory N MiB"
 * bomb memfd MIB          the same in a memfd        "memfd N MiB"
 * bomb shm MIB            the same in SysV memory    "shm N MiB"
 * bomb forks MAX          children that stay         "forks N ERRNO"
 * bomb threads MAX        threads that stay          "threads N ERRNO"
 * bomb disk PATH MIB      one file                   "disk N MiB ERRNO"
 * bomb inodes PATH MAX    empty files                "inodes N ERRNO"
 * bomb descriptors MAX                               "descriptors N ERRNO"
 * bomb depth PATH MAX     folders in each other      "depth N ERRNO"
 * bomb argv MIB           execve with huge arguments "argv ERRNO"
 * bomb watches MAX         inotify instances          "watches N ERRNO"; stays
 * bomb terminals MAX       pseudo terminals           "terminals N ERRNO"
 * bomb denials N          N processes that ask for what is refused, on and on; ends by being ended
 * Each stops at its ceiling by itself, so that a limit that isn't there harms nobody.
 */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/inotify.h>
#include <sys/ipc.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/shm.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "probe.h"

#define MIB (1ul << 20)

static const char *error_name(int error)
{
	const char *name = error ? strerrorname_np(error) : "none";
	return name ? name : "?";
}

static int memory(long max)
{
	for (long i = 0; i < max; i++) {
		char *p = mmap(NULL, MIB, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
		if (p == MAP_FAILED)
			return printf("memory %ld MiB %s\n", i, error_name(errno)), 0;
		memset(p, 0xa5, MIB);
	}
	return printf("memory %ld MiB none\n", max), 0;
}

static int memfd(long max)
{
	static char block[MIB];
	int fd = memfd_create("bomb", 0);
	memset(block, 0xa5, sizeof(block));
	for (long i = 0; i < max; i++)
		if (write(fd, block, sizeof(block)) != (ssize_t)sizeof(block))
			return printf("memfd %ld MiB %s\n", i, error_name(errno)), 0;
	return printf("memfd %ld MiB none\n", max), 0;
}

static int shm(long max)
{
	for (long i = 0; i < max; i++) {
		int id = shmget(IPC_PRIVATE, MIB, 0600);
		void *p = id < 0 ? (void *)-1 : shmat(id, NULL, 0);
		if (p == (void *)-1)
			return printf("shm %ld MiB %s\n", i, error_name(errno)), 0;
		memset(p, 0xa5, MIB);
	}
	return printf("shm %ld MiB none\n", max), 0;
}

static int forks(long max)
{
	long n = 0;
	int error = 0;
	setpgid(0, 0);
	for (; n < max; n++) {
		pid_t pid = fork();
		if (pid == 0) {
			for (;;)
				pause();
		}
		if (pid < 0) {
			error = errno;
			break;
		}
	}
	return printf("forks %ld %s\n", n, error_name(error)), 0;
}

static void *wait_here(void *arg)
{
	pause();
	return arg;
}

static int threads(long max)
{
	pthread_attr_t attr;
	pthread_t thread;
	long n = 0;
	int error = 0;
	pthread_attr_init(&attr);
	pthread_attr_setstacksize(&attr, 65536);
	for (; n < max && error == 0; n += error == 0)
		error = pthread_create(&thread, &attr, wait_here, NULL);
	return printf("threads %ld %s\n", n, error_name(error)), 0;
}

static int disk(const char *path, long max)
{
	static char block[MIB], name[512];
	snprintf(name, sizeof(name), "%s/bomb", path);
	int fd = open(name, O_WRONLY | O_CREAT | O_TRUNC, 0644);
	if (fd < 0)
		return printf("disk 0 MiB %s\n", error_name(errno)), 0;
	for (long i = 0; i < max; i++)
		if (write(fd, block, sizeof(block)) != (ssize_t)sizeof(block))
			return printf("disk %ld MiB ENOSPC\n", i), 0;
	return printf("disk %ld MiB none\n", max), 0;
}

static int inodes(const char *path, long max)
{
	char name[512];
	for (long i = 0; i < max; i++) {
		snprintf(name, sizeof(name), "%s/inode-%ld", path, i);
		int fd = open(name, O_WRONLY | O_CREAT | O_EXCL, 0644);
		if (fd < 0)
			return printf("inodes %ld %s\n", i, error_name(errno)), 0;
		close(fd);
	}
	return printf("inodes %ld none\n", max), 0;
}

static int descriptors(long max)
{
	for (long i = 0; i < max; i++)
		if (dup(0) < 0)
			return printf("descriptors %ld %s\n", i, error_name(errno)), 0;
	return printf("descriptors %ld none\n", max), 0;
}

static int depth(const char *path, long max)
{
	if (chdir(path) < 0)
		return printf("depth 0 %s\n", error_name(errno)), 0;
	for (long i = 0; i < max; i++)
		if (mkdir("d", 0755) < 0 || chdir("d") < 0)
			return printf("depth %ld %s\n", i, error_name(errno)), 0;
	return printf("depth %ld none\n", max), 0;
}

static int huge_argv(long max)
{
	char **argv = calloc((size_t)max * 16 + 3, sizeof(char *));
	char *block = malloc(65536);
	if (!argv || !block)
		return 1;
	memset(block, 'a', 65535);
	block[65535] = '\0';
	argv[0] = (char *)(uintptr_t)"true";
	for (long i = 0; i < max * 16; i++)
		argv[i + 1] = block;
	execv("/usr/bin/true", argv);
	return printf("argv %s\n", error_name(errno)), 0;
}

static int __attribute__((noreturn)) watches(long max)
{
	long n = 0;
	while (n < max && inotify_init1(0) >= 0)
		n++;
	printf("watches %ld %s\n", n, error_name(n < max ? errno : 0));
	for (;;)
		pause();
}

static int terminals(long max)
{
	for (long i = 0; i < max; i++)
		if (posix_openpt(O_RDWR | O_NOCTTY) < 0)
			return printf("terminals %ld %s\n", i, error_name(errno)), 0;
	return printf("terminals %ld none\n", max), 0;
}

static int __attribute__((noreturn)) denials(long n)
{
	for (long i = 1; i < n; i++)
		if (fork() == 0)
			break;
	for (;;)
		mount("bulkhead-escape", "/tmp", "tmpfs", 0, NULL);
}

int bomb_main(int argc, char **argv)
{
	static const struct { const char *name; int (*sized)(long); int (*placed)(const char *, long); } kinds[] = {
		{ "memory", memory, NULL }, { "memfd", memfd, NULL }, { "shm", shm, NULL }, { "forks", forks, NULL }, { "threads", threads, NULL },
		{ "disk", NULL, disk }, { "inodes", NULL, inodes }, { "descriptors", descriptors, NULL }, { "depth", NULL, depth }, { "argv", huge_argv, NULL },
		{ "denials", denials, NULL },
		{ "watches", watches, NULL }, { "terminals", terminals, NULL },
	};
	for (size_t i = 0; argc > 1 && i < sizeof(kinds) / sizeof(kinds[0]); i++) {
		if (strcmp(argv[0], kinds[i].name) != 0)
			continue;
		if (kinds[i].sized)
			return kinds[i].sized(atol(argv[1]));
		return argc > 2 ? kinds[i].placed(argv[1], atol(argv[2])) : 2;
	}
	return 2;
}
