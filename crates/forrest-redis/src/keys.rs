//! How typed keys are laid out in one ordered keyspace.
//!
//! | key | value |
//! |---|---|
//! | `slot 0 key` | a record: the type of the key, when it expires, and the string, or where its members are |
//! | `slot 1 generation ...` | a member of a hash, set, list or sorted set |
//! | `slot 2 time key` | nothing: the key may expire at that time |
//! | `255 name` | of the server itself |
//!
//! A slot is a byte, the number of a database before databases were swapped. A generation is a number of 8 bytes that
//! is used once in the life of a store. So all members of a key are one range, which goes by one range delete, and a
//! key is renamed by moving its record. All numbers are big endian.
//!
//! | type | its members, after the generation |
//! |---|---|
//! | hash | `field` → value |
//! | set | `member` → nothing |
//! | list | 8 bytes of position → element |
//! | sorted set | `0 member` → 8 bytes of score; `1 score member` → nothing |
//!
//! ```text
//! 00 00 'k'                            -> 00 'v' 'a' 'l'                            set k val
//! 00 00 'h'                            -> 81 00000000000003e8 gen 0000000000000001  hset h f v; expires at 1000 ms
//! 00 01 gen 'f'                        -> 'v'
//! 00 02 00000000000003e8 'h'           ->
//! ```

use std::cmp::Ordering;

/// The last number of a slot.
pub(crate) const SLOTS: u8 = 16;
/// The first byte of what belongs to the server.
pub(crate) const OWN: u8 = 255;
const RECORDS: u8 = 0;
const MEMBERS: u8 = 1;
const EXPIRIES: u8 = 2;
/// The bit of a record's first byte that says that it expires.
const EXPIRES: u8 = 0x80;

/// The type of a key.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Kind {
    String,
    Hash,
    Set,
    SortedSet,
    List,
}

impl Kind {
    const ALL: [Kind; 5] = [Kind::String, Kind::Hash, Kind::Set, Kind::SortedSet, Kind::List];

    /// The name that `TYPE` returns.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Kind::String => "string",
            Kind::Hash => "hash",
            Kind::Set => "set",
            Kind::SortedSet => "zset",
            Kind::List => "list",
        }
    }

    /// The type of a name.
    pub(crate) fn of_name(name: &[u8]) -> Option<Kind> {
        Kind::ALL.into_iter().find(|kind| name.eq_ignore_ascii_case(kind.name().as_bytes()))
    }
}

/// What a record says of its key, except for a string's bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Record {
    pub(crate) kind: Kind,
    /// Milliseconds since 1970; 0 if it does not expire.
    pub(crate) expires: u64,
    /// Where the members are. Not of strings.
    pub(crate) generation: u64,
    /// How many they are.
    pub(crate) count: u64,
    /// The position of a list's first element.
    pub(crate) first: u64,
}

impl Record {
    pub(crate) fn string(expires: u64) -> Record {
        Record { kind: Kind::String, expires, generation: 0, count: 0, first: 0 }
    }

    /// Appends the record, without a string's bytes.
    pub(crate) fn push(&self, out: &mut Vec<u8>) {
        out.push(self.kind as u8 | if self.expires > 0 { EXPIRES } else { 0 });
        if self.expires > 0 {
            out.extend_from_slice(&self.expires.to_be_bytes());
        }
        if self.kind != Kind::String {
            out.extend_from_slice(&self.generation.to_be_bytes());
            out.extend_from_slice(&self.count.to_be_bytes());
        }
        if self.kind == Kind::List {
            out.extend_from_slice(&self.first.to_be_bytes());
        }
    }

    /// The record of a value, and the rest: a string's bytes. `None` if it is damaged.
    #[inline]
    pub(crate) fn of(value: &[u8]) -> Option<(Record, &[u8])> {
        let (&head, rest) = value.split_first()?;
        if head == Kind::String as u8 {
            return Some((Record::string(0), rest));
        }
        let kind = *Kind::ALL.get(usize::from(head & !EXPIRES))?;
        let mut record = Record { kind, ..Record::string(0) };
        let mut rest = rest;
        if head & EXPIRES != 0 {
            record.expires = take(&mut rest)?;
        }
        if kind != Kind::String {
            record.generation = take(&mut rest)?;
            record.count = take(&mut rest)?;
        }
        if kind == Kind::List {
            record.first = take(&mut rest)?;
        }
        Some((record, rest))
    }

    /// True if it has expired. The clock is read only if that is possible.
    #[inline]
    pub(crate) fn is_expired(&self, now_ms: impl FnOnce() -> u64) -> bool {
        self.expires != 0 && self.expires <= now_ms()
    }
}

/// Takes a number from the beginning.
pub(crate) fn take(bytes: &mut &[u8]) -> Option<u64> {
    let (number, rest) = bytes.split_first_chunk()?;
    *bytes = rest;
    Some(u64::from_be_bytes(*number))
}

/// Makes `out` the key of a record.
#[inline]
pub(crate) fn record(out: &mut Vec<u8>, slot: u8, key: &[u8]) {
    out.clear();
    out.extend_from_slice(&[slot, RECORDS]);
    out.extend_from_slice(key);
}

