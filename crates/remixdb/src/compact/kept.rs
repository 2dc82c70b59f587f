//! Which logs are kept for the values in them, when a memtable becomes tables.
//!
//! The values of a keyspace with a merge operator go into tables.
//!
//! A log is kept if at least half of its bytes are values that the tables will have. Otherwise they go into the tables,
//! with the small ones. A log that may take more records, or that a failure has stopped, is not kept. The logs that an
//! ingest wrote for its values are kept with its tables.
//!
//! **A log is synced before a manifest names it**, and it is not removed before a manifest that does not name it is
//! synced.

use crate::core::Core;
use crate::manifest::{Edit, Manifest};
use crate::memtable::Memtable;
use crate::values::{Haste, Logs};
use crate::wrapped::{self, Entry};
use forrest_base::lock;
use forrest_engine::{Compression, Result};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

use super::new::New;

impl Core {
    /// The logs that have enough of a memtable's values, opened.
    ///
    /// # Errors
    /// `OutOfSpace` without a descriptor.
    pub(super) fn logs_to_keep(&self, memtable: &Memtable, spaces: &[u32]) -> Result<Logs> {
        // ORDERING: only the holder of the manifest sets it.
        if !memtable.has_placed() || self.large_values == usize::MAX || self.is_resuming.load(Relaxed) {
            return Ok(Logs::new());
        }
        let (catalog, mut bytes) = (self.catalog(), BTreeMap::<u64, u64>::new());
        let (now_ms, mut has_expired) = (self.newest().now_ms(), false);
        // Operands are never applied to what is in a log, whose values move when its space comes back.
        let operated = &self.version().operated;
        let stay = |space: u32| catalog.compression(space) == Compression::None && !operated.has(space);
        for &space in spaces.iter().filter(|&&space| stay(space)) {
            let mut pairs = New { memtable: Some(memtable), space, low: &[], end: None, keeps: true }.pairs();
            while pairs.key().is_some() {
                if let Entry::Wrapped(value) = pairs.said()
                    && let Some((place, value)) = wrapped::place_of(value)
                {
                    match value.expires_ms.is_some_and(|expires_ms| expires_ms <= now_ms) {
                        true => has_expired = true,
                        false => *bytes.entry(place.log).or_default() += value.content.len() as u64,
                    }
                }
                pairs.advance();
            }
        }
        if has_expired {
            self.hasten(Haste::Expired);
        }
        let mut logs = Logs::new();
        for (number, bytes) in bytes {
            if let Some(end) = self.log().ended(number)
                && bytes >= end.div_ceil(2)
            {
                let log = self.shared.values.open(number, end)?;
                // If it cannot be opened now, nothing refers to it.
                if log.file().is_ok() {
                    logs.insert(number, log);
                }
            }
        }
        Ok(logs)
    }

    /// Adds the edits about kept logs to those of a step; the logs that are kept after it.
    pub(super) fn logs_after(
        &self,
        manifest: &Manifest,
        flushed: Option<&Arc<Memtable>>,
        edits: &mut Vec<Edit>,
    ) -> Arc<Logs> {
        let version = self.version();
        let covered = flushed.map_or(manifest.state().covered, |memtable| memtable.frozen().last);
        let given_up = self.given_up(covered);
        let keeping = match flushed {
            Some(_) => lock(&self.keeping).clone(),
            None => Arc::default(),
        };
        let adding = lock(&self.adding).clone();
        if keeping.is_empty() && adding.is_empty() && given_up.is_empty() {
            return version.logs.clone();
        }
        let mut logs = (*version.logs).clone();
        for number in given_up.into_iter().filter(|number| manifest.state().logs.contains_key(number)) {
            logs.remove(&number);
            edits.push(Edit::NoKeep { log: number });
        }
        for (&number, log) in keeping.iter().chain(&*adding) {
            logs.insert(number, log.clone());
            edits.push(Edit::Keep { log: number, bytes: log.bytes });
        }
        Arc::new(logs)
    }
}
