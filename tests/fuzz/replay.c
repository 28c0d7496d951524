/* SPDX-License-Identifier: Apache-2.0 */
/* Replays a corpus folder through a libFuzzer harness, so that every finding stays a test in ordinary builds. */
#include <dirent.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static int replay_file(const char *dir, const char *name)
{
	char path[4096];
	snprintf(path, sizeof(path), "%s/%s", dir, name);
	FILE *f = fopen(path, "rbe");
	if (!f) {
		fprintf(stderr, "replay: cannot open %s\n", path);
		return -1;
	}
	static uint8_t input[1024 * 1024];
	size_t len = fread(input, 1, sizeof(input), f);
	fclose(f);
	/* An exact-size heap copy lets the address sanitizer see reads past the end. */
	uint8_t *copy = malloc(len ? len : 1);
	if (!copy)
		return -1;
	memcpy(copy, input, len);
	LLVMFuzzerTestOneInput(copy, len);
	free(copy);
	return 0;
}

int main(int argc, char **argv)
{
	if (argc != 2) {
		fprintf(stderr, "usage: %s CORPUS-FOLDER\n", argv[0]);
		return 2;
	}
	DIR *d = opendir(argv[1]);
	if (!d) {
		fprintf(stderr, "replay: cannot open the corpus folder %s\n", argv[1]);
		return 1;
	}
	unsigned seen = 0;
	for (struct dirent *e; (e = readdir(d));) {
		if (e->d_name[0] == '.')
			continue;
		if (replay_file(argv[1], e->d_name) < 0)
			return 1;
		seen++;
	}
	closedir(d);
	if (seen == 0) {
		fprintf(stderr, "replay: the corpus folder %s is empty: nothing was tested\n", argv[1]);
		return 1;
	}
	printf("replayed %u inputs\n", seen);
	return 0;
}
