/* SPDX-License-Identifier: Apache-2.0 */
/*
 * seccomp-gen TABLE ARCH: build-time compiler from seccomp.table to a C array of classic BPF. Runs on the build machine
 * only; nothing of libseccomp is needed at run time. libseccomp gives the numbers; the code is our own because its rule
 * language can't say "anything but this value in the low 32 bits", which terminal injection calls for.
 *
 * Shape of the program: architecture, then a binary tree over ranges of numbers with one action, then one chain of tests for a
 * syscall whose arguments matter. Every path ends in a return; the kernel remembers the numbers that are always allowed and
 * skips the program for them.
 */
#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/netlink.h>
#include <linux/seccomp.h>
#include <netinet/in.h>
#include <seccomp.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/personality.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>

#define NUMBERS 1024
#define RULES_MAX 16
#define CONDITIONS_MAX 3
#define PROGRAM_MAX 4000 /* the kernel takes 4096 */
#define X32_BIT 0x40000000u

struct condition {
	unsigned arg;
	bool high;
	uint32_t mask, value;
	enum { EQUAL, UNEQUAL, AT_LEAST } op;
};
struct rule {
	struct condition conditions[CONDITIONS_MAX];
	unsigned n;
	uint32_t action;
};
struct entry {
	char name[32];
	bool listed;
	uint32_t action; /* when no rule matches */
	int notify_errno;
	struct rule rules[RULES_MAX];
	unsigned n;
};
struct program {
	struct sock_filter code[PROGRAM_MAX];
	unsigned n;
};

static struct entry table[NUMBERS];
static uint32_t arch_token;
static const char *path;
static unsigned line_number;

static const struct {
	const char *name;
	uint32_t value;
} constants[] = {
	{ "O_CREAT", 0100 },
	{ "O_TMPFILE_BIT", 020000000 },
	{ "S_IFMT", S_IFMT },
	{ "S_IFCHR", S_IFCHR },
	{ "S_IFBLK", S_IFBLK },
	{ "TIOCSTI", 0x5412 },
	{ "TIOCLINUX", 0x541c },
	{ "TIOCSETD", 0x5423 },
	{ "CLONE_NAMESPACES", 0x7e020000 },
	{ "CLONE_NAMESPACES_AND_TIME", 0x7e020080 },
	{ "SECCOMP_SET_MODE_FILTER", SECCOMP_SET_MODE_FILTER },
	{ "SECCOMP_FILTER_FLAG_NEW_LISTENER", SECCOMP_FILTER_FLAG_NEW_LISTENER },
	{ "PER_LINUX32", PER_LINUX32 },
	{ "RLIMIT_CORE", RLIMIT_CORE },
	{ "AF_UNIX", AF_UNIX },
	{ "AF_INET", AF_INET },
	{ "AF_INET6", AF_INET6 },
	{ "AF_NETLINK", AF_NETLINK },
	{ "NETLINK_ROUTE", NETLINK_ROUTE },
	{ "SOCK_STREAM", SOCK_STREAM },
	{ "SOCK_DGRAM", SOCK_DGRAM },
	{ "IPPROTO_TCP", IPPROTO_TCP },
	{ "IPPROTO_UDP", IPPROTO_UDP },
	{ "IPPROTO_MPTCP", 262 },
};
static const struct {
	const char *name;
	int value;
} errnos[] = {
	{ "NONE", 0 },
	{ "EPERM", EPERM },
	{ "ENOSYS", ENOSYS },
	{ "EPROTONOSUPPORT", EPROTONOSUPPORT },
};

static void __attribute__((noreturn)) fail(const char *what, const char *word)
{
	fprintf(stderr, "%s:%u: %s: %s\n", path, line_number, what, word ? word : "(nothing)");
	exit(1);
}

static uint32_t parse_value(const char *s, size_t n)
{
	for (size_t i = 0; i < sizeof(constants) / sizeof(constants[0]); i++)
		if (strlen(constants[i].name) == n && memcmp(constants[i].name, s, n) == 0)
			return constants[i].value;
	char text[32] = "", *end;
	if (n == 0 || n >= sizeof(text) || !isdigit((unsigned char)s[0]))
		fail("no such constant", s);
	memcpy(text, s, n);
	unsigned long v = strtoul(text, &end, 0);
	if (*end || v > UINT32_MAX)
		fail("not a 32-bit number", s);
	return (uint32_t)v;
}

static int parse_errno(const char *s)
{
	for (size_t i = 0; s && i < sizeof(errnos) / sizeof(errnos[0]); i++)
		if (strcmp(errnos[i].name, s) == 0)
			return errnos[i].value;
	fail("no such errno", s);
}

