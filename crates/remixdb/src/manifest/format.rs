//! The content of a manifest's records: edits of the state of the store.
//!
//! The framing is that of [`record`](crate::record). The header has the version of the format, and its fields are 0.
//! The version is 6, or 7 if logs and tables may have operands of merges: earlier releases refuse such a store. Version
//! 1 has no edits of the kinds 7 and 8, version 2 none of the kind 9, version 3 none of the kind 10, version 4 none of
//! the kind 11, version 5 none of the kinds 12 and 13, version 6 none of the kind 14. The first record makes the whole
//! state out of an empty one. Each further record is a change that takes place as a whole.
//!
//! ```text
//! edit   kind, 1 byte; then, by kind,
//!   1 keyspace     identifier; length of the name, name
//!   2 no keyspace  identifier; its partitions go with it
//!   3 next         the identifier of the next keyspace to be made
//!   4 floor        number of the first log that is still needed
//!   5 partition    keyspace; length of its least key, key; number of its REMIX (0: none); count of tables, and for
//!                  each, from the oldest on, its number. Replaces the partition that begins there
//!   6 no partition keyspace; length of its least key, key
//!   7 covered      sequence number: the changes up to it are in the tables and keyspaces that are named here. The
//!                  first log that is still needed may have some of them
//!   8 whole        number of a log, and an offset: the log was synced up to there
//!   9 compression  identifier of a keyspace; the compression of its tables from now on: 0 none, 1 LZ4, 2 Zstandard.
//!                  A keyspace without has that of the default one, which has none without
//!  10 operator     identifier of a keyspace; length of a name, name: its merge operator
//!  11 ttl          identifier of a keyspace; the time to live of values that are set without one from now on, in
//!                  milliseconds; 0: they stay
//!  12 keep         number of a log, and its length in bytes: it is kept for values in it, and was synced
//!  13 no keep      number of a log that is kept: no entry that counts has a value in it
//!  14 operands     logs and tables may have operands of merges
//! ```
//!
//! Numbers are encoded by [`codec`](crate::codec). A partition ends at the least key of the next one. If the
//! first partition of a keyspace does not begin with the empty key, there is nothing before it.
//!
//! For example, keyspace 0 called `default`, with one partition of the tables 7 and 9 and no REMIX, which hold the
//! changes up to 5, and log 8, which was synced up to offset 64:
//!
//! ```text
//! 01 00 07 64 65 66 61 75 6C 74   03 01   04 08   05 00 00 00 02 07 09   07 05   08 08 40
//! ```

use crate::codec::{Parts, put_bytes, put_number};
use crate::compression;
use forrest_engine::Compression;

/// A change of the state.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Edit {
    Keyspace { id: u32, name: String },
    NoKeyspace { id: u32 },
    Next { id: u32 },
    Floor { log: u64 },
    Partition { space: u32, low: Vec<u8>, remix: u64, tables: Vec<u64> },
    NoPartition { space: u32, low: Vec<u8> },
    Covered { sequence: u64 },
    Whole { log: u64, end: u64 },
    Compression { space: u32, method: Compression },
    Operator { space: u32, name: String },
    Ttl { space: u32, ms: u64 },
    Keep { log: u64, bytes: u64 },
    NoKeep { log: u64 },
    Operands,
}

impl Edit {
    pub(crate) fn put(&self, out: &mut Vec<u8>) {
        match self {
            Edit::Keyspace { id, name } => {
                out.push(1);
                put_number(out, u64::from(*id));
                put_bytes(out, name.as_bytes());
            }
            Edit::NoKeyspace { id } => {
                out.push(2);
                put_number(out, u64::from(*id));
            }
            Edit::Next { id } => {
                out.push(3);
                put_number(out, u64::from(*id));
            }
            Edit::Floor { log } => {
                out.push(4);
                put_number(out, *log);
            }
            Edit::Partition { space, low, remix, tables } => {
                out.push(5);
                put_number(out, u64::from(*space));
                put_bytes(out, low);
                put_number(out, *remix);
                put_number(out, tables.len() as u64);
                tables.iter().for_each(|table| put_number(out, *table));
            }
            Edit::NoPartition { space, low } => {
                out.push(6);
                put_number(out, u64::from(*space));
                put_bytes(out, low);
            }
            Edit::Covered { sequence } => {
                out.push(7);
                put_number(out, *sequence);
            }
            Edit::Whole { log, end } => {
                out.push(8);
                put_number(out, *log);
                put_number(out, *end);
            }
            Edit::Compression { space, method } => {
                out.push(9);
                put_number(out, u64::from(*space));
                put_number(out, compression::number(*method).into());
            }
            Edit::Operator { space, name } => {
                out.push(10);
                put_number(out, u64::from(*space));
                put_bytes(out, name.as_bytes());
            }
            Edit::Ttl { space, ms } => {
                out.push(11);
                put_number(out, u64::from(*space));
                put_number(out, *ms);
            }
            Edit::Keep { log, bytes } => {
                out.push(12);
                put_number(out, *log);
                put_number(out, *bytes);
            }
            Edit::NoKeep { log } => {
                out.push(13);
                put_number(out, *log);
            }
            Edit::Operands => out.push(14),
        }
    }

