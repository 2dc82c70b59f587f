// SPDX-License-Identifier: MIT OR Apache-2.0
/* Loading the module, its parameter, and unloading it. */
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "check.h"

#define PARAMETER "/sys/module/llds/parameters/value_bytes_max"
#define BLOCKER "/blocker.ko"

static bool device_is_there(void)
{
	struct stat found;

	return !stat(DEVICE, &found);
}

static bool module_is_there(void)
{
	return strstr(content("/proc/modules"), "llds ");
}

/* Runs before all others, and loads the module. */
static const char *module_is_loaded(void)
{
	int error;

	DEMAND(!device_is_there(), "%s was there before", DEVICE);
	error = load(MODULE, "");
	DEMAND(!error, "%s", strerror(error));
	DEMAND(device_is_there(), "loaded, but there is no %s", DEVICE);
	error = load(MODULE, "");
	DEMAND(error == EEXIST, "loading it once more gave %d", error);
	return NULL;
}

static const char *parameter_is_bounded(void)
{
	static const char *const refused[] = {
		"value_bytes_max=0",	      "value_bytes_max=-1",
		"value_bytes_max=1073741825", "value_bytes_max=4294967296",
		"value_bytes_max=many",	      "value_bytes_max=",
		"value_bytes_max",
		"value_bytes_max=18446744073709551617",
	};
	static const unsigned int taken[] = { 1, 4096, 16 << 20, 1 << 30 };
	struct llds_version version;
	char parameter[64];
	unsigned int i;
	int error, fd;

	error = unload("llds");
	DEMAND(!error, "unloading gave %d", error);
	for (i = 0; i < sizeof(refused) / sizeof(*refused); i++) {
		error = load(MODULE, refused[i]);
		DEMAND(error == EINVAL || error == ERANGE, "%s gave %d",
		       refused[i], error);
		DEMAND(!device_is_there() && !module_is_there(),
		       "%s was refused, but left something", refused[i]);
	}
	for (i = 0; i < sizeof(taken) / sizeof(*taken); i++) {
		snprintf(parameter, sizeof(parameter), "value_bytes_max=%u",
			 taken[i]);
		error = load(MODULE, parameter);
		DEMAND(!error, "%s gave %d", parameter, error);
		fd = device();
		error = command(fd, LLDS_IOC_VERSION, (uintptr_t)&version);
		close(fd);
		DEMAND(!error && version.value_bytes_max == taken[i],
		       "%s: error %d, or the version says another", parameter,
		       error);
		DEMAND(strtoul(content(PARAMETER), NULL, 10) == taken[i],
		       "%s: sysfs says %s", parameter, content(PARAMETER));
		error = unload("llds");
		DEMAND(!error, "unloading gave %d", error);
	}
	error = load(MODULE, "");
	DEMAND(!error, "loading again gave %d", error);
	return NULL;
}

static const char *parameter_is_fixed_once_loaded(void)
{
	struct stat found;

	DEMAND(!stat(PARAMETER, &found), "%s", strerror(errno));
	DEMAND((found.st_mode & 07777) == 0444, "mode %#o", found.st_mode);
	DEMAND(open(PARAMETER, O_WRONLY) < 0, "root may write it");
	return NULL;
}

static const char *unload_is_refused_while_open(void)
{
	int error, fd = device();
	const char *wrong;

	error = unload("llds");
	DEMAND(error == EAGAIN, "unloading gave %d", error);
	wrong = ask_version(fd);
	if (wrong)
		return wrong;
	close(fd);
	error = unload("llds");
	DEMAND(!error, "unloading when closed gave %d", error);
	DEMAND(!device_is_there() && !module_is_there(), "it left something");
	error = load(MODULE, "");
	DEMAND(!error, "loading again gave %d", error);
	DEMAND(device_is_there(), "loaded again, but there is no %s", DEVICE);
	return NULL;
}

/* blocker.ko takes all minor numbers of misc devices. */
static const char *load_without_a_device_fails(void)
{
	int error;

	error = unload("llds");
	DEMAND(!error, "unloading gave %d", error);
	error = load(BLOCKER, "");
	if (error == E2BIG) {
		error = load(MODULE, "");
		DEMAND(!error, "loading again gave %d", error);
		return skip("this kernel does not run out of minors");
	}
	DEMAND(!error, "the blocker gave %d", error);
	error = load(MODULE, "");
	DEMAND(error == EBUSY, "loading without a device gave %d", error);
	DEMAND(!device_is_there() && !module_is_there(), "it left something");
	error = unload("blocker");
	DEMAND(!error, "unloading the blocker gave %d", error);
	error = load(MODULE, "");
	DEMAND(!error, "loading with a device gave %d", error);
	return NULL;
}

/* Opens, asks and closes in a loop, until it is killed. */
static void open_always(void)
{
	uint64_t state = 1;
	volatile int spin;

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	for (;;) {
		int fd = open(DEVICE, O_RDWR);

		if (fd >= 0) {
			if (ask_version(fd))
				_exit(1);
			close(fd);
		} else if (errno != ENOENT && errno != ENODEV &&
			   errno != ENXIO) {
			_exit(2);
		}
		/* Closed for about as long, so that unloading can succeed. */
		for (spin = next_random(&state) & 65535; spin; spin--)
			;
	}
}

/*
 * One process opens and asks, another unloads and loads: the later one fails.
 */
static const char *opening_races_unloading(void)
{
	unsigned long races = number("races", 100), won = 0, refused = 0;
	int error, pid, status;

	pid = fork();
	if (!pid)
		open_always();
	/* Until each has failed, or one of them never does. */
	while (won < races || (!refused && won < 10 * races)) {
		/* With one processor, let the other process run. */
		sched_yield();
		error = unload("llds");
		if (error) {
			DEMAND(error == EAGAIN, "unloading gave %d after %lu",
			       error, won);
			refused++;
			continue;
		}
		won++;
		error = load(MODULE, "");
		DEMAND(!error, "loading gave %d after %lu", error, won);
	}
	kill(pid, SIGKILL);
	status = reap(pid);
	DEMAND(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL,
	       "the process that opens ended with status %#x", status);
	DEMAND(refused, "unloading was never refused, of %lu times", won);
	note("unloaded %lu times, refused %lu times", won, refused);
	return NULL;
}

const struct check loading_checks[] = {
	{ "module_is_loaded", module_is_loaded },
	{ "parameter_is_bounded", parameter_is_bounded },
	{ "parameter_is_fixed_once_loaded", parameter_is_fixed_once_loaded },
	{ "unload_is_refused_while_open", unload_is_refused_while_open },
	{ "load_without_a_device_fails", load_without_a_device_fails },
	{ "opening_races_unloading", opening_races_unloading },
	{}
};
