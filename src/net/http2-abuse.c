/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Frames that cost the receiver work and bring nothing: resets, pings, settings, priorities, window updates, empty data. Each
 * window of time grants a basic allowance, and content that crosses earns more (clients measure and acknowledge as they
 * transfer).
 */
#include "net/http2-conn.h"

#include "base/text.h"

#define WINDOW_NS (10 * NS_PER_S)
#define CONTROL_BASE 1000u
#define BYTES_PER_CONTROL 512u

static void roll(struct http2_abuse *a, uint64_t now)
{
	if (a->since_ns && now - a->since_ns < WINDOW_NS)
		return;
	*a = (struct http2_abuse){ .since_ns = now ? now : 1 };
}

bool http2_abuse_reset(struct http2_abuse *a, uint64_t now, uint64_t max)
{
	roll(a, now);
	return ++a->resets <= max;
}

bool http2_abuse_control(struct http2_abuse *a, uint64_t now)
{
	roll(a, now);
	return ++a->control <= CONTROL_BASE + a->useful / BYTES_PER_CONTROL;
}

void http2_abuse_useful(struct http2_abuse *a, size_t bytes)
{
	a->useful += bytes;
}
