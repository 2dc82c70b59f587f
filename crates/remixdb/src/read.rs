//! The read path of single keys: the memtables from the newest on, then the one partition that the key
//! belongs to. The first that has the key, or a tombstone for it, decides; or if that has operands of merges, they are
//! gathered from there to the first that has a value or a tombstone.

use crate::memtable::{Memtable, ReadAt, Said};
use crate::operands::{self, base_ms};
use crate::see::{Presence, See, ToValue};
use crate::table::Reader;
use crate::values::Values;
use crate::version::Version;
use forrest_engine::{Pieces, Result, Value, Whole};
use std::sync::Arc;

/// What the newest memtable has that has a key.
pub(crate) enum Found<R> {
    Value(R),
    /// The key was deleted, or has expired.
    Nothing,
    /// Operands, which are to be applied to what older places have.
    Operands,
}

/// The lookup result of the memtables: `None` if they have nothing.
#[inline]
pub(crate) fn in_memtables<R>(
    version: &Version,
    space: u32,
    key: &[u8],
    read_at: ReadAt<'_>,
    mut see: impl FnMut(&[u8]) -> R,
) -> Option<Found<R>> {
    version.memtables().find_map(|memtable| {
        memtable.get(space, key, read_at, |said| match said {
            Said::Value(bytes) => Found::Value(see(bytes)),
            Said::Tombstone => Found::Nothing,
            Said::Wrapped(_) => in_wrapped(said, read_at, &mut see),
        })
    })
}

#[cold]
fn in_wrapped<R>(said: Said<'_>, read_at: ReadAt<'_>, see: impl FnMut(&[u8]) -> R) -> Found<R> {
    if said.has_operands() {
        return Found::Operands;
    }
    said.value(|| read_at.now_ms()).map(see).map_or(Found::Nothing, Found::Value)
}

/// The value of a key that has operands in some places; `None` if it is not there.
#[cold]
#[inline(never)]
pub(crate) fn gathered(
    version: &Version,
    space: u32,
    key: &[u8],
    read_at: ReadAt<'_>,
) -> Result<Option<Vec<u8>>> {
    let (mut entries, mut base) = (Vec::new(), None);
    for memtable in version.memtables() {
        let mut look = |said: Said<'_>| match said.has_operands() {
            true => entries.push(said.bytes().to_vec()),
            false => {
                let at_ms = base_ms(&entries, || read_at.now_ms());
                base = Some(said.value(|| at_ms).map(<[u8]>::to_vec));
            }
        };
        memtable.get(space, key, read_at, &mut look);
        if base.is_some() {
            break;
        }
    }
    let base = match (base, version.partition(space, key)) {
        (Some(base), _) => base,
        (None, Some(partition)) => partition.gather(key, || read_at.now_ms(), &mut entries)?,
        (None, None) => None,
    };
    applied(version, space, key, base, &entries)
}

/// Reads the tables of a version.
#[derive(Clone, Copy)]
struct InTables<'r> {
    version: &'r Version,
    space: u32,
    read_at: ReadAt<'r>,
}

impl Reader for InTables<'_> {
    fn now_ms(&self) -> u64 {
        self.read_at.now_ms()
    }

    fn gathered(&self, key: &[u8]) -> Result<Vec<u8>> {
        let partition = self.version.partition(self.space, key).expect("its key was found there");
        partition.gathered(&self.version.operated, self.space, key)
    }
}

fn applied(
    version: &Version,
    space: u32,
    key: &[u8],
    base: Option<Vec<u8>>,
    entries: &[Vec<u8>],
) -> Result<Option<Vec<u8>>> {
    if entries.is_empty() {
        return Ok(base);
    }
    operands::applied(&*version.operated.get(space)?, key, base.as_deref(), entries).map(Some)
}

/// Passes the value of a key to `see`; `None` if it is not there.
#[inline]
pub(crate) fn get<R, S>(
    version: &Version,
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
    match in_memtables(version, space, key, read_at, |bytes| see.here(bytes)) {
        None => {}
        Some(Found::Value(seen)) => return Ok(Some(seen)),
        Some(Found::Nothing) => return Ok(None),
        // They make a value, whatever that is.
        Some(Found::Operands) if !<&mut S as See<R>>::READS => return Ok(Some(see.here(&[]))),
        Some(Found::Operands) => {
            let value = gathered(version, space, key, read_at)?;
            return Ok(value.map(|value| see.here(&value)));
        }
    }
    let Some((partition, whereabouts)) = partition else { return Ok(None) };
    partition.get(whereabouts, key, InTables { version, space, read_at }, &mut see)
}

/// When the value of a key expires, in milliseconds since 1970; `Some(None)` if it does not, and `None` if the key is
/// not there.
pub(crate) fn expires_ms(
    version: &Version,
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
pub(crate) fn pieces(
    values: &Arc<Values>,
    version: &Version,
    space: u32,
    key: &[u8],
    read_at: ReadAt<'_>,
) -> Result<Option<Box<dyn Pieces>>> {
    let whole = |value: Value| Box::new(Whole::new(value)) as _;
    match in_memtables(version, space, key, read_at, |bytes| Value::from(bytes)) {
        None => {}
        Some(Found::Value(value)) => return Ok(Some(whole(value))),
        Some(Found::Nothing) => return Ok(None),
        Some(Found::Operands) => {
            let value = gathered(version, space, key, read_at)?;
            return Ok(value.map(|value| whole(Value::from(&value[..]))));
        }
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
pub(crate) fn several<K: AsRef<[u8]>>(
    version: &Version,
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
                (Some(Found::Value(value)), _) => Some(value),
                (Some(Found::Nothing), _) => None,
                (Some(Found::Operands), _) => {
                    gathered(version, space, key.as_ref(), read_at)?.map(|value| Value::from(&value[..]))
                }
                (None, Some((partition, whereabouts))) => partition.get(
                    *whereabouts,
                    key.as_ref(),
                    InTables { version, space, read_at },
                    ToValue,
                )?,
                (None, None) => None,
            });
        }
    }
    Ok(values)
}

/// Passes the value that the tables have for a key to `see`.
#[inline]
pub(crate) fn in_tables<R>(
    version: &Version,
    space: u32,
    key: &[u8],
    read_at: ReadAt<'_>,
    see: impl See<R>,
) -> Result<Option<R>> {
    let Some(partition) = version.partition(space, key) else { return Ok(None) };
    partition.get(partition.find(key), key, InTables { version, space, read_at }, see)
}

/// Whether the tables have a key; if so, an empty value stands for what it has.
pub(crate) fn presence_in_tables(
    version: &Version,
    space: u32,
    key: &[u8],
    read_at: ReadAt<'_>,
) -> Result<Option<Value>> {
    let found = in_tables(version, space, key, read_at, &mut Presence)?;
    Ok(found.map(|()| Value::from(&b""[..])))
}

/// The value of a key in the tables, owned.
pub(crate) fn value_in_tables(
    version: &Version,
    space: u32,
    key: &[u8],
    read_at: ReadAt<'_>,
) -> Result<Option<Value>> {
    in_tables(version, space, key, read_at, ToValue)
}
