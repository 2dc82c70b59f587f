//! [`RawStore`]: a store in the kernel, or a store of the same engine in this process.

use super::abi;
use super::device::{Attach, Device};
use super::error::Result;
use super::mapped::Mapped;
use super::ran::Ran;
#[cfg(feature = "user")]
use super::user::User;

/// A store that runs of operations read and change.
#[derive(Debug)]
#[non_exhaustive]
pub enum RawStore {
    /// In the kernel.
    Device(Device),
    /// In this process.
    #[cfg(feature = "user")]
    User(User),
}

impl RawStore {
    /// Opens a store in the kernel.
    ///
    /// # Errors
    /// As [`Device::open`] and [`Device::attach`].
    pub fn open(attach: &Attach<'_>, may_change: bool) -> Result<RawStore> {
        let device = Device::open(may_change)?;
        device.attach(attach)?;
        Ok(RawStore::Device(device))
    }

    /// Creates a store in the kernel, which must not exist, and opens it. It belongs to `owner`, a user and a group.
    ///
    /// # Errors
    /// As [`Device::open`] and [`Device::create`].
    pub fn create(attach: &Attach<'_>, owner: (u32, u32)) -> Result<RawStore> {
        let device = Device::open(true)?;
        device.create(attach, owner)?;
        Ok(RawStore::Device(device))
    }

    /// Removes the name of this store. A store in this process has none.
    ///
    /// # Errors
    /// As [`Device::destroy_own`].
    pub fn destroy(&self, user: Option<u32>, name: &[u8]) -> Result<()> {
        match self {
            RawStore::Device(device) => device.destroy_own(user, name),
            #[cfg(feature = "user")]
            RawStore::User(_) => Ok(()),
        }
    }

    /// Does a run of operations, whose format [`abi`] documents. Writes their answers to the beginning of
    /// `answers`. With `is_atomic`, all operations are applied at one instant, or none is.
    ///
    /// # Errors
    /// The engine's error, or [`Cause::Nonsense`](super::Cause::Nonsense) for an invalid answer.
    #[inline]
    pub fn run(&self, ops: &[u8], answers: &mut [u8], is_atomic: bool) -> Result<Ran> {
        match self {
            RawStore::Device(device) => device.run(ops, answers, is_atomic),
            #[cfg(feature = "user")]
            RawStore::User(user) => user.run(ops, answers, is_atomic),
        }
    }

    /// The mapping of the store, in which lookups need no system call; `None` if the store cannot be mapped.
    /// While a mapping exists, the store does not return freed memory to the system.
    #[inline]
    pub fn mapped(&self) -> Option<&Mapped> {
        match self {
            RawStore::Device(device) => device.mapped(),
            #[cfg(feature = "user")]
            RawStore::User(user) => user.mapped(),
        }
    }

    /// The size and limits of the store.
    ///
    /// # Errors
    /// The system's error.
    pub fn stats(&self) -> Result<abi::Stats> {
        match self {
            RawStore::Device(device) => device.stats(),
            #[cfg(feature = "user")]
            RawStore::User(user) => user.stats(),
        }
    }

    /// Maximum value length, in bytes.
    pub fn value_bytes_max(&self) -> u64 {
        match self {
            RawStore::Device(device) => device.version().value_bytes_max,
            #[cfg(feature = "user")]
            RawStore::User(_) => User::VALUE_BYTES_MAX.into(),
        }
    }

    /// Whether this handle may change the store.
    pub fn may_change(&self) -> bool {
        match self {
            RawStore::Device(device) => device.may_change(),
            #[cfg(feature = "user")]
            RawStore::User(user) => user.may_change(),
        }
    }
}
