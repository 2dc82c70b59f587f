//! Compaction in the background: memtables become tables, and tables are merged, one bounded step at a time.
//!
//! A step takes the oldest immutable memtable and distributes its pairs to the partitions that they belong
//! to. For each partition that gets any, [`plan`] selects the cheapest way:
//!
//! - *minor*: add a table, and update the REMIX without reading a value;
//! - *partial*: merge the new pairs and the newest tables into one table;
//! - *major*: rewrite everything as new partitions of one table each;
//! - *append*: make partitions of new pairs that come after all existing keys.
//!
//! A partition that is rarely read keeps many tables, because that is cheapest to write. Tables that are
//! scanned repeatedly are merged ([`Core::compact_worn`]), because one table is faster to read. So are tables of which
//! a third is dead ([`Core::compact_dead`]), when nothing was written for a while. The tables of a dropped keyspace are
//! removed as soon as the drop is durable.
//!
//! The order on disk: write and sync the tables and REMIXes, make their names durable, add one edit for all
//! of it to the manifest and sync that, replace the readers' version, and only then remove files. So at every
//! moment the manifest names complete files, and logs that hold everything else.
//!
//! A step that meets damage goes on around it (see rewrite.rs), or a place that the device cannot read. A merge without
//! new pairs is given up then, and the partition is not merged again by itself. A place that cannot be read may be
//! readable later, so a merge that somebody asks for is tried again.
//!
//! If there is no room for a table, the step removes its new files, and the store refuses changes until a later try
//! succeeds; reads go on. If a step fails for any other reason, the store stops, because accepted changes would pile up
//! in memory. Nothing is lost either way: the logs have it. A step that is under way when the store is closed is given
//! up.

mod choice;
mod collect;
mod ingested;
mod kept;
mod new;
pub(crate) mod plan;
mod rewrite;
#[cfg(test)]
pub(crate) mod tests;

use crate::catalog::Space;
use crate::core::{Core, Order};
use crate::disk::{self, Disk, Kind, Name};
use crate::history::History;
use crate::manifest::{Edit, Manifest};
use crate::memtable::{Frozen, Memtable};
use crate::partition::Partition;
use crate::values::{Haste, Logs};
use crate::version::Version;
use crate::wal::RESERVED_FIRST;
use forrest_base::lock;
use forrest_engine::{Durability, Error, ErrorKind, Job, Result};
pub(crate) use ingested::Ingested;
#[cfg(test)]
pub(crate) use new::HIDDEN;
use rewrite::{ALONE, Replaced};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Instant;

/// With this much free space nothing more is asked, and less than this is always kept free.
const SPACE_ENOUGH: u64 = 4 << 30;
const SPACE_LEAST: u64 = 1 << 20;

/// With this many logs, changes of at most `LITTLE` bytes are flushed when the store is opened or closed.
const LOGS_MOST: usize = 3;
const LITTLE: usize = 1 << 20;

/// A partition with fewer bytes than this is not merged because of dead entries, if a full table has many more.
const DEAD_LEAST: u64 = 1 << 20;
/// Milliseconds after which a merge for what has expired is tried again, if one has failed.
const EXPIRED_AGAIN_MS: u64 = 30_000;

/// A memtable is flushed early only if it holds more than 1/`WORTH` of its limit; when nothing was written for longer,
/// more than 1/`WORTH_REST`, so that the next process that opens the store replays a few milliseconds.
pub(crate) const WORTH: usize = 8;
pub(crate) const WORTH_REST: usize = 64;

impl Core {
    /// Does one piece of the pending work; true if there was any.
    ///
    /// # Errors
    /// The error of a write or a sync; the store then takes no more writes.
    pub(crate) fn step(&self) -> Result<bool> {
        self.flush_step(true)
    }

