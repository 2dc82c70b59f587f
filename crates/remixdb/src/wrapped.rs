//! [`Entry`]: what a place has for a key, a value, a tombstone, or a *wrapped* value; and the header of wrapped values.
//!
//! ```text
//! wrapped value   flags, 1 byte
//!                 by the flags, in this order:
//!   1 expiry      8 bytes, little endian: the milliseconds since 1970 from which on the value is not there; not 0
//!   2 operands    in place of the content, and without other flags: the operands of merges that are to be applied to
//!                 what older places have, from the first on: for each its length, as a number of
//!                 [`codec`](crate::codec), and it. There is at least one
//!   8 place       the number of a log, 8, and the offset there, 8: the content is also there. In memtables only
//!   4 elsewhere   in place of the content, in tables only: the number of a log, the offset in it and the length of the
//!                 content there, as numbers of [`codec`](crate::codec); then a checksum of the content, 8 bytes, which
//!                 is made for this place ([`sum`])
//!                 content, to the end
//! ```
//!
//! A wrapped value with other flags is damage: a version that writes them marks the files that have them. A store whose
//! logs or tables may have operands says so in its manifest.
//!
//! For example, `xyz` until 1,000 ms after the beginning of 1970:
//!
//! ```text
//! 01 E8 03 00 00 00 00 00 00 78 79 7A
//! ```
//!
//! and 4,096 bytes from offset 130 of log 7 on:
//!
//! ```text
//! 04 07 82 01 80 20 (8 bytes)
//! ```
//!
//! and two operands, `+1` and `x`:
//!
//! ```text
//! 02 02 2B 31 01 78
//! ```
//!
//! Where entries are carried, from the log to the tables, nothing looks into wrapped values. What one means is decided
//! where it is read, and where tables are merged: at a time from its expiry on, it is as if its key was deleted.

use crate::codec::{Parts, put_bytes, put_number};
use xxhash_rust::xxh3::{Xxh3, xxh3_64_with_seed as xxh3};

/// Maximum number of bytes of a header that a log or a table has before a content.
pub(crate) const HEADER_MOST: usize = 9;
/// The same in a memtable.
pub(crate) const PLACED_HEADER_MOST: usize = HEADER_MOST + PLACE_BYTES;
/// About how many bytes stand for a content that is elsewhere.
pub(crate) const POINTER_BYTES: usize = 24;
const PLACE_BYTES: usize = 16;

const EXPIRES: u8 = 1;
const OPERANDS: u8 = 2;
const ELSEWHERE: u8 = 4;
const PLACED: u8 = 8;

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

    /// Whether it has operands, which are to be applied to what older places have.
    #[inline]
    pub(crate) fn has_operands(&self) -> bool {
        matches!(self, Entry::Wrapped(bytes) if has_operands(bytes))
    }

    /// The value that a reader at a time sees, if any. REQUIRES: a wrapped value was checked, as all in memory are, and
    /// has no operands.
    #[inline]
    pub(crate) fn value(self, now_ms: impl FnOnce() -> u64) -> Option<&'v [u8]> {
        match self {
            Entry::Value(bytes) => Some(bytes),
            Entry::Tombstone => None,
            Entry::Wrapped(bytes) => checked(bytes).value(now_ms()),
        }
    }

    /// When the value that a reader at a time sees expires; `None` if it sees none. REQUIRES: a wrapped value was
    /// checked.
    pub(crate) fn expires_ms(self, now_ms: impl FnOnce() -> u64) -> Option<Option<u64>> {
        match self {
            Entry::Value(_) => Some(None),
            Entry::Tombstone => None,
            // They are applied where nothing expires.
            Entry::Wrapped(bytes) if has_operands(bytes) => Some(None),
            Entry::Wrapped(bytes) => {
                let wrapped = checked(bytes);
                (!wrapped.has_expired(now_ms())).then_some(wrapped.expires_ms)
            }
        }
    }

    /// The same entry, or a tombstone if it has expired. REQUIRES: a wrapped value was checked.
    pub(crate) fn at(self, now_ms: impl FnOnce() -> u64) -> Entry<'v> {
        match self {
            Entry::Wrapped(bytes) if !has_operands(bytes) && checked(bytes).has_expired(now_ms()) => {
                Entry::Tombstone
            }
            entry => entry,
        }
    }
}

