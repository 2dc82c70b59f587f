/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Shared code of the test machine's checks: definition and counting of checks,
 * and access to the device.
 */
#ifndef _LLDS_CHECK_H
#define _LLDS_CHECK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "../uapi/llds.h"

/*
 * A check returns NULL if the statement of its name is true, or the reason why
 * not: see why(). It runs in a child process for at most LIMIT_SECONDS, or the
 * 'seconds' of the kernel's command line. A crash or a timeout is a failure.
 */
struct check {
	const char *name;
	const char *(*run)(void);
};

#define LIMIT_SECONDS 300
#define NO_COMPAT "a kernel in user mode has no programs of 32 bits"

/* Lists of checks in the order in which they run, each terminated by {}. */
extern const struct check loading_checks[];
extern const struct check device_checks[];
extern const struct check pointer_checks[];
extern const struct check data_checks[];
extern const struct check mapping_checks[];
extern const struct check seqlock_checks[];
extern const struct check store_checks[];
extern const struct check list_checks[];
extern const struct check quota_checks[];
extern const struct check place_checks[];
extern const struct check sharing_checks[];
extern const struct check hostile_checks[];
extern const struct check leak_checks[];
extern const struct check fault_call_checks[];
extern const struct check fault_run_checks[];
extern const struct check kernel_checks[];

/* Formats the reason of a failure. */
const char *why(const char *format, ...)
	__attribute__((format(printf, 1, 2)));
/* Formats the reason why this machine cannot run a check, which is skipped. */
const char *skip(const char *format, ...)
	__attribute__((format(printf, 1, 2)));
/* Prints a remark on the console. */
void note(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* Fails the check unless CONDITION. The rest is the reason. */
#define DEMAND(condition, ...)                                                 \
	do {                                                                   \
		if (!(condition))                                              \
			return why(__VA_ARGS__);                               \
	} while (0)

/* The name of the running check. */
extern const char *checking;

/* A number from the kernel's command line, or DEFAULT. */
unsigned long number(const char *name, unsigned long otherwise);
/* The text of a file; empty if it does not exist. Valid until the next call. */
const char *content(const char *path);

/* Writes a line to a file; false if that fails. */
bool tell(const char *path, const char *text);
/*
 * Whether this is a user-mode kernel: it has one processor, no 32-bit programs,
 * and does not control the processor's memory protection.
 */
bool is_user_mode(void);

/* Waits for a child process; returns 0 if it succeeded. */
int reap(int pid);

#define DEVICE "/dev/llds"

/* Opens the device; ends the process if that fails. */
int device(void);
/*
 * ioctl by the 64-bit and by the 32-bit system call; returns 0, or the errno.
 * The latter REQUIRES !is_user_mode().
 */
int command(int fd, unsigned int number, uint64_t argument);
int command_compat(int fd, unsigned int number, uint32_t argument);
/* A page below 4 GiB, which 32-bit system calls can address. */
void *low_page(void);
/* Whether this is the module's version. */
bool version_is_right(const struct llds_version *version);
/* Asks for the version; returns NULL, or the error. */
const char *ask_version(int fd);

/* Loads a module; returns 0, or the errno. PARAMETERS may be empty. */
int load(const char *module, const char *parameters);
/* Unloads a module without waiting; returns 0, or the errno. */
int unload(const char *name);
#define MODULE "/llds.ko"

/*
 * Calls @once @warm times, then @times times, and fails if the latter leak: one
 * slab object or more for every second call, or that many pages.
 */
const char *leaks(const char *(*once)(void), unsigned long warm,
		  unsigned long times);

/* Pseudorandom numbers from a seed. */
uint64_t next_random(uint64_t *state);

#endif /* _LLDS_CHECK_H */
