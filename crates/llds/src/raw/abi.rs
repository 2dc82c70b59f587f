//! What user space and the module agree on: the numbers and layouts of `kernel/llds/uapi/llds.h`.
//!
//! They are written there; a test reads that file and compares every one of them with what is here. The bytes of
//! operations and answers are made and read by whoever uses a [`Store`](super::Store); the arguments of commands, which
//! hold addresses, stay in this module.

/// The version of the agreement, `LLDS_ABI`.
pub const ABI: u32 = 2;
/// The longest key, in bytes.
pub const KEY_BYTES_MAX: usize = 4096;
/// The longest name of a store, in bytes.
pub const NAME_BYTES_MAX: usize = 255;
/// Most bytes of operations in a run that takes place as one.
pub const ATOMIC_BYTES_MAX: usize = 0x1000_0000;

/// The value of a key.
pub const GET: u8 = 1;
/// Makes a key mean a value.
pub const SET: u8 = 2;
/// Removes a key.
pub const DELETE: u8 = 3;
/// Adds to a counter.
pub const ADD: u8 = 4;
/// Makes a key mean the value if it means the other.
pub const SWAP: u8 = 5;
/// Removes the keys of a range.
pub const DELETE_RANGE: u8 = 6;
/// The pairs of a range.
pub const SCAN: u8 = 7;

/// Without a value: of a get, only whether there is one; of a swap, the key shall not be there.
pub const NO_VALUE: u8 = 0x01;
/// Without the other: of a swap, the key must not be there; of a range, there is no upper bound.
pub const NO_OTHER: u8 = 0x02;
/// A set takes place only if the key is not there.
pub const IF_ABSENT: u8 = 0x04;
/// A set takes place only if the key is there.
pub const IF_PRESENT: u8 = 0x08;
/// The lower bound does not belong to the range.
pub const BEHIND_KEY: u8 = 0x10;
/// The upper bound belongs to the range.
pub const WITH_OTHER: u8 = 0x20;
/// A scan goes from the upper bound down.
pub const DOWN: u8 = 0x40;

/// It was done.
pub const DONE: i32 = 0;
/// The key was not there.
pub const ABSENT: i32 = 1;
/// It was there, and it or its value was not as it was to be.
pub const DIFFERS: i32 = 2;
/// A range of which there is more.
pub const MORE: i32 = 3;

/// Where a mapping of the device has its [`Header`].
pub const MAP_HEADER: u64 = 0;
/// Bytes of the page there.
pub(super) const MAP_HEADER_BYTES: u64 = 4096;
/// Where a mapping has the blocks that handles name.
pub const MAP_BLOCKS: u64 = 0x100_0000_0000;
/// Where a mapping has the buckets.
pub const MAP_BUCKETS: u64 = 0x200_0000_0000;
/// Bytes of each of these two.
pub const MAP_BYTES: u64 = 0x10_0000_0000;
/// Of a [`Header`]: there is more than itself to be seen.
pub const MAPPABLE: u32 = 0x1;

/// All operations of a run take place as one, or none of them does.
pub(super) const RUN_ATOMIC: u32 = 0x1;
/// Makes the store if there is none of that name.
pub(super) const CREATE: u32 = 0x01;
/// With [`CREATE`]: only if there is none.
#[cfg(test)]
const EXCLUSIVE: u32 = 0x02;

/// The byte by which commands are known as the module's.
pub(super) const MAGIC: u8 = 0xec;