#[cold]
fn checked(bytes: &[u8]) -> Wrapped<'_> {
    let (flags, expires_ms, rest) =
        head(bytes, EXPIRES | PLACED).expect("a wrapped value in memory was checked");
    let content = if flags & PLACED == 0 { rest } else { &rest[PLACE_BYTES..] };
    Wrapped { expires_ms, content }
}

/// The flags, the expiry, and the rest; `None` if there are other flags than these.
fn head(bytes: &[u8], known: u8) -> Option<(u8, Option<u64>, &[u8])> {
    let (&flags, rest) = bytes.split_first()?;
    if flags & !known != 0 {
        return None;
    }
    if flags & EXPIRES == 0 {
        return Some((flags, None, rest));
    }
    let (expires_ms, rest) = rest.split_first_chunk()?;
    let expires_ms = Some(u64::from_le_bytes(*expires_ms)).filter(|ms| *ms > 0)?;
    Some((flags, Some(expires_ms), rest))
}

fn put_head(out: &mut Vec<u8>, flags: u8, expires_ms: Option<u64>) {
    out.push(flags | if expires_ms.is_some() { EXPIRES } else { 0 });
    out.extend(expires_ms.map(|ms| ms.max(1).to_le_bytes()).into_iter().flatten());
}

/// A place in a log.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Place {
    pub(crate) log: u64,
    pub(crate) offset: u64,
}

/// Where a content is that is not in the table.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Pointer {
    pub(crate) place: Place,
    /// Its bytes.
    pub(crate) len: u64,
    /// Its checksum: see [`sum`].
    pub(crate) sum: u64,
}

/// The checksum of a content at a place.
pub(crate) fn sum(place: Place, content: &[u8]) -> u64 {
    xxh3(content, seed(place))
}

/// The same, for a content that comes in pieces.
pub(crate) fn sum_of_pieces(place: Place) -> Xxh3 {
    Xxh3::with_seed(seed(place))
}

fn seed(place: Place) -> u64 {
    (place.log.rotate_left(32) ^ place.offset).wrapping_mul(0x9E37_79B9_7F4A_7C15)
}

impl Pointer {
    pub(crate) fn to(place: Place, content: &[u8]) -> Pointer {
        Pointer { place, len: content.len() as u64, sum: sum(place, content) }
    }

    /// The bytes of a wrapped value that is there.
    pub(crate) fn encode(&self, expires_ms: Option<u64>) -> Vec<u8> {
        let mut out = Vec::with_capacity(POINTER_BYTES + HEADER_MOST);
        put_head(&mut out, ELSEWHERE, expires_ms);
        [self.place.log, self.place.offset, self.len].iter().for_each(|&number| put_number(&mut out, number));
        out.extend_from_slice(&self.sum.to_le_bytes());
        out
    }

    fn take(rest: &[u8]) -> Option<Pointer> {
        let mut parts = Parts(rest);
        let (log, offset, len) = (parts.number()?, parts.number()?, parts.number()?);
        Some(Pointer { place: Place { log, offset }, len, sum: u64::from_le_bytes(parts.0.try_into().ok()?) })
    }
}

/// Whether a wrapped value has operands.
pub(crate) fn has_operands(bytes: &[u8]) -> bool {
    bytes.first() == Some(&OPERANDS)
}

