/* SPDX-License-Identifier: ((GPL-2.0-only WITH Linux-syscall-note) OR MIT OR Apache-2.0) */
/*
 * llds - ordered key-value stores in kernel memory: the ABI between user space
 * and the module. This is its only definition.
 *
 * Every field has a fixed width, nothing is padded, pointers are 64 bits,
 * and reserved fields and unknown flags must be zero.
 */
#ifndef _UAPI_LLDS_H
#define _UAPI_LLDS_H

#include <linux/ioctl.h>
#include <linux/types.h>

/* Changes whenever something here changes its meaning. */
#define LLDS_ABI 7

/* Maximum key length, in bytes. Keys may be empty. */
#define LLDS_KEY_BYTES_MAX 4096

/**
 * struct llds_version - the module's version and limits
 * @abi: LLDS_ABI of the module
 * @key_bytes_max: maximum key length
 * @value_bytes_max: maximum value length of all its stores
 * @reserved: zeros
 */
struct llds_version {
	__u32 abi;
	__u32 key_bytes_max;
	__u64 value_bytes_max;
	__u64 reserved[2];
};

/*
 * No other driver uses this number: see the kernel's
 * Documentation/userspace-api/ioctl/ioctl-number.rst. It was 0xec before
 * LLDS_ABI 3, which is that of the ChromeOS EC driver.
 */
#define LLDS_IOC_MAGIC 0xe9

/* Returns the version. Any open device may ask. */
#define LLDS_IOC_VERSION _IOR(LLDS_IOC_MAGIC, 0, struct llds_version)

/**
 * struct llds_op - the head of an operation
 * @code: the operation, such as LLDS_GET
 * @flags: its flags
 * @key_bytes: bytes of the key
 * @value_bytes: bytes of the value
 * @other_bytes: bytes of the other
 * @limit: maximum number of pairs that a scan returns or a delete-range
 *	deletes; 0 is no limit, and required elsewhere
 *
 * The bytes of the key, of the value and of the other follow, padded with zeros
 * to a multiple of 8 bytes, and then the next operation. A key has at most
 * LLDS_KEY_BYTES_MAX bytes.
 */
struct llds_op {
	__u8 code;
	__u8 flags;
	__u16 key_bytes;
	__u32 value_bytes;
	__u32 other_bytes;
	__u32 limit;
};

/* Reads the value of a key; with LLDS_NO_VALUE, only whether the key exists. */
#define LLDS_GET 1
/* Sets a key to a value; with a flag, only if the key exists, or is absent. */
#define LLDS_SET 2
/* Removes a key. */
#define LLDS_DELETE 3
/*
 * Adds to a counter: 8 bytes, big endian, two's complement. An absent key
 * counts as 0. The value of the operation is a __s64 to add; the answer is the
 * sum.
 */
#define LLDS_ADD 4
/*
 * Compare and swap. If the key's value equals the other (with LLDS_NO_OTHER: if
 * the key is absent), sets the key to the value (with LLDS_NO_VALUE: deletes
 * it). Otherwise the answer is LLDS_DIFFERS with the key's value, or
 * LLDS_ABSENT.
 */
#define LLDS_SWAP 5
/*
 * Removes the keys of a range; the answer is their number, a __u64. If the
 * process is killed meanwhile, only the first keys may be removed, except in an
 * atomic run, which removes all or none.
 */
#define LLDS_DELETE_RANGE 6
/* Reads the pairs of a range, each as a struct llds_pair. */
#define LLDS_SCAN 7
/*
 * Compares the pairs of a range, in ascending order, with those of the value,
 * each of which is a struct llds_pair. If they differ, the answer is
 * LLDS_DIFFERS with the first key that one of them lacks, or whose values
 * differ.
 */
#define LLDS_COMPARE 8

#define LLDS_NO_VALUE 0x01
#define LLDS_NO_OTHER 0x02
/* For LLDS_SET. */
#define LLDS_IF_ABSENT 0x04
#define LLDS_IF_PRESENT 0x08
/*
 * For ranges. The key is the lower bound: included, or excluded with
 * LLDS_BEHIND_KEY; an empty key is no bound. The other is the upper bound:
 * excluded, or included with LLDS_WITH_OTHER; with LLDS_NO_OTHER there is none.
 */
