//! [`Partition`]: a range of keys, the tables that have them, and the order over the tables.
//!
//! One table is read through its own index, several through a [`Remix`], which walks them without comparing
//! keys. A partition never changes.
//!
//! The REMIX file may cover only the first tables: each new table changes all of a REMIX, and writing it
//! every time would cost more than writing the tables. The rest is built from the keys of the tables. That,
//! and reading the file, is done when the partition is first scanned, or by the background thread, so that the
//! time to open a store does not grow with its size. Until then a lookup searches the tables, the newest first.
//!
//! A table that is missing or cannot be opened is *lost*. A lookup then finds what newer tables have, and fails with
//! the table's error where an older one would decide. There is no order over the tables, and no cursor. Such a
//! partition, and one in which a merge met damage, is *damaged*: tables are added to it and merged among themselves,
//! but those up to the newest damaged one stay as they are.
//!
//! Bytes that the device does not return are damage too, but it may pass ([`Damage::may_pass`]). A table that cannot be
//! opened for that reason is tried again when the store is opened again. A merge is tried again when it is asked for,
//! or when the newer tables are to be merged.

use crate::cache::Cache;
use crate::disk::{self, Disk, Name};
use crate::manifest::Files;
use crate::remix::{self, Remix, RemixCursor, Run, RunEntry, Show};
use crate::table::{self, Table, TableCursor};
use forrest_base::lock;
use forrest_engine::{Error, ErrorKind, Result};
use std::cmp::Ordering;
use std::ops::Deref;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex, OnceLock};

/// A live cursor adds its steps to the partition's count after this many.
const TOLD: u64 = 4096;

/// A cursor over a table that owns what it needs.
pub(crate) type Owned<D> = TableCursor<Arc<Table<D>>>;

/// A range of keys: from its least key up to that of the next partition.
pub(crate) struct Partition<D: Disk> {
    /// Its lower bound: no key of it is less.
    pub(crate) low: Vec<u8>,
    /// From the oldest on, without those that are lost.
    tables: Vec<Arc<Table<D>>>,
    /// Those that are lost, from the oldest on.
    lost: Vec<Lost>,
    /// Set when damage was met.
    damage: OnceLock<Damage>,
    /// Set at the first scan, or earlier.
    known: OnceLock<Known>,
    /// The source of that, until then.
    source: Option<Mutex<Source<D>>>,
    /// Number of steps that cursors took between or within tables, if there are several, of dead entries that they
    /// passed, and of tables that they were placed in.
    walked: Arc<AtomicU64>,
}

/// A table that the manifest names, and that is missing or cannot be opened.
#[derive(Clone)]
pub(crate) struct Lost {
    pub(crate) number: u64,
    /// Number of the partition's other tables that are older.
    pub(crate) older: usize,
    why: Arc<Error>,
}

impl Lost {
    pub(crate) fn new(number: u64, older: usize, why: Error) -> Lost {
        Lost { number, older, why: Arc::new(why) }
    }

    /// The error of what needs the table.
    pub(crate) fn error(&self) -> Error {
        disk::again(&self.why)
    }
}

/// Damage in tables of a partition.
#[derive(Clone)]
pub(crate) struct Damage {
    /// Number of the oldest tables that are never merged: those up to the newest damaged one.
    pub(crate) kept: usize,
    why: Arc<Error>,
}

impl Damage {
    pub(crate) fn new(kept: usize, why: Error) -> Damage {
        Damage { kept, why: Arc::new(why) }
    }

    /// The error of what needs these tables.
    pub(crate) fn error(&self) -> Error {
        disk::again(&self.why)
    }

    /// Whether the device did not return the bytes. A later read may find them.
    fn may_pass(&self) -> bool {
        self.why.kind() == ErrorKind::Io
    }
}

/// The order over the tables.
struct Known {
    /// The order over several tables; `None` for one table.
    remix: Option<Arc<Remix>>,
    stored: Option<Stored>,
}

/// The source of the order over the tables of a partition that was opened.
struct Source<D: Disk> {
    disk: Arc<D>,
    /// Number of the file; 0 if there is none.
    number: u64,
    /// Whether the REMIX gets tags if there is no file.
    tags: bool,
}

/// The file of a REMIX.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Stored {
    pub(crate) number: u64,
    /// Number of tables that it covers, the oldest ones.
    pub(crate) tables: usize,
}

