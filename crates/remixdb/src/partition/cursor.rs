//! [`LayerCursor`]: a moving place in tables, one through its own index, several through a [`Remix`].

use crate::remix::{Remix, RemixCursor, Run, RunEntry, Show};
use crate::see::See;
use crate::table::{SharedReader, Table, TableCursor, block_after, block_of};
use forrest_engine::Result;
use std::cell::Cell;
use std::cmp::Ordering;
use std::ops::{ControlFlow, Deref};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// A live cursor adds its steps to the partition's count after this many.
const TOLD: u64 = 4096;
/// A page that the cache does not have counts as this many steps. Reading it at random takes as long as merging ten
/// entries, each of which takes as long as three steps (compact/plan.rs).
const READ_STEPS: u64 = 32;

/// The flags of a cursor.
const PLACED: u8 = 1;
const MIXED: u8 = 2;

/// A cursor over a table that owns what it needs.
pub(crate) type Owned = TableCursor<Arc<Table>>;

impl<T: Deref<Target = Table>> Run for TableCursor<T> {
    fn len(&self) -> u32 {
        self.table().entries()
    }

    #[inline]
    fn fetch(&self, ordinal: u32) {
        TableCursor::fetch(self, ordinal);
    }

    #[inline]
    fn fetch_place(&self, ordinal: u32) {
        TableCursor::fetch_place(self, ordinal);
    }

    fn compare(&mut self, ordinal: u32, key: &[u8]) -> Result<Ordering> {
        TableCursor::compare(self, ordinal, key)
    }

    fn key_into(&mut self, ordinal: u32, into: &mut Vec<u8>) -> Result<()> {
        into.clear();
        TableCursor::key_into(self, ordinal, into)
    }

    fn is_tombstone(&mut self, ordinal: u32) -> Result<bool> {
        self.is_deleted(ordinal)
    }

    fn has_large(&self) -> bool {
        self.table().large_bytes() > 0
    }

    fn large_bytes(&mut self, ordinal: u32) -> Result<u64> {
        self.large_bytes_about(ordinal)
    }
}

/// Cursors over tables, for code that needs runs.
pub(crate) fn runs(tables: &[Arc<Table>]) -> Vec<Owned> {
    tables.iter().map(|table| TableCursor::walking(table.clone())).collect()
}

/// What the pairs of a walk are passed to.
pub(crate) trait Visit {
    /// A pair whose value is at hand.
    fn here(&mut self, key: &[u8], value: &[u8]) -> Result<ControlFlow<()>>;

    /// A pair whose value is yet to be looked up.
    fn pair(&mut self, key: &[u8], pair: Pair<'_>) -> Result<ControlFlow<()>>;
}

/// Passes the pairs of a table's entries from `at` up to `end`, which all have a value, to `see`, until it breaks. `at`
/// is then the one that was passed last, after a break or an error, or else `end`. REQUIRES: there is one.
#[inline(always)]
fn pass(
    table: &mut Owned,
    at: &mut u32,
    end: u32,
    reader: &Option<SharedReader>,
    see: &mut impl Visit,
) -> Result<ControlFlow<()>> {
    loop {
        if table.walk_kept(at, end, |key, value| see.here(key, value))?.is_break() {
            return Ok(ControlFlow::Break(()));
        }
        if *at >= end {
            return Ok(ControlFlow::Continue(()));
        }
        let ordinal = *at;
        table.key_at(ordinal)?;
        let flow = table.with_kept_key(|key, table| see.pair(key, Pair { table, ordinal, reader }))?;
        if flow.is_break() {
            return Ok(flow);
        }
        *at += 1;
    }
}

/// Memory of cursors that were dropped, for the next one of the thread: most cursors serve one short scan.
#[derive(Default)]
struct Spare {
    runs: Vec<Owned>,
    keys: Vec<Vec<u8>>,
}

/// No more buffers of keys are kept, and no longer ones, in bytes.
const SPARE_KEYS: usize = 32;
const SPARE_KEY_BYTES: usize = 1 << 10;

thread_local! {
    static SPARE: Cell<Spare> = const { Cell::new(Spare { runs: Vec::new(), keys: Vec::new() }) };
}

impl Spare {
    /// What the thread has, or nothing if the thread is ending.
    fn take() -> Spare {
        SPARE.try_with(Cell::take).unwrap_or_default()
    }

