// SPDX-License-Identifier: MIT OR Apache-2.0
/*
 * Tests of the engine in user space.
 *
 * Random changes of a store are made to a sorted array as well, and both must
 * have the same pairs in the same order at all times; so must the inner
 * structure be what the headers say. Then each allocation of such a run fails
 * in its turn, and the store must be as it was before the change that failed;
 * and each copy from and to the user. Readers without the lock look at what
 * other threads change.
 *
 * usage: test [SEED [STEPS [in-sight]]]
 *
 * Prints a line for each test, and the seed. The exit code is 0 if all passed.
 */
#include "test.h"

int main(int argc, char **argv)
{
	u32 steps = 10000;

	if (argc > 1)
		seed = strtoull(argv[1], NULL, 0);
	if (argc > 2)
		steps = strtoul(argv[2], NULL, 0);
	replay(seed);
	printf("seed %llu, %u steps\n", (unsigned long long)seed, steps);
	if (argc <= 3) {
		test_stores(steps);
		test_requests(steps);
		test_runs_as_one(steps);
	}
	test_in_sight(steps);
	return 0;
}
