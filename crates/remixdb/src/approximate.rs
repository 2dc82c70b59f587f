//! What a range has, about: the number of keys and their bytes, without reading them.
//!
//! Tables have each key at an ordinal, so two seeks tell how many of their entries are in a range. Which of these are
//! replaced or deleted is not looked up: in each partition the share of such entries counts as the same everywhere. A
//! memtable adds its keys, as its tree estimates them, each as a new key.
//!
//! The keys of ranges that a memtable deletes are left out of the tables, and of the older memtables. Of the memtable
//! itself they are not: they may have come after.

use crate::version::Version;
use forrest_engine::spans::{self, Span, Spans};
use forrest_engine::{Approximate, Result};

/// Maximum number of deleted ranges of a memtable that are left out. What more of them delete counts.
const DELETED_MAX: usize = 64;

/// The keys from `start` up to `end` at a sequence number, and their bytes.
///
/// # Errors
/// `Corrupt` and `Io` from the tables that have the ends.
pub(crate) fn approximate(
    version: &Version,
    space: u32,
    read_at: u64,
    start: &[u8],
    end: Option<&[u8]>,
) -> Result<Approximate> {
    let (mut sum, mut deleted) = (Approximate::default(), Spans::default());
    let mut add = |(keys, bytes)| (sum.keys, sum.bytes) = (sum.keys + keys, sum.bytes + bytes);
    if spans::is_empty(start, end) {
        return Ok(sum);
    }
    for memtable in version.memtables() {
        for (start, end) in left(start, end, &deleted) {
            add(memtable.estimate(space, &start, end.as_deref()));
        }
        if let Some(ranges) = memtable.ranges(space) {
            for (start, end) in ranges.seen_within(start, end, read_at).take(DELETED_MAX) {
                deleted.insert(start.to_vec(), end.map(<[u8]>::to_vec));
            }
        }
    }
    let partitions = version.partitions(space);
    for (start, end) in left(start, end, &deleted) {
        let first = partitions.partition_point(|partition| *partition.low <= *start).saturating_sub(1);
        for (at, partition) in partitions.iter().enumerate().skip(first) {
            let high = partitions.get(at + 1).map(|next| &next.low[..]);
            if end.as_ref().is_some_and(|end| *end <= partition.low) {
                break;
            }
            let from = (start > partition.low).then_some(&start[..]);
            let to = end.as_deref().filter(|end| high.is_none_or(|high| *end < high));
            add(partition.approximate(from, to)?);
        }
    }
    Ok(sum)
}

/// The parts of a range that are not deleted, in order.
fn left(start: &[u8], end: Option<&[u8]>, deleted: &Spans) -> Vec<Span> {
    let (mut parts, mut from) = (Vec::new(), start.to_vec());
    for (low, high) in deleted.iter() {
        if *low > *from {
            parts.push((from, Some(low.to_vec())));
        }
        match high {
            Some(high) => from = high.to_vec(),
            None => return parts,
        }
    }
    if !spans::is_empty(&from, end) {
        parts.push((from, end.map(<[u8]>::to_vec)));
    }
    parts
}