/// The operands of a wrapped value, from the first on; `None` if it has none, or is damaged.
pub(crate) fn operands(bytes: &[u8]) -> Option<Vec<&[u8]>> {
    let (&OPERANDS, rest) = bytes.split_first()? else { return None };
    let (mut parts, mut all) = (Parts(rest), Vec::new());
    while !parts.is_empty() {
        all.push(parts.bytes()?);
    }
    (!all.is_empty()).then_some(all)
}

/// The bytes of a wrapped value that has operands.
pub(crate) fn of_operands<'o>(operands: impl IntoIterator<Item = &'o [u8]>) -> Vec<u8> {
    let mut out = vec![OPERANDS];
    operands.into_iter().for_each(|operand| put_bytes(&mut out, operand));
    out
}

/// A wrapped value of a table, taken apart.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum InTable<'v> {
    Here(Wrapped<'v>),
    Operands,
    Elsewhere { expires_ms: Option<u64>, pointer: Pointer },
}

impl<'v> InTable<'v> {
    /// `None` if these bytes are damaged.
    pub(crate) fn read(bytes: &'v [u8]) -> Option<InTable<'v>> {
        if has_operands(bytes) {
            return operands(bytes).map(|_| InTable::Operands);
        }
        let (flags, expires_ms, rest) = head(bytes, EXPIRES | ELSEWHERE)?;
        if flags & ELSEWHERE == 0 {
            return Some(InTable::Here(Wrapped { expires_ms, content: rest }));
        }
        Some(InTable::Elsewhere { expires_ms, pointer: Pointer::take(rest)? })
    }

    /// The milliseconds since 1970 from which on it is not there.
    pub(crate) fn expires_ms(&self) -> Option<u64> {
        match self {
            InTable::Here(wrapped) => wrapped.expires_ms,
            InTable::Operands => None,
            InTable::Elsewhere { expires_ms, .. } => *expires_ms,
        }
    }

    /// Whether it is not there any more.
    pub(crate) fn has_expired(&self, now_ms: u64) -> bool {
        self.expires_ms().is_some_and(|expires_ms| expires_ms <= now_ms)
    }
}

/// The place of a wrapped value of a memtable, if its content is in a log too; and all of it without that.
pub(crate) fn place_of(bytes: &[u8]) -> Option<(Place, Wrapped<'_>)> {
    let (flags, expires_ms, rest) = head(bytes, EXPIRES | PLACED)?;
    if flags & PLACED == 0 {
        return None;
    }
    let (log, rest) = rest.split_first_chunk()?;
    let (offset, content) = rest.split_first_chunk()?;
    let place = Place { log: u64::from_le_bytes(*log), offset: u64::from_le_bytes(*offset) };
    Some((place, Wrapped { expires_ms, content }))
}

/// The bytes of a wrapped value of a memtable whose content is at a place too.
pub(crate) fn placed(value: Wrapped<'_>, place: Place) -> Vec<u8> {
    let mut out = Vec::with_capacity(PLACED_HEADER_MOST + value.content.len());
    put_head(&mut out, PLACED, value.expires_ms);
    out.extend_from_slice(&place.log.to_le_bytes());
    out.extend_from_slice(&place.offset.to_le_bytes());
    out.extend_from_slice(value.content);
    out
}

/// Passes an entry of a memtable to `see`, without the place of its content.
pub(crate) fn without_place<R>(entry: Entry<'_>, see: impl FnOnce(Entry<'_>) -> R) -> R {
    match entry {
        Entry::Wrapped(bytes) => match place_of(bytes) {
            None => see(entry),
            Some((_, Wrapped { expires_ms: None, content })) => see(Entry::Value(content)),
            Some((_, wrapped)) => see(Entry::Wrapped(&wrapped.encode())),
        },
        entry => see(entry),
    }
}

/// A wrapped value, taken apart.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Wrapped<'v> {
    /// The milliseconds since 1970 from which on it is not there.
    pub(crate) expires_ms: Option<u64>,
    pub(crate) content: &'v [u8],
}

