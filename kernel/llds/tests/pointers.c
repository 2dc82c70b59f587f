// SPDX-License-Identifier: MIT OR Apache-2.0
/*
 * Invalid pointers. Each must fail with EFAULT, and must leave its target
 * unchanged. kernel.c reads the kernel's log at the end, and detects if one
 * disturbed the kernel.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "check.h"

#define RECORD sizeof(struct llds_version)

/* Demands EFAULT of both system calls; 32 bits truncate a high address. */
static const char *faults(uint64_t address)
{
	int error, fd = device();

	error = command(fd, LLDS_IOC_VERSION, address);
	DEMAND(error == EFAULT, "%#llx gave %d", (unsigned long long)address,
	       error);
	if (address == (uint32_t)address && !is_user_mode()) {
		error = command_compat(fd, LLDS_IOC_VERSION, address);
		DEMAND(error == EFAULT, "%#llx gave a 32-bit program %d",
		       (unsigned long long)address, error);
	}
	close(fd);
	return NULL;
}

static const char *processor_guards_user_memory(void)
{
	/* In user mode, kernel and user memory belong to two processes. */
	if (is_user_mode())
		return NULL;
	/* Without SMAP, the kernel can follow user pointers unnoticed. */
	if (strstr(content("/proc/cpuinfo"), " smap"))
		return NULL;
	return skip("the processor has no SMAP");
}

static const char *pointer_null(void)
{
	return faults(0);
}

static const char *pointer_small(void)
{
	const char *wrong = NULL;
	uint64_t address;

	for (address = 1; !wrong && address < 4096; address += 7)
		wrong = faults(address);
	return wrong;
}

static const char *pointer_to_nowhere(void)
{
	static const uint64_t addresses[] = {
		0x00007ffffffff000,	 0x00007fffffffffe0,
		0x0000800000000000,	 0x0000800000000000 - RECORD + 1,
		0x8000000000000000,	 0x7fffffffffffffff,
		0xffff800000000000,	 0xffff888000000000,
		0xffffffff80000000,	 0xffffffffffffffff,
		0xffffffffffffffff - 31, 0xfffffffffffff000,
	};
	const char *wrong = NULL;
	unsigned int i;

	for (i = 0; !wrong && i < sizeof(addresses) / sizeof(*addresses); i++)
		wrong = faults(addresses[i]);
	return wrong;
}

/* The address of a kernel symbol, or 0. */
static uint64_t symbol(const char *name)
{
	FILE *symbols = fopen("/proc/kallsyms", "r");
	unsigned long long address;
	char found[128];

	while (symbols && fscanf(symbols, "%llx %*c %127s%*[^\n]", &address,
				 found) == 2)
		if (!strcmp(found, name))
			return address;
	return 0;
}

/* Points to the kernel's name, whose change uname() would show. */
static const char *pointer_into_the_kernels_data(void)
{
	uint64_t address = symbol("init_uts_ns");
	struct utsname before, after;
	const char *wrong;

	DEMAND(address, "no symbol init_uts_ns");
	DEMAND(!uname(&before), "uname");
	wrong = faults(address);
	DEMAND(!uname(&after) && !memcmp(&before, &after, sizeof(before)),
	       "the kernel's data changed");
	return wrong;
}

static const char *pointer_into_the_kernels_code(void)
{
	uint64_t address = symbol("_text");

	DEMAND(address, "no symbol _text");
	return faults(address);
}

static const char *pointer_to_unmapped(void)
{
	char *page = low_page();

	DEMAND(!munmap(page, 4096), "munmap");
	return faults((uintptr_t)page);
}

/* Two pages: the first readable and writable, the second with PROTECTION. */
static char *pair(int protection)
{
	char *pages = mmap(NULL, 8192, PROT_READ | PROT_WRITE,
			   MAP_PRIVATE | MAP_ANONYMOUS | MAP_32BIT, -1, 0);

	if (pages == MAP_FAILED)
		_exit(1);
	memset(pages, 0xa5, 8192);
	if (protection < 0 ? munmap(pages + 4096, 4096) :
			     mprotect(pages + 4096, 4096, protection))
		_exit(1);
	return pages;
}

/* All pointers across the border; the second page must not change. */
static const char *straddles(int protection)
{
	char *pages = pair(protection);
	const char *wrong = NULL;
	unsigned int inside, i;

	for (inside = 0; !wrong && inside < RECORD; inside++)
		wrong = faults((uintptr_t)pages + 4096 - inside);
	for (i = 0; i < 4096 - RECORD; i++)
		DEMAND((unsigned char)pages[i] == 0xa5, "byte %u changed", i);
	if (protection == PROT_READ)
		for (i = 4096; i < 8192; i++)
			DEMAND((unsigned char)pages[i] == 0xa5,
			       "byte %u changed, which is read-only", i);
	return wrong;
}

static const char *pointer_that_straddles_unmapped(void)
{
	return straddles(-1);
}

static const char *pointer_that_straddles_read_only(void)
{
	return straddles(PROT_READ);
}

static const char *pointer_that_straddles_forbidden(void)
{
	return straddles(PROT_NONE);
}

static const char *pointer_to_read_only(void)
{
	return faults((uintptr_t)pair(PROT_READ) + 4096 + 128);
}

/* A mapped page after the end of its file: access raises SIGBUS. */
static const char *pointer_behind_the_end_of_a_file(void)
{
	int fd = memfd_create("short", 0);
	char *pages;

	DEMAND(fd >= 0 && !ftruncate(fd, 100), "memfd");
	pages = mmap(NULL, 8192, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	DEMAND(pages != MAP_FAILED, "mmap: %s", strerror(errno));
	return faults((uintptr_t)pages + 4096);
}

const struct check pointer_checks[] = {
	{ "processor_guards_user_memory", processor_guards_user_memory },
	{ "pointer_null", pointer_null },
	{ "pointer_small", pointer_small },
	{ "pointer_to_nowhere", pointer_to_nowhere },
	{ "pointer_into_the_kernels_data", pointer_into_the_kernels_data },
	{ "pointer_into_the_kernels_code", pointer_into_the_kernels_code },
	{ "pointer_to_unmapped", pointer_to_unmapped },
	{ "pointer_to_read_only", pointer_to_read_only },
	{ "pointer_that_straddles_unmapped", pointer_that_straddles_unmapped },
	{ "pointer_that_straddles_read_only",
	  pointer_that_straddles_read_only },
	{ "pointer_that_straddles_forbidden",
	  pointer_that_straddles_forbidden },
	{ "pointer_behind_the_end_of_a_file",
	  pointer_behind_the_end_of_a_file },
	{}
};
