//! The memtable: the newest changes, in memory, in order, with as many old versions as somebody may still read.
//!
//! A tree of forrest-index for each keyspace, keyed by the user's key. What a key maps to:
//!
//! ```text
//! newest version    sequence number << 8 | flags, 8 bytes
//!                   length of the value, 4 bytes, if an older version follows
//!                   value
//! older version     the same, up to the oldest that anybody may read
//! ```
//!
//! So a key that is written again and again takes one place, unless a snapshot or a batch that is being applied keeps
//! what was before. A tombstone is a version without a value.
//!
//! One thread at a time writes (the store's order sees to it), any number read meanwhile, without waiting.

use crate::catalog::Catalog;
use forrest_engine::Options;
use forrest_engine::error::of_index;
use forrest_engine::{Error, ErrorKind, Result};
use forrest_index::{self as index, Cursor, Effect, Index, Tree};
use std::borrow::Cow;
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock, PoisonError, RwLock};

/// Longest value, in bytes: what the index holds, less what stands before it.
pub(crate) const VALUE_MAX: usize = forrest_index::MAX_VALUE_BYTES - VERSION_BYTES;

const TOMBSTONE: u64 = 1;
const OLDER: u64 = 2;
const FLAG_BITS: u32 = 8;
const HEAD: usize = 8;
const LENGTH: usize = 4;
const VERSION_BYTES: usize = HEAD + LENGTH;
/// What a key costs beside its bytes and its value's, about.
const ENTRY_BYTES: usize = 24;

/// The index reserves addresses for so many times what the largest content is, and for so many bytes at least.
const CAPACITY_FACTOR: usize = 4;
const CAPACITY_MIN: usize = 64 << 20;

/// Changes that are not in tables yet.
pub(crate) struct Memtable {
    index: Index,
    /// The tree of the keyspace that most use, found without a lock.
    first: OnceLock<Tree>,
    others: RwLock<BTreeMap<u32, Tree>>,
    /// Bytes of keys, values and what holds them, about.
    bytes: AtomicUsize,
    /// The log that its first change is in.
    pub(crate) log: u64,
    /// The keyspaces at the moment when the last change had been made to it.
    pub(crate) catalog: OnceLock<Arc<Catalog>>,
}

/// Up to which sequence number a reader sees.
#[derive(Clone, Copy)]
pub(crate) enum ReadAt<'s> {
    /// As far as changes are visible at the moment of looking.
    Newest(&'s AtomicU64),
    /// A snapshot's.
    Past(u64),
}

/// What is said of a key that is there: its value, or that it was deleted.
pub(crate) type Said<'v> = Option<&'v [u8]>;

/// A version taken apart: sequence number, value or tombstone, and the older versions.
fn split(bytes: &[u8]) -> (u64, Said<'_>, &[u8]) {
    let (head, rest) = bytes.split_first_chunk::<HEAD>().expect("a version has a head");
    let head = u64::from_le_bytes(*head);
    let (value, older) = if head & OLDER == 0 {
        (rest, &[][..])
    } else {
        let (length, rest) =
            rest.split_first_chunk::<LENGTH>().expect("a version with older ones has a length");
        rest.split_at(u32::from_le_bytes(*length) as usize)
    };
    (head >> FLAG_BITS, (head & TOMBSTONE == 0).then_some(value), older)
}

/// The newest version up to a sequence number.
fn at(mut versions: &[u8], read_at: u64) -> Option<Said<'_>> {
    while !versions.is_empty() {
        let (sequence, said, older) = split(versions);
        if sequence <= read_at {
            return Some(said);
        }
        versions = older;
    }
    None
}

impl ReadAt<'_> {
    /// What the reader sees of a key's versions; `None` if it sees none.
    ///
    /// A version that a reader of the newest state may want is dropped only after one that replaces it has become
    /// visible; so if there is none that is old enough, either a look at what is visible now helps, or the key came
    /// with a batch that is still being applied.
    #[inline]
    pub(crate) fn see<'v>(&self, versions: &'v [u8]) -> Option<Said<'v>> {
        match *self {
            ReadAt::Past(read_at) => at(versions, read_at),
            ReadAt::Newest(visible) => {
                let mut read_at = visible.load(Ordering::Acquire);
                loop {
                    if let Some(said) = at(versions, read_at) {
                        return Some(said);
                    }
                    let now = visible.load(Ordering::Acquire);
                    if now == read_at {
                        return None;
                    }
                    read_at = now;
                }
            }
        }
    }
}

