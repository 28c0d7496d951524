/* SPDX-License-Identifier: Apache-2.0 */
#include "policy/limit.h"

#include <string.h>

#include "base/mem.h"
#include "base/text.h"

#define MIB (1024ULL * 1024)
#define SIZE_MOST (1ULL << 60)
#define COUNT_MOST (1ULL << 32)
#define TIME_MOST (366ULL * 24 * 3600 * NS_PER_S)
#define FIELD(f) offsetof(struct policy_limits, f)

/* The least values are those below which a box can't even start a shell: such a limit is a mistake in writing. */
const struct limit_kind limit_kinds[LIMIT_KINDS] = {
	{ "cpus", "cpus_milli", LIMIT_CPUS, FIELD(cpus_milli), 10, 1024000 },
	{ "memory", "memory_bytes", LIMIT_SIZE, FIELD(memory), 8 * MIB, SIZE_MOST },
	{ "processes", "processes", LIMIT_COUNT, FIELD(processes), 4, 4194304 },
	{ "disk", "disk_bytes", LIMIT_SIZE, FIELD(disk), MIB, SIZE_MOST },
	{ "open_files", "open_files", LIMIT_COUNT, FIELD(open_files), 16, 1048576 },
	{ "output", "output_bytes", LIMIT_SIZE, FIELD(output), 1, SIZE_MOST },
	{ "egress_requests", "egress_requests", LIMIT_COUNT, FIELD(egress_requests), 1, COUNT_MOST },
	{ "egress_bytes", "egress_bytes", LIMIT_SIZE, FIELD(egress_bytes), 1, SIZE_MOST },
	{ "connections", "connections", LIMIT_COUNT, FIELD(connections), 1, 65536 },
	{ "timeout", "timeout_ns", LIMIT_DURATION, FIELD(timeout_ns), 1, TIME_MOST },
	{ "idle", "idle_ns", LIMIT_DURATION, FIELD(idle_ns), 1, TIME_MOST },
};
_Static_assert(sizeof(struct policy_limits) == LIMIT_KINDS * sizeof(uint64_t), "each limit has its line in the table");

static const char *const unit_form[] = {
	[LIMIT_CPUS] = "a number with at most three decimals such as 1 or 0.5",
	[LIMIT_SIZE] = "a size such as 512MiB",
	[LIMIT_COUNT] = "a whole number such as 100",
	[LIMIT_DURATION] = "a duration such as 90s or 15m, above 0",
};

uint64_t limit_get(const struct policy_limits *l, const struct limit_kind *kind)
{
	uint64_t value;
	memcpy(&value, (const char *)l + kind->offset, sizeof(value));
	return value;
}

void limit_put(struct policy_limits *l, const struct limit_kind *kind, uint64_t value)
{
	memcpy((char *)l + kind->offset, &value, sizeof(value));
}

/* "1", "0.5", "2.125" in thousandths. */
static int parse_milli(const char *s, uint64_t *ret)
{
	char whole[16] = "", part[4] = "000";
	const char *dot = strchr(s, '.');
	size_t n = dot ? (size_t)(dot - s) : strlen(s);
	size_t decimals = dot ? strlen(dot + 1) : 0;
	uint64_t w, p;
	if (n == 0 || n >= sizeof(whole) || decimals > 3 || (dot && decimals == 0))
		return -1;
	memcpy(whole, s, n);
	if (dot)
		memcpy(part, dot + 1, decimals);
	if (text_parse_u64(whole, 0, UINT32_MAX, &w) < 0 || text_parse_u64(part, 0, 999, &p) < 0)
		return -1;
	*ret = w * 1000 + p;
	return 0;
}

static int parse_unit(enum limit_unit unit, const char *s, uint64_t *ret)
{
	switch (unit) {
	case LIMIT_CPUS:
		return parse_milli(s, ret);
	case LIMIT_SIZE:
		return text_parse_size(s, ret);
	case LIMIT_COUNT:
		return text_parse_u64(s, 0, UINT64_MAX - 1, ret);
	case LIMIT_DURATION:
		return text_parse_duration(s, ret);
	}
	return -1;
}

static const char *format_value(enum limit_unit unit, uint64_t value, char out[TEXT_SIZE_MAX])
{
	cleanup_free char *s = NULL;
	switch (unit) {
	case LIMIT_SIZE:
		return text_format_size(value, out);
	case LIMIT_DURATION:
		return text_format_duration(value, out);
	case LIMIT_CPUS:
		s = mem_printf("%g", (double)value / 1000);
		break;
	case LIMIT_COUNT:
		s = mem_printf("%llu", (unsigned long long)value);
		break;
	}
	return text_escape(s, strlen(s), out, TEXT_SIZE_MAX);
}

static const struct limit_kind *limit_find(const char *name)
{
	for (size_t i = 0; i < LIMIT_KINDS; i++)
		if (str_eq(limit_kinds[i].name, name))
			return &limit_kinds[i];
	return NULL;
}

static int check_range(const struct limit_kind *kind, uint64_t value, struct err *err)
{
	char least[TEXT_SIZE_MAX], most[TEXT_SIZE_MAX];
	if (value == POLICY_UNLIMITED || (value >= kind->min && value <= kind->max))
		return 0;
	if (value == 0)
		return err_set(err, ERR_INVALID, "`%s` is 0, which would allow nothing; write a greater value, or `unlimited`",
			kind->name);
	return err_set(err, ERR_INVALID, "`%s` must lie between %s and %s, or be `unlimited`", kind->name,
		format_value(kind->unit, kind->min, least), format_value(kind->unit, kind->max, most));
}

int limit_set(struct policy_limits *l, const char *name, const char *value, struct err *err)
{
	const struct limit_kind *kind = limit_find(name);
	char shown[64];
	uint64_t v;
	if (!kind)
		return err_set(
			err, ERR_INVALID, "there is no limit \"%s\"", text_escape(name, strlen(name), shown, sizeof(shown)));
	if (str_eq(value, "unlimited")) {
		limit_put(l, kind, POLICY_UNLIMITED);
		return 0;
	}
	if (parse_unit(kind->unit, value, &v) < 0)
		return err_set(err, ERR_INVALID, "`%s` must be %s, or `unlimited`, and is \"%s\"", kind->name,
			unit_form[kind->unit], text_escape(value, strlen(value), shown, sizeof(shown)));
	if (v == POLICY_UNLIMITED)
		v--; /* the word alone says unlimited, never a number */
	if (check_range(kind, v, err) < 0)
		return -1;
	limit_put(l, kind, v);
	return 0;
}

int limits_check(const struct policy_limits *l, struct err *err)
{
	for (size_t i = 0; i < LIMIT_KINDS; i++)
		if (check_range(&limit_kinds[i], limit_get(l, &limit_kinds[i]), err) < 0)
			return -1;
	return 0;
}
