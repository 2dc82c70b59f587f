// SPDX-License-Identifier: MIT OR Apache-2.0
/*
 * Random hostile calls: any command with any pointer, by 64-bit and 32-bit
 * system calls. The allowed results of each call are known. The kernel's
 * command line sets hostile_calls and hostile_seed.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "named.h"

/* Whether the kernel handles it for any file: FIOCLEX, FS_IOC_FIEMAP, ... */
static bool is_of_any_file(unsigned int number)
{
	static const unsigned char types[] = { 0, 'T', 'X', 'f', 0x12, 0x94 };

	return memchr(types, _IOC_TYPE(number), sizeof(types));
}

static unsigned int pick_command(uint64_t *state)
{
	static const unsigned int ours[] = { LLDS_IOC_ATTACH, LLDS_IOC_DESTROY,
					     LLDS_IOC_LIST, LLDS_IOC_STATS };
	uint64_t random = next_random(state);
	unsigned int number;

	switch (random & 7) {
	case 0:
		do
			number = next_random(state);
		while (is_of_any_file(number));
		return number;
	case 1:
	case 2:
		/* One of the module's, with one bit changed. */
		number = LLDS_IOC_VERSION ^ 1u << (random >> 8 & 31);
		return is_of_any_file(number) ? LLDS_IOC_VERSION : number;
	case 3:
		return LLDS_IOC_RUN;
	case 4:
		return ours[random >> 8 & 3];
	case 5:
		return _IOC(random >> 8 & 3, LLDS_IOC_MAGIC, random >> 16 & 15,
			    random >> 32 & 16383);
	default:
		return LLDS_IOC_VERSION;
	}
}

static const uint32_t lengths[] = { 0, 1, 8, 16, 24, 40, 64, 255, 256, 257,
				    4096, 16384, 65536, 1u << 30, 0x7fffffff,
				    0xffffffff };

/* Makes a hostile run, if the page has room for one. */
static void make_run(uint64_t *state, char *page, unsigned int at)
{
	uint64_t random = next_random(state);
	struct llds_run run = {
		.ops = (uintptr_t)page + (next_random(state) & 4095),
		.answers = (uintptr_t)page + (next_random(state) & 4095),
		.ops_bytes = lengths[random & 15],
		.answers_bytes = lengths[random >> 4 & 15],
		.flags = random >> 8 & 63 ? 0 : 1u << (random >> 14 & 31),
		.reserved = random >> 19 & 63 ? 0 : 1,
	};
	unsigned int i;

	/* Operations all over the page, most of them valid. */
	for (i = 0; i + 64 <= 4096; i += 64) {
		struct llds_op op = { 0 };

		random = next_random(state);
		op.code = random & 7;
		op.flags = random >> 3 & 3 ? 0 : random >> 8;
		op.key_bytes = random >> 16 & 7 ? random >> 19 & 7 :
						  lengths[random >> 22 & 15];
		op.value_bytes = random >> 26 & 7 ? random >> 29 & 8 :
						    lengths[random >> 33 & 15];
		op.other_bytes = random >> 37 & 7 ? 0 :
						    lengths[random >> 40 & 15];
		memcpy(page + i, &op, sizeof(op));
	}
	switch (random >> 44 & 15) {
	case 0:
		run.ops = next_random(state);
		break;
	case 1:
		run.answers = next_random(state);
		break;
	default:
		run.ops = (uintptr_t)page + (random >> 48 & 31) * 64;
	}
	memcpy(page + at, &run, sizeof(run));
}

/* A random address for data, mostly in the page. */
static uint64_t an_address(uint64_t *state, char *page)
{
	uint64_t random = next_random(state);

	return random & 15 ? (uintptr_t)page + (random >> 8 & 8191) :
			     next_random(state);
}

/* The address and length of a name, mostly one of a few. */
static uint64_t a_name(uint64_t *state, char *page, uint32_t *bytes)
{
	static const char *const few[] = { "h", "hostile", "hh", "\xff" };
	uint64_t random = next_random(state);

	if (random & 3) {
		*bytes = strlen(few[random >> 2 & 3]);
		return (uintptr_t)few[random >> 2 & 3];
	}
	*bytes = lengths[random >> 8 & 15];
	return an_address(state, page);
}

