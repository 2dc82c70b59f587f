//! [`Store`]: a store in the kernel, or one of the same engine in this process.

use super::abi;
use super::device::{Attach, Device};
use super::error::Result;
use super::mapped::Mapped;
use super::ran::Ran;
#[cfg(feature = "user")]
use super::user::User;

/// A store to be asked by runs of operations.
#[derive(Debug)]
#[non_exhaustive]
pub enum Store {
    /// In the kernel.
    Device(Device),
    /// In this process.
    #[cfg(feature = "user")]
    User(User),
}

impl Store {
    /// Opens a store in the kernel.
    ///
    /// # Errors
    /// As [`Device::open`] and [`Device::attach`].
    pub fn open(attach: &Attach<'_>, may_change: bool) -> Result<Store> {
        let device = Device::open(may_change)?;
        device.attach(attach)?;
        Ok(Store::Device(device))
    }

    /// Does a run of operations: see [`abi`] for what it says. The answers go to the beginning of `answers`. With
    /// `is_atomic` it takes place as one, or nothing of it does.
    ///
    /// # Errors
    /// What the engine says, and an answer that cannot be.
    #[inline]
    pub fn run(&self, ops: &[u8], answers: &mut [u8], is_atomic: bool) -> Result<Ran> {
        match self {
            Store::Device(device) => device.run(ops, answers, is_atomic),
            #[cfg(feature = "user")]
            Store::User(user) => user.run(ops, answers, is_atomic),
        }
    }

    /// The store in sight, where keys are looked up without a system call; `None` if it cannot be. Once it is, what the
    /// store gives back stays in memory until the last who have it in sight are gone.
    #[inline]
    pub fn mapped(&self) -> Option<&Mapped> {
        match self {
            Store::Device(device) => device.mapped(),
            #[cfg(feature = "user")]
            Store::User(user) => user.mapped(),
        }
    }

    /// What it holds and costs.
    ///
    /// # Errors
    /// What the system says.
    pub fn stats(&self) -> Result<abi::Stats> {
        match self {
            Store::Device(device) => device.stats(),
            #[cfg(feature = "user")]
            Store::User(user) => user.stats(),
        }
    }

    /// The longest value that it takes.
    pub fn value_bytes_max(&self) -> u64 {
        match self {
            Store::Device(device) => device.version().value_bytes_max,
            #[cfg(feature = "user")]
            Store::User(_) => User::VALUE_BYTES_MAX.into(),
        }
    }

    /// Whether it can be changed through this.
    pub fn may_change(&self) -> bool {
        match self {
            Store::Device(device) => device.may_change(),
            #[cfg(feature = "user")]
            Store::User(user) => user.may_change(),
        }
    }
}
