/* SPDX-License-Identifier: Apache-2.0 */
/* Which codings a server may use for an answer that must be read: those the client takes and secrets/unpack.h can take off. */
#pragma once

#include "net/http.h"

/* Rewrites accept-encoding. A request for a part of a representation (range) asks for it uncoded: a part of a coded one can't be read. */
int accept_limit(struct http_head *head);