fn put_version(out: &mut Vec<u8>, sequence: u64, value: Said<'_>, older: bool) {
    let flags = if value.is_none() { TOMBSTONE } else { 0 } | if older { OLDER } else { 0 };
    out.extend_from_slice(&(sequence << FLAG_BITS | flags).to_le_bytes());
    let value = value.unwrap_or_default();
    if older {
        out.extend_from_slice(&(value.len() as u32).to_le_bytes());
    }
    out.extend_from_slice(value);
}

/// A version before those that readers at `keep` or later may still want.
fn with_older(sequence: u64, value: Said<'_>, old: &[u8], keep: u64) -> Vec<u8> {
    let mut out = Vec::with_capacity(VERSION_BYTES + value.map_or(0, <[u8]>::len) + old.len());
    put_version(&mut out, sequence, value, true);
    let mut versions = old;
    while !versions.is_empty() {
        let (sequence, said, older) = split(versions);
        let last = sequence <= keep || older.is_empty();
        put_version(&mut out, sequence, said, !last);
        versions = if last { &[] } else { older };
    }
    out
}

impl Memtable {
    /// An empty memtable whose first change will be in `log`.
    pub(crate) fn new(builder: &Options, log: u64) -> Result<Memtable> {
        let Options { pages, numa, memtable_bytes, batch_bytes_max, .. } = *builder;
        // More than it will take: it is immutable when it is full, and at most one batch comes after that. Addresses
        // are limited too (`ulimit -v`, emulation): where there are not so many, it does with less.
        let content = memtable_bytes.saturating_add(batch_bytes_max);
        let mut capacity = content.saturating_mul(CAPACITY_FACTOR).max(CAPACITY_MIN);
        let index = loop {
            match Index::new(&index::Options { capacity_bytes: Some(capacity), pages, numa }) {
                Err(forrest_index::Error::OutOfMemory(_)) if capacity > CAPACITY_MIN => {
                    capacity = (capacity / 2).max(CAPACITY_MIN);
                }
                made => break made.map_err(of_index)?,
            }
        };
        Ok(Memtable {
            index,
            first: OnceLock::new(),
            others: RwLock::default(),
            bytes: AtomicUsize::new(0),
            log,
            catalog: OnceLock::new(),
        })
    }

    /// Bytes of what it holds, about.
    pub(crate) fn bytes(&self) -> usize {
        self.bytes.load(Ordering::Relaxed)
    }

    /// Runs `look` on the tree of a keyspace, if there is one.
    #[inline]
    fn tree<R>(&self, space: u32, look: impl FnOnce(&Tree) -> R) -> Option<R> {
        if space == 0 {
            return self.first.get().map(look);
        }
        let others = self.others.read().unwrap_or_else(PoisonError::into_inner);
        others.get(&space).map(look)
    }

    /// Makes the tree of a keyspace if there is none. One thread at a time.
    fn make_tree(&self, space: u32) -> Result<()> {
        if self.tree(space, |_| ()).is_none() {
            let tree = self.index.create_tree().map_err(of_index)?;
            if space == 0 {
                self.first.set(tree).ok().expect("one thread at a time");
            } else {
                self.others.write().unwrap_or_else(PoisonError::into_inner).insert(space, tree);
            }
        }
        Ok(())
    }

    /// Sets a key to a value, or to a tombstone, as of a sequence number above all before. What a reader at `keep` or
    /// later sees stays.
    pub(crate) fn set(
        &self,
        space: u32,
        key: &[u8],
        sequence: u64,
        value: Said<'_>,
        keep: u64,
        scratch: &mut Vec<u8>,
    ) -> Result<()> {
        self.make_tree(space)?;
        scratch.clear();
        put_version(scratch, sequence, value, false);
        let versions = &scratch[..];
        let grown = self.tree(space, |tree| {
            tree.apply(key, |old| match old {
                None => (Effect::Put(Cow::Borrowed(versions)), key.len() + ENTRY_BYTES + versions.len()),
                Some(_) if keep >= sequence => (Effect::Put(Cow::Borrowed(versions)), versions.len()),
                Some(old) => {
                    let chain = with_older(sequence, value, old, keep);
                    let len = chain.len();
                    (Effect::Put(Cow::Owned(chain)), len)
                }
            })
        });
        let grown = grown.expect("the tree was just made").map_err(too_much)?;
        self.bytes.fetch_add(grown, Ordering::Relaxed);
        Ok(())
    }

