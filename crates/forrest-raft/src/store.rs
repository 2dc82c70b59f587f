//! [`Store`]: a Forrest store that has the logs and the data of many groups.
//!
//! All groups of a node share one store, and so one log on the device. Its order is that of all changes of all groups:
//! after a crash the store has the state after some prefix of it. So an entry that was applied is never without its
//! place in the log, a purge never without what made it possible, and one sync serves all groups that wait.

use crate::checkpoint;
use crate::format;
use crate::group::{Group, Shared};
use crate::log::Log;
use crate::state::State;
use forrest::asynchronous::Syncer;
use forrest::{Capability, Db, Durability, Error, ErrorKind, Result, WriteBatch, WriteOptions};
use std::collections::BTreeSet;
use std::fmt;
use std::path::PathBuf;
use std::sync::{Arc, Mutex};

/// A store with the logs and the data of many groups. A clone is another handle to it.
///
/// ```
/// use forrest::Db;
/// use forrest_raft::Store;
///
/// let store = Store::open(Db::open("memory:")?)?;
/// let (log, state) = store.group(1)?; // for openraft::Raft::new
/// # drop((log, state));
/// # Ok::<(), forrest::Error>(())
/// ```
#[derive(Clone)]
pub struct Store(Arc<Shared>);

impl Store {
    /// Makes a store of a [`Db`]. Nothing else may write to that from then on. A snapshot of a group is its present
    /// state; the `Db` keeps replaced values while one is sent.
    ///
    /// A thread syncs for all groups. Futures wait for it, and no thread of the runtime does.
    ///
    /// What an installation of a snapshot has left in a crash is removed. Keep batches of the `Db` at their default
    /// limits or above: a command of up to [`MAX_COMMAND_BYTES`](crate::MAX_COMMAND_BYTES) and
    /// [`MAX_COMMAND_OPS`](crate::MAX_COMMAND_OPS) is one batch.
    ///
    /// # Errors
    /// `Unsupported` for a home without snapshots (the kernel), and for a store of another version of this format;
    /// others as those of [`Db::write`].
    pub fn open(db: Db) -> Result<Store> {
        let syncer = syncer(&db)?;
        Store::with(db, syncer, None)
    }

    /// Like [`open`](Store::open), with snapshots that are checkpoints below `directory`, which is created if missing
    /// and should be on the same file system. A checkpoint outlives the process, and the `Db` keeps no replaced values
    /// for it. It is open, and takes memory, only while a snapshot is read from it. If it cannot be opened or read, it
    /// is removed, and the present data take its place: also after [`Db::rotate_key`](forrest::Db::rotate_key), which
    /// older checkpoints are not opened with.
    ///
    /// A checkpoint is made in time in proportion to what is in memory. It has all groups of the store, of which a
    /// snapshot shows one, and shares the tables (hard links). These stay on disk as long as the checkpoint: each group
    /// keeps its newest one until it makes the next one or is removed. So a group in which nothing changes keeps the
    /// tables of all groups as they were at its last snapshot. With many groups that differ in how often they change,
    /// this can take several times the space of the data; [`open`](Store::open) takes none.
    ///
    /// # Errors
    /// As [`open`](Store::open), and `Io`.
    pub fn with_checkpoints(db: Db, directory: impl Into<PathBuf>) -> Result<Store> {
        let directory = directory.into();
        std::fs::create_dir_all(&directory).map_err(|error| {
            Error::new(ErrorKind::Io, format!("creating {}: {error}", directory.display()))
        })?;
        let syncer = syncer(&db)?;
        Store::with(db, syncer, Some(directory))
    }

    /// Like [`open`](Store::open), without a thread: each append and vote syncs in the call itself, and blocks its
    /// thread of the runtime meanwhile. For tests that must be the same each time.
    ///
    /// # Errors
    /// As [`open`](Store::open).
    pub fn open_inline(db: Db) -> Result<Store> {
        Store::with(db, None, None)
    }

