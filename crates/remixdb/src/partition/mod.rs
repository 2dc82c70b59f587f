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
//! If the orders over tables take more memory than they may, those of some partitions stay in their files (order.rs).
//! Such a partition has two layers: the tables that the file covers, and the newer ones (layers.rs).
//!
//! A table that is missing or cannot be opened is *lost*. A lookup then finds what newer tables have, and fails with
//! the table's error where an older one would decide. There is no order over the tables, and no cursor. Such a
//! partition, and one in which a merge met damage, is *damaged*: tables are added to it and merged among themselves,
//! but those up to the newest damaged one stay as they are.
//!
//! Bytes that the device does not return are damage too, but it may pass ([`Damage::may_pass`]). A table that cannot be
//! opened for that reason is tried again when the store is opened again. A merge is tried again when it is asked for,
//! or when the newer tables are to be merged.

mod cursor;
mod layers;
mod order;

pub(crate) use cursor::{Owned, Pair, Visit, runs};
pub(crate) use layers::PartitionCursor;
pub(crate) use order::{Known, LOOK, Shared, Stored, entries_of, merge_order, named, order};

use crate::cached;
use crate::disk::{self, Name, Sealed};
use crate::manifest::Files;
use crate::operands::{self, Operated, base_ms};
use crate::remix::{self, Remix, RunEntry, Show, portion};
use crate::see::See;
use crate::table::{Expiries, Reader, Table, TableCursor};
use crate::wrapped::Pointer;
use cursor::LayerCursor;
use forrest_base::lock;
use forrest_engine::{Compression, Error, ErrorKind, Result};
use std::cmp::Ordering;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex, OnceLock};

/// A range of keys: from its least key up to that of the next partition.
pub(crate) struct Partition {
    /// Its lower bound: no key of it is less.
    pub(crate) low: Vec<u8>,
    /// From the oldest on, without those that are lost.
    tables: Vec<Arc<Table>>,
    /// Those that are lost, from the oldest on.
    lost: Vec<Lost>,
    /// Whether a table has values that expire.
    may_expire: bool,
    /// Set when damage was met.
    damage: OnceLock<Damage>,
    /// Set at the first scan, or earlier.
    known: OnceLock<Known>,
    /// Keys of the older layer that the newer one replaces or deletes, about. Set when it is asked for.
    replaced: OnceLock<u64>,
    /// The source of that, until then.
    source: Option<Source>,
    /// Number of steps that cursors took between or within tables, if there are several, of dead entries that they
    /// passed, and of tables that they were placed in, and for each page that the cache did not have as many steps as
    /// reading it takes.
    walked: Arc<AtomicU64>,
    is_file_bad: AtomicBool,
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

/// The source of the order over the tables of a partition that was opened.
struct Source {
    shared: Arc<Shared>,
    /// Number of the REMIX file; 0 if there is none.
    number: u64,
    /// Held by the thread that finds out.
    finding: Mutex<()>,
}

impl Source {
    fn new(shared: &Arc<Shared>, number: u64) -> Source {
        Source { shared: shared.clone(), number, finding: Mutex::default() }
    }
}

impl Partition {
    /// A partition of tables, and what is known of their order.
    pub(crate) fn new(low: Vec<u8>, tables: Vec<Arc<Table>>, known: Known) -> Partition {
        let newer = tables.len() - known.base_tables();
        assert_eq!(known.remix.is_some(), newer > 1, "several tables have a REMIX");
        Partition { known: OnceLock::from(known), ..Partition::unknown(low, tables, Vec::new(), None) }
    }

    /// A partition of tables, and of those that are lost. The order over the tables is found out from the source.
    fn unknown(low: Vec<u8>, tables: Vec<Arc<Table>>, lost: Vec<Lost>, source: Option<Source>) -> Partition {
        let (damage, known, replaced) = (OnceLock::new(), OnceLock::new(), OnceLock::new());
        let (walked, is_file_bad) = (Arc::default(), AtomicBool::new(false));
        let may_expire = tables.iter().any(|table| table.may_expire());
        Partition { low, tables, lost, may_expire, damage, known, replaced, source, walked, is_file_bad }
    }

