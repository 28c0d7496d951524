/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <linux/rtnetlink.h>
#include <net/if.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/mem.h"
#include "isolate/common/netns.h"
#include "wire/capture.h"

#define LOOPBACK_INDEX 1 /* the first interface of a fresh namespace, always */

int netns_loopback_up(struct err *err)
{
	cleanup_fd int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	struct ifreq request = { .ifr_name = "lo", .ifr_flags = IFF_UP | IFF_RUNNING };
	if (fd < 0 || ioctl(fd, SIOCSIFFLAGS, &request) < 0)
		return err_sys(err, errno, "can't bring up the box's loopback interface");
	return 0;
}

struct route_request {
	struct nlmsghdr head;
	struct rtmsg route;
	struct rtattr dst_head;
	uint8_t dst[16];
	struct rtattr dev_head;
	uint32_t dev;
};

static size_t fill_request(void *out, const struct ip *ip, unsigned prefix)
{
	unsigned size = ip->family == AF_INET ? 4 : 16;
	struct {
		struct nlmsghdr head;
		struct rtmsg route;
	} fixed = {
		.head = { .nlmsg_type = RTM_NEWROUTE, .nlmsg_flags = NLM_F_REQUEST | NLM_F_ACK | NLM_F_CREATE | NLM_F_REPLACE },
		.route = { .rtm_family = (unsigned char)ip->family,
			.rtm_dst_len = (unsigned char)prefix,
			.rtm_table = RT_TABLE_LOCAL,
			.rtm_protocol = RTPROT_BOOT,
			.rtm_type = RTN_LOCAL,
			.rtm_scope = ip->family == AF_INET ? RT_SCOPE_HOST : RT_SCOPE_UNIVERSE },
	};
	const struct rtattr dst = { .rta_len = (unsigned short)(sizeof(dst) + size), .rta_type = RTA_DST };
	const struct rtattr dev = { .rta_len = sizeof(dev) + sizeof(uint32_t), .rta_type = RTA_OIF };
	const uint32_t index = LOOPBACK_INDEX;
	uint8_t *p = out;
	fixed.head.nlmsg_len = (uint32_t)(sizeof(fixed) + dst.rta_len + dev.rta_len);
	memcpy(p, &fixed, sizeof(fixed));
	memcpy(p += sizeof(fixed), &dst, sizeof(dst));
	memcpy(p += sizeof(dst), ip->bytes, size);
	memcpy(p += size, &dev, sizeof(dev));
	memcpy(p += sizeof(dev), &index, sizeof(index));
	return fixed.head.nlmsg_len;
}

static int read_answer(int fd, const struct ip *ip, unsigned prefix, struct err *err)
{
	struct {
		struct nlmsghdr head;
		struct nlmsgerr body;
		uint8_t rest[256];
	} answer;
	char text[IP_TEXT_MAX];
	ssize_t n = recv(fd, &answer, sizeof(answer), 0);
	if (n < 0)
		return err_sys(err, errno, "no answer about a route of the box");
	if ((size_t)n < sizeof(answer.head) + sizeof(answer.body) || answer.head.nlmsg_type != NLMSG_ERROR)
		return err_set(err, ERR_PROTOCOL, "the kernel's answer about a route of the box can't be read");
	if (answer.body.error != 0)
		return err_sys(
			err, -answer.body.error, "can't add the local route %s/%u inside the box", ip_format(ip, text), prefix);
	return 0;
}

static int add_route(int fd, const struct ip *ip, unsigned prefix, struct err *err)
{
	uint8_t request[sizeof(struct route_request)];
	size_t len = fill_request(request, ip, prefix);
	if (send(fd, request, len, 0) < 0)
		return err_sys(err, errno, "can't ask for a route of the box");
	return read_answer(fd, ip, prefix, err);
}

static bool kernel_has_ipv6(void)
{
	return access("/proc/sys/net/ipv6", F_OK) == 0;
}

int netns_capture(const struct ip *literals, size_t n, struct err *err)
{
	struct ip v4, v6;
	bool with_v6 = kernel_has_ipv6();
	cleanup_fd int fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_ROUTE);
	if (fd < 0)
		return err_sys(err, errno, "can't open a netlink socket");
	if (ip_parse(CAPTURE_V4_NET, strlen(CAPTURE_V4_NET), &v4) < 0 ||
		ip_parse(CAPTURE_V6_NET, strlen(CAPTURE_V6_NET), &v6) < 0)
		return err_set(err, ERR_INVALID, "the capture ranges of this build don't parse");
	if (add_route(fd, &v4, CAPTURE_V4_PREFIX, err) < 0)
		return -1;
	if (with_v6 && add_route(fd, &v6, CAPTURE_V6_PREFIX, err) < 0)
		return -1;
	for (size_t i = 0; i < n; i++)
		if ((literals[i].family == AF_INET || with_v6) &&
			add_route(fd, &literals[i], literals[i].family == AF_INET ? 32 : 128, err) < 0)
			return -1;
	return 0;
}