    /// The same; without giving back the space of kept logs, unless `collects`.
    fn flush_step(&self, collects: bool) -> Result<bool> {
        if self.check_writable().is_err() {
            return Ok(false);
        }
        let mut manifest = lock(&self.manifest);
        if self.is_full() || self.history.as_ref().is_some_and(History::is_short) {
            self.remove_history(&mut manifest);
        }
        self.remove_files(&mut manifest)?;
        // ORDERING: no other data depends on it.
        if self.is_flush_due.swap(false, Relaxed) {
            match self.freeze(&mut self.order()) {
                // There is no space for a new log. The next step tries again.
                Err(error) if self.is_harmless(&error) => self.is_flush_due.store(true, Relaxed),
                frozen => frozen?,
            }
        }
        let Some(memtable) = self.version().immutable.last().cloned() else {
            // A store that was only read writes nothing.
            let mut has_more = self.log().is_begun() && self.remove_dropped(&mut manifest)?;
            if self.is_full() {
                self.log().check()?;
                has_more |= self.log().is_begun() && self.merge_deadest(&mut manifest, 0)?;
                self.full.store(self.lacks_space(&self.version()), Relaxed);
            }
            has_more |= collects && self.collect(&mut manifest)?;
            return Ok(has_more);
        };
        self.log().check()?;
        let begin = Instant::now();
        // If two memtables wait, writers are going to: a flush and a merge take turns then.
        let has_time = !self.work.is_closing() && (self.is_full() || self.version().immutable.len() < 2);
        if has_time && self.merge_deadest(&mut manifest, memtable.bytes() as u64)? {
            self.pace.note_merge(begin.elapsed());
            return Ok(true);
        }
        if collects && (has_time || self.has_too_many_logs(manifest.state())) {
            self.collect_beside(&mut manifest, &memtable)?;
        }
        // ORDERING: only this thread and those that it starts write tables.
        self.is_flushing.store(true, Relaxed);
        let flushed = self.flush(&mut manifest, None, &memtable);
        self.is_flushing.store(false, Relaxed);
        if flushed.is_ok() {
            self.pace.note(memtable.bytes(), begin.elapsed());
            // Statistics do not read what this may need, and the next merge needs it anyway.
            for (_, one) in self.version().each().take_while(|_| has_time && self.check_open().is_ok()) {
                let _estimate = one.entries();
            }
            // Memory is not worth a failure, and there may be no room for a file.
            let _ = self.leave_largest(&mut manifest);
        }
        let is_full = matches!(&flushed, Err(error) if self.is_harmless(error));
        self.full.store(is_full || self.lacks_space(&self.version()), Relaxed);
        flushed.map(|()| true)
    }

    /// Whether there is less space than what is in memory will take, one more memtable, and an eighth of a partition:
    /// with that left, a store can be made smaller by deletes, whose tables and merges take space too.
    pub(crate) fn lacks_space(&self, version: &Version) -> bool {
        let Ok(free) = self.disk().free(Kind::Table) else { return false };
        if free >= SPACE_ENOUGH {
            return false;
        }
        let memory = version.immutable_bytes() + version.memtable.bytes().max(self.limits.memtable_bytes());
        let partitions = version.partitions.values().flatten();
        let largest = partitions.map(|partition| partition.file_bytes()).max().unwrap_or(0);
        free < memory as u64 + (largest / 8).max(SPACE_LEAST)
    }

    /// Removes the tables of keyspaces that were dropped; true if there were any.
    fn remove_dropped(&self, manifest: &mut Manifest) -> Result<bool> {
        let (dropped, last) = {
            let order = self.order();
            let catalog = self.catalog();
            let dropped = order.version.each().filter(|(space, _)| !catalog.has(*space));
            let dropped: Vec<_> = dropped
                .map(|(space, old)| Replaced { space, old: Some(old.clone()), new: Vec::new() })
                .collect();
            (dropped, order.sequence)
        };
        if dropped.is_empty() {
            return Ok(false);
        }
        // DURABILITY: the keyspace would be there again after a crash, and its tables would not.
        self.log().commit(last, Durability::Sync)?;
        let (first, floor) = (self.first_free_number(), manifest.state().floor);
        self.replace(manifest, None, first, None, &dropped, floor).map(|()| true)
    }

    /// Whether an error leaves the store unchanged.
    pub(crate) fn is_harmless(&self, error: &Error) -> bool {
        error.kind() == ErrorKind::OutOfSpace && self.log().check().is_ok()
    }

    /// What work that takes long does now and then: gives the cache the memory that is left, writes the changes that
    /// wait in memory, and makes the next log ahead.
    ///
    /// # Errors
    /// `Busy` if the store is being closed; that of the log, which is stopped then.
    pub(crate) fn look(&self) -> Result<()> {
        self.balance();
        // The log of a store that is being resumed is stopped, and replaced.
        if !self.is_resuming.load(Relaxed) {
            self.log().sync_begin()?;
            self.write_queue()?;
            self.prepare_log()?;
        }
        self.check_open()
    }

    /// Makes the file of the next log if the memtable is half full. Writers wait while a log is begun: see
    /// [`prepare`](crate::wal::Log::prepare).
    pub(crate) fn prepare_log(&self) -> Result<()> {
        let (filled, full) = (self.version().memtable.bytes(), self.limits.memtable_bytes());
        if filled < full / 2 || self.is_full() {
            return Ok(());
        }
        // As long as this one will be, and a little more.
        let expected = |len: u64| {
            let whole = u128::from(len) * full as u128 / filled.max(1) as u128;
            (whole.min(2 * full as u128) as u64).saturating_mul(17) / 16
        };
        self.prepare_log_of(expected)
    }

    fn prepare_log_of(&self, expected: impl FnOnce(u64) -> u64) -> Result<()> {
        match self.log().prepare(|| self.next_number(), expected) {
            // The one who needs it finds that out.
            Err(error) if self.is_harmless(&error) => Ok(()),
            prepared => prepared,
        }
    }

