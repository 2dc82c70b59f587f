//! The content of a log's records: the changes of the store, in order.
//!
//! The framing is that of [`record`](crate::record), with these fields in the header: the number of the
//! previous log (0 if there is none), the offset at which that one ended, the sequence number of the first
//! change, and twice the number of bytes of the previous log that were known to be synced, plus 1 if the
//! store was created with this log.
//!
//! After its first number, a body consists of changes to its end. Each takes the next sequence number. A
//! record is applied whole or not at all, so a batch never spans records.
//!
//! ```text
//! change   kind, and eight times the keyspace, in one number; then, by kind,
//!   1 put       length of the key, length of the value, key, value
//!   2 delete    length of the key, key
//!   3 create    length of the name, name: from here on the keyspace exists
//!   4 drop      nothing: from here on it does not
//!   5 range     length of the start, start, then the length of the end plus one, and the end; or 0 if there is
//!               no end: no key from the start up to but not including the end is there
//! ```
//!
//! Numbers are encoded by [`codec`](crate::codec). The header has the version of the format, which is 2; version 1 has
//! no kind 5. Other kinds belong to later versions. An intact record with another kind is damage: it is refused, not
//! skipped.
//!
//! For example, `set ab xyz` and `delete q` in keyspace 0, the creation of keyspace 1 called `n`, `delete-range a b` in
//! keyspace 0, and the delete of all keys in keyspace 1:
//!
//! ```text
//! 01 02 03 61 62 78 79 7A   02 01 71   0B 01 6E   05 01 61 02 62   0D 00 00
//! ```

use crate::codec::{Parts, put_bytes, put_number};

/// A change, as the log stores it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Change<'b> {
    Put { space: u32, key: &'b [u8], value: &'b [u8] },
    Delete { space: u32, key: &'b [u8] },
    Create { space: u32, name: &'b str },
    Drop { space: u32 },
    DeleteRange { space: u32, start: &'b [u8], end: Option<&'b [u8]> },
}

const PUT: u64 = 1;
const DELETE: u64 = 2;
const CREATE: u64 = 3;
const DROP: u64 = 4;
const DELETE_RANGE: u64 = 5;
/// The bits of a number that hold the kind.
const KIND: u32 = 3;

impl<'b> Change<'b> {
    /// Appends the change.
    #[inline]
    pub(crate) fn put(&self, out: &mut Vec<u8>) {
        let (kind, space) = match *self {
            Change::Put { space, .. } => (PUT, space),
            Change::Delete { space, .. } => (DELETE, space),
            Change::Create { space, .. } => (CREATE, space),
            Change::Drop { space } => (DROP, space),
            Change::DeleteRange { space, .. } => (DELETE_RANGE, space),
        };
        put_number(out, u64::from(space) << KIND | kind);
        match *self {
            Change::Put { key, value, .. } => {
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
        }
    }

    /// Decodes the next change; `None` if this version knows no such change.
    pub(crate) fn take(parts: &mut Parts<'b>) -> Option<Change<'b>> {
        let head = parts.number()?;
        let space = (head >> KIND).try_into().ok()?;
        Some(match head & ((1 << KIND) - 1) {
            PUT => {
                let (key, value) = (parts.number()?, parts.number()?);
                Change::Put { space, key: parts.take(key)?, value: parts.take(value)? }
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
            _ => return None,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_example_is_what_it_says() {
        let mut bytes = vec![1, 2, 3, 0x61, 0x62, 0x78, 0x79, 0x7A, 2, 1, 0x71, 0x0B, 1, 0x6E];
        bytes.extend([5, 1, 0x61, 2, 0x62, 0x0D, 0, 0]);
        let changes = [
            Change::Put { space: 0, key: b"ab", value: b"xyz" },
            Change::Delete { space: 0, key: b"q" },
            Change::Create { space: 1, name: "n" },
            Change::DeleteRange { space: 0, start: b"a", end: Some(b"b") },
            Change::DeleteRange { space: 1, start: b"", end: None },
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
        assert_eq!(Change::take(&mut Parts(&[6, 0])), None, "a kind of a later version");
    }
}
