// SPDX-License-Identifier: MIT OR Apache-2.0
/*
 * Random calls of one who means harm: any command with any pointer, through
 * both doors. Each answer is known beforehand. From the kernel's command line
 * come hostile_calls and hostile_seed.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "check.h"

/* What the kernel answers itself for any file: FIOCLEX, FS_IOC_FIEMAP, ... */
static bool is_of_any_file(unsigned int number)
{
	static const unsigned char types[] = { 0, 'T', 'X', 'f', 0x12, 0x94 };

	return memchr(types, _IOC_TYPE(number), sizeof(types));
}

static unsigned int pick_command(uint64_t *state)
{
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
		/* One of ours, but for a bit. */
		number = LLDS_IOC_VERSION ^ 1u << (random >> 8 & 31);
		return is_of_any_file(number) ? LLDS_IOC_VERSION : number;
	case 3:
	case 4:
		return LLDS_IOC_RUN;
	case 5:
		return _IOC(random >> 8 & 3, LLDS_IOC_MAGIC, random >> 16 & 15,
			    random >> 32 & 16383);
	default:
		return LLDS_IOC_VERSION;
	}
}

/* A run that is meant to do harm, in so far as there is room for one. */
static void make_run(uint64_t *state, char *page, unsigned int at)
{
	static const uint32_t lengths[] = { 0, 1, 8, 16, 24, 40, 64, 255, 256,
					    257, 4096, 16384, 65536, 1u << 30,
					    0x7fffffff, 0xffffffff };
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

	/* Operations all over the page, most of which make sense. */
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

/* Whether a run may come to this. */
static bool is_of_a_run(int error)
{
	return !error || error == EINVAL || error == E2BIG ||
	       error == EMSGSIZE || error == EFAULT || error == EBADF ||
	       error == ENOMEM;
}

struct place {
	uint64_t address;
	bool good;
};

/* PAGE can be written, the one behind it cannot. */
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

static const char *random_calls_are_answered_rightly(void)
{
	unsigned long i, calls = number("hostile_calls", 100000);
	uint64_t seed = number("hostile_seed", 1), state = seed;
	unsigned long answered = 0, faults = 0, unknown = 0, run = 0;
	char *page = mmap(NULL, 8192, PROT_READ | PROT_WRITE,
			  MAP_PRIVATE | MAP_ANONYMOUS | MAP_32BIT, -1, 0);
	int fds[2];

	DEMAND(page != MAP_FAILED && !mprotect(page + 4096, 4096, PROT_READ),
	       "mmap: %s", strerror(errno));
	fds[0] = device();
	fds[1] = open(DEVICE, O_RDONLY);
	DEMAND(fds[1] >= 0, "open: %s", strerror(errno));
	note("hostile_seed=%llu hostile_calls=%lu", (unsigned long long)seed,
	     calls);
	for (i = 0; i < calls; i++) {
		unsigned int number = pick_command(&state);
		struct place place = pick_pointer(&state, page);
		int error, expected, fd = fds[next_random(&state) & 1];
		bool narrow = place.address == (uint32_t)place.address &&
			      next_random(&state) & 1;

		if (number == LLDS_IOC_RUN) {
			uint64_t at = place.address - (uintptr_t)page;
			bool read = at <= 8192 - sizeof(struct llds_run);

			if (at <= 4096 - sizeof(struct llds_run))
				make_run(&state, page, at);
			error = narrow ? command_compat(fd, number,
							place.address) :
					 command(fd, number, place.address);
			DEMAND(read ? is_of_a_run(error) : error == EFAULT,
			       "call %lu of seed %llu: a run at %#llx gave %d",
			       i, (unsigned long long)seed,
			       (unsigned long long)place.address, error);
			run += !error;
			continue;
		}
		expected = number != LLDS_IOC_VERSION ? ENOTTY :
			   place.good		      ? 0 :
							EFAULT;
		error = narrow ? command_compat(fd, number, place.address) :
				 command(fd, number, place.address);
		DEMAND(error == expected,
		       "call %lu of seed %llu: %#x with %#llx gave %d, not %d",
		       i, (unsigned long long)seed, number,
		       (unsigned long long)place.address, error, expected);
		answered += !expected;
		faults += expected == EFAULT;
		unknown += expected == ENOTTY;
	}
	/* A seed that tries too little of something is no attack. */
	DEMAND(calls < 1000 || (answered > calls / 20 && faults > calls / 20 &&
				unknown > calls / 20 && run > calls / 200),
	       "%lu answered, %lu faults, %lu unknown, %lu run", answered,
	       faults, unknown, run);
	return NULL;
}

const struct check hostile_checks[] = {
	{ "random_calls_are_answered_rightly",
	  random_calls_are_answered_rightly },
	{}
};
