/* SPDX-License-Identifier: Apache-2.0 */
#include "base/log.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/mem.h"
#include "base/text.h"

#define WINDOW_NS (10 * NS_PER_S)
#define LINES_PER_WINDOW 20u
#define LINE_MAX_BYTES 1024

static const char *const level_names[] = {
	[LOG_LEVEL_ERROR] = "error",
	[LOG_LEVEL_WARNING] = "warning",
	[LOG_LEVEL_INFO] = "info",
	[LOG_LEVEL_DEBUG] = "debug",
};

static const char *program_name = "bulkhead";
static enum log_level threshold = LOG_LEVEL_WARNING;

void log_init(const char *program)
{
	program_name = program;
	threshold = LOG_LEVEL_WARNING;
	const char *wanted = secure_getenv("BULKHEAD_LOG");
	for (size_t i = 0; wanted && i < ARRAY_LEN(level_names); i++)
		if (str_eq(wanted, level_names[i]))
			threshold = (enum log_level)i;
}

bool log_enabled(enum log_level level)
{
	return level <= threshold;
}

__attribute__((format(printf, 2, 0)))
static void write_line(enum log_level level, const char *format, va_list ap)
{
	char line[LINE_MAX_BYTES];
	int head = snprintf(line, sizeof(line), "%.64s: %s: ", program_name, level_names[level]);
	size_t at = head < 0 ? 0 : (size_t)head;
	int n = vsnprintf(line + at, sizeof(line) - at, format, ap);
	if (n > 0)
		at += (size_t)n;
	if (at > sizeof(line) - 1)
		at = sizeof(line) - 1;
	line[at++] = '\n'; /* in place of the NUL: one write, one line */
	ssize_t ignored = write(STDERR_FILENO, line, at);
	(void)ignored;
}

__attribute__((format(printf, 2, 3)))
static void write_line_args(enum log_level level, const char *format, ...)
{
	va_list ap;
	va_start(ap, format);
	write_line(level, format, ap);
	va_end(ap);
}

/* False when this call site has used up its lines. */
static bool admit(struct log_site *site, enum log_level level)
{
	uint64_t now = time_monotonic_ns();
	if (site->window_start_ns == 0 || now - site->window_start_ns >= WINDOW_NS) {
		unsigned dropped = site->dropped;
		*site = (struct log_site){ .window_start_ns = now };
		if (dropped > 0)
			write_line_args(level, "%u lines like the next one were left out", dropped);
	}
	if (site->count >= LINES_PER_WINDOW) {
		site->dropped++;
		return false;
	}
	site->count++;
	return true;
}

void log_line(struct log_site *site, enum log_level level, const char *format, ...)
{
	if (!admit(site, level))
		return;
	va_list ap;
	va_start(ap, format);
	write_line(level, format, ap);
	va_end(ap);
}
