//! [`Entry`]: what a place has for a key, a value, a tombstone, or a *wrapped* value; and the header of wrapped values.
//!
//! ```text
//! wrapped value   flags, 1 byte
//!                 by the flags, in this order:
//!   1 expiry      8 bytes, little endian: the milliseconds since 1970 from which on the value is not there; not 0
//!                 content, to the end
//! ```
//!
//! The flags 2 (operands of a merge) and 4 (a value that is stored elsewhere) are reserved. A wrapped value with these
//! or other flags is damage: a version that writes them marks the files that have them.
//!
//! For example, `xyz` until 1,000 ms after the beginning of 1970:
//!
//! ```text
//! 01 E8 03 00 00 00 00 00 00 78 79 7A
//! ```
//!
//! Where entries are carried, from the log to the tables, nothing looks into wrapped values. What one means is decided
//! where it is read, and where tables are merged: at a time from its expiry on, it is as if its key was deleted.

use forrest_engine::{Error, ErrorKind, Result};

/// Maximum number of bytes of a header.
pub(crate) const HEADER_MOST: usize = 9;

const EXPIRES: u8 = 1;

/// The kind of an entry.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd)]
pub(crate) enum Kind {
    /// It has a value.
    Value = 0,
    /// Its key is deleted.
    Tombstone = 1,
    /// It has a value with a header.
    Wrapped = 2,
}

/// What a place has for a key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Entry<'v> {
    Value(&'v [u8]),
    Tombstone,
    /// A header and a value.
    Wrapped(&'v [u8]),
}

impl<'v> Entry<'v> {
    /// The entry of a kind with these bytes.
    pub(crate) fn new(kind: Kind, bytes: &'v [u8]) -> Entry<'v> {
        match kind {
            Kind::Value => Entry::Value(bytes),
            Kind::Tombstone => Entry::Tombstone,
            Kind::Wrapped => Entry::Wrapped(bytes),
        }
    }

    #[inline]
    pub(crate) fn kind(&self) -> Kind {
        match self {
            Entry::Value(_) => Kind::Value,
            Entry::Tombstone => Kind::Tombstone,
            Entry::Wrapped(_) => Kind::Wrapped,
        }
    }

    /// Its bytes, those of the header included; none of a tombstone.
    #[inline]
    pub(crate) fn bytes(&self) -> &'v [u8] {
        match self {
            Entry::Value(bytes) | Entry::Wrapped(bytes) => bytes,
            Entry::Tombstone => &[],
        }
    }

    /// The value that a reader at a time sees, if any. REQUIRES: a wrapped value was checked, as all in memory are.
    #[inline]
    pub(crate) fn value(self, now_ms: impl FnOnce() -> u64) -> Option<&'v [u8]> {
        match self {
            Entry::Value(bytes) => Some(bytes),
            Entry::Tombstone => None,
            Entry::Wrapped(bytes) => checked(bytes).value(now_ms()),
        }
    }

    /// When the value that a reader at a time sees expires; `None` if it sees none. REQUIRES: as [`Entry::value`].
    pub(crate) fn expires_ms(self, now_ms: impl FnOnce() -> u64) -> Option<Option<u64>> {
        match self {
            Entry::Value(_) => Some(None),
            Entry::Tombstone => None,
            Entry::Wrapped(bytes) => {
                let wrapped = checked(bytes);
                (!wrapped.has_expired(now_ms())).then_some(wrapped.expires_ms)
            }
        }
    }

    /// The same entry, or a tombstone if it has expired. REQUIRES: as [`Entry::value`].
    pub(crate) fn at(self, now_ms: impl FnOnce() -> u64) -> Entry<'v> {
        match self {
            Entry::Wrapped(bytes) if checked(bytes).has_expired(now_ms()) => Entry::Tombstone,
            entry => entry,
        }
    }
}

#[cold]
fn checked(bytes: &[u8]) -> Wrapped<'_> {
    Wrapped::read(bytes).expect("a wrapped value in memory was checked")
}

/// A wrapped value, taken apart.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Wrapped<'v> {
    /// The milliseconds since 1970 from which on it is not there.
    pub(crate) expires_ms: Option<u64>,
    pub(crate) content: &'v [u8],
}

impl<'v> Wrapped<'v> {
    /// `None` if these bytes are damaged.
    pub(crate) fn read(bytes: &'v [u8]) -> Option<Wrapped<'v>> {
        let (&flags, rest) = bytes.split_first()?;
        match flags {
            0 => Some(Wrapped { expires_ms: None, content: rest }),
            EXPIRES => {
                let (expires_ms, content) = rest.split_first_chunk()?;
                let expires_ms = Some(u64::from_le_bytes(*expires_ms)).filter(|ms| *ms > 0)?;
                Some(Wrapped { expires_ms: Some(expires_ms), content })
            }
            _ => None,
        }
    }

    /// The bytes of it.
    pub(crate) fn encode(&self) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(HEADER_MOST + self.content.len());
        bytes.push(if self.expires_ms.is_some() { EXPIRES } else { 0 });
        bytes.extend(self.expires_ms.map(|ms| ms.max(1).to_le_bytes()).into_iter().flatten());
        bytes.extend_from_slice(self.content);
        bytes
    }

    /// Whether it is not there any more.
    pub(crate) fn has_expired(&self, now_ms: u64) -> bool {
        self.expires_ms.is_some_and(|expires_ms| expires_ms <= now_ms)
    }

    /// The value that is there at a time.
    pub(crate) fn value(&self, now_ms: u64) -> Option<&'v [u8]> {
        (!self.has_expired(now_ms)).then_some(self.content)
    }
}

/// An error if a wrapped value is damaged.
pub(crate) fn check(bytes: &[u8]) -> Result<()> {
    match Wrapped::read(bytes) {
        Some(_) => Ok(()),
        None => Err(Error::new(ErrorKind::Corrupt, FLAW)),
    }
}

/// What a damaged wrapped value is called.
pub(crate) const FLAW: &str = "a value with a malformed header";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_example_is_what_it_says() {
        let bytes = [1, 0xE8, 3, 0, 0, 0, 0, 0, 0, b'x', b'y', b'z'];
        let wrapped = Wrapped { expires_ms: Some(1000), content: b"xyz" };
        assert_eq!((wrapped.encode(), Wrapped::read(&bytes)), (bytes.to_vec(), Some(wrapped)));
        let entry = Entry::Wrapped(&bytes);
        assert_eq!((entry.value(|| 999), entry.value(|| 1000)), (Some(&b"xyz"[..]), None));
        assert_eq!((entry.at(|| 999), entry.at(|| 1000)), (entry, Entry::Tombstone));
        let plain = Wrapped { expires_ms: None, content: b"" };
        assert_eq!(Wrapped::read(&plain.encode()), Some(plain));
        assert!(!plain.has_expired(u64::MAX));
    }

    #[test]
    fn other_headers_are_damage() {
        for bytes in
            [&[][..], &[2], &[4, 0], &[0x80], &[1], &[1, 1, 0, 0, 0, 0, 0, 0], &[1, 0, 0, 0, 0, 0, 0, 0, 0]]
        {
            assert_eq!(Wrapped::read(bytes), None, "{bytes:?}");
        }
    }
}
