/* SPDX-License-Identifier: Apache-2.0 */
#include "base/text.h"

#include <stdio.h>
#include <string.h>

#include "base/mem.h"

static bool is_digit(char c)
{
	return c >= '0' && c <= '9';
}

/* Reads decimal digits; moves *ps behind them. -1 when there are none or the value overflows. */
static int read_digits(const char **ps, uint64_t *ret)
{
	const char *s = *ps;
	if (!is_digit(*s))
		return -1;
	uint64_t v = 0;
	for (; is_digit(*s); s++)
		if (__builtin_mul_overflow(v, 10u, &v) || __builtin_add_overflow(v, (uint64_t)(*s - '0'), &v))
			return -1;
	*ps = s;
	*ret = v;
	return 0;
}

int text_parse_u64(const char *s, uint64_t min, uint64_t max, uint64_t *ret)
{
	uint64_t v;
	if (read_digits(&s, &v) < 0 || *s != '\0' || v < min || v > max)
		return -1;
	*ret = v;
	return 0;
}

struct unit { const char *name; uint64_t factor; };

static const struct unit size_units[] = {
	{ "", 1 }, { "B", 1 },
	{ "K", 1ULL << 10 }, { "KiB", 1ULL << 10 }, { "KB", 1000ULL },
	{ "M", 1ULL << 20 }, { "MiB", 1ULL << 20 }, { "MB", 1000ULL * 1000 },
	{ "G", 1ULL << 30 }, { "GiB", 1ULL << 30 }, { "GB", 1000ULL * 1000 * 1000 },
	{ "T", 1ULL << 40 }, { "TiB", 1ULL << 40 }, { "TB", 1000ULL * 1000 * 1000 * 1000 },
};

/* The part after the point, in thousandths; 0 without a point. */
static int read_thousandths(const char **ps, unsigned *ret)
{
	*ret = 0;
	if (**ps != '.')
		return 0;
	const char *s = *ps + 1;
	unsigned scale = 1000;
	for (; is_digit(*s) && scale > 1; s++) {
		scale /= 10;
		*ret += (unsigned)(*s - '0') * scale;
	}
	if (scale == 1000 || is_digit(*s))
		return -1;
	*ps = s;
	return 0;
}

int text_parse_size(const char *s, uint64_t *ret_bytes)
{
	uint64_t whole;
	unsigned thousandths;
	if (read_digits(&s, &whole) < 0 || read_thousandths(&s, &thousandths) < 0)
		return -1;
	for (size_t i = 0; i < ARRAY_LEN(size_units); i++) {
		if (!str_eq(s, size_units[i].name))
			continue;
		uint64_t factor = size_units[i].factor, bytes;
		if (factor == 1 && thousandths != 0)
			return -1; /* there is no half byte */
		if (__builtin_mul_overflow(whole, factor, &bytes)
		    || __builtin_add_overflow(bytes, factor * thousandths / 1000, &bytes))
			return -1;
		*ret_bytes = bytes;
		return 0;
	}
	return -1;
}

/* Largest first: parts must come in this order, each once. */
static const struct unit time_units[] = {
	{ "d", 86400 * NS_PER_S }, { "h", 3600 * NS_PER_S }, { "m", 60 * NS_PER_S }, { "s", NS_PER_S },
	{ "ms", NS_PER_MS }, { "us", 1000 }, { "ns", 1 },
};

static size_t find_time_unit(const char *s, size_t len)
{
	size_t i = 0;
	while (i < ARRAY_LEN(time_units) && (strlen(time_units[i].name) != len || memcmp(time_units[i].name, s, len) != 0))
		i++;
	return i;
}

int text_parse_duration(const char *s, uint64_t *ret_ns)
{
	uint64_t total = 0;
	size_t next = 0;
	do {
		uint64_t v;
		if (read_digits(&s, &v) < 0)
			return -1;
		size_t letters = strcspn(s, "0123456789");
		size_t unit = find_time_unit(s, letters);
		if (unit < next || unit >= ARRAY_LEN(time_units))
			return -1;
		if (__builtin_mul_overflow(v, time_units[unit].factor, &v) || __builtin_add_overflow(total, v, &total))
			return -1;
		next = unit + 1;
		s += letters;
	} while (*s);
	if (total == 0)
		return -1;
	*ret_ns = total;
	return 0;
}