impl<'v> Wrapped<'v> {
    /// One of a log. `None` if these bytes are damaged.
    pub(crate) fn read(bytes: &'v [u8]) -> Option<Wrapped<'v>> {
        let (_, expires_ms, content) = head(bytes, EXPIRES)?;
        Some(Wrapped { expires_ms, content })
    }

    /// The bytes of it.
    pub(crate) fn encode(&self) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(HEADER_MOST + self.content.len());
        put_head(&mut bytes, 0, self.expires_ms);
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
        for bytes in [&[2][..], &[4, 7, 2, 3], &[4, 7, 2, 3, 0, 0, 0, 0, 0, 0, 0], &[8; 40], &[5, 0, 0]] {
            assert_eq!(InTable::read(bytes), None, "{bytes:?}");
        }
    }

    #[test]
    fn operands_are_what_the_example_says() {
        let bytes = [2, 2, b'+', b'1', 1, b'x'];
        assert_eq!(of_operands([&b"+1"[..], b"x"]), bytes);
        assert_eq!(operands(&bytes), Some(vec![&b"+1"[..], b"x"]));
        assert_eq!(InTable::read(&bytes), Some(InTable::Operands));
        let entry = Entry::Wrapped(&bytes);
        assert!(entry.has_operands() && !Entry::Value(&bytes).has_operands());
        assert_eq!((entry.at(|| 9), entry.expires_ms(|| 9)), (entry, Some(None)));
        assert_eq!((Wrapped::read(&bytes), place_of(&bytes)), (None, None));
        for bytes in [&[2][..], &[2, 1], &[2, 2, 7], &[3, 1, 7], &[6, 1, 7]] {
            assert_eq!((operands(bytes), InTable::read(bytes)), (None, None), "{bytes:?}");
        }
    }

    #[test]
    fn a_place_is_what_the_example_says() {
        let place = Place { log: 7, offset: 130 };
        let pointer = Pointer { place, len: 4096, sum: 0x0807_0605_0403_0201 };
        let bytes = [4, 7, 0x82, 1, 0x80, 0x20, 1, 2, 3, 4, 5, 6, 7, 8];
        assert_eq!(pointer.encode(None), bytes);
        assert_eq!(InTable::read(&bytes), Some(InTable::Elsewhere { expires_ms: None, pointer }));
        let stored = InTable::Elsewhere { expires_ms: Some(9), pointer };
        assert_eq!(InTable::read(&pointer.encode(Some(9))), Some(stored));
        assert_ne!(sum(place, b"x"), sum(Place { log: 7, offset: 131 }, b"x"));
        let mut pieces = sum_of_pieces(place);
        [&b"x"[..], b"", &[b'y'; 1000]].iter().for_each(|piece| pieces.update(piece));
        assert_eq!(pieces.digest(), sum(place, &[&b"x"[..], &[b'y'; 1000]].concat()));
        for expires_ms in [None, Some(9)] {
            let value = Wrapped { expires_ms, content: b"xyz" };
            let placed = placed(value, place);
            assert_eq!(place_of(&placed), Some((place, value)));
            let entry = Entry::Wrapped(&placed);
            assert_eq!((entry.value(|| 8), entry.expires_ms(|| 8)), (Some(&b"xyz"[..]), Some(expires_ms)));
            assert_eq!(entry.value(|| 9).is_none(), expires_ms.is_some());
            assert_eq!((Wrapped::read(&placed), InTable::read(&placed)), (None, None), "in memory only");
            let plain = without_place(entry, |entry| (entry.kind(), entry.bytes().to_vec()));
            let wrapped = Wrapped { expires_ms, content: b"xyz" };
            let expected = match expires_ms {
                None => (Kind::Value, b"xyz".to_vec()),
                Some(_) => (Kind::Wrapped, wrapped.encode()),
            };
            assert_eq!(plain, expected);
        }
    }
}
