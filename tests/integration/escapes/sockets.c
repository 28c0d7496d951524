/* SPDX-License-Identifier: Apache-2.0 */
/* Sockets: families and types that aren't for a box, and what of the host can be reached with those that are. */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <ifaddrs.h>
#include <linux/netlink.h>
#include <linux/rtnetlink.h>
#include <linux/sockios.h>
#include <net/if.h>
#include <netinet/in.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/ipc.h>
#include <sys/shm.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <unistd.h>

#include "probe.h"

#define HIGH_BIT (1L << 32)
#define SOCKET(name, family, type, protocol) { name, "socket", "EPERM", NULL, SYS_socket, { family, type, protocol } }

static int pair[2];

/* Not more than 16 of one call in a group: what comes after is counted on the record, without names. */
static const struct attempt type_rows[] = {
	SOCKET("raw-icmp", AF_INET, SOCK_RAW, IPPROTO_ICMP),
	SOCKET("raw-tcp", AF_INET, SOCK_RAW, IPPROTO_TCP),
	SOCKET("raw-ip", AF_INET, SOCK_RAW, IPPROTO_RAW),
	SOCKET("raw-icmp6", AF_INET6, SOCK_RAW, IPPROTO_ICMPV6),
	SOCKET("ping", AF_INET, SOCK_DGRAM, IPPROTO_ICMP),
	SOCKET("ping6", AF_INET6, SOCK_DGRAM, IPPROTO_ICMPV6),
	SOCKET("raw-flags", AF_INET, SOCK_RAW | SOCK_CLOEXEC | SOCK_NONBLOCK, IPPROTO_ICMP),
	SOCKET("sctp", AF_INET, SOCK_STREAM, IPPROTO_SCTP),
	SOCKET("dccp", AF_INET, SOCK_DCCP, IPPROTO_DCCP),
	SOCKET("udplite", AF_INET, SOCK_DGRAM, IPPROTO_UDPLITE),
	SOCKET("packet", AF_PACKET, SOCK_RAW, 0x0300),
	SOCKET("packet-dgram", AF_PACKET, SOCK_DGRAM, 0x0300),
	SOCKET("packet-highbit", HIGH_BIT | AF_PACKET, HIGH_BIT | SOCK_RAW, 0x0300),
	{ "mptcp", NULL, "EPROTONOSUPPORT", NULL, SYS_socket, { AF_INET, SOCK_STREAM, 262 } },
	{ "socketpair-tipc", "socketpair", "EPERM", NULL, SYS_socketpair, { AF_TIPC, SOCK_STREAM, 0, (long)pair } },
	{ "socketpair-inet", "socketpair", "EPERM", NULL, SYS_socketpair, { AF_INET, SOCK_STREAM, 0, (long)pair } },
};
ATTEMPT_GROUP(socket_attempts, "sockets", type_rows);

static const struct attempt family_rows[] = {
	SOCKET("netlink-audit", AF_NETLINK, SOCK_RAW, NETLINK_AUDIT),
	SOCKET("netlink-uevent", AF_NETLINK, SOCK_RAW, NETLINK_KOBJECT_UEVENT),
	SOCKET("netlink-generic", AF_NETLINK, SOCK_RAW, NETLINK_GENERIC),
	SOCKET("netlink-filter", AF_NETLINK, SOCK_RAW, NETLINK_NETFILTER),
	SOCKET("netlink-xfrm", AF_NETLINK, SOCK_RAW, NETLINK_XFRM),
	SOCKET("netlink-diag", AF_NETLINK, SOCK_RAW, NETLINK_SOCK_DIAG),
	SOCKET("vsock", AF_VSOCK, SOCK_STREAM, 0),
	SOCKET("alg", AF_ALG, SOCK_SEQPACKET, 0),
	SOCKET("xdp", AF_XDP, SOCK_RAW, 0),
	SOCKET("key", AF_KEY, SOCK_RAW, 2),
	SOCKET("bluetooth", AF_BLUETOOTH, SOCK_RAW, 1),
	SOCKET("can", AF_CAN, SOCK_RAW, 1),
	SOCKET("tipc", AF_TIPC, SOCK_RDM, 0),
	SOCKET("rds", AF_RDS, SOCK_SEQPACKET, 0),
	SOCKET("smc", AF_SMC, SOCK_STREAM, 0),
	SOCKET("kcm", AF_KCM, SOCK_DGRAM, 0),
};
ATTEMPT_GROUP(family_attempts, "families", family_rows);

/* ---- reaching the host ---- */