/// Bytes before the key in that of a record.
pub(crate) const RECORD_BYTES: usize = 2;
/// Bytes before the member in its key.
pub(crate) const MEMBER_BYTES: usize = 10;
/// Bytes before the key in that of an expiry.
pub(crate) const EXPIRY_BYTES: usize = 10;
/// Bytes before the member of a sorted set, in its key by score.
pub(crate) const SCORED_BYTES: usize = MEMBER_BYTES + 9;
/// Longest of all these.
pub(crate) const PREFIX_BYTES_MAX: usize = SCORED_BYTES;

/// The prefix of the records of a slot.
pub(crate) fn records(slot: u8) -> [u8; 2] {
    [slot, RECORDS]
}

/// The prefix of all members of a generation.
pub(crate) fn members(slot: u8, generation: u64) -> [u8; MEMBER_BYTES] {
    let mut prefix = [slot, MEMBERS, 0, 0, 0, 0, 0, 0, 0, 0];
    prefix[2..].copy_from_slice(&generation.to_be_bytes());
    prefix
}

/// The first key after all that begin with a prefix, which does not consist of bytes 255.
pub(crate) fn after<const N: usize>(mut prefix: [u8; N]) -> [u8; N] {
    for byte in prefix.iter_mut().rev() {
        *byte = byte.wrapping_add(1);
        if *byte != 0 {
            break;
        }
    }
    prefix
}

/// The key of an expiry.
pub(crate) fn expiry(slot: u8, time_ms: u64, key: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(EXPIRY_BYTES + key.len());
    out.extend_from_slice(&[slot, EXPIRIES]);
    out.extend_from_slice(&time_ms.to_be_bytes());
    out.extend_from_slice(key);
    out
}

/// A score as 8 bytes that sort as the numbers do. Both zeros are one.
pub(crate) fn score_bytes(score: f64) -> [u8; 8] {
    let bits = (score + 0.0).to_bits();
    let bits = if bits >> 63 == 1 { !bits } else { bits | 1 << 63 };
    bits.to_be_bytes()
}

/// The score of such bytes.
pub(crate) fn score_of(bytes: &[u8]) -> Option<f64> {
    let bits = u64::from_be_bytes(bytes.try_into().ok()?);
    Some(f64::from_bits(if bits >> 63 == 1 { bits & !(1 << 63) } else { !bits }))
}

/// The order of scores, which are never not a number.
pub(crate) fn compare(a: f64, b: f64) -> Ordering {
    a.partial_cmp(&b).unwrap_or(Ordering::Equal)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scores_sort_as_numbers() {
        let scores = [
            f64::NEG_INFINITY,
            f64::MIN,
            -1e300,
            -2.0,
            -1.5,
            -1.0,
            -1e-300,
            -f64::MIN_POSITIVE,
            -5e-324,
            0.0,
            5e-324,
            1e-300,
            1.0,
            1.0 + f64::EPSILON,
            2.0,
            1e300,
            f64::MAX,
            f64::INFINITY,
        ];
        for (at, score) in scores.iter().enumerate() {
            assert_eq!(score_of(&score_bytes(*score)), Some(*score));
            for (other_at, other) in scores.iter().enumerate() {
                assert_eq!(
                    score_bytes(*score).cmp(&score_bytes(*other)),
                    at.cmp(&other_at),
                    "{score} {other}"
                );
            }
        }
        assert_eq!(score_bytes(-0.0), score_bytes(0.0));
        assert_eq!(score_of(&[0; 7]), None);
    }

    #[test]
    fn records_are_as_the_example_says() {
        let mut out = Vec::new();
        Record { kind: Kind::Hash, expires: 1000, generation: 7, count: 1, first: 0 }.push(&mut out);
        assert_eq!(out, b"\x81\0\0\0\0\0\0\x03\xe8\0\0\0\0\0\0\0\x07\0\0\0\0\0\0\0\x01");
        let (record, rest) = Record::of(&out).unwrap();
        assert_eq!((record.kind, record.expires, record.generation, record.count), (Kind::Hash, 1000, 7, 1));
        assert!(rest.is_empty());
        for kind in Kind::ALL {
            for expires in [0, 5] {
                let first = if kind == Kind::List { 9 } else { 0 };
                let (generation, count) = if kind == Kind::String { (0, 0) } else { (3, 4) };
                let record = Record { kind, expires, generation, count, first };
                let mut out = Vec::new();
                record.push(&mut out);
                for len in 0..out.len() {
                    assert!(Record::of(&out[..len]).is_none(), "{record:?} {len}");
                }
                out.push(b'x');
                assert_eq!(Record::of(&out), Some((record, &b"x"[..])));
            }
        }
        assert_eq!(Record::of(&[5]), None);
        assert_eq!(Record::of(&[0x7F]), None);
    }

    #[test]
    fn prefixes_end() {
        assert_eq!(after([1, 2, 255]), [1, 3, 0]);
        assert_eq!(after(members(0, u64::MAX)), [0, 2, 0, 0, 0, 0, 0, 0, 0, 0]);
        assert_eq!(Kind::of_name(b"ZSET"), Some(Kind::SortedSet));
        assert_eq!(Kind::of_name(b"stream"), None);
    }
}