    fn give_back(self) {
        let _ = SPARE.try_with(|spare| spare.set(self));
    }

    /// These with the memory of runs that are not used again.
    fn with(mut self, mut runs: Vec<Owned>) -> Spare {
        for run in &mut runs {
            let key = run.take_buffer();
            if self.keys.len() < SPARE_KEYS && (1..=SPARE_KEY_BYTES).contains(&key.capacity()) {
                self.keys.push(key);
            }
        }
        runs.clear();
        Spare { runs, keys: self.keys }
    }
}

/// A position in a layer. It owns what it needs.
pub(super) struct LayerCursor {
    over: Over,
    /// The entry at the position. Its key is in the buffer of the run's own cursor.
    run: usize,
    ordinal: u32,
    /// `PLACED` if it was placed and has not moved since, and `MIXED` if what it moves to may have expired.
    flags: u8,
    /// The time at which it reads.
    now_ms: u64,
    show: Show,
    /// Number of entries without a value at that time that it moved past since the last call of `take_passed`.
    gone: u64,
    walks: Walks,
    /// Who reads values, if the tables have operands of merges.
    reader: Option<SharedReader>,
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

enum Over {
    /// One table, or none.
    One(Option<Owned>),
    Several(RemixCursor<Arc<Remix>, Owned>),
}

impl Over {
    /// The table of a run. REQUIRES: the last move found a key.
    #[inline(always)]
    fn table(&mut self, run: usize) -> &mut Owned {
        match self {
            Over::One(run) => run.as_mut().expect("it found a key"),
            Over::Several(cursor) => cursor.of_run(run),
        }
    }
}

impl Drop for LayerCursor {
    fn drop(&mut self) {
        self.take_passed();
        self.take_reads();
        if let Over::Several(cursor) = &mut self.over {
            Spare::take().with(cursor.take_runs()).give_back();
        }
    }
}

impl LayerCursor {
    /// A cursor over tables, at no entry. `remix` is the order over several.
    pub(super) fn new(
        remix: Option<&Arc<Remix>>,
        tables: &[Arc<Table>],
        show: Show,
        keys_only: bool,
        now_ms: u64,
        walked: &Arc<AtomicU64>,
    ) -> LayerCursor {
        let over = match remix {
            Some(remix) => {
                let Spare { mut runs, mut keys } = Spare::take();
                runs.reserve(tables.len());
                for table in tables {
                    let key = keys.pop().unwrap_or_default();
                    runs.push(TableCursor::of_walk(table.clone(), false, keys_only, key));
                }
                Spare { runs: Vec::new(), keys }.give_back();
                Over::Several(RemixCursor::new(remix.clone(), runs, show))
            }
            None => {
                let table = tables.first().cloned();
                Over::One(table.map(|table| TableCursor::of_walk(table, true, keys_only, Vec::new())))
            }
        };
        let walks = Walks { all: walked.clone(), own: 0 };
        // Which entries of several tables have expired, their order does not say.
        let is_mixed = show == Show::Live && tables.iter().any(|table| table.may_expire());
        let flags = if is_mixed { MIXED } else { 0 };
        LayerCursor { over, run: 0, ordinal: 0, flags, now_ms, show, gone: 0, walks, reader: None }
    }

    /// Number of tombstones, replaced entries and expired values that it moved past since the last call. They count as
    /// steps.
    pub(super) fn take_passed(&mut self) -> u64 {
        let gone = std::mem::take(&mut self.gone);
        let passed = match &mut self.over {
            Over::One(_) => gone,
            Over::Several(cursor) => gone + cursor.take_passed(),
        };
        self.walks.own += passed;
        passed
    }