impl<D: Disk, T: Deref<Target = Table<D>>> Run for TableCursor<T> {
    fn len(&self) -> u32 {
        self.table().entries()
    }

    #[inline]
    fn fetch(&self, ordinal: u32) {
        TableCursor::fetch(self, ordinal);
    }

    fn compare(&mut self, ordinal: u32, key: &[u8]) -> Result<Ordering> {
        TableCursor::compare(self, ordinal, key)
    }

    fn key_into(&mut self, ordinal: u32, into: &mut Vec<u8>) -> Result<()> {
        into.clear();
        TableCursor::key_into(self, ordinal, into)
    }

    fn is_tombstone(&mut self, ordinal: u32) -> Result<bool> {
        Ok(self.kind(ordinal)? == table::Kind::Tombstone)
    }
}

/// Cursors over tables, for code that needs runs.
pub(crate) fn runs<D: Disk>(tables: &[Arc<Table<D>>]) -> Vec<Owned<D>> {
    tables.iter().map(|table| TableCursor::walking(table.clone())).collect()
}

/// Number and entries of each table.
pub(crate) fn named<D: Disk>(tables: &[Arc<Table<D>>]) -> Vec<(u64, u32)> {
    tables.iter().map(|table| (table.name().number, table.entries())).collect()
}

/// The order over several tables, with tags or without; `None` for one table. `known` is the order over the
/// first tables. Fails with the error of `check`.
pub(crate) fn order<D: Disk>(
    known: Option<Arc<Remix>>,
    tables: &[Arc<Table<D>>],
    tags: bool,
    check: &dyn Fn() -> Result<()>,
) -> Result<Option<Arc<Remix>>> {
    order_of(known, tags, || interruptible(tables, check))
}

/// The order over tables that are going to be merged, also over one. Fails with the error of `check`.
pub(crate) fn merge_order<D: Disk>(
    tables: &[Arc<Table<D>>],
    check: &dyn Fn() -> Result<()>,
) -> Result<Arc<Remix>> {
    Ok(Arc::new(remix::build(&mut interruptible(tables, check), false)?))
}

/// The same as [`order`] for the runs that `runs` makes.
fn order_of<R: Run>(
    known: Option<Arc<Remix>>,
    tags: bool,
    runs: impl FnOnce() -> Vec<R>,
) -> Result<Option<Arc<Remix>>> {
    let mut runs = runs();
    if runs.len() < 2 {
        return Ok(None);
    }
    let remix = match known {
        Some(known) if known.runs().len() == runs.len() => known,
        Some(known) => Arc::new(remix::rebuild(&known, &mut runs, tags)?),
        None => Arc::new(remix::build(&mut runs, tags)?),
    };
    Ok(Some(remix))
}

/// A run that fails when the work with it is to stop.
struct Interruptible<'s, R> {
    run: R,
    check: &'s dyn Fn() -> Result<()>,
    /// Keys that are read before the next check.
    left: u32,
}

/// Keys that are read or written between two checks whether to go on.
pub(crate) const LOOK: u32 = 1024;

/// [`runs`] that fail with the error of `check`.
fn interruptible<'s, D: Disk>(
    tables: &[Arc<Table<D>>],
    check: &'s dyn Fn() -> Result<()>,
) -> Vec<Interruptible<'s, Owned<D>>> {
    runs(tables).into_iter().map(|run| Interruptible { run, check, left: LOOK }).collect()
}

impl<R: Run> Run for Interruptible<'_, R> {
    fn len(&self) -> u32 {
        self.run.len()
    }

    fn compare(&mut self, ordinal: u32, key: &[u8]) -> Result<Ordering> {
        self.run.compare(ordinal, key)
    }

    fn key_into(&mut self, ordinal: u32, into: &mut Vec<u8>) -> Result<()> {
        self.left -= 1;
        if self.left == 0 {
            self.left = LOOK;
            (self.check)()?;
        }
        self.run.key_into(ordinal, into)
    }

    fn is_tombstone(&mut self, ordinal: u32) -> Result<bool> {
        self.run.is_tombstone(ordinal)
    }
}

