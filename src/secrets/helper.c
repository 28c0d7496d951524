/* SPDX-License-Identifier: Apache-2.0 */
/* What a credential helper printed. Its JSON is read with an allocator that wipes: the library's copies of the value don't outlive it. */
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <jansson.h>

#include "base/mem.h"
#include "base/text.h"
#include "secrets/secret.h"
#include "secrets/wipe.h"

#define EXPIRES_IN_MAX (10u * 366u * 86400u)

/* Exactly n digits as a number, or -1. Moves on. */
static int digits(const char **s, unsigned n)
{
	int v = 0;
	for (; n > 0; n--, (*s)++) {
		if (**s < '0' || **s > '9')
			return -1;
		v = v * 10 + (**s - '0');
	}
	return v;
}

static bool literal(const char **s, const char *set)
{
	if (!**s || !strchr(set, **s))
		return false;
	(*s)++;
	return true;
}

/* "Z" or "+hh:mm"; *ret in seconds east. */
static int parse_zone(const char **s, long *ret)
{
	if (literal(s, "Zz")) {
		*ret = 0;
		return 0;
	}
	int sign = **s == '-' ? -1 : 1;
	if (!literal(s, "+-"))
		return -1;
	int h = digits(s, 2);
	int m = literal(s, ":") ? digits(s, 2) : -1;
	if (h < 0 || h > 23 || m < 0 || m > 59)
		return -1;
	*ret = sign * (h * 3600L + m * 60L);
	return 0;
}

static bool in_calendar(const struct tm *tm)
{
	static const int days[] = { 31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31 };
	int year = tm->tm_year + 1900;
	bool leap = (year % 4 == 0 && year % 100 != 0) || year % 400 == 0;
	return year >= 1970 && year <= 2500 && tm->tm_mon >= 0 && tm->tm_mon < 12 && tm->tm_mday >= 1 &&
		tm->tm_mday <= days[tm->tm_mon] + (tm->tm_mon == 1 && leap) && tm->tm_hour >= 0 && tm->tm_hour <= 23 && tm->tm_min >= 0 &&
		tm->tm_min <= 59 && tm->tm_sec >= 0 && tm->tm_sec <= 60;
}

/* RFC 3339; fractions of a second are cut off, which only makes the time earlier. */
static int parse_time(const char *s, uint64_t *ret_ns)
{
	struct tm tm = { 0 };
	long zone;
	tm.tm_year = digits(&s, 4) - 1900;
	tm.tm_mon = literal(&s, "-") ? digits(&s, 2) - 1 : -1;
	tm.tm_mday = literal(&s, "-") ? digits(&s, 2) : -1;
	tm.tm_hour = literal(&s, "Tt ") ? digits(&s, 2) : -1;
	tm.tm_min = literal(&s, ":") ? digits(&s, 2) : -1;
	tm.tm_sec = literal(&s, ":") ? digits(&s, 2) : -1;
	if (!in_calendar(&tm))
		return -1;
	if (literal(&s, ".")) {
		if (digits(&s, 1) < 0)
			return -1;
		s += strspn(s, "0123456789");
	}
	if (parse_zone(&s, &zone) < 0 || *s)
		return -1;
	long long t = (long long)timegm(&tm) - zone;
	if (t < 0)
		return -1;
	*ret_ns = (uint64_t)t * NS_PER_S;
	return 0;
}

static int parse_expiry(const json_t *o, uint64_t now_ns, uint64_t *ret, struct err *err)
{
	const json_t *at = json_object_get(o, "expires_at"), *in = json_object_get(o, "expires_in");
	if (at && in)
		return err_set(err, ERR_INVALID, "the helper gave both \"expires_at\" and \"expires_in\"; one of them is enough");
	if (at) {
		if (!json_is_string(at) || parse_time(json_string_value(at), ret) < 0)
			return err_set(err, ERR_INVALID, "the helper's \"expires_at\" is no time as in \"2026-11-30T19:10:16Z\"");
	} else if (in) {
		double seconds = json_is_number(in) ? json_number_value(in) : -1;
		if (!(seconds >= 0 && seconds <= EXPIRES_IN_MAX))
			return err_set(err, ERR_INVALID, "the helper's \"expires_in\" is no number of seconds up to ten years");
		*ret = now_ns + (uint64_t)seconds * NS_PER_S;
	} else {
		*ret = 0;
		return 0;
	}
	if (*ret <= now_ns)
		return err_set(err, ERR_INVALID, "the helper gave a value that has expired already; check its clock and this host's");
	return 0;
}

static int parse_object(const json_t *o, uint64_t now_ns, struct secret_value **ret, uint64_t *ret_expires_ns, struct err *err)
{
	uint64_t expires = 0;
	const json_t *value = json_object_get(o, "value");
	if (!json_is_object(o) || !json_is_string(value))
		return err_set(err, ERR_INVALID, "the helper must print one JSON object with a text \"value\", as in {\"value\": \"…\", \"expires_in\": 3600}");
	if (parse_expiry(o, now_ns, &expires, err) < 0)
		return -1;
	struct secret_value *v = secret_value_new(json_string_value(value), json_string_length(value), err);
	if (!v)
		return err_wrap(err, "the helper's \"value\"");
	*ret = v;
	*ret_expires_ns = expires;
	return 0;
}

int secret_helper_parse(const void *p, size_t len, uint64_t now_ns, struct secret_value **ret, uint64_t *ret_expires_ns, struct err *err)
{
	json_malloc_t old_malloc;
	json_free_t old_free;
	json_error_t why;
	if (len > SECRET_FILE_MAX)
		return err_set(err, ERR_LIMIT, "the helper printed more than %u bytes", SECRET_FILE_MAX);
	json_get_alloc_funcs(&old_malloc, &old_free);
	json_set_alloc_funcs(wipe_malloc, wipe_free);
	json_t *o = json_loadb(p, len, JSON_REJECT_DUPLICATES, &why);
	/* The library's own error text quotes what it read: it is not passed on. */
	int r = o ? parse_object(o, now_ns, ret, ret_expires_ns, err) :
		    err_set(err, ERR_INVALID, "what the helper printed is no JSON (near byte %d)", why.position);
	mem_wipe(&why, sizeof(why));
	json_decref(o);
	json_set_alloc_funcs(old_malloc, old_free);
	return r;
}