    /// Counts the pages of several tables that the cache did not have.
    fn take_reads(&mut self) {
        if let Over::Several(cursor) = &mut self.over {
            let mut reads = 0;
            cursor.each_run(|run| reads += run.take_reads());
            self.walks.own += reads * READ_STEPS;
        }
    }

    /// The table of the current entry. REQUIRES: the last move found a key.
    #[inline(always)]
    fn table(&mut self) -> &mut Owned {
        self.over.table(self.run)
    }

    /// The current key. REQUIRES: the last move found one.
    #[inline(always)]
    pub(super) fn key(&self) -> &[u8] {
        match &self.over {
            Over::One(run) => run.as_ref().expect("it found a key").kept_key(),
            Over::Several(cursor) => cursor.runs()[self.run].kept_key(),
        }
    }

    /// The number of the segment or block that it is in. REQUIRES: the last move found a key.
    #[inline(always)]
    pub(super) fn stretch(&self) -> u32 {
        match &self.over {
            Over::One(_) => block_of(self.ordinal),
            Over::Several(cursor) => cursor.segment(),
        }
    }

    /// Whether all keys of that are less than a key, or greater if not `less`. It may not know.
    #[inline]
    pub(super) fn are_beside(&self, key: &[u8], less: bool) -> bool {
        match &self.over {
            Over::One(run) => run.as_ref().is_some_and(|run| run.are_beside(key, less)),
            Over::Several(cursor) => cursor.are_beside(key, self.key(), less),
        }
    }