static void connect_to(int family, const char *host, long port, int type)
{
	struct sockaddr_in v4 = { .sin_family = AF_INET, .sin_port = htons((uint16_t)port) };
	struct sockaddr_in6 v6 = { .sin6_family = AF_INET6, .sin6_port = htons((uint16_t)port) };
	int fd = socket(family, type, 0);
	if (fd < 0)
		broken("no socket of family %d", family);
	if (inet_pton(family, host, family == AF_INET ? (void *)&v4.sin_addr : (void *)&v6.sin6_addr) != 1)
		broken("%s isn't an address", host);
	int r = family == AF_INET ? connect(fd, (struct sockaddr *)&v4, sizeof(v4)) : connect(fd, (struct sockaddr *)&v6, sizeof(v6));
	if (r == 0 && type == SOCK_DGRAM)
		r = (int)send(fd, "escape", 6, 0);
	conclude(r, host);
}

static void host_loopback(void) { connect_to(AF_INET, "127.0.0.1", number_argument("port"), SOCK_STREAM); }
static void host_loopback_2(void) { connect_to(AF_INET, "127.0.0.2", number_argument("port"), SOCK_STREAM); }
static void host_any(void) { connect_to(AF_INET, "0.0.0.0", number_argument("port"), SOCK_STREAM); }
static void host_loopback_6(void) { connect_to(AF_INET6, "::1", number_argument("port"), SOCK_STREAM); }
static void host_mapped(void) { connect_to(AF_INET6, "::ffff:127.0.0.1", number_argument("port"), SOCK_STREAM); }
static void host_address(void) { connect_to(AF_INET, argument("address"), number_argument("port"), SOCK_STREAM); }
static void metadata(void) { connect_to(AF_INET, "169.254.169.254", 80, SOCK_STREAM); }
static void metadata_6(void) { connect_to(AF_INET6, "fd00:ec2::254", 80, SOCK_STREAM); }
static void udp_out(void) { connect_to(AF_INET, "192.0.2.1", 53, SOCK_DGRAM); }
static void quic_out(void) { connect_to(AF_INET, "192.0.2.1", 443, SOCK_DGRAM); }

static void multicast_out(void)
{
	struct sockaddr_in to = { .sin_family = AF_INET, .sin_port = htons(5353), .sin_addr.s_addr = htonl(0xe00000fb) };
	int fd = socket(AF_INET, SOCK_DGRAM, 0);
	conclude(sendto(fd, "x", 1, 0, (struct sockaddr *)&to, sizeof(to)), "a multicast datagram");
}

static void connect_unix(const char *path, size_t len)
{
	struct sockaddr_un to = { .sun_family = AF_UNIX };
	if (len > sizeof(to.sun_path))
		broken("the path is too long");
	memcpy(to.sun_path, path, len);
	int fd = socket(AF_UNIX, SOCK_STREAM, 0);
	if (fd < 0)
		broken("no local socket");
	conclude(connect(fd, (struct sockaddr *)&to, (socklen_t)(offsetof(struct sockaddr_un, sun_path) + len)), "a socket of the host");
}
static void connect_path(const char *path) { connect_unix(path, strlen(path) + 1); }

static void abstract(void)
{
	char name[108] = "";
	int n = snprintf(name + 1, sizeof(name) - 1, "%s", argument("abstract"));
	connect_unix(name, (size_t)n + 1);
}
static void host_socket(void) { connect_path(argument("socket")); }
static void planted_socket(void) { connect_path("/workspace/host.sock"); }
static void docker(void) { connect_path("/var/run/docker.sock"); }
static void system_bus(void) { connect_path("/run/dbus/system_bus_socket"); }
static void systemd(void) { connect_path("/run/systemd/private"); }
static void session_bus(void) { connect_path("/run/user/1000/bus"); }
static void x11(void) { connect_path("/tmp/.X11-unix/X0"); }

/* A pipe that lies in the original folder: its reader outside must not be at the other end. */
static void planted_fifo(void)
{
	int fd = open("/workspace/host.fifo", O_WRONLY | O_NONBLOCK);
	if (fd < 0)
		refused(errno);
	conclude(write(fd, "escape\n", 7), "a pipe of the host");
}

static void other_interfaces(void)
{
	struct ifaddrs *list = NULL;
	if (getifaddrs(&list) < 0)
		broken("getifaddrs: %s", strerror(errno));
	for (struct ifaddrs *i = list; i; i = i->ifa_next)
		if (strcmp(i->ifa_name, "lo") != 0 && (i->ifa_flags & IFF_UP))
			succeeded("interface %s is up", i->ifa_name);
	refused_by("only lo");
}