    /// Makes the next log for a store at rest. It takes no space ahead: nobody may write for long, and all that time it
    /// would lack for others.
    fn prepare_short_log(&self) -> Result<()> {
        if self.is_full() {
            return Ok(());
        }
        {
            // No thread is about to begin the one that was made ahead.
            let _order = self.order();
            self.log().remove_spare();
        }
        self.prepare_log_of(|_| 0)
    }

    /// Handles an error that came before the manifest was changed: removes the new files, whose numbers begin
    /// at `first`, and stops the store unless it can go on.
    fn give_up(&self, first: u64, error: Error) -> Error {
        self.remove_new(first);
        // A store that is being closed needs no more tables.
        let goes_on = self.is_harmless(&error) || self.check_open().is_err();
        if goes_on { error } else { self.log().stop(error) }
    }

    /// Removes the new files that no manifest names, whose numbers begin at `first`.
    fn remove_new(&self, first: u64) {
        // Only the holder of the manifest makes such files, and ingests. Listing them would need a file descriptor.
        // Files that cannot be removed now are removed when the store is opened.
        let ingested = lock(&self.ingested);
        for number in (first..self.first_free_number()).filter(|number| !ingested.contains(number)) {
            for name in [Name::table(number), Name::remix(number)] {
                let _ = disk::unlink(self.disk(), name);
            }
        }
    }

    /// Makes tables of all memtables. All earlier changes are then durable.
    pub(crate) fn flush_all(&self) -> Result<()> {
        self.flush_if(|version| !version.memtable.spaces().is_empty())?;
        // New or dropped keyspaces alone are not worth a table; they may be in the log only.
        self.sync()
    }

    /// Flushes what is in memory if it is little and in many logs: each opening begins one. Called when the store is
    /// opened and closed, so that neither short uses nor kills make opening it slower and slower.
    pub(crate) fn join_logs(&self) -> Result<()> {
        let floor = lock(&self.manifest).state().floor;
        let is_needed = |name: &Name| name.kind == Kind::Log && name.number >= floor;
        let bytes: usize = self.version().memtables().map(|memtable| memtable.bytes()).sum();
        if bytes > LITTLE || disk::list(self.disk())?.into_iter().filter(is_needed).count() < LOGS_MOST {
            return Ok(());
        }
        self.flush_if(|version| !version.memtable.spaces().is_empty())
    }

    /// Flushes the memtable before it is full, if it holds more than 1/`worth` of its limit, or, at rest, if it
    /// deletes ranges. Called when nothing was written for a while. Reads then have one place less to look at, opening
    /// the store replays less, and the space of the ranges comes back.
    pub(crate) fn flush_early(&self, worth: usize) -> Result<()> {
        let least = self.limits.memtable_bytes() / worth;
        let is_at_rest = worth >= WORTH_REST;
        let has_ranges = |memtable: &Memtable| is_at_rest && memtable.range_deletes() > 0;
        // The log of a memtable with little, or nothing, may have taken space for a full one.
        let much = (self.limits.memtable_bytes() as u64 / 8).max(RESERVED_FIRST);
        let has_space = || is_at_rest && self.log().room() > much && !self.is_full();
        let is_due = |version: &Version| {
            version.memtable.bytes() > least || has_ranges(&version.memtable) || has_space()
        };
        if is_at_rest && is_due(&self.version()) {
            self.prepare_short_log()?;
        }
        self.flush_if(is_due)
    }

    /// Replaces the memtable if `is_due`, and makes tables of all immutable memtables.
    fn flush_if(&self, is_due: impl FnOnce(&Version) -> bool) -> Result<()> {
        self.check_writable()?;
        let mut order = self.order();
        self.log().check()?;
        if is_due(&order.version) {
            self.freeze(&mut order)?;
        }
        drop(order);
        self.flush_waiting()
    }

    /// Makes tables of the immutable memtables that there are. Those that others fill meanwhile are not waited for: it
    /// would not end while they write faster than tables are made.
    fn flush_waiting(&self) -> Result<()> {
        let newest = self.version().immutable.first().map(Arc::downgrade);
        let is_newest =
            |one: &Arc<Memtable>| newest.as_ref().is_some_and(|newest| newest.as_ptr() == Arc::as_ptr(one));
        // The version is not kept while tables are made: it would keep what they replace.
        let has_others_only = || {
            let version = self.version();
            !version.immutable.is_empty() && !version.immutable.iter().any(is_newest)
        };
        while !has_others_only() && self.flush_step(false)? {}
        Ok(())
    }

