// SPDX-License-Identifier: MIT OR Apache-2.0
/* The kernel's own reports about the module, after all other checks. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/klog.h>
#include <unistd.h>

#include "check.h"

/* Bits of /proc/sys/kernel/tainted. */
#define OUT_OF_TREE (1UL << 12)
#define UNSIGNED (1UL << 13)

#define READ_ALL 3

/* Whether the module's file has TEXT between two zeros. */
static bool tells(const char *text, size_t length)
{
	const char *file = content(MODULE);

	/* The file contains zeros, so search the whole buffer. */
	return memmem(file, 1 << 20, text, length);
}

static const char *licence_is_known(void)
{
	static const char expected[] = "\0license=GPL";
	/* An unsigned module taints only a kernel that checks signatures. */
	const char *taint, *expected_taint = is_user_mode() ? "O\n" : "OE\n";

	DEMAND(tells(expected, sizeof(expected)), "no license=GPL");
	DEMAND(tells("\0description=", 13), "no description");
	taint = content("/sys/module/llds/taint");
	DEMAND(!strcmp(taint, expected_taint), "the module taints with %s",
	       taint);
	return NULL;
}

static const char *slab_debugging_is_on(void)
{
	const char *setting;

	if (!strstr(content("/proc/cmdline"), "slub_debug="))
		return skip("not asked for in this boot");
	setting = content("/sys/kernel/slab/kmalloc-64/red_zone");
	DEMAND(!strcmp(setting, "1\n"), "red_zone is '%s'", setting);
	setting = content("/sys/kernel/slab/kmalloc-64/poison");
	DEMAND(!strcmp(setting, "1\n"), "poison is '%s'", setting);
	return NULL;
}

static const char *log_is_clean(void)
{
	static const char *const marks[] = {
		"WARNING:",	    "BUG",     "Oops",	 "Call Trace",
		"general protection fault", "UBSAN", "segfault", "stall",
		"blocked for more", "refcount_t", "leaked", "Bad page",
		"INFO: trying",	    "KASAN",
	};
	static char log[8 << 20];
	char *line;
	unsigned int i;
	int length = klogctl(READ_ALL, log, sizeof(log) - 1);

	DEMAND(length > 0, "cannot be read: %s", strerror(errno));
	/* The first line still exists, so no line was lost. */
	DEMAND(strstr(log, "Linux version"), "its beginning is lost");
	DEMAND(strstr(log, "llds: loading out-of-tree module"),
	       "it does not mention the module");
	for (line = strtok(log, "\n"); line; line = strtok(NULL, "\n")) {
		/* From faults.c: a page fault failed, and is repeated. */
		if (strstr(line, "VM_FAULT_OOM leaked out"))
			continue;
		for (i = 0; i < sizeof(marks) / sizeof(*marks); i++)
			DEMAND(!strstr(line, marks[i]), "%s", line);
	}
	return NULL;
}

static const char *taint_is_that_of_any_foreign_module(void)
{
	unsigned long taint;

	taint = strtoul(content("/proc/sys/kernel/tainted"), NULL, 10);
	DEMAND(taint & OUT_OF_TREE, "%#lx: nothing of the module", taint);
	DEMAND(!(taint & ~(OUT_OF_TREE | UNSIGNED)), "%#lx", taint);
	return NULL;
}

/* These run after all others. */
const struct check kernel_checks[] = {
	{ "licence_is_known", licence_is_known },
	{ "slab_debugging_is_on", slab_debugging_is_on },
	{ "log_is_clean", log_is_clean },
	{ "taint_is_that_of_any_foreign_module",
	  taint_is_that_of_any_foreign_module },
	{}
};
