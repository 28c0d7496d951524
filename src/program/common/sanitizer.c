/* SPDX-License-Identifier: Apache-2.0 */
/* Only in sanitizer builds. These programs start with an empty environment and confine themselves: the leak check at exit, which traces its own process, can't
 * work there. Their libraries' leaks are found by the unit tests. */
const char *__asan_default_options(void);

const char *__asan_default_options(void)
{
	return "detect_leaks=0";
}