/* NULL for a syscall that this architecture doesn't have; a name that neither has is a slip of the pen. */
static struct entry *find(const char *name)
{
	int nr = seccomp_syscall_resolve_name_arch(arch_token, name);
	if (nr == __NR_SCMP_ERROR)
		fail("no such system call", name);
	if (nr < 0)
		return NULL;
	if (nr >= NUMBERS)
		fail("number out of range", name);
	return &table[nr];
}

static struct condition parse_condition(const char *s)
{
	struct condition c = { .mask = UINT32_MAX };
	if ((s[0] != 'a' && s[0] != 'h') || s[1] < '0' || s[1] > '5')
		fail("a condition begins with a0 to a5 or h0 to h5", s);
	c.high = s[0] == 'h';
	c.arg = (unsigned)(s[1] - '0');
	s += 2;
	if (*s == '&') {
		size_t n = strcspn(s + 1, "=!>");
		c.mask = parse_value(s + 1, n);
		s += 1 + n;
	}
	if (strncmp(s, "==", 2) == 0)
		c.op = EQUAL;
	else if (strncmp(s, "!=", 2) == 0)
		c.op = UNEQUAL;
	else if (strncmp(s, ">=", 2) == 0)
		c.op = AT_LEAST;
	else
		fail("expected ==, != or >=", s);
	c.value = parse_value(s + 2, strlen(s + 2));
	return c;
}

static uint32_t parse_action(const char *word, struct entry *e)
{
	if (word && strcmp(word, "allow") == 0)
		return SECCOMP_RET_ALLOW;
	if (word && strcmp(word, "errno") == 0)
		return SECCOMP_RET_ERRNO | (uint32_t)parse_errno(strtok(NULL, " "));
	if (!word || strcmp(word, "notify") != 0)
		fail("no such action", word);
	int value = parse_errno(strtok(NULL, " "));
	if (e)
		e->notify_errno = value;
	return SECCOMP_RET_USER_NOTIF;
}

static void parse_when(void)
{
	const char *name = strtok(NULL, " ");
	if (!name)
		fail("expected a name after", "when");
	struct entry *e = find(name);
	struct rule r = { 0 };
	const char *word;
	while ((word = strtok(NULL, " ")) && strcmp(word, ":") != 0) {
		if (strcmp(word, "and") == 0)
			continue;
		if (r.n == CONDITIONS_MAX)
			fail("too many conditions", word);
		r.conditions[r.n++] = parse_condition(word);
	}
	r.action = parse_action(strtok(NULL, " "), e);
	if (!e)
		return;
	if (r.n == 0 || e->n == RULES_MAX)
		fail("no or too many rules", name);
	snprintf(e->name, sizeof(e->name), "%s", name);
	e->rules[e->n++] = r;
}

static void parse_line(char *line)
{
	line[strcspn(line, "#\n")] = '\0';
	char *word = strtok(line, " ");
	if (!word)
		return;
	if (strcmp(word, "when") == 0) {
		parse_when();
		return;
	}
	struct entry model = { 0 };
	model.action = parse_action(word, &model);
	while ((word = strtok(NULL, " "))) {
		struct entry *e = find(word);
		if (!e)
			continue;
		if (e->listed)
			fail("listed twice", word);
		e->listed = true;
		snprintf(e->name, sizeof(e->name), "%s", word);
		e->action = model.action;
		if (model.notify_errno)
			e->notify_errno = model.notify_errno;
	}
}

static void emit(struct program *p, uint16_t code, uint8_t jt, uint8_t jf, uint32_t k)
{
	if (p->n == PROGRAM_MAX)
		fail("the program is too long", path);
	p->code[p->n++] = (struct sock_filter){ code, jt, jf, k };
}

static void append(struct program *p, const struct program *more)
{
	for (unsigned i = 0; i < more->n; i++)
		emit(p, more->code[i].code, more->code[i].jt, more->code[i].jf, more->code[i].k);
}

/* One rule: when a condition doesn't hold, control passes behind the rule's end. */
static void emit_rule(struct program *p, const struct rule *r)
{
	unsigned misses[CONDITIONS_MAX];
	for (unsigned i = 0; i < r->n; i++) {
		const struct condition *c = &r->conditions[i];
		emit(p, BPF_LD | BPF_W | BPF_ABS, 0, 0,
			(uint32_t)(offsetof(struct seccomp_data, args) + 8 * c->arg + 4 * c->high));
		if (c->mask != UINT32_MAX)
			emit(p, BPF_ALU | BPF_AND | BPF_K, 0, 0, c->mask);
		misses[i] = p->n;
		emit(p, BPF_JMP | BPF_K | (c->op == AT_LEAST ? BPF_JGE : BPF_JEQ), 0, 0, c->value);
	}
	emit(p, BPF_RET | BPF_K, 0, 0, r->action);
	for (unsigned i = 0; i < r->n; i++) {
		uint8_t far = (uint8_t)(p->n - misses[i] - 1);
		if (r->conditions[i].op == UNEQUAL)
			p->code[misses[i]].jt = far;
		else
			p->code[misses[i]].jf = far;
	}
}

