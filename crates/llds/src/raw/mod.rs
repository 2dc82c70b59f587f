//! The llds device: ordered stores in kernel memory, used through runs of operations.
//!
//! [`Device`] is an open `/dev/llds`. With the feature `user`, `User` is the same engine built into this
//! process, for tests and for machines without the module. [`RawStore`] is either of them, attached to a store.
//! [`abi`] and `kernel/llds/uapi/llds.h` define the bytes of a run and of its answers. This module passes
//! runs to the engine, and checks that the lengths that the engine returns fit in the buffers that it was
//! given.
//!
//! `docs/layers.txt` has the order of the modules.

pub mod abi;
mod acting;
mod device;
mod error;
mod mapped;
mod ordered;
mod probe;
mod ran;
pub(crate) mod seqlock;
pub(crate) mod seqlock_scan;
mod store;
#[cfg(feature = "user")]
mod user;

pub use device::{Attach, DEVICE_PATH, Device, Listed};
pub use error::{Cause, Error, Result};
pub use mapped::Mapped;
pub use ordered::{Bounds, Piece};
pub use probe::{Found, Node, Opened, device, group_name, user_name};
pub use ran::Ran;
pub use store::RawStore;
#[cfg(feature = "user")]
pub use user::User;
