//! The memtable: the newest changes, in memory, in order, with the old versions that may still be read.
//!
//! A tree of forrest-index for each keyspace, keyed by the user's key. What a key maps to:
//!
//! ```text
//! newest version    sequence number << 8 | flags, 8 bytes: 1 a tombstone, 2 an older version follows, 4 a wrapped value
//!                   length of the value, 4 bytes, if an older version follows
//!                   value
//! older version     the same, for each that a reader may want
//! ```
//!
//! An older version stays only if a snapshot reads at a sequence number from its own to that of the next one, or if the
//! visible state is there, because a batch is being applied ([`Wanted`]). So a key that is written repeatedly has one
//! version, and one more for each snapshot between whose sequence numbers it was written. A tombstone is a version
//! without a value.
//!
//! Beside the trees it has the ranges of keys that were deleted together ([`Ranges`]). Such a delete hides the versions
//! of its keys that are older: those in the tree, and those in all older places. It takes constant memory, and no
//! version is made for its keys.
//!
//! A reader loads the ranges, then the sequence number up to which they count, and then looks into the tree. The ranges
//! have the newest delete up to each number that is loaded after them: an older one goes only when a newer one is
//! visible, and the lock of the pointer to the ranges shows that number to who finds the older one gone. The model
//! `a_deleted_key_stays_deleted` checks it.
//! A set that comes after a range delete in the same batch is in the tree before the batch becomes visible. So a reader
//! that counts the delete finds the set. A set that comes before it in the same batch is left out of the batch.
//!
//! One thread at a time writes, under the store's order lock. Any number of threads read meanwhile. They wait for
//! nothing but the pointer to the ranges, if there are any.

use crate::catalog::Catalog;
use crate::clock::{Moment, Newest};
use crate::ranges::{FRAGMENT_BYTES, FRAGMENTS_MOST, Ranges};
use crate::room;
use crate::sync::weakened;
use crate::wanted::Wanted;
use crate::wrapped::{self, Entry, Kind};
use forrest_engine::Options;
use forrest_engine::error::of_index;
use forrest_engine::spans::Spans;
use forrest_engine::{Error, ErrorKind, Result};
use forrest_index::{self as index, Cursor, Effect, Index, Spare, Tree};
use forrest_machine::pages::fitting;
use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Bound;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock, PoisonError, RwLock};

/// Longest value, in bytes: the limit of the index, less the header of a version.
pub(crate) const VALUE_MAX: usize = forrest_index::MAX_VALUE_BYTES - VERSION_BYTES;

const TOMBSTONE: u64 = 1;
const OLDER: u64 = 2;
const WRAPPED: u64 = 4;
const _: () = assert!(Kind::Tombstone as u64 == TOMBSTONE && (Kind::Wrapped as u64) << 1 == WRAPPED);
const FLAG_BITS: u32 = 8;
const HEAD: usize = 8;
const LENGTH: usize = 4;
const VERSION_BYTES: usize = HEAD + LENGTH;
/// Cost of a key in addition to the bytes of key and value, about.
const ENTRY_BYTES: usize = 24;

/// This many memtables that are full of ranges count as much as a full one.
const FULL_OF_RANGES: usize = 8;

/// The index reserves addresses for this many times the content that it has room for, but for no less than
/// `CAPACITY_MIN` bytes.
const CAPACITY_FACTOR: usize = 4;
const CAPACITY_MIN: usize = 64 << 20;

/// Changes that are not in tables yet.
pub(crate) struct Memtable {
    index: Index,
    spare: Spare,
    /// The tree of the most used keyspace, found without a lock.
    first: OnceLock<Tree>,
    others: RwLock<BTreeMap<u32, Tree>>,
    /// The range deletes of each keyspace that has any.
    ranges: RwLock<BTreeMap<u32, Arc<Ranges>>>,
    /// Number of changes of `ranges`. Counted after them.
    range_deletes: AtomicUsize,
    /// Bytes of keys, values and their overhead, about.
    bytes: AtomicUsize,
    /// The earliest expiry of a value that was set, in milliseconds since 1970.
    expires_ms: AtomicU64,
    /// Whether it has values that are in a log too.
    has_placed: AtomicBool,
    /// Bytes, counted the same way, that certainly fit.
    room: usize,
    /// With as many it becomes immutable.
    full: usize,
    /// The log that has its first change.
    pub(crate) log: u64,
    /// Set when it takes no more changes.
    frozen: OnceLock<Frozen>,
}

