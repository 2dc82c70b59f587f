//! Memtables become tables, and tables are merged: the work in the background, one bounded step at a time.
//!
//! A step takes the oldest immutable memtable and deals its pairs out to the partitions that they belong to. For each
//! partition that gets any, [`plan`] says what is cheapest:
//!
//! - *minor*: a table more, and the REMIX made from the old one without touching a value;
//! - *partial*: the new pairs and the newest tables become one table;
//! - *major*: all of it becomes new partitions of one table each;
//! - *append*: new pairs behind all that there are become partitions of their own.
//!
//! Where little is read, many tables stay, because that is cheapest to write; tables that are walked over again and
//! again are merged ([`Core::compact_worn`]), because one is quicker to read.
//!
//! The order on disk: tables and REMIXes are written and synced, their names are made durable, the manifest gets one
//! edit for all of it and is synced, the readers' version is replaced, and only then is anything removed. So at every
//! moment the manifest names files that are whole, and logs that hold all that is not in them.
//!
//! If there is no room for a table, what was made of it is removed, and the store refuses changes until a later try
//! succeeds; reads go on. If a step fails for any other reason, the store stops: what it takes would pile up in memory.
//! Nothing is lost either way, the logs have it.

mod plan;
mod rewrite;
#[cfg(test)]
mod tests;

use crate::catalog::Catalog;
use crate::core::Core;
use crate::disk::{self, Disk, Kind, Name};
use crate::manifest::{Edit, Manifest};
use crate::memtable::Memtable;
use crate::partition::Partition;
use crate::version::Version;
use forrest_base::lock;
use forrest_engine::{Error, ErrorKind, Result};
use rewrite::Replaced;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

/// A memtable is worth a table when it holds one part of so many of what it may.
const WORTH: usize = 8;

impl<D: Disk> Core<D> {
    /// Does a piece of the work that waits, if there is any; true if there was.
    ///
    /// # Errors
    /// What a write or a sync failed with; the store takes no more writes then.
    pub(crate) fn step(&self) -> Result<bool> {
        let mut manifest = lock(&self.manifest);
        let Some(memtable) = self.version().immutable.last().cloned() else { return Ok(false) };
        self.log().check()?;
        let flushed = self.flush(&mut manifest, &memtable);
        let is_full = matches!(&flushed, Err(error) if self.is_harmless(error));
        self.full.store(is_full, Relaxed);
        flushed.map(|()| true)
    }

    /// Whether an error leaves the store as it was.
    fn is_harmless(&self, error: &Error) -> bool {
        error.kind() == ErrorKind::OutOfSpace && self.log().check().is_ok()
    }

    /// What is done about an error before the manifest was touched: the tables that were made are removed, whose
    /// numbers are not below `first`.
    fn give_up(&self, first: u64, error: Error) -> Error {
        if !self.is_harmless(&error) {
            return self.log().stop(error);
        }
        // Whoever has the manifest is the only one that makes such files. To list them would take a descriptor. What is
        // not removed now is when the store is opened.
        for number in first..self.first_free_number() {
            for name in [Name::table(number), Name::remix(number)] {
                let _ = disk::unlink(&*self.disk, name);
            }
        }
        error
    }

    /// Makes all that is in memtables into tables. All changes made before are durable then.
    pub(crate) fn flush_all(&self) -> Result<()> {
        self.flush_if(|_, version| !version.memtable.spaces().is_empty())?;
        // What was immutable before a keyspace was dropped has just made tables for it.
        self.flush_if(|catalog, version| version.partitions.keys().any(|&space| !catalog.has(space)))?;
        // Keyspaces that were made or dropped are no reason for a table, and may be in the log only.
        self.sync()
    }

    /// Makes what is in memory into tables although there is room for more, if it is worth a table: nothing has been
    /// written for a while. Reads have one place less to look at then, and opening the store has less to replay.
    pub(crate) fn flush_early(&self) -> Result<()> {
        let least = self.builder.memtable_bytes / WORTH;
        self.flush_if(|_, version| version.memtable.bytes() > least)
    }

    /// Freezes the memtable if there is need to, and makes all immutable ones into tables.
    fn flush_if(&self, is_due: impl FnOnce(&Catalog, &Version<D>) -> bool) -> Result<()> {
        self.check_here()?;
        let mut order = self.order();
        self.log().check()?;
        if is_due(&order.catalog, &order.version) {
            self.freeze(&mut order)?;
        }
        drop(order);
        while self.step()? {}
        Ok(())
    }

    /// What is done at leisure, when no memtable waits: merges the tables of one partition that were walked over so
    /// much that it is worth it; true if there was one.
    pub(crate) fn compact_worn(&self) -> Result<bool> {
        let version = self.version();
        let is_worn = |partition: &&Arc<Partition<D>>| {
            if partition.walked() == 0 {
                return false;
            }
            let entries = partition.tables().iter().map(|table| u64::from(table.entries()));
            plan::is_worn(&entries.collect::<Vec<_>>(), partition.walked())
        };
        let worn = version.partitions.iter().find_map(|(&space, partitions)| {
            partitions.iter().find(is_worn).map(|partition| (space, partition.low.clone()))
        });
        drop(version);
        let Some((space, low)) = worn else { return Ok(false) };
        self.log().check()?;
        self.merge(|other, partition| {
            let is_worn = other == space && partition.low == low;
            if is_worn {
                // If it fails, it is not tried again before there is as much reason.
                partition.forget_walks();
            }
            is_worn
        })?;
        Ok(true)
    }

