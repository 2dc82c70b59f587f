//! The content of a log's records: the changes of the store, in order.
//!
//! The framing is that of [`record`](crate::record), with these fields in the header: the number of the
//! previous log (0 if there is none), the offset at which that one ended, the sequence number of the first
//! change, and twice the number of bytes of the previous log that were known to be synced, plus 1 if the
//! store was created with this log.
//!
//! A log that has only the values of an ingest ([`value_log`](crate::value_log)) has no log before it, and 2^55 as its
//! first sequence number, which no other log has. Its changes are puts and wrapped values.
//!
//! After its first number, a body consists of changes to its end. Each takes the next sequence number. A
//! record is applied whole or not at all, so a batch never spans records.
//!
//! ```text
//! change   kind, and eight times the keyspace, in one number; then, by kind,
//!   0 wrapped   length of the key, length of the wrapped value, key, wrapped value: see [`wrapped`](crate::wrapped)
//!   1 put       length of the key, length of the value, key, value
//!   2 delete    length of the key, key
//!   3 create    length of the name, name: from here on the keyspace exists
//!   4 drop      nothing: from here on it does not
//!   5 range     length of the start, start, then the length of the end plus one, and the end; or 0 if there is
//!               no end: no key from the start up to but not including the end is there
//!   6 note      by the number in place of the keyspace
//!      0 time   milliseconds since 1970: the log was begun then
//!      1 batch  a number: so many changes that follow are one batch
//!      2 name   keyspace, length of the name, name: the keyspace is called so
//!      3 moved  a number: as many of the next changes give keys the values that they have. They take sequence numbers,
//!               and are no changes of the stream
//!   7 ingest    0 or 1, length of a key, key, length of another one, the other: pairs with keys between these are
//!               going to be added past the log (0), or were added (1)
//! ```
//!
//! The note 3 is only in stores whose manifest has a version that keeps logs for values, which older releases refuse.
//!
//! Numbers are encoded by [`codec`](crate::codec). A note takes no sequence number. The header has the version of the
//! format: 4, or 5 if the store keeps history. Only logs of version 5 have the kinds 6 and 7, which a recovery needs
//! nothing of; only those that read the changes as a stream do. Older versions are read: 2, and 3 with history, which
//! have no kind 0, and 1, which has no kind 5 either. A log has wrapped values with operands of merges, each as it was
//! given, only if the manifest says so. Other kinds belong to later
//! versions. An intact record with another kind is damage: it is refused, not skipped.
//!
//! For example, `set ab xyz` and `delete q` in keyspace 0, the creation of keyspace 1 called `n`, `delete-range a b` in
//! keyspace 0, the delete of all keys in keyspace 1, and `x` as `w` until 1 ms after the beginning of 1970; the time 77
//! ms, a batch of two changes, the name of keyspace 1, and a finished ingest of keys from `a` to `c`:
//!
//! ```text
//! 01 02 03 61 62 78 79 7A   02 01 71   0B 01 6E   05 01 61 02 62   0D 00 00
//! 00 01 0A 77 01 01 00 00 00 00 00 00 00 78
//! 06 4D   0E 02   16 01 01 6E   07 01 01 61 01 63
//! ```

use crate::codec::{Parts, put_bytes, put_number};
use crate::wrapped::Entry;
use forrest_engine::MAX_KEY_BYTES;

