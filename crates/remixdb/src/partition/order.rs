//! [`Known`]: the order over the tables of a partition, and how it is made.
//!
//! It is one [`Remix`] in memory, or two: if memory is short, the one of the REMIX file stays in its file, and there is
//! another one over the newer tables.

use super::cursor::{Owned, runs};
use crate::cache::Cache;
use crate::disk::Sealed;
use crate::gauge::Share;
use crate::memory::Memory;
use crate::remix::{self, Remix, Run};
use crate::table::Table;
use crate::values::Values;
use forrest_engine::Result;
use std::cmp::Ordering;
use std::sync::Arc;

/// What partitions of a store share.
pub(crate) struct Shared {
    pub(crate) disk: Arc<Sealed>,
    pub(crate) cache: Arc<Cache>,
    pub(crate) memory: Arc<Memory>,
    /// The values that are in logs.
    pub(crate) values: Arc<Values>,
    /// Whether a REMIX gets tags if there is no file.
    pub(crate) tags: bool,
}

/// What is known of the order over the tables of a partition. By default it is nothing.
#[derive(Clone, Default)]
pub(crate) struct Known {
    /// The order over the first tables, if it stays in its file.
    pub(crate) base: Option<Arc<Remix>>,
    /// The order over the tables after these; `None` if there is at most one.
    pub(crate) remix: Option<Arc<Remix>>,
    pub(crate) stored: Option<Stored>,
}

impl Known {
    /// The number of the first tables, whose order stays in its file.
    #[inline]
    pub(crate) fn base_tables(&self) -> usize {
        self.base.as_ref().map_or(0, |base| base.runs().len())
    }

    /// Bytes of memory.
    pub(crate) fn bytes(&self) -> usize {
        [&self.base, &self.remix].into_iter().flatten().map(|remix| remix.bytes()).sum()
    }

    /// The order over all tables; `None` for one table. May have to be built in memory.
    pub(crate) fn whole(
        &self,
        tables: &[Arc<Table>],
        check: &dyn Fn() -> Result<()>,
    ) -> Result<Option<Arc<Remix>>> {
        match &self.base {
            None => Ok(self.remix.clone()),
            Some(base) => order(Some(base.clone()), tables, base.has_tags(), check),
        }
    }
}

/// The file of a REMIX.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Stored {
    pub(crate) number: u64,
    /// Number of tables that it covers, the oldest ones.
    pub(crate) tables: usize,
}

/// Number and entries of each table.
pub(crate) fn named(tables: &[Arc<Table>]) -> Vec<(u64, u32)> {
    tables.iter().map(|table| (table.name().number, table.entries())).collect()
}

/// The order over several tables, with tags or without; `None` for one table. `known` is the order over the
/// first tables. Fails with the error of `check`.
pub(crate) fn order(
    known: Option<Arc<Remix>>,
    tables: &[Arc<Table>],
    tags: bool,
    check: &dyn Fn() -> Result<()>,
) -> Result<Option<Arc<Remix>>> {
    let mut runs = interruptible(tables, check);
    if runs.len() < 2 {
        return Ok(None);
    }
    let known = match known {
        Some(known) if known.runs().len() == runs.len() => return Ok(Some(known)),
        known => known,
    };
    let share = share_of(tables);
    let remix = match known {
        Some(known) => remix::rebuild(&known, &mut runs, tags)?,
        None => remix::build(&mut runs, tags)?,
    };
    Ok(Some(Arc::new(remix.counted(share))))
}

/// The order over tables that are going to be merged, also over one. Fails with the error of `check`.
pub(crate) fn merge_order(tables: &[Arc<Table>], check: &dyn Fn() -> Result<()>) -> Result<Arc<Remix>> {
    let share = share_of(tables);
    Ok(Arc::new(remix::build(&mut interruptible(tables, check), false)?.counted(share)))
}

/// Entries of tables.
pub(crate) fn entries_of(tables: &[Arc<Table>]) -> u64 {
    tables.iter().map(|table| u64::from(table.entries())).sum()
}

/// The bytes of an order over tables in memory, about.
pub(super) fn bytes_of(tables: &[Arc<Table>]) -> usize {
    let bytes = entries_of(tables).saturating_mul(remix::ENTRY_BYTES);
    usize::try_from(bytes).unwrap_or(usize::MAX)
}

/// Counts an order over tables in memory while it is made. REQUIRES: there is a table.
pub(super) fn share_of(tables: &[Arc<Table>]) -> Share {
    tables[0].cache().indexes().take(bytes_of(tables))
}

/// A run that fails when the work with it is to stop.
struct Interruptible<'s, R> {
    run: R,
    check: &'s dyn Fn() -> Result<()>,
    /// Keys that are read before the next check.
    left: u32,
}

/// Keys that are read or written between two checks whether to go on.
pub(crate) const LOOK: u32 = 1024;

/// [`runs`](runs()) that fail with the error of `check`.
fn interruptible<'s>(
    tables: &[Arc<Table>],
    check: &'s dyn Fn() -> Result<()>,
) -> Vec<Interruptible<'s, Owned>> {
    runs(tables).into_iter().map(|run| Interruptible { run, check, left: LOOK }).collect()
}

impl<R: Run> Run for Interruptible<'_, R> {
    fn len(&self) -> u32 {
        self.run.len()
    }

    fn compare(&mut self, ordinal: u32, key: &[u8]) -> Result<Ordering> {
        self.run.compare(ordinal, key)
    }

    fn key_into(&mut self, ordinal: u32, into: &mut Vec<u8>) -> Result<()> {
        self.left -= 1;
        if self.left == 0 {
            self.left = LOOK;
            (self.check)()?;
        }
        self.run.key_into(ordinal, into)
    }

    fn is_tombstone(&mut self, ordinal: u32) -> Result<bool> {
        self.run.is_tombstone(ordinal)
    }

    fn has_large(&self) -> bool {
        self.run.has_large()
    }

    fn large_bytes(&mut self, ordinal: u32) -> Result<u64> {
        self.run.large_bytes(ordinal)
    }
}