    /// Merges the tables of one partition that were scanned so often that a merge pays off; true if there was
    /// one. Runs in the background when no memtable waits.
    pub(crate) fn compact_worn(&self) -> Result<bool> {
        self.merge_first(|partition| {
            if partition.walked() == 0 || !partition.is_mergeable() {
                return false;
            }
            let entries = partition.tables().iter().map(|table| u64::from(table.entries()));
            plan::is_worn(&entries.collect::<Vec<_>>(), partition.walked())
        })
    }

    /// Makes tables of a memtable that has a value which expired long ago, and merges the tables of one partition that
    /// has much that has expired; true if there was one. Runs in the background, also while the store is written to. If
    /// it fails, most likely without space, it does nothing for a while: a merge would fill the device once more.
    pub(crate) fn compact_expired(&self) -> Result<bool> {
        let now_ms = self.newest().now_ms();
        if !self.log().is_begun() || now_ms < self.expired_again_ms.load(Relaxed) {
            return Ok(false);
        }
        self.compact_expired_at(now_ms).inspect_err(|_| {
            self.expired_again_ms.store(now_ms.saturating_add(EXPIRED_AGAIN_MS), Relaxed);
        })
    }

    fn compact_expired_at(&self, now_ms: u64) -> Result<bool> {
        let is_old = |memtable: &Memtable| plan::is_overdue(memtable.expires_ms(), now_ms);
        if is_old(&self.version().memtable) {
            self.flush_if(|version| is_old(&version.memtable))?;
        }
        let is_merged = self.merge_first(|partition| {
            let entries = || partition.tables().iter().map(|table| u64::from(table.entries())).sum();
            partition.may_expire()
                && partition.damage().is_none()
                && plan::is_expired(entries(), partition.expiries(), now_ms)
        })?;
        if is_merged {
            // Values in logs may have expired with their entries.
            self.hasten(Haste::Expired);
        }
        Ok(is_merged)
    }

    /// Merges the tables of one partition of which a third is dead: replaced entries, tombstones, and what they hide.
    /// True if there was one. Runs in the background when nothing was written for a while.
    pub(crate) fn compact_dead(&self) -> Result<bool> {
        let least = DEAD_LEAST.min(self.limits.table_bytes() / ALONE);
        self.merge_first(|partition| {
            partition.is_mergeable()
                && partition.file_bytes() >= least
                && partition.entries().is_some_and(|(all, live)| plan::is_dead(all, live))
        })
    }

    /// Before `new` bytes become tables: if the tables would then take more space than their live entries should, or if
    /// there is little space, merges those partitions that give back most, a few at a time, so that the space of some
    /// is free before the next begin. True if there were any. Flushes alone would make all partitions due at once,
    /// because they add to all of them.
    fn merge_deadest(&self, manifest: &mut Manifest, new: u64) -> Result<bool> {
        let is_full = self.is_full();
        let version = self.version();
        let all = version.each().filter(|(_, one)| one.damage().is_none());
        let mut all: Vec<_> =
            all.map(|(space, one)| (space, one, one.file_bytes(), one.live_bytes())).collect();
        let (bytes, live) = all.iter().fold((new, 0), |sum, one| (sum.0 + one.2, sum.1 + one.3));
        let mut excess = if is_full { bytes } else { plan::excess(bytes, live) };
        if excess == 0 {
            return Ok(false);
        }
        let free = self.disk().free(Kind::Table).unwrap_or(u64::MAX);
        let least = if is_full { 0 } else { self.limits.table_bytes() / ALONE };
        all.retain(|(_, one, bytes, live)| {
            one.is_mergeable() && *bytes >= least && *live < free && plan::is_worth_space(*bytes, *live)
        });
        match is_full {
            // One at a time: the space that the smallest gives back may be enough for the next.
            true => all.sort_by_key(|(_, _, _, live)| *live),
            false => all.sort_by_key(|(_, _, bytes, live)| live.saturating_mul(1 << 10) / bytes),
        }
        // Writers wait for memtables that wait for this. A large partition is merged by several threads alone.
        let most = self.limits.table_bytes().saturating_mul(self.workers().count() as u64);
        let mut written = 0;
        let is_needed = |(_, _, bytes, live): &&(u32, &Arc<Partition>, u64, u64)| {
            let needed = excess > 0 && (written == 0 || written + live <= most);
            (excess, written) = (excess.saturating_sub(bytes - live), written + live.max(&1));
            needed
        };
        let at_once = if is_full { 1 } else { self.workers().count() };
        let few = all.iter().take(at_once).take_while(is_needed);
        let due: Vec<_> = few.map(|(space, one, ..)| (*space, Arc::clone(one))).collect();
        drop(version);
        if due.is_empty() {
            return Ok(false);
        }
        match self.merge_piece(manifest, &due) {
            // There may be space for the new tables alone.
            Err(error) if self.is_harmless(&error) => Ok(false),
            merged => merged.map(|_damage| true),
        }
    }

