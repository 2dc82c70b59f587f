//! Going on after a failure that has stopped the store, without opening it again.
//!
//! Nothing that failed is tried again on the same file. A failed sync may have dropped data that later syncs report as
//! stored, so neither the logs nor the manifest count any more, beyond what was known to be synced. But the memtables
//! have every change that was accepted and is in no table. So:
//!
//! 1. Once no change is under way, the memtable becomes immutable. No new change is accepted.
//! 2. A new manifest begins with the last state that was committed, and is synced. If the failed one has an edit that
//!    was not committed, it does not count any more.
//! 3. A new log is made, which takes no record yet. A recovery from here on takes the log before it for torn, and finds
//!    what was synced.
//! 4. All memtables become tables, the oldest first. The last commit states the new log as the first that is needed.
//! 5. From then on, changes are accepted, in the new log.
//!
//! So all changes that reads show are durable when this returns, also those whose calls have failed. If it fails, the
//! store is stopped as before, and can be resumed later.
//!
//! If memory ran out in the middle of a batch, the memtable has a part of it, which nobody sees. The rest is applied
//! first, so that the batch is whole.
//!
//! Not here: a store that failed before its first change, because what was read may be on the device in part only.

use crate::core::{Core, Order};
use crate::disk::{self, Kind, Name};
use crate::memtable::{Memtable, Unapplied};
use crate::wanted::Wanted;
use crate::wrapped::Entry;
use forrest_base::lock;
use forrest_engine::{Error, ErrorKind, Result};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

fn refused(why: &str) -> Error {
    Error::new(ErrorKind::Stopped, format!("the store cannot be resumed: {why}; open it again"))
}

impl Core {
    /// See the head of the file.
    pub(crate) fn resume(&self) -> Result<()> {
        self.check_writable()?;
        // Background work that is under way fails first.
        let mut manifest = lock(&self.manifest);
        if self.log().check().is_ok() {
            return Ok(());
        }
        if !self.log().is_settled() {
            return Err(refused("it failed before its first change, and what was read may not be durable"));
        }
        let number = self.next_number();
        self.set_aside(number)?;
        // DURABILITY: from here on, the last committed state counts, whatever the failed manifest has.
        manifest.renew(self.next_number())?;
        // Files that were not committed take space. Who reads the failed manifest may see them. Where a table is lost,
        // an edit that named them may be too.
        if !self.has_lost() {
            let named: BTreeSet<Name> = manifest.state().files().collect();
            let listed = disk::list(self.disk())?;
            // Afterwards: an ingest notes the number of a file before it makes the file.
            let ingested = lock(&self.ingested).clone();
            let is_left = |name: &Name| {
                let is_file = matches!(name.kind, Kind::Table | Kind::Remix);
                is_file && !named.contains(name) && !ingested.contains(&name.number)
            };
            manifest.add_waiting(listed.into_iter().filter(is_left));
            manifest.remove_waiting(false, || self.next_number())?;
        }
        let log = self.log().begin_after_failure(number)?;
        // ORDERING: it is for this thread.
        self.is_resuming.store(true, Relaxed);
        let flushed: Result<()> = (|| {
            while let Some(memtable) = self.version().immutable.last().cloned() {
                // DURABILITY: in their order, so that each commit covers a beginning of the changes.
                self.make_tables(&mut manifest, None, &memtable)?;
            }
            Ok(())
        })();
        self.is_resuming.store(false, Relaxed);
        flushed?;
        let order = self.order();
        self.log().restart(log);
        self.note_names();
        drop(order);
        drop(manifest);
        self.call_for_work();
        Ok(())
    }

    /// Completes a batch for which memory ran out. All of it is visible then.
    fn apply_rest(&self, order: &mut Order) -> Result<()> {
        let mut rest = lock(&self.unapplied);
        if rest.is_empty() {
            return Ok(());
        }
        let Order { version, scratch, sequence } = order;
        let (kept, nobody) = (self.readers.kept(), BTreeMap::new());
        let wanted = Wanted { visible: self.visible(), snapshots: kept.as_deref().unwrap_or(&nobody) };
        for Unapplied { space, key, sequence, kind, bytes } in rest.iter() {
            version.memtable.set(*space, key, *sequence, Entry::new(*kind, bytes), &wanted, scratch)?;
        }
        // Scans that began since may remember that there are no such keys.
        self.gaps.cut(rest.iter().map(|change| (change.space, &change.key[..])));
        self.readers.show(*sequence);
        self.readers.apply(*sequence);
        rest.clear();
        Ok(())
    }

    /// Makes the memtable immutable, and sets an empty one in its place, whose log has this number.
    fn set_aside(&self, number: u64) -> Result<()> {
        let mut order = self.order();
        self.apply_rest(&mut order)?;
        let empty = Memtable::new(&self.options(), self.shared.memory.spare(), number, 0)?;
        let version = &order.version;
        let (last, old) = (order.sequence, &version.memtable);
        let is_covered = version.immutable.first().is_some_and(|newest| newest.frozen().last == last);
        let version = if is_covered && old.spaces().is_empty() {
            // An earlier try has set it there.
            version.with_memtables(Arc::new(empty), version.immutable.clone())
        } else {
            old.freeze(self.catalog(), last);
            version.with_memtable(empty)
        };
        // Dropping the old version closes no files, because the new one has all of them.
        let _ = self.set_version(&mut order, version);
        Ok(())
    }
}