static bool same(const struct entry *a, const struct entry *b)
{
	return a->n == 0 && b->n == 0 && a->action == b->action;
}

/* The tree over [lo, hi): the accumulator holds the number. */
static void emit_tree(struct program *p, unsigned lo, unsigned hi)
{
	unsigned boundaries = 0, middle = 0;
	for (unsigned i = lo + 1; i < hi; i++)
		boundaries += !same(&table[i - 1], &table[i]);
	if (boundaries == 0) {
		for (unsigned i = 0; i < table[lo].n; i++)
			emit_rule(p, &table[lo].rules[i]);
		emit(p, BPF_RET | BPF_K, 0, 0, table[lo].action);
		return;
	}
	for (unsigned i = lo + 1, seen = 0; i < hi && !middle; i++)
		if (!same(&table[i - 1], &table[i]) && seen++ == boundaries / 2)
			middle = i;
	struct program *left = calloc(1, sizeof(*left));
	if (!left)
		fail("out of memory", path);
	emit_tree(left, lo, middle);
	if (left->n <= 255) {
		emit(p, BPF_JMP | BPF_JGE | BPF_K, (uint8_t)left->n, 0, middle);
	} else {
		emit(p, BPF_JMP | BPF_JGE | BPF_K, 0, 1, middle);
		emit(p, BPF_JMP | BPF_JA, 0, 0, left->n);
	}
	append(p, left);
	free(left);
	emit_tree(p, middle, hi);
}

static void emit_program(struct program *p, uint32_t audit_arch)
{
	emit(p, BPF_LD | BPF_W | BPF_ABS, 0, 0, offsetof(struct seccomp_data, arch));
	emit(p, BPF_JMP | BPF_JEQ | BPF_K, 1, 0, audit_arch);
	emit(p, BPF_RET | BPF_K, 0, 0, SECCOMP_RET_KILL_PROCESS);
	emit(p, BPF_LD | BPF_W | BPF_ABS, 0, 0, offsetof(struct seccomp_data, nr));
	/* x32 numbers: x86-64 only, but no other architecture has numbers up there either. */
	emit(p, BPF_JMP | BPF_JGE | BPF_K, 0, 1, X32_BIT);
	emit(p, BPF_RET | BPF_K, 0, 0, SECCOMP_RET_USER_NOTIF);
	emit_tree(p, 0, NUMBERS);
}

static void print(const struct program *p, const char *arch)
{
	printf("/* Generated from seccomp.table for %s. */\nstatic const struct sock_filter seccomp_program[] = {\n", arch);
	for (unsigned i = 0; i < p->n; i++)
		printf("\t{ 0x%02x, %u, %u, 0x%08x },\n", p->code[i].code, p->code[i].jt, p->code[i].jf, p->code[i].k);
	printf("};\nstatic const struct seccomp_refusal seccomp_refusals[] = {\n");
	for (unsigned i = 0; i < NUMBERS; i++)
		if (table[i].notify_errno)
			printf("\t{ %u, %d, \"%s\" },\n", i, table[i].notify_errno, table[i].name);
	printf("};\n");
}

int main(int argc, char **argv)
{
	uint32_t audit_arch;
	if (argc != 3) {
		fprintf(stderr, "usage: seccomp-gen TABLE x86_64|aarch64\n");
		return 2;
	}
	path = argv[1];
	if (strcmp(argv[2], "x86_64") == 0) {
		arch_token = SCMP_ARCH_X86_64;
		audit_arch = AUDIT_ARCH_X86_64;
	} else if (strcmp(argv[2], "aarch64") == 0) {
		arch_token = SCMP_ARCH_AARCH64;
		audit_arch = AUDIT_ARCH_AARCH64;
	} else {
		fail("no such architecture", argv[2]);
	}
	for (unsigned i = 0; i < NUMBERS; i++)
		table[i].action = SECCOMP_RET_ERRNO | ENOSYS;
	FILE *f = fopen(path, "re");
	char line[512];
	if (!f)
		fail("can't be read", strerror(errno));
	while (fgets(line, sizeof(line), f)) {
		line_number++;
		if (!strchr(line, '\n'))
			fail("the line is too long", line);
		parse_line(line);
	}
	fclose(f);
	static struct program program;
	emit_program(&program, audit_arch);
	print(&program, argv[2]);
	return ferror(stdout) || fflush(stdout) ? 1 : 0;
}