    /// Writes the REMIX of one partition whose file lacks many entries; true if there was one. Then the next process
    /// that opens the store need not build it. Runs in the background when nothing was written for a while.
    pub(crate) fn store_remix(&self) -> Result<bool> {
        let mut manifest = lock(&self.manifest);
        let is_due = |partition: &Partition| {
            partition.damage().is_none()
                && partition.covered().is_some_and(|(all, covered)| plan::is_uncovered(all, covered))
        };
        let due = self.version().each().find(|(_, one)| is_due(one)).map(|(space, one)| (space, one.clone()));
        let Some((space, old)) = due else { return Ok(false) };
        self.log().check()?;
        let first = self.first_free_number();
        self.reorder(&mut manifest, first, &old, rewrite::stored(self, space, &old)).map(|()| true)
    }

    /// Commits another order over the tables of a partition. Where they are damaged, it is marked instead.
    fn reorder(
        &self,
        manifest: &mut Manifest,
        first: u64,
        old: &Partition,
        made: Result<Replaced>,
    ) -> Result<()> {
        match made {
            Ok(made) => {
                let floor = manifest.state().floor;
                self.replace(manifest, None, first, None, &[made], floor)
            }
            Err(error) if disk::is_damage(&error) => {
                self.remove_new(first);
                old.mark(error);
                Ok(())
            }
            Err(error) => Err(self.give_up(first, error)),
        }
    }

    /// If the orders over tables take more memory than they may, leaves the largest one in its file. True if there was
    /// one. Runs in the background.
    pub(crate) fn leave_order(&self) -> Result<bool> {
        if self.have_orders_room() || !self.log().is_begun() {
            return Ok(false);
        }
        self.leave_largest(&mut lock(&self.manifest))
    }

    /// Whether the indexes of the current version take no more than they may.
    fn have_orders_room(&self) -> bool {
        let version = self.version();
        let bytes = version.each().map(|(_, one)| one.memory_bytes()).sum();
        self.shared.memory.may_indexes_take(bytes)
    }

    fn leave_largest(&self, manifest: &mut Manifest) -> Result<bool> {
        if self.have_orders_room() {
            return Ok(false);
        }
        let can = |one: &Partition| one.damage().is_none() && one.is_order_in_memory();
        let version = self.version();
        let largest = version.each().filter(|(_, one)| can(one)).max_by_key(|(_, one)| one.order_bytes());
        let Some((space, old)) = largest.map(|(space, one)| (space, one.clone())) else { return Ok(false) };
        drop(version);
        self.log().check()?;
        let first = self.first_free_number();
        self.reorder(manifest, first, &old, rewrite::in_file(self, space, &old)).map(|()| true)
    }

    /// Merges the tables of the first partition that `is_due`; true if there was one.
    fn merge_first(&self, is_due: impl Fn(&Partition) -> bool) -> Result<bool> {
        if self.check_writable().is_err() {
            return Ok(false);
        }
        let due =
            self.version().each().find(|(_, one)| is_due(one)).map(|(space, one)| (space, one.low.clone()));
        let Some((space, low)) = due else { return Ok(false) };
        self.log().check()?;
        self.merge(|other, partition| {
            let is_due = other == space && partition.low == low;
            if is_due {
                // If the merge fails, it is not tried again before the tables are as worn again.
                partition.forget_walks();
            }
            is_due
        })?;
        Ok(true)
    }

    /// Finishes the work that would otherwise be done when nothing was written for a while, except merges.
    pub(crate) fn settle(&self) -> Result<()> {
        self.flush_early(WORTH_REST)?;
        while self.store_remix()? {}
        Ok(())
    }

    /// Makes tables of all memtables, and merges the tables of each partition.
    pub(crate) fn compact(&self) -> Result<()> {
        self.flush_all()?;
        self.merge(|_, _| true)?;
        self.collect_all()
    }

    /// The same for the partitions that have keys of a range.
    pub(crate) fn compact_range(&self, space: &Space, start: &[u8], end: Option<&[u8]>) -> Result<()> {
        space.check()?;
        if end.is_some_and(|end| end <= start) {
            return Ok(());
        }
        self.flush_all()?;
        self.merge(|other, partition| other == space.id && partition.meets(start, end))
    }