static void change_route(void)
{
	struct { struct nlmsghdr head; struct rtmsg route; } ask = {
		.head = { .nlmsg_len = sizeof(ask), .nlmsg_type = RTM_NEWROUTE, .nlmsg_flags = NLM_F_REQUEST | NLM_F_ACK | NLM_F_CREATE },
		.route = { .rtm_family = AF_INET, .rtm_table = RT_TABLE_MAIN, .rtm_type = RTN_BLACKHOLE },
	};
	struct { struct nlmsghdr head; struct nlmsgerr body; char rest[256]; } answer;
	int fd = socket(AF_NETLINK, SOCK_RAW, NETLINK_ROUTE);
	if (fd < 0 || send(fd, &ask, sizeof(ask), 0) < 0 || recv(fd, &answer, sizeof(answer), 0) < (ssize_t)sizeof(answer.head))
		broken("no answer about a route");
	errno = -answer.body.error;
	conclude(answer.body.error ? -1 : 0, "a route was added");
}

static void interface_down(void)
{
	struct ifreq request = { .ifr_name = "lo" };
	int fd = socket(AF_INET, SOCK_DGRAM, 0);
	conclude(ioctl(fd, SIOCSIFFLAGS, &request), "the loopback interface was switched off");
}

static void packet_filter(void)
{
	char table[256] = "filter";
	int fd = socket(AF_INET, SOCK_DGRAM, 0);
	conclude(setsockopt(fd, IPPROTO_IP, 64, table, sizeof(table)), "the packet filter was replaced");
}

static void bridge(void)
{
	int fd = socket(AF_INET, SOCK_DGRAM, 0);
	conclude(ioctl(fd, SIOCBRADDBR, "escape"), "a bridge was made");
}

static void host_memory(void) { conclude(shmget((key_t)number_argument("key"), 0, 0), "shared memory of the host"); }

static void host_name(void)
{
	char name[256] = "";
	gethostname(name, sizeof(name) - 1);
	if (strcmp(name, argument("hostname")) == 0)
		succeeded("the host's name is %s", name);
	refused_by("a name of its own");
}

static const struct attempt reach_rows[] = {
	{ "host-loopback", NULL, "ECONNREFUSED", host_loopback },
	{ "host-127.0.0.2", NULL, "ECONNREFUSED", host_loopback_2 },
	{ "host-0.0.0.0", NULL, "ECONNREFUSED", host_any },
	{ "host-ip6-lo", NULL, "ECONNREFUSED", host_loopback_6 },
	{ "host-mapped", NULL, "ECONNREFUSED", host_mapped },
	{ "host-address", NULL, "ENETUNREACH", host_address },
	{ "metadata", NULL, "ENETUNREACH", metadata },
	{ "metadata-ip6", NULL, "ENETUNREACH", metadata_6 },
	{ "udp-out", NULL, "ENETUNREACH", udp_out },
	{ "quic-out", NULL, "ENETUNREACH", quic_out },
	{ "multicast-out", NULL, "ENETUNREACH", multicast_out },
	{ "abstract-socket", NULL, "ECONNREFUSED", abstract },
	{ "host-socket", NULL, "ENOENT", host_socket },
	/* ENOENT: where the folder had to be copied whole, they aren't even seen */
	{ "planted-socket", NULL, "ECONNREFUSED|ENOENT", planted_socket },
	{ "planted-fifo", NULL, "ENXIO|ENOENT", planted_fifo },
	{ "docker-socket", NULL, "ENOENT", docker },
	{ "system-bus", NULL, "ENOENT", system_bus },
	{ "systemd-private", NULL, "ENOENT", systemd },
	{ "session-bus", NULL, "ENOENT", session_bus },
	{ "x11-socket", NULL, "ENOENT", x11 },
	{ "interfaces", NULL, "ok", other_interfaces },
	{ "add-route", NULL, "EPERM", change_route },
	{ "interface-down", NULL, "EPERM", interface_down },
	{ "packet-filter", NULL, "EPERM|ENOPROTOOPT", packet_filter },
	{ "bridge", NULL, "EPERM|ENOPKG|ENOTTY", bridge },
	{ "host-sysv-shm", NULL, "ENOENT", host_memory },
	{ "host-name", NULL, "ok", host_name },
};
ATTEMPT_GROUP(reach_attempts, "reach", reach_rows);
