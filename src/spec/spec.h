/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a box is to be: built by the supervisor from policy and options, validated, handed to the launcher as one flat message.
 * Nothing in it is text for a shell or a parser of policy; paths of the host arrive as descriptors.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/addr.h"
#include "base/buf.h"
#include "base/err.h"
#include "policy/policy.h"

#define SANDBOX_ID_LEN 12u        /* lower-case letters and digits, first a letter; random (60 bits) */
#define SPEC_MOUNTS_MAX POLICY_MOUNTS_MAX
#define SPEC_ROUTES_MAX 64u
#define SPEC_FILES_MAX 16u
#define SPEC_FILE_SIZE_MAX (16u << 20)
#define SPEC_SOURCES_MAX (SPEC_MOUNTS_MAX + SPEC_FILES_MAX) /* descriptors that come with a description */
#define SPEC_ENCODED_MAX (256u * 1024u)
#define SPEC_INSIDE_ID 1000u      /* uid and gid of the workload inside */
#define SPEC_ID_RANGE 65536u      /* as root: host ids of one sandbox */

/* Fresh random id / syntax check. */
void sandbox_id_new(char out[SANDBOX_ID_LEN + 1]);
bool sandbox_id_valid(const char *s);

struct spec_mount {
	char *target;             /* absolute inside the box, normalised, not "/" and not below /proc, /dev, /sys */
	enum mount_mode mode;
	bool is_file;             /* source is a regular file (ro and rw only) */
	uid_t owner_uid;          /* of the source folder: shown as SPEC_INSIDE_ID inside */
	gid_t owner_gid;
	/* The source is descriptor number i of the request for mount i (O_PATH). */
};

struct spec {
	char id[SANDBOX_ID_LEN + 1];
	bool privileged;          /* launcher runs as root: own id range, id-mapped mounts */
	uid_t host_id_base;       /* privileged: first host uid/gid of the range; inside id i is host id base + i */
	char *hostname;
	char *workdir;            /* absolute inside */
	struct spec_mount *mounts;
	size_t n_mounts;
	struct policy_limits limits;
	bool egress;              /* set up the capture route */
	struct ip routes[SPEC_ROUTES_MAX]; /* literal addresses the policy names: local routes inside */
	size_t n_routes;
	/* Files that the supervisor made, laid over what the box would see of the host's certificate folders (read-only), or put into its home (the
	 * workload's own): "etc/ssl/certs/…", "etc/pki/tls/certs/…", "etc/pki/ca-trust/extracted/…", "home/…". The content of file i is descriptor
	 * number n_mounts + i of the request, a memory file. */
	char **files;
	size_t n_files;
	char *host_uname;         /* reserved: "" */
};

void spec_done(struct spec *s);
/* Checks targets for overlap and order (parents first), lengths, id range, places of files. */
int spec_validate(const struct spec *s, struct err *err);
int spec_encode(struct buf *out, const struct spec *s);
int spec_decode(const void *p, size_t n, struct spec *ret, struct err *err);
