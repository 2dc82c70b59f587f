//! The ABI of the module: the numbers and layouts of `kernel/llds/uapi/llds.h`.
//!
//! That header documents them. A test compares every number and layout here with the header. Users of a
//! [`RawStore`](super::RawStore) write the bytes of operations and read those of answers; the arguments of
//! commands, which contain addresses, stay in this module.

/// The version of the ABI, `LLDS_ABI`.
pub const ABI: u32 = 7;
/// Maximum key length, in bytes.
pub const KEY_BYTES_MAX: usize = 4096;
/// Maximum length of a store's name, in bytes.
pub const NAME_BYTES_MAX: usize = 255;
/// Maximum bytes of operations in an atomic run.
pub const ATOMIC_BYTES_MAX: usize = 0x1000_0000;

/// Reads the value of a key.
pub const GET: u8 = 1;
/// Sets a key to a value.
pub const SET: u8 = 2;
/// Removes a key.
pub const DELETE: u8 = 3;
/// Adds to a counter.
pub const ADD: u8 = 4;
/// Sets a key to `value` if its current value equals `other`.
pub const SWAP: u8 = 5;
/// Removes the keys of a range.
pub const DELETE_RANGE: u8 = 6;
/// Reads the pairs of a range.
pub const SCAN: u8 = 7;
/// Compares the pairs of a range with the expected ones.
pub const COMPARE: u8 = 8;

/// No value. A get reports only whether the key exists; a swap deletes the key.
pub const NO_VALUE: u8 = 0x01;
/// No other. A swap expects the key to be absent; a range has no upper bound.
pub const NO_OTHER: u8 = 0x02;
/// A set is done only if the key is absent.
pub const IF_ABSENT: u8 = 0x04;
/// A set is done only if the key exists.
pub const IF_PRESENT: u8 = 0x08;
/// The lower bound is excluded.
pub const BEHIND_KEY: u8 = 0x10;
/// The upper bound is included.
pub const WITH_OTHER: u8 = 0x20;
/// A scan begins at the upper bound and descends.
pub const DOWN: u8 = 0x40;

/// The operation was done.
pub const DONE: i32 = 0;
/// The key was absent.
pub const ABSENT: i32 = 1;
/// The key existed, and that or its value was not as expected; or a range.
pub const DIFFERS: i32 = 2;
/// The range has more pairs.
pub const MORE: i32 = 3;

/// The device offset of the [`Header`]'s mapping.
pub const MAP_HEADER: u64 = 0;
/// Bytes of that mapping: one page.
pub(super) const MAP_HEADER_BYTES: u64 = 4096;
/// The device offset of the mapping of the blocks, which handles name.
pub const MAP_BLOCKS: u64 = 0x100_0000_0000;
/// The device offset of the mapping of the buckets.
pub const MAP_BUCKETS: u64 = 0x200_0000_0000;
/// Bytes of the mapping of the blocks, and of that of the buckets.
pub const MAP_BYTES: u64 = 0x10_0000_0000;
/// Flag of a [`Header`]: blocks and buckets can be mapped too.
pub const MAPPABLE: u32 = 0x1;

/// The run is atomic: all of its operations are applied at one instant, or none is.
pub(super) const RUN_ATOMIC: u32 = 0x1;
/// Creates the store if it does not exist.
pub(super) const CREATE: u32 = 0x01;
/// With [`CREATE`]: fails if the store exists.
pub(super) const EXCLUSIVE: u32 = 0x02;
/// The name is one of a user.
pub(super) const OF_USER: u32 = 0x04;
/// Of [`command::DESTROY`]: removes the name only if it is that of the store to which the device is attached.
pub(super) const ATTACHED: u32 = 0x08;
/// The memory nodes of a new store: as the policy of the process says.
pub(super) const NUMA_LOCAL: u32 = 0;
/// All in turn.
pub(super) const NUMA_INTERLEAVE: u32 = 1;
/// One.
pub(super) const NUMA_NODE: u32 = 2;

/// The magic byte of the module's ioctl commands.
pub(super) const MAGIC: u8 = 0xe9;