#define LLDS_BEHIND_KEY 0x10
#define LLDS_WITH_OTHER 0x20
/* For LLDS_SCAN: begins at the upper bound and descends. */
#define LLDS_DOWN 0x40

/**
 * struct llds_answer - the head of an answer
 * @status: a status such as LLDS_DONE, or a negative error number
 * @bytes: number of bytes that follow
 *
 * The bytes follow, padded with zeros to a multiple of 8.
 *
 * -EINVAL: the value is not a counter, or not pairs; -ERANGE: the counter would
 * overflow; -ENOSPC: the store has reached its maximum size; -ENOMEM: out of
 * memory. An operation that failed changed nothing, and does not prevent the
 * next one.
 */
struct llds_answer {
	__s32 status;
	__u32 bytes;
};

#define LLDS_DONE 0
/* The key was absent. */
#define LLDS_ABSENT 1
/* The key existed, and that, its value or a range was not as expected. */
#define LLDS_DIFFERS 2
/* The range has more pairs after those that were returned or deleted. */
#define LLDS_MORE 3

/**
 * struct llds_pair - the head of a pair: of a scan's answer, or to compare
 * @key_bytes: bytes of the key
 * @value_bytes: bytes of the value
 *
 * The bytes of key and value follow, padded with zeros to a multiple of 8.
 */
struct llds_pair {
	__u32 key_bytes;
	__u32 value_bytes;
};

/**
 * struct llds_run - operations to be done in order
 * @ops: address of the operations
 * @answers: address of room for the answers, in the same order
 * @ops_bytes: bytes of the operations
 * @answers_bytes: bytes of that room; afterwards, of the answers
 * @done: afterwards: number of operations that were done
 * @done_bytes: afterwards: bytes of these operations
 * @flags: LLDS_RUN_ATOMIC, or zero
 * @reserved: zero
 *
 * Each operation takes effect at one instant. The run ends after the last
 * operation, before an operation whose answer has no room, before one that
 * cannot be done, or when the process is killed. It fails only if no operation
 * was done:
 *
 * -EINVAL: the first operation is invalid, or a flag is unknown; -E2BIG: a
 * value is too long; -EMSGSIZE: the first answer has no room; 'answers_bytes'
 * is what it needs; -EBADF: the operation changes the store and the device is
 * not open for writing, or it returns data and the device is not open for
 * reading; -ENOMEM: no memory for the copy; -EDQUOT: the user who opened the
 * device has reached the maximum of copies, and an operation or an answer is
 * longer than 16 KiB; or this is the device's first run, and the stores of the
 * user have reached their maximum size; -EINTR: the process was killed.
 *
 * With -EFAULT it fails even if operations were done, and their answers are
 * lost.
 */
struct llds_run {
	__u64 ops;
	__u64 answers;
	__u32 ops_bytes;
	__u32 answers_bytes;
	__u32 done;
	__u32 done_bytes;
	__u32 flags;
	__u32 reserved;
};

/*
 * An atomic run: all operations take effect at one instant, or none does. None
 * does if one fails, or is an LLDS_SET, LLDS_SWAP or LLDS_COMPARE whose
 * condition is false.
 * Then nothing is changed, and the call succeeds, but 'done' is the index of
 * that operation, 'done_bytes' is its offset, and the only answer is that
 * operation's. Otherwise 'done_bytes' is 'ops_bytes'.
 *
 * Without room for all answers, the run fails with -EMSGSIZE; 'answers_bytes'
 * is the least that it needs. -E2BIG also means more than LLDS_ATOMIC_BYTES_MAX
 * bytes of operations, or of answers. -EINVAL and -E2BIG may concern any
 * operation. Memory of replaced pairs is freed only at the end of the run.
 */
#define LLDS_RUN_ATOMIC 0x1
#define LLDS_ATOMIC_BYTES_MAX 0x10000000U

/* Does a run of operations. Changes need a device that is open for writing. */
#define LLDS_IOC_RUN _IOWR(LLDS_IOC_MAGIC, 1, struct llds_run)

/*
 * Number 6 is retired and must not be used again. It was LLDS_URING_RUN, a run
 * by io_uring. A ring that submits it gets -EOPNOTSUPP, as from every device
 * without commands; an ioctl gets -ENOTTY.
 */

