//! The read path of single keys: the memtables from the newest on, then the one partition that the key
//! belongs to. The first that has the key, or a tombstone for it, decides.

use crate::disk::Disk;
use crate::memtable::{Memtable, ReadAt};
use crate::see::{See, ToValue};
use crate::values::Values;
use crate::version::Version;
use forrest_engine::{Pieces, Result, Value, Whole};
use std::sync::Arc;

/// The lookup result of the memtables: `None` if they have nothing, `Some(None)` if the key was deleted.
#[inline]
pub(crate) fn in_memtables<D: Disk, R>(
    version: &Version<D>,
    space: u32,
    key: &[u8],
    read_at: ReadAt<'_>,
    mut see: impl FnMut(&[u8]) -> R,
) -> Option<Option<R>> {
    version.memtables().find_map(|memtable| {
        memtable.get(space, key, read_at, |said| said.value(|| read_at.now_ms()).map(&mut see))
    })
}

/// Passes the value of a key to `see`; `None` if it is not there.
#[inline]
pub(crate) fn get<D: Disk, R, S>(
    version: &Version<D>,
    space: u32,
    key: &[u8],
    read_at: ReadAt<'_>,
    mut see: S,
) -> Result<Option<R>>
where
    for<'s> &'s mut S: See<R>,
{
    // The partition's memory is prefetched while the memtables are searched.
    let partition = version.partition(space, key).map(|partition| (partition, partition.find(key)));
    if let Some(said) = in_memtables(version, space, key, read_at, |bytes| see.here(bytes)) {
        return Ok(said);
    }
    match partition {
        Some((partition, whereabouts)) => partition.get(whereabouts, key, || read_at.now_ms(), &mut see),
        None => Ok(None),
    }
}

/// When the value of a key expires, in milliseconds since 1970; `Some(None)` if it does not, and `None` if the key is
/// not there.
pub(crate) fn expires_ms<D: Disk>(
    version: &Version<D>,
    space: u32,
    key: &[u8],
    read_at: ReadAt<'_>,
) -> Result<Option<Option<u64>>> {
    let now_ms = || read_at.now_ms();
    let in_memory =
        |memtable: &Arc<Memtable>| memtable.get(space, key, read_at, |said| said.expires_ms(now_ms));
    if let Some(said) = version.memtables().find_map(in_memory) {
        return Ok(said);
    }
    let partition = version.partition(space, key);
    partition.map_or(Ok(None), |partition| partition.expires_ms(key, now_ms()))
}

/// The value of a key, to be read in pieces. One that is in a log stays there.
pub(crate) fn pieces<D: Disk>(
    values: &Arc<Values<D>>,
    version: &Version<D>,
    space: u32,
    key: &[u8],
    read_at: ReadAt<'_>,
) -> Result<Option<Box<dyn Pieces>>> {
    let whole = |value: Value| Box::new(Whole::new(value)) as _;
    if let Some(said) = in_memtables(version, space, key, read_at, |bytes| Value::from(bytes)) {
        return Ok(said.map(whole));
    }
    let Some(partition) = version.partition(space, key) else { return Ok(None) };
    match partition.pointer(key)? {
        Some((_, Some(expires_ms))) if expires_ms <= read_at.now_ms() => Ok(None),
        Some((pointer, _)) => Ok(Some(Box::new(values.pieces(pointer)?))),
        None => Ok(value_in_tables(version, space, key, read_at)?.map(whole)),
    }
}

/// Number of keys that are searched at once.
const TOGETHER: usize = 32;

/// The values of several keys, in their order. Everything that their lookups wait for, in memory and on the
/// device, is requested before the first key is searched.
pub(crate) fn several<D: Disk, K: AsRef<[u8]>>(
    version: &Version<D>,
    space: u32,
    keys: &[K],
    read_at: ReadAt<'_>,
) -> Result<Vec<Option<Value>>> {
    let mut values = Vec::with_capacity(keys.len());
    for keys in keys.chunks(TOGETHER) {
        let mut places = [None; TOGETHER];
        for (place, key) in places.iter_mut().zip(keys) {
            if let Some(partition) = version.partition(space, key.as_ref()) {
                *place = Some((partition, partition.find(key.as_ref())));
            }
        }
        // The memory of the places found is being prefetched; meanwhile the memtables are searched.
        let memories = keys
            .iter()
            .map(|key| in_memtables(version, space, key.as_ref(), read_at, |bytes| Value::from(bytes)));
        let memories: Vec<_> = memories.collect();
        let left = || places.iter().zip(keys).zip(&memories).filter(|(_, said)| said.is_none());
        for ((place, key), _) in left() {
            if let Some((partition, whereabouts)) = place {
                partition.fetch(*whereabouts, key.as_ref())?;
            }
        }
        for ((place, key), said) in places.iter().zip(keys).zip(memories) {
            values.push(match (said, place) {
                (Some(said), _) => said,
                (None, Some((partition, whereabouts))) => {
                    partition.get(*whereabouts, key.as_ref(), || read_at.now_ms(), ToValue)?
                }
                (None, None) => None,
            });
        }
    }
    Ok(values)
}

/// Passes the value that the tables have for a key to `see`.
#[inline]
pub(crate) fn in_tables<D: Disk, R>(
    version: &Version<D>,
    space: u32,
    key: &[u8],
    read_at: ReadAt<'_>,
    see: impl See<R>,
) -> Result<Option<R>> {
    match version.partition(space, key) {
        Some(partition) => partition.get(partition.find(key), key, || read_at.now_ms(), see),
        None => Ok(None),
    }
}

/// The value of a key in the tables, owned.
pub(crate) fn value_in_tables<D: Disk>(
    version: &Version<D>,
    space: u32,
    key: &[u8],
    read_at: ReadAt<'_>,
) -> Result<Option<Value>> {
    in_tables(version, space, key, read_at, ToValue)
}
