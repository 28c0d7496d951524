/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Diagnostics of the programs (not the record: that is audit/). One line on stderr, level from $BULKHEAD_LOG
 * (error, warning, info, debug; default warning). Rate-limited for each call site: at most 20 lines in 10 s, then one
 * line says how many were left out. Text from outside must go through text_escape first.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

enum log_level { LOG_LEVEL_ERROR, LOG_LEVEL_WARNING, LOG_LEVEL_INFO, LOG_LEVEL_DEBUG };

struct log_site { uint64_t window_start_ns; unsigned count, dropped; };

void log_init(const char *program); /* keeps the pointer; reads the environment once */
bool log_enabled(enum log_level level);
void log_line(struct log_site *site, enum log_level level, const char *format, ...) __attribute__((format(printf, 3, 4)));

#define LOG_AT(level, ...)                                                     \
	do {                                                                   \
		static struct log_site log_site_;                              \
		if (log_enabled(level))                                        \
			log_line(&log_site_, (level), __VA_ARGS__);            \
	} while (0)
#define log_error(...) LOG_AT(LOG_LEVEL_ERROR, __VA_ARGS__)
#define log_warning(...) LOG_AT(LOG_LEVEL_WARNING, __VA_ARGS__)
#define log_info(...) LOG_AT(LOG_LEVEL_INFO, __VA_ARGS__)
#define log_debug(...) LOG_AT(LOG_LEVEL_DEBUG, __VA_ARGS__)
