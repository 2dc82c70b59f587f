/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Acts of which each allocation, and each copy from and to the user, fails
 * once.
 */
#ifndef _LLDS_FAULTS_H
#define _LLDS_FAULTS_H

#include <errno.h>

#include "named.h"

/**
 * struct act - an act to test with failures
 * @prepare: prepares the act without failures; returns NULL, or an error
 * @act: the act; returns 0, or the errno
 * @judge: checks the result of the act and the state after it, and cleans up
 * @is_long: one pass over its points is enough
 */
struct act {
	const char *(*prepare)(void);
	int (*act)(void);
	const char *(*judge)(int error);
	bool is_long;
};

/*
 * Does an act with each of its points failing once, many times over. Returns
 * NULL, or the error. Skips the check in a kernel without fault injection.
 */
const char *survives(const struct act *act);

/* Whether this result is allowed, unless the ABI says otherwise. */
static inline bool is_usual(int error)
{
	return !error || error == ENOMEM || error == EFAULT;
}

#endif /* _LLDS_FAULTS_H */
