//! The read path of single keys: the memtables from the newest on, then the one partition that the key belongs to.
//! Whoever says something about the key first is right.

use crate::Value;
use crate::error::Result;
use crate::remixdb::disk::Disk;
use crate::remixdb::memtable::{Said, Upto};
use crate::remixdb::version::Version;

/// What the memtables say about a key: `None` nothing, `Some(None)` that it was deleted.
#[inline]
pub(crate) fn in_memtables<D: Disk, R>(
    version: &Version<D>,
    space: u32,
    key: &[u8],
    upto: Upto<'_>,
    mut see: impl FnMut(&[u8]) -> R,
) -> Option<Option<R>> {
    version
        .memtables()
        .find_map(|memtable| memtable.get(space, key, upto, |said: Said<'_>| said.map(&mut see)))
}

/// Shows the value of a key to `see`; `None` if it is not there.
#[inline]
pub(crate) fn get<D: Disk, R>(
    version: &Version<D>,
    space: u32,
    key: &[u8],
    upto: Upto<'_>,
    mut see: impl FnMut(&[u8]) -> R,
) -> Result<Option<R>> {
    // The partition's part of the wait for memory passes while the memtables are asked.
    let partition = match version.partition(space, key) {
        Some(partition) => Some((partition, partition.find(key)?)),
        None => None,
    };
    if let Some(said) = in_memtables(version, space, key, upto, &mut see) {
        return Ok(said);
    }
    match partition {
        Some((partition, whereabouts)) => partition.get(whereabouts, key, see),
        None => Ok(None),
    }
}

/// The same for the tables alone.
#[inline]
pub(crate) fn in_tables<D: Disk, R>(
    version: &Version<D>,
    space: u32,
    key: &[u8],
    see: impl FnMut(&[u8]) -> R,
) -> Result<Option<R>> {
    match version.partition(space, key) {
        Some(partition) => partition.get(partition.find(key)?, key, see),
        None => Ok(None),
    }
}

/// The value of a key in the tables, owned.
pub(crate) fn value_in_tables<D: Disk>(
    version: &Version<D>,
    space: u32,
    key: &[u8],
) -> Result<Option<Value>> {
    in_tables(version, space, key, |bytes| Value::from(bytes))
}