    /// The same in place of another partition, most of whose tables it has: what scans have cost counts on.
    pub(crate) fn in_place_of(self, old: &Partition) -> Partition {
        Partition { walked: old.walked.clone(), ..self }
    }

    /// The partition with other tables after the first ones, which are damaged. Of its REMIX file, if it is still of
    /// the first tables, `remix` is the number.
    pub(crate) fn around(
        &self,
        shared: &Arc<Shared>,
        tables: Vec<Arc<Table>>,
        damage: Damage,
        remix: u64,
    ) -> Partition {
        let source = Some(Source::new(shared, remix));
        let others = Partition::unknown(self.low.clone(), tables, self.lost.clone(), source);
        Partition { damage: OnceLock::from(damage), ..others }
    }

    /// Opens the tables of a partition. Those that are missing or damaged or cannot be read are lost.
    ///
    /// # Errors
    /// `Unsupported` if a table or the REMIX has another version; `OutOfSpace` without a file descriptor.
    pub(crate) fn open(
        shared: &Arc<Shared>,
        low: Vec<u8>,
        files: &Files,
        opened: impl Fn(u64) -> Option<Arc<Table>>,
    ) -> Result<Partition> {
        let Shared { disk, cache, values, .. } = &**shared;
        let (mut tables, mut lost) = (Vec::new(), Vec::new());
        for &number in &files.tables {
            let table = match opened(number) {
                Some(table) => Ok(table),
                None => Table::open_named(disk.clone(), Name::table(number), cache)
                    .map(|table| Arc::new(table.with_values(values))),
            };
            match table {
                Ok(table) => tables.push(table),
                Err(error) if disk::is_unreadable(&error) => {
                    lost.push(Lost::new(number, tables.len(), error));
                }
                Err(error) => return Err(error),
            }
        }
        if files.remix != 0 {
            // Before anything in the store is changed. The rest is read at the first use.
            match remix::check_version(disk, Name::remix(files.remix)) {
                // That use reports it.
                Err(error) if error.kind() == ErrorKind::Io => {}
                checked => checked?,
            }
        }
        let damage = lost.last().map(|newest| Damage::new(newest.older, newest.error()));
        let source = Some(Source::new(shared, files.remix));
        let damage = damage.map_or_else(OnceLock::new, OnceLock::from);
        Ok(Partition { damage, ..Partition::unknown(low, tables, lost, source) })
    }

    /// The damage that is known of, if there is any.
    pub(crate) fn damage(&self) -> Option<&Damage> {
        self.damage.get()
    }

    /// Whether it has tables that may be merged into one.
    pub(crate) fn is_mergeable(&self) -> bool {
        self.tables.len() > 1 && self.damage().is_none()
    }

    /// Whether a table that can be read is not compressed in this way, and would be if it were written again.
    pub(crate) fn is_packed_otherwise(&self, method: Compression) -> bool {
        let is_otherwise = |table: &Arc<Table>| table.is_packed_otherwise(method);
        self.damage().is_none() && self.lost.is_empty() && self.tables.iter().any(is_otherwise)
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
            let is_bad = |table: &Arc<Table>| table.verify().is_err();
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
        cached::check()?;
        let source = self.source.as_ref().expect("nothing is known of a partition that was opened only");
        let _finding = lock(&source.finding);
        if let Some(known) = self.known.get() {
            return Ok(known);
        }
        self.check_lost()?;
        if self.tables.len() > remix::RUNS_MAX {
            return Err(self.too_many());
        }
        let known = self.read_order(source, check.unwrap_or(&|| Ok(())))?;
        Ok(self.known.get_or_init(|| known))
    }

    fn read_order(&self, source: &Source, check: &dyn Fn() -> Result<()>) -> Result<Known> {
        let Source { shared, number, .. } = source;
        let Shared { disk, cache, memory, tags, .. } = &**shared;
        if *number == 0 {
            let remix = order(None, &self.tables, *tags, check)?;
            return Ok(Known { base: None, remix, stored: None });
        }
        let (name, tables) = (Name::remix(*number), named(&self.tables));
        let stored = |tables| Some(Stored { number: *number, tables });
        if memory.has_index_room(order::bytes_of(&self.tables)) {
            let share = order::share_of(&self.tables);
            let first = Arc::new(Remix::read(disk, name, &tables)?.counted(share));
            let (stored, tags) = (stored(first.runs().len()), first.has_tags());
            let remix = order(Some(first), &self.tables, tags, check)?;
            return Ok(Known { base: None, remix, stored });
        }
        let base = Remix::open(disk, name, &tables, cache)?.counted(cache.indexes().take(0));
        let covered = base.runs().len();
        let remix = order(None, &self.tables[covered..], base.has_tags(), check)?;
        Ok(Known { base: Some(Arc::new(base)), remix, stored: stored(covered) })
    }