    /// Merges the tables of the partitions that `which` chooses, where there are several, or where one has
    /// values that have expired, or is compressed in another way than new ones.
    ///
    /// # Errors
    /// `Corrupt` if one of them is damaged, `Io` if it cannot be read: it stays as it is, and the others are merged.
    fn merge(&self, which: impl Fn(u32, &Partition) -> bool) -> Result<()> {
        let error_of = |one: &Partition| Some(one.damage()?.error());
        let (catalog, now_ms) = (self.catalog(), self.newest().now_ms());
        let is_filtered = self.builder.filter.is_some();
        let is_due = |space: u32, one: &Partition| {
            one.is_mergeable()
                || (one.damage().is_none() && (is_filtered || one.has_expired(now_ms)))
                || (one.may_recover() && one.tables().len() > 1)
                || one.is_packed_otherwise(catalog.compression(space))
        };
        let mut damaged = None;
        // Their places, not the partitions themselves, whose files would be kept.
        let mut due = Vec::new();
        for (space, one) in self.version().each().filter(|(space, one)| which(*space, one)) {
            if is_due(space, one) {
                due.push((space, one.low.clone(), one.file_bytes()));
            } else {
                damaged = damaged.or_else(|| error_of(one));
            }
        }
        // As many at once as there are threads, or as are small: the space of what a piece replaces is free before the
        // next begins.
        let mut rest = &due[..];
        while !rest.is_empty() {
            let mut sum = 0;
            let is_small = |(_, _, bytes): &&(u32, Vec<u8>, u64)| {
                sum += bytes;
                sum <= self.limits.table_bytes() / ALONE
            };
            let few = rest.iter().take_while(is_small).count().max(self.workers().count()).min(rest.len());
            let (piece, others) = rest.split_at(few);
            rest = others;
            // Writers may wait for memtables that wait. If there is no space for those, a merge may make some.
            let waiting = self.version().immutable.len();
            for _ in 0..waiting {
                let _ = self.step();
            }
            let mut manifest = lock(&self.manifest);
            self.log().check()?;
            // A memtable may have become tables since the partitions were chosen.
            let version = self.version().clone();
            let now = piece.iter().filter_map(|(space, low, _)| {
                let now = version.partitions(*space).iter().find(|now| now.low == *low)?;
                if !is_due(*space, now) {
                    damaged = damaged.take().or_else(|| error_of(now));
                }
                is_due(*space, now).then(|| (*space, now.clone()))
            });
            let now: Vec<_> = now.collect();
            drop(version);
            if !now.is_empty() {
                let met = self.merge_piece(&mut manifest, &now)?;
                damaged = damaged.or(met);
            }
        }
        damaged.map_or(Ok(()), Err)
    }

    /// Merges the tables of partitions at once; one after the other if there is no space for that, or damage. Notes
    /// which ones are damaged, and returns the first damage.
    fn merge_piece(&self, manifest: &mut Manifest, piece: &[(u32, Arc<Partition>)]) -> Result<Option<Error>> {
        let first = self.first_free_number();
        let task = self.tasks.begin(Job::Merge);
        let error = match rewrite::merged(self, piece) {
            Ok(merged) => {
                let floor = manifest.state().floor;
                return task.ends(self.replace(manifest, None, first, None, &merged, floor)).map(|()| None);
            }
            Err(error) => task.fails(error),
        };
        if disk::is_damage(&error) {
            self.remove_new(first);
            if let [(_, one)] = piece {
                let met = disk::again(&error);
                one.mark(error);
                return Ok(Some(met));
            }
        } else {
            let error = self.give_up(first, error);
            if !self.is_harmless(&error) || piece.len() == 1 {
                return Err(error);
            }
        }
        let mut damaged = None;
        for one in piece.chunks(1) {
            damaged = damaged.or(self.merge_piece(manifest, one)?);
        }
        Ok(damaged)
    }

    fn flush(
        &self,
        manifest: &mut Manifest,
        held: Option<&mut Order>,
        memtable: &Arc<Memtable>,
    ) -> Result<()> {
        // DURABILITY: the manifest will state that the changes are covered, and the logs go on after them.
        self.log().settle()?;
        self.log().sync_begin()?;
        self.make_tables(manifest, held, memtable)
    }

    /// Makes tables of the oldest immutable memtable, and commits them. A caller that holds the order lock passes what
    /// it guards.
    pub(crate) fn make_tables(
        &self,
        manifest: &mut Manifest,
        held: Option<&mut Order>,
        memtable: &Arc<Memtable>,
    ) -> Result<()> {
        let task = self.tasks.begin(Job::Flush);
        task.ends(self.make_tables_of(manifest, held, memtable))
    }

