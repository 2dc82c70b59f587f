//! How many keys a range has.
//!
//! A partition knows it without a walk: a table has each key at an ordinal, and the selectors of a REMIX show which
//! entries are the newest versions of keys that are there. So a count reads what the ends of the range need, and the
//! selectors between them. It walks where a memtable has changes of the range, and in partitions that cannot know:
//! those with values that may expire, with operands, or with two layers.

use crate::gaps::Changes;
use crate::memtable::ReadAt;
use crate::scan;
use crate::version::Version;
use forrest_engine::spans;
use forrest_engine::{Direction, Result};
use std::ops::{Bound, ControlFlow};
use std::sync::Arc;

/// The number of keys from `start` up to `end` at a point in time.
///
/// # Errors
/// `Corrupt` and `Io` from what it reads.
pub(crate) fn count(
    changes: &dyn Changes,
    version: &Arc<Version>,
    space: u32,
    read_at: ReadAt<'_>,
    start: &[u8],
    end: Option<&[u8]>,
) -> Result<u64> {
    if spans::is_empty(start, end) {
        return Ok(0);
    }
    let partitions = version.partitions(space);
    let first = partitions.partition_point(|partition| *partition.low <= *start).saturating_sub(1);
    let (mut keys, mut walks) = (0, Vec::new());
    if partitions.is_empty() {
        walks.push((start, end));
    }
    for (at, partition) in partitions.iter().enumerate().skip(first) {
        let (low, high) = (&partition.low[..], partitions.get(at + 1).map(|next| &next.low[..]));
        if end.is_some_and(|end| end <= low) {
            break;
        }
        let from = if at == first { start } else { low };
        let to = spans::earlier(end, high);
        let has_changes = version.has_in_memory(space, from, |key| to.is_none_or(|to| key < to));
        let counted = match has_changes {
            true => None,
            false => partition.count(Some(from).filter(|from| *from > low), to.filter(|_| to != high)),
        };
        match (counted, walks.last_mut()) {
            (Some(counted), _) => keys += counted,
            (None, Some((_, end))) if *end == Some(from) => *end = to,
            (None, _) => walks.push((from, to)),
        }
    }
    for (from, to) in walks {
        let bounds = (Bound::Included(from), to.map_or(Bound::Unbounded, Bound::Excluded));
        let see = scan::Keys(|_: &[u8]| {
            keys += 1;
            ControlFlow::Continue(())
        });
        scan::scan(changes, version, space, read_at, bounds, (Direction::Forward, true), see)?;
    }
    Ok(keys)
}
