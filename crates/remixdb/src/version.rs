//! [`Version`]: the parts of the store at one moment. It never changes; a new one replaces it.
//!
//! A reader takes one and needs no further coordination: replaced parts live until their last reader drops
//! them. A file whose name is removed stays readable while it is open.

use crate::disk::Hold;
use crate::memtable::Memtable;
use crate::operands::Operated;
use crate::partition::Partition;
use crate::values::Logs;
use forrest_machine::origin::Origin;
use std::collections::BTreeMap;
use std::slice;
use std::sync::Arc;

/// The partitions of each keyspace, by their least keys.
pub(crate) type Partitions = BTreeMap<u32, Vec<Arc<Partition>>>;

/// The memtables and the partitions of all keyspaces.
pub(crate) struct Version {
    /// The process that opened the store.
    pub(crate) origin: Origin,
    /// The memtable that takes writes.
    pub(crate) memtable: Arc<Memtable>,
    /// Those that wait to become tables, the newest first.
    pub(crate) immutable: Vec<Arc<Memtable>>,
    /// The partitions of each keyspace, by their least keys.
    pub(crate) partitions: Partitions,
    /// The logs that have values of the partitions.
    pub(crate) logs: Arc<Logs>,
    /// The operators that apply operands.
    pub(crate) operated: Arc<Operated>,
    /// Keeps their files, if another process may change the store.
    pub(crate) hold: Arc<Hold>,
}

impl Drop for Version {
    fn drop(&mut self) {
        if !self.origin.is_here() {
            // The rest belongs to the parent process, which may still read it.
            let (immutable, partitions) =
                (std::mem::take(&mut self.immutable), std::mem::take(&mut self.partitions));
            let (logs, operated) = (self.logs.clone(), self.operated.clone());
            std::mem::forget((
                self.memtable.clone(),
                immutable,
                partitions,
                logs,
                operated,
                self.hold.clone(),
            ));
        }
    }
}

impl Version {
    /// All memtables, the newest first.
    pub(crate) fn memtables(&self) -> impl Iterator<Item = &Arc<Memtable>> {
        slice::from_ref(&self.memtable).iter().chain(&self.immutable)
    }

    /// Bytes of the immutable memtables, about.
    pub(crate) fn immutable_bytes(&self) -> usize {
        self.immutable.iter().map(|memtable| memtable.bytes()).sum()
    }

    /// Whether a memtable has a key from `from` on that is inside of a range, or deletes a range that is.
    pub(crate) fn has_in_memory(
        &self,
        space: u32,
        from: &[u8],
        is_inside: impl Fn(&[u8]) -> bool + Copy,
    ) -> bool {
        self.memtables().any(|memtable| {
            memtable.ranges(space).is_some_and(|ranges| ranges.meets(from, is_inside))
                || memtable
                    .cursor(space)
                    .is_some_and(|mut cursor| cursor.seek(from) && cursor.key().is_some_and(is_inside))
        })
    }

    /// The partitions of a keyspace.
    pub(crate) fn partitions(&self, space: u32) -> &[Arc<Partition>] {
        self.partitions.get(&space).map_or(&[], Vec::as_slice)
    }

    /// All partitions, each with its keyspace.
    pub(crate) fn each(&self) -> impl Iterator<Item = (u32, &Arc<Partition>)> {
        self.partitions.iter().flat_map(|(&space, all)| all.iter().map(move |one| (space, one)))
    }

    /// The partition that a key belongs to; `None` if there is none.
    pub(crate) fn partition(&self, space: u32, key: &[u8]) -> Option<&Arc<Partition>> {
        let partitions = self.partitions(space);
        partitions[..partitions.partition_point(|partition| *partition.low <= *key)].last()
    }

    /// The same with a new memtable; the old one becomes immutable.
    pub(crate) fn with_memtable(&self, memtable: Memtable) -> Version {
        let immutable = self.memtables().cloned().collect();
        self.with_memtables(Arc::new(memtable), immutable)
    }

    /// The same with other memtables.
    pub(crate) fn with_memtables(&self, memtable: Arc<Memtable>, immutable: Vec<Arc<Memtable>>) -> Version {
        self.with(memtable, immutable, self.partitions.clone())
    }

    /// The same with other memtables and partitions.
    pub(crate) fn with(
        &self,
        memtable: Arc<Memtable>,
        immutable: Vec<Arc<Memtable>>,
        partitions: Partitions,
    ) -> Version {
        let (logs, hold, operated) = (self.logs.clone(), self.hold.clone(), self.operated.clone());
        Version { origin: self.origin, memtable, immutable, partitions, logs, operated, hold }
    }
}