    fn make_tables_of(
        &self,
        manifest: &mut Manifest,
        held: Option<&mut Order>,
        memtable: &Arc<Memtable>,
    ) -> Result<()> {
        let Frozen { catalog, .. } = memtable.frozen();
        let version = self.version();
        let first = self.first_free_number();
        let mut spaces = memtable.spaces();
        spaces.retain(|&space| catalog.has(space));
        let keeping = self.logs_to_keep(memtable, &spaces).map_err(|error| self.give_up(first, error))?;
        let keeps = !keeping.is_empty();
        *lock(&self.keeping) = Arc::new(keeping);
        let replaced =
            rewrite::spaces(self, &version, memtable, &spaces).map_err(|error| self.give_up(first, error))?;
        let floor = log_behind(&version, memtable);
        if (keeps || self.history.is_some()) && !self.is_resuming.load(Relaxed) {
            // DURABILITY: what is kept goes on in the logs that a recovery reads, and tables refer to values in logs
            // that are there after a power cut.
            let synced = self.log().commit(memtable.frozen().last, Durability::Sync);
            synced.map_err(|error| self.give_up(first, error))?;
        }
        // DURABILITY: the logs begin with one that is there after a power cut. If the log was stopped, it may not be.
        let floor = if self.log().may_be_first(floor) {
            floor
        } else {
            self.state_synced(manifest).map_err(|error| self.give_up(first, error))?;
            manifest.state().floor
        };
        self.replace(manifest, held, first, Some(memtable), &replaced, floor)
    }

    /// States in the manifest how far the first log is synced: the tables will have changes that it may not have after
    /// a power cut.
    fn state_synced(&self, manifest: &mut Manifest) -> Result<()> {
        let (log, old) = (manifest.state().floor, manifest.state().whole);
        let synced = self.log().synced_bytes(log);
        let end = if old.0 == log { old.1.max(synced) } else { synced };
        let edits = vec![Edit::Whole { log, end }];
        manifest.reserve(&edits, || self.next_number())?;
        manifest.commit(edits).map_err(|error| self.log().stop(error))
    }

    /// Commits new partitions in place of old ones and, if a memtable was flushed, in its place. The numbers of the new
    /// files begin at `first`. A caller that holds the order lock passes what it guards.
    fn replace(
        &self,
        manifest: &mut Manifest,
        held: Option<&mut Order>,
        first: u64,
        flushed: Option<&Arc<Memtable>>,
        replaced: &[Replaced],
        floor: u64,
    ) -> Result<()> {
        let mut edits = edits(manifest, flushed.map(|memtable| memtable.frozen()), replaced, floor);
        let logs = self.logs_after(manifest, flushed, &mut edits);
        let reserved = manifest.reserve(&edits, || self.next_number());
        reserved.map_err(|error| self.give_up(first, error))?;
        let old_floor = manifest.state().floor;
        let before: BTreeSet<Name> = manifest.state().files().collect();
        // DURABILITY: the names of the new files are durable before the manifest names them.
        let synced = disk::sync_directory(self.disk(), Kind::Table);
        // The writer of a new log syncs the same directory. If that has failed, this sync may not report it again.
        let is_resuming = self.is_resuming.load(Relaxed);
        let checked = synced.and_then(|()| if is_resuming { Ok(()) } else { self.log().check() });
        let committed = checked.and_then(|()| manifest.commit(edits));
        committed.map_err(|error| self.log().stop(error))?;
        self.note_kept(manifest.state(), flushed.is_some());
        self.note_to_cache(replaced);
        match held {
            Some(order) => drop(self.install(order, flushed, replaced, logs)),
            None => {
                let mut order = self.order();
                let old = self.install(&mut order, flushed, replaced, logs);
                drop(order);
                drop(old);
            }
        }
        self.parked.drop_old();
        // DURABILITY: the manifest that no longer needs them is synced.
        self.log().close_before(floor);
        self.done();
        self.changed();
        self.balance();
        self.remove(before, manifest, old_floor)
    }

    /// Has those tables read into the cache that come in place of cached ones.
    fn note_to_cache(&self, replaced: &[Replaced]) {
        let new = replaced.iter().flat_map(Replaced::to_cache).map(Arc::downgrade);
        let mut to_cache = lock(&self.to_cache);
        // Most of those that wait and were replaced are gone: no more wait than the store has tables.
        to_cache.retain(|table| table.strong_count() > 0);
        to_cache.extend(new);
    }

    /// Reads one of these tables; true if there was one. Runs in the background when no memtable waits.
    pub(crate) fn fill_cache(&self) -> bool {
        let Some(table) = lock(&self.to_cache).pop() else { return false };
        if let Some(table) = table.upgrade() {
            // Those who read it find out what is wrong.
            let _ = table.fill_cache(|| self.look());
        }
        true
    }

    /// The logs before the floor that are of no use. Those before `old_floor` are left over: they may have what a lost
    /// table had.
    fn logs_to_remove(&self, manifest: &Manifest, old_floor: u64) -> Vec<Name> {
        let mut logs = self.old_logs(manifest.state(), &disk::list(self.disk()).unwrap_or_default());
        if self.has_lost() {
            let left_over = self.history.as_ref().map_or(old_floor, |history| history.floor.min(old_floor));
            logs.retain(|name| name.number >= left_over);
        }
        logs
    }

    /// Has those logs removed that were kept for their changes, and are too old or too much by now.
    fn remove_history(&self, manifest: &mut Manifest) {
        if self.history.is_some() && self.log().is_begun() {
            let logs = self.logs_to_remove(manifest, manifest.state().floor);
            manifest.add_waiting(logs);
        }
    }