impl<D: Disk> Partition<D> {
    /// A partition of tables, the REMIX over them if there are several, and the file that has all or the
    /// beginning of it.
    pub(crate) fn new(
        low: Vec<u8>,
        tables: Vec<Arc<Table<D>>>,
        remix: Option<Arc<Remix>>,
        stored: Option<Stored>,
    ) -> Partition<D> {
        assert_eq!(remix.is_some(), tables.len() > 1, "several tables have a REMIX");
        let known = OnceLock::from(Known { remix, stored });
        let (lost, damage, source) = (Vec::new(), OnceLock::new(), None);
        Partition { low, tables, lost, damage, known, source, walked: Arc::default() }
    }

    /// The partition with other tables after the first ones, which are damaged. Of its REMIX file, if it is still of
    /// the first tables, `remix` is the number.
    pub(crate) fn around(
        &self,
        disk: &Arc<D>,
        tables: Vec<Arc<Table<D>>>,
        damage: Damage,
        remix: u64,
        tags: bool,
    ) -> Partition<D> {
        let source = Some(Mutex::new(Source { disk: disk.clone(), number: remix, tags }));
        let (low, lost) = (self.low.clone(), self.lost.clone());
        let (known, damage) = (OnceLock::new(), OnceLock::from(damage));
        Partition { low, tables, lost, damage, known, source, walked: Arc::default() }
    }

    /// Opens the tables of a partition. Those that are missing or damaged or cannot be read are lost.
    ///
    /// # Errors
    /// `Unsupported` if a table or the REMIX has another version; `OutOfSpace` without a file descriptor.
    pub(crate) fn open(
        disk: &Arc<D>,
        low: Vec<u8>,
        files: &Files,
        cache: &Arc<Cache>,
        tags: bool,
        opened: impl Fn(u64) -> Option<Arc<Table<D>>>,
    ) -> Result<Partition<D>> {
        let (mut tables, mut lost) = (Vec::new(), Vec::new());
        for &number in &files.tables {
            let table = match opened(number) {
                Some(table) => Ok(table),
                None => Table::open_named(disk.clone(), Name::table(number), cache).map(Arc::new),
            };
            match table {
                Ok(table) => tables.push(table),
                Err(error) if matches!(error.kind(), ErrorKind::Corrupt | ErrorKind::Io) => {
                    lost.push(Lost::new(number, tables.len(), error));
                }
                Err(error) => return Err(error),
            }
        }
        if files.remix != 0 {
            // Before anything in the store is changed. The rest is read at the first use.
            match remix::check_version(&**disk, Name::remix(files.remix)) {
                // That use reports it.
                Err(error) if error.kind() == ErrorKind::Io => {}
                checked => checked?,
            }
        }
        let damage = OnceLock::new();
        if let Some(newest) = lost.last() {
            let _ = damage.set(Damage::new(newest.older, newest.error()));
        }
        let source = Some(Mutex::new(Source { disk: disk.clone(), number: files.remix, tags }));
        Ok(Partition { low, tables, lost, damage, known: OnceLock::new(), source, walked: Arc::default() })
    }

    /// The damage that is known of, if there is any.
    pub(crate) fn damage(&self) -> Option<&Damage> {
        self.damage.get()
    }

    /// Whether it has tables that may be merged into one.
    pub(crate) fn is_mergeable(&self) -> bool {
        self.tables.len() > 1 && self.damage().is_none()
    }

    /// Whether a merge has met damage that may be gone by now, so that it may be tried again.
    pub(crate) fn may_recover(&self) -> bool {
        self.lost.is_empty() && self.damage().is_some_and(Damage::may_pass)
    }

    /// The tables that are lost.
    pub(crate) fn lost(&self) -> &[Lost] {
        &self.lost
    }

    /// An error if a table is lost.
    fn check_lost(&self) -> Result<()> {
        self.lost.last().map_or(Ok(()), |lost| Err(lost.error()))
    }

    /// The error of a partition with more tables than can have an order: damage was met, and the store was opened
    /// again since.
    pub(crate) fn too_many(&self) -> Error {
        let what = format!(
            "its range has {} tables because one of them was damaged, too many to be read in order",
            self.tables.len()
        );
        disk::damaged(self.tables[0].name(), 0, what)
    }

    /// Remembers that a merge met damage, and finds out where: in `error` it is only where it was met first.
    pub(crate) fn mark(&self, error: Error) -> &Damage {
        self.damage.get_or_init(|| {
            let is_bad = |table: &Arc<Table<D>>| table.verify().is_err();
            // If every table is as it was written, it is unknown what is wrong.
            let newest = self.tables.iter().rposition(is_bad);
            Damage::new(newest.map_or(self.tables.len(), |newest| newest + 1), error)
        })
    }