    /// Loads the order ahead of the first use. Fails with the error of `check`.
    pub(crate) fn warm(&self, check: &dyn Fn() -> Result<()>) -> Result<()> {
        if self.known.get().is_none() {
            self.find_out(Some(check))?;
        }
        Ok(())
    }

    /// Checks against the tables: the REMIX in use, and the one in the file, which is read again.
    pub(crate) fn verify_remix(&self, disk: &Sealed) -> Result<()> {
        self.check_lost()?;
        let Known { base, remix, stored } = self.known()?;
        let (first, newer) = self.tables.split_at(self.known()?.base_tables());
        for (remix, tables) in [(base, first), (remix, newer)] {
            remix.as_ref().map_or(Ok(()), |remix| remix.verify(&mut runs(tables)))?;
        }
        let Some(Stored { number, tables }) = *stored else { return Ok(()) };
        let (name, tables) = (Name::remix(number), &self.tables[..tables]);
        Remix::read(disk, name, &named(tables))?.verify(&mut runs(tables))
    }

    /// Whether its tables may have keys from `start` up to but not including `end`.
    pub(crate) fn meets(&self, start: &[u8], end: Option<&[u8]>) -> bool {
        let meets =
            |table: &Arc<Table>| table.greatest() >= start && end.is_none_or(|end| table.least() < end);
        // What a lost table has may be anywhere.
        !self.lost.is_empty() || self.tables.iter().any(meets)
    }

    /// From the oldest on, without those that are lost.
    pub(crate) fn tables(&self) -> &[Arc<Table>] {
        &self.tables
    }

    /// What is known of their order, which is found out first.
    pub(crate) fn order(&self) -> Result<&Known> {
        self.known()
    }

    /// Entries of all tables, and those of the tables that the REMIX file covers. `None` if the order over the tables
    /// is not loaded yet, or needs no file.
    pub(crate) fn covered(&self) -> Option<(u64, u64)> {
        let known = self.known.get().filter(|_| self.tables.len() > 1)?;
        if self.is_file_bad() {
            return Some((entries_of(&self.tables), 0));
        }
        // One table is its own index.
        let covered = known.stored.map_or(1, |stored| stored.tables);
        Some((entries_of(&self.tables), entries_of(&self.tables[..covered])))
    }

    /// Whether a lookup has met damage in the file of the order.
    pub(crate) fn is_file_bad(&self) -> bool {
        // ORDERING: it stands for itself.
        self.is_file_bad.load(Relaxed)
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
            (None, source) => source.as_ref().map_or(0, |source| source.number),
        };
        let mut tables: Vec<u64> = self.tables.iter().map(|table| table.name().number).collect();
        for (before, lost) in self.lost.iter().enumerate() {
            tables.insert(lost.older + before, lost.number);
        }
        Files { remix, tables }
    }

    /// Entries of the tables that have a value: no fewer than the keys that are there, unless a table is lost.
    pub(crate) fn keys_about(&self) -> u64 {
        values_of(&self.tables)
    }

    /// Keys that are there. If it has two layers, those that newer tables replace or delete count too.
    pub(crate) fn keys(&self) -> Result<u64> {
        let known = self.known()?;
        let newer = match &known.remix {
            Some(remix) => remix.live(),
            None => values_of(&self.tables[known.base_tables()..]),
        };
        Ok(newer + known.base.as_ref().map_or(0, |base| base.live()))
    }

    /// Entries of all tables, and keys that are there. If it has two layers, the keys are an estimate, for which the
    /// first call reads some pages. `None` if the order over the tables is not loaded yet, or those cannot be read.
    pub(crate) fn entries(&self) -> Option<(u64, u64)> {
        let replaced = self.replaced(self.known.get()?)?;
        Some((entries_of(&self.tables), self.keys().ok()?.saturating_sub(replaced)))
    }

