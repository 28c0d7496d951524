/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#ifndef BULKHEAD_VERSION
#error "the build gives BULKHEAD_VERSION"
#endif