    /// The order over the tables. The first caller loads it, while others wait.
    ///
    /// # Errors
    /// `Corrupt` if the REMIX is not as the manifest states, or a table is damaged; `Io`.
    #[inline]
    fn known(&self) -> Result<&Known> {
        match self.known.get() {
            Some(known) => Ok(known),
            None => self.find_out(None),
        }
    }

    #[cold]
    fn find_out(&self, check: Option<&dyn Fn() -> Result<()>>) -> Result<&Known> {
        let source =
            lock(self.source.as_ref().expect("nothing is known of a partition that was opened only"));
        if let Some(known) = self.known.get() {
            return Ok(known);
        }
        self.check_lost()?;
        if self.tables.len() > remix::RUNS_MAX {
            return Err(self.too_many());
        }
        let Source { disk, number, tags } = &*source;
        let first = match number {
            0 => None,
            &number => Some(Arc::new(Remix::read(&**disk, Name::remix(number), &named(&self.tables))?)),
        };
        let stored = first.as_ref().map(|first| Stored { number: *number, tables: first.runs().len() });
        let tags = first.as_ref().map_or(*tags, |first| first.has_tags());
        let remix = match check {
            Some(check) => order(first, &self.tables, tags, check)?,
            None => order_of(first, tags, || runs(&self.tables))?,
        };
        Ok(self.known.get_or_init(|| Known { remix, stored }))
    }

    /// Loads the order ahead of the first use. Fails with the error of `check`.
    pub(crate) fn warm(&self, check: &dyn Fn() -> Result<()>) -> Result<()> {
        if self.known.get().is_none() {
            self.find_out(Some(check))?;
        }
        Ok(())
    }

    /// Checks against the tables: the REMIX in use, and the one in the file, which is read again.
    pub(crate) fn verify_remix(&self, disk: &D) -> Result<()> {
        self.check_lost()?;
        if let Some(remix) = self.remix()? {
            remix.verify(&mut runs(&self.tables))?;
        }
        let Some(Stored { number, tables }) = self.stored()? else { return Ok(()) };
        let (name, tables) = (Name::remix(number), &self.tables[..tables]);
        Remix::read(disk, name, &named(tables))?.verify(&mut runs(tables))
    }

    /// Whether its tables may have keys from `start` up to but not including `end`.
    pub(crate) fn meets(&self, start: &[u8], end: Option<&[u8]>) -> bool {
        let meets =
            |table: &Arc<Table<D>>| table.greatest() >= start && end.is_none_or(|end| table.least() < end);
        // What a lost table has may be anywhere.
        !self.lost.is_empty() || self.tables.iter().any(meets)
    }

    /// From the oldest on, without those that are lost.
    pub(crate) fn tables(&self) -> &[Arc<Table<D>>] {
        &self.tables
    }

    #[inline]
    pub(crate) fn remix(&self) -> Result<Option<&Arc<Remix>>> {
        Ok(self.known()?.remix.as_ref())
    }

    pub(crate) fn stored(&self) -> Result<Option<Stored>> {
        Ok(self.known()?.stored)
    }

    /// Entries of all tables, and those of the tables that the REMIX file covers. `None` if the order over the tables
    /// is not loaded yet, or needs no file.
    pub(crate) fn covered(&self) -> Option<(u64, u64)> {
        let Known { remix, stored } = self.known.get()?;
        let all = remix.as_ref()?.entries();
        // One table is its own index.
        let tables = stored.map_or(1, |stored| stored.tables);
        Some((all, self.tables[..tables].iter().map(|table| u64::from(table.entries())).sum()))
    }

    /// Number of steps that cursors took in several tables and of dead entries that they passed, plus, for each
    /// placement of a cursor, the number of tables.
    pub(crate) fn walked(&self) -> u64 {
        // ORDERING: a statistic.
        self.walked.load(Relaxed)
    }

    /// Restarts the count.
    pub(crate) fn forget_walks(&self) {
        // ORDERING: a statistic.
        self.walked.store(0, Relaxed);
    }