    /// Removes files that waited because somebody else read them, and history that is too old.
    pub(crate) fn remove_waiting(&self) -> Result<()> {
        let mut manifest = lock(&self.manifest);
        self.remove_history(&mut manifest);
        self.remove_files(&mut manifest)
    }

    /// Removes files that wait because no state needs them any more, as far as nobody reads them.
    fn remove_files(&self, manifest: &mut Manifest) -> Result<()> {
        let (is_begun, is_full) = (self.log().is_begun(), self.is_full());
        // A store that was only read removes nothing, unless a change finds no space.
        if manifest.has_waiting() && (is_begun || is_full || manifest.is_begun()) {
            self.log().check()?;
            // DURABILITY: the state that does not name them is durable.
            self.log().settle()?;
            let removed = manifest.remove_waiting(is_begun, || self.next_number());
            self.held_bytes.store(manifest.waiting_bytes(), Relaxed);
            removed.map_err(|error| self.log().stop(error))?;
        }
        Ok(())
    }

    /// Replaces the version that readers take, and returns the old one.
    fn install(
        &self,
        order: &mut Order,
        flushed: Option<&Arc<Memtable>>,
        replaced: &[Replaced],
        logs: Arc<Logs>,
    ) -> Arc<Version> {
        let version = &order.version;
        let mut partitions = version.partitions.clone();
        if let Some(memtable) = flushed {
            partitions.retain(|&space, _| memtable.frozen().catalog.has(space));
        }
        for Replaced { space, old, new } in replaced {
            let all = partitions.entry(*space).or_default();
            if let Some(old) = old {
                all.retain(|partition| !Arc::ptr_eq(partition, old));
            }
            all.extend(new.iter().cloned());
            all.sort_by(|a, b| a.low.cmp(&b.low));
        }
        let is_flushed =
            |immutable: &Arc<Memtable>| flushed.is_some_and(|memtable| Arc::ptr_eq(immutable, memtable));
        partitions.retain(|_, partitions| !partitions.is_empty());
        let immutable =
            version.immutable.iter().filter(|immutable| !is_flushed(immutable)).cloned().collect();
        let mut version = version.with(version.memtable.clone(), immutable, partitions);
        version.logs = logs;
        self.set_version(order, version)
    }

    /// Removes the files that the manifest named `before` and no longer does, and the logs that are not needed any
    /// more.
    fn remove(&self, before: BTreeSet<Name>, manifest: &mut Manifest, old_floor: u64) -> Result<()> {
        let named: BTreeSet<Name> = manifest.state().files().collect();
        let logs = self.logs_to_remove(manifest, old_floor);
        let files = before.into_iter().filter(|name| !named.contains(name)).chain(logs);
        manifest.add_waiting(files);
        // A store that is being resumed removes them later.
        if self.log().check().is_ok() { self.remove_files(manifest) } else { Ok(()) }
    }
}

/// The first log that is still needed once `memtable`, the oldest immutable one, is in tables.
fn log_behind(version: &Version, memtable: &Arc<Memtable>) -> u64 {
    let newer = version.memtables().take_while(|other| !Arc::ptr_eq(other, memtable));
    newer.last().expect("the one that is written to is newer").log
}

/// The edits that bring the manifest up to date.
fn edits(manifest: &Manifest, flushed: Option<&Frozen>, replaced: &[Replaced], floor: u64) -> Vec<Edit> {
    let mut edits = vec![Edit::Floor { log: floor }];
    if let Some(Frozen { catalog, last }) = flushed {
        edits.push(Edit::Covered { sequence: *last });
        let known = &manifest.state().keyspaces;
        let ids: BTreeMap<u32, &str> =
            catalog.spaces.values().map(|space| (space.id, &*space.name)).collect();
        edits.extend(known.keys().filter(|id| !ids.contains_key(id)).map(|&id| Edit::NoKeyspace { id }));
        let made = ids.iter().filter(|(id, _)| !known.contains_key(id));
        edits.extend(made.map(|(&id, &name)| Edit::Keyspace { id, name: name.to_string() }));
        edits.push(Edit::Next { id: catalog.next });
    }
    for Replaced { space, old, new } in replaced {
        let is_replaced = |old: &Arc<Partition>| new.iter().any(|new| new.low == old.low);
        if let Some(old) = old.as_ref().filter(|old| !is_replaced(old)) {
            edits.push(Edit::NoPartition { space: *space, low: old.low.clone() });
        }
        for partition in new {
            let files = partition.files();
            edits.push(Edit::Partition {
                space: *space,
                low: partition.low.clone(),
                remix: files.remix,
                tables: files.tables,
            });
        }
    }
    edits
}
