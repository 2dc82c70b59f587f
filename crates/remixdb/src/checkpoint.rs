//! A copy of an open store, as it was at one instant, in another directory.
//!
//! It begins with a snapshot: one instant, which whoever writes waits for no longer than for another change. What that
//! consists of is then put into the directory while the store goes on:
//!
//! - The tables and REMIXes, as they are. They never change, so the two stores have the same files, under the same
//!   names and numbers, where the file system can do that; otherwise copies. They are held, so that they can be read
//!   although the store may meanwhile have merged them and removed their names. A REMIX whose name is gone is left out:
//!   it can be made from its tables.
//! - What is in memtables, as logs, one for each. These are files of the checkpoint's own: a log is still written to.
//! - A manifest, which comes last. Without it the directory is no store.
//!
//! All of it is durable when this returns. Nothing of the store is changed or waited for, but for reading: one that has
//! stopped, or that has no room, can be copied too.
//!
//! What it does not do: make the directory, and see to it that nobody takes a half of it for the whole. That is
//! disk/unfinished.rs.

use crate::catalog::Catalog;
use crate::core::Handle;
use crate::disk::{self, Disk, Name};
use crate::manifest::{Manifest, State};
use crate::memtable;
use crate::table::Table;
use crate::version::Version;
use crate::wal::{Change, End, Head, Log};
use forrest_engine::Durability;
use forrest_engine::Result;
use std::sync::Arc;

/// The files that a checkpoint has in common with its store.
struct Shared<D: Disk> {
    tables: Vec<Arc<Table<D>>>,
    remixes: Vec<(Name, D::File)>,
}

impl<D: Disk> Handle<D> {
    /// Copies the store as it is into an empty directory, while it goes on.
    ///
    /// # Errors
    /// `Io`, `OutOfSpace`. What the directory holds then is no store.
    pub(crate) fn checkpoint(&self, into: D) -> Result<()> {
        let into = Arc::new(into);
        let snapshot = self.snapshot()?;
        let (version, catalog, sequence) = snapshot.parts();
        let (mut state, shared) = shared(self.disk(), version, catalog)?;
        let greatest = shared.tables.iter().map(|table| table.name().number);
        let greatest = greatest.chain(shared.remixes.iter().map(|(name, _)| name.number)).max();
        state.floor = greatest.unwrap_or(0) + 1;
        let last = log(version, catalog, sequence, &into, state.floor)?;
        // From here on the store keeps nothing for it but names of files.
        drop(snapshot);
        for table in shared.tables {
            disk::share(self.disk(), table.file(), table.name(), &*into)?;
        }
        for (name, file) in shared.remixes {
            disk::share(self.disk(), &file, name, &*into)?;
        }
        // DURABILITY: it makes the names durable before it says that it is there.
        Manifest::create(&into, last + 1, state).map(drop)
    }
}

/// The files of what is in tables, held, and what a manifest says of them.
fn shared<D: Disk>(disk: &D, version: &Version<D>, catalog: &Catalog) -> Result<(State, Shared<D>)> {
    let keyspaces = catalog.spaces.values().map(|space| (space.id, space.name.to_string())).collect();
    let mut state = State { keyspaces, next: catalog.next, ..State::default() };
    let mut shared = Shared { tables: Vec::new(), remixes: Vec::new() };
    for (&space, partitions) in version.partitions.iter().filter(|(space, _)| catalog.has(**space)) {
        let of_space = state.partitions.entry(space).or_default();
        for partition in partitions {
            let mut files = partition.files();
            if files.remix != 0 {
                let name = Name::remix(files.remix);
                match disk::open_if_there(disk, name)? {
                    Some(file) => shared.remixes.push((name, file)),
                    None => files.remix = 0,
                }
            }
            shared.tables.extend(partition.tables().iter().cloned());
            of_space.insert(partition.low.clone(), files);
        }
    }
    Ok((state, shared))
}

/// Writes what a snapshot sees in memtables to logs, of which the first has this number; the number of the last one.
fn log<D: Disk>(
    version: &Version<D>,
    catalog: &Catalog,
    read_at: u64,
    into: &Arc<D>,
    mut number: u64,
) -> Result<u64> {
    let log =
        Log::create(into, number, Head { before: End::default(), synced: 0, first: 1, is_first: false })?;
    let mut memtables: Vec<_> = version.memtables().collect();
    memtables.reverse();
    let mut last = 0;
    for (at, memtable) in memtables.into_iter().enumerate() {
        if at > 0 {
            number += 1;
            log.rotate(number)?;
        }
        for space in memtable.spaces().into_iter().filter(|&space| catalog.has(space)) {
            let Some(mut pairs) = memtable.cursor(space) else { continue };
            let mut is_there = pairs.seek(&[]);
            while is_there && let (Some(key), Some(versions)) = (pairs.key(), pairs.value_bytes()) {
                let change = memtable::past(versions, read_at).map(|said| match said {
                    Some(value) => Change::Put { space, key, value },
                    None => Change::Delete { space, key },
                });
                if let Some(change) = change {
                    log.queue(1, |out| change.put(out));
                    last += 1;
                    log.commit(last, Durability::Memory)?;
                }
                is_there = pairs.next();
            }
        }
    }
    log.commit(last, Durability::Sync)?;
    Ok(number)
}
