// SPDX-License-Identifier: MIT OR Apache-2.0
/*
 * A fuzz target: runs any bytes as operations on two stores with different
 * indexes. Both must change and answer alike, and keep the invariants of their
 * headers.
 *
 * The input is a sequence of runs: room for the answers (2 bytes), flags of the
 * run (1), access of the user (1), number of 8-byte words of operations (1),
 * and the operations.
 *
 * libFuzzer calls it with millions of inputs. Without libFuzzer, main() reads
 * the files that are named.
 */
#include "runs.h"

#define HEAD 5
/* Maximum length of an input. */
#define INPUT_BYTES_MAX 65536
#define SALT 7

int LLVMFuzzerTestOneInput(const u8 *input, size_t bytes);

struct fuzzed {
	struct llds_shared shared;
	u8 *answers;
	struct llds_run run;
	int error;
};

/* Memory of exactly this length, so that a sanitizer sees an overrun. */
static u8 *exact(u32 bytes)
{
	u8 *at = malloc(bytes ? bytes : 1);

	CHECK(at);
	return at;
}

static void do_run(struct fuzzed *fuzzed, const u8 *from, u32 bytes, u32 room,
		   u32 flags, u32 may)
{
	fuzzed->answers = exact(room);
	fuzzed->run = (struct llds_run){
		.ops = (uintptr_t)from,
		.ops_bytes = bytes,
		.answers = (uintptr_t)fuzzed->answers,
		.answers_bytes = room,
		.flags = flags,
	};
	fuzzed->error = llds_request(&fuzzed->shared, &fuzzed->run, may, NULL);
}

/* Compares all that a user can observe of two runs. */
static void compare(const struct fuzzed *a, const struct fuzzed *b, u32 bytes,
		    u32 room)
{
	CHECK(a->error == b->error);
	CHECK(a->run.done == b->run.done);
	CHECK(a->run.done_bytes == b->run.done_bytes);
	CHECK(a->run.answers_bytes == b->run.answers_bytes);
	CHECK(a->run.done_bytes <= bytes);
	/* More than the room: this is the room that the answers need. */
	if (a->error || a->run.answers_bytes > room)
		return;
	CHECK(!memcmp(a->answers, b->answers, a->run.answers_bytes));
}

int LLVMFuzzerTestOneInput(const u8 *input, size_t bytes)
{
	static const enum llds_index indexes[] = { LLDS_INDEX_DEFAULT,
						   LLDS_INDEX_TREE };
	struct fuzzed fuzzed[2];
	struct model model = { 0 };
	size_t at = 0;
	u32 i;

	if (bytes > INPUT_BYTES_MAX)
		return 0;
	for (i = 0; i < 2; i++)
		CHECK(!llds_shared_init(&fuzzed[i].shared, indexes[i],
					1ULL << 40, VALUE_BYTES_MAX, SALT));
	while (bytes - at >= HEAD) {
		const u8 *head = input + at;
		const u32 room = head[0] | (u32)head[1] << 8;
		u32 run_bytes = 8 * head[4];
		u8 *run;

		at += HEAD;
		if (run_bytes > bytes - at)
			run_bytes = bytes - at;
		run = exact(run_bytes);
		memcpy(run, input + at, run_bytes);
		at += run_bytes;
		for (i = 0; i < 2; i++)
			do_run(&fuzzed[i], run, run_bytes, room, head[2],
			       head[3] & ALL);
		compare(&fuzzed[0], &fuzzed[1], run_bytes, room);
		for (i = 0; i < 2; i++)
			free(fuzzed[i].answers);
		free(run);
	}
	model_take(&model, &fuzzed[1].shared.store);
	for (i = 0; i < 2; i++) {
		check(&fuzzed[i].shared.store, &model);
		llds_shared_drop(&fuzzed[i].shared);
	}
	model_drop(&model);
	return 0;
}

#ifdef LLDS_REPLAY
/* Uses files as inputs; fails if one cannot be read. */
int main(int argc, char **argv)
{
	static u8 input[INPUT_BYTES_MAX];
	size_t bytes;
	FILE *file;
	int i;

	for (i = 1; i < argc; i++) {
		file = fopen(argv[i], "rb");
		if (!file) {
			perror(argv[i]);
			return 1;
		}
		bytes = fread(input, 1, sizeof(input), file);
		fclose(file);
		LLVMFuzzerTestOneInput(input, bytes);
	}
	printf("ok: %d inputs\n", argc - 1);
	return argc < 2;
}
#endif
