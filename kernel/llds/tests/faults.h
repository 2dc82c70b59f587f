/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Acts that are done with each allocation, and each copy from and to the user,
 * failing in its turn.
 */
#ifndef _LLDS_FAULTS_H
#define _LLDS_FAULTS_H

#include <errno.h>

#include "named.h"

/**
 * struct act - what is done with failures
 * @prepare: what it needs, done without; NULL, or what was wrong
 * @act: what is done; 0, or the errno
 * @judge: whether it may have come to that, and what is there is right; tidies
 *	up as well
 * @is_long: one run through its points is enough
 */
struct act {
	const char *(*prepare)(void);
	int (*act)(void);
	const char *(*judge)(int error);
	bool is_long;
};

/*
 * Does an act with each of its points failing, and all of that very often; NULL,
 * or what was wrong. Skips what is asked of a kernel that lets nothing fail.
 */
const char *survives(const struct act *act);

/* Whether an act may come to that, if the ABI says nothing else. */
static inline bool is_usual(int error)
{
	return !error || error == ENOMEM || error == EFAULT;
}

#endif /* _LLDS_FAULTS_H */