    /// Passes the key to `see`, with access to the value. REQUIRES: the last move found them.
    #[inline(always)]
    pub(super) fn show<R>(&mut self, see: impl FnOnce(&[u8], Pair<'_>) -> R) -> R {
        let LayerCursor { over, run, ordinal, reader, .. } = self;
        let (ordinal, reader) = (*ordinal, &*reader);
        over.table(*run).with_kept_key(|key, table| see(key, Pair { table, ordinal, reader }))
    }

    /// Requests the value. REQUIRES: the last move found a key.
    pub(super) fn fetch_value(&mut self) {
        let ordinal = self.ordinal;
        self.table().fetch_value(ordinal);
    }

    pub(super) fn first(&mut self) -> Result<bool> {
        match &mut self.over {
            Over::One(_) => self.from(0),
            Over::Several(cursor) => {
                cursor.first()?;
                self.arrive_live(true)
            }
        }
    }

    pub(super) fn last(&mut self) -> Result<bool> {
        match &mut self.over {
            Over::One(run) => {
                let end = run.as_ref().map_or(0, Run::len);
                self.before(end)
            }
            Over::Several(cursor) => {
                cursor.last()?;
                self.arrive_live(false)
            }
        }
    }

    /// Moves to the first key that is not less than `key`.
    pub(super) fn seek(&mut self, key: &[u8]) -> Result<bool> {
        match &mut self.over {
            Over::One(run) => {
                let at = run.as_mut().map_or(Ok(0), |run| run.lower_bound(key))?;
                run.as_ref().inspect(|run| run.fetch_values(at));
                self.from(at)
            }
            Over::Several(cursor) => {
                cursor.seek(key)?;
                self.land(true)
            }
        }
    }

    /// Moves to the last key that is not greater than `key`.
    pub(super) fn seek_for_prev(&mut self, key: &[u8]) -> Result<bool> {
        match &mut self.over {
            Over::One(run) => {
                let Some(run) = run else { return Ok(false) };
                let at = run.lower_bound(key)?;
                let equal = at < Run::len(run) && Run::compare(run, at, key)?.is_eq();
                self.before(at + u32::from(equal))
            }
            Over::Several(cursor) => {
                cursor.seek_for_prev(key)?;
                self.land(false)
            }
        }
    }

    #[inline(always)]
    pub(super) fn next(&mut self) -> Result<bool> {
        match &mut self.over {
            Over::One(_) => self.from(self.ordinal + 1),
            Over::Several(cursor) => {
                if self.flags != 0 {
                    if self.flags & PLACED != 0 {
                        cursor.fetch_ahead(true);
                    }
                    self.flags &= !PLACED;
                    if self.flags & MIXED != 0 {
                        return self.go_live(true);
                    }
                }
                cursor.next()?;
                self.arrive()
            }
        }
    }

    /// Passes the current pair and those after it in its segment or block to `see`, until it breaks. If it does not,
    /// moves to the next key after them; false if there is none. After a break it is at the pair that was passed last.
    /// REQUIRES: the last move found a pair.
    #[inline(always)]
    pub(super) fn walk(&mut self, see: &mut impl Visit) -> Result<ControlFlow<(), bool>> {
        if self.flags != 0 {
            return match self.show(|key, pair| see.pair(key, pair))? {
                ControlFlow::Break(()) => Ok(ControlFlow::Break(())),
                ControlFlow::Continue(()) => self.next().map(ControlFlow::Continue),
            };
        }
        let LayerCursor { over, run, ordinal, walks, reader, show, now_ms, gone, .. } = self;
        match over {
            Over::One(None) => Ok(ControlFlow::Continue(false)),
            Over::One(Some(table)) => {
                let end = block_after(*ordinal).min(Run::len(table));
                // Those of some tables have to be looked at one by one.
                let are_all_there = *show == Show::Tombstones || !table.table().has_kinds();
                let mut at = *ordinal;
                while at < end {
                    if !are_all_there && table.is_gone(at, *now_ms)? {
                        (at, *gone) = (at + 1, *gone + 1);
                        continue;
                    }
                    *ordinal = at;
                    let to = if are_all_there { end } else { at + 1 };
                    if pass(table, ordinal, to, reader, see)?.is_break() {
                        return Ok(ControlFlow::Break(()));
                    }
                    at = *ordinal;
                }
                self.from(end).map(ControlFlow::Continue)
            }
            Over::Several(cursor) => {
                let walked = cursor.walk(|table, from, at, end| {
                    let first = *at;
                    let flow = pass(table, at, end, reader, see);
                    (*run, *ordinal) = (from, *at);
                    walks.own += u64::from(*at - first);
                    flow
                });
                match walked? {
                    ControlFlow::Break(()) => Ok(ControlFlow::Break(())),
                    ControlFlow::Continue(_) => {
                        // That to the next is among them, and is counted below.
                        walks.own = walks.own.saturating_sub(1);
                        self.arrive().map(ControlFlow::Continue)
                    }
                }
            }
        }
    }

    #[inline(always)]
    pub(super) fn prev(&mut self) -> Result<bool> {
        match &mut self.over {
            Over::One(_) => self.before(self.ordinal),
            Over::Several(cursor) => {
                if self.flags != 0 {
                    if self.flags & PLACED != 0 {
                        cursor.fetch_ahead(false);
                    }
                    self.flags &= !PLACED;
                    if self.flags & MIXED != 0 {
                        return self.go_live(false);
                    }
                }
                cursor.prev()?;
                self.arrive()
            }
        }
    }

    /// Completes a jump of the REMIX, with a prefetch of everything there at once.
    #[inline]
    fn land(&mut self, forward: bool) -> Result<bool> {
        if self.walks.own >= TOLD {
            self.take_reads();
            self.walks.tell();
        }
        let Over::Several(cursor) = &mut self.over else { return Ok(false) };
        cursor.fetch_here();
        self.flags |= PLACED;
        self.walks.own += cursor.runs().len() as u64;
        self.arrive_live(forward)
    }

    /// Reads the key at the place of the REMIX, or the next one whose value has not expired; false if there is none.
    #[inline]
    fn arrive_live(&mut self, forward: bool) -> Result<bool> {
        let found = self.arrive()?;
        if found && self.flags & MIXED != 0 && self.is_gone()? {
            self.gone += 1;
            return self.go_live(forward);
        }
        Ok(found)
    }

    /// Moves on to a key whose value has not expired.
    #[cold]
    fn go_live(&mut self, forward: bool) -> Result<bool> {
        loop {
            let Over::Several(cursor) = &mut self.over else { return Ok(false) };
            if forward {
                cursor.next()?
            } else {
                cursor.prev()?
            };
            if !self.arrive()? {
                return Ok(false);
            }
            if !self.is_gone()? {
                return Ok(true);
            }
            self.gone += 1;
        }
    }

    /// Whether the current entry has expired. REQUIRES: it is no tombstone.
    fn is_gone(&mut self) -> Result<bool> {
        let (ordinal, now_ms) = (self.ordinal, self.now_ms);
        let table = self.table();
        Ok(table.table().may_expire() && table.is_gone(ordinal, now_ms)?)
    }

    /// Sets the time at which it reads, before it is placed again.
    pub(super) fn set_time(&mut self, now_ms: u64) {
        self.now_ms = now_ms;
    }

    /// Sets who reads values, and applies operands.
    #[cold]
    pub(super) fn set_reader(&mut self, reader: &SharedReader) {
        self.reader = Some(reader.clone());
    }

    /// Reads the key at the place of the REMIX; false if there is none.
    #[inline(always)]
    fn arrive(&mut self) -> Result<bool> {
        let Over::Several(cursor) = &mut self.over else { return Ok(false) };
        let Some(RunEntry { run, ordinal, .. }) = cursor.entry() else { return Ok(false) };
        self.walks.own += 1;
        (self.run, self.ordinal) = (run, ordinal);
        cursor.of_run(run).key_at(ordinal)?;
        Ok(true)
    }

    /// Whether the current entry deletes its key. REQUIRES: the last move found one.
    pub(super) fn is_tombstone(&mut self) -> Result<bool> {
        match &mut self.over {
            Over::One(_) => {
                let ordinal = self.ordinal;
                match self.table().is_tombstone(ordinal)? {
                    true => Ok(true),
                    false => self.is_gone(),
                }
            }
            Over::Several(cursor) if cursor.entry().is_some_and(|entry| entry.tombstone) => Ok(true),
            Over::Several(_) => self.is_gone(),
        }
    }

    /// The first entry of the one table from `start` on that it stops at.
    #[inline(always)]
    fn from(&mut self, start: u32) -> Result<bool> {
        let Over::One(Some(run)) = &mut self.over else { return Ok(false) };
        for ordinal in start..Run::len(run) {
            if self.show == Show::Tombstones || !run.is_gone(ordinal, self.now_ms)? {
                self.ordinal = ordinal;
                run.key_at(ordinal)?;
                return Ok(true);
            }
            self.gone += 1;
        }
        Ok(false)
    }

    /// The last entry of the one table before `end` that it stops at.
    #[inline(always)]
    fn before(&mut self, end: u32) -> Result<bool> {
        let Over::One(Some(run)) = &mut self.over else { return Ok(false) };
        for ordinal in (0..end).rev() {
            if self.show == Show::Tombstones || !run.is_gone(ordinal, self.now_ms)? {
                self.ordinal = ordinal;
                run.key_at(ordinal)?;
                return Ok(true);
            }
            self.gone += 1;
        }
        Ok(false)
    }
}

/// The value of a pair in a table, in place.
pub(crate) struct Pair<'c> {
    table: &'c mut Owned,
    ordinal: u32,
    reader: &'c Option<SharedReader>,
}

impl Pair<'_> {
    /// Passes the bytes to `see`.
    #[inline]
    pub(crate) fn with<R>(self, see: impl FnOnce(&[u8]) -> R) -> Result<R> {
        self.seen(see)
    }

    /// Reads the bytes. Operands are not applied.
    pub(crate) fn verify(self) -> Result<()> {
        match self.table.operands(self.ordinal)? {
            Some(_) => Ok(()),
            None => self.with(|_| ()),
        }
    }

    /// The same, for any way to see them.
    #[inline]
    pub(crate) fn seen<R>(self, see: impl See<R>) -> Result<R> {
        self.table.value_seen(self.ordinal, self.reader, see)
    }
}