/*
 * A shared read-only mapping of an open device shows its store. At the offset
 * LLDS_MAP_HEADER is a page that begins with struct llds_header. At
 * LLDS_MAP_BLOCKS are the blocks; a handle is an offset there in units of 16
 * bytes. At LLDS_MAP_BUCKETS are the buckets. These two have LLDS_MAP_BYTES
 * each. buckets.h, order.h and entry.h define the layout, and the checks of a
 * seqlock read. An access outside of the store's memory is a bus error; handles
 * that were checked as these headers say never lead there. Without
 * LLDS_MAPPABLE in 'flags' only the header can be mapped. While a mapping
 * exists, memory that the store frees stays mapped, as zeros.
 */
#define LLDS_MAP_HEADER 0
#define LLDS_MAP_BLOCKS 0x10000000000ULL
#define LLDS_MAP_BUCKETS 0x20000000000ULL
#define LLDS_MAP_BYTES 0x1000000000ULL

/**
 * struct llds_header - the header of a mapped store
 * @abi: LLDS_ABI
 * @flags: LLDS_MAPPABLE
 * @salt: the salt of the hash
 * @sequence: odd while changes are made that must become visible together
 * @order_sequence: odd while nodes of the order are made, split, merged or
 *	freed
 * @root: the root of the order, or 0
 * @height: levels of the order above its leaves
 * @buckets: number of buckets, and in the upper 32 bits the mask of those bits of
 *	a hash that number them
 */
struct llds_header {
	__u32 abi;
	__u32 flags;
	__u64 salt;
	__u32 sequence;
	__u32 order_sequence;
	__u32 root;
	__u32 height;
	__u64 buckets;
};

/* Blocks and buckets of the store can be mapped. */
#define LLDS_MAPPABLE 0x1

/*
 * Maximum length of a store's name, in bytes. The minimum is 1; no byte is 0.
 */
#define LLDS_NAME_BYTES_MAX 255

/* Creates the store if it does not exist. */
#define LLDS_CREATE 0x01
/* With LLDS_CREATE: fails if the store exists. */
#define LLDS_EXCLUSIVE 0x02
/*
 * The name is one of a user, whom 'uid' tells. Each user has names of its own,
 * and only that user can create stores with them. Names without this flag are
 * shared: they belong to the first user who creates a store with them.
 */
#define LLDS_OF_USER 0x04

/*
 * On which memory nodes a new store lies, if the machine has several: as the
 * policy of the process says that changes it, by default the node of its
 * processor; on all nodes in turn; or on one, while that has memory. What it
 * takes when it is created, values of more than 16 KiB, the engine's own tables,
 * and single pages always follow the process.
 */
#define LLDS_NUMA_LOCAL 0
#define LLDS_NUMA_INTERLEAVE 1
#define LLDS_NUMA_NODE 2

/**
 * struct llds_attach - attaches an open device to a store
 * @name: address of the store's name
 * @bytes_max: for a new store: its maximum size; 0, or more than the module's
 *	maximum, is the module's maximum
 * @name_bytes: bytes of the name
 * @mode: for a new store: permissions to read (0444) and write (0222), as of a
 *	file: owner, group, others
 * @flags: LLDS_CREATE, LLDS_EXCLUSIVE, LLDS_OF_USER
 * @uid: with LLDS_OF_USER, the user; otherwise zero. Afterwards, the owner of
 *	the store
 * @numa: for a new store: LLDS_NUMA_LOCAL, or another of these
 * @node: with LLDS_NUMA_NODE, the number of the node; otherwise zero
 */
struct llds_attach {
	__u64 name;
	__u64 bytes_max;
	__u32 name_bytes;
	__u32 mode;
	__u32 flags;
	__u32 uid;
	__u32 numa;
	__u32 node;
};

