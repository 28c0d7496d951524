/* SPDX-License-Identifier: Apache-2.0 */
#include "policy/canon.h"

#include <stdlib.h>

/* jansson says "out of memory" by NULL; a policy with a part missing must never be written, so the process ends at once. */
json_t *canon_whole(json_t *value)
{
	if (!value)
		abort();
	return value;
}

void canon_put(json_t *object, const char *key, json_t *value)
{
	if (json_object_set_new(object, key, canon_whole(value)) < 0)
		abort();
}

void canon_append(json_t *array, json_t *value)
{
	if (json_array_append_new(array, canon_whole(value)) < 0)
		abort();
}

/* The strings of a policy are UTF-8: its readers see to that. */
void canon_put_text(json_t *object, const char *key, const char *text)
{
	canon_put(object, key, text ? json_string(text) : json_null());
}

int canon_bad(struct err *err, const char *key)
{
	return err_set(
		err, ERR_INVALID, "the policy's JSON has no valid `%s`; only what Bulkhead wrote itself is accepted", key);
}

int canon_take_bool(const json_t *o, const char *key, bool *ret, struct err *err)
{
	const json_t *v = json_object_get(o, key);
	if (!json_is_boolean(v))
		return canon_bad(err, key);
	*ret = json_is_true(v);
	return 0;
}

int canon_take_integer(const json_t *v, const char *key, json_int_t min, json_int_t max, json_int_t *ret, struct err *err)
{
	if (!json_is_integer(v) || json_integer_value(v) < min || json_integer_value(v) > max)
		return canon_bad(err, key);
	*ret = json_integer_value(v);
	return 0;
}