const char *text_format_size(uint64_t bytes, char out[TEXT_SIZE_MAX])
{
	static const char *const names[] = { "B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB" };
	size_t unit = 0;
	while (unit + 1 < ARRAY_LEN(names) && bytes >> (10 * (unit + 1)))
		unit++;
	uint64_t whole = bytes >> (10 * unit);
	uint64_t rest = unit ? (bytes >> (10 * (unit - 1))) & 1023 : 0;
	unsigned tenth = (unsigned)(rest * 10 / 1024);
	if (tenth == 0)
		snprintf(out, TEXT_SIZE_MAX, "%llu %s", (unsigned long long)whole, names[unit]);
	else
		snprintf(out, TEXT_SIZE_MAX, "%llu.%u %s", (unsigned long long)whole, tenth, names[unit]);
	return out;
}

const char *text_format_duration(uint64_t ns, char out[TEXT_SIZE_MAX])
{
	unsigned long long v = ns;
	if (v < 1000)
		snprintf(out, TEXT_SIZE_MAX, "%llu ns", v);
	else if (v < NS_PER_MS)
		snprintf(out, TEXT_SIZE_MAX, "%llu.%llu us", v / 1000, v % 1000 / 100);
	else if (v < NS_PER_S)
		snprintf(out, TEXT_SIZE_MAX, "%llu.%llu ms", v / NS_PER_MS, v % NS_PER_MS / (NS_PER_MS / 10));
	else if (v < 60 * NS_PER_S)
		snprintf(out, TEXT_SIZE_MAX, "%llu.%02llu s", v / NS_PER_S, v % NS_PER_S / (NS_PER_S / 100));
	else if (v < 3600 * NS_PER_S && v % (60 * NS_PER_S) < NS_PER_S)
		snprintf(out, TEXT_SIZE_MAX, "%llu min", v / (60 * NS_PER_S));
	else if (v < 3600 * NS_PER_S)
		snprintf(out, TEXT_SIZE_MAX, "%llu min %llu s", v / (60 * NS_PER_S), v / NS_PER_S % 60);
	else
		snprintf(out, TEXT_SIZE_MAX, "%llu h %llu min", v / (3600 * NS_PER_S), v / (60 * NS_PER_S) % 60);
	return out;
}

const char *text_format_time(uint64_t realtime_ns, char out[TEXT_SIZE_MAX])
{
	time_t seconds = (time_t)(realtime_ns / NS_PER_S);
	struct tm tm;
	/* 2^64 ns end in the year 2554: gmtime_r can't fail, and the text always fits. */
	gmtime_r(&seconds, &tm);
	size_t n = strftime(out, TEXT_SIZE_MAX, "%Y-%m-%dT%H:%M:%S", &tm);
	snprintf(out + n, TEXT_SIZE_MAX - n, ".%09lluZ", (unsigned long long)(realtime_ns % NS_PER_S));
	return out;
}

static uint64_t clock_ns(clockid_t clock)
{
	struct timespec ts;
	clock_gettime(clock, &ts);
	return (uint64_t)ts.tv_sec * NS_PER_S + (uint64_t)ts.tv_nsec;
}

uint64_t time_realtime_ns(void)
{
	return clock_ns(CLOCK_REALTIME);
}

uint64_t time_monotonic_ns(void)
{
	return clock_ns(CLOCK_MONOTONIC);
}

/* Decodes one code point of strict UTF-8 (no overlong form, no surrogate, at most U+10FFFF). Returns its length, 0 when
 * invalid. */
static size_t decode_utf8(const uint8_t *p, size_t len, uint32_t *ret)
{
	static const uint32_t smallest[] = { 0, 0, 0x80, 0x800, 0x10000 };
	size_t n = p[0] < 0x80 ? 1 : p[0] >= 0xf0 && p[0] <= 0xf4 ? 4 : p[0] >= 0xe0 ? 3 : p[0] >= 0xc2 ? 2 : 0;
	if (p[0] > 0xf4 || n == 0 || n > len)
		return 0;
	uint32_t c = n == 1 ? p[0] : p[0] & (0x7fu >> n);
	for (size_t i = 1; i < n; i++) {
		if ((p[i] & 0xc0) != 0x80)
			return 0;
		c = c << 6 | (p[i] & 0x3fu);
	}
	if (c < smallest[n] || (c >= 0xd800 && c <= 0xdfff) || c > 0x10ffff)
		return 0;
	*ret = c;
	return n;
}

