/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * A page whose first access blocks (userfaultfd): a call that copies from it or
 * to it stays inside its copy until the check releases it.
 */
#ifndef _LLDS_PAUSED_H
#define _LLDS_PAUSED_H

#include "check.h"

struct paused {
	int fd;
	char *page;
};

/* Makes such a page; returns NULL, or the error. */
const char *pause_prepare(struct paused *paused);
/* Returns when a thread is blocked at the page. */
const char *pause_arrive(struct paused *paused);
/* Releases the thread, with a page of zeros. */
const char *pause_end(struct paused *paused);

#endif /* _LLDS_PAUSED_H */
