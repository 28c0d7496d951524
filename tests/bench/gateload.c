/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Load for tests/bench/gate: the same program in front of every proxy, in a box or outside. One line of figures on stdout.
 *
 *   gateload serve PORT                                    raw source: "N\n" in, N MiB out, one connection after the other (threads)
 *   gateload pull PROXY HOST PORT MIB                      MB/s of raw bytes
 *   gateload dial PROXY HOST PORT N                        connect, one byte there and back, close: p50 and p99 in us
 *   gateload get PROXY HOST PORT PATH CA CONNS N HEADER    N keep-alive GETs over TLS on each of CONNS connections: p50, p99, requests/s, MB/s
 * PROXY is IP:PORT (CONNECT is sent), or "-". CA is a file, or "-" for the system's.
 */
#include <arpa/inet.h>
#include <netdb.h>
#include <netinet/tcp.h>
#include <openssl/ssl.h>
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#define MIB (1024.0 * 1024.0)

static void die(const char *what)
{
	perror(what);
	exit(1);
}

static double now(void)
{
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static int connect_to(const char *host, const char *port)
{
	struct addrinfo hints = { .ai_socktype = SOCK_STREAM }, *found;
	int one = 1;
	if (getaddrinfo(host, port, &hints, &found) != 0)
		die("getaddrinfo");
	int fd = socket(found->ai_family, SOCK_STREAM, 0);
	if (fd < 0 || connect(fd, found->ai_addr, found->ai_addrlen) < 0)
		die("connect");
	freeaddrinfo(found);
	setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
	return fd;
}

static int reach(const char *proxy, const char *host, const char *port)
{
	char text[512], *colon;
	if (strcmp(proxy, "-") == 0)
		return connect_to(host, port);
	snprintf(text, sizeof(text), "%s", proxy);
	colon = strchr(text, ':');
	*colon = 0;
	int fd = connect_to(text, colon + 1);
	int n = snprintf(text, sizeof(text), "CONNECT %s:%s HTTP/1.1\r\nHost: %s:%s\r\n\r\n", host, port, host, port);
	if (write(fd, text, (size_t)n) != n)
		die("CONNECT");
	size_t got = 0;
	while (got < sizeof(text) - 1 && (got < 4 || memcmp(text + got - 4, "\r\n\r\n", 4) != 0)) {
		if (read(fd, text + got, 1) != 1)
			die("CONNECT's answer");
		got++;
	}
	text[got] = 0;
	if (!strstr(text, " 200 ")) {
		fprintf(stderr, "%s", text);
		exit(1);
	}
	return fd;
}

static void *source(void *arg)
{
	static char chunk[1 << 18];
	int fd = (int)(intptr_t)arg, one = 1;
	char line[32];
	setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
	ssize_t n = read(fd, line, sizeof(line) - 1);
	long long left = n > 0 ? (line[n] = 0, atoll(line)) << 20 : 0;
	if (n > 0 && left == 0)
		(void)!write(fd, "x", 1);
	while (left > 0) {
		n = write(fd, chunk, sizeof(chunk));
		if (n <= 0)
			break;
		left -= n;
	}
	shutdown(fd, SHUT_WR);
	while (read(fd, line, sizeof(line)) > 0)
		;
	close(fd);
	return NULL;
}

static int serve(const char *port)
{
	struct sockaddr_in sa = { .sin_family = AF_INET, .sin_port = htons((uint16_t)atoi(port)), .sin_addr = { htonl(INADDR_LOOPBACK) } };
	int fd = socket(AF_INET, SOCK_STREAM, 0), one = 1;
	setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one));
	if (bind(fd, (struct sockaddr *)&sa, sizeof(sa)) < 0 || listen(fd, 128) < 0)
		die("bind");
	for (;;) {
		pthread_t t;
		int c = accept(fd, NULL, NULL);
		if (c >= 0 && pthread_create(&t, NULL, source, (void *)(intptr_t)c) == 0)
			pthread_detach(t);
	}
}

static int pull(char **a)
{
	static char chunk[1 << 18];
	char line[32];
	double total = 0, begin;
	int fd = reach(a[0], a[1], a[2]), n = snprintf(line, sizeof(line), "%s\n", a[3]);
	begin = now();
	if (write(fd, line, (size_t)n) != n)
		die("write");
	for (ssize_t got; (got = read(fd, chunk, sizeof(chunk))) > 0;)
		total += (double)got;
	printf("{\"mb_s\": %.0f, \"mib\": %.0f}\n", total / 1e6 / (now() - begin), total / MIB);
	return total / MIB == atof(a[3]) ? 0 : 1;
}

static int compare(const void *a, const void *b) { return (*(const double *)a > *(const double *)b) - (*(const double *)a < *(const double *)b); }