static void make_attach(uint64_t *state, char *page, unsigned int at)
{
	struct llds_attach attach = { 0 };
	uint64_t random = next_random(state);

	attach.name = a_name(state, page, &attach.name_bytes);
	attach.bytes_max = random & 1 ? 0 : next_random(state);
	attach.mode = random & 14 ? random >> 8 & 0666 : random >> 8;
	attach.flags = random & 0x70 ? random >> 32 & 7 : random >> 32;
	attach.uid = random >> 40 & 7 ? 0 : random >> 44;
	random = next_random(state);
	attach.numa = random & 7 ? random >> 4 & 3 : random >> 4;
	attach.node = random & 0x300 ? 0 : random >> 32;
	memcpy(page + at, &attach, sizeof(attach));
}

static void make_destroy(uint64_t *state, char *page, unsigned int at)
{
	struct llds_destroy destroy = { 0 };
	uint64_t random = next_random(state);

	destroy.name = a_name(state, page, &destroy.name_bytes);
	destroy.flags = random & 7 ? 0 :
			random & 8 ? random >> 8 : LLDS_OF_USER;
	destroy.reserved = random >> 56 ? 0 : 1;
	destroy.uid = random & 0x70 ? 0 : random >> 32;
	memcpy(page + at, &destroy, sizeof(destroy));
}

static void make_list(uint64_t *state, char *page, unsigned int at)
{
	uint64_t random = next_random(state);
	struct llds_list list = { .room = an_address(state, page),
				  .room_bytes = lengths[random & 15],
				  .count = random >> 8, .more = random >> 16,
				  .after_uid = random >> 40 & 7 ?
						       0 : random >> 43,
				  .after_flags = random >> 32 & 7 ? 0 : 4 };

	if (random >> 4 & 1)
		list.after = a_name(state, page, &list.after_bytes);
	memcpy(page + at, &list, sizeof(list));
}

static void make_nothing(uint64_t *state, char *page, unsigned int at)
{
	(void)state;
	memset(page + at, 0xa5, sizeof(struct llds_stats));
}

/* A command of the module. */
struct known {
	unsigned int number;
	size_t bytes;
	void (*make)(uint64_t *state, char *page, unsigned int at);
	/* The allowed errors besides EFAULT, terminated by 0. */
	int errors[8];
};

static const struct known known[] = {
	{ LLDS_IOC_RUN, sizeof(struct llds_run), make_run,
	  { EINVAL, E2BIG, EMSGSIZE, EBADF, ENOMEM } },
	{ LLDS_IOC_ATTACH, sizeof(struct llds_attach), make_attach,
	  { EINVAL, EBUSY, ENOENT, EEXIST, ENOSPC, ENOMEM, EPERM } },
	{ LLDS_IOC_DESTROY, sizeof(struct llds_destroy), make_destroy,
	  { EINVAL, EBADF, ENOENT } },
	{ LLDS_IOC_LIST, sizeof(struct llds_list), make_list,
	  { EINVAL, EMSGSIZE, ENOMEM } },
	{ LLDS_IOC_STATS, sizeof(struct llds_stats), make_nothing, { 0 } },
};
#define KNOWN (sizeof(known) / sizeof(*known))

/* The index of a command, or KNOWN. */
static unsigned int place_of(unsigned int number)
{
	unsigned int i;

	for (i = 0; i < KNOWN && known[i].number != number; i++)
		;
	return i;
}

static bool may_come_to(const struct known *known, int error)
{
	const int *at;

	for (at = known->errors; *at && *at != error; at++)
		;
	return !error || error == EFAULT || *at;
}

struct place {
	uint64_t address;
	bool good;
};

/*
 * PAGE is writable, the page after it read-only, the one after that unmapped.
 */
static struct place pick_pointer(uint64_t *state, char *page)
{
	uint64_t random = next_random(state);
	unsigned int at = random >> 8 & 4095;

