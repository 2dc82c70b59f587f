//! The llds device: ordered stores in the memory of the kernel, asked by runs of operations.
//!
//! [`Device`] is an open `/dev/llds`. With the feature `user`, `User` is the same engine built into this process: for
//! tests, and for machines without the module. [`Store`] is either of them, attached to a store. What a run says and
//! what its answers mean is in [`abi`] and in `kernel/llds/uapi/llds.h`; here it is brought to the engine and back, and
//! only its lengths are looked at. What an engine answers is checked against the room that it had, and never trusted to
//! be within it.
//!
//! `docs/layers.txt` has their order.

pub mod abi;
mod device;
mod error;
mod mapped;
mod ordered;
mod probe;
mod ran;
pub(crate) mod sight;
mod store;
#[cfg(feature = "user")]
mod user;
pub(crate) mod walk;

pub use device::{Attach, DEVICE_PATH, Device, Listed};
pub use error::{Cause, Error, Result};
pub use mapped::Mapped;
pub use ordered::{Bounds, Piece};
pub use probe::{Found, Node, Opened, device, group_name, user_name};
pub use ran::Ran;
pub use store::Store;
#[cfg(feature = "user")]
pub use user::User;
