/* SPDX-License-Identifier: Apache-2.0 */
/*
 * After tls_prepare and tls_roots_read no file is opened and no code is made: handshakes both ways, all keys, hashes and every
 * refusal work under a list of system calls that ends the process at the first other one. Built as the programs are (static-pie),
 * without a test framework, which would need more calls than what is tested.
 */
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "base/mem.h"
#include "crypto/digest.h"
#include "crypto/tls.h"
#include "program/common/syscall-list.h"

static struct sock_filter list[] = {
	LIST_BEGIN,
	LIST_ALLOW(__NR_write),
	LIST_ALLOW(__NR_clock_gettime),
	LIST_ALLOW(__NR_gettimeofday),
	LIST_ALLOW(__NR_brk),
	LIST_ALLOW(__NR_munmap),
	LIST_ALLOW(__NR_mremap),
	LIST_ALLOW(__NR_madvise),
	LIST_ALLOW(__NR_futex),
	LIST_ALLOW(__NR_getrandom),
	LIST_ALLOW(__NR_getpid),
	LIST_ALLOW(__NR_exit_group),
	BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, __NR_mmap, 0, 4),
	LIST_LOAD_ARG(2),
	BPF_JUMP(BPF_JMP | BPF_JSET | BPF_K, PROT_EXEC, 0, 1),
	LIST_RETURN(SECCOMP_RET_KILL_PROCESS),
	LIST_RETURN(SECCOMP_RET_ALLOW),
	LIST_END_KILL,
};

#define CHECK(what)                                                                            \
	do {                                                                                   \
		if (!(what)) {                                                                 \
			static const char said[] = "failed: " #what "\n";                      \
			write(STDOUT_FILENO, said, sizeof(said) - 1) > 0 ? _exit(1) : _exit(2); \
		}                                                                              \
	} while (0)

static void carry(struct tls *from, struct tls *to)
{
	struct buf b;
	buf_init(&b, 1 << 20);
	CHECK(tls_pull(from, &b, SIZE_MAX) >= 0);
	if (b.len)
		tls_feed(to, b.data, b.len);
	buf_free(&b);
}

static void handshake(struct tls *c, struct tls *s)
{
	while (tls_output_pending(c) || tls_output_pending(s)) {
		carry(c, s);
		carry(s, c);
	}
}

static void exchange(const struct tls_roots *roots, struct mint *mint, const char *host)
{
	struct err err = ERR_INIT;
	struct tls *c = tls_client_new(roots, host, "h2,http/1.1", &err), *s = tls_server_new(mint, host, "h2", &err);
	CHECK(c && s);
	handshake(c, s);
	CHECK(tls_state(c) == TLS_OPEN && tls_state(s) == TLS_OPEN);
	char text[8];
	CHECK(tls_write(c, "ping", 4) == 0);
	carry(c, s);
	CHECK(tls_read(s, text, sizeof(text)) == 4 && memcmp(text, "ping", 4) == 0);
	tls_close(s);
	carry(s, c);
	CHECK(tls_read(c, text, sizeof(text)) == 0 && tls_state(c) == TLS_ENDED);
	tls_free(c);
	tls_free(s);
}

/* An authority that the client does not know: the sentence, too, is made without help from outside. */
static void refused(const struct tls_roots *roots, struct mint *stranger)
{
	struct tls *c = tls_client_new(roots, "a.example", "", NULL), *s = tls_server_new(stranger, "a.example", "", NULL);
	handshake(c, s);
	CHECK(tls_state(c) == TLS_FAILED && tls_error_is_certificate(c));
	CHECK(strstr(tls_error(c)->text, "not trusted here, \"Bulkhead sandbox bcdefghi\""));
	CHECK(tls_state(s) == TLS_FAILED && strstr(tls_error(s)->text, "does not trust"));
	tls_free(c);
	tls_free(s);
	c = tls_client_new(roots, "a.example", "", NULL);
	CHECK(tls_feed(c, "HTTP/1.1 200 OK\r\n\r\n", 19) < 0);
	tls_free(c);
}

static void hashes(void)
{
	for (enum digest_kind kind = 0; kind < DIGEST_KINDS; kind++) {
		uint8_t hash[DIGEST_SIZE_MAX] = { 0 };
		struct digest *d = digest_new(kind);
		CHECK(d);
		digest_update(d, "abc", 3);
		digest_final(d, hash);
		CHECK(hash[0] | hash[1] | hash[2]);
		digest_free(d);
	}
}

static void all_keys(struct mint *mint)
{
	void *x, *key;
	for (enum mint_key kind = MINT_ECDSA; kind <= MINT_RSA; kind++)
		CHECK(mint_leaf(mint, "192.0.2.1", kind, &x, &key, NULL) == 0);
}

int main(void)
{
	struct err err = ERR_INIT;
	if (tls_prepare(&err) < 0)
		return err_print("test", &err), 1;
	struct tls_roots *host_roots = tls_roots_read(&err);
	if (!host_roots || prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0 || syscall_list_install(list, &err) < 0)
		return err_print("test", &err), 1;
	/* Everything from here on is confined. */
	struct mint *mint = mint_new("abcdefgh", &err), *stranger = mint_new("bcdefghi", &err);
	CHECK(mint && stranger);
	struct tls_roots *roots = tls_roots_with(host_roots, mint_ca_pem(mint), strlen(mint_ca_pem(mint)), &err);
	CHECK(roots);
	exchange(roots, mint, "a.example");
	exchange(roots, mint, "2001:db8::1");
	refused(roots, stranger);
	hashes();
	all_keys(mint);
	tls_roots_free(roots);
	tls_roots_free(host_roots);
	mint_free(mint);
	mint_free(stranger);
	CHECK(write(STDOUT_FILENO, "confined\n", 9) == 9);
	return 0;
}