/// A change that was logged, and that no memtable has because memory was refused.
pub(crate) struct Unapplied {
    pub(crate) space: u32,
    pub(crate) key: Vec<u8>,
    pub(crate) sequence: u64,
    pub(crate) kind: Kind,
    pub(crate) bytes: Vec<u8>,
}

/// What is known of a memtable that takes no more changes.
pub(crate) struct Frozen {
    /// The keyspaces at the time of its last change.
    pub(crate) catalog: Arc<Catalog>,
    /// The sequence number of the last change in it or before it.
    pub(crate) last: u64,
}

/// The sequence number up to which a reader sees changes.
#[derive(Clone, Copy)]
pub(crate) enum ReadAt<'s> {
    /// The visible sequence number at the time of the read, and that time.
    Newest(&'s Newest),
    /// Those of a snapshot.
    Past(&'s Moment),
}

/// The content of a version.
pub(crate) type Said<'v> = Entry<'v>;

/// A version taken apart: sequence number, content, and the older versions.
#[inline]
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
    let plain = head & (TOMBSTONE | WRAPPED) == 0;
    let said = if plain { Entry::Value(value) } else { special(head, value) };
    (head >> FLAG_BITS, said, older)
}

/// The content of a version that is no plain value.
#[inline]
fn special(head: u64, value: &[u8]) -> Said<'_> {
    if head & TOMBSTONE == 0 { Entry::Wrapped(value) } else { Entry::Tombstone }
}

/// A version that a reader sees: its sequence number and its content.
pub(crate) type Seen<'v> = (u64, Said<'v>);

/// The newest version up to a sequence number.
fn at(mut versions: &[u8], read_at: u64) -> Option<Seen<'_>> {
    while !versions.is_empty() {
        let (sequence, said, older) = split(versions);
        if sequence <= read_at {
            return Some((sequence, said));
        }
        versions = older;
    }
    None
}

impl ReadAt<'_> {
    /// The version that the reader sees of a key; `None` if it sees none.
    #[inline]
    pub(crate) fn see<'v>(&self, versions: &'v [u8]) -> Option<Seen<'v>> {
        match *self {
            ReadAt::Past(read_at) => at(versions, read_at.sequence),
            ReadAt::Newest(visible) => {
                let visible = || visible.load(Ordering::Acquire);
                let (sequence, said, _) = split(versions);
                if sequence <= visible() { Some((sequence, said)) } else { newest_at(versions, visible) }
            }
        }
    }

    /// The newest range delete of a key that counts for the reader, in the ranges that `load` loads. The tree is looked
    /// into after that, and shows what is newer.
    pub(crate) fn deleted(&self, key: &[u8], load: impl FnOnce() -> Option<Arc<Ranges>>) -> Option<u64> {
        let early = weakened!("counts_first").then(|| self.now());
        let ranges = load()?;
        // After the ranges: they may lack older deletes that only a reader of an earlier state wants.
        let until = early.unwrap_or_else(|| self.now());
        ranges.deleted(key, until).map(|(deleted, _)| deleted)
    }

    /// The sequence number up to which it sees changes now.
    pub(crate) fn now(&self) -> u64 {
        match *self {
            ReadAt::Past(read_at) => read_at.sequence,
            ReadAt::Newest(visible) => visible.load(Ordering::Acquire),
        }
    }

    /// The time at which it reads, in milliseconds since 1970.
    #[cold]
    #[inline(never)]
    pub(crate) fn now_ms(&self) -> u64 {
        match *self {
            ReadAt::Past(read_at) => read_at.ms,
            ReadAt::Newest(newest) => newest.now_ms(),
        }
    }
}

/// The version that a reader of the newest state sees; `visible` loads the visible sequence number.
///
/// A version that such a reader may want is dropped only after a newer one has become visible. So if the newest
/// version is too new, the number is loaded again. If it has changed, the wanted version may be gone, and an older
/// one, kept for a snapshot, may be there in its place: the search starts again with the new number. If it has not,
/// a batch is being applied, and nothing that was visible before it is gone.
#[cold]
#[inline(never)]
fn newest_at(versions: &[u8], visible: impl Fn() -> u64) -> Option<Seen<'_>> {
    let mut read_at = visible();
    loop {
        let (sequence, said, older) = split(versions);
        if sequence <= read_at {
            return Some((sequence, said));
        }
        let now = visible();
        if now == read_at {
            return at(older, read_at);
        }
        read_at = now;
    }
}

