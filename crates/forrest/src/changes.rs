//! [`OptionChanges`]: options of an open store that are to be changed, for [`Db::set_options`](crate::Db::set_options).

use crate::builder::Sizes;
use forrest_engine::{Options, Result};
use std::time::Duration;

/// Options of an open store that are to be changed. Those that are not given stay as they are. Units, limits and
/// purpose are those of the options of [`Builder`](crate::Builder) with the same names.
///
/// ```
/// # let directory = tempfile::tempdir()?;
/// # let path = directory.path().join("forest");
/// # let path = path.to_str().unwrap();
/// use forrest::{Db, OptionChanges};
/// let db = Db::open(path)?;
/// db.set_options(&OptionChanges::new().cache_bytes(16 << 20).background_bytes_per_second(100 << 20))?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone, Default)]
pub struct OptionChanges {
    pub(crate) changes: forrest_engine::OptionChanges,
}

impl OptionChanges {
    /// No changes.
    pub fn new() -> OptionChanges {
        OptionChanges::default()
    }

    /// See [`Builder::batch_ops_max`](crate::Builder::batch_ops_max). On every home. Holds for batches that are written
    /// from now on.
    pub fn batch_ops_max(mut self, ops: usize) -> OptionChanges {
        self.changes.batch_ops_max = Some(ops);
        self
    }

    /// See [`Builder::batch_bytes_max`](crate::Builder::batch_bytes_max). On every home. Holds for batches that are
    /// written from now on.
    pub fn batch_bytes_max(mut self, bytes: usize) -> OptionChanges {
        self.changes.batch_bytes_max = Some(bytes);
        self
    }

    /// See [`Builder::memory_bytes`](crate::Builder::memory_bytes). A memtable size or cache size that was never given
    /// follows, the cache as far as that can grow. If those that were given take more together, it is the same error as
    /// at opening. The cache gives back what is too much before the call returns; memtables shrink with the next
    /// changes.
    pub fn memory_bytes(mut self, bytes: usize) -> OptionChanges {
        self.changes.memory_bytes = Some(bytes);
        self
    }

    /// See [`Builder::workers`](crate::Builder::workers). Threads beyond a lower number finish what they do.
    pub fn workers(mut self, threads: usize) -> OptionChanges {
        self.changes.workers = Some(threads);
        self
    }

    /// The changes of a store that was given these sizes, with those that follow, and the sizes that are given then.
    pub(crate) fn resolved(&self, given: Sizes) -> Result<(forrest_engine::OptionChanges, Sizes)> {
        let mut changes = self.changes.clone();
        let sizes = Sizes {
            memory_bytes: changes.memory_bytes.or(given.memory_bytes),
            memtable_bytes: changes.memtable_bytes.or(given.memtable_bytes),
            cache_bytes: changes.cache_bytes.or(given.cache_bytes),
        };
        let changes_sizes = changes.memory_bytes.or(changes.memtable_bytes).or(changes.cache_bytes).is_some();
        if sizes.memory_bytes.is_some() && changes_sizes {
            let mut options = Options::default();
            sizes.resolve(&mut options);
            options.check()?;
            if changes.memory_bytes.is_some() {
                changes.memtable_bytes = Some(options.memtable_bytes);
                changes.cache_bytes = Some(options.cache_bytes);
                changes.cache_at_most = sizes.cache_bytes.is_none();
            }
        }
        Ok((changes, sizes))
    }

    /// See [`Builder::memtable_bytes`](crate::Builder::memtable_bytes). A memtable that has more becomes immutable with
    /// the next change. If all together have more than three times this, changes wait until tables are written.
    pub fn memtable_bytes(mut self, bytes: usize) -> OptionChanges {
        self.changes.memtable_bytes = Some(bytes);
        self
    }

    /// See [`Builder::cache_bytes`](crate::Builder::cache_bytes). If this is less, pages are evicted before the call
    /// returns. Their memory goes back to the system in steps, except a page that an iteration reads, which
    /// keeps its step (2 MiB or 1/1000) until it is dropped. Limit: four times what the store was opened
    /// with, at most 1,000 MiB, but never less than what it was opened with; a cache of less than 2 MiB cannot grow.
    pub fn cache_bytes(mut self, bytes: usize) -> OptionChanges {
        self.changes.cache_bytes = Some(bytes);
        self
    }

    /// See [`Builder::table_bytes`](crate::Builder::table_bytes). Holds for the next tables; existing ones change when
    /// they are merged.
    pub fn table_bytes(mut self, bytes: u64) -> OptionChanges {
        self.changes.table_bytes = Some(bytes);
        self
    }

    /// See [`Builder::open_files`](crate::Builder::open_files). If this is less, files are closed before the call
    /// returns, except those that are being read.
    pub fn open_files(mut self, files: usize) -> OptionChanges {
        self.changes.open_files = Some(files);
        self
    }

    /// See [`Builder::background_bytes_per_second`](crate::Builder::background_bytes_per_second). `None` ends the
    /// limit. Holds at once, also for tables that are being written.
    pub fn background_bytes_per_second(mut self, bytes: impl Into<Option<u64>>) -> OptionChanges {
        self.changes.background_bytes_per_second = Some(bytes.into());
        self
    }

    /// See [`Builder::wait`](crate::Builder::wait). Changes that wait already do so as long as was set before.
    pub fn wait(mut self, wait: Duration) -> OptionChanges {
        self.changes.wait = Some(wait);
        self
    }
}
