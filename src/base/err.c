/* SPDX-License-Identifier: Apache-2.0 */
#include "base/err.h"

#include <errno.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static const char *const code_names[ERR_CODE_MAX] = {
	[ERR_NONE] = "none",
	[ERR_SYSTEM] = "system",
	[ERR_MEMORY] = "memory",
	[ERR_USAGE] = "usage",
	[ERR_INVALID] = "invalid",
	[ERR_UNSUPPORTED] = "unsupported",
	[ERR_PROTOCOL] = "protocol",
	[ERR_CLOSED] = "closed",
	[ERR_LIMIT] = "limit",
	[ERR_DENIED] = "denied",
	[ERR_NOT_FOUND] = "not-found",
	[ERR_EXISTS] = "exists",
	[ERR_CONFLICT] = "conflict",
	[ERR_CORRUPT] = "corrupt",
	[ERR_TIMEOUT] = "timeout",
};

#define ELLIPSIS "\xe2\x80\xa6"

/* Ends a text that was cut: drops a partial UTF-8 sequence, then puts the mark. */
static void mark_cut(struct err *err)
{
	size_t end = sizeof(err->text) - sizeof(ELLIPSIS);
	while (end > 0 && ((unsigned char)err->text[end] & 0xc0) == 0x80)
		end--;
	memcpy(err->text + end, ELLIPSIS, sizeof(ELLIPSIS));
}

/* Appends; a sentence stays on one line whatever was put into it. */
__attribute__((format(printf, 3, 0)))
static size_t append(struct err *err, size_t at, const char *format, va_list ap)
{
	size_t room = sizeof(err->text) - at;
	int n = vsnprintf(err->text + at, room, format, ap);
	if (n < 0) {
		err->text[at] = '\0';
		return at;
	}
	bool cut = (size_t)n >= room;
	size_t end = cut ? sizeof(err->text) - 1 : at + (size_t)n;
	for (size_t i = at; i < end; i++)
		if (err->text[i] == '\n' || err->text[i] == '\r')
			err->text[i] = ' ';
	if (cut)
		mark_cut(err);
	return strlen(err->text);
}

__attribute__((format(printf, 3, 4)))
static size_t append_args(struct err *err, size_t at, const char *format, ...)
{
	va_list ap;
	va_start(ap, format);
	size_t end = append(err, at, format, ap);
	va_end(ap);
	return end;
}

int err_set(struct err *err, enum err_code code, const char *format, ...)
{
	if (!err)
		return -1;
	/* Formatted aside first: the arguments may point into err->text. */
	struct err fresh = { .code = code };
	va_list ap;
	va_start(ap, format);
	append(&fresh, 0, format, ap);
	va_end(ap);
	*err = fresh;
	return -1;
}

/* What needs no locale: musl's strerror(3) has none to look for as long as nobody sets one. */
static const char *describe(int sysno)
{
#ifdef __GLIBC__
	return strerrordesc_np(sysno);
#else
	return strerror(sysno);
#endif
}

int err_sys(struct err *err, int sysno, const char *format, ...)
{
	if (!err)
		return -1;
	if (sysno < 0)
		sysno = -sysno;
	struct err fresh = { .code = sysno == ENOMEM ? ERR_MEMORY : ERR_SYSTEM, .sys = sysno };
	va_list ap;
	va_start(ap, format);
	size_t end = append(&fresh, 0, format, ap);
	va_end(ap);
	const char *reason = describe(sysno);
	if (reason)
		append_args(&fresh, end, ": %s", reason);
	else
		append_args(&fresh, end, ": error number %d", sysno);
	*err = fresh;
	return -1;
}

int err_wrap(struct err *err, const char *format, ...)
{
	if (!err)
		return -1;
	struct err fresh = { .code = err->code, .sys = err->sys };
	va_list ap;
	va_start(ap, format);
	size_t end = append(&fresh, 0, format, ap);
	va_end(ap);
	append_args(&fresh, end, ": %s", err->text);
	*err = fresh;
	return -1;
}

const char *err_code_name(enum err_code code)
{
	if ((unsigned)code >= ERR_CODE_MAX || !code_names[code])
		return "unknown";
	return code_names[code];
}

void err_print(const char *program, const struct err *err)
{
	char line[sizeof(err->text) + 128];
	int n = snprintf(line, sizeof(line) - 1, "%.100s: %s", program, err->text);
	if (n < 0)
		return;
	size_t len = (size_t)n < sizeof(line) - 1 ? (size_t)n : sizeof(line) - 2;
	line[len++] = '\n';
	ssize_t ignored = write(STDERR_FILENO, line, len);
	(void)ignored; /* nowhere left to tell */
}