    /// The files, as the manifest names them.
    pub(crate) fn files(&self) -> Files {
        let remix = match (self.known.get(), &self.source) {
            (Some(known), _) => known.stored.map_or(0, |stored| stored.number),
            (None, source) => source.as_ref().map_or(0, |source| lock(source).number),
        };
        let mut tables: Vec<u64> = self.tables.iter().map(|table| table.name().number).collect();
        for (before, lost) in self.lost.iter().enumerate() {
            tables.insert(lost.older + before, lost.number);
        }
        Files { remix, tables }
    }

    /// Entries of the tables that have a value: no fewer than the keys that are there, unless a table is lost.
    pub(crate) fn keys_about(&self) -> u64 {
        self.tables.iter().map(|table| u64::from(table.entries() - table.tombstones())).sum()
    }

    /// Keys that are there.
    pub(crate) fn keys(&self) -> Result<u64> {
        Ok(match self.remix()? {
            Some(remix) => remix.live(),
            None => self.keys_about(),
        })
    }

    /// Entries of all tables, and keys that are there. `None` if the order over the tables is not loaded yet.
    pub(crate) fn entries(&self) -> Option<(u64, u64)> {
        self.known.get()?;
        let all = self.tables.iter().map(|table| u64::from(table.entries())).sum();
        Some((all, self.keys().ok()?))
    }

    /// Bytes of all files but the REMIX.
    pub(crate) fn file_bytes(&self) -> u64 {
        self.tables.iter().map(|table| table.file_bytes()).sum()
    }

    /// The share of these bytes that the keys take which are there; all of them if the order over the tables is not
    /// loaded yet.
    pub(crate) fn live_bytes(&self) -> u64 {
        let bytes = self.file_bytes();
        match self.entries() {
            Some((all, live)) if all > 0 => (u128::from(bytes) * u128::from(live) / u128::from(all)) as u64,
            _ => bytes,
        }
    }

    /// Bytes of memory that hold the locations of keys.
    pub(crate) fn memory_bytes(&self) -> usize {
        let known = self.known.get().and_then(|known| known.remix.as_ref());
        known.map_or(0, |remix| remix.bytes())
            + self.tables.iter().map(|table| table.memory_bytes()).sum::<usize>()
    }

    /// The approximate location of a key, whose memory is being prefetched, so that the caller can do
    /// something else first. Does not wait for the order over the tables.
    #[inline]
    pub(crate) fn find(&self, key: &[u8]) -> Whereabouts {
        Whereabouts(match self.known.get() {
            Some(Known { remix: Some(remix), .. }) => remix.find(key),
            _ => IN_TABLES,
        })
    }

    /// The order over the tables, if the location was found in it.
    #[inline]
    fn remix_of(&self, Whereabouts(at): Whereabouts) -> Option<&Remix> {
        if at == IN_TABLES { None } else { self.known.get()?.remix.as_deref() }
    }

    /// Prefetches the memory that [`get`](Self::get) will touch first for a key, while the caller looks for
    /// other keys.
    pub(crate) fn fetch(&self, at: Whereabouts, key: &[u8]) -> Result<()> {
        match self.remix_of(at) {
            _ if !self.lost.is_empty() => Ok(()),
            Some(remix) => {
                // Assumes that the first candidate is the right one.
                if let Some(entry) = remix.get(at.0, key, |_| Ok(Ordering::Equal))? {
                    TableCursor::walking(&*self.tables[entry.run]).fetch(entry.ordinal);
                }
                Ok(())
            }
            None => self.tables.last().map_or(Ok(()), |table| table.fetch_key(key)),
        }
    }

    /// Passes the value of a key to `see`; `None` if it is not there. The key is searched at the place that
    /// [`find`](Self::find) returned.
    pub(crate) fn get<R>(
        &self,
        at: Whereabouts,
        key: &[u8],
        see: impl FnOnce(&[u8]) -> R,
    ) -> Result<Option<R>> {
        if let Some(remix) = self.remix_of(at) {
            // Most often, the run that was compared last has the value.
            let open = |run: usize| (run, TableCursor::new(&*self.tables[run]));
            let mut asked = None;
            let found = remix.get(at.0, key, |entry| {
                let (_, cursor) = asked.insert(open(entry.run));
                cursor.fetch(entry.ordinal);
                cursor.compare(entry.ordinal, key)
            })?;
            let Some(entry) = found.filter(|entry| !entry.tombstone) else { return Ok(None) };
            let (_, mut cursor) =
                asked.filter(|(run, _)| *run == entry.run).unwrap_or_else(|| open(entry.run));
            return cursor.value_with(entry.ordinal, see).map(Some);
        }
        let from = self.lost.last().map_or(0, |newest| newest.older);
        for table in self.tables[from..].iter().rev() {
            let mut cursor = TableCursor::new(&**table);
            if let Some(ordinal) = cursor.find(key)? {
                let is_there = cursor.kind(ordinal)? == table::Kind::Value;
                return is_there.then(|| cursor.value_with(ordinal, see)).transpose();
            }
        }
        // The key may be in the newest lost table.
        self.check_lost().map(|()| None)
    }

