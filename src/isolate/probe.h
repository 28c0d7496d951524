/* SPDX-License-Identifier: Apache-2.0 */
/* What this host can do for a box, each row found out by doing it in a child that is gone afterwards. For `bulkhead doctor`. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

enum probe_need { PROBE_REQUIRED, PROBE_WANTED }; /* wanted: a second lock, or one kind of user only */

struct probe_row {
	const char *name;
	enum probe_need need;
	bool ok;
	char detail[800]; /* version or way where ok; else cause and smallest fix */
};

#define PROBE_ROWS_MAX 32
/* Kernel features. Returns how many rows were filled. */
size_t probe_features(struct probe_row rows[PROBE_ROWS_MAX]);
/* Settings of the host that forbid ordinary users a user namespace; none of them may be there. */
size_t probe_restrictions(struct probe_row rows[PROBE_ROWS_MAX]);
/* Limits of a policy: enforced, and by what. */
size_t probe_limits(struct probe_row rows[PROBE_ROWS_MAX]);

/* Runs a tiny guest on /dev/kvm and times it: present isn't usable (nested and paravirtual KVM). */
void probe_kvm(struct probe_row *ret);
