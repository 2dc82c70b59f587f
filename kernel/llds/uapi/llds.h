/* SPDX-License-Identifier: (GPL-2.0-only WITH Linux-syscall-note) OR MIT OR Apache-2.0 */
/*
 * llds - ordered key-value stores in kernel memory: what user space and the
 * module agree on. This is the only place where it is written.
 *
 * Every field has a fixed width, nothing is padded, pointers are 64 bits,
 * and reserved fields and unknown flags must be zero.
 */
#ifndef _UAPI_LLDS_H
#define _UAPI_LLDS_H

#include <linux/ioctl.h>
#include <linux/types.h>

/* Changes whenever something here changes its meaning. */
#define LLDS_ABI 2

/* The longest key, in bytes. The shortest has none. */
#define LLDS_KEY_BYTES_MAX 4096

/**
 * struct llds_version - what the module is
 * @abi: LLDS_ABI of the module
 * @key_bytes_max: the longest key that it takes
 * @value_bytes_max: the longest value that any of its stores takes
 * @reserved: zeros
 */
struct llds_version {
	__u32 abi;
	__u32 key_bytes_max;
	__u64 value_bytes_max;
	__u64 reserved[2];
};

#define LLDS_IOC_MAGIC 0xec

/* Tells the version. Needs no more than an open device. */
#define LLDS_IOC_VERSION _IOR(LLDS_IOC_MAGIC, 0, struct llds_version)

/**
 * struct llds_op - an operation: this, and behind it the bytes of the key, of
 *	the value and of the other, and zeros up to a multiple of 8 bytes
 * @code: what is to be done, one of LLDS_GET and so on
 * @flags: how
 * @key_bytes: bytes of the key
 * @value_bytes: bytes of the value
 * @other_bytes: bytes of the other
 * @limit: how many pairs a scan brings, or a range loses, at most; 0 elsewhere
 *
 * A key has at most LLDS_KEY_BYTES_MAX bytes. Operations lie one behind
 * another.
 */
struct llds_op {
	__u8 code;
	__u8 flags;
	__u16 key_bytes;
	__u32 value_bytes;
	__u32 other_bytes;
	__u32 limit;
};

/* The value of a key. With LLDS_NO_VALUE only whether there is one. */
#define LLDS_GET 1
/* Makes a key mean a value; with a flag, only if it is there, or is not. */
#define LLDS_SET 2
/* Removes a key. */
#define LLDS_DELETE 3
/*
 * Adds to a counter: 8 bytes, the highest first, two's complement. One that
 * is not there counts as 0. The value is a __s64 to add; the answer, the sum.
 */
#define LLDS_ADD 4
/*
 * Makes a key mean the value, or with LLDS_NO_VALUE nothing, if it means the
 * other, or with LLDS_NO_OTHER nothing. If it does not, the answer is
 * LLDS_DIFFERS with the value that it has, or LLDS_ABSENT.
 */
#define LLDS_SWAP 5
/* Removes the keys of a range; the answer is a __u64, how many. */
#define LLDS_DELETE_RANGE 6
/* The pairs of a range, each as struct llds_pair. */
#define LLDS_SCAN 7

#define LLDS_NO_VALUE 0x01
#define LLDS_NO_OTHER 0x02
/* For LLDS_SET. */
#define LLDS_IF_ABSENT 0x04
#define LLDS_IF_PRESENT 0x08
/*
 * For ranges: the key is the lower bound, and belongs to the range but with
 * LLDS_BEHIND_KEY; there is none if the key has no bytes. The other is the
 * upper bound, and does not belong to it but with LLDS_WITH_OTHER; there is
 * none with LLDS_NO_OTHER.
 */
#define LLDS_BEHIND_KEY 0x10
#define LLDS_WITH_OTHER 0x20
/* From the upper bound down; for LLDS_SCAN. */
#define LLDS_DOWN 0x40

/**
 * struct llds_answer - what an operation came to: this, and behind it so many
 *	bytes, and zeros up to a multiple of 8
 * @status: LLDS_DONE and so on, or an error number, negative
 * @bytes: how many bytes follow
 *
 * -EINVAL: a value that is no counter; -ERANGE: a counter that would overflow;
 * -ENOSPC: the store may take no more; -ENOMEM: there is no more. Then the
 * operation changed nothing, and the next one was done all the same.
 */
struct llds_answer {
	__s32 status;
	__u32 bytes;
};