    /// Keys of the older layer that the newer one replaces or deletes, about. The first call reads some pages; `None`
    /// if they cannot be read.
    fn replaced(&self, known: &Known) -> Option<u64> {
        match (&known.base, self.replaced.get()) {
            (None, _) => Some(0),
            (Some(_), Some(&replaced)) => Some(replaced),
            (Some(base), None) => {
                let replaced = self.replaced_of(base, known).ok()?;
                Some(*self.replaced.get_or_init(|| replaced))
            }
        }
    }

    /// Keys in the order `base` that newer tables replace or delete, estimated from a sample.
    fn replaced_of(&self, base: &Remix, known: &Known) -> Result<u64> {
        let (first, newer) = self.tables.split_at(base.runs().len());
        let (entries, values) = (entries_of(newer), values_of(newer));
        let step = entries.div_ceil(SAMPLE).max(1);
        let (mut at, mut seen, mut replaced, mut key) = (0, 0_u64, 0_u64, Vec::new());
        for table in newer {
            let mut cursor = TableCursor::walking(&**table);
            while at < u64::from(table.entries()) {
                key.clear();
                cursor.key_into(at as u32, &mut key)?;
                let found = newest(base, base.find(&key), first, &key)?;
                (at, seen) = (at + step, seen + 1);
                replaced += u64::from(found.is_some_and(|(_, entry)| !entry.tombstone));
            }
            at -= u64::from(table.entries());
        }
        // Of several entries with one key, one replaces.
        let keys = match &known.remix {
            Some(remix) if values > 0 => portion(entries, remix.live(), values),
            _ => entries,
        };
        Ok(portion(keys, replaced, seen.max(1)))
    }

    /// Whether the cache has most of what its tables have.
    pub(crate) fn is_cached(&self) -> bool {
        let each = self.tables.iter().map(|table| table.pages_in_cache());
        let (pages, kept) = each.fold((0, 0), |sum, one| (sum.0 + one.0, sum.1 + one.1));
        pages > 0 && kept * 8 >= pages * 7
    }

    /// Bytes of all files but the REMIX.
    pub(crate) fn file_bytes(&self) -> u64 {
        self.tables.iter().map(|table| table.file_bytes()).sum()
    }

    /// Bytes of the values of all tables that are in logs.
    pub(crate) fn large_bytes(&self) -> u64 {
        large_of(&self.tables)
    }

    /// Those of the keys that are there, about; all of them if that is not known.
    pub(crate) fn live_large_bytes(&self) -> u64 {
        let all = self.large_bytes();
        match self.known.get() {
            Some(known) if all > 0 && self.lost.is_empty() => self.live_large_of(known).unwrap_or(all),
            _ => all,
        }
    }

    fn live_large_of(&self, known: &Known) -> Option<u64> {
        let (first, newer) = self.tables.split_at(known.base_tables());
        let live = |remix: &Option<Arc<Remix>>, tables: &[Arc<Table>]| {
            let all = large_of(tables);
            remix.as_ref().map_or(all, |remix| remix.live_large(all))
        };
        let keys = known.base.as_ref().map_or(0, |base| base.live());
        let left = keys.saturating_sub(self.replaced(known)?);
        Some(portion(live(&known.base, first), left, keys) + live(&known.remix, newer))
    }

    /// Bytes that these files would have if they were not compressed.
    pub(crate) fn plain_bytes(&self) -> u64 {
        self.tables.iter().map(|table| table.plain_bytes()).sum()
    }

    /// The share of the bytes of all files that the keys take which are there; all of them if the order over the tables
    /// is not loaded yet.
    pub(crate) fn live_bytes(&self) -> u64 {
        let bytes = self.file_bytes();
        match self.entries() {
            Some((all, live)) => portion(bytes, live, all),
            _ => bytes,
        }
    }

    /// Bytes of memory that hold the locations of keys.
    pub(crate) fn memory_bytes(&self) -> usize {
        self.order_bytes() + self.tables.iter().map(|table| table.memory_bytes()).sum::<usize>()
    }