fn put_version(out: &mut Vec<u8>, sequence: u64, value: Said<'_>, older: bool) {
    // The numbers of the kinds are 0, 1 and 2.
    let kind = value.kind() as u64;
    let flags = kind & TOMBSTONE | (kind & 2) << 1 | if older { OLDER } else { 0 };
    out.extend_from_slice(&(sequence << FLAG_BITS | flags).to_le_bytes());
    let value = value.bytes();
    if older {
        out.extend_from_slice(&(value.len() as u32).to_le_bytes());
    }
    out.extend_from_slice(value);
}

/// Encodes a new version, followed by the old ones that are wanted.
pub(crate) fn with_older(sequence: u64, value: Said<'_>, old: &[u8], wanted: &Wanted<'_>) -> Vec<u8> {
    // Each version is encoded when it is known whether another one follows.
    let (mut out, mut next) = (Vec::new(), (sequence, value));
    let (mut versions, mut newer) = (old, sequence);
    while !versions.is_empty() {
        let (sequence, said, older) = split(versions);
        if wanted.has(sequence, newer) {
            put_version(&mut out, next.0, next.1, true);
            next = (sequence, said);
        }
        (versions, newer) = (older, sequence);
    }
    put_version(&mut out, next.0, next.1, false);
    out
}

/// Maximum number of bytes that a change adds to a memtable.
pub(crate) fn cost(key: usize, value: usize) -> usize {
    key + value + VERSION_BYTES + ENTRY_BYTES
}

/// Maximum number of bytes that a range delete adds to a memtable.
pub(crate) fn range_cost(start: usize, end: usize) -> usize {
    // It may cut another fragment in two.
    2 * (start + end + FRAGMENT_BYTES)
}

impl Memtable {
    /// An empty memtable whose first change will be in `log`, with room for at least `room` bytes of changes
    /// ([`cost`]). It takes its memory from `spare` if there is any, and leaves it there.
    ///
    /// # Errors
    /// `OutOfSpace` if there are too few addresses.
    pub(crate) fn new(builder: &Options, spare: &Spare, log: u64, room: usize) -> Result<Memtable> {
        let Options { pages, numa, memtable_bytes, batch_bytes_max, .. } = *builder;
        // A full memtable becomes immutable after at most one more batch. Addresses are limited too (`ulimit -v`,
        // emulation); if there are too few, it reserves less, but never too few for `room`.
        room::ask()?;
        let capacity_of = |content: usize| content.saturating_mul(CAPACITY_FACTOR).max(CAPACITY_MIN);
        let least = capacity_of(room);
        let wanted = capacity_of(memtable_bytes.saturating_add(batch_bytes_max));
        let wanted = wanted.min(index::MAX_CAPACITY_BYTES);
        let (index, capacity) = fitting(wanted, least, |capacity| {
            let spare = Some(spare.clone());
            let index = Index::new(&index::Options { capacity_bytes: Some(capacity), pages, numa, spare })?;
            Ok((index, capacity))
        })
        .map_err(of_index)?;
        Ok(Memtable {
            index,
            spare: spare.clone(),
            first: OnceLock::new(),
            others: RwLock::default(),
            ranges: RwLock::default(),
            range_deletes: AtomicUsize::new(0),
            bytes: AtomicUsize::new(0),
            expires_ms: AtomicU64::new(u64::MAX),
            has_placed: AtomicBool::new(false),
            room: capacity / CAPACITY_FACTOR,
            full: memtable_bytes,
            log,
            frozen: OnceLock::new(),
        })
    }

    /// From now on it takes no more changes. One that is full of ranges counts as a part of a full memtable, however
    /// few bytes it has, so that writers wait before there are many.
    pub(crate) fn freeze(&self, catalog: Arc<Catalog>, last: u64) {
        if self.fragments() >= FRAGMENTS_MOST {
            self.bytes.fetch_max(self.full / FULL_OF_RANGES, Ordering::Relaxed);
        }
        // Nobody else sets it.
        let _ = self.frozen.set(Frozen { catalog, last });
    }

