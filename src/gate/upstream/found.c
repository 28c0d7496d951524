/* SPDX-License-Identifier: Apache-2.0 */
#include "gate/upstream/internal.h"

#include "base/mem.h"

#define FOUND_MAX 256u /* kinds of finds of one flow; what comes after is scrubbed all the same */

struct found {
	struct found *next;
	unsigned secret;
	const char *spelling, *where; /* constants */
	uint64_t more;                /* since the last record */
};

static void record(struct upflow *f, const struct found *found, uint64_t count)
{
	json_t *o = json_object();
	json_object_set_new(o, "secret", json_string(vault_name(f->u->vault, found->secret)));
	json_object_set_new(o, "flow", json_integer((json_int_t)(f->by_id.key & INT64_MAX)));
	json_object_set_new(o, "host", json_string(f->target.text));
	json_object_set_new(o, "spelling", json_string(found->spelling));
	json_object_set_new(o, "where", json_string(found->where));
	json_object_set_new(o, "count", json_integer((json_int_t)count));
	recorder_send(f->u->recorder, AUDIT_SECRET_FOUND, o, NULL, NULL, NULL);
}

void found_note(struct upflow *f, unsigned secret, const char *spelling, const char *where)
{
	unsigned n = 0;
	for (struct found *found = f->found; found; found = found->next, n++) {
		if (found->secret == secret && str_eq(found->spelling, spelling) && str_eq(found->where, where)) {
			found->more++;
			return;
		}
	}
	if (n >= FOUND_MAX)
		return;
	struct found *fresh = mem_alloc(sizeof(*fresh));
	*fresh = (struct found){ .next = f->found, .secret = secret, .spelling = spelling, .where = where };
	f->found = fresh;
	record(f, fresh, 1);
}

void found_finish(struct upflow *f)
{
	while (f->found) {
		struct found *found = f->found;
		f->found = found->next;
		if (found->more)
			record(f, found, found->more);
		mem_free(found);
	}
}