    /// Whether it has several tables, and the order over all of them is in memory.
    pub(crate) fn is_order_in_memory(&self) -> bool {
        self.known.get().is_some_and(|known| known.base.is_none() && known.remix.is_some())
    }

    /// Whether the order over some of the tables stays in its file.
    pub(crate) fn is_order_in_file(&self) -> bool {
        self.known.get().is_some_and(|known| known.base.is_some())
    }

    /// Those of the order over the tables.
    pub(crate) fn order_bytes(&self) -> usize {
        self.known.get().map_or(0, Known::bytes)
    }

    /// The approximate location of a key, whose memory is being prefetched, so that the caller can do
    /// something else first. Does not wait for the order over the tables.
    #[inline]
    pub(crate) fn find(&self, key: &[u8]) -> Whereabouts {
        if let Some(remix) = self.whole_order() {
            return Whereabouts::Segment(remix.find(key));
        }
        match &self.tables[..] {
            [table] if self.lost.is_empty() => {
                table.find_block(key).map_or(Whereabouts::Tables, Whereabouts::Block)
            }
            _ => Whereabouts::Tables,
        }
    }

    /// The order over all tables, if it is in memory.
    #[inline]
    fn whole_order(&self) -> Option<&Remix> {
        match self.known.get() {
            Some(Known { remix: Some(remix), base: None, .. }) => Some(remix),
            _ => None,
        }
    }

    /// Prefetches the memory that [`get`](Self::get) will touch first for a key, while the caller looks for
    /// other keys.
    pub(crate) fn fetch(&self, at: Whereabouts, key: &[u8]) -> Result<()> {
        match (at, self.whole_order()) {
            _ if !self.lost.is_empty() => Ok(()),
            (Whereabouts::Segment(at), Some(remix)) => {
                // Assumes that the first candidate is the right one.
                if let Some(entry) = remix.get(at, key, |_| Ok(Ordering::Equal))? {
                    TableCursor::walking(&*self.tables[entry.run]).fetch(entry.ordinal);
                }
                Ok(())
            }
            _ => self.tables.last().map_or(Ok(()), |table| table.fetch_key(key)),
        }
    }

    /// Passes the value that a key has for a reader to `see`; `None` if it is not there. The key is searched at the
    /// place that [`find`](Self::find) returned.
    #[inline]
    pub(crate) fn get<R>(
        &self,
        at: Whereabouts,
        key: &[u8],
        reader: impl Reader,
        see: impl See<R>,
    ) -> Result<Option<R>> {
        value_of(self.newest(at, key)?, reader, see)
    }

    /// Adds the entries with operands of a key, from the newest table to the first value or tombstone. Returns that
    /// value, if it is there at a time. Each table is searched by itself.
    #[cold]
    pub(crate) fn gather(
        &self,
        key: &[u8],
        now_ms: impl Fn() -> u64,
        into: &mut Vec<Vec<u8>>,
    ) -> Result<Option<Vec<u8>>> {
        let from = self.lost.last().map_or(0, |newest| newest.older);
        match gather(&self.tables[from..], key, now_ms, into)? {
            Some(base) => Ok(base),
            // It may be in the newest lost table.
            None => self.check_lost().map(|()| None),
        }
    }

    /// The value of a key whose newest entry has operands.
    #[cold]
    pub(crate) fn gathered(&self, operated: &Operated, space: u32, key: &[u8]) -> Result<Vec<u8>> {
        let mut entries = Vec::new();
        // Where there are operands, nothing expires.
        let base = self.gather(key, || u64::MAX, &mut entries)?;
        operands::applied(&*operated.get(space)?, key, base.as_deref(), &entries)
    }

    /// Whether some entries have operands of merges.
    pub(crate) fn has_operands(&self) -> bool {
        self.tables.iter().any(|table| table.has_operands())
    }

    /// Whether a merge may store an operand for one of its keys: none of its values expires, is in a log, or was found
    /// to be damaged.
    pub(crate) fn takes_operands(&self) -> bool {
        !self.may_expire && self.damage().is_none() && self.large_bytes() == 0
    }