    /// Makes all that is in memory into tables, and merges the tables of each partition.
    pub(crate) fn compact(&self) -> Result<()> {
        self.flush_all()?;
        self.merge(|_, _| true)
    }

    /// Merges the tables of the partitions of keyspaces that `which` chooses, where there are several.
    fn merge(&self, which: impl Fn(u32, &Partition<D>) -> bool) -> Result<()> {
        let mut manifest = lock(&self.manifest);
        let version = self.version();
        let first = self.first_free_number();
        let mut replaced = Vec::new();
        for (&space, partitions) in &version.partitions {
            let chosen = partitions.iter().filter(|partition| which(space, partition));
            let merged = rewrite::merged(self, space, chosen).map_err(|error| self.give_up(first, error))?;
            replaced.extend(merged);
        }
        if replaced.is_empty() {
            return Ok(());
        }
        let floor = manifest.state().floor;
        self.replace(&mut manifest, None, &replaced, floor).map_err(|error| self.log().stop(error))
    }

    fn flush(&self, manifest: &mut Manifest<D>, memtable: &Arc<Memtable>) -> Result<()> {
        let catalog = memtable.catalog.get().expect("it is immutable").clone();
        let version = self.version();
        let first = self.first_free_number();
        let mut replaced = Vec::new();
        for space in memtable.spaces().into_iter().filter(|&space| catalog.has(space)) {
            let new = rewrite::space(self, &version, memtable, space);
            replaced.extend(new.map_err(|error| self.give_up(first, error))?);
        }
        let floor = log_behind(&version, memtable);
        self.replace(manifest, Some((memtable, &catalog)), &replaced, floor)
            .map_err(|error| self.log().stop(error))
    }

    /// Makes new partitions count in place of others, and of a memtable with the catalogue that goes with it.
    fn replace(
        &self,
        manifest: &mut Manifest<D>,
        flushed: Option<(&Arc<Memtable>, &Catalog)>,
        replaced: &[Replaced<D>],
        floor: u64,
    ) -> Result<()> {
        // DURABILITY: the names of the new files, before the manifest names them.
        disk::sync_directory(&*self.disk)?;
        let catalog = flushed.map(|(_, catalog)| catalog);
        let before: BTreeSet<Name> = manifest.state().files().collect();
        manifest.commit(edits(manifest, catalog, replaced, floor), || self.next_number())?;
        self.install(flushed, replaced);
        // DURABILITY: the manifest that no longer needs them is synced.
        self.log().close_before(floor);
        self.done();
        self.remove(before, manifest, floor);
        Ok(())
    }

    /// Replaces the version that readers take.
    fn install(&self, flushed: Option<(&Arc<Memtable>, &Catalog)>, replaced: &[Replaced<D>]) {
        let mut order = self.order();
        let version = &order.version;
        let mut partitions = version.partitions.clone();
        if let Some((_, catalog)) = flushed {
            partitions.retain(|&space, _| catalog.has(space));
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
            |immutable: &Arc<Memtable>| flushed.is_some_and(|(memtable, _)| Arc::ptr_eq(immutable, memtable));
        let immutable =
            version.immutable.iter().filter(|immutable| !is_flushed(immutable)).cloned().collect();
        let version =
            Version { origin: version.origin, memtable: version.memtable.clone(), immutable, partitions };
        let old = self.set_version(&mut order, version);
        drop(order);
        drop(old);
        self.parked.drop_old();
    }

    /// Removes the files that the manifest named `before` and no longer does, and the logs below the floor. One that
    /// cannot be removed now is when the store is opened.
    fn remove(&self, before: BTreeSet<Name>, manifest: &Manifest<D>, floor: u64) {
        let disk = &*self.disk;
        let named: BTreeSet<Name> = manifest.state().files().collect();
        let is_old_log = |name: &Name| name.kind == Kind::Log && name.number < floor;
        let logs = disk::list(disk).unwrap_or_default().into_iter().filter(is_old_log);
        for name in before.into_iter().filter(|name| !named.contains(name)).chain(logs) {
            let _ = disk::unlink(disk, name);
        }
    }
}

/// The first log that is needed once a immutable memtable, the oldest, is in tables.
fn log_behind<D: Disk>(version: &Version<D>, memtable: &Arc<Memtable>) -> u64 {
    let newer = version.memtables().take_while(|other| !Arc::ptr_eq(other, memtable));
    newer.last().expect("the one that is written to is newer").log
}

/// What the manifest has to be told.
fn edits<D: Disk>(
    manifest: &Manifest<D>,
    catalog: Option<&Catalog>,
    replaced: &[Replaced<D>],
    floor: u64,
) -> Vec<Edit> {
    let mut edits = vec![Edit::Floor { log: floor }];
    if let Some(catalog) = catalog {
        let known = &manifest.state().keyspaces;
        let ids: BTreeMap<u32, &str> =
            catalog.spaces.values().map(|space| (space.id, &*space.name)).collect();
        edits.extend(known.keys().filter(|id| !ids.contains_key(id)).map(|&id| Edit::NoKeyspace { id }));
        let made = ids.iter().filter(|(id, _)| !known.contains_key(id));
        edits.extend(made.map(|(&id, &name)| Edit::Keyspace { id, name: name.to_string() }));
        edits.push(Edit::Next { id: catalog.next });
    }
    for Replaced { space, old, new } in replaced {
        let is_replaced = |old: &Arc<Partition<D>>| new.iter().any(|new| new.low == old.low);
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