/// Declares a struct of the header, and for the test what its fields are.
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
            /// Name, place and size of each field, and the size of all.
            #[cfg(test)]
            const LAYOUT: Layout = Layout {
                name: stringify!($c_name),
                fields: &[$((
                    stringify!($field),
                    std::mem::offset_of!($name, $field),
                    {
                        // The type of a field by way of its value.
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
    /// What the module is.
    pub struct Version / llds_version, 32: {
        /// The version of the agreement; this library knows [`ABI`].
        abi: u32,
        /// The longest key that it takes.
        key_bytes_max: u32,
        /// The longest value that any of its stores takes.
        value_bytes_max: u64,
        /// Zeros.
        reserved: [u64; 2],
    }
}

layout! {
    /// How an operation begins. Behind it lie the bytes of key, value and other, and zeros up to a multiple of 8.
    pub struct Op / llds_op, 16: {
        /// What is to be done.
        code: u8,
        /// How.
        flags: u8,
        /// Bytes of the key.
        key_bytes: u16,
        /// Bytes of the value.
        value_bytes: u32,
        /// Bytes of the other.
        other_bytes: u32,
        /// How many pairs a scan brings, or a range loses, at most; 0 is no limit.
        limit: u32,
    }
}

layout! {
    /// How an answer begins. Behind it lie its bytes, and zeros up to a multiple of 8.
    pub struct Answer / llds_answer, 8: {
        /// [`DONE`] and so on, or a negative error number.
        status: i32,
        /// How many bytes follow.
        bytes: u32,
    }
}

layout! {
    /// How a pair of a scan begins. Behind it lie key and value, and zeros up to a multiple of 8.
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
    /// Which store an open device is about.
    pub(super) struct Attach / llds_attach, 32: {
        name: u64,
        bytes_max: u64,
        name_bytes: u32,
        mode: u32,
        flags: u32,
        reserved: u32,
    }
}

layout! {
    /// Which store is to be destroyed.
    pub(super) struct Destroy / llds_destroy, 16: {
        name: u64,
        name_bytes: u32,
        flags: u32,
    }
}

layout! {
    /// Room for a piece of the list of stores.
    pub(super) struct List / llds_list, 32: {
        room: u64,
        after: u64,
        room_bytes: u32,
        after_bytes: u32,
        count: u32,
        more: u32,
    }
}

layout! {
    /// A record of that list. Behind it lies the name, and zeros up to a multiple of 8.
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
        reserved: u32,
    }
}

layout! {
    /// What a store holds and costs.
    pub struct Stats / llds_stats, 64: {
        /// Keys.
        keys: u64,
        /// Bytes of keys and values.
        pair_bytes: u64,
        /// Bytes of memory that it has taken.
        bytes: u64,
        /// Bytes that it may take.
        bytes_max: u64,
        /// The longest value that it takes.
        value_bytes_max: u64,
        /// Zeros.
        reserved: [u64; 3],
    }
}

layout! {
    /// What a mapping begins with: where the things of a store are.
    pub struct Header / llds_header, 40: {
        /// [`ABI`].
        abi: u32,
        /// [`MAPPABLE`].
        flags: u32,
        /// Of the hash.
        salt: u64,
        /// Odd while several changes are made that are to be seen as one.
        sequence: u32,
        /// How many buckets there are.
        buckets: u32,
        /// Odd while nodes of the order are made, merged or freed.
        order_sequence: u32,
        /// The root of the order, or 0.
        root: u32,
        /// Levels of the order above its leaves.
        height: u32,
        /// Zero.
        reserved: u32,
    }
}

/// A struct as the header has it.
#[cfg(test)]
#[derive(Debug, PartialEq, Eq)]
struct Layout {
    name: &'static str,
    fields: &'static [(&'static str, usize, usize)],
    bytes: usize,
}

/// The commands: what they are called, whether they are written and read (seen from user space), and their numbers.
pub(super) mod command {
    use super::{Attach, Destroy, List, MAGIC, Run, Stats, Version};
    use rustix::ioctl::{Opcode, opcode};

    pub(in super::super) const VERSION: Opcode = opcode::read::<Version>(MAGIC, 0);
    pub(in super::super) const RUN: Opcode = opcode::read_write::<Run>(MAGIC, 1);
    pub(in super::super) const ATTACH: Opcode = opcode::write::<Attach>(MAGIC, 2);
    pub(in super::super) const DESTROY: Opcode = opcode::write::<Destroy>(MAGIC, 3);
    pub(in super::super) const LIST: Opcode = opcode::read_write::<List>(MAGIC, 4);
    pub(in super::super) const STATS: Opcode = opcode::read::<Stats>(MAGIC, 5);
}

#[cfg(test)]
#[path = "abi_tests.rs"]
mod tests;