    /// When the value expires that a key has at a time, in milliseconds since 1970; `Some(None)` if it does not, and
    /// `None` if the key is not there.
    pub(crate) fn expires_ms(&self, key: &[u8], now_ms: u64) -> Result<Option<Option<u64>>> {
        let Some((mut cursor, entry)) = self.newest(self.find(key), key)? else { return Ok(None) };
        if entry.tombstone {
            return Ok(None);
        }
        let expires_ms = cursor.expires_ms(entry.ordinal)?;
        Ok(expires_ms.is_none_or(|expires_ms| expires_ms > now_ms).then_some(expires_ms))
    }

    /// Where the value of a key is, if that is in a log, and when it expires.
    pub(crate) fn pointer(&self, key: &[u8]) -> Result<Option<(Pointer, Option<u64>)>> {
        match self.newest(self.find(key), key)? {
            Some((mut cursor, entry)) if !entry.tombstone => cursor.pointer(entry.ordinal),
            _ => Ok(None),
        }
    }

    /// Reads all values that are in logs, of the keys that are there.
    pub(crate) fn verify_values(&self) -> Result<()> {
        if self.large_bytes() == 0 {
            return Ok(());
        }
        let mut cursor = self.cursor(false, 0)?;
        let mut is_there = cursor.first()?;
        while is_there {
            cursor.show(|_, value| value.verify())?;
            is_there = cursor.next()?;
        }
        Ok(())
    }