#define LLDS_DONE 0
/* The key was not there. */
#define LLDS_ABSENT 1
/* It was there, and it or its value was not as it was to be. */
#define LLDS_DIFFERS 2
/* A range of which there is more, behind what has been done. */
#define LLDS_MORE 3

/**
 * struct llds_pair - a pair of a scan: this, and behind it the bytes of key and
 *	value, and zeros up to a multiple of 8
 * @key_bytes: bytes of the key
 * @value_bytes: bytes of the value
 */
struct llds_pair {
	__u32 key_bytes;
	__u32 value_bytes;
};

/**
 * struct llds_run - operations to be done, one after the other
 * @ops: address of the operations
 * @answers: address of room for the answers, in the same order
 * @ops_bytes: bytes of the operations
 * @answers_bytes: bytes of that room; afterwards, of the answers
 * @done: afterwards: how many operations were done
 * @done_bytes: afterwards: bytes of these operations
 * @flags: LLDS_RUN_ATOMIC, or zero
 * @reserved: zero
 *
 * Each operation takes place at one instant. The run ends behind the last one,
 * where there is no room for an answer, where something follows that cannot be
 * done, or where the process is to be killed. It fails only if nothing was
 * done: with -EINVAL, if that makes no sense or a flag is not known; -E2BIG, if
 * a value is too long; -EMSGSIZE, if there is not enough room for the first
 * answer, and then 'answers_bytes' says how much it needs; -EBADF, if it
 * changes something through a device that is not open to be written, or tells
 * something through one that is not open to be read; -ENOMEM, if it cannot be
 * copied; -EDQUOT, if this run is the first one and the user's stores may take no
 * more; -EINTR. With -EFAULT it fails even so, and the answers of
 * what was done are lost.
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
 * The operations take place as one: at one instant, or not at all. They do not
 * if one of them cannot be done, or is an LLDS_SET or LLDS_SWAP whose condition
 * does not hold. Then nothing is changed, and the run does not fail; but 'done'
 * is the number of that operation, 'done_bytes' is where it begins, and the
 * only answer is its own. Otherwise 'done_bytes' is 'ops_bytes'.
 *
 * There is room for all answers, or the run fails with -EMSGSIZE; then
 * 'answers_bytes' says how much it needs at least. -E2BIG: there are more
 * than LLDS_ATOMIC_BYTES_MAX bytes of operations. -EINVAL and -E2BIG mean
 * any of the operations. While it is being done, the memory of what it
 * replaces is still taken.
 */
#define LLDS_RUN_ATOMIC 0x1
#define LLDS_ATOMIC_BYTES_MAX 0x10000000U

/* Does operations. To change something, the device must be open for writing. */
#define LLDS_IOC_RUN _IOWR(LLDS_IOC_MAGIC, 1, struct llds_run)

/*
 * Number 6 is retired and is not used again. It was LLDS_URING_RUN, a run by
 * io_uring. A ring that submits it gets -EOPNOTSUPP, as from every device that
 * takes no commands; an ioctl gets -ENOTTY. LLDS_ABI stayed 2, because nothing
 * that is left changed its meaning.
 */

/*
 * A mapping of the device, shared and only to be read, shows the store of an
 * open device: at LLDS_MAP_HEADER a page that begins with struct llds_header;
 * from LLDS_MAP_BLOCKS and LLDS_MAP_BUCKETS on, LLDS_MAP_BYTES each, the
 * blocks that handles name, 16 bytes a handle, and the buckets. What is there
 * say buckets.h, order.h and entry.h, and what a reader must look at before it
 * believes any of it. Memory that is not there is a bus error: no handle leads
 * to it that was looked at as they say. Without LLDS_MAPPABLE in 'flags' there
 * is only the header. What the store gives back stays in sight, as zeros,
 * until its last mapping has gone.
 */
#define LLDS_MAP_HEADER 0
#define LLDS_MAP_BLOCKS 0x10000000000ULL
#define LLDS_MAP_BUCKETS 0x20000000000ULL
#define LLDS_MAP_BYTES 0x1000000000ULL

/**
 * struct llds_header - where the things of a store are
 * @abi: LLDS_ABI
 * @flags: LLDS_MAPPABLE
 * @salt: of the hash
 * @sequence: odd while several changes are made that are to be seen as one
 * @buckets: how many buckets there are
 * @order_sequence: odd while nodes of the order are made, merged or freed
 * @root: the root of the order, or 0
 * @height: levels of the order above its leaves
 * @reserved: zero
 */