    /// A cursor over the keys that are there, not placed yet.
    pub(crate) fn cursor(&self) -> Result<PartitionCursor<D>> {
        let over = match self.remix()? {
            Some(remix) => Over::Several(RemixCursor::new(remix.clone(), runs(&self.tables), Show::Live)),
            None => Over::One(self.tables.first().cloned().map(TableCursor::walking)),
        };
        let walks = Walks { all: self.walked.clone(), own: 0 };
        Ok(PartitionCursor { over, run: 0, ordinal: 0, is_placed: false, walks })
    }
}

/// The location of a key that must be searched in the tables.
const IN_TABLES: usize = usize::MAX;

/// An approximate location of a key in a partition.
#[derive(Clone, Copy)]
pub(crate) struct Whereabouts(usize);

/// A position in a partition. It owns what it needs.
pub(crate) struct PartitionCursor<D: Disk> {
    over: Over<D>,
    /// The entry at the position. Its key is in the buffer of the run's own cursor.
    run: usize,
    ordinal: u32,
    /// Whether it was placed and has not moved since.
    is_placed: bool,
    walks: Walks,
}

/// Steps of a cursor, added to the count of its partition when the cursor is dropped or placed again.
struct Walks {
    all: Arc<AtomicU64>,
    own: u64,
}

impl Walks {
    fn tell(&mut self) {
        if self.own > 0 {
            // ORDERING: a statistic.
            self.all.fetch_add(std::mem::take(&mut self.own), Relaxed);
        }
    }
}

impl Drop for Walks {
    fn drop(&mut self) {
        self.tell();
    }
}

enum Over<D: Disk> {
    /// One table, or none.
    One(Option<Owned<D>>),
    Several(RemixCursor<Arc<Remix>, Owned<D>>),
}

impl<D: Disk> Drop for PartitionCursor<D> {
    fn drop(&mut self) {
        self.take_passed();
    }
}

impl<D: Disk> PartitionCursor<D> {
    /// Number of tombstones and replaced entries that it moved past since the last call. They count as steps.
    pub(crate) fn take_passed(&mut self) -> u64 {
        let Over::Several(cursor) = &mut self.over else { return 0 };
        let passed = cursor.take_passed();
        self.walks.own += passed;
        passed
    }

    /// The table of the current entry. REQUIRES: the last move found a key.
    #[inline]
    fn table(&mut self) -> &mut Owned<D> {
        match &mut self.over {
            Over::One(run) => run.as_mut().expect("it found a key"),
            Over::Several(cursor) => cursor.of_run(self.run),
        }
    }

    /// The current key. REQUIRES: the last move found one.
    #[inline]
    pub(crate) fn key(&self) -> &[u8] {
        match &self.over {
            Over::One(run) => run.as_ref().expect("it found a key").kept_key(),
            Over::Several(cursor) => cursor.runs()[self.run].kept_key(),
        }
    }

