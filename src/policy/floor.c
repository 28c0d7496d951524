/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Addresses that no name may lead to. Two tables, first match wins, then the IPv4 address that an IPv6 one carries is judged
 * too, and the worse of the two counts. What lies outside the global unicast block 2000::/3 and is not listed is reserved:
 * new blocks are refused until someone has thought about them.
 */
#include "policy/floor.h"

#include <string.h>

#include "base/mem.h"
#include "policy/policy.h"

struct block {
	uint8_t prefix[16];
	uint8_t bits;
	enum reason reason;
	bool liftable;
};

#define FIXED false
#define LIFT true

static const struct block blocks4[] = {
	/* metadata services: they give credentials to whoever can reach them */
	{ { 169, 254, 169, 254 }, 32, REASON_ADDRESS_METADATA, LIFT }, /* AWS, Azure, Google, OpenStack, … */
	{ { 169, 254, 170, 2 }, 32, REASON_ADDRESS_METADATA, LIFT },   /* AWS ECS task credentials */
	{ { 169, 254, 170, 23 }, 32, REASON_ADDRESS_METADATA, LIFT },  /* AWS EKS pod identity */
	{ { 169, 254, 0, 23 }, 32, REASON_ADDRESS_METADATA, LIFT },    /* Tencent */
	{ { 169, 254, 42, 42 }, 32, REASON_ADDRESS_METADATA, LIFT },   /* Scaleway */
	{ { 100, 100, 100, 200 }, 32, REASON_ADDRESS_METADATA, LIFT }, /* Alibaba */
	{ { 168, 63, 129, 16 }, 32, REASON_ADDRESS_METADATA, LIFT },   /* Azure's wire server, a public-looking address */
	{ { 192, 0, 0, 192 }, 32, REASON_ADDRESS_METADATA, LIFT },     /* Oracle */
	{ { 127 }, 8, REASON_ADDRESS_LOOPBACK, LIFT },
	{ { 0 }, 8, REASON_ADDRESS_LOOPBACK, FIXED },                  /* Linux connects 0.0.0.0 to loopback */
	{ { 10 }, 8, REASON_ADDRESS_PRIVATE, LIFT },
	{ { 172, 16 }, 12, REASON_ADDRESS_PRIVATE, LIFT },
	{ { 192, 168 }, 16, REASON_ADDRESS_PRIVATE, LIFT },
	{ { 100, 64 }, 10, REASON_ADDRESS_PRIVATE, LIFT },             /* carrier NAT, tailnets */
	{ { 169, 254 }, 16, REASON_ADDRESS_LINK_LOCAL, LIFT },
	{ { 224 }, 4, REASON_ADDRESS_MULTICAST, FIXED },
	{ { 192, 0, 0 }, 24, REASON_ADDRESS_RESERVED, FIXED },         /* protocol assignments */
	{ { 192, 0, 2 }, 24, REASON_ADDRESS_RESERVED, LIFT },          /* documentation */
	{ { 198, 51, 100 }, 24, REASON_ADDRESS_RESERVED, LIFT },
	{ { 203, 0, 113 }, 24, REASON_ADDRESS_RESERVED, LIFT },
	{ { 198, 18 }, 15, REASON_ADDRESS_RESERVED, LIFT },            /* benchmarking */
	{ { 192, 88, 99 }, 24, REASON_ADDRESS_RESERVED, FIXED },       /* 6to4 relays */
	{ { 240 }, 4, REASON_ADDRESS_RESERVED, FIXED },                /* future use, broadcast */
};

