/* SPDX-License-Identifier: Apache-2.0 */
#include "gate/proxy.h"

#include "gate/inspect.h"
#include "gate/verdict.h"

static enum proxy_result refuse(struct proxy_head *out, enum reason reason)
{
	out->reason = reason;
	return PROXY_REFUSE;
}

static enum proxy_result judge_connect(const struct http1_request *r, struct proxy_head *out)
{
	/* Without a port there is nothing to judge; a body would be a second request to somebody. */
	enum reason reason = target_from_authority(r->authority.p, r->authority.len, 0, &out->target);
	if (reason == REASON_NONE && (r->framing == HTTP1_CHUNKED || r->length > 0))
		reason = REASON_PROXY_MALFORMED;
	/* Some clients send no Host with CONNECT; one that is sent must agree. */
	if (reason == REASON_NONE && r->has_host && !target_matches_authority(&out->target, r->host.p, r->host.len))
		reason = REASON_HTTP_HOST_MISMATCH;
	return reason == REASON_NONE ? PROXY_CONNECT : refuse(out, reason);
}

static enum proxy_result judge_forward(const struct http1_request *r, struct proxy_head *out)
{
	enum reason reason = target_from_authority(r->authority.p, r->authority.len, INSPECT_PORT_HTTP, &out->target);
	if (reason == REASON_NONE)
		reason = verdict_request(&out->target, r);
	return reason == REASON_NONE ? PROXY_FORWARD : refuse(out, reason);
}

enum proxy_result proxy_head_parse(const void *data, size_t len, bool eof, struct proxy_head *ret)
{
	struct proxy_head out = { 0 };
	int found = http1_head_find(data, len, 0, &out.head_len);
	enum proxy_result result = PROXY_MORE;
	struct http1_request r;
	enum http1_fault fault;
	if (found < 0 || (found == 0 && eof))
		result = refuse(&out, REASON_PROXY_MALFORMED);
	else if (found == 1 && http1_request_parse(data, out.head_len, &r, &fault, NULL) < 0)
		result = refuse(&out, fault == HTTP1_FAULT_VERSION ? REASON_HTTP_VERSION : REASON_PROXY_MALFORMED);
	else if (found == 1 && r.form == HTTP1_AUTHORITY)
		result = judge_connect(&r, &out);
	else if (found == 1 && r.form == HTTP1_ABSOLUTE)
		result = judge_forward(&r, &out);
	else if (found == 1)
		result = refuse(&out, REASON_PROXY_MALFORMED);
	*ret = out;
	return result;
}