    /// Passes the key to `see`, with access to the value. REQUIRES: the last move found them.
    #[inline]
    pub(crate) fn show<R>(&mut self, see: impl FnOnce(&[u8], Pair<'_, D>) -> R) -> R {
        let ordinal = self.ordinal;
        self.table().with_kept_key(|key, table| see(key, Pair { table, ordinal }))
    }

    pub(crate) fn first(&mut self) -> Result<bool> {
        match &mut self.over {
            Over::One(_) => self.from(0),
            Over::Several(cursor) => {
                cursor.first();
                self.arrive()
            }
        }
    }

    pub(crate) fn last(&mut self) -> Result<bool> {
        match &mut self.over {
            Over::One(run) => {
                let end = run.as_ref().map_or(0, Run::len);
                self.before(end)
            }
            Over::Several(cursor) => {
                cursor.last();
                self.arrive()
            }
        }
    }

    /// Moves to the first key that is not less than `key`.
    pub(crate) fn seek(&mut self, key: &[u8]) -> Result<bool> {
        match &mut self.over {
            Over::One(run) => {
                let at = run.as_mut().map_or(Ok(0), |run| run.lower_bound(key))?;
                self.from(at)
            }
            Over::Several(cursor) => {
                cursor.seek(key)?;
                self.land()
            }
        }
    }

    /// Moves to the last key that is not greater than `key`.
    pub(crate) fn seek_for_prev(&mut self, key: &[u8]) -> Result<bool> {
        match &mut self.over {
            Over::One(run) => {
                let Some(run) = run else { return Ok(false) };
                let at = run.lower_bound(key)?;
                let equal = at < Run::len(run) && Run::compare(run, at, key)?.is_eq();
                self.before(at + u32::from(equal))
            }
            Over::Several(cursor) => {
                cursor.seek_for_prev(key)?;
                self.land()
            }
        }
    }

    #[inline]
    pub(crate) fn next(&mut self) -> Result<bool> {
        match &mut self.over {
            Over::One(_) => self.from(self.ordinal + 1),
            Over::Several(cursor) => {
                if std::mem::take(&mut self.is_placed) {
                    // It walks: prefetch its future places in all other tables at once.
                    cursor.each_run(|run, next| run.fetch(next));
                }
                cursor.next();
                self.arrive()
            }
        }
    }

    #[inline]
    pub(crate) fn prev(&mut self) -> Result<bool> {
        match &mut self.over {
            Over::One(_) => self.before(self.ordinal),
            Over::Several(cursor) => {
                if std::mem::take(&mut self.is_placed) {
                    cursor.each_run(|run, next| run.fetch(next.saturating_sub(1)));
                }
                cursor.prev();
                self.arrive()
            }
        }
    }

    /// Completes a jump of the REMIX, with a prefetch of everything there at once.
    #[inline]
    fn land(&mut self) -> Result<bool> {
        let Over::Several(cursor) = &mut self.over else { return Ok(false) };
        if let Some(RunEntry { run, ordinal, .. }) = cursor.entry() {
            cursor.of_run(run).fetch(ordinal);
        }
        self.is_placed = true;
        if self.walks.own >= TOLD {
            self.walks.tell();
        }
        self.walks.own += cursor.runs().len() as u64;
        self.arrive()
    }

    /// Reads the key at the place of the REMIX; false if there is none.
    #[inline]
    fn arrive(&mut self) -> Result<bool> {
        let Over::Several(cursor) = &mut self.over else { return Ok(false) };
        let Some(RunEntry { run, ordinal, .. }) = cursor.entry() else { return Ok(false) };
        self.walks.own += 1;
        (self.run, self.ordinal) = (run, ordinal);
        cursor.of_run(run).key_at(ordinal)?;
        Ok(true)
    }

    /// The first entry of the one table from `start` on that has a value.
    #[inline]
    fn from(&mut self, start: u32) -> Result<bool> {
        let Over::One(Some(run)) = &mut self.over else { return Ok(false) };
        for ordinal in start..Run::len(run) {
            if run.kind(ordinal)? == table::Kind::Value {
                self.ordinal = ordinal;
                run.key_at(ordinal)?;
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// The last entry of the one table before `end` that has a value.
    #[inline]
    fn before(&mut self, end: u32) -> Result<bool> {
        let Over::One(Some(run)) = &mut self.over else { return Ok(false) };
        for ordinal in (0..end).rev() {
            if run.kind(ordinal)? == table::Kind::Value {
                self.ordinal = ordinal;
                run.key_at(ordinal)?;
                return Ok(true);
            }
        }
        Ok(false)
    }
}

/// The value of a pair in a table, in place.
pub(crate) struct Pair<'c, D: Disk> {
    table: &'c mut Owned<D>,
    ordinal: u32,
}

impl<D: Disk> Pair<'_, D> {
    /// Passes the bytes to `see`.
    #[inline]
    pub(crate) fn with<R>(self, see: impl FnOnce(&[u8]) -> R) -> Result<R> {
        self.table.value_with(self.ordinal, see)
    }
}