	switch (random & 7) {
	case 0:
		return (struct place){ at, false };
	case 1:
		return (struct place){ next_random(state) | 1ULL << 63, false };
	case 2:
		return (struct place){ (uintptr_t)page + 4096 + at, false };
	default:
		return (struct place){
			(uintptr_t)page + at,
			at <= 4096 - sizeof(struct llds_version),
		};
	}
}

/* One call, sometimes as a 32-bit program makes it; 0 or the errno. */
static int call_with(int fd, unsigned int number, uint64_t address,
		     uint64_t *state)
{
	uint64_t random = next_random(state);

	if (address == (uint32_t)address && random & 16 && !is_user_mode())
		return command_compat(fd, number, address);
	return command(fd, number, address);
}

static const char *random_calls_are_answered_rightly(void)
{
	static const int modes[] = { O_RDWR, O_RDONLY };
	unsigned long i, calls = number("hostile_calls", 100000);
	uint64_t seed = number("hostile_seed", 1), state = seed;
	unsigned long answered = 0, faults = 0, unknown = 0, done[KNOWN] = { 0 };
	char *page = mmap(NULL, 12288, PROT_READ | PROT_WRITE,
			  MAP_PRIVATE | MAP_ANONYMOUS | MAP_32BIT, -1, 0);
	int fds[2] = { device(), device_for(O_RDONLY) };
	int error;

	/* Many calls need more than a check's time limit. */
	alarm(number("seconds", LIMIT_SECONDS) * (1 + calls / 100000));
	DEMAND(page != MAP_FAILED && !mprotect(page + 4096, 4096, PROT_READ) &&
	       !mprotect(page + 8192, 4096, PROT_NONE),
	       "mmap: %s", strerror(errno));
	note("hostile_seed=%llu hostile_calls=%lu", (unsigned long long)seed,
	     calls);
	for (i = 0; i < calls; i++) {
		unsigned int number = pick_command(&state);
		struct place place = pick_pointer(&state, page);
		const unsigned int which = place_of(number);
		uint64_t at = place.address - (uintptr_t)page;
		unsigned int one = next_random(&state) & 1;
		int expected;

		/*
		 * A new device now and then, because each has only one store.
		 */
		if (i % 32 == 0) {
			close(fds[one]);
			fds[one] = device_for(modes[one]);
		}
		if (which < KNOWN && at <= 4096 - known[which].bytes)
			known[which].make(&state, page, at);
		error = call_with(fds[one], number, place.address, &state);
		if (which < KNOWN) {
			bool read = at <= 8192 - known[which].bytes;

			DEMAND(read ? may_come_to(&known[which], error) :
				      error == EFAULT,
			       "call %lu of seed %llu: %#x at %#llx gave %d", i,
			       (unsigned long long)seed, number,
			       (unsigned long long)place.address, error);
			done[which] += !error;
			continue;
		}
		expected = number != LLDS_IOC_VERSION ? ENOTTY :
			   place.good		      ? 0 :
							EFAULT;
		DEMAND(error == expected,
		       "call %lu of seed %llu: %#x with %#llx gave %d, not %d",
		       i, (unsigned long long)seed, number,
		       (unsigned long long)place.address, error, expected);
		answered += !expected;
		faults += expected == EFAULT;
		unknown += expected == ENOTTY;
	}
	/* A useful seed tries enough of everything. */
	DEMAND(calls < 1000 || (answered > calls / 20 && faults > calls / 20 &&
				unknown > calls / 20),
	       "%lu succeeded, %lu faults, %lu unknown", answered, faults,
	       unknown);
	for (i = 0; i < KNOWN; i++)
		DEMAND(calls < 1000 ||
			       done[i] > (calls < 100000 ? 0 : calls / 4000),
		       "%#x was done %lu times", known[i].number, done[i]);
	error = destroy_all();
	DEMAND(!error, "destroying what is left: %d", error);
	return NULL;
}

const struct check hostile_checks[] = {
	{ "random_calls_are_answered_rightly",
	  random_calls_are_answered_rightly },
	{}
};
