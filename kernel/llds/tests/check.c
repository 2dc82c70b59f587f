// SPDX-License-Identifier: MIT OR Apache-2.0
/*
 * Runs the checks of the test machine and counts them.
 *
 * The output is KTAP, as that of the kernel's own tests: for each check one of
 * "ok N NAME", "not ok N NAME # why" and "ok N NAME # SKIP why", remarks after
 * "#", and the totals at the end. `cargo xtask vm` demands that all of this
 * agrees.
 *
 * Every security hole of this module's ancestor, and the check against it:
 *
 *   insmod succeeds although the device     load_without_a_device_fails
 *     could not be made
 *   user pointers are followed without      all of pointers.c (of the version),
 *     copying                                 bad_pointers_are_refused
 *   a value is freed by one process while   a_value_is_whole_while_others_
 *     another copies it out                   change_it
 *   a length is fetched twice               a_length_is_looked_at_once
 *   allocations are not checked (lengths    lengths_of_a_gigabyte_and_of_minus_
 *     of 1 GiB or -1; a node)                 one_are_refused; ../user, *_test.c
 *   more is copied than the caller's        version_fills_its_record_only,
 *     buffer holds                            no_more_is_copied_than_there_is_room
 *   any user wipes the store through a      who_may_only_read_changes_nothing
 *     descriptor that may only read
 *   set of a key that is there changes      set_of_a_key_that_is_there_changes_it
 *     nothing and says nothing
 *   unknown commands are taken for set      unknown_commands_are_refused
 *   leaks on each error path and when the   opens_leak_nothing,
 *     module is unloaded                      loads_leak_nothing;
 *                                             ../user, *_test.c
 *   a whole tree is deleted under one       a_range_goes_and_the_memory_with_it:
 *     spinlock                                the lock is one to sleep with
 *   a hash is taken for the key             a_hash_is_not_taken_for_the_key
 *   no limit of a cgroup sees the memory    a_control_group_pays_and_refuses
 *   a licence that the kernel does not know licence_is_known
 */
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "named.h"

#define SKIPPED '~'

static char reason[512];

const char *checking;

const char *why(const char *format, ...)
{
	va_list list;

	va_start(list, format);
	vsnprintf(reason, sizeof(reason), format, list);
	va_end(list);
	return reason;
}

const char *skip(const char *format, ...)
{
	va_list list;

	reason[0] = SKIPPED;
	va_start(list, format);
	vsnprintf(reason + 1, sizeof(reason) - 1, format, list);
	va_end(list);
	return reason;
}

void note(const char *format, ...)
{
	va_list list;

	printf("# ");
	va_start(list, format);
	vprintf(format, list);
	va_end(list);
	putchar('\n');
	fflush(stdout);
}

unsigned long number(const char *name, unsigned long otherwise)
{
	const char *text = getenv(name);

	return text ? strtoul(text, NULL, 0) : otherwise;
}

const char *content(const char *path)
{
	static char text[1 << 20];
	size_t length = 0;
	ssize_t got;
	int fd = open(path, O_RDONLY);

	if (fd >= 0) {
		while ((got = read(fd, text + length,
				   sizeof(text) - 1 - length)) > 0)
			length += got;
		close(fd);
	}
	text[length] = 0;
	return text;
}

bool tell(const char *path, const char *text)
{
	int fd = open(path, O_WRONLY | O_CLOEXEC);
	bool told = fd >= 0 &&
		    write(fd, text, strlen(text)) == (ssize_t)strlen(text);

	if (fd >= 0)
		close(fd);
	return told;
}

bool is_user_mode(void)
{
	static int is = -1;

	if (is < 0)
		is = strstr(content("/proc/cpuinfo"), "User Mode Linux") != NULL;
	return is;
}

int reap(int pid)
{
	int status = 0;

	if (pid < 0 || waitpid(pid, &status, 0) != pid)
		return -1;
	return status;
}

int device(void)
{
	int fd = open(DEVICE, O_RDWR | O_CLOEXEC);

	if (fd < 0) {
		/* judge() reads the status of the process. */
		note("cannot open %s: %s", DEVICE, strerror(errno));
		_exit(1);
	}
	return fd;
}

int command(int fd, unsigned int number, uint64_t argument)
{
	return syscall(SYS_ioctl, fd, number, argument) ? errno : 0;
}

/*
 * The system call entry of 32-bit programs works for all: number 54 by
 * interrupt 0x80. Not all kernels preserve r8 to r11.
 */
int command_compat(int fd, unsigned int number, uint32_t argument)
{
	long result = 54;

	asm volatile("int $0x80"
		     : "+a"(result)
		     : "b"(fd), "c"(number), "d"(argument)
		     : "memory", "r8", "r9", "r10", "r11");
	return -(int)result;
}

void *low_page(void)
{
	void *page = mmap(NULL, 4096, PROT_READ | PROT_WRITE,
			  MAP_PRIVATE | MAP_ANONYMOUS | MAP_32BIT, -1, 0);

	if (page == MAP_FAILED) {
		note("no page below 4 GiB: %s", strerror(errno));
		_exit(1);
	}
	return page;
}

