// SPDX-License-Identifier: MIT OR Apache-2.0
/* Builds runs of operations for the checks, and compares their answers. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "line.h"

size_t padded(size_t bytes)
{
	return (bytes + 7) & ~(size_t)7;
}

struct line line(void)
{
	struct line line = { .ops = calloc(1, ROOM), .answers = calloc(1, ROOM) };

	if (!line.ops || !line.answers)
		_exit(1);
	return line;
}

void put(struct line *line, struct llds_op op, const void *key,
	 const void *value, const void *other)
{
	unsigned char *to = line->ops + line->bytes;
	size_t bytes = padded(sizeof(op) + op.key_bytes + op.value_bytes +
			      op.other_bytes);

	if (line->bytes + bytes > ROOM)
		_exit(2);
	memset(to, 0, bytes);
	memcpy(to, &op, sizeof(op));
	to += sizeof(op);
	memcpy(to, key, op.key_bytes);
	if (op.value_bytes)
		memcpy(to + op.key_bytes, value, op.value_bytes);
	if (op.other_bytes)
		memcpy(to + op.key_bytes + op.value_bytes, other,
		       op.other_bytes);
	line->bytes += bytes;
}

void put_set(struct line *line, const char *key, const char *value)
{
	put(line, (struct llds_op){ .code = LLDS_SET, .key_bytes = strlen(key),
				    .value_bytes = strlen(value) },
	    key, value, NULL);
}

void put_get(struct line *line, const char *key)
{
	put(line, (struct llds_op){ .code = LLDS_GET,
				    .key_bytes = strlen(key) },
	    key, NULL, NULL);
}

struct llds_run *whole(struct line *line)
{
	line->run = (struct llds_run){ .ops = (uintptr_t)line->ops,
				       .ops_bytes = line->bytes,
				       .answers = (uintptr_t)line->answers,
				       .answers_bytes = ROOM };
	line->bytes = 0;
	return &line->run;
}

int go(int fd, struct line *line)
{
	int error = command(fd, LLDS_IOC_RUN, (uintptr_t)whole(line));

	return !error && line->run.done_bytes != line->run.ops_bytes ? EPROTO :
								       error;
}

bool is_answer(struct line *line, size_t *at, int status, const void *bytes,
	       size_t n)
{
	struct llds_answer answer;

	memcpy(&answer, line->answers + *at, sizeof(answer));
	*at += sizeof(answer);
	if (answer.status != status || answer.bytes != n ||
	    (n && memcmp(line->answers + *at, bytes, n)))
		return false;
	*at += padded(n);
	return true;
}