bool text_is_utf8(const void *data, size_t len)
{
	const uint8_t *p = data;
	while (len > 0) {
		uint32_t c;
		size_t n = decode_utf8(p, len, &c);
		if (n == 0)
			return false;
		p += n;
		len -= n;
	}
	return true;
}

/* Characters that move, hide or reorder what a person sees; the backslash, because it starts our own escapes. */
static bool is_treacherous(uint32_t c)
{
	static const struct { uint32_t first, last; } ranges[] = {
		{ 0x00, 0x1f }, { '\\', '\\' }, { 0x7f, 0x9f },
		{ 0x00ad, 0x00ad },                       /* soft hyphen */
		{ 0x061c, 0x061c }, { 0x200b, 0x200f },   /* marks of direction, zero width */
		{ 0x2028, 0x202e }, { 0x2060, 0x206f },   /* line separators, bidi embeddings, overrides and isolates */
		{ 0xfeff, 0xfeff }, { 0xfff9, 0xfffb },
		{ 0xe0000, 0xe0fff },                     /* invisible tags */
	};
	for (size_t i = 0; i < ARRAY_LEN(ranges); i++)
		if (c >= ranges[i].first && c <= ranges[i].last)
			return true;
	return false;
}

static const char hex_digits[] = "0123456789abcdef";

const char *text_escape(const void *data, size_t len, char *out, size_t out_len)
{
	const uint8_t *p = data;
	size_t at = 0;
	if (out_len == 0)
		return out;
	while (len > 0) {
		uint32_t c;
		size_t n = decode_utf8(p, len, &c);
		bool plain = n > 0 && !is_treacherous(c);
		if (n == 0)
			n = 1;
		if (at + (plain ? n : 4 * n) >= out_len)
			break; /* whole characters and whole escapes only */
		for (size_t i = 0; i < n; i++) {
			if (plain) {
				out[at++] = (char)p[i];
				continue;
			}
			out[at++] = '\\';
			out[at++] = 'x';
			out[at++] = hex_digits[p[i] >> 4];
			out[at++] = hex_digits[p[i] & 15];
		}
		p += n;
		len -= n;
	}
	out[at] = '\0';
	return out;
}

void text_hex(const void *data, size_t len, char *out)
{
	const uint8_t *p = data;
	for (size_t i = 0; i < len; i++) {
		*out++ = hex_digits[p[i] >> 4];
		*out++ = hex_digits[p[i] & 15];
	}
	*out = '\0';
}

static int hex_value(char c)
{
	if (is_digit(c))
		return c - '0';
	if (c >= 'a' && c <= 'f')
		return c - 'a' + 10;
	if (c >= 'A' && c <= 'F')
		return c - 'A' + 10;
	return -1;
}

int text_unhex(const char *s, void *out, size_t out_len)
{
	/* Checked as a whole first: the output is written on success only. */
	if (strlen(s) != out_len * 2)
		return -1;
	for (const char *p = s; *p; p++)
		if (hex_value(*p) < 0)
			return -1;
	uint8_t *to = out;
	for (size_t i = 0; i < out_len; i++)
		to[i] = (uint8_t)(hex_value(s[2 * i]) << 4 | hex_value(s[2 * i + 1]));
	return 0;
}

size_t text_base64_len(size_t len)
{
	return (len / 3 + (len % 3 != 0)) * 4;
}

void text_base64(const void *data, size_t len, char *out)
{
	static const char alphabet[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
	const uint8_t *p = data;
	for (; len > 0; p += 3) {
		size_t n = len < 3 ? len : 3;
		uint32_t v = (uint32_t)p[0] << 16 | (n > 1 ? (uint32_t)p[1] << 8 : 0) | (n > 2 ? p[2] : 0);
		*out++ = alphabet[v >> 18];
		*out++ = alphabet[v >> 12 & 63];
		*out++ = n > 1 ? alphabet[v >> 6 & 63] : '=';
		*out++ = n > 2 ? alphabet[v & 63] : '=';
		len -= n;
	}
	*out = '\0';
}