    pub(crate) fn with(db: Db, syncer: Option<Syncer>, checkpoints: Option<PathBuf>) -> Result<Store> {
        if !db.capabilities().has(Capability::Snapshots) {
            return Err(Error::unsupported(format!(
                "groups in the home \"{}\": they need snapshots, which it does not have",
                db.capabilities().home()
            )));
        }
        let (log, meta) = (db.keyspace(format::LOG)?, db.keyspace(format::META)?);
        let sessions = db.keyspace(format::SESSIONS)?;
        let level = |durability| {
            let has_it = db.capabilities().has(Capability::Sync);
            if has_it { WriteOptions::new().durability(durability) } else { WriteOptions::new() }
        };
        let (relaxed, ordinary) = (level(Durability::Memory), level(Durability::Buffered));
        let open = Mutex::default();
        let shared = Shared { log, meta, sessions, syncer, checkpoints, open, relaxed, ordinary, db };
        shared.check_format()?;
        shared.clean()?;
        Ok(Store(Arc::new(shared)))
    }

    /// The log and the state machine of a group, for [`openraft::Raft::new`]. The group is created if missing. At most
    /// about 2,000 groups fit into a store, because each has a keyspace, and for a while two.
    ///
    /// # Errors
    /// `Busy` while the group is open; `Corrupt`.
    pub fn group(&self, id: u64) -> Result<(Log, State)> {
        let group = Group::open(&self.0, id)?;
        Ok((Log::new(Arc::clone(&group))?, State::new(group)?))
    }

    /// The groups that have a log or data, in ascending order.
    ///
    /// # Errors
    /// `Io`, `Corrupt`.
    pub fn groups(&self) -> Result<Vec<u64>> {
        let names = self.0.db.keyspaces()?;
        let groups: BTreeSet<u64> = names.iter().filter_map(|name| Some(format::data_of(name)?.0)).collect();
        Ok(groups.into_iter().collect())
    }

    /// Removes all of a group, durably, with its checkpoints. A crash or an error leaves all of the group or nothing,
    /// but perhaps no checkpoint. Only a node that was removed from the membership may do this: a member that
    /// comes back without its vote and log could elect a leader that lacks committed entries.
    ///
    /// # Errors
    /// `Busy` while the group is open; `Io`, `Corrupt`, `Stopped`.
    pub fn remove(&self, id: u64) -> Result<()> {
        let group = Group::open(&self.0, id)?;
        // Before the group: checkpoints of a group that is not there count for another one of the same number.
        drop(group.checkpoint().take());
        self.0.checkpoints_of(id).map_or(Ok(()), |directory| checkpoint::remove_group(&directory))?;
        let mut names = self.0.db.keyspaces()?;
        names.retain(|name| format::data_of(name).is_some_and(|(of, _)| of == id));
        // DURABILITY: one batch has the end of the group. What is left of it after that is empty, and dropped now or
        // when the store is opened.
        let mut batch = WriteBatch::new();
        for keyspace in [&self.0.log, &self.0.meta, &self.0.sessions] {
            batch.on(keyspace).push(delete_group(id).borrowed());
        }
        for name in &names {
            batch.on(&self.0.db.keyspace(name)?).delete_range(..);
        }
        self.0.db.write_with(&batch, &self.0.relaxed)?;
        for name in &names {
            self.0.db.drop_keyspace(name)?;
        }
        self.0.db.sync()?;
        drop(group);
        Ok(())
    }

    /// The store itself, for statistics, metrics, backups and the like. Do not write to it.
    pub fn db(&self) -> &Db {
        &self.0.db
    }
}

/// The thread that syncs for all groups; `None` if the home needs no syncs.
fn syncer(db: &Db) -> Result<Option<Syncer>> {
    db.capabilities().has(Capability::Sync).then(|| Syncer::new(db)).transpose()
}

/// Deletes the keys of a group.
fn delete_group(id: u64) -> forrest::Op {
    forrest::Op::DeleteRange {
        start: id.to_be_bytes().to_vec(),
        end: id.checked_add(1).map(|next| next.to_be_bytes().to_vec()),
    }
}

impl fmt::Debug for Store {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Store").finish_non_exhaustive()
    }
}