/// Declares a struct of the header, and its layout for the test.
macro_rules! layout {
    ($(#[$doc:meta])* $visibility:vis struct $name:ident / $c_name:ident, $bytes:literal: {
        $($(#[$field_doc:meta])* $field:ident: $type:ty,)*
    }) => {
        $(#[$doc])*
        #[repr(C)]
        #[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
        $visibility struct $name {
            $($(#[$field_doc])* pub $field: $type,)*
        }

        const _: () = assert!(size_of::<$name>() == $bytes);

        impl $name {
            /// Name, offset and size of each field, and the size of the struct.
            #[cfg(test)]
            const LAYOUT: Layout = Layout {
                name: stringify!($c_name),
                fields: &[$((
                    stringify!($field),
                    std::mem::offset_of!($name, $field),
                    {
                        // Infers the field's type from a closure that borrows it.
                        const fn size_of_field<T>(_: fn(&$name) -> &T) -> usize {
                            size_of::<T>()
                        }
                        size_of_field(|all| &all.$field)
                    },
                )),*],
                bytes: $bytes,
            };
        }
    };
}

layout! {
    /// The module's version and limits.
    pub struct Version / llds_version, 32: {
        /// The version of the ABI; this library supports [`ABI`].
        abi: u32,
        /// Maximum key length.
        key_bytes_max: u32,
        /// Maximum value length of all its stores.
        value_bytes_max: u64,
        /// Zeros.
        reserved: [u64; 2],
    }
}

layout! {
    /// The head of an operation. The bytes of key, value and other follow, padded with zeros to a multiple of
    /// 8.
    pub struct Op / llds_op, 16: {
        /// The operation, such as [`GET`].
        code: u8,
        /// Flags, such as [`NO_VALUE`].
        flags: u8,
        /// Bytes of the key.
        key_bytes: u16,
        /// Bytes of the value.
        value_bytes: u32,
        /// Bytes of the other.
        other_bytes: u32,
        /// Maximum number of pairs that a scan returns or a delete-range deletes; 0 is no limit.
        limit: u32,
    }
}

layout! {
    /// The head of an answer. Its bytes follow, padded with zeros to a multiple of 8.
    pub struct Answer / llds_answer, 8: {
        /// A status such as [`DONE`], or a negative error number.
        status: i32,
        /// Number of bytes that follow.
        bytes: u32,
    }
}

layout! {
    /// The head of a scanned pair. Key and value follow, padded with zeros to a multiple of 8.
    pub struct Pair / llds_pair, 8: {
        /// Bytes of the key.
        key_bytes: u32,
        /// Bytes of the value.
        value_bytes: u32,
    }
}

layout! {
    /// The argument of a run.
    pub(super) struct Run / llds_run, 40: {
        ops: u64,
        answers: u64,
        ops_bytes: u32,
        answers_bytes: u32,
        done: u32,
        done_bytes: u32,
        flags: u32,
        reserved: u32,
    }
}

layout! {
    /// The argument that attaches an open device to a store.
    pub(super) struct Attach / llds_attach, 40: {
        name: u64,
        bytes_max: u64,
        name_bytes: u32,
        mode: u32,
        flags: u32,
        uid: u32,
        numa: u32,
        node: u32,
    }
}

layout! {
    /// The argument that names a store to destroy.
    pub(super) struct Destroy / llds_destroy, 24: {
        name: u64,
        name_bytes: u32,
        flags: u32,
        uid: u32,
        reserved: u32,
    }
}

layout! {
    /// The argument that asks for a piece of the list of stores.
    pub(super) struct List / llds_list, 40: {
        room: u64,
        after: u64,
        room_bytes: u32,
        after_bytes: u32,
        count: u32,
        more: u32,
        after_flags: u32,
        after_uid: u32,
    }
}

layout! {
    /// The head of a record of that list. The name follows, padded with zeros to a multiple of 8.
    pub(super) struct Listed / llds_listed, 56: {
        keys: u64,
        pair_bytes: u64,
        bytes: u64,
        bytes_max: u64,
        uid: u32,
        gid: u32,
        mode: u32,
        opens: u32,
        name_bytes: u32,
        flags: u32,
    }
}

layout! {
    /// The size and limits of a store.
    pub struct Stats / llds_stats, 64: {
        /// Keys.
        keys: u64,
        /// Bytes of keys and values.
        pair_bytes: u64,
        /// Bytes of memory that the store has allocated.
        bytes: u64,
        /// Maximum bytes of memory.
        bytes_max: u64,
        /// Maximum value length.
        value_bytes_max: u64,
        /// Zeros.
        reserved: [u64; 3],
    }
}

layout! {
    /// The header of a mapped store.
    pub struct Header / llds_header, 40: {
        /// [`ABI`].
        abi: u32,
        /// [`MAPPABLE`].
        flags: u32,
        /// The salt of the hash.
        salt: u64,
        /// Odd while a writer makes changes that must become visible together.
        sequence: u32,
        /// Odd while nodes of the order are made, split, merged or freed.
        order_sequence: u32,
        /// The root of the order, or 0.
        root: u32,
        /// Levels of the order above its leaves.
        height: u32,
        /// Number of buckets, and in the upper 32 bits the mask of those bits of a hash that number them.
        buckets: u64,
    }
}

/// The layout of a struct, to be compared with the header's.
#[cfg(test)]
#[derive(Debug, PartialEq, Eq)]
struct Layout {
    name: &'static str,
    fields: &'static [(&'static str, usize, usize)],
    bytes: usize,
}

/// The ioctl commands. `read` and `write` are as seen from user space.
pub(super) mod command {
    use super::{Attach, Destroy, List, MAGIC, Run, Stats, Version};
    use rustix::ioctl::{Opcode, opcode};

    pub(in super::super) const VERSION: Opcode = opcode::read::<Version>(MAGIC, 0);
    pub(in super::super) const RUN: Opcode = opcode::read_write::<Run>(MAGIC, 1);
    pub(in super::super) const ATTACH: Opcode = opcode::read_write::<Attach>(MAGIC, 2);
    pub(in super::super) const DESTROY: Opcode = opcode::write::<Destroy>(MAGIC, 3);
    pub(in super::super) const LIST: Opcode = opcode::read_write::<List>(MAGIC, 4);
    pub(in super::super) const STATS: Opcode = opcode::read::<Stats>(MAGIC, 5);
}

#[cfg(test)]
#[path = "abi_tests.rs"]
mod tests;