static const struct block blocks6[] = {
	{ { 0xfd, 0, 0x0e, 0xc2, [14] = 0x02, [15] = 0x54 }, 128, REASON_ADDRESS_METADATA, LIFT }, /* fd00:ec2::254, AWS */
	{ { 0xfd, 0, 0x0e, 0xc2, [15] = 0x23 }, 128, REASON_ADDRESS_METADATA, LIFT }, /* fd00:ec2::23, AWS EKS pods */
	{ { 0xfd, 0x20, 0, 0xce, [14] = 0x02, [15] = 0x54 }, 128, REASON_ADDRESS_METADATA, LIFT }, /* fd20:ce::254, Google */
	{ { 0xfd, 0, 0, 0x42, [15] = 0x42 }, 128, REASON_ADDRESS_METADATA, LIFT },		   /* fd00:42::42, Scaleway */
	{ { 0xfe, 0x80, [12] = 0xa9, 0xfe, 0xa9, 0xfe }, 128, REASON_ADDRESS_METADATA, LIFT }, /* fe80::a9fe:a9fe, OpenStack */
	{ { [15] = 1 }, 128, REASON_ADDRESS_LOOPBACK, LIFT }, { { 0xfc }, 7, REASON_ADDRESS_PRIVATE, LIFT },
	{ { 0xfe, 0xc0 }, 10, REASON_ADDRESS_PRIVATE, FIXED }, /* site-local: abolished, meaning unknown */
	{ { 0xfe, 0x80 }, 10, REASON_ADDRESS_LINK_LOCAL, LIFT }, { { 0xff }, 8, REASON_ADDRESS_MULTICAST, FIXED },
	{ { 0x00, 0x64, 0xff, 0x9b }, 96, REASON_NONE, LIFT },		   /* NAT64: judged by what it carries */
	{ { 0x20, 0x01, 0x00, 0x02 }, 48, REASON_ADDRESS_RESERVED, LIFT }, /* benchmarking */
	{ { 0x20, 0x01, 0x0d, 0xb8 }, 32, REASON_ADDRESS_RESERVED, LIFT }, /* documentation */
	{ { 0x3f, 0xff }, 20, REASON_ADDRESS_RESERVED, LIFT },		   /* documentation */
	{ { 0x20, 0x01, 0x00 }, 23, REASON_ADDRESS_RESERVED, FIXED },	   /* protocol assignments: Teredo, ORCHID, … */
	{ { 0x20, 0x02 }, 16, REASON_ADDRESS_RESERVED, FIXED },		   /* 6to4 */
	{ { 0x20 }, 3, REASON_NONE, LIFT },				   /* global unicast */
	{ { 0 }, 0, REASON_ADDRESS_RESERVED, FIXED },			   /* all the rest, :: and ::/96 included */
};

static bool block_holds(const struct block *b, const uint8_t *bytes)
{
	unsigned whole = b->bits / 8, rest = b->bits % 8;
	if (memcmp(b->prefix, bytes, whole) != 0)
		return false;
	return rest == 0 || ((b->prefix[whole] ^ bytes[whole]) & (0xff << (8 - rest)) & 0xff) == 0;
}

static struct floor_verdict search(const struct block *blocks, size_t n, const uint8_t *bytes)
{
	for (size_t i = 0; i < n; i++)
		if (block_holds(&blocks[i], bytes))
			return (struct floor_verdict){ blocks[i].reason, blocks[i].liftable };
	return (struct floor_verdict){ REASON_NONE, true };
}

struct ip ip_unmap(const struct ip *ip)
{
	static const uint8_t mapped[12] = { [10] = 0xff, [11] = 0xff };
	if (ip->family != AF_INET6 || memcmp(ip->bytes, mapped, sizeof(mapped)) != 0)
		return *ip;
	struct ip v4 = { .family = AF_INET };
	memcpy(v4.bytes, ip->bytes + 12, 4);
	return v4;
}

/* How bad it is to reach the kind of address by mistake. */
static unsigned severity(enum reason reason)
{
	static const enum reason order[] = { REASON_NONE, REASON_ADDRESS_RESERVED, REASON_ADDRESS_MULTICAST,
		REASON_ADDRESS_PRIVATE, REASON_ADDRESS_LINK_LOCAL, REASON_ADDRESS_LOOPBACK, REASON_ADDRESS_METADATA };
	unsigned i = 0;
	while (i < ARRAY_LEN(order) - 1 && order[i] != reason)
		i++;
	return i;
}

static bool is_nat64(const struct ip *ip)
{
	static const uint8_t prefix[12] = { 0x00, 0x64, 0xff, 0x9b };
	return memcmp(ip->bytes, prefix, sizeof(prefix)) == 0;
}

static struct floor_verdict judge6(const struct ip *ip)
{
	struct floor_verdict v = search(blocks6, ARRAY_LEN(blocks6), ip->bytes);
	struct ip inner;
	if (!ip_embedded_v4(ip, &inner))
		return v;
	struct floor_verdict in = search(blocks4, ARRAY_LEN(blocks4), inner.bytes);
	/* Every carrier but NAT64 is a tunnel out of the checked path: a router may unwrap it towards somewhere else. */
	if (!is_nat64(ip)) {
		v.liftable = false;
		if (v.reason == REASON_NONE)
			v.reason = REASON_ADDRESS_RESERVED;
	}
	if (severity(in.reason) > severity(v.reason))
		v.reason = in.reason;
	v.liftable = v.liftable && in.liftable;
	return v;
}

struct floor_verdict floor_judge(const struct ip *ip)
{
	struct ip plain = ip_unmap(ip);
	if (plain.family == AF_INET)
		return search(blocks4, ARRAY_LEN(blocks4), plain.bytes);
	if (plain.family == AF_INET6)
		return judge6(&plain);
	return (struct floor_verdict){ REASON_ADDRESS_RESERVED, false };
}

enum reason floor_classify(const struct ip *ip)
{
	return floor_judge(ip).reason;
}
