/* SPDX-License-Identifier: Apache-2.0 */
/* Which secrets a policy grants, in which variables; what isn't stored is refused before anything runs. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <fcntl.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/fd.h"
#include "base/mem.h"
#include "sandbox/grants.h"

struct fixture { char path[64]; int fd; struct secret_store *store; };

static int setup(void **state)
{
	struct fixture *f = mem_alloc(sizeof(*f));
	struct err err = ERR_INIT;
	strcpy(f->path, "/tmp/bulkhead-grants-XXXXXX");
	if (!mkdtemp(f->path))
		return -1;
	f->fd = open(f->path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	f->store = secret_store_open(f->fd, true, &err);
	*state = f;
	return f->store ? 0 : -1;
}

static int teardown(void **state)
{
	struct fixture *f = *state;
	secret_store_free(f->store);
	close(f->fd);
	int parent = open("/tmp", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	int r = path_remove_tree(parent, strrchr(f->path, '/') + 1);
	close(parent);
	mem_free(f);
	return r;
}

static void store(struct fixture *f, const char *name)
{
	struct err err = ERR_INIT;
	if (secret_store_set(f->store, name, "value-of-it-0123456789", 22, &err) < 0)
		fail_msg("%s", err.text);
}

static struct policy *with(const char *const *specs)
{
	struct policy *p = policy_builtin();
	struct err err = ERR_INIT;
	for (; *specs; specs++)
		if (policy_add_secret(p, *specs, &err) < 0)
			fail_msg("%s", err.text);
	return p;
}

static void a_policy_without_secrets_grants_none(void **state)
{
	struct fixture *f = *state;
	struct policy *p = policy_builtin();
	struct grants *g = (struct grants *)f;
	struct err err = ERR_INIT;
	assert_int_equal(grants_new(p, f->fd, &g, &err), 0);
	assert_null(g);
	assert_null(grants_find(NULL, "x"));
	policy_free(p);
}

static void each_secret_has_one_placeholder(void **state)
{
	struct fixture *f = *state;
	struct policy *p = with((const char *const[]){ "git-hub@a.example", "git-hub@b.example:x-token", "npm@c.example", NULL });
	struct grants *g = NULL, *other = NULL;
	struct err err = ERR_INIT;
	store(f, "git-hub");
	store(f, "npm");
	if (grants_new(p, f->fd, &g, &err) < 0 || grants_new(p, f->fd, &other, &err) < 0)
		fail_msg("%s", err.text);
	assert_int_equal(g->n, 2);
	const struct grant *hub = grants_find(g, "git-hub");
	assert_non_null(hub);
	assert_int_equal(hub->n_variables, 1);
	assert_string_equal(hub->variables[0], "GIT_HUB");
	assert_true(hub->file_fd >= 0 && hub->key_fd >= 0);
	assert_int_equal(hub->about.generation, 1);
	/* of this sandbox alone */
	assert_string_not_equal(hub->placeholder, grants_find(other, "git-hub")->placeholder);
	assert_null(strstr(hub->placeholder, "value-of-it"));
	/* a later policy with the same secrets is covered, one with another isn't */
	struct policy *more = with((const char *const[]){ "npm@d.example", NULL });
	struct policy *foreign = with((const char *const[]){ "other@d.example", NULL });
	assert_int_equal(grants_cover(g, more, &err), 0);
	assert_int_equal(grants_cover(g, foreign, &err), -1);
	assert_non_null(strstr(err.text, "\"other\""));
	assert_int_equal(grants_cover(NULL, more, &err), -1);
	/* what was rotated meanwhile is seen */
	store(f, "npm");
	assert_int_equal(grants_reopen(g, &err), 0);
	assert_int_equal(grants_find(g, "npm")->about.generation, 2);
	policy_free(more);
	policy_free(foreign);
	policy_free(p);
	grants_free(other);
	grants_free(g);
}

static void what_is_not_stored_is_refused(void **state)
{
	struct fixture *f = *state;
	struct policy *p = with((const char *const[]){ "absent@a.example", NULL });
	struct grants *g = NULL;
	struct err err = ERR_INIT;
	assert_int_equal(grants_new(p, f->fd, &g, &err), -1);
	assert_non_null(strstr(err.text, "bulkhead secret set absent"));
	policy_free(p);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(a_policy_without_secrets_grants_none, setup, teardown),
		cmocka_unit_test_setup_teardown(each_secret_has_one_placeholder, setup, teardown),
		cmocka_unit_test_setup_teardown(what_is_not_stored_is_refused, setup, teardown),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