static int dial(char **a)
{
	int n = atoi(a[3]);
	double *took = calloc((size_t)n, sizeof(*took));
	char c;
	for (int i = 0; i < n; i++) {
		double begin = now();
		int fd = reach(a[0], a[1], a[2]);
		if (write(fd, "0\n", 2) != 2 || read(fd, &c, 1) != 1)
			die("one byte");
		took[i] = now() - begin;
		close(fd);
	}
	qsort(took, (size_t)n, sizeof(*took), compare);
	printf("{\"p50_us\": %.0f, \"p99_us\": %.0f}\n", took[n / 2] * 1e6, took[n * 99 / 100] * 1e6);
	return 0;
}

struct worker {
	char **args;
	SSL_CTX *ctx;
	pthread_t thread;
	int n;
	double *took, bytes;
};

/* One answer with a Content-Length; returns its body's length. */
static double answer(SSL *ssl)
{
	static __thread char buf[1 << 17];
	size_t got = 0;
	char *end = NULL;
	while (!end) {
		int n = SSL_read(ssl, buf + got, (int)(sizeof(buf) - 1 - got));
		if (n <= 0)
			die("an answer's head");
		got += (size_t)n;
		buf[got] = 0;
		end = strstr(buf, "\r\n\r\n");
	}
	char *length = strcasestr(buf, "\ncontent-length:");
	if (strncmp(buf, "HTTP/1.1 200", 12) != 0 || !length) {
		fprintf(stderr, "%.600s\n", buf);
		exit(1);
	}
	double body = atof(length + 16), have = (double)(got - (size_t)(end + 4 - buf));
	while (have < body) {
		int n = SSL_read(ssl, buf, sizeof(buf));
		if (n <= 0)
			die("a body");
		have += n;
	}
	return body;
}

static void *work(void *arg)
{
	struct worker *w = arg;
	char **a = w->args, request[2048];
	int fd = reach(a[0], a[1], a[2]);
	SSL *ssl = SSL_new(w->ctx);
	SSL_set_fd(ssl, fd);
	SSL_set_tlsext_host_name(ssl, a[1]);
	SSL_set1_host(ssl, a[1]);
	if (SSL_connect(ssl) != 1)
		die("TLS handshake");
	int n = snprintf(request, sizeof(request), "GET %s HTTP/1.1\r\nHost: %s:%s\r\n%s%s\r\n", a[3], a[1], a[2], a[7], a[7][0] ? "\r\n" : "");
	for (int i = 0; i < w->n; i++) {
		double begin = now();
		if (SSL_write(ssl, request, n) != n)
			die("a request");
		w->bytes += answer(ssl);
		w->took[i] = now() - begin;
	}
	SSL_free(ssl);
	close(fd);
	return NULL;
}

static int get(char **a)
{
	int conns = atoi(a[5]), n = atoi(a[6]);
	SSL_CTX *ctx = SSL_CTX_new(TLS_client_method());
	SSL_CTX_set_verify(ctx, SSL_VERIFY_PEER, NULL);
	if (strcmp(a[4], "-") == 0 ? SSL_CTX_set_default_verify_paths(ctx) != 1 : SSL_CTX_load_verify_locations(ctx, a[4], NULL) != 1)
		die("certificates");
	struct worker *w = calloc((size_t)conns, sizeof(*w));
	double *all = calloc((size_t)conns * (size_t)n, sizeof(*all)), bytes = 0, begin = now();
	for (int i = 0; i < conns; i++) {
		w[i] = (struct worker){ .args = a, .ctx = ctx, .n = n, .took = all + (size_t)i * (size_t)n };
		pthread_create(&w[i].thread, NULL, work, &w[i]);
	}
	for (int i = 0; i < conns; i++) {
		pthread_join(w[i].thread, NULL);
		bytes += w[i].bytes;
	}
	double took = now() - begin;
	int total = conns * n;
	qsort(all, (size_t)total, sizeof(*all), compare);
	printf("{\"p50_us\": %.0f, \"p99_us\": %.0f, \"rps\": %.0f, \"mb_s\": %.0f}\n", all[total / 2] * 1e6, all[total * 99 / 100] * 1e6, total / took, bytes / 1e6 / took);
	return 0;
}

int main(int argc, char **argv)
{
	signal(SIGPIPE, SIG_IGN);
	if (argc == 3 && strcmp(argv[1], "serve") == 0)
		return serve(argv[2]);
	if (argc == 6 && strcmp(argv[1], "pull") == 0)
		return pull(argv + 2);
	if (argc == 6 && strcmp(argv[1], "dial") == 0)
		return dial(argv + 2);
	if (argc == 10 && strcmp(argv[1], "get") == 0)
		return get(argv + 2);
	fprintf(stderr, "see the head of gateload.c\n");
	return 2;
}
