//! The client of llds, the kernel module of Forrest: stores in kernel memory that processes share.
//!
//! `Db::open` creates a store `llds:NAME` when it is first opened. The store outlives the processes that use
//! it: until [`destroy`], until the module is unloaded, or until the machine stops. By default only its user
//! may read and write it. Each user has names of its own: `llds:UID/NAME` is a store of another user, and
//! `llds:shared/NAME` one of the first user who took that name.
//!
//! It needs Linux with the module of `kernel/llds`; without the module, every call
//! fails with an `Io` error that says what to do. With the feature `user`, a store `llds-user:NAME` is the
//! module's engine in this process.
//!
//! | module | content |
//! |---|---|
//! | contract.rs | the traits of `forrest-engine` for the types below |
//! | cursor.rs | [`Cursor`]: a position in a store |
//! | store.rs | [`Store`]: operations on an open store |
//! | stores.rs | [`list`], [`destroy`], [`version`]: the stores of the machine |
//! | saved.rs | [`save`], [`restore`]: a store in a file; saved_file.rs: the bytes of that file |
//! | name.rs | whose a store's name is |
//! | failure.rs | the module's error numbers as errors that say what to do |
//! | buffers.rs | each thread's buffers |
//! | wire.rs | the bytes of operations and answers |
//! | doctor.rs | the state of the device, as a finding |
//! | raw/ | the device itself: the ABI, runs of operations, mapped reads; all unsafe code |
//! | sync.rs | atomics, which the models replace |
//!
//! A module uses only those below it.

mod buffers;
mod contract;
mod cursor;
pub mod doctor;
mod failure;
mod name;
pub mod raw;
mod saved;
mod saved_file;
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
pub use saved::{Saved, restore, save};
pub use store::Store;
pub use stores::{Version, destroy, list, version};

/// Maximum key length of a kernel store, in bytes. Other homes may allow longer keys.
pub const MAX_KEY_BYTES: usize = raw::abi::KEY_BYTES_MAX;
/// Maximum length of a kernel store's name, in bytes.
pub const MAX_NAME_BYTES: usize = raw::abi::NAME_BYTES_MAX;
