// SPDX-License-Identifier: MIT OR Apache-2.0
/* The device: its kind, permissions, commands, and what it refuses. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "check.h"

#define MISC_MAJOR_NUMBER 10
#define NOBODY 65534
/* Any number will do: only udev uses the group's name. */
#define GROUP 990
#define RULES "/60-llds.rules"

static const char *device_is_a_misc_device(void)
{
	char line[64];
	const char *text;
	struct stat found;

	DEMAND(!stat(DEVICE, &found), "no %s: %s", DEVICE, strerror(errno));
	DEMAND(S_ISCHR(found.st_mode), "mode %#o", found.st_mode);
	DEMAND(major(found.st_rdev) == MISC_MAJOR_NUMBER, "major %u",
	       major(found.st_rdev));
	snprintf(line, sizeof(line), "%u:%u\n", major(found.st_rdev),
		 minor(found.st_rdev));
	text = content("/sys/class/misc/llds/dev");
	DEMAND(!strcmp(text, line), "sysfs says '%s', not '%s'", text, line);
	snprintf(line, sizeof(line), "%3u llds\n", minor(found.st_rdev));
	text = content("/proc/misc");
	DEMAND(strstr(text, line), "/proc/misc has no '%s'", line);
	return NULL;
}

static const char *device_begins_with_root_alone(void)
{
	struct stat found;

	DEMAND(!stat(DEVICE, &found), "no %s: %s", DEVICE, strerror(errno));
	DEMAND((found.st_mode & 07777) == 0600, "mode %#o", found.st_mode);
	DEMAND(!found.st_uid && !found.st_gid, "of %u:%u", found.st_uid,
	       found.st_gid);
	return NULL;
}

/* The errno of opening as an unprivileged user, a member of GROUP. */
static int open_as(unsigned int group)
{
	int status, pid = fork();

	if (!pid) {
		int fd;

		if (setgroups(1, &group) || setresgid(NOBODY, NOBODY, NOBODY) ||
		    setresuid(NOBODY, NOBODY, NOBODY))
			_exit(255);
		fd = open(DEVICE, O_RDWR);
		if (fd >= 0 && ask_version(fd))
			_exit(254);
		_exit(fd < 0 ? errno : 0);
	}
	status = reap(pid);
	return status < 0 ? status : status >> 8;
}

static const char *users_are_refused(void)
{
	int error = open_as(NOBODY);

	DEMAND(error == EACCES, "opening gave %d", error);
	return NULL;
}

/* Applies the udev rule by hand, because there is no udev here. */
static const char *rule_admits_its_group_alone(void)
{
	char rule[4096], name[33];
	const char *line, *at;
	unsigned int mode;
	int error;

	snprintf(rule, sizeof(rule), "\n%s", content(RULES));
	line = strstr(rule, "\nKERNEL==\"llds\", SUBSYSTEM==\"misc\", ");
	DEMAND(line, "no line for the device in %s", RULES);
	at = strstr(line, "MODE=\"");
	DEMAND(at && sscanf(at, "MODE=\"%o\"", &mode) == 1, "no mode");
	at = strstr(line, "GROUP=\"");
	DEMAND(at && sscanf(at, "GROUP=\"%32[a-z]\"", name) == 1, "no group");
	DEMAND(mode == 0660 && !strcmp(name, "llds"), "%s %o", name, mode);
	DEMAND(!chown(DEVICE, 0, GROUP) && !chmod(DEVICE, mode), "%s",
	       strerror(errno));
	error = open_as(GROUP);
	DEMAND(!error, "a member of %s got %d", name, error);
	error = open_as(NOBODY);
	DEMAND(error == EACCES, "a user who is not a member got %d", error);
	DEMAND(!chown(DEVICE, 0, 0) && !chmod(DEVICE, 0600), "%s",
	       strerror(errno));
	error = open_as(GROUP);
	DEMAND(error == EACCES, "a member got %d without the rule", error);
	return NULL;
}

static const char *version_answers(void)
{
	static const int modes[] = { O_RDWR, O_RDONLY, O_WRONLY };
	const char *wrong;
	unsigned int i;

	for (i = 0; i < 3; i++) {
		int fd = open(DEVICE, modes[i]);

		DEMAND(fd >= 0, "open, mode %d: %s", modes[i], strerror(errno));
		wrong = ask_version(fd);
		if (wrong)
			return wrong;
		close(fd);
	}
	return NULL;
}

static const char *version_answers_32_bit_programs(void)
{
	struct llds_version *version = low_page();
	int error, fd = device();

	if (is_user_mode())
		return skip(NO_COMPAT);
	memset(version, 0xff, sizeof(*version));
	error = command_compat(fd, LLDS_IOC_VERSION, (uintptr_t)version);
	DEMAND(!error, "%s", strerror(error));
	DEMAND(version_is_right(version), "another version");
	return NULL;
}

