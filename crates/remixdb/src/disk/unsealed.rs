//! [`Keys`] and [`Cipher`] of a build without the feature `encryption`: there are none.

use super::{Bare, Name};
use forrest_engine::{EncryptionKey, Error, Result};
use std::convert::Infallible;
use std::io;

/// Bytes of a tag.
pub(crate) const TAG: usize = 16;

/// What seals bytes, and opens them.
pub struct Cipher(Infallible);

impl Cipher {
    pub(crate) fn seal(&self, _: u64, _: &mut [u8]) -> [u8; TAG] {
        match self.0 {}
    }

    pub(crate) fn open(&self, _: u64, _: &mut [u8], _: &[u8; TAG]) -> bool {
        match self.0 {}
    }

    pub(crate) fn vouch(&self, _: u64, _: &[u8]) -> [u8; TAG] {
        match self.0 {}
    }
}

pub(super) struct Keys(Infallible);

pub(super) struct Making(Infallible);

impl Making {
    pub(super) fn cipher(&self, _: Name) -> Cipher {
        match self.0 {}
    }
}

#[cold]
fn absent<R>() -> Result<R> {
    Err(Error::unsupported("this build has no encryption; build with the feature `encryption`"))
}

impl Keys {
    pub(super) fn create(_: &Bare, _: &EncryptionKey) -> Result<Keys> {
        absent()
    }

    pub(super) fn open(_: &Bare, _: &EncryptionKey, _: bool) -> Result<Keys> {
        absent()
    }

    pub(super) fn copy(&self) -> Keys {
        match self.0 {}
    }

    pub(super) fn part(&self, _: &Bare, _: u64) -> Result<()> {
        match self.0 {}
    }

    pub(super) fn user(&self) -> EncryptionKey {
        match self.0 {}
    }

    pub(super) fn making(&self, _: &Bare) -> io::Result<Making> {
        match self.0 {}
    }

    pub(super) fn cipher(&self, _: Name) -> Cipher {
        match self.0 {}
    }

    pub(super) fn cipher_beside(&self, _: &Bare, _: Name) -> Result<Cipher> {
        match self.0 {}
    }

    pub(super) fn are_same(&self, _: &Keys, _: u64) -> bool {
        match self.0 {}
    }
}