    /// Shows what is said of a key to `look`; `None` if nothing is.
    #[inline]
    pub(crate) fn get<R>(
        &self,
        space: u32,
        key: &[u8],
        read_at: ReadAt<'_>,
        look: impl FnOnce(Said<'_>) -> R,
    ) -> Option<R> {
        self.tree(space, |tree| tree.get_with(key, |versions| read_at.see(versions).map(look)))??
    }

    /// A cursor over the keys of a keyspace and their versions; `None` if there are no keys.
    pub(crate) fn cursor(&self, space: u32) -> Option<Cursor> {
        // Most keys that a reader comes by are in tables.
        self.tree(space, |tree| tree.cursor_reading(1))
    }

    /// The keyspaces that have changes, in order.
    pub(crate) fn spaces(&self) -> Vec<u32> {
        let others = self.others.read().unwrap_or_else(PoisonError::into_inner);
        self.first.get().map(|_| 0).into_iter().chain(others.keys().copied()).collect()
    }

    /// Bytes in use, and bytes taken from the system.
    pub(crate) fn stats(&self) -> forrest_index::Stats {
        self.index.stats()
    }
}

fn too_much(error: forrest_index::Error) -> Error {
    Error::new(ErrorKind::OutOfSpace, format!("the memtable: {error}"))
}

/// The version of what a cursor shows that a snapshot sees; `None` if it sees none.
pub(crate) fn past(versions: &[u8], read_at: u64) -> Option<Said<'_>> {
    at(versions, read_at)
}

/// The newest version of what a cursor shows.
pub(crate) fn newest(versions: &[u8]) -> Said<'_> {
    split(versions).1
}

#[cfg(test)]
mod tests {
    use super::*;

    fn get(memtable: &Memtable, key: &[u8], read_at: u64) -> Option<Option<Vec<u8>>> {
        memtable.get(0, key, ReadAt::Past(read_at), |said| said.map(<[u8]>::to_vec))
    }

    fn memtable() -> Memtable {
        Memtable::new(&Options::default(), 1).expect("there is memory")
    }

    #[test]
    fn versions_stay_as_long_as_somebody_may_read_them() {
        let memtable = memtable();
        let mut scratch = Vec::new();
        let mut set = |sequence, value: Said<'_>, keep| {
            memtable.set(0, b"k", sequence, value, keep, &mut scratch).expect("it fits");
        };
        set(5, Some(b"five"), 5);
        set(7, None, 5);
        set(9, Some(b"nine"), 7);
        assert_eq!(get(&memtable, b"k", 9), Some(Some(b"nine".to_vec())));
        assert_eq!(get(&memtable, b"k", 8), Some(None));
        assert_eq!(get(&memtable, b"k", 6), None, "nobody reads at 6 once 7 is the oldest");
        set(11, Some(b""), 11);
        assert_eq!(get(&memtable, b"k", 11), Some(Some(Vec::new())));
        assert_eq!(get(&memtable, b"k", 10), None);
        assert_eq!(get(&memtable, b"q", 11), None);
    }

    #[test]
    fn a_reader_of_the_newest_state_does_not_see_a_batch_that_is_being_applied() {
        let memtable = memtable();
        let mut scratch = Vec::new();
        let visible = AtomicU64::new(4);
        memtable.set(3, b"old", 4, Some(b"4"), 4, &mut scratch).expect("it fits");
        memtable.set(3, b"old", 5, Some(b"5"), 4, &mut scratch).expect("it fits");
        memtable.set(3, b"new", 6, Some(b"6"), 4, &mut scratch).expect("it fits");
        let get = |key| memtable.get(3, key, ReadAt::Newest(&visible), |said| said.map(<[u8]>::to_vec));
        assert_eq!((get(b"old"), get(b"new")), (Some(Some(b"4".to_vec())), None));
        visible.store(6, Ordering::Release);
        assert_eq!((get(b"old"), get(b"new")), (Some(Some(b"5".to_vec())), Some(Some(b"6".to_vec()))));
        assert_eq!((memtable.spaces(), memtable.cursor(0).is_none()), (vec![3], true));
    }
}
