/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * What the checks of the test machine share: how a check is written and
 * counted, and the device as they see it.
 */
#ifndef _LLDS_CHECK_H
#define _LLDS_CHECK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "../uapi/llds.h"

/*
 * A check returns NULL if what its name says holds, or why not: see why().
 * It runs in a process of its own and has LIMIT_SECONDS, or what the kernel's
 * command line says, so that one that crashes or hangs is one that failed.
 */
struct check {
	const char *name;
	const char *(*run)(void);
};

#define LIMIT_SECONDS 120
#define NO_COMPAT "a kernel in user mode has no programs of 32 bits"

/* Lists of checks, in the order in which they run, each ended by {}. */
extern const struct check loading_checks[];
extern const struct check device_checks[];
extern const struct check pointer_checks[];
extern const struct check data_checks[];
extern const struct check mapping_checks[];
extern const struct check sight_checks[];
extern const struct check store_checks[];
extern const struct check list_checks[];
extern const struct check quota_checks[];
extern const struct check sharing_checks[];
extern const struct check hostile_checks[];
extern const struct check leak_checks[];
extern const struct check fault_call_checks[];
extern const struct check fault_run_checks[];
extern const struct check kernel_checks[];

/* Text for the reason of a check that failed. */
const char *why(const char *format, ...)
	__attribute__((format(printf, 1, 2)));
/* The reason of a check that this machine cannot run: counted as skipped. */
const char *skip(const char *format, ...)
	__attribute__((format(printf, 1, 2)));
/* A remark on the console, which is not counted. */
void note(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* Ends the check unless CONDITION. The rest is the reason. */
#define DEMAND(condition, ...)                                                 \
	do {                                                                   \
		if (!(condition))                                              \
			return why(__VA_ARGS__);                               \
	} while (0)

/* The name of the check that runs. */
extern const char *checking;

/* A number from the kernel's command line, or DEFAULT. */
unsigned long number(const char *name, unsigned long otherwise);
/* A file, as a text; empty if there is none. Valid until the next call. */
const char *content(const char *path);

/* Writes a line to a file; false if that fails. */
bool tell(const char *path, const char *text);
/*
 * Whether this is a kernel in user mode: it has one processor, knows no programs
 * of 32 bits, and runs on a processor whose guards are not its own.
 */
bool is_user_mode(void);

/* Waits for a process of one's own; 0 if it ended well. */
int reap(int pid);

#define DEVICE "/dev/llds"

/* Opens the device; ends the process if that fails. */
int device(void);
/*
 * ioctl: 0, or the errno. Through the door of 64 and of 32 bits. REQUIRES of the
 * latter: !is_user_mode().
 */
int command(int fd, unsigned int number, uint64_t argument);
int command_compat(int fd, unsigned int number, uint32_t argument);
/* One page below 4 GiB, which either door can name. */
void *low_page(void);
/* Whether it is what the module says of itself. */
bool version_is_right(const struct llds_version *version);
/* Asks for the version; NULL, or what was wrong. */
const char *ask_version(int fd);

/* Puts the module in; 0, or the errno. PARAMETERS may be empty. */
int load(const char *module, const char *parameters);
/* Takes a module out, without waiting; 0, or the errno. */
int unload(const char *name);
#define MODULE "/llds.ko"

/*
 * Does something so often, after some times that do not count, and tells whether
 * memory is missing then: for each second time an object of the allocator, or a
 * page if they are many.
 */
const char *leaks(const char *(*once)(void), unsigned long warm,
		  unsigned long times);

/* Random numbers, the same for the same seed. */
uint64_t next_random(uint64_t *state);

#endif /* _LLDS_CHECK_H */