/// A change, as the log stores it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Change<'b> {
    Put { space: u32, key: &'b [u8], value: &'b [u8] },
    Wrapped { space: u32, key: &'b [u8], bytes: &'b [u8] },
    Delete { space: u32, key: &'b [u8] },
    Create { space: u32, name: &'b str },
    Drop { space: u32 },
    DeleteRange { space: u32, start: &'b [u8], end: Option<&'b [u8]> },
    Ingest { space: u32, is_done: bool, first: &'b [u8], last: &'b [u8] },
    Note(Note<'b>),
}

/// What takes no sequence number.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Note<'b> {
    Time { ms: u64 },
    Batch { count: u64 },
    Name { space: u32, name: &'b str },
    Moved { count: u64 },
}

const WRAPPED: u64 = 0;
const PUT: u64 = 1;
const DELETE: u64 = 2;
const CREATE: u64 = 3;
const DROP: u64 = 4;
const DELETE_RANGE: u64 = 5;
const NOTE: u64 = 6;
const INGEST: u64 = 7;
/// The kinds of notes.
const TIME: u32 = 0;
const BATCH: u32 = 1;
const NAME: u32 = 2;
const MOVED: u32 = 3;
/// The bits of a number that hold the kind.
const KIND: u32 = 3;

/// Maximum number of bytes of a change without its value: two keys and the numbers beside them, the header of a wrapped
/// value included.
pub(crate) const FRONT_MOST: u64 = 2 * MAX_KEY_BYTES as u64 + 64;

impl<'b> Change<'b> {
    /// The change that gives a key an entry.
    #[inline]
    pub(crate) fn of_entry(space: u32, key: &'b [u8], entry: Entry<'b>) -> Change<'b> {
        match entry {
            Entry::Value(value) => Change::Put { space, key, value },
            Entry::Tombstone => Change::Delete { space, key },
            Entry::Wrapped(bytes) => Change::Wrapped { space, key, bytes },
        }
    }

    /// Appends the change.
    #[inline]
    pub(crate) fn put(&self, out: &mut Vec<u8>) {
        let (kind, space) = match *self {
            Change::Put { space, .. } => (PUT, space),
            Change::Wrapped { space, .. } => (WRAPPED, space),
            Change::Delete { space, .. } => (DELETE, space),
            Change::Create { space, .. } => (CREATE, space),
            Change::Drop { space } => (DROP, space),
            Change::DeleteRange { space, .. } => (DELETE_RANGE, space),
            Change::Ingest { space, .. } => (INGEST, space),
            Change::Note(Note::Time { .. }) => (NOTE, TIME),
            Change::Note(Note::Batch { .. }) => (NOTE, BATCH),
            Change::Note(Note::Name { .. }) => (NOTE, NAME),
            Change::Note(Note::Moved { .. }) => (NOTE, MOVED),
        };
        put_number(out, u64::from(space) << KIND | kind);
        match *self {
            Change::Put { key, value, .. } | Change::Wrapped { key, bytes: value, .. } => {
                put_number(out, key.len() as u64);
                put_number(out, value.len() as u64);
                out.extend_from_slice(key);
                out.extend_from_slice(value);
            }
            Change::Delete { key, .. } => put_bytes(out, key),
            Change::Create { name, .. } => put_bytes(out, name.as_bytes()),
            Change::Drop { .. } => {}
            Change::DeleteRange { start, end, .. } => {
                put_bytes(out, start);
                put_number(out, end.map_or(0, |end| end.len() as u64 + 1));
                out.extend_from_slice(end.unwrap_or_default());
            }
            Change::Ingest { is_done, first, last, .. } => {
                put_number(out, is_done.into());
                put_bytes(out, first);
                put_bytes(out, last);
            }
            Change::Note(
                Note::Time { ms: number } | Note::Batch { count: number } | Note::Moved { count: number },
            ) => put_number(out, number),
            Change::Note(Note::Name { space, name }) => {
                put_number(out, space.into());
                put_bytes(out, name.as_bytes());
            }
        }
    }

    /// Decodes the next change; `None` if this version knows no such change.
    pub(crate) fn take(parts: &mut Parts<'b>) -> Option<Change<'b>> {
        let (change, missing) = Change::take_front(parts)?;
        (missing == 0).then_some(change)
    }

    /// The same where only the front of what there is may be in memory: a value may be cut off. Returns also how many
    /// bytes of it are missing. Of all else the first [`FRONT_MOST`] bytes have to be there.
    pub(crate) fn take_front(parts: &mut Parts<'b>) -> Option<(Change<'b>, u64)> {
        let head = parts.number()?;
        let space = (head >> KIND).try_into().ok()?;
        let mut missing = 0;
        let mut cut = |parts: &mut Parts<'b>, len: u64| {
            let there = len.min(parts.0.len() as u64);
            missing = len - there;
            parts.take(there)
        };
        let change = match head & ((1 << KIND) - 1) {
            PUT => {
                let (key, value) = (parts.number()?, parts.number()?);
                Change::Put { space, key: parts.take(key)?, value: cut(parts, value)? }
            }
            WRAPPED => {
                let (key, bytes) = (parts.number()?, parts.number()?);
                Change::Wrapped { space, key: parts.take(key)?, bytes: cut(parts, bytes)? }
            }
            DELETE => Change::Delete { space, key: parts.bytes()? },
            CREATE => Change::Create { space, name: str::from_utf8(parts.bytes()?).ok()? },
            DROP => Change::Drop { space },
            DELETE_RANGE => {
                let (start, len) = (parts.bytes()?, parts.number()?);
                let end = len.checked_sub(1).map(|len| parts.take(len));
                Change::DeleteRange {
                    space,
                    start,
                    end: match end {
                        Some(end) => Some(end?),
                        None => None,
                    },
                }
            }
            NOTE => Change::Note(match space {
                TIME => Note::Time { ms: parts.number()? },
                BATCH => Note::Batch { count: parts.number()? },
                MOVED => Note::Moved { count: parts.number()? },
                NAME => Note::Name {
                    space: parts.number()?.try_into().ok()?,
                    name: str::from_utf8(parts.bytes()?).ok()?,
                },
                _ => return None,
            }),
            INGEST => Change::Ingest {
                space,
                is_done: match parts.number()? {
                    0 => false,
                    1 => true,
                    _ => return None,
                },
                first: parts.bytes()?,
                last: parts.bytes()?,
            },
            _ => return None,
        };
        Some((change, missing))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_example_is_what_it_says() {
        let mut bytes = vec![1, 2, 3, 0x61, 0x62, 0x78, 0x79, 0x7A, 2, 1, 0x71, 0x0B, 1, 0x6E];
        bytes.extend([5, 1, 0x61, 2, 0x62, 0x0D, 0, 0]);
        bytes.extend([0, 1, 10, 0x77, 1, 1, 0, 0, 0, 0, 0, 0, 0, 0x78]);
        bytes.extend([6, 0x4D, 0x0E, 2, 0x16, 1, 1, 0x6E, 7, 1, 1, 0x61, 1, 0x63]);
        let changes = [
            Change::Put { space: 0, key: b"ab", value: b"xyz" },
            Change::Delete { space: 0, key: b"q" },
            Change::Create { space: 1, name: "n" },
            Change::DeleteRange { space: 0, start: b"a", end: Some(b"b") },
            Change::DeleteRange { space: 1, start: b"", end: None },
            Change::Wrapped { space: 0, key: b"w", bytes: &[1, 1, 0, 0, 0, 0, 0, 0, 0, 0x78] },
            Change::Note(Note::Time { ms: 0x4D }),
            Change::Note(Note::Batch { count: 2 }),
            Change::Note(Note::Name { space: 1, name: "n" }),
            Change::Ingest { space: 0, is_done: true, first: b"a", last: b"c" },
        ];
        let mut out = Vec::new();
        changes.iter().for_each(|change| change.put(&mut out));
        assert_eq!(out, bytes);
        let mut parts = Parts(&bytes);
        for change in changes {
            assert_eq!(Change::take(&mut parts), Some(change));
        }
        assert!(parts.is_empty());
        for end in 1..bytes.len() {
            let mut parts = Parts(&bytes[..end]);
            while Change::take(&mut parts).is_some() {}
        }
        let moved = Change::Note(Note::Moved { count: 5 });
        assert_eq!(Change::take(&mut Parts(&[0x1E, 5])), Some(moved));
        assert_eq!(Change::take(&mut Parts(&[0x26, 0])), None, "a note of a later version");
    }
}
