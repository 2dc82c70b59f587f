// SPDX-License-Identifier: MIT OR Apache-2.0
/*
 * Lets each allocation, and each copy from and to the user, fail once, in
 * kernels with fault injection (/proc/self/fail-nth).
 *
 * An act is done with the first of these points failing, then with the second
 * one, and so on up to the last. Each time it must succeed, or fail with an
 * allowed error. Other data is unchanged, and what the act changes is as before
 * or as after it. After many repetitions, no memory may be missing. The points
 * include those of the kernel before and after the module's code.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <unistd.h>

#include "faults.h"

#define NTH "/proc/thread-self/fail-nth"
#define SETTINGS "/sys/kernel/debug/"
/* More than the points of any act here. */
#define POINTS_MAX 5000
/*
 * The end is reached when this many successive attempts had no failure. One
 * attempt is not enough: an allocation that a cache serves is not a point, and
 * that varies.
 */
#define QUIET_MAX 3

static const struct act *doing;
static int nth = -1;

/* Lets all points fail, without messages in the log. */
static const char *begin_to_fail(void)
{
	static const char *const settings[][2] = {
		{ "failslab/ignore-gfp-wait", "0" },
		{ "failslab/verbose", "0" },
		{ "fail_page_alloc/ignore-gfp-wait", "0" },
		{ "fail_page_alloc/ignore-gfp-highmem", "0" },
		{ "fail_page_alloc/min-order", "0" },
		{ "fail_page_alloc/verbose", "0" },
		{ "fail_usercopy/verbose", "0" },
	};
	char path[128];
	size_t i;

	nth = open(NTH, O_RDWR | O_CLOEXEC);
	if (nth < 0)
		return skip("this kernel lets nothing fail: %s", strerror(errno));
	mount("debugfs", SETTINGS, "debugfs", 0, NULL);
	for (i = 0; i < sizeof(settings) / sizeof(*settings); i++) {
		snprintf(path, sizeof(path), SETTINGS "%s", settings[i][0]);
		DEMAND(tell(path, settings[i][1]), "%s cannot be set", path);
	}
	return NULL;
}

/* Lets the N-th point from now on fail. */
static bool arm(unsigned int n)
{
	char text[16];
	int length = snprintf(text, sizeof(text), "%u", n);

	return pwrite(nth, text, length, 0) == length;
}

/* Lets no point fail from now on; returns whether one has failed. */
static bool disarm(void)
{
	char text[16] = { 0 };
	bool has_failed = pread(nth, text, sizeof(text) - 1, 0) > 0 &&
			  !strtoul(text, NULL, 10);

	/* This copy is a point too: then it has disarmed itself by failing. */
	if (pwrite(nth, "0", 1, 0) != 1 && errno != EFAULT)
		_exit(1);
	return has_failed;
}

/* Counts of the points, and of the errors that they caused. */
static struct {
	unsigned int points, refused, faulted;
} told;

/*
 * Lets each point of the act fail once. Does the act once without a failure
 * before, so that first-time allocations are not points.
 */
static const char *go_through(void)
{
	unsigned int n, quiet = 0;

	memset(&told, 0, sizeof(told));
	for (n = 0; n < POINTS_MAX; n++) {
		const char *wrong = doing->prepare();
		bool has_failed;
		int error;

		if (wrong)
			return wrong;
		DEMAND(arm(n), "arming: %s", strerror(errno));
		error = doing->act();
		has_failed = disarm();
		wrong = doing->judge(error);
		if (wrong) {
			char copy[256];

			snprintf(copy, sizeof(copy), "%s", wrong);
			return why("point %u, error %d: %s", n, error, copy);
		}
		if (!n || !has_failed)
			DEMAND(!error, "without a failure, it gave %d", error);
		if (!n)
			continue;
		quiet = has_failed ? 0 : quiet + 1;
		if (quiet == QUIET_MAX)
			break;
		if (!has_failed)
			continue;
		told.points++;
		told.refused += error == ENOMEM;
		told.faulted += error == EFAULT;
	}
	DEMAND(n < POINTS_MAX, "no end after %u points", n);
	DEMAND(told.points, "the act has no points");
	return NULL;
}

const char *survives(const struct act *act)
{
	const char *wrong = begin_to_fail();

	if (wrong)
		return wrong;
	wrong = let_all_in();
	if (wrong)
		return wrong;
	doing = act;
	wrong = go_through();
	if (wrong)
		return wrong;
	note("points of %s: %u; %u ENOMEM, %u EFAULT, %u made up for", checking,
	     told.points, told.refused, told.faulted,
	     told.points - told.refused - told.faulted);
	if (!act->is_long)
		wrong = leaks(go_through, 10, number("sweeps", 100));
	return wrong ? wrong : reload("");
}
