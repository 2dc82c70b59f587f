/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Builds runs of operations for the checks, and compares their answers.
 */
#ifndef _LLDS_LINE_H
#define _LLDS_LINE_H

#include "check.h"

/* Bytes of the operations of a line, and of the answers. */
#define ROOM (1 << 20)

/* A run that is being built, and its answers. */
struct line {
	unsigned char *ops, *answers;
	size_t bytes;
	struct llds_run run;
};

/* Rounds up to a multiple of 8. */
size_t padded(size_t bytes);

struct line line(void);

/* Appends an operation. */
void put(struct line *line, struct llds_op op, const void *key,
	 const void *value, const void *other);
void put_set(struct line *line, const char *key, const char *value);
void put_get(struct line *line, const char *key);

/*
 * A run of the operations, with all the room; the next put() begins a new one.
 */
struct llds_run *whole(struct line *line);
/* Does the whole run; returns 0 or the errno. */
int go(int fd, struct line *line);

/* Whether the answer at *AT is this one; advances *AT to the next. */
bool is_answer(struct line *line, size_t *at, int status, const void *bytes,
	       size_t n);

/* Demands that the answer at 'at' of the line 'l' is this one. */
#define ANSWER(status, text)                                                   \
	DEMAND(is_answer(&l, &at, status, text, strlen(text)),                 \
	       "line %d: another answer than \"%s\"", __LINE__, text)

#endif /* _LLDS_LINE_H */
