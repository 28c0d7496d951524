/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The synthetic addresses that names get inside a box. The launcher makes both nets local to the box's loopback (`ip route add
 * local … dev lo`); the agent gives out addresses of them and listens on these. Neither net is routed anywhere: 198.18.0.0/15
 * is for benchmarks (RFC 2544), fd00::/8 is for private use with a made-up global id (RFC 4193).
 */
#pragma once

#define CAPTURE_V4_NET "198.18.0.0"
#define CAPTURE_V4_PREFIX 15
#define CAPTURE_V4_NET_NUMBER 0xc6120000u /* host order */

#define CAPTURE_V6_NET "fd00:b011:4ead::"
#define CAPTURE_V6_PREFIX 48
#define CAPTURE_V6_NET_BYTES { 0xfd, 0x00, 0xb0, 0x11, 0x4e, 0xad } /* the first 6; the rest is zero */
