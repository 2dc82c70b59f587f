//! The client of llds, the kernel module of Forrest: stores in kernel memory that processes share.
//!
//! A store `llds:NAME` is made when it is first opened, by `Db::open`, and outlives the processes that use it: until it
//! is destroyed here, the module is unloaded or the machine stops. Its user alone may read and write it. All of it is
//! for Linux with the module of `kernel/llds`; without, every call is an `Io` error that says what to do. A store
//! `llds-user:NAME` is the module's engine in this process, with the feature `user`.
//!
//! | module | what it has |
//! |---|---|
//! | contract.rs | the traits of `forrest-engine` for the types below |
//! | cursor.rs | [`Cursor`]: a position in a store |
//! | store.rs | [`Store`]: operations on an open store |
//! | stores.rs | [`list`], [`destroy`], [`version`]: the stores of the machine |
//! | failure.rs | what the module fails with, as errors that say what to do |
//! | buffers.rs | buffers of each thread |
//! | wire.rs | operations and answers, as the module takes and gives them |
//! | doctor.rs | how the device stands, as a finding |
//! | raw/ | the device itself: the ABI, runs of operations, mapped reads; all unsafe code |
//! | sync.rs | atomics, which the models replace |
//!
//! A module uses only those below it.

mod buffers;
mod contract;
mod cursor;
pub mod doctor;
mod failure;
pub mod raw;
mod store;
mod stores;
mod sync;
mod wire;

#[cfg(all(test, feature = "loom"))]
mod models;

pub use contract::{Keyspace, View};
pub use cursor::Cursor;
pub use failure::Kind;
pub use raw::Listed;
pub use store::Store;
pub use stores::{Version, destroy, list, version};

/// Longest key of a store in the kernel, in bytes; the shortest has none. Those of other homes may be longer.
pub const MAX_KEY_BYTES: usize = raw::abi::KEY_BYTES_MAX;
/// Longest name of a store in the kernel, in bytes.
pub const MAX_NAME_BYTES: usize = raw::abi::NAME_BYTES_MAX;
