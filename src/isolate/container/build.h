/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The launcher's work. Two processes: the launcher itself (build.c) prepares what must be done from outside, clones the box's
 * pid 1 into its namespaces, and reports; the clone (inside.c) builds the file system view from within, gives up every
 * privilege, and becomes the agent. While the clone builds, the launcher makes what can be made beside it (network namespace,
 * user namespace, v1 cgroups: a third of the time) and sends the descriptors over.
 *
 * As root both act with the host's root privileges until the clone enters the box's user namespace at the end, so mount,
 * network and the other namespaces belong to the host's user namespace: not even a process that became root inside the box
 * holds a capability over them. As an ordinary user the launcher first enters a user namespace of its own, and the box's is a
 * child of that one: the same, one floor down.
 */
#pragma once

#include <stdbool.h>
#include <sys/resource.h>

#include "base/err.h"
#include "isolate/cgroup.h"
#include "spec/spec.h"

struct build {
	struct spec spec;
	int pipe_fd;		      /* box end of the pipe */
	int sources[SPEC_MOUNTS_MAX]; /* O_PATH, of the supervisor's mount namespace */
	char *agent_path;
	int files[SPEC_FILES_MAX];    /* memory files of the supervisor's */
	int map_userns[SPEC_MOUNTS_MAX]; /* for id-mapped mounts; -1 where none is needed */
	int report_fd;			 /* the clone's end of the socket to the launcher */
	bool late_cgroup;		 /* v1: the clone joins when the launcher has made it */
	rlim_t nproc;			 /* > 0: limit of processes by RLIMIT_NPROC, where there is no cgroup for it */

	/* Inside only. */
	int box_userns, box_netns;
	int tasks_fd[CGROUP_PARTS_MAX]; /* cgroup v1: where to write "0" */
	size_t n_tasks;
	int clones[SPEC_MOUNTS_MAX];	  /* detached copies of the sources */
	bool plain_copy[SPEC_MOUNTS_MAX]; /* the source can't be id-mapped */
	bool whole;			  /* overlay can't keep its marks on our disk: every copy is a plain and whole one */
	int agent_fd;
	int layer_fd;		       /* root of what lies over the host's certificates; -1: nothing */
	int disk_fd;		       /* root of the one writable file system */
	int root_fd;		       /* root of the view */
	int proc_fd;		       /* detached, unmasked proc of the box: gone before the workload starts */
	int lower_fd[SPEC_MOUNTS_MAX]; /* as reported */
	size_t n_lower;
};

/* Where the writable file system is attached while the view is being built: any folder that every host has. */
#define STAGING "/tmp"

/* Reads requests from LAUNCH_FD until one was answered. Returns the exit status. */
int build_serve(void);

/* The clone's way. Never returns. */
void __attribute__((noreturn)) inside_main(struct build *b);

/* Steps of inside_main, in order. */
int view_open_sources(struct build *b, struct err *err); /* container/mounts.c */
int view_begin(struct build *b, struct err *err);	 /* container/root.c: disk, skeleton, system folders */
int view_add_files(struct build *b, struct err *err);	 /* container/files.c */
int view_add_etc(struct build *b, struct err *err);	 /* container/etc.c */
int view_add_dev(struct build *b, struct err *err);	 /* container/dev.c */
int view_add_mounts(struct build *b, struct err *err);	 /* container/mounts.c */
int view_add_proc(struct build *b, struct err *err);	 /* container/proc.c */
int view_finish(struct build *b, struct err *err);	 /* container/root.c: read-only root, pivot */

/* container/files.c: has the layer something for the folder /etc/NAME? And a detached mount of it, with the host's folder beneath. */
bool layer_covers(const struct build *b, const char *name);
int layer_mount(const struct build *b, const char *name, bool host_has, struct err *err);

/* The ids that files made for the inside's root and for the workload have here. */
uid_t build_root_id(const struct build *b);
uid_t build_user_id(const struct build *b);