    /// The newest version of a key.
    #[inline(always)]
    fn newest(&self, at: Whereabouts, key: &[u8]) -> Result<Option<At<'_>>> {
        match (at, self.whole_order(), &self.tables[..]) {
            (Whereabouts::Segment(at), Some(remix), tables) => return newest(remix, at, tables, key),
            (Whereabouts::Block(number), _, [table]) => {
                let mut cursor = TableCursor::new(&**table);
                let found = cursor.find_tagged(number, key)?;
                return found.map(|ordinal| entry_at(cursor, ordinal)).transpose();
            }
            _ => {}
        }
        self.newest_otherwise(key)
    }

    fn newest_otherwise(&self, key: &[u8]) -> Result<Option<At<'_>>> {
        if let Some(Known { base: Some(base), remix, .. }) = self.known.get() {
            match self.newest_in_layers(base, remix.as_deref(), key) {
                // If the file of the order is damaged, the tables still have all.
                // ORDERING: it stands for itself.
                Err(error) if disk::is_damage(&error) => self.is_file_bad.store(true, Relaxed),
                found => return found,
            }
        }
        let from = self.lost.last().map_or(0, |newest| newest.older);
        for table in self.tables[from..].iter().rev() {
            if let Some(found) = entry_of(table, key)? {
                return Ok(Some(found));
            }
        }
        // The key may be in the newest lost table.
        self.check_lost().map(|()| None)
    }

    /// The newest version of a key, where `base` is the order over the first tables, and `remix` that over the newer
    /// ones.
    #[cold]
    fn newest_in_layers(&self, base: &Remix, remix: Option<&Remix>, key: &[u8]) -> Result<Option<At<'_>>> {
        let (first, newer) = self.tables.split_at(base.runs().len());
        let found = match (remix, newer.first()) {
            (Some(remix), _) => newest(remix, remix.find(key), newer, key)?,
            (None, Some(table)) => entry_of(table, key)?,
            (None, None) => None,
        };
        match found {
            None => newest(base, base.find(key), first, key),
            found => Ok(found),
        }
    }

    /// Requests the pages with which a walk of `count` keys from a key on begins. A hint: errors are those of the walk.
    pub(crate) fn fetch_walk(&self, key: &[u8], count: usize, keys_only: bool) {
        let Ok(known) = self.known() else { return };
        let (first, newer) = self.tables.split_at(known.base_tables());
        for (remix, tables) in [(&known.base, first), (&known.remix, newer)] {
            let fetch = |entry: RunEntry| tables[entry.run].fetch(entry.ordinal, true, keys_only);
            let _hint = match (remix, tables) {
                (Some(remix), _) => remix.near(key, count, fetch),
                (None, [table]) => table.fetch_walk(key, count, keys_only),
                (None, _) => Ok(()),
            };
        }
    }

    /// Keys from `from` up to `to`, about, and the bytes of the files that they take. `None` is the end of the
    /// partition.
    pub(crate) fn approximate(&self, from: Option<&[u8]>, to: Option<&[u8]>) -> Result<(u64, u64)> {
        if from.is_none() && to.is_none() {
            let keys = self.entries().map_or_else(|| self.keys_about(), |(_, live)| live);
            return Ok((keys, self.file_bytes() + self.large_bytes()));
        }
        let first = from.map_or_else(|| Ok(vec![0; self.tables.len()]), |key| self.ranks(key))?;
        let ends = || Ok(self.tables.iter().map(|table| table.entries()).collect());
        let ends = to.map_or_else(ends, |key| self.ranks(key))?;
        let (mut entries, mut bytes) = (0, 0);
        for ((table, first), end) in self.tables.iter().zip(first).zip(ends) {
            entries += u64::from(end.saturating_sub(first));
            bytes += TableCursor::new(&**table).bytes_between(first, end)?;
        }
        let (all, live) = self.entries().unwrap_or((entries_of(&self.tables), self.keys_about()));
        Ok((portion(entries, live, all), bytes))
    }

    /// The number of keys from `from` up to `to` that are there. `None` is the end of the partition. It reads no entry
    /// between the two. `None` if only a walk can tell: if values may expire, keys may have operands, or it has two
    /// layers, and if something cannot be read, which the walk reports.
    pub(crate) fn count(&self, from: Option<&[u8]>, to: Option<&[u8]>) -> Option<u64> {
        if self.may_expire() || self.has_operands() || self.damage().is_some() {
            return None;
        }
        let known = self.known().ok()?;
        let counted = match (known.base.as_deref(), known.remix.as_deref(), &self.tables[..]) {
            (Some(remix), None, tables) | (None, Some(remix), tables)
                if remix.runs().len() == tables.len() =>
            {
                remix.count(&mut runs(tables), from, to)
            }
            (None, None, []) => Ok(0),
            (None, None, [table]) if table.tombstones() == 0 => {
                let mut cursor = TableCursor::new(&**table);
                let mut rank = |key: Option<&[u8]>, end| key.map_or(Ok(end), |key| cursor.lower_bound(key));
                rank(from, 0).and_then(|from| Ok(u64::from(rank(to, table.entries())?.saturating_sub(from))))
            }
            _ => return None,
        };
        counted.ok()
    }

    /// The number of entries of each table whose keys are less than `key`.
    fn ranks(&self, key: &[u8]) -> Result<Vec<u32>> {
        let known = self.known()?;
        let (first, newer) = self.tables.split_at(known.base_tables());
        let mut ranks = Vec::with_capacity(self.tables.len());
        for (remix, tables) in [(&known.base, first), (&known.remix, newer)] {
            match remix {
                Some(remix) => ranks.extend(remix.ranks(&mut runs(tables), key)?),
                None => {
                    for table in tables {
                        ranks.push(TableCursor::new(&**table).lower_bound(key)?);
                    }
                }
            }
        }
        Ok(ranks)
    }

    /// Whether a value has expired.
    pub(crate) fn has_expired(&self, now_ms: u64) -> bool {
        self.expiries().any(|some| some.first_ms <= now_ms)
    }

    /// Whether a value may have expired after a time, up to a later one.
    pub(crate) fn expires_between(&self, from_ms: u64, to_ms: u64) -> bool {
        from_ms < to_ms && self.expiries().any(|some| some.first_ms <= to_ms && some.last_ms > from_ms)
    }

    /// The expiries of each table that has any.
    pub(crate) fn expiries(&self) -> impl Iterator<Item = Expiries> {
        self.tables.iter().filter_map(|table| table.expiries())
    }

    /// Whether a table has values that expire.
    pub(crate) fn may_expire(&self) -> bool {
        self.may_expire
    }

    /// A cursor over the keys that are there at a time, not placed yet. With `keys_only`, it announces no values to the
    /// device.
    pub(crate) fn cursor(&self, keys_only: bool, now_ms: u64) -> Result<PartitionCursor> {
        let known = self.known()?;
        let (first, newer) = self.tables.split_at(known.base_tables());
        let layer = |remix: &Option<Arc<Remix>>, tables, show| {
            LayerCursor::new(remix.as_ref(), tables, show, keys_only, now_ms, &self.walked)
        };
        Ok(match (first, newer) {
            ([], newer) => PartitionCursor::one(layer(&known.remix, newer, Show::Live)),
            (first, []) => PartitionCursor::one(layer(&known.base, first, Show::Live)),
            (first, newer) => {
                let newer = layer(&known.remix, newer, Show::Tombstones);
                PartitionCursor::two(newer, layer(&known.base, first, Show::Live))
            }
        })
    }
}

