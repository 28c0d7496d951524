/* SPDX-License-Identifier: Apache-2.0 */
#include "image-trees.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/wait.h>
#include <sys/xattr.h>
#include <time.h>
#include <unistd.h>

#define MUST(ok)                                                                                                        \
	do {                                                                                                            \
		if (!(ok)) {                                                                                            \
			fprintf(stderr, "%s:%d: %s: %s\n", __FILE__, __LINE__, #ok, strerror(errno));                   \
			abort();                                                                                        \
		}                                                                                                       \
	} while (0)

#define NOBODY 65534

static char scratch[64];
static bool dropped;

void trees_begin(void)
{
	/* /dev/shm is a tmpfs everywhere, as the upper folder of a box is. */
	snprintf(scratch, sizeof(scratch), "%s/bulkhead-test-XXXXXX", access("/dev/shm", W_OK) == 0 ? "/dev/shm" : "/tmp");
	MUST(mkdtemp(scratch));
	MUST(chdir(scratch) == 0);
	umask(022);
}

void trees_begin_as_user(void)
{
	trees_begin();
	if (geteuid() != 0)
		return;
	MUST(chown(scratch, NOBODY, NOBODY) == 0);
	/* The real ids too, or shells would go back to them; the saved ones bring us back. */
	MUST(setresgid(NOBODY, NOBODY, 0) == 0 && setresuid(NOBODY, NOBODY, 0) == 0);
	dropped = true;
	/* Else /proc/self/fd belongs to root. */
	MUST(prctl(PR_SET_DUMPABLE, 1) == 0);
}

void trees_end(void)
{
	if (dropped)
		MUST(setresuid(0, 0, 0) == 0 && setresgid(0, 0, 0) == 0);
	dropped = false;
	MUST(chdir("/") == 0);
	while (umount2(scratch, MNT_DETACH) == 0)
		;
	char command[256];
	snprintf(command, sizeof(command), "chmod -R u+rwx %s; rm -rf %s", scratch, scratch);
	tree_run(command);
}

bool trees_mount_tmpfs(void)
{
	if (unshare(CLONE_NEWNS) < 0 || mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0 ||
		mount("tmpfs", scratch, "tmpfs", 0, "size=512m,mode=755") < 0)
		return false;
	MUST(chdir(scratch) == 0);
	return true;
}

bool trees_mount_overlay(const char *lower, const char *upper, const char *work, const char *merged)
{
	char options[512];
	snprintf(options, sizeof(options), "lowerdir=%s/%s,upperdir=%s/%s,workdir=%s/%s,redirect_dir=nofollow,metacopy=off",
		scratch, lower, scratch, upper, scratch, work);
	return mount("overlay", merged, "overlay", 0, options) == 0;
}

static void make_parents(const char *path)
{
	char copy[8192];
	snprintf(copy, sizeof(copy), "%s", path);
	for (char *p = strchr(copy, '/'); p; p = strchr(p + 1, '/')) {
		*p = '\0';
		MUST(mkdir(copy, 0755) == 0 || errno == EEXIST);
		*p = '/';
	}
}

void tree_write_bytes(const char *path, const void *data, size_t len)
{
	make_parents(path);
	int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
	MUST(fd >= 0);
	MUST(write(fd, data, len) == (ssize_t)len);
	close(fd);
}

void tree_write(const char *path, const char *text)
{
	tree_write_bytes(path, text, strlen(text));
}

void tree_folder(const char *path)
{
	make_parents(path);
	MUST(mkdir(path, 0755) == 0 || errno == EEXIST);
}

void tree_link(const char *path, const char *target)
{
	make_parents(path);
	MUST(symlink(target, path) == 0);
}

void tree_mode(const char *path, mode_t mode)
{
	MUST(chmod(path, mode) == 0);
}

void tree_whiteout(const char *path)
{
	make_parents(path);
	MUST(mknod(path, S_IFCHR, makedev(0, 0)) == 0);
}

void tree_opaque(const char *path)
{
	tree_folder(path);
	MUST(setxattr(path, geteuid() == 0 ? "trusted.overlay.opaque" : "user.overlay.opaque", "y", 1, 0) == 0);
}

char *tree_read(const char *path, size_t *ret_len)
{
	struct stat st;
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
	if (fd < 0)
		return NULL;
	MUST(fstat(fd, &st) == 0);
	char *text = malloc((size_t)st.st_size + 1);
	MUST(text && read(fd, text, (size_t)st.st_size) == st.st_size);
	close(fd);
	text[st.st_size] = '\0';
	if (ret_len)
		*ret_len = (size_t)st.st_size;
	return text;
}

bool tree_exists(const char *path)
{
	struct stat st;
	return lstat(path, &st) == 0;
}

int tree_fd(const char *path)
{
	int fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	MUST(fd >= 0);
	return fd;
}

void tree_run(const char *command)
{
	int status = system(command); /* the test's own words */
	if (status != 0) {
		fprintf(stderr, "failed (%d): %s\n", status, command);
		abort();
	}
}

uint64_t now_ns(void)
{
	struct timespec t;
	clock_gettime(CLOCK_REALTIME, &t);
	return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

void clock_tick(void)
{
	struct timespec t = { 0, 15000000 };
	nanosleep(&t, NULL);
}

static unsigned differ(const char *path, const char *how)
{
	fprintf(stderr, "differs: %s: %s\n", path, how);
	return 1;
}

static bool same_text(const char *a, const char *b)
{
	size_t na = 0, nb = 0;
	char *ta = tree_read(a, &na), *tb = tree_read(b, &nb);
	bool same = ta && tb && na == nb && memcmp(ta, tb, na) == 0;
	free(ta);
	free(tb);
	return same;
}

static bool same_target(const char *a, const char *b)
{
	char ta[4096], tb[4096];
	ssize_t na = readlink(a, ta, sizeof(ta)), nb = readlink(b, tb, sizeof(tb));
	return na >= 0 && na == nb && memcmp(ta, tb, (size_t)na) == 0;
}

static unsigned compare_folders(const char *a, const char *b, unsigned what);

static bool counts(const struct stat *st, unsigned what)
{
	if (S_ISDIR(st->st_mode))
		return (what & COMPARE_FOLDERS) != 0;
	return S_ISREG(st->st_mode) || S_ISLNK(st->st_mode) || (what & COMPARE_SPECIAL);
}

static unsigned compare_entry(const char *a, const char *b, unsigned what)
{
	struct stat sa, sb;
	MUST(lstat(a, &sa) == 0);
	bool there = lstat(b, &sb) == 0;
	if (!there) {
		unsigned n = counts(&sa, what) ? differ(a, "only on one side") : 0;
		return n + (S_ISDIR(sa.st_mode) ? compare_folders(a, b, what) : 0);
	}
	if ((sa.st_mode & S_IFMT) != (sb.st_mode & S_IFMT))
		return counts(&sa, what) || counts(&sb, what) ? differ(a, "another kind") : 0;
	if (!S_ISLNK(sa.st_mode) && (what & COMPARE_MODES) && sa.st_mode != sb.st_mode)
		return differ(a, "another mode");
	if (!S_ISLNK(sa.st_mode) && counts(&sa, what) && (sa.st_mode & 0100) != (sb.st_mode & 0100) && S_ISREG(sa.st_mode))
		return differ(a, "another executable bit");
	if (S_ISDIR(sa.st_mode))
		return compare_folders(a, b, what);
	if (S_ISREG(sa.st_mode) && !same_text(a, b))
		return differ(a, "another content");
	if (S_ISLNK(sa.st_mode) && !same_target(a, b))
		return differ(a, "another target");
	return 0;
}

static unsigned compare_folders(const char *a, const char *b, unsigned what)
{
	unsigned n = 0;
	DIR *d = opendir(a);
	MUST(d);
	for (struct dirent *e; (e = readdir(d));) {
		char pa[8192], pb[8192];
		if (strcmp(e->d_name, ".") == 0 || strcmp(e->d_name, "..") == 0)
			continue;
		snprintf(pa, sizeof(pa), "%s/%s", a, e->d_name);
		snprintf(pb, sizeof(pb), "%s/%s", b, e->d_name);
		n += compare_entry(pa, pb, what);
	}
	closedir(d);
	return n;
}

/* Entries only on b's side. */
static unsigned find_extra(const char *a, const char *b, unsigned what)
{
	unsigned n = 0;
	DIR *d = opendir(b);
	MUST(d);
	for (struct dirent *e; (e = readdir(d));) {
		char pa[8192], pb[8192];
		struct stat st;
		if (strcmp(e->d_name, ".") == 0 || strcmp(e->d_name, "..") == 0)
			continue;
		snprintf(pa, sizeof(pa), "%s/%s", a, e->d_name);
		snprintf(pb, sizeof(pb), "%s/%s", b, e->d_name);
		MUST(lstat(pb, &st) == 0);
		if (!tree_exists(pa) && counts(&st, what))
			n += differ(pb, "only on the other side");
		if (S_ISDIR(st.st_mode))
			n += find_extra(pa, pb, what);
	}
	closedir(d);
	return n;
}

unsigned trees_compare(const char *a, const char *b, unsigned what)
{
	return compare_folders(a, b, what) + find_extra(a, b, what);
}

uint32_t random_below(struct random *r, uint32_t n)
{
	r->state = r->state * 6364136223846793005u + 1442695040888963407u;
	return (uint32_t)(((r->state >> 33) * n) >> 31);
}

static const char *random_name(struct random *r)
{
	static const char *const plain[] = { "a", "b", "c", "d", "src", "lib", "x.c", "y.txt", "a b", "Makefile", "tab\there",
		"z" };
	static const char *const odd[] = { "-rf", "new\nline", "bad\xff\xfe", "\x1b[31m", "caf\xc3\xa9", "quote\"d",
		"back\\slash", ".bashrc", ".envrc", "\xe2\x80\x8b", "$(id)", " lead", "trail ", "~", "con" };
	uint32_t n_plain = sizeof(plain) / sizeof(*plain), n_odd = sizeof(odd) / sizeof(*odd);
	uint32_t i = random_below(r, r->plain ? n_plain : n_plain + n_odd);
	return i < n_plain ? plain[i] : odd[i - n_plain];
}

/* A random path of at most four names below root; its folders need not exist. */
static void random_path(struct random *r, const char *root, char out[1024])
{
	size_t n = (size_t)snprintf(out, 1024, "%s", root);
	uint32_t depth = 1 + random_below(r, 3);
	for (uint32_t i = 0; i < depth; i++)
		n += (size_t)snprintf(out + n, 1024 - n, "/%s", random_name(r));
}

static size_t random_text(struct random *r, char out[4096])
{
	size_t n = 0;
	uint32_t lines = random_below(r, 30);
	for (uint32_t i = 0; i < lines; i++)
		n += (size_t)snprintf(out + n, 4096 - n, "line %u\n", random_below(r, 12));
	if (random_below(r, 4) == 0 && n > 0)
		n--; /* no newline at the end */
	if (!r->plain && random_below(r, 8) == 0 && n > 0)
		out[random_below(r, (uint32_t)n)] = '\0';
	return n;
}

static mode_t random_mode(struct random *r)
{
	static const mode_t modes[] = { 0644, 0644, 0644, 0755, 0755, 0600, 0700, 0444, 0640, 0000, 04755, 02755, 01644 };
	return modes[random_below(r, r->plain ? 5 : sizeof(modes) / sizeof(*modes))];
}

static void random_entry(struct random *r, const char *path)
{
	static const char *const targets[] = { "a", "../b", "src/x.c", "/etc/passwd", "../../../../x", "dangling\nname", "." };
	char text[4096];
	uint32_t what = random_below(r, 10);
	if (what < 6) {
		size_t n = random_text(r, text);
		int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC, 0644);
		if (fd < 0)
			return;
		MUST(write(fd, text, n) == (ssize_t)n);
		MUST(fchmod(fd, random_mode(r)) == 0);
		close(fd);
	} else if (what < 8) {
		if (mkdir(path, 0755) == 0 && !r->plain && random_below(r, 3) == 0)
			MUST(chmod(path, random_below(r, 2) ? 0700 : 02775) == 0);
	} else {
		(void)!symlink(targets[random_below(r, sizeof(targets) / sizeof(*targets))], path);
	}
}

/* Parents that are in the way as files make this fail quietly: the next one will do. */
static void random_parents(const char *path)
{
	char copy[1024];
	snprintf(copy, sizeof(copy), "%s", path);
	for (char *p = strchr(copy, '/'); p; p = strchr(p + 1, '/')) {
		struct stat st;
		*p = '\0';
		if (lstat(copy, &st) < 0)
			mkdir(copy, 0755);
		else if (!S_ISDIR(st.st_mode))
			return;
		*p = '/';
	}
}

/* No link may lead us out of the tree. */
static bool has_link_above(const char *path)
{
	char copy[1024];
	snprintf(copy, sizeof(copy), "%s", path);
	for (char *p = strchr(copy, '/'); p; p = strchr(p + 1, '/')) {
		struct stat st;
		*p = '\0';
		if (lstat(copy, &st) == 0 && S_ISLNK(st.st_mode))
			return true;
		*p = '/';
	}
	return false;
}

void random_tree(struct random *r, const char *root, unsigned entries)
{
	tree_folder(root);
	for (unsigned i = 0; i < entries; i++) {
		char path[1024];
		random_path(r, root, path);
		random_parents(path);
		if (!has_link_above(path) && !tree_exists(path))
			random_entry(r, path);
	}
}

static void remove_at(const char *path)
{
	pid_t pid = fork();
	MUST(pid >= 0);
	if (pid == 0) {
		execlp("rm", "rm", "-rf", "--", path, (char *)NULL);
		_exit(127);
	}
	int status;
	MUST(waitpid(pid, &status, 0) == pid && status == 0);
}

static void append_line(const char *path)
{
	struct stat st;
	if (lstat(path, &st) < 0 || !S_ISREG(st.st_mode))
		return;
	int fd = open(path, O_WRONLY | O_APPEND | O_CLOEXEC | O_NOFOLLOW);
	MUST(fd >= 0 && write(fd, "appended\n", 9) == 9);
	close(fd);
}

static void rewrite_same(const char *path)
{
	struct stat st;
	size_t len = 0;
	if (lstat(path, &st) < 0 || !S_ISREG(st.st_mode))
		return;
	char *text = tree_read(path, &len);
	int fd = open(path, O_WRONLY | O_TRUNC | O_CLOEXEC | O_NOFOLLOW);
	MUST(fd >= 0 && write(fd, text, len) == (ssize_t)len);
	close(fd);
	free(text);
}

static void change_mode(struct random *r, const char *path)
{
	struct stat st;
	if (lstat(path, &st) < 0 || S_ISLNK(st.st_mode))
		return;
	MUST(chmod(path, S_ISDIR(st.st_mode) ? (random_below(r, 2) ? 0700 : 0755) : random_mode(r)) == 0);
}

static void move(struct random *r, const char *root, const char *path)
{
	char to[1024];
	struct stat st;
	random_path(r, root, to);
	random_parents(to);
	if (has_link_above(to) || lstat(path, &st) < 0)
		return;
	/* Across a merged folder it is EXDEV, as for mv(1): only files and links then. */
	(void)!rename(path, to);
}

void random_changes(struct random *r, const char *root, unsigned count)
{
	for (unsigned i = 0; i < count; i++) {
		char path[1024];
		random_path(r, root, path);
		uint32_t what = random_below(r, 12);
		if (has_link_above(path))
			continue;
		if (what < 3 && tree_exists(path)) {
			remove_at(path);
			if (random_below(r, 2))
				random_entry(r, path);
		} else if (what < 5) {
			append_line(path);
		} else if (what < 6) {
			rewrite_same(path);
		} else if (what < 8) {
			change_mode(r, path);
		} else if (what < 9) {
			move(r, root, path);
		} else {
			random_parents(path);
			if (!has_link_above(path) && !tree_exists(path))
				random_entry(r, path);
		}
	}
}

struct changes collected(const char *upper, const char *lower, uint64_t started_ns)
{
	struct changes c, loaded;
	struct err err = ERR_INIT;
	tree_folder("state");
	int up = tree_fd(upper), low = tree_fd(lower), state = tree_fd("state");
	if (changes_collect(up, low, NULL, started_ns, 100000, &c, &err) < 0 || changes_save(&c, up, state, "changes", &err) < 0 ||
		changes_load(state, "changes", &loaded, &err) < 0) {
		fprintf(stderr, "%s\n", err.text);
		abort();
	}
	changes_done(&c);
	close(up);
	close(low);
	close(state);
	return loaded;
}

char **all_paths(const struct changes *c)
{
	char **paths = calloc(c->n + 1, sizeof(*paths));
	MUST(paths);
	for (size_t i = 0; i < c->n; i++)
		paths[i] = c->items[i].path;
	return paths;
}

const struct change *change_at(const struct changes *c, const char *path)
{
	for (size_t i = 0; i < c->n; i++)
		if (strcmp(c->items[i].path, path) == 0)
			return &c->items[i];
	return NULL;
}

static int collect_patch(void *ctx, const void *data, size_t len)
{
	MUST(fwrite(data, 1, len, ctx) == len);
	return 0;
}

char *patch_of(const struct changes *c, const char *original, char *const *paths, unsigned style)
{
	char *text = NULL;
	size_t len;
	struct err err = ERR_INIT;
	FILE *f = open_memstream(&text, &len);
	MUST(f);
	int state = tree_fd("state"), orig = tree_fd(original);
	int r = changes_diff(c, state, "changes", orig, paths, style, collect_patch, f, &err);
	if (r < 0)
		fprintf(stderr, "%s\n", err.text);
	MUST(r == 0);
	close(state);
	close(orig);
	fclose(f);
	return text;
}
