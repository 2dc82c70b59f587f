//! A copy of an open store, as it was at one instant, in another directory.
//!
//! It begins with a snapshot: one instant, which delays writers no longer than another change does. The
//! snapshot's parts are then put into the directory while the store goes on:
//!
//! - The tables and REMIXes, unchanged. They are immutable, so the two stores share the files, under the same
//!   names and numbers, if the file system can link them; otherwise the checkpoint copies them. It holds them
//!   open, so that it can read them even if the store has merged them and removed their names. A REMIX whose
//!   name is gone is left out: it can be rebuilt from its tables.
//! - The logs that are kept for values in them, in the same way: nothing is written to them any more.
//! - The content of memtables, one log for each. These are files of the checkpoint alone, because the store
//!   still writes to its own log.
//! - A manifest, which is written last. Without it the directory is not a store.
//!
//! All of it is durable when the call returns. A checkpoint never writes to the store. So a store that has
//! stopped, or that is out of space, can be copied too.
//!
//! disk/unfinished.rs makes the directory, and ensures that an incomplete checkpoint is never taken for a
//! complete one.

use crate::catalog::Catalog;
use crate::core::Handle;
use crate::disk::{self, Disk, Kind, Name, Sealed, SealedFile};
use crate::manifest::{Manifest, ManifestState};
use crate::memtable;
use crate::table::Table;
use crate::values::Kept;
use crate::version::Version;
use crate::wal::{Change, End, Head, Log};
use crate::wrapped;
use forrest_engine::Durability;
use forrest_engine::Result;
use std::sync::Arc;

/// The files that a checkpoint has in common with its store.
pub(crate) struct Shared {
    pub(crate) tables: Vec<Arc<Table>>,
    pub(crate) remixes: Vec<(Name, SealedFile)>,
    /// The logs that have values of the tables.
    pub(crate) logs: Vec<Arc<Kept>>,
}

impl Handle {
    /// Copies the store as it is into an empty directory, while it goes on.
    ///
    /// # Errors
    /// `Corrupt` if a table is missing or cannot be opened; `Io`, `OutOfSpace`. The directory is then not a store.
    pub(crate) fn checkpoint(&self, into: Sealed) -> Result<()> {
        let into = Arc::new(into);
        let snapshot = self.snapshot()?;
        let (version, catalog, sequence) = snapshot.parts();
        let (mut state, shared) = shared(self.disk(), version, catalog)?;
        let greatest = shared.tables.iter().map(|table| table.name().number);
        let greatest = greatest.chain(shared.remixes.iter().map(|(name, _)| name.number));
        let greatest = greatest.chain(shared.logs.iter().map(|log| log.number)).max();
        state.floor = greatest.unwrap_or(0) + 1;
        into.part(state.floor)?;
        let end = log(version, catalog, sequence, &into, state.floor)?;
        state.whole = (end.number, end.offset);
        // If another process changes the store, the names stay until the files are shared.
        let _hold = version.hold.clone();
        // From here on the store keeps nothing for the checkpoint but files.
        drop(snapshot);
        for table in shared.tables {
            disk::share(self.disk(), table.file(), table.name(), &*into)?;
        }
        for (name, file) in shared.remixes {
            disk::share(self.disk(), &file, name, &*into)?;
        }
        for log in shared.logs {
            disk::share(self.disk(), log.file()?, log.name(), &*into)?;
        }
        // DURABILITY: the names of the logs, too, are durable before a manifest names them.
        disk::sync_directory(&*into, Kind::Log)?;
        // DURABILITY: `create` syncs the directory, and with it the names of all files.
        Manifest::create(&into, end.number + 1, state).map(drop)
    }
}

/// The files of tables and REMIXes, held open, and the state of the manifest that names them.
pub(crate) fn shared(disk: &Sealed, version: &Version, catalog: &Catalog) -> Result<(ManifestState, Shared)> {
    let keyspaces = catalog.spaces.values().map(|space| (space.id, space.name.to_string())).collect();
    let chosen = catalog.spaces.values().filter_map(|space| Some((space.id, space.chosen()?)));
    let compression = chosen.collect();
    let named =
        catalog.spaces.values().filter_map(|space| Some((space.id, space.operator()?.name().to_string())));
    let operators = named.collect();
    let ttls = catalog.spaces.values().filter_map(|space| Some((space.id, space.ttl_ms()?))).collect();
    let mut state = ManifestState {
        keyspaces,
        compression,
        operators,
        ttls,
        next: catalog.next,
        has_operands: version.operated.are_stored(),
        ..ManifestState::default()
    };
    let logs: Vec<_> = version.logs.values().cloned().collect();
    for log in &logs {
        log.file()?;
        state.logs.insert(log.number, log.bytes);
    }
    let mut shared = Shared { tables: Vec::new(), remixes: Vec::new(), logs };
    for (&space, partitions) in version.partitions.iter().filter(|(space, _)| catalog.has(**space)) {
        let of_space = state.partitions.entry(space).or_default();
        for partition in partitions {
            if let Some(lost) = partition.lost().first() {
                return Err(lost.error());
            }
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

/// Writes what a snapshot sees in memtables to logs, the first with this number; the end of the last one.
pub(crate) fn log(
    version: &Version,
    catalog: &Catalog,
    read_at: u64,
    into: &Arc<Sealed>,
    mut number: u64,
) -> Result<End> {
    let head = Head {
        before: End::default(),
        synced: 0,
        first: 1,
        is_first: false,
        has_history: false,
        is_old: false,
    };
    let log = Log::create(into, number, head)?;
    let mut memtables: Vec<_> = version.memtables().collect();
    memtables.reverse();
    let mut last = 0;
    for (at, memtable) in memtables.into_iter().enumerate() {
        if at > 0 {
            number += 1;
            log.rotate(number)?;
        }
        for space in memtable.spaces().into_iter().filter(|&space| catalog.has(space)) {
            let mut queue = |change: Change<'_>| {
                log.queue(1, |out| change.put(out));
                last += 1;
                log.commit(last, Durability::Memory)
            };
            // What the ranges hide is left out, so they come first.
            let ranges = memtable.ranges(space).unwrap_or_default();
            for range in ranges.up_to(read_at) {
                queue(Change::DeleteRange { space, start: &range.start, end: range.end.as_deref() })?;
            }
            let Some(mut pairs) = memtable.cursor(space) else { continue };
            let mut is_there = pairs.seek(&[]);
            while is_there && let (Some(key), Some(versions)) = (pairs.key(), pairs.value_bytes()) {
                let seen = memtable::past(versions, read_at);
                let seen = seen.filter(|(sequence, _)| !ranges.hides(key, *sequence, read_at));
                if let Some((_, said)) = seen {
                    wrapped::without_place(said, |said| queue(Change::of_entry(space, key, said)))?;
                }
                is_there = pairs.next();
            }
        }
    }
    log.commit(last, Durability::Sync)?;
    Ok(End { number, offset: log.at_end(|_, end| end) })
}