/// Number of entries of newer tables that are looked up in the older ones, to estimate how many of those are dead.
const SAMPLE: u64 = 64;

/// An entry, and a cursor of its table.
type At<'t> = (TableCursor<&'t Table>, RunEntry);

/// The newest version of a key in tables, and the table's cursor. The key is searched at the place that the REMIX's
/// `find` returned.
#[inline(always)]
fn newest<'t>(remix: &Remix, at: usize, tables: &'t [Arc<Table>], key: &[u8]) -> Result<Option<At<'t>>> {
    // Most often, the run that was compared last has the value.
    let open = |run: usize| (run, TableCursor::new(&*tables[run]));
    let mut asked = None;
    let found = remix.get(at, key, |entry| {
        let (_, cursor) = asked.insert(open(entry.run));
        cursor.fetch(entry.ordinal);
        cursor.compare(entry.ordinal, key)
    })?;
    let Some(entry) = found else { return Ok(None) };
    let asked = asked.filter(|(run, _)| *run == entry.run);
    let (_, cursor) = asked.unwrap_or_else(|| open(entry.run));
    Ok(Some((cursor, entry)))
}

/// The entry of a key in a table, which is found by the table's index.
fn entry_of<'t>(table: &'t Arc<Table>, key: &[u8]) -> Result<Option<At<'t>>> {
    let mut cursor = TableCursor::new(&**table);
    let found = cursor.find(key)?;
    found.map(|ordinal| entry_at(cursor, ordinal)).transpose()
}

/// The same as [`Partition::gather`] for some tables; `Some(None)` if the key is not there, and `None` if none of them
/// has a value or a tombstone.
#[cold]
pub(crate) fn gather(
    tables: &[Arc<Table>],
    key: &[u8],
    now_ms: impl Fn() -> u64,
    into: &mut Vec<Vec<u8>>,
) -> Result<Option<Option<Vec<u8>>>> {
    for table in tables.iter().rev() {
        let Some((mut cursor, entry)) = entry_of(table, key)? else { continue };
        if entry.tombstone {
            return Ok(Some(None));
        }
        match cursor.operands(entry.ordinal)? {
            Some(operands) => into.push(operands),
            None => {
                let at_ms = base_ms(into, &now_ms);
                return cursor.seen(entry.ordinal, || at_ms, <[u8]>::to_vec).map(Some);
            }
        }
    }
    Ok(None)
}

/// The entry at an ordinal of a table, and the table's cursor.
#[inline]
fn entry_at(mut cursor: TableCursor<&Table>, ordinal: u32) -> Result<At<'_>> {
    let tombstone = cursor.is_deleted(ordinal)?;
    Ok((cursor, RunEntry { run: 0, ordinal, tombstone }))
}

/// Passes the value of an entry to `see`; `None` if there is no entry, or it deletes its key.
#[inline(always)]
fn value_of<R>(found: Option<At<'_>>, reader: impl Reader, see: impl See<R>) -> Result<Option<R>> {
    match found {
        Some((mut cursor, entry)) if !entry.tombstone => cursor.seen(entry.ordinal, reader, see),
        _ => Ok(None),
    }
}

/// Bytes of their values that are in logs.
fn large_of(tables: &[Arc<Table>]) -> u64 {
    tables.iter().map(|table| table.large_bytes()).sum()
}

/// Those that have a value.
fn values_of(tables: &[Arc<Table>]) -> u64 {
    tables.iter().map(|table| u64::from(table.entries() - table.tombstones())).sum()
}

/// An approximate location of a key in a partition.
#[derive(Clone, Copy)]
pub(crate) enum Whereabouts {
    /// The segment of the order over all tables.
    Segment(usize),
    /// The block of the only table, whose tags are in memory.
    Block(u32),
    /// It must be searched in the tables.
    Tables,
}
