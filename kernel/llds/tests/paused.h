/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * A page whose first touch is held (userfaultfd): a call that copies from it
 * or to it is inside its copy for as long as the check likes.
 */
#ifndef _LLDS_PAUSED_H
#define _LLDS_PAUSED_H

#include "check.h"

struct paused {
	int fd;
	char *page;
};

/* Makes such a page; NULL, or what was wrong. */
const char *pause_prepare(struct paused *paused);
/* Returns when somebody has arrived there. */
const char *pause_arrive(struct paused *paused);
/* Lets him go on, with a page of zeros. */
const char *pause_end(struct paused *paused);

#endif /* _LLDS_PAUSED_H */
