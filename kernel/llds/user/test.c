// SPDX-License-Identifier: MIT OR Apache-2.0
/*
 * Tests of the engine in user space.
 *
 * The tests make random changes to a store and to a sorted array. Both must
 * always have the same pairs in the same order, and the store the invariants of
 * its headers. Then each allocation of such a run fails once, and each copy
 * from and to the user: the store must be as it was before the change that
 * failed. Seqlock reads run while other threads change the store.
 *
 * usage: test [SEED [STEPS [mapped|full]]]
 *
 * With "mapped", only the tests of seqlock reads run; with "full", only those of
 * stores with all the memory that there can be, for builds in which that is
 * little.
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
	if (argc > 3 && !strcmp(argv[3], "full")) {
		test_full_stores();
		return 0;
	}
	if (argc <= 3) {
		test_stores(steps);
		test_requests(steps);
		test_runs_as_one(steps);
	}
	test_mapped(steps);
	return 0;
}
