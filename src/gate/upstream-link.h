/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Between the halves of the gate: HTTP/2 (net/http.h, cleartext, prior knowledge) on an inherited stream socket pair; bulkhead-inspect is the client,
 * bulkhead-upstream the server. The front half writes every request anew from what it parsed and judged; the upstream half trusts none of it and judges again.
 *
 *   OPEN      :method BULKHEAD-OPEN, :scheme https|http, :authority HOST:PORT (IPv6 in brackets), :path /
 *             bulkhead-flow: ID      decimal, of the guest's connection
 *             bulkhead-alpn: LIST    what the guest could speak: "h2,http/1.1", "http/1.1", "h2"; "" with scheme http
 *             No END_STREAM: the stream stands for the flow and lives as long as it. Answer:
 *               200, bulkhead-alpn: "h2" or "http/1.1", bulkhead-address: IP      the server is connected and, with https, has proved its name
 *               502, bulkhead-reason: CODE, bulkhead-detail: sentence             (403 when it is a denial: a floor address, no rule, …)
 *             The front half resets it when the guest is gone; the upstream half ends it (END_STREAM) when the server is gone and nothing can be sent any more.
 *   request   an ordinary request with :scheme, :authority HOST:PORT exactly as in OPEN, and bulkhead-flow: ID. Extended CONNECT for WebSocket.
 *             Answer: the server's, scrubbed, without bulkhead-* fields of its own; or one made by the upstream half:
 *               bulkhead-reason: CODE [bulkhead-detail: sentence]   status 502 or 403, no body: the front half words the refusal.
 *             After the head, a failure resets the stream.
 * Fields named bulkhead-* from a guest or a server never pass either half.
 */
#pragma once

#define LINK_METHOD_OPEN "BULKHEAD-OPEN"
#define LINK_FIELD_FLOW "bulkhead-flow"
#define LINK_FIELD_ALPN "bulkhead-alpn"
#define LINK_FIELD_ADDRESS "bulkhead-address"
#define LINK_FIELD_REASON "bulkhead-reason"
#define LINK_FIELD_DETAIL "bulkhead-detail"
#define LINK_FIELD_PREFIX "bulkhead-"
#define LINK_STREAMS_MAX 20000u