    /// REQUIRES: it takes no more changes.
    pub(crate) fn frozen(&self) -> &Frozen {
        self.frozen.get().expect("it is immutable")
    }

    /// Whether changes with this many bytes ([`cost`]) certainly fit.
    pub(crate) fn has_room(&self, bytes: usize) -> bool {
        self.bytes().saturating_add(bytes) <= self.room
    }

    /// Where it leaves its memory.
    pub(crate) fn spare(&self) -> &Spare {
        &self.spare
    }

    /// Gives memory back that it does not use.
    pub(crate) fn trim(&self) {
        self.index.trim();
    }

    /// Bytes of its content, about.
    pub(crate) fn bytes(&self) -> usize {
        self.bytes.load(Ordering::Relaxed)
    }

    /// Counts bytes. One thread at a time.
    fn grow(&self, bytes: usize) {
        self.bytes.store(self.bytes() + bytes, Ordering::Relaxed);
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

    /// Sets a key to an entry, at a sequence number greater than all before. Older versions stay if they
    /// are wanted.
    pub(crate) fn set(
        &self,
        space: u32,
        key: &[u8],
        sequence: u64,
        value: Said<'_>,
        wanted: &Wanted<'_>,
        scratch: &mut Vec<u8>,
    ) -> Result<()> {
        room::ask()?;
        self.make_tree(space)?;
        scratch.clear();
        put_version(scratch, sequence, value, false);
        let versions = &scratch[..];
        let grown = self.tree(space, |tree| {
            tree.apply(key, |old| match old {
                None => (Effect::Put(Cow::Borrowed(versions)), key.len() + ENTRY_BYTES + versions.len()),
                Some(_) if wanted.has_none_before(sequence) => {
                    (Effect::Put(Cow::Borrowed(versions)), versions.len())
                }
                Some(old) => {
                    let chain = with_older(sequence, value, old, wanted);
                    let len = chain.len();
                    (Effect::Put(Cow::Owned(chain)), len)
                }
            })
        });
        let grown = grown.expect("the tree was just made").map_err(too_much)?;
        self.grow(grown);
        if let Entry::Wrapped(bytes) = value {
            self.note_wrapped(value, bytes);
        }
        Ok(())
    }

    #[cold]
    fn note_wrapped(&self, value: Said<'_>, bytes: &[u8]) {
        if wrapped::place_of(bytes).is_some() {
            self.has_placed.store(true, Ordering::Relaxed);
        }
        // Those with operands do not expire.
        if let Some(Some(ms)) = value.expires_ms(|| 0) {
            self.expires_ms.fetch_min(ms, Ordering::Relaxed);
        }
    }

    /// Whether it has values that are in a log too ([`wrapped`]).
    pub(crate) fn has_placed(&self) -> bool {
        self.has_placed.load(Ordering::Relaxed)
    }

    /// The earliest expiry of a value that was set, in milliseconds since 1970; the greatest number if none expires.
    pub(crate) fn expires_ms(&self) -> u64 {
        self.expires_ms.load(Ordering::Relaxed)
    }

    /// Passes what the reader sees of a key to `look`; `None` if it sees nothing, and older places have to be asked.
    #[inline]
    pub(crate) fn get<R>(
        &self,
        space: u32,
        key: &[u8],
        read_at: ReadAt<'_>,
        look: impl FnOnce(Said<'_>) -> R,
    ) -> Option<R> {
        if self.range_deletes() > 0 {
            return self.get_beside_ranges(space, key, read_at, look);
        }
        self.tree(space, |tree| {
            tree.get_with(key, |versions| read_at.see(versions).map(|(_, said)| look(said)))
        })??
    }

    #[cold]
    fn get_beside_ranges<R>(
        &self,
        space: u32,
        key: &[u8],
        read_at: ReadAt<'_>,
        look: impl FnOnce(Said<'_>) -> R,
    ) -> Option<R> {
        let deleted = read_at.deleted(key, || self.ranges(space));
        let mut look = Some(look);
        let mut show = |said: Said<'_>| look.take().map(|look| look(said));
        let seen = self.tree(space, |tree| {
            tree.get_with(key, |versions| match read_at.see(versions) {
                Some((sequence, said)) if deleted.is_none_or(|deleted| deleted < sequence) => show(said),
                _ => None,
            })
        });
        match seen.flatten().flatten() {
            None if deleted.is_some() => show(Entry::Tombstone),
            seen => seen,
        }
    }

    /// Deletes all keys of ranges at a sequence number greater than all before.
    pub(crate) fn delete_ranges(&self, space: u32, deleted: &Spans, sequence: u64, wanted: &Wanted<'_>) {
        let old = self.ranges(space).unwrap_or_default();
        let new = old.with(deleted, sequence, wanted);
        let grown = new.bytes().saturating_sub(old.bytes());
        self.ranges.write().unwrap_or_else(PoisonError::into_inner).insert(space, Arc::new(new));
        self.range_deletes.fetch_add(1, Ordering::Release);
        self.grow(grown);
    }

    /// Number of times that ranges were deleted.
    #[inline]
    pub(crate) fn range_deletes(&self) -> usize {
        self.range_deletes.load(Ordering::Acquire)
    }

    /// The deleted ranges of a keyspace; `None` if there are none.
    pub(crate) fn ranges(&self, space: u32) -> Option<Arc<Ranges>> {
        if self.range_deletes() == 0 {
            return None;
        }
        self.ranges.read().unwrap_or_else(PoisonError::into_inner).get(&space).cloned()
    }

    /// Number of fragments of deleted ranges.
    pub(crate) fn fragments(&self) -> usize {
        let ranges = self.ranges.read().unwrap_or_else(PoisonError::into_inner);
        ranges.values().map(|ranges| ranges.len()).sum()
    }

    /// A cursor over the keys of a keyspace and their versions; `None` if there are no keys.
    pub(crate) fn cursor(&self, space: u32) -> Option<Cursor> {
        // Most keys that a reader visits are in tables.
        self.tree(space, |tree| tree.cursor_reading(1))
    }

    /// Keys of a keyspace from `start` up to `end` that it has a version or a tombstone of, about, and their bytes.
    pub(crate) fn estimate(&self, space: u32, start: &[u8], end: Option<&[u8]>) -> (u64, u64) {
        let end = end.map_or(Bound::Unbounded, Bound::Excluded);
        let found = self.tree(space, |tree| tree.estimate(Bound::Included(start), end));
        let (keys, bytes) = found.unwrap_or_default();
        (keys, bytes.saturating_sub(keys * HEAD as u64))
    }

    /// The keyspaces that have changes, in order.
    pub(crate) fn spaces(&self) -> Vec<u32> {
        let others = self.others.read().unwrap_or_else(PoisonError::into_inner);
        let ranges = self.ranges.read().unwrap_or_else(PoisonError::into_inner);
        let trees = self.first.get().map(|_| 0).into_iter().chain(others.keys().copied());
        trees.chain(ranges.keys().copied()).collect::<BTreeSet<_>>().into_iter().collect()
    }

    /// Bytes of memory that it takes, those of long values included.
    pub(crate) fn memory_bytes(&self) -> usize {
        let ranges = self.ranges.read().unwrap_or_else(PoisonError::into_inner);
        let ranges: usize = ranges.values().map(|ranges| ranges.bytes()).sum();
        self.index.memory_bytes() as usize + ranges
    }

    /// Bytes in use, and bytes taken from the system.
    pub(crate) fn stats(&self) -> forrest_index::Stats {
        self.index.stats()
    }
}

fn too_much(error: forrest_index::Error) -> Error {
    Error::new(ErrorKind::OutOfSpace, format!("the memtable: {error}"))
}

/// The version under the cursor that a snapshot sees; `None` if it sees none.
pub(crate) fn past(versions: &[u8], read_at: u64) -> Option<Seen<'_>> {
    at(versions, read_at)
}

/// The newest version under the cursor.
pub(crate) fn newest(versions: &[u8]) -> Seen<'_> {
    let (sequence, said, _) = split(versions);
    (sequence, said)
}

#[cfg(test)]
mod tests {
    use super::*;
    use forrest_engine::clock::Clock;