    /// The next edit; `None` if this version knows no such edit.
    pub(crate) fn take(parts: &mut Parts<'_>) -> Option<Edit> {
        let id = |parts: &mut Parts<'_>| u32::try_from(parts.number()?).ok();
        Some(match parts.byte()? {
            1 => Edit::Keyspace { id: id(parts)?, name: str::from_utf8(parts.bytes()?).ok()?.to_string() },
            2 => Edit::NoKeyspace { id: id(parts)? },
            3 => Edit::Next { id: id(parts)? },
            4 => Edit::Floor { log: parts.number()? },
            5 => {
                let (space, low, remix) = (id(parts)?, parts.bytes()?.to_vec(), parts.number()?);
                let count = parts.number()?;
                // No capacity is reserved for the count: the vector grows with the numbers that are really
                // there.
                let mut tables = Vec::new();
                for _ in 0..count {
                    tables.push(parts.number()?);
                }
                Edit::Partition { space, low, remix, tables }
            }
            6 => Edit::NoPartition { space: id(parts)?, low: parts.bytes()?.to_vec() },
            7 => Edit::Covered { sequence: parts.number()? },
            8 => Edit::Whole { log: parts.number()?, end: parts.number()? },
            9 => Edit::Compression { space: id(parts)?, method: compression::of_number(parts.number()?)? },
            10 => {
                Edit::Operator { space: id(parts)?, name: str::from_utf8(parts.bytes()?).ok()?.to_string() }
            }
            11 => Edit::Ttl { space: id(parts)?, ms: parts.number()? },
            12 => Edit::Keep { log: parts.number()?, bytes: parts.number()? },
            13 => Edit::NoKeep { log: parts.number()? },
            14 => Edit::Operands,
            _ => return None,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_example_is_what_it_says() {
        let bytes = [
            1, 0, 7, 0x64, 0x65, 0x66, 0x61, 0x75, 0x6C, 0x74, 3, 1, 4, 8, 5, 0, 0, 0, 2, 7, 9, 7, 5, 8, 8,
            64,
        ];
        let edits = [
            Edit::Keyspace { id: 0, name: "default".into() },
            Edit::Next { id: 1 },
            Edit::Floor { log: 8 },
            Edit::Partition { space: 0, low: Vec::new(), remix: 0, tables: vec![7, 9] },
            Edit::Covered { sequence: 5 },
            Edit::Whole { log: 8, end: 64 },
        ];
        let mut out = Vec::new();
        edits.iter().for_each(|edit| edit.put(&mut out));
        assert_eq!(out, bytes);
        let mut parts = Parts(&bytes);
        for edit in edits {
            assert_eq!(Edit::take(&mut parts), Some(edit));
        }
        for end in 0..bytes.len() {
            let mut parts = Parts(&bytes[..end]);
            while Edit::take(&mut parts).is_some() {}
        }
        assert_eq!(Edit::take(&mut Parts(&[10, 0])), None, "an operator without a name");
        assert_eq!(Edit::take(&mut Parts(&[15, 0])), None, "a kind of a later version");
        out.clear();
        Edit::Operands.put(&mut out);
        assert_eq!((&out[..], Edit::take(&mut Parts(&[14]))), (&[14][..], Some(Edit::Operands)));
        for (edit, bytes) in
            [(Edit::Keep { log: 7, bytes: 130 }, &[12, 7, 0x82, 1][..]), (Edit::NoKeep { log: 7 }, &[13, 7])]
        {
            let mut out = Vec::new();
            edit.put(&mut out);
            assert_eq!((&out[..], Edit::take(&mut Parts(bytes))), (bytes, Some(edit)));
        }
        let mut bytes = Vec::new();
        Edit::Ttl { space: 3, ms: 5 }.put(&mut bytes);
        assert_eq!(
            (&bytes[..], Edit::take(&mut Parts(&bytes))),
            (&b"\x0B\x03\x05"[..], Some(Edit::Ttl { space: 3, ms: 5 }))
        );
        bytes.clear();
        let edit = Edit::Operator { space: 3, name: "max".to_string() };
        edit.put(&mut bytes);
        assert_eq!((&bytes[..], Edit::take(&mut Parts(&bytes))), (&b"\x0A\x03\x03max"[..], Some(edit)));
        let edit = Edit::Compression { space: 3, method: Compression::Lz4 };
        out.clear();
        edit.put(&mut out);
        assert_eq!((&out[..], Edit::take(&mut Parts(&out))), (&[9, 3, 1][..], Some(edit)));
        assert_eq!(Edit::take(&mut Parts(&[9, 3, 7])), None, "a method of a later version");
    }
}
