//! [`Group`]: a group that is open. `Shared`: what all groups of a store have in common. And their errors.

use crate::checkpoint::{self, Checkpoint};
use crate::format::{self, Field};
use crate::types::LogId;
use forrest::asynchronous::Syncer;
use forrest::{Db, Error, ErrorKind, Keyspace, Result, View, WriteOptions};
use std::collections::BTreeSet;
use std::fmt;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// What all groups of a store share.
pub(crate) struct Shared {
    pub(crate) db: Db,
    pub(crate) log: Keyspace,
    pub(crate) meta: Keyspace,
    pub(crate) sessions: Keyspace,
    /// `None`: a caller that needs a sync makes it itself.
    pub(crate) syncer: Option<Syncer>,
    /// Where checkpoints are, for snapshots.
    pub(crate) checkpoints: Option<PathBuf>,
    /// The groups that are open.
    pub(crate) open: Mutex<BTreeSet<u64>>,
    /// For what a sync follows, or needs none: it may wait in memory until the next write that does not.
    pub(crate) relaxed: WriteOptions,
    /// For what is to survive the death of the process.
    pub(crate) ordinary: WriteOptions,
}

impl Shared {
    pub(crate) fn check_format(&self) -> Result<()> {
        match self.meta.get(format::FORMAT)? {
            None => self.meta.set(format::FORMAT, format::VERSION.to_be_bytes()),
            Some(version) if version == format::VERSION.to_be_bytes() => Ok(()),
            Some(version) => Err(Error::unsupported(format!(
                "groups in the format {:?}; this build reads {:?}: open the store with the release that wrote it",
                &version[..],
                format::VERSION.to_be_bytes()
            ))),
        }
    }

    /// Removes data that no group uses: those of snapshots that were not installed, or are replaced, and of groups of
    /// which nothing else is left.
    pub(crate) fn clean(&self) -> Result<()> {
        for name in self.db.keyspaces()? {
            let Some((group, generation)) = format::data_of(&name) else { continue };
            if applied(&self.meta, group)?.0 != generation || self.is_removed(group)? {
                self.forget(group, generation)?;
            }
        }
        Ok(())
    }

    /// Whether a group has neither log nor vote nor anything else but data: it is new, or was removed.
    fn is_removed(&self, group: u64) -> Result<bool> {
        let mut keys = [&self.meta, &self.log].map(|keyspace| keyspace.prefix(group.to_be_bytes()));
        for keys in &mut keys {
            if keys.next().transpose()?.is_some() {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Removes a generation of a group's data.
    pub(crate) fn forget(&self, group: u64, generation: u64) -> Result<()> {
        let start = format::sessions_key(group, generation);
        let end = forrest::prefix_end(&start);
        self.sessions.apply(forrest::Op::DeleteRange { start: &start[..], end: end.as_deref() })?;
        self.db.drop_keyspace(&format::data_name(group, generation))?;
        Ok(())
    }

    /// Waits until everything written before survives power loss.
    pub(crate) async fn synced(&self) -> Result<()> {
        match &self.syncer {
            Some(syncer) => syncer.synced().await,
            None => self.db.sync(),
        }
    }

    /// Whether long work should leave the threads of the runtime.
    pub(crate) fn may_spawn(&self) -> bool {
        self.syncer.is_some()
    }

    fn open_groups(&self) -> MutexGuard<'_, BTreeSet<u64>> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The directory of checkpoints of a group.
    pub(crate) fn checkpoints_of(&self, group: u64) -> Option<PathBuf> {
        self.checkpoints.as_deref().map(|path: &Path| path.join(format!("{group:016x}")))
    }
}

/// The generation of a group's data and the entry last applied to it.
pub(crate) fn applied(meta: &View, group: u64) -> Result<(u64, Option<LogId>)> {
    let bytes = meta.get(format::meta_key(group, Field::Applied))?;
    bytes.map_or(Ok((0, None)), |bytes| {
        format::applied_of(&bytes).map_err(|error| at(group, "the applied entry", error))
    })
}

/// The same error, with the place.
#[cold]
pub(crate) fn at(group: u64, what: &str, error: Error) -> Error {
    Error::new(error.kind(), format!("{what} of group {group}: {}", error.message()))
}

/// The error for openraft: what failed, of which group, and why.
#[cold]
pub(crate) fn failed(group: u64, what: impl fmt::Display, error: &Error) -> io::Error {
    let kind = match error.kind() {
        ErrorKind::Corrupt => io::ErrorKind::InvalidData,
        ErrorKind::OutOfSpace => io::ErrorKind::StorageFull,
        ErrorKind::InvalidArgument | ErrorKind::Limit => io::ErrorKind::InvalidInput,
        ErrorKind::Unsupported => io::ErrorKind::Unsupported,
        _ => io::ErrorKind::Other,
    };
    io::Error::new(kind, format!("group {group}: {what}: {error}"))
}

/// A group that is open. There is one for each.
pub(crate) struct Group {
    pub(crate) shared: Arc<Shared>,
    pub(crate) id: u64,
    /// The generation of the next snapshot that is received.
    generation: AtomicU64,
    /// The newest checkpoint, if snapshots are checkpoints.
    pub(crate) checkpoint: Mutex<Option<Arc<Checkpoint>>>,
}

impl Group {
    pub(crate) fn open(shared: &Arc<Shared>, id: u64) -> Result<Arc<Group>> {
        if !shared.open_groups().insert(id) {
            return Err(Error::new(
                ErrorKind::Busy,
                format!("group {id} is open already; drop its log and its state machine first"),
            ));
        }
        // From here on, dropping it gives the id back.
        let (generation, checkpoint) = Default::default();
        let group = Group { shared: Arc::clone(shared), id, generation, checkpoint };
        let (current, last) = applied(&shared.meta, id)?;
        shared.db.keyspace(&format::data_name(id, current))?;
        // ORDERING: nobody else has it yet.
        group.generation.store(current, Relaxed);
        if let Some(directory) = shared.checkpoints_of(id) {
            // Without an applied entry it has none. One that is found is of a group that was removed.
            let checkpoint = match last {
                Some(_) => Checkpoint::newest(&directory),
                None => checkpoint::remove_group(&directory).map(|()| None),
            };
            *group.checkpoint() = checkpoint?;
        }
        Ok(Arc::new(group))
    }

    /// A generation that no data has.
    pub(crate) fn new_generation(&self) -> u64 {
        // ORDERING: the number stands for itself.
        self.generation.fetch_add(1, Relaxed) + 1
    }

    pub(crate) fn checkpoint(&self) -> MutexGuard<'_, Option<Arc<Checkpoint>>> {
        self.checkpoint.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The newest checkpoint, unless it was given up.
    pub(crate) fn newest_checkpoint(&self) -> Option<Arc<Checkpoint>> {
        let mut checkpoint = self.checkpoint();
        *checkpoint = checkpoint.take().filter(|checkpoint| !checkpoint.is_old());
        checkpoint.clone()
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        self.shared.open_groups().remove(&self.id);
    }
}