    fn get(memtable: &Memtable, key: &[u8], read_at: u64) -> Option<Option<Vec<u8>>> {
        memtable
            .get(0, key, ReadAt::Past(&Moment::after(read_at)), |said| said.value(|| 0).map(<[u8]>::to_vec))
    }

    fn memtable() -> Memtable {
        Memtable::new(&Options::default(), &Spare::new(0), 1, 0).expect("there is memory")
    }

    #[test]
    fn versions_stay_as_long_as_somebody_may_read_them() {
        let memtable = memtable();
        let mut scratch = Vec::new();
        let mut set = |sequence, value: Option<&[u8]>, visible, snapshots: &[u64]| {
            let value = value.map_or(Entry::Tombstone, Entry::Value);
            let snapshots = &snapshots.iter().map(|&sequence| (sequence, 1)).collect();
            let wanted = Wanted { visible, snapshots };
            memtable.set(0, b"k", sequence, value, &wanted, &mut scratch).expect("it fits");
        };
        set(5, Some(b"five"), 5, &[]);
        set(7, None, 7, &[6]);
        set(9, Some(b"nine"), 9, &[6, 8]);
        let five = || Some(Some(b"five".to_vec()));
        assert_eq!(get(&memtable, b"k", 9), Some(Some(b"nine".to_vec())));
        assert_eq!((get(&memtable, b"k", 8), get(&memtable, b"k", 6)), (Some(None), five()));
        set(11, Some(b""), 11, &[6]);
        assert_eq!((get(&memtable, b"k", 11), get(&memtable, b"k", 6)), (Some(Some(Vec::new())), five()));
        assert_eq!(get(&memtable, b"k", 10), five(), "nobody reads at 8 any more, nor between 9 and 11");
        // Two changes of a batch: what was visible before it stays, and the first of the two does not.
        set(13, Some(b"thirteen"), 12, &[]);
        set(14, Some(b"fourteen"), 12, &[]);
        assert_eq!(
            (get(&memtable, b"k", 12), get(&memtable, b"k", 13)),
            (Some(Some(Vec::new())), get(&memtable, b"k", 11))
        );
        set(16, None, 16, &[]);
        assert_eq!((get(&memtable, b"k", 16), get(&memtable, b"k", 15)), (Some(None), None));
        assert_eq!(get(&memtable, b"q", 11), None);
    }