static const char *version_fills_its_record_only(void)
{
	unsigned char *page = low_page();
	unsigned int at, i;
	int error, fd = device();

	/* At every alignment, up to the end of the page. */
	for (at = 0; at <= 4096 - sizeof(struct llds_version); at++) {
		struct llds_version version;

		memset(page, 0xa5, 4096);
		error = command(fd, LLDS_IOC_VERSION, (uintptr_t)page + at);
		DEMAND(!error, "at %u: %s", at, strerror(error));
		memcpy(&version, page + at, sizeof(version));
		DEMAND(version_is_right(&version), "at %u: another", at);
		for (i = 0; i < 4096; i++)
			if (i < at || i >= at + sizeof(version))
				DEMAND(page[i] == 0xa5, "at %u: byte %u", at, i);
	}
	return NULL;
}

/* Checks that both system calls give ENOTTY, and write nothing to PAGE. */
static const char *refused(int fd, unsigned int number, unsigned char *page)
{
	unsigned int i;
	int error;

	error = command(fd, number, (uintptr_t)page);
	DEMAND(error == ENOTTY, "%#x gave %d", number, error);
	if (!is_user_mode())
		error = command_compat(fd, number, (uintptr_t)page);
	DEMAND(error == ENOTTY, "%#x gave a 32-bit program %d", number, error);
	for (i = 0; i < 64; i++)
		DEMAND(page[i] == 0xa5, "%#x wrote byte %u", number, i);
	return NULL;
}

static const unsigned int sizes[] = { 0, 1, 4, 8, 16, 24, 31, 32, 33, 40, 64,
				      4096, 16383 };
#define SIZES (sizeof(sizes) / sizeof(*sizes))

static bool is_known(unsigned int number)
{
	return number == LLDS_IOC_RUN || number == LLDS_IOC_ATTACH ||
	       number == LLDS_IOC_DESTROY || number == LLDS_IOC_LIST ||
	       number == LLDS_IOC_STATS;
}

static const char *unknown_commands_are_refused(void)
{
	unsigned char *page = low_page();
	unsigned int direction, size, nr;
	const char *wrong;
	int fd = device();

	memset(page, 0xa5, 4096);
	for (nr = 1; nr < 256; nr++)
		for (direction = 0; direction < 4; direction++)
			for (size = 0; size < SIZES; size++) {
				unsigned int number =
					_IOC(direction, LLDS_IOC_MAGIC, nr,
					     sizes[size]);

				if (is_known(number))
					continue;
				wrong = refused(fd, number, page);
				if (wrong)
					return wrong;
			}
	/* Those of other devices: TCGETS, BLKGETSIZE64; and ours, changed. */
	wrong = refused(fd, 0x5401, page);
	if (!wrong)
		wrong = refused(fd, 0x80081272, page);
	for (nr = 0; !wrong && nr < 256; nr++)
		if (nr != LLDS_IOC_MAGIC)
			wrong = refused(fd, _IOR(nr, 0, struct llds_version),
					page);
	return wrong;
}

static const char *version_of_another_size_or_direction_is_refused(void)
{
	unsigned char *page = low_page();
	unsigned int direction, size;
	int fd = device();

	memset(page, 0xa5, 4096);
	for (direction = 0; direction < 4; direction++)
		for (size = 0; size < 1 << _IOC_SIZEBITS; size++) {
			unsigned int number =
				_IOC(direction, LLDS_IOC_MAGIC, 0, size);
			const char *wrong;

			if (number == LLDS_IOC_VERSION)
				continue;
			wrong = refused(fd, number, page);
			if (wrong)
				return wrong;
		}
	return NULL;
}

static const char *other_calls_are_refused(void)
{
	char byte = 0;
	int fd = device();

	DEMAND(read(fd, &byte, 1) < 0 && errno == EINVAL, "read: %d", errno);
	DEMAND(write(fd, &byte, 1) < 0 && errno == EINVAL, "write: %d", errno);
	DEMAND(lseek(fd, 0, SEEK_SET) < 0 && errno == ESPIPE, "lseek: %d",
	       errno);
	DEMAND(pread(fd, &byte, 1, 0) < 0, "pread succeeded");
	DEMAND(ftruncate(fd, 0) < 0 && errno == EINVAL, "ftruncate: %d", errno);
	return NULL;
}

const struct check device_checks[] = {
	{ "device_is_a_misc_device", device_is_a_misc_device },
	{ "device_begins_with_root_alone", device_begins_with_root_alone },
	{ "users_are_refused", users_are_refused },
	{ "rule_admits_its_group_alone", rule_admits_its_group_alone },
	{ "version_answers", version_answers },
	{ "version_answers_32_bit_programs", version_answers_32_bit_programs },
	{ "version_fills_its_record_only", version_fills_its_record_only },
	{ "unknown_commands_are_refused", unknown_commands_are_refused },
	{ "version_of_another_size_or_direction_is_refused",
	  version_of_another_size_or_direction_is_refused },
	{ "other_calls_are_refused", other_calls_are_refused },
	{}
};