struct llds_header {
	__u32 abi;
	__u32 flags;
	__u64 salt;
	__u32 sequence;
	__u32 buckets;
	__u32 order_sequence;
	__u32 root;
	__u32 height;
	__u32 reserved;
};

/* The store has buckets and an order, which can be read in a mapping. */
#define LLDS_MAPPABLE 0x1

/* The longest name of a store, in bytes. It has one at least, none of them 0. */
#define LLDS_NAME_BYTES_MAX 255

/* Makes the store if there is none of that name. */
#define LLDS_CREATE 0x01
/* With LLDS_CREATE: fails if there is one. */
#define LLDS_EXCLUSIVE 0x02

/**
 * struct llds_attach - which store an open device is about
 * @name: address of its name
 * @bytes_max: of a store that is made: what it may take at most; 0, or more
 *	than the module allows: as much as any
 * @name_bytes: bytes of the name
 * @mode: of a store that is made: who may read it (0444) and write to it
 *	(0222), as of a file: owner, group, others
 * @flags: LLDS_CREATE, LLDS_EXCLUSIVE
 * @reserved: zero
 */
struct llds_attach {
	__u64 name;
	__u64 bytes_max;
	__u32 name_bytes;
	__u32 mode;
	__u32 flags;
	__u32 reserved;
};

/*
 * Makes the open device one of a store with a name, which outlives it. The
 * store's mode must let the user read, if the device is open to be read, and
 * write, if it is open to be written; who makes it may do both. Later it counts
 * only what the device is open for.
 *
 * -EINVAL: no name, one that is too long or has a 0, an unknown flag or bit of
 * the mode; -EBADF: the device is open for neither; -EBUSY: it is about a store
 * already, perhaps since its first run; -ENOENT; -EEXIST; -EACCES; and where one
 * is made: -EDQUOT, the stores of this user may take no more; -ENOSPC, not even
 * a store without a pair takes so little; -ENFILE, there may be no more names;
 * -ENOMEM; -EINTR.
 */
#define LLDS_IOC_ATTACH _IOW(LLDS_IOC_MAGIC, 2, struct llds_attach)

/**
 * struct llds_destroy - which store loses its name
 * @name: address of its name
 * @name_bytes: bytes of the name
 * @flags: zero
 */
struct llds_destroy {
	__u64 name;
	__u32 name_bytes;
	__u32 flags;
};

/*
 * Takes a name away, at once. Who has the store open goes on with it, and it
 * goes with the last of them. The device must be open for writing, or -EBADF,
 * and the store the user's own, or he has CAP_FOWNER, or -EACCES; -ENOENT.
 */
#define LLDS_IOC_DESTROY _IOW(LLDS_IOC_MAGIC, 3, struct llds_destroy)

/**
 * struct llds_list - which stores there are
 * @room: address of room for records
 * @after: address of the name behind which to begin, in the order of bytes
 * @room_bytes: bytes of that room; afterwards, of the records
 * @after_bytes: bytes of that name; 0: from the first one
 * @count: afterwards: how many records there are
 * @more: afterwards: 1 if there are more behind the last one, or 0
 */
struct llds_list {
	__u64 room;
	__u64 after;
	__u32 room_bytes;
	__u32 after_bytes;
	__u32 count;
	__u32 more;
};

/**
 * struct llds_listed - a store of a list: this, and behind it the bytes of its
 *	name, and zeros up to a multiple of 8
 * @keys: how many pairs it has
 * @pair_bytes: bytes of their keys and values
 * @bytes: what it takes
 * @bytes_max: what it may take
 * @uid: its owner
 * @gid: its group
 * @mode: who may read and write
 * @opens: how many open devices are about it
 * @name_bytes: bytes of the name
 * @reserved: zero
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
	__u32 reserved;
};

/*
 * The stores with a name that the user owns, or may read or write, sorted by
 * name; some of them, if there are many. -EMSGSIZE: not one fits in the room.
 */
#define LLDS_IOC_LIST _IOWR(LLDS_IOC_MAGIC, 4, struct llds_list)

/**
 * struct llds_stats - what a store has and takes
 * @keys: how many pairs it has
 * @pair_bytes: bytes of their keys and values
 * @bytes: what it takes
 * @bytes_max: what it may take
 * @value_bytes_max: the longest value that it takes
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

/* Of the store that this open device is about. Makes its own, as a run does. */
#define LLDS_IOC_STATS _IOR(LLDS_IOC_MAGIC, 5, struct llds_stats)

#endif /* _UAPI_LLDS_H */