    /// The visible sequence number changes between the two loads, and with it the version that was wanted is dropped.
    #[test]
    fn a_reader_of_the_newest_state_never_takes_the_version_of_a_snapshot() {
        let chain = with_older(
            9,
            Entry::Value(b"nine"),
            &with_older(
                7,
                Entry::Value(b"seven"),
                &with_older(5, Entry::Value(b"five"), &[], &nobody(5)),
                &reader(5, 7),
            ),
            &reader(5, 9),
        );
        assert_eq!(at(&chain, 7), Some((5, Entry::Value(b"five"))), "seven is gone");
        let loads = std::cell::Cell::new(7);
        let visible = || loads.replace(9);
        assert_eq!(newest_at(&chain, visible), Some((9, Entry::Value(b"nine"))));
    }

    static NONE: BTreeMap<u64, usize> = BTreeMap::new();

    fn nobody(visible: u64) -> Wanted<'static> {
        Wanted { visible, snapshots: &NONE }
    }

    fn reader(sequence: u64, visible: u64) -> Wanted<'static> {
        Wanted { visible, snapshots: Box::leak(Box::new(BTreeMap::from([(sequence, 1)]))) }
    }

    #[test]
    fn a_reader_of_the_newest_state_does_not_see_a_batch_that_is_being_applied() {
        let memtable = memtable();
        let mut scratch = Vec::new();
        let visible = Newest::new(4, Clock::new(|| 0));
        memtable.set(3, b"old", 4, Entry::Value(b"4"), &nobody(4), &mut scratch).expect("it fits");
        memtable.set(3, b"old", 5, Entry::Value(b"5"), &nobody(4), &mut scratch).expect("it fits");
        memtable.set(3, b"new", 6, Entry::Value(b"6"), &nobody(4), &mut scratch).expect("it fits");
        let get =
            |key| memtable.get(3, key, ReadAt::Newest(&visible), |said| said.value(|| 0).map(<[u8]>::to_vec));
        assert_eq!((get(b"old"), get(b"new")), (Some(Some(b"4".to_vec())), None));
        visible.store(6, Ordering::Release);
        assert_eq!((get(b"old"), get(b"new")), (Some(Some(b"5".to_vec())), Some(Some(b"6".to_vec()))));
        assert_eq!((memtable.spaces(), memtable.cursor(0).is_none()), (vec![3], true));
    }
}
