/* SPDX-License-Identifier: Apache-2.0 */
/*
 * git over HTTP. Only the smart protocol is let through, since in the dumb one a repository is a heap of files whose names say nothing.
 * Fetching is the service git-upload-pack, pushing is git-receive-pack; of large files (LFS) the request that opens either way tells them
 * apart only in its body, so it counts as pushing.
 */
#include <string.h>

#include "base/mem.h"
#include "policy/registry.h"

#define REPOSITORY_MAX 512u

enum git_ask { GIT_NOTHING, GIT_FETCH, GIT_PUSH };

struct git_end { const char *end; bool post; enum git_ask ask; };

/* Longest first where one is the end of another. `/info/refs` is told apart by its query. */
static const struct git_end ends[] = {
	{ "/info/lfs/objects/batch", true, GIT_PUSH },
	{ "/info/refs", false, GIT_NOTHING },
	{ "/git-upload-pack", true, GIT_FETCH },
	{ "/git-receive-pack", true, GIT_PUSH },
};

static enum git_ask service_of(const char *query)
{
	if (str_eq(query, "service=git-upload-pack"))
		return GIT_FETCH;
	return str_eq(query, "service=git-receive-pack") ? GIT_PUSH : GIT_NOTHING;
}

/* Path of the repository without its slash in front and ".git": its length, or 0 when it can't be one. */
static size_t repository_length(const char *path, size_t len)
{
	if (len > 4 && strncmp(path + len - 4, ".git", 4) == 0)
		len -= 4;
	if (len == 0 || len > REPOSITORY_MAX || path[0] == '/' || path[len - 1] == '/' || memchr(path, '%', len))
		return 0;
	return len;
}

static bool names_repository(const struct git_rule *g, const char *name, size_t len)
{
	for (size_t i = 0; i < g->n_repositories; i++)
		if (text_glob_match(g->repositories[i], name, len))
			return true;
	return false;
}

static const struct git_end *end_of(const char *path)
{
	for (size_t i = 0; i < ARRAY_LEN(ends); i++)
		if (str_ends(path, ends[i].end))
			return &ends[i];
	return NULL;
}

/* A path that is no git request, for the most telling reason: of a named repository the path is wrong, of another the repository. */
static enum reason not_git(const struct git_rule *g, const char *path)
{
	for (const char *p = strchr(path + 1, '/'); p; p = strchr(p + 1, '/')) {
		size_t n = repository_length(path + 1, (size_t)(p - path - 1));
		if (n > 0 && names_repository(g, path + 1, n))
			return REASON_PATH_NOT_ALLOWED;
	}
	return REASON_REPOSITORY_NOT_ALLOWED;
}

enum reason git_judge(const struct git_rule *g, const struct protocol_request *r)
{
	const struct git_end *end = end_of(r->path);
	if (!end)
		return not_git(g, r->path);
	size_t in_front = strlen(r->path) - strlen(end->end);
	size_t n = in_front > 1 ? repository_length(r->path + 1, in_front - 1) : 0;
	if (n == 0 || !names_repository(g, r->path + 1, n))
		return REASON_REPOSITORY_NOT_ALLOWED;
	if (end->post ? !r->post : !r->get)
		return REASON_METHOD_NOT_ALLOWED;
	enum git_ask ask = end->post ? end->ask : service_of(r->query);
	if (ask == GIT_NOTHING)
		return REASON_PATH_NOT_ALLOWED;
	return ask == GIT_PUSH && !g->push ? REASON_PUSH_NOT_ALLOWED : REASON_NONE;
}