bool version_is_right(const struct llds_version *version)
{
	return version->abi == LLDS_ABI &&
	       version->key_bytes_max == LLDS_KEY_BYTES_MAX &&
	       version->value_bytes_max == 16 << 20 && !version->reserved[0] &&
	       !version->reserved[1];
}

const char *ask_version(int fd)
{
	struct llds_version version;
	int error;

	memset(&version, 0xff, sizeof(version));
	error = command(fd, LLDS_IOC_VERSION, (uintptr_t)&version);
	DEMAND(!error, "the version: %s", strerror(error));
	DEMAND(version_is_right(&version), "another version");
	return NULL;
}

int load(const char *module, const char *parameters)
{
	int error, fd = open(module, O_RDONLY | O_CLOEXEC);

	if (fd < 0)
		return errno;
	error = syscall(SYS_finit_module, fd, parameters, 0) ? errno : 0;
	close(fd);
	return error;
}

int unload(const char *name)
{
	return syscall(SYS_delete_module, name, O_NONBLOCK) ? errno : 0;
}

uint64_t next_random(uint64_t *state)
{
	uint64_t mixed = *state += 0x9e3779b97f4a7c15;

	/* splitmix64 */
	mixed = (mixed ^ mixed >> 30) * 0xbf58476d1ce4e5b9;
	mixed = (mixed ^ mixed >> 27) * 0x94d049bb133111eb;
	return mixed ^ mixed >> 31;
}

/* Runs a check in a child process, which returns its reason in SHARED. */
static void judge(const struct check *check, char *shared)
{
	int pid, status;

	shared[0] = 0;
	pid = fork();
	if (!pid) {
		const char *found;

		alarm(number("seconds", LIMIT_SECONDS));
		found = check->run();
		if (found)
			snprintf(shared, sizeof(reason), "%s", found);
		_exit(0);
	}
	status = reap(pid);
	/* Stores of a failed check must not disturb the next one. */
	if ((status || shared[0]) && !access(DEVICE, F_OK))
		destroy_all();
	if (status && WIFSIGNALED(status))
		snprintf(shared, sizeof(reason), "ended by signal %d",
			 WTERMSIG(status));
	else if (status)
		snprintf(shared, sizeof(reason), "ended with status %#x",
			 status);
}

/*
 * Whether to run a check: all of them, or those in the comma-separated list
 * 'only', and the first one, which loads the module.
 */
static bool is_wanted(const struct check *check)
{
	const char *only = getenv("only"), *at = only;
	const size_t length = strlen(check->name);

	if (!only || check == loading_checks)
		return true;
	while ((at = strstr(at, check->name))) {
		if ((at == only || at[-1] == ',') &&
		    (!at[length] || at[length] == ','))
			return true;
		at += length;
	}
	return false;
}

int main(void)
{
	static const struct check *const lists[] = {
		loading_checks, device_checks, pointer_checks, data_checks,
		mapping_checks, seqlock_checks, store_checks, list_checks,
		quota_checks, place_checks, sharing_checks, hostile_checks,
		leak_checks, fault_call_checks, fault_run_checks,
		kernel_checks,
	};
	unsigned int list, passed = 0, failed = 0, skipped = 0, all = 0, at = 0;
	const struct check *check;
	char *shared = mmap(NULL, sizeof(reason), PROT_READ | PROT_WRITE,
			    MAP_SHARED | MAP_ANONYMOUS, -1, 0);

	/* Otherwise a page may become a huge page, which looks like a leak. */
	if (shared == MAP_FAILED || prctl(PR_SET_THP_DISABLE, 1, 0, 0, 0))
		return 1;
	for (list = 0; list < sizeof(lists) / sizeof(*lists); list++)
		for (check = lists[list]; check->name; check++)
			all += is_wanted(check);
	printf("TAP version 13\n1..%u\n", all);
	fflush(stdout);
	for (list = 0; list < sizeof(lists) / sizeof(*lists); list++) {
		for (check = lists[list]; check->name; check++) {
			struct timespec from, to;
			long milliseconds;

			if (!is_wanted(check))
				continue;
			/* Shows in which check a machine stopped. */
			checking = check->name;
			note("begins %s", checking);
			clock_gettime(CLOCK_MONOTONIC, &from);
			judge(check, shared);
			clock_gettime(CLOCK_MONOTONIC, &to);
			at++;
			if (!shared[0]) {
				passed++;
				printf("ok %u %s\n", at, check->name);
			} else if (shared[0] == SKIPPED) {
				skipped++;
				printf("ok %u %s # SKIP %s\n", at, check->name,
				       shared + 1);
			} else {
				failed++;
				printf("not ok %u %s # %s\n", at, check->name,
				       shared);
			}
			milliseconds = (to.tv_sec - from.tv_sec) * 1000 +
				       (to.tv_nsec - from.tv_nsec) / 1000000;
			if (milliseconds >= 1000)
				note("took %ld ms", milliseconds);
		}
	}
	note("Totals: pass:%u fail:%u xfail:0 xpass:0 skip:%u error:0", passed,
	     failed, skipped);
	return failed != 0;
}