/*
 * Attaches an open device to a store with a name, which outlives the device.
 * The store's mode must permit reading if the device is open for reading, and
 * writing if it is open for writing; the process that creates the store may do
 * both. Later only the access of the open device matters.
 *
 * -EINVAL: the name is empty, too long or contains a 0; a flag or a bit of the
 * mode is unknown; the user namespace has no such user; the machine has no such
 * node, also if the store exists; -EPERM: the store does not exist, and only the
 * user of the name can create it; -EBADF: the device is open neither for reading
 * nor for writing; -EBUSY: the device has a store already, perhaps since its
 * first run;
 * -ENOENT; -EEXIST; -EACCES; -EINTR; and for a new store -EDQUOT: the stores
 * of this user have reached their maximum size; -ENOSPC: the maximum size is
 * too small even for an empty store; -ENFILE: the maximum number of names is
 * reached; -ENOMEM. With -EFAULT the device may be attached.
 */
#define LLDS_IOC_ATTACH _IOWR(LLDS_IOC_MAGIC, 2, struct llds_attach)

/*
 * Removes the name only if it is that of the store to which this open device is
 * attached; -ENOENT if it is not, or is no more.
 */
#define LLDS_ATTACHED 0x08

/**
 * struct llds_destroy - removes a store's name
 * @name: address of the name
 * @name_bytes: bytes of the name
 * @flags: LLDS_OF_USER, LLDS_ATTACHED
 * @uid: with LLDS_OF_USER, the user; otherwise zero
 * @reserved: zero
 */
struct llds_destroy {
	__u64 name;
	__u32 name_bytes;
	__u32 flags;
	__u32 uid;
	__u32 reserved;
};

/*
 * Removes a name at once. Open devices keep the store, which is freed when the
 * last of them is closed. -EBADF: the device is not open for writing; -EACCES:
 * the user is not the store's owner, and lacks CAP_FOWNER; -ENOENT.
 */
#define LLDS_IOC_DESTROY _IOW(LLDS_IOC_MAGIC, 3, struct llds_destroy)

/**
 * struct llds_list - lists stores
 * @room: address of room for records
 * @after: address of a name; the list begins after it, in byte order
 * @room_bytes: bytes of that room; afterwards, of the records
 * @after_bytes: bytes of that name; 0 begins with the first store
 * @count: afterwards: number of records
 * @more: afterwards: 1 if more stores follow the last one, or 0
 * @after_flags: LLDS_OF_USER if that name is one of a user, or zero
 * @after_uid: with LLDS_OF_USER, the user; otherwise zero
 */
struct llds_list {
	__u64 room;
	__u64 after;
	__u32 room_bytes;
	__u32 after_bytes;
	__u32 count;
	__u32 more;
	__u32 after_flags;
	__u32 after_uid;
};

/**
 * struct llds_listed - the head of a store's record in a list
 * @keys: number of pairs
 * @pair_bytes: bytes of their keys and values
 * @bytes: allocated bytes
 * @bytes_max: maximum of @bytes
 * @uid: the owner
 * @gid: the group
 * @mode: the permissions
 * @opens: number of open devices that are attached to it
 * @name_bytes: bytes of the name
 * @flags: LLDS_OF_USER if the name is one of the owner, or zero
 *
 * The bytes of the name follow, padded with zeros to a multiple of 8.
 */
struct llds_listed {
	__u64 keys;
	__u64 pair_bytes;
	__u64 bytes;
	__u64 bytes_max;
	__u32 uid;
	__u32 gid;
	__u32 mode;
	__u32 opens;
	__u32 name_bytes;
	__u32 flags;
};

/*
 * Lists the stores with a name that the user owns, or may read or write, as
 * many as fit in the room: those with shared names first, sorted by name, then
 * those of each user. Names of users whom the user namespace does not have are
 * left out. -EMSGSIZE: not even one fits.
 */
#define LLDS_IOC_LIST _IOWR(LLDS_IOC_MAGIC, 4, struct llds_list)

/**
 * struct llds_stats - the size and limits of a store
 * @keys: number of pairs
 * @pair_bytes: bytes of their keys and values
 * @bytes: allocated bytes
 * @bytes_max: maximum of @bytes
 * @value_bytes_max: maximum value length
 * @reserved: zeros
 */
struct llds_stats {
	__u64 keys;
	__u64 pair_bytes;
	__u64 bytes;
	__u64 bytes_max;
	__u64 value_bytes_max;
	__u64 reserved[3];
};

/* Statistics of the device's store. Makes a private store, as a run does. */
#define LLDS_IOC_STATS _IOR(LLDS_IOC_MAGIC, 5, struct llds_stats)

#endif /* _UAPI_LLDS_H */
