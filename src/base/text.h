/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Numbers, sizes, durations and times as people write them, parsed strictly: the whole string or nothing.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <time.h>

/* 0 or -1. Decimal digits only, no sign, no space, no overflow; value in [min, max]. */
int text_parse_u64(const char *s, uint64_t min, uint64_t max, uint64_t *ret);

/* "64", "64B", "10KiB", "1.5GiB", "512MiB", "1TiB"; also K, M, G, T and KB, MB, GB (all taken as powers of 1024 except the
 * …B decimal forms KB/MB/GB/TB, powers of 1000). At most three decimals. 0 or -1. */
int text_parse_size(const char *s, uint64_t *ret_bytes);
/* "250ms", "15m", "1h30m", "2d", "90s"; a bare number is an error (say the unit). Result in nanoseconds, > 0. 0 or -1. */
int text_parse_duration(const char *s, uint64_t *ret_ns);

#define TEXT_SIZE_MAX 32
/* "512 MiB", "17 B", "1.5 GiB" */
const char *text_format_size(uint64_t bytes, char out[TEXT_SIZE_MAX]);
/* "4.2 ms", "1.50 s", "15 min" */
const char *text_format_duration(uint64_t ns, char out[TEXT_SIZE_MAX]);
/* RFC 3339 in UTC with nanoseconds: 2026-11-30T19:10:16.123456789Z */
const char *text_format_time(uint64_t realtime_ns, char out[TEXT_SIZE_MAX]);

uint64_t time_realtime_ns(void);
uint64_t time_monotonic_ns(void);

#define NS_PER_MS 1000000ULL
#define NS_PER_S 1000000000ULL

/* Bytes that could confuse a terminal or a log line (controls, DEL, invalid UTF-8, bidi overrides, invisible characters, and
 * the backslash itself, so that the result is unambiguous) are written as \xNN.
 * Always terminates; cuts at out_len. Returns out. */
const char *text_escape(const void *data, size_t len, char *out, size_t out_len);
/* Lower-case hex; out holds 2*len+1. */
void text_hex(const void *data, size_t len, char *out);
int text_unhex(const char *s, void *out, size_t out_len); /* exactly out_len bytes; 0 or -1 */
bool text_is_utf8(const void *data, size_t len);

/* Standard base64 (RFC 4648 section 4, padded). Encoded length is 4*ceil(len/3), plus a NUL. */
size_t text_base64_len(size_t len);
void text_base64(const void *data, size_t len, char *out);
